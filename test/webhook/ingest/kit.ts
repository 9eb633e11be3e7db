import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import type { Meter, MeterLabels } from '../../../core/ports/meter.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import type { StreamAccess } from '../../../core/security/api.ts';
import type { Store } from '../../../core/store/store.ts';
import { ANY, type EventStore, type StoredEvent } from '../../../core/streams/api.ts';
import { decodeText, encodeText } from '../../../core/base/text.ts';
import type {
  ActiveConnector,
  ActiveConnectors,
  Drain,
  WebhookSettings,
  InboundCall,
} from '../../../core/webhook/api.ts';
import { deliveryEventId } from '../../../core/webhook/ingest/delivery.ts';
import { mirrorId } from '../../../core/webhook/ingest/delivery-notes.ts';
import { createIngest } from '../../../core/webhook/ingest/ingest.ts';
import type { Ingest, IngestLimits } from '../../../core/webhook/ingest/ingest.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { LogLines } from '../../handlers/secured.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../../support/test-store.ts';
import { FakeSandbox } from '../connectors/kit.ts';

export const ROUTE =
  'const route = ({ body }) => body.stream === undefined ? null : { stream: body.stream, schema: body.schema };';

/** Connectors that run because a test says so. */
export class FakeActive implements ActiveConnectors {
  readonly #running = new Map<string, ActiveConnector>();
  readonly #drains: Drain[] = [];
  #activations = 0;

  activeOf(connectorId: string): ActiveConnector | null {
    return this.#running.get(connectorId) ?? null;
  }
  onStop(drain: Drain): void {
    this.#drains.push(drain);
  }

  start(
    connectorId: string,
    settings: Partial<WebhookSettings> = {},
    secrets: readonly string[] = [],
    incarnation = 0,
  ): ActiveConnector {
    const connector: ActiveConnector = {
      connectorId,
      activation: ++this.#activations,
      incarnation,
      revision: 0,
      secrets,
      settings: {
        script: ROUTE,
        skippedStatus: 400,
        waitForWrite: false,
        confirmationTimeoutMs: 30_000,
        signature: null,
        allowedHeaders: ['content-type', 'user-agent', 'x-request-id'],
        streams: null,
        deduplication: { enabled: true, header: null, maxAgeMs: 72 * 3_600_000, maxCount: 1_000_000 },
        loggingEnabled: true,
        ...settings,
      },
    };
    this.#running.set(connectorId, connector);
    return connector;
  }

  async stop(connectorId: string): Promise<void> {
    const connector = this.#running.get(connectorId)!;
    this.#running.delete(connectorId);
    await Promise.all(this.#drains.map((drain) => drain(connector)));
  }
}

/** Remembers counts by name and labels. */
export class CountingMeter implements Meter {
  readonly counts = new Map<string, number>();
  readonly observed: string[] = [];
  count(name: string, by = 1, labels: MeterLabels = {}): void {
    const key = [name, ...Object.values(labels)].join(' ');
    this.counts.set(key, (this.counts.get(key) ?? 0) + by);
  }
  gauge(): void {}
  observe(name: string): void {
    this.observed.push(name);
  }
}

/** A store whose appends, to one stream or to several, can be held back or refused. */
export class GatedStore {
  readonly store: EventStore;
  /** Thrown in place of an append, where it returns something. */
  refuse: (stream: string) => unknown = () => null;
  /** Appends wait for this. */
  gate: (stream: string) => Promise<void> | null = () => null;

