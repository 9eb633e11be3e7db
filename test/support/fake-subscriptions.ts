import {
  answerId,
  DEFAULT_SETTINGS,
  droppedError,
  existsError,
  failedError,
  maximumError,
  notFoundError,
  parkedStreamOf,
} from '../../core/persistent/api.ts';
import type {
  ConnectOptions,
  Delivery,
  GroupChange,
  GroupConsumer,
  GroupInfo,
  NackAction,
  NewGroup,
  PersistentSubscriptions,
  StartFrom,
} from '../../core/persistent/api.ts';
import type { StoredEvent } from '../../core/streams/api.ts';

interface Known {
  readonly options: NewGroup;
  readonly consumers: Set<FakeConsumer>;
  readonly waiting: Delivery[];
}

/** Groups that remember what they were told and send what a test gives them. */
export class FakeSubscriptions implements PersistentSubscriptions {
  readonly groups = new Map<string, Known>();
  /** What was called, in order, with its arguments. */
  readonly calls: unknown[][] = [];
  /** Laid over what `info` tells of every group. */
  more: Partial<GroupInfo> = {};

  async create(stream: string, group: string, options: NewGroup, by: string): Promise<void> {
    this.calls.push(['create', stream, group, options, by]);
    if (this.groups.has(key(stream, group))) throw existsError(stream, group);
    if (options.settings.strategy === 'Nonsense')
      throw failedError(stream, group, 'Consumer strategy Nonsense does not exist.');
    this.groups.set(key(stream, group), { options, consumers: new Set(), waiting: [] });
  }

  async update(stream: string, group: string, change: GroupChange, by: string): Promise<void> {
    this.calls.push(['update', stream, group, change, by]);
    const { options, consumers, waiting } = this.#known(stream, group);
    const strategy = change.settings.strategy ?? options.settings.strategy;
    for (const consumer of consumers) consumer.drop();
    this.groups.set(key(stream, group), {
      options: { ...options, settings: { ...change.settings, strategy }, from: change.from ?? options.from },
      consumers: new Set(),
      waiting,
    });
  }

  async reset(stream: string, group: string, from: StartFrom, by: string): Promise<void> {
    this.calls.push(['reset', stream, group, from, by]);
    for (const consumer of this.#known(stream, group).consumers) consumer.drop();
  }

  async delete(stream: string, group: string, by: string): Promise<void> {
    this.calls.push(['delete', stream, group, by]);
    for (const consumer of this.#known(stream, group).consumers) consumer.drop();
    this.groups.delete(key(stream, group));
  }

  async parkedStream(stream: string, group: string): Promise<string> {
    this.#known(stream, group);
    return parkedStreamOf(stream, group);
  }

  async info(stream: string, group: string): Promise<GroupInfo> {
    const {
      options: { settings, filter, from },
      consumers,
      waiting,
    } = this.#known(stream, group);
    return {
      stream,
      group,
      status: 'Live',
      averagePerSecond: 4.6,
      totalItems: 9,
      countSinceLastMeasurement: 6,
      lastCheckpointedPosition: '8',
      lastKnownPosition: '9',
      startFrom: from === 'end' ? '-1' : from === 'start' ? '0' : String(from),
      settings,
      filter: filter ?? null,
      readBufferCount: 1,
      liveBufferCount: 2,
      retryBufferCount: 3,
      totalInFlightMessages: 4,
      outstandingMessagesCount: 5,
      parkedMessageCount: waiting.length,
      oldestParkedMs: null,
      parkedReplays: 0,
      parkedTruncations: 0,
      parkedByClient: 0,
      parkedByRetries: 0,
      connections: [...consumers].map(({ options: { from: address, username, connectionName, bufferSize } }) => ({
        from: address,
        username,
        connectionName,
        averageItemsPerSecond: 4.6,
        totalItems: 9,
        countSinceLastMeasurement: 6,
        availableSlots: bufferSize,
        inFlightMessages: 0,
        observedMeasurements: [{ key: 'Mean', value: 7 }],
      })),
      ...this.more,
    };
  }

  async list(stream?: string): Promise<GroupInfo[]> {
    const named = [...this.groups.keys()].map((each) => each.split('\n') as [string, string]);
    return Promise.all(
      named.filter(([of]) => stream === undefined || of === stream).map(([of, group]) => this.info(of, group)),
    );
  }

  async replayParked(stream: string, group: string, stopAt: number | null): Promise<void> {
    this.#parked('replayParked', stream, group, stopAt);
  }

  async truncateParked(stream: string, group: string, stopAt: number | null): Promise<void> {
    this.#parked('truncateParked', stream, group, stopAt);
  }

  #parked(call: string, stream: string, group: string, stopAt: number | null): void {
    this.calls.push([call, stream, group, stopAt]);
    this.#known(stream, group);
    if (stopAt !== null && stopAt < 0)
      throw failedError(stream, group, 'Cannot stop replaying parked message at a negative version.');
  }

  async restart(): Promise<void> {
    this.calls.push(['restart']);
    for (const { consumers } of this.groups.values()) for (const consumer of consumers) consumer.drop();
  }

  async connect(stream: string, group: string, options: ConnectOptions): Promise<GroupConsumer> {
    this.calls.push(['connect', stream, group, options]);
    const {
      consumers,
      waiting,
      options: {
        settings: { maxSubscriberCount },
      },
    } = this.#known(stream, group);
    if (maxSubscriberCount > 0 && consumers.size >= maxSubscriberCount) throw maximumError(stream, group);
    const consumer = new FakeConsumer(this, stream, group, options, waiting, () => {
      consumers.delete(consumer);
    });
    consumers.add(consumer);
    return consumer;
  }

  async take(stream: string, group: string, count: number): Promise<readonly Delivery[]> {
    this.calls.push(['take', stream, group, count]);
    return this.#known(stream, group).waiting.splice(0, count);
  }

  async ack(stream: string, group: string, ids: readonly string[]): Promise<void> {
    this.#known(stream, group);
    this.calls.push(['ack', ids]);
  }

  async nack(stream: string, group: string, ids: readonly string[], action: NackAction, reason: string): Promise<void> {
    this.#known(stream, group);
    this.calls.push(['nack', ids, action, reason]);
  }

  /** Lets the first consumer of a group, or the next one that asks, have these events. */
  give(stream: string, group: string, events: readonly StoredEvent[], retryCount = 0): void {
    const { waiting, consumers } = this.#known(stream, group);
    waiting.push(...events.map((event) => ({ event, retryCount })));
    for (const consumer of consumers) consumer.wake();
  }

  /** What was answered. */
  get answers(): unknown[][] {
    return this.calls.filter(([call]) => call === 'ack' || call === 'nack');
  }

  #known(stream: string, group: string): Known {
    const known = this.groups.get(key(stream, group));
    if (known === undefined) throw notFoundError(stream, group);
    return known;
  }
}

