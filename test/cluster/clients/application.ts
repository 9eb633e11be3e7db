import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as kurrent from '@kurrent/kurrentdb-client';

/** What both generations of the official client have in common, in the words of the newer one. */
export type Library = typeof kurrent;
export type Client = kurrent.KurrentDBClient;

/** What clients try again on, elsewhere or later; anything else that an application is told is a mistake of ours. */
const RETRIED: ReadonlySet<string> = new Set([
  'unavailable',
  'not-leader',
  'cancelled',
  'persistent-subscription-dropped',
  'deadline-exceeded',
  'timeout',
]);
/** The status of gRPC for it. */
const UNAVAILABLE = 14;
const RETRY_MS = 50;
/** Between two appends of one application. */
const PAUSE_MS = 5;
/** Appends of one application on their way at the same time, and events in each. */
const PIPELINE = 8;
export const EVENTS = 3;
/** Own writes have to be there after so many milliseconds where the client has gone to another member meanwhile. */
const SHOWN_MS = 300_000;
/** A member whose copy can't take an append in for 5 s acknowledges it without. */
const OWN_WRITES_MS = 4_900;
/** And subscriptions have given everything after so many. */
const SETTLED_MS = 300_000;

export interface Report {
  readonly problems: string[];
  /** How often applications were told what. */
  readonly told: Record<string, number>;
  /** Ids that were acknowledged, by stream. */
  readonly appended: Map<string, string[]>;
  /** Ids that subscriptions have given. */
  given: number;
  subscriptions: number;
  ownReads: number;
  lateOwnReads: number;
}

export function newReport(): Report {
  return { problems: [], told: {}, appended: new Map(), given: 0, subscriptions: 0, ownReads: 0, lateOwnReads: 0 };
}

/** One application with a client of its own. */
export interface Place {
  readonly lib: Library;
  readonly client: Client;
  /**
   * What it reads with. The new generation reads by a library of its own, which goes on asking a member that is gone
   * (it looks for others only where one refers it to them): an application that is told so has to make another client.
   */
  reader: Client;
  renewReader(): Promise<void>;
  readonly name: string;
  readonly report: Report;
  /** No more is begun. */
  readonly isOver: () => boolean;
}

/** Whether it is to be tried again; anything else is a problem. */
function isRetried(error: unknown, { report, name }: Place, what: string): boolean {
  // Where a connection can't be made for a subscription to a group, the client hands on what its transport said.
  const {
    code,
    type = code === UNAVAILABLE ? 'unavailable' : 'no type',
    message = String(error),
  } = error as { code?: number; type?: string; message?: string };
  const told = `${what}: ${type}`;
  report.told[told] = (report.told[told] ?? 0) + 1;
  if (RETRIED.has(type)) return true;
  report.problems.push(`${name}, ${told}: ${message}`);
  return false;
}

function eventOf({ lib }: Place, n: number): kurrent.EventData {
  return lib.jsonEvent({ id: randomUUID(), type: 'counted', data: { n } });
}

/** Either client takes one of these names for the state that a stream has to be in. */
function expecting(state: kurrent.AppendStreamState): object {
  return { streamState: state, expectedRevision: state };
}

/** Appends until it is acknowledged, always with the same ids, as applications do that must not lose anything. */
async function append(
  place: Place,
  stream: string,
  events: kurrent.EventData[],
  options: object,
): Promise<kurrent.AppendResult | null> {
  for (;;) {
    try {
      return await place.client.appendToStream(stream, events, options as kurrent.AppendToStreamOptions);
    } catch (error) {
      if (!isRetried(error, place, 'append')) return null;
      await sleep(RETRY_MS);
    }
  }
}

