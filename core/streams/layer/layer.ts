import {
  type Authorize,
  bothAllow,
  type EventStore,
  KINDS,
  type StoreWrite,
  type StoreWritten,
  type StreamCheck,
  type SubscribeAllOptions,
  type SubscribeStreamOptions,
} from '../api.ts';

type Kind = (typeof KINDS)[keyof EventStore];
/** The names of the members that are of a kind. */
type NamesOf<K extends Kind> = {
  [Name in keyof EventStore]-?: (typeof KINDS)[Name] extends K ? Name : never;
}[keyof EventStore];

/** What passes through no layer, since nothing is waited for. */
type Uncalled = Pick<EventStore, NamesOf<'value' | 'now'>>;

/** A call with its arguments, to be made of any store. */
export type Call<T> = (store: EventStore) => T;

/** What stands around the calls of a store, by what they do; kinds that are left out go straight to it. */
export interface Around {
  /** Carried out by `performWrite`, here or elsewhere. */
  write?(write: StoreWrite): Promise<StoreWritten>;
  read?<T>(call: Call<Promise<T>>): Promise<T>;
  /** `options` are those of the call. */
  follow?<T>(call: Call<AsyncIterable<T>>, options: SubscribeStreamOptions | SubscribeAllOptions): AsyncIterable<T>;
  wait?(call: Call<Promise<boolean>>): Promise<boolean>;
}

/**
 * A store whose calls pass through `around`. What is not called comes from `store`, which is all that is needed of it
 * where all calls go through `around`. Each method is made once, not for each call.
 */
export function layer(store: EventStore, around: Around): EventStore;
export function layer(store: Uncalled, around: Required<Around>): EventStore;
export function layer(store: Uncalled, around: Around): EventStore {
  const layered: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries(KINDS)) {
    if (kind === 'value')
      Object.defineProperty(layered, name, { get: () => store[name as NamesOf<'value'>], enumerable: true });
    else if (kind !== 'now' || store[name as NamesOf<'now'>] !== undefined)
      layered[name] = methodOf(store as Uncalled & Methods, name, kind, around);
  }
  return layered as unknown as EventStore;
}

/**
 * By four arguments, which are as many as a method takes: to collect those that there are would make an array for each
 * call.
 */
type Method = (a: unknown, b: unknown, c: unknown, d: unknown) => unknown;
type Methods = Readonly<Record<string, Method>>;

function methodOf(store: Methods, name: string, kind: Exclude<Kind, 'value'>, around: Around): Method {
  if (kind === 'write' && around.write !== undefined) {
    const valueOf = VALUES[name as NamesOf<'write'>] as (...args: unknown[]) => StoreWrite;
    return (a, b, c, d) => around.write!(valueOf(a, b, c, d));
  }
  if (kind === 'read' && around.read !== undefined)
    return (a, b, c, d) => around.read!((on) => (on as unknown as Methods)[name]!(a, b, c, d) as Promise<unknown>);
  if (kind === 'wait' && around.wait !== undefined)
    return (a, b, c, d) => around.wait!((on) => (on as unknown as Methods)[name]!(a, b, c, d) as Promise<boolean>);
  if (kind === 'follow' && around.follow !== undefined)
    return (a, b) =>
      around.follow!(
        (on) => (on as unknown as Methods)[name]!(a, b, undefined, undefined) as AsyncIterable<unknown>,
        (b ?? a) as SubscribeAllOptions,
      );
  return (a, b, c, d) => store[name]!(a, b, c, d);
}

const NO_CHECKS: readonly StreamCheck[] = [];

/** The arguments of each method that writes, as a value. */
const VALUES: { readonly [Name in NamesOf<'write'>]: (...args: Parameters<EventStore[Name]>) => StoreWrite } = {
  append: (stream, expectedVersion, events, authorize) => ({
    kind: 'append',
    writes: [{ stream, expectedVersion, events, authorize }],
    checks: NO_CHECKS,
    isRepeatable: true,
  }),
  appendToStreams: (writes, { checks = NO_CHECKS, isRepeatable = true, condition } = {}) => ({
    kind: condition === undefined ? 'streams' : 'conditional',
    writes,
    checks,
    isRepeatable,
    ...(condition !== undefined && { condition }),
  }),
  deleteStream: (stream, expectedVersion, kind, authorize) => ({
    kind,
    writes: [{ stream, expectedVersion, events: [], authorize }],
    checks: NO_CHECKS,
    isRepeatable: true,
  }),
};

/**
 * Carries a write out. `guard` is asked before what the write asks itself, for each stream that it writes to. Errors:
 * those of the method.
 */
export function performWrite(
  store: Pick<EventStore, NamesOf<'write'>>,
  { kind, writes, checks, isRepeatable, condition }: StoreWrite,
  guard: Authorize | null = null,
): Promise<StoreWritten> {
  if (kind === 'streams' || kind === 'conditional') {
    return store.appendToStreams(
      guard === null ? writes : writes.map((write) => ({ ...write, authorize: behind(guard, write.authorize) })),
      { checks, isRepeatable, condition },
    );
  }
  const { stream, expectedVersion, events, authorize } = writes[0]!;
  const asked = behind(guard, authorize);
  return kind === 'append'
    ? store.append(stream, expectedVersion, events, asked)
    : store.deleteStream(stream, expectedVersion, kind, asked);
}

function behind(guard: Authorize | null, authorize: Authorize | undefined): Authorize | undefined {
  return bothAllow(guard, authorize ?? null) ?? undefined;
}
