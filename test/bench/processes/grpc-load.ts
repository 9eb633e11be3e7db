import {
  EventStoreDBClient,
  jsonEvent,
  persistentSubscriptionToStreamSettingsFromDefaults,
  START,
} from '@eventstore/db-client';
import type { AppendToStreamOptions, EventData, StreamSubscription } from '@eventstore/db-client';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { EVENT_JSON, EVENT_TYPES } from '../events.ts';

/**
 * The load generator of the figures of gRPC: the official client, which does all that an application has done by it.
 */
export interface GrpcTarget {
  readonly port: number;
  /** File of the authority's certificate; without TLS where there is none. */
  readonly authority?: string;
}
export type GrpcLoadRequest = { readonly target: GrpcTarget } &
  /**
   * So many appends under way at a time, each of so many events to a stream of its own. With a login each is a call of
   * its own; without TLS this client does not send it, though.
   */
  (
    | {
        readonly kind: 'append';
        readonly inFlight: number;
        readonly batch: number;
        readonly ms: number;
        readonly login?: { readonly username: string; readonly password: string };
      }
    /** The first so many events of a stream, or of `$all` where none is named, again and again. */
    | { readonly kind: 'read'; readonly stream: string | null; readonly events: number; readonly ms: number }
    /** Single appends at this rate, each seen again by a subscription. */
    | { readonly kind: 'follow'; readonly perSecond: number; readonly ms: number }
    /**
     * The first so many events of a stream by way of a new group, each acked by one of so many consumers, which may
     * have so many unacked.
     */
    | {
        readonly kind: 'consume';
        readonly stream: string;
        readonly events: number;
        readonly consumers: number;
        readonly bufferSize: number;
      }
    /** So many subscriptions, each to a stream of its own, which then stay; zero ends those that are there. */
    | { readonly kind: 'hold'; readonly subscriptions: number }
  );
export interface GrpcLoadResult {
  /** Events appended, read or delivered. */
  readonly events: number;
  readonly seconds: number;
  /** From an append until it was answered; until its event was delivered, for subscriptions. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** For subscriptions, from an append until it was answered. */
  readonly answeredP99Ms: number;
  /** Share of one core that this process took. */
  readonly cpu: number;
}

/** What the appends of a window carry; each has an id of its own. */
const DATA = JSON.parse(EVENT_JSON) as Record<string, unknown>;
const TICK_MS = 1;
/** Longest that the last events of a window may be on their way. */
const LATE_MS_MAX = 10_000;

const clients = new Map<string, EventStoreDBClient>();
function clientOf({ port, authority }: GrpcTarget): EventStoreDBClient {
  const address = `esdb://127.0.0.1:${port}?tls=${authority === undefined ? 'false' : `true&tlsCAFile=${encodeURIComponent(authority)}`}`;
  let client = clients.get(address);
  if (client === undefined) clients.set(address, (client = EventStoreDBClient.connectionString(address)));
  return client;
}

function newEvents(count: number): EventData[] {
  return Array.from({ length: count }, (_, i) => jsonEvent({ type: EVENT_TYPES[i & 7]!, data: DATA as never }));
}

/** What a window has come to: events, and the milliseconds that each answer took. */
interface Tally {
  events: number;
  readonly latencies: number[];
  readonly answered: number[];
}

async function append(
  client: EventStoreDBClient,
  { inFlight, batch, ms, login }: Extract<GrpcLoadRequest, { kind: 'append' }>,
  tally: Tally,
): Promise<void> {
  const options: AppendToStreamOptions = login === undefined ? {} : { credentials: login };
  const until = performance.now() + ms;
  await Promise.all(
    Array.from({ length: inFlight }, async (_, i) => {
      const stream = `bench-grpc-${String(i).padStart(2, '0')}`;
      do {
        const sent = performance.now();
        await client.appendToStream(stream, newEvents(batch), options);
        tally.latencies.push(performance.now() - sent);
        tally.events += batch;
      } while (performance.now() < until);
    }),
  );
}

async function read(
  client: EventStoreDBClient,
  { stream, events, ms }: Extract<GrpcLoadRequest, { kind: 'read' }>,
  tally: Tally,
): Promise<void> {
  const until = performance.now() + ms;
  do {
    const sent = performance.now();
    let count = 0;
    const found =
      stream === null
        ? client.readAll({ maxCount: events, fromPosition: START })
        : client.readStream(stream, { maxCount: events, fromRevision: START });
    for await (const { event } of found) if (event !== undefined) count++;
    if (count !== events) throw new Error(`${count} events of ${events} came.`);
    tally.events += events;
    tally.latencies.push(performance.now() - sent);
  } while (performance.now() < until);
}