/** One event after the other, each expecting the one before; what was acknowledged is read at once. */
export async function appendInTurn(place: Place, stream: string, options: object = {}): Promise<void> {
  const ids: string[] = [];
  place.report.appended.set(stream, ids);
  for (let n = 0; !place.isOver(); n++) {
    const event = eventOf(place, n);
    const before = await channelOf(place);
    const sentMs = performance.now();
    const result = await append(place, stream, [event], {
      ...expecting(n === 0 ? 'no_stream' : BigInt(n - 1)),
      ...options,
    });
    if (result === null) return;
    if (!result.success || result.nextExpectedRevision !== BigInt(n))
      place.report.problems.push(`${stream}: event ${n} was given the number ${result.nextExpectedRevision}`);
    ids.push(event.id);
    await readOwn(place, stream, n, event.id, performance.now() - sentMs < OWN_WRITES_MS ? before : null);
    await sleep(PAUSE_MS);
  }
}

/** The connection over which appends and reads go; null where reads may go over another one. */
async function channelOf({ client, reader }: Place): Promise<object | null> {
  return client === reader
    ? (client as unknown as { getChannel(): Promise<object> }).getChannel().catch(() => null)
    : null;
}

async function readOwn(place: Place, stream: string, n: number, id: string, before: object | null): Promise<void> {
  const { report } = place;
  for (const untilMs = Date.now() + SHOWN_MS; Date.now() < untilMs; await sleep(RETRY_MS)) {
    const found = await read(place, stream, { fromRevision: BigInt(n), maxCount: 1 });
    report.ownReads++;
    if (found?.length === 1 && found[0] === id) return;
    report.lateOwnReads++;
    if (before !== null && found?.length === 0 && (await channelOf(place)) === before)
      report.problems.push(`${stream}: event ${n} was acknowledged, and the same member does not show it`);
  }
  report.problems.push(`${stream}: event ${n} is not shown after ${SHOWN_MS} ms`);
}

/** The ids of events; null where that is to be tried again. */
async function read(place: Place, stream: string, options: kurrent.ReadStreamOptions): Promise<string[] | null> {
  const ids: string[] = [];
  try {
    for await (const { event } of place.reader.readStream(stream, options)) ids.push(event!.id);
  } catch (error) {
    const { type } = error as { type?: string };
    if (type === 'stream-not-found') return [];
    isRetried(error, place, 'read');
    if (type === 'unavailable') await place.renewReader();
    return null;
  }
  return ids;
}

/** What is in a stream now, from its first event to its last, as the member that leads has it. */
export async function idsOf(place: Place, stream: string): Promise<string[]> {
  for (; ; await sleep(RETRY_MS)) {
    const ids = await read(place, stream, { requiresLeader: true });
    if (ids !== null) return ids;
  }
}

/** Several appends at a time, wherever they come to lie. */
export async function appendMany(place: Place, stream: string): Promise<void> {
  const ids: string[] = [];
  place.report.appended.set(stream, ids);
  let n = 0;
  await Promise.all(
    Array.from({ length: PIPELINE }, async () => {
      while (!place.isOver()) {
        const events = Array.from({ length: EVENTS }, () => eventOf(place, n++));
        if ((await append(place, stream, events, expecting('any'))) === null) return;
        ids.push(...events.map((event) => event.id));
        await sleep(PAUSE_MS);
      }
    }),
  );
}

/** One subscription after the other to the same stream. */
export interface Following {
  readonly name: string;
  readonly stream: string;
  /** What it was given, or what consumers of a group were given for the first time. */
  readonly ids: readonly string[];
  /** Events may come in another order, as retried ones do. */
  readonly isGroup: boolean;
  /** Resolves once so many events were given, or nothing more comes. */
  until(count: number): Promise<void>;
  stop(): Promise<void>;
}

interface Subscription extends AsyncIterable<kurrent.ResolvedEvent> {
  unsubscribe(): Promise<void>;
}

/**
 * Follows by `subscribe` from where the last subscription has ended; `take` says which event it was, null for one that
 * does not count.
 */