  constructor(inner: EventStore) {
    this.store = new Proxy(inner, {
      get: (target, name) => {
        const member = (target as unknown as Record<PropertyKey, unknown>)[name];
        if (name === 'append') return this.#append(target);
        if (name === 'appendToStreams') return this.#appendToStreams(target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  }

  #append(target: EventStore): EventStore['append'] {
    return async (stream, ...rest) => {
      await this.#pass(stream);
      return target.append(stream, ...rest);
    };
  }

  #appendToStreams(target: EventStore): EventStore['appendToStreams'] {
    return async (writes, options) => {
      for (const { stream } of writes) await this.#pass(stream);
      return target.appendToStreams(writes, options);
    };
  }

  async #pass(stream: string): Promise<void> {
    await this.gate(stream);
    const error = this.refuse(stream);
    if (error !== null) throw error;
  }
}

export interface Rig {
  readonly opened: Store;
  readonly clock: ManualClock;
  readonly gated: GatedStore;
  readonly active: FakeActive;
  readonly sandbox: FakeSandbox;
  readonly meter: CountingMeter;
  readonly log: LogLines;
  readonly ingest: Ingest;
  /** Events that anyone may see, oldest first; none without the stream. */
  read(stream: string): Promise<StoredEvent[]>;
  send(body: unknown, over?: Partial<CallInit>): Promise<number>;
  /** Resolves when somebody other than the store sleeps: a call that waits for its write, a drain, a retry. */
  asleep(): Promise<void>;
}

interface CallInit {
  readonly connectorId: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface RigOptions {
  readonly storage?: Storage;
  readonly clock?: ManualClock;
  readonly seed?: number;
  readonly limits?: Partial<IngestLimits>;
  readonly opened?: Store;
  readonly active?: FakeActive;
  readonly access?: StreamAccess;
}

/** An ingest over the real store. */
export async function openRig(options: RigOptions = {}): Promise<Rig> {
  const { seed = 1 } = options;
  const clock = options.clock ?? new ManualClock(TEST_NOW_MS, 'microtask');
  const opened =
    options.opened ??
    (await openTestStore({ storage: options.storage ?? new MemoryStorage(), clock, seed, verifyChunks: false }));
  const gated = new GatedStore(opened.store);
  const active = options.active ?? new FakeActive();
  const sandbox = new FakeSandbox();
  const meter = new CountingMeter();
  const log = new LogLines();
  const ingest = createIngest({
    active,
    sandbox,
    store: gated.store,
    access: options.access ?? null,
    keys: nodeKeys,
    clock,
    ids: new SeededIds(seed + 1_000),
    log,
    meter,
    ...(options.limits && { limits: options.limits }),
  });
  const sleepers = clock.sleeping;
  return {
    opened,
    clock,
    gated,
    active,
    sandbox,
    meter,
    log,
    ingest,
    read: (stream) => readAll(opened.store, stream),
    send: async (body, over = {}) => {
      const answer = await ingest.receive(callOf(body, clock, over), () => over.signal ?? new AbortController().signal);
      return typeof answer === 'number' ? answer : answer.status;
    },
    asleep: () => until(() => clock.sleeping > sleepers),
  };
}

export function callOf(
  body: unknown,
  clock: ManualClock,
  { connectorId = 'parcels', headers = {}, query = {} }: Partial<CallInit> = {},
): InboundCall {
  const bytes = body instanceof Uint8Array ? body : encodeText(typeof body === 'string' ? body : JSON.stringify(body));
  return {
    connectorId,
    path: `/webhook/${connectorId}`,
    headers: new Map(Object.entries({ 'content-type': 'application/json', ...headers })),
    query: new Map(Object.entries(query)),
    body: bytes,
    arrivedMs: clock.nowMs(),
  };
}

async function readAll(store: EventStore, stream: string): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  try {
    for (let from = 0, isEnd = false; !isEnd;) {
      const page = await store.readStream(stream, { direction: 'forward', from, count: 4_096 });
      events.push(...page.events);
      from = page.nextEventNumber;
      isEnd = page.isEnd;
    }
  } catch (error) {
    if ((error as { code?: string }).code !== 'stream_not_found') throw error;
  }
  return events;
}

export function dataOf(event: StoredEvent): Record<string, unknown> {
  return JSON.parse(decodeText(event.data)) as Record<string, unknown>;
}

/** Lets what is in flight go on until the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition()))
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}

/** Writes a note as earlier versions did, before its event; the id of that event. */
export async function noteAsBefore(rig: Rig, deliveryId: string, stream: string, after = -1): Promise<string> {
  const eventId = deliveryEventId(nodeKeys, rig.active.activeOf('parcels')!, deliveryId);
  await rig.opened.store.append(DELIVERIES, ANY, [
    {
      id: mirrorId(eventId),
      type: '$webhook-delivery',
      isJson: true,
      metadata: new Uint8Array(0),
      data: encodeText(
        JSON.stringify({
          deliveryId,
          stream,
          type: 'WebhookReceived',
          after,
          writer: 'd2f1a0c4-0f1f-4c39-9d1d-0d3a5c3f8e11',
          settled: 0,
        }),
      ),
    },
  ]);
  return eventId;
}

export const REJECTIONS = '$webhook-parcels-rejections';
export const DELIVERIES = '$webhook-parcels-deliveries';