let followed = 0;

async function follow(
  client: EventStoreDBClient,
  { perSecond, ms }: Extract<GrpcLoadRequest, { kind: 'follow' }>,
  tally: Tally,
): Promise<void> {
  const stream = `bench-grpc-live-${followed++}`;
  const subscription = client.subscribeToStream(stream, { fromRevision: START });
  const sentAt: number[] = [];
  let allCame: () => void = () => {};
  let isSending = true;
  subscription.on('data', () => {
    tally.latencies.push(performance.now() - sentAt[tally.events++]!);
    if (!isSending && tally.events === sentAt.length) allCame();
  });
  await new Promise<void>((resolve, reject) => {
    subscription.on('confirmation', resolve);
    subscription.on('error', reject);
  });
  const begin = performance.now();
  const appends: Promise<unknown>[] = [];
  await new Promise<void>((resolve) => {
    const ticking = setInterval(() => {
      const now = performance.now();
      for (const due = (Math.min(now - begin, ms) * perSecond) / 1_000; sentAt.length < due;) {
        const sent = performance.now();
        sentAt.push(sent);
        appends.push(
          client.appendToStream(stream, newEvents(1)).then(() => tally.answered.push(performance.now() - sent)),
        );
      }
      if (now - begin < ms) return;
      clearInterval(ticking);
      resolve();
    }, TICK_MS);
  });
  await Promise.all(appends);
  isSending = false;
  if (tally.events < sentAt.length) {
    await new Promise<void>((resolve, reject) => {
      allCame = resolve;
      setTimeout(
        () => reject(new Error(`${tally.events} events of ${sentAt.length} were delivered.`)),
        LATE_MS_MAX,
      ).unref();
    });
  }
  await subscription.unsubscribe();
}

let groups = 0;

async function consume(
  client: EventStoreDBClient,
  { stream, events, consumers, bufferSize }: Extract<GrpcLoadRequest, { kind: 'consume' }>,
  tally: Tally,
): Promise<void> {
  const group = `bench-${process.pid}-${groups++}`;
  await client.createPersistentSubscriptionToStream(
    stream,
    group,
    persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START }),
  );
  const subscriptions = Array.from({ length: consumers }, () =>
    client.subscribeToPersistentSubscriptionToStream(stream, group, { bufferSize }),
  );
  await new Promise<void>((resolve, reject) => {
    for (const subscription of subscriptions) {
      subscription.on('error', reject);
      subscription.on('data', (event) => {
        subscription.ack(event).catch(reject);
        if (++tally.events === events) resolve();
      });
    }
  });
  for (const subscription of subscriptions) await subscription.unsubscribe();
  await client.deletePersistentSubscriptionToStream(stream, group);
}

const held: StreamSubscription[] = [];

async function hold(
  client: EventStoreDBClient,
  { subscriptions }: Extract<GrpcLoadRequest, { kind: 'hold' }>,
): Promise<void> {
  while (held.length > subscriptions) await held.pop()!.unsubscribe();
  while (held.length < subscriptions) {
    const subscription = client.subscribeToStream(`bench-grpc-idle-${held.length}`, { fromRevision: START });
    held.push(subscription);
    await new Promise<void>((resolve, reject) => {
      subscription.on('confirmation', resolve);
      subscription.on('error', reject);
      subscription.on('data', () => {});
    });
  }
}

async function load(request: GrpcLoadRequest): Promise<GrpcLoadResult> {
  const client = clientOf(request.target);
  const tally: Tally = { events: 0, latencies: [], answered: [] };
  const cpu = process.cpuUsage();
  const begin = performance.now();
  if (request.kind === 'append') await append(client, request, tally);
  else if (request.kind === 'read') await read(client, request, tally);
  else if (request.kind === 'follow') await follow(client, request, tally);
  else if (request.kind === 'consume') await consume(client, request, tally);
  else await hold(client, request);
  const elapsedMs = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  return {
    events: tally.events,
    seconds: elapsedMs / 1_000,
    p50Ms: partOf(tally.latencies, 0.5),
    p99Ms: partOf(tally.latencies, 0.99),
    answeredP99Ms: partOf(tally.answered, 0.99),
    cpu: (user + system) / 1_000 / elapsedMs,
  };
}

/** So much of the values lies below; 0 where there are none. */
function partOf(values: readonly number[], part: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(sorted.length * part)] ?? 0;
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await load(JSON.parse(line) as GrpcLoadRequest))}\n`);
  process.exit(0);
}