function follow(
  place: Place,
  of: Pick<Following, 'name' | 'stream' | 'isGroup'>,
  subscribe: () => Subscription,
  take: (event: kurrent.ResolvedEvent) => string | null | Promise<string | null>,
): Following {
  const { report } = place;
  const ids: string[] = [];
  let isStopped = false;
  let current: Subscription | null = null;
  const running = (async () => {
    while (!isStopped) {
      current = subscribe();
      report.subscriptions++;
      try {
        for await (const event of current) {
          const id = await take(event);
          if (id === null) continue;
          ids.push(id);
          report.given++;
        }
      } catch (error) {
        if (!isStopped && !isRetried(error, place, 'subscription')) return;
      }
      if (!isStopped) await sleep(RETRY_MS);
    }
  })();
  return {
    ...of,
    ids,
    async until(count) {
      for (const untilMs = Date.now() + SETTLED_MS; ids.length < count && Date.now() < untilMs;) await sleep(RETRY_MS);
    },
    async stop() {
      isStopped = true;
      await current?.unsubscribe().catch(() => {});
      await running;
    },
  };
}

export function followStream(place: Place, stream: string): Following {
  let last: bigint | null = null;
  return follow(
    place,
    { name: `${place.name}, at ${stream}`, stream, isGroup: false },
    () => place.client.subscribeToStream(stream, { fromRevision: last ?? place.lib.START }),
    ({ event }) => {
      last = event!.revision;
      return event!.id;
    },
  );
}

/** The events of one stream in `$all`, by a filter. */
export function followAll(place: Place, stream: string): Following {
  let last: kurrent.Position | null = null;
  const filter = place.lib.streamNameFilter({ prefixes: [stream] });
  return follow(
    place,
    { name: `${place.name}, at ${stream} in $all`, stream, isGroup: false },
    () => place.client.subscribeToAll({ fromPosition: last ?? place.lib.START, filter }),
    ({ event }) => {
      last = event!.position!;
      return event!.streamId === stream ? event!.id : null;
    },
  );
}

/** A consumer of a group of a stream: events may come again, and none is left out. */
export async function consume(place: Place, stream: string, group: string): Promise<Following> {
  const { client, lib } = place;
  await made(place, () =>
    client.createPersistentSubscriptionToStream(
      stream,
      group,
      lib.persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: lib.START }),
    ),
  );
  return consuming(place, { name: `${place.name}, of ${group} at ${stream}`, stream }, () =>
    client.subscribeToPersistentSubscriptionToStream(stream, group),
  );
}

/** A consumer of a group of `$all` that one stream is chosen from by a filter. */
export async function consumeAll(place: Place, stream: string, group: string): Promise<Following> {
  const { client, lib } = place;
  const filter = lib.streamNameFilter({ prefixes: [stream] });
  await made(place, () =>
    client.createPersistentSubscriptionToAll(
      group,
      lib.persistentSubscriptionToAllSettingsFromDefaults({ startFrom: lib.START }),
      { filter },
    ),
  );
  return consuming(place, { name: `${place.name}, of ${group} at ${stream} in $all`, stream }, () =>
    client.subscribeToPersistentSubscriptionToAll(group),
  );
}

async function made(place: Place, create: () => Promise<void>): Promise<void> {
  for (let isMade = false, isRepeat = false; !isMade; isRepeat = true) {
    isMade = await create().then(
      () => true,
      (error: unknown) => {
        // One whose answer was lost has made it.
        if (isRepeat && (error as { type?: string }).type === 'persistent-subscription-exists') return true;
        if (!isRetried(error, place, 'create')) throw error;
        return false;
      },
    );
  }
}

type Consumption = kurrent.PersistentSubscriptionToStream | kurrent.PersistentSubscriptionToAll;

function consuming(place: Place, of: Pick<Following, 'name' | 'stream'>, subscribe: () => Consumption): Following {
  const known = new Set<string>();
  let current: Consumption | null = null;
  return follow(
    place,
    { ...of, isGroup: true },
    () => (current = subscribe()),
    async (resolved) => {
      await current!.ack(resolved);
      const { id } = resolved.event!;
      if (known.has(id)) return null;
      known.add(id);
      return id;
    },
  );
}
