import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/ports/clock.ts';
import type { Keys } from '../../core/ports/keys.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { Passwords } from '../../core/security/passwords.ts';
import type { Principal } from '../../core/base/principal.ts';
import { createSecurity, type RunningSecurity, type SecurityConfig } from '../../core/security/security.ts';
import type { ObservableStore, StreamInfo } from '../../core/security/stream-info.ts';
import type { EventStore, StoredEvent } from '../../core/streams/api.ts';
import type { EventStoreInternals } from '../../core/streams/streams.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

/** Quick keys that count their derivations and can hold them back. */
export class FakeKeys implements Keys {
  derivations: string[] = [];
  /** While set, derivations wait for it. */
  gate: Promise<void> | null = null;
  readonly #random = new Random(7);

  async pbkdf2Sha1(
    password: Uint8Array,
    salt: Uint8Array,
    _iterations: number,
    lengthBytes: number,
  ): Promise<Uint8Array> {
    return this.#derive('pbkdf2', password, salt, lengthBytes);
  }
  async scrypt(password: Uint8Array, salt: Uint8Array, _cost: unknown, lengthBytes: number): Promise<Uint8Array> {
    return this.#derive('scrypt', password, salt, lengthBytes);
  }
  async #derive(kind: string, password: Uint8Array, salt: Uint8Array, lengthBytes: number): Promise<Uint8Array> {
    this.derivations.push(kind);
    if (this.gate !== null) await this.gate;
    return new Uint8Array(createHmac('sha512', salt).update(kind).update(password).digest()).slice(0, lengthBytes);
  }
  equal(a: Uint8Array, b: Uint8Array): boolean {
    return a.length === b.length && timingSafeEqual(a, b);
  }
  randomBytes(length: number): Uint8Array {
    return this.#random.bytes(length);
  }
  readonly hmac = nodeKeys.hmac;
  readonly hmacText = nodeKeys.hmacText;
  readonly hkdfSha256 = nodeKeys.hkdfSha256;
  readonly sealAesGcm = nodeKeys.sealAesGcm;
  readonly openAesGcm = nodeKeys.openAesGcm;
  readonly ed25519Verify = nodeKeys.ed25519Verify;

  /** Holds derivations back until the function that it returns is called. */
  hold(): () => void {
    let open = () => {};
    this.gate = new Promise((resolve) => {
      open = () => {
        this.gate = null;
        resolve();
      };
    });
    return open;
  }
}

/** Keeps what is logged. */
export class KeptLog implements Log {
  readonly lines: { readonly level: string; readonly message: string }[] = [];
  debug(message: string): void {
    this.lines.push({ level: 'debug', message });
  }
  info(message: string): void {
    this.lines.push({ level: 'info', message });
  }
  warn(message: string): void {
    this.lines.push({ level: 'warn', message });
  }
  error(message: string): void {
    this.lines.push({ level: 'error', message });
  }
  at(level: string): string[] {
    return this.lines.filter((line) => line.level === level).map(({ message }) => message);
  }
}

export interface Observed {
  readonly store: ObservableStore;
  /** Writes so far, as `append <stream>` or `delete <stream>`. */
  readonly writes: string[];
  /** Asked before each write, which is rejected with what it throws. */
  beforeWrite: (stream: string) => void | Promise<void>;
}