function key(stream: string, group: string): string {
  return `${stream}\n${group}`;
}

class FakeConsumer implements GroupConsumer {
  readonly subscriptionId: string;
  readonly options: ConnectOptions;
  readonly #all: FakeSubscriptions;
  readonly #named: readonly [string, string];
  readonly #waiting: Delivery[];
  readonly #gone: () => void;
  readonly #underWay = new Set<string>();
  #wake: () => void = () => {};
  #end: 'closed' | 'dropped' | null = null;

  constructor(
    all: FakeSubscriptions,
    stream: string,
    group: string,
    options: ConnectOptions,
    waiting: Delivery[],
    gone: () => void,
  ) {
    this.#all = all;
    this.#named = [stream, group];
    this.subscriptionId = `${stream}::${group}`;
    this.options = options;
    this.#waiting = waiting;
    this.#gone = gone;
    options.signal?.addEventListener('abort', () => this.close());
  }

  async next(): Promise<readonly Delivery[]> {
    for (;;) {
      if (this.#end === 'dropped') throw droppedError(...this.#named);
      if (this.#end === 'closed') return [];
      const page = this.#waiting.splice(0, this.options.bufferSize - this.#underWay.size);
      for (const { event } of page) this.#underWay.add(answerId(event));
      if (page.length > 0) return page;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  ack(ids: readonly string[]): void {
    this.#answered(ids);
    this.#all.calls.push(['ack', ids]);
  }

  nack(ids: readonly string[], action: NackAction, reason: string): void {
    this.#answered(ids);
    this.#all.calls.push(['nack', ids, action, reason]);
  }

  #answered(ids: readonly string[]): void {
    for (const id of ids) this.#underWay.delete(id);
    this.wake();
  }

  wake(): void {
    this.#wake();
  }

  close(): void {
    this.#over('closed');
  }
  drop(): void {
    this.#over('dropped');
  }

  #over(how: 'closed' | 'dropped'): void {
    if (this.#end !== null) return;
    this.#end = how;
    this.#gone();
    this.wake();
  }
}

/** With the group `workers` of this stream. */
export async function fakeGroups(stream: string): Promise<FakeSubscriptions> {
  const groups = new FakeSubscriptions();
  await groups.create(stream, 'workers', { settings: DEFAULT_SETTINGS, from: 'start' }, 'ada');
  groups.calls.length = 0;
  return groups;
}