/** The store with `streamInfoNow`: its own, or one that knows what was asked for since the last write. */
export function observe(store: EventStore): Observed {
  const known = new Map<string, StreamInfo>();
  const own = (store as ObservableStore).streamInfoNow?.bind(store);
  const observed: Observed = { store: null as unknown as ObservableStore, writes: [], beforeWrite: () => {} };
  const write = async (
    kind: string,
    name: 'append' | 'appendInternal' | 'deleteStream',
    args: [string, ...unknown[]],
  ) => {
    await observed.beforeWrite(args[0]);
    observed.writes.push(`${kind} ${args[0]}`);
    try {
      return await ((store as EventStoreInternals)[name] as (...all: unknown[]) => Promise<unknown>).apply(store, args);
    } finally {
      known.clear();
    }
  };
  const over: Record<string, unknown> = {
    append: (...args: [string, ...unknown[]]) => write('append', 'append', args),
    appendInternal: (...args: [string, ...unknown[]]) => write('append', 'appendInternal', args),
    deleteStream: (...args: [string, ...unknown[]]) => write('delete', 'deleteStream', args),
    streamInfoNow: (stream: string) => own?.(stream) ?? known.get(stream) ?? null,
    streamInfo: async (stream: string) => {
      const writes = observed.writes.length;
      const info = await store.streamInfo(stream);
      if (observed.writes.length === writes) known.set(stream, info);
      return info;
    },
  };
  const proxy = new Proxy(store, {
    get(target, name) {
      if (typeof name === 'string' && Object.hasOwn(over, name)) return over[name];
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return Object.assign(observed, { store: proxy as ObservableStore });
}

export interface World extends Observed {
  readonly security: RunningSecurity;
  readonly keys: FakeKeys;
  readonly clock: ManualClock;
  readonly log: KeptLog;
  /** Another node's security over the same store. */
  another(config?: Partial<SecurityConfig>): RunningSecurity;
  close(): Promise<void>;
}

export const CONFIG: SecurityConfig = {
  passwordFormat: 'strong',
  allowAnonymousStreamAccess: false,
  adminPassword: 'changeit',
  opsPassword: 'changeit',
};

/** Security over a real store in memory. */
export async function openWorld(
  config: Partial<SecurityConfig> = {},
  options: { readonly storage?: MemoryStorage; readonly start?: boolean } = {},
): Promise<World> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const opened = await openTestStore({ storage: options.storage ?? new MemoryStorage(), clock, verifyChunks: false });
  const observed = observe(opened.store);
  const keys = new FakeKeys();
  const log = new KeptLog();
  const another = (over: Partial<SecurityConfig> = {}) =>
    build(observed.store, keys, clock, log, { ...CONFIG, ...config, ...over });
  const security = another();
  if (options.start !== false) await security.start();
  return Object.assign(observed, { security, keys, clock, log, another, close: () => opened.close() });
}

function build(store: EventStore, keys: Keys, clock: Clock, log: Log, config: SecurityConfig): RunningSecurity {
  return createSecurity({ store, keys, clock, ids: new SeededIds(99), log, meter: silentMeter }, config);
}

/** All events of a stream as `type data`. */
export async function contentOf(store: EventStore, stream: string): Promise<string[]> {
  const { events } = await store.readStream(stream, { direction: 'forward', from: 0, count: 1_000 });
  return events.map((event: StoredEvent) => `${event.type} ${decodeText(event.data)}`);
}

let counter = 0;
export function json(type: string, data: unknown) {
  const id = `00000000-0000-4000-9000-${String(++counter).padStart(12, '0')}`;
  return {
    id,
    type,
    isJson: true,
    data: encodeText(typeof data === 'string' ? data : JSON.stringify(data)),
    metadata: new Uint8Array(0),
  };
}

export function setMetadata(store: EventStore, stream: string, metadata: unknown) {
  return store.append(`$$${stream}`, -2, [json('$metadata', metadata)]);
}

/** Writes what the store would refuse, as another program may have left it. */
export function leave(store: EventStore, stream: string, data: unknown) {
  return (store as EventStoreInternals).appendInternal(stream, -2, [json('left', data)]);
}

/** Leaves a user with the empty password, as the reference database lets one have it. */
export async function giveEmptyPassword(
  { store, keys }: Pick<World, 'store' | 'keys'>,
  loginName: string,
  groups: readonly string[] = [],
): Promise<void> {
  const secret = await new Passwords(keys, silentMeter, 'compatible').create('');
  await store.append(`$user-${loginName}`, -2, [json('$UserUpdated', { loginName, ...secret, groups })]);
}

export function principal(name: string, ...roles: string[]): Principal {
  return { name, roles };
}

/** `ok`, or the code of the error, whether thrown or rejected. */
export async function outcome(action: () => unknown): Promise<string> {
  try {
    await action();
    return 'ok';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
