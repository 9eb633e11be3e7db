import { AsyncLocalStorage } from 'node:async_hooks';
import type { ByteShare } from '../../core/base/byte-budget.ts';
import type { HeldWrite, MemberLog, Patience, CarriedWrite, Writer } from '../../core/cluster/api.ts';
import { newOrder, NOTHING, OWN, STAYS } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import type { Order, WritesElsewhere } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type {
  AllPage, AllPosition, AppendResult, AppendToStreamsOptions, AppendToStreamsResult, Authorize, EventStore, NewEvent, ReadAllOptions, ReadStreamOptions, StoredEvent, StreamInfo, StreamPage, StreamWrite, SubscribeAllOptions, SubscribeStreamOptions, SubscriptionMessage, SubscriptionPage,
} from '../../core/streams/api.ts';
import type { Fence, Passage } from '../../handlers/http/cluster.ts';

type EpochOf = Pick<MemberLog, 'epoch'>;

/**
 * Rule 13 of core/cluster/README.md: what another member has passed on is decided, in its turn, only while the epoch in which it was sent is the newest in the log,
 * and this member wrote that. The log itself proves it: a write that takes its place in front of a commit has seen all commits before, and with
 * them every epoch. Whoever brought it, no write takes its place that has waited for too long (`Patience`).
 */
export class EpochFence implements Fence {
  readonly #log: EpochOf;
  readonly #instanceId: string;
  readonly #patience: Patience;
  /** The request that is being handled; nothing where a client of this member, or the member itself, is at work. */
  readonly #passages = new AsyncLocalStorage<EpochPassage | OwnPassage>();

  constructor(log: EpochOf, instanceId: string, patience: Patience) {
    this.#log = log;
    this.#instanceId = instanceId;
    this.#patience = patience;
  }

  passage(epochNumber: number | null, held: HeldWrite): EpochPassage {
    return new EpochPassage(this.#log, this.#instanceId, epochNumber, held);
  }

  run<T>(epochNumber: number | null, held: HeldWrite, work: (passage: Passage) => T): T {
    const passage = this.passage(epochNumber, held);
    return this.#passages.run(passage, work, passage);
  }

  own<T>(writer: () => Writer, isGone: () => boolean, work: () => T): T {
    return this.#passages.run({ writer, isGone, order: newOrder() }, work);
  }

  /**
   * The store for what is written in the handling of requests. What goes on for longer than a request, and may have been begun in one (the audit, the calls of
   * webhooks, schedules), gets the store itself: it must not inherit the epoch of whoever came first.
   */
  storeOf(store: EventStore, elsewhere: WritesElsewhere): EventStore {
    return new FencedStore(store, () => this.#passages.getStore() ?? null, this.#patience, elsewhere);
  }
}

/** A request of a client's own. */
interface OwnPassage {
  readonly writer: () => Writer;
  readonly isGone: () => boolean;
  readonly order: Order;
}

class EpochPassage implements Passage {
  readonly #log: EpochOf;
  readonly #instanceId: string;
  readonly #number: number | null;
  readonly #held: HeldWrite;
  hasWritten = false;

  constructor(log: EpochOf, instanceId: string, number: number | null, held: HeldWrite) {
    this.#log = log;
    this.#instanceId = instanceId;
    this.#number = number;
    this.#held = held;
  }

  get isOpen(): boolean {
    if (this.#number === null) return true;
    const { epoch } = this.#log;
    return epoch !== null && epoch.number === this.#number && epoch.leaderInstanceId === this.#instanceId;
  }

  readonly authorize: Authorize = () => (this.isOpen ? this.#expired() : this.#closed(this.#number!));

  /** A write that was begun behind it. */
  async passed<T>(write: Promise<T>): Promise<T> {
    const result = await write;
    this.hasWritten = true;
    return result;
  }

  /** Of a request of several steps the first ones may be in the log. */
  #expired(): SkuaError | null {
    const refusal = this.#held.refusal();
    return refusal === null || !this.hasWritten ? refusal : new SkuaError('commit_outcome_unknown', 'The request took so long that only part of it was carried out: check the result and send it again.', {}, refusal);
  }

  #closed(epoch: number): SkuaError {
    // Epochs only grow: behind this one, or with the same one of another member, it never opens again. One that is still to come into the copy may open it.
    const isFinal = (this.#log.epoch?.number ?? -1) >= epoch;
    return new SkuaError('not_leader', `This member is not the leader of epoch ${epoch}, in which the request was sent to it. Ask the current leader.`, { epoch, isFinal });
  }
}

/**
 * The store for what is written in the handling of requests. What another member has passed on is written under its passage; all else goes to the member that leads, where that is another one,
 * for whom the request names, and is held from when it is written.
 */
class FencedStore implements EventStore {
  readonly #store: EventStore;
  readonly #passageOf: () => EpochPassage | OwnPassage | null;
  readonly #patience: Patience;
  readonly #elsewhere: WritesElsewhere;
  readonly streamInfoNow?: (stream: string) => StreamInfo | null;

  constructor(store: EventStore, passageOf: () => EpochPassage | OwnPassage | null, patience: Patience, elsewhere: WritesElsewhere) {
    this.#store = store;
    this.#passageOf = passageOf;
    this.#patience = patience;
    this.#elsewhere = elsewhere;
    if (store.streamInfoNow !== undefined) this.streamInfoNow = (stream) => store.streamInfoNow!(stream);
  }

  get end(): number { return this.#store.end; }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> {
    return this.#write(() => ({ ...NOTHING, writes: [{ stream, expectedVersion, events }] }), authorize, (guard) => this.#store.append(stream, expectedVersion, events, both(guard, authorize)));
  }

  appendToStreams(writes: readonly StreamWrite[], options?: AppendToStreamsOptions): Promise<AppendToStreamsResult> {
    return this.#write(() => ({
      ...NOTHING, kind: 'streams', writes: writes.map(({ stream, expectedVersion, events }) => ({ stream, expectedVersion, events })), isRepeatable: options?.isRepeatable ?? true,
      checks: (options?.checks ?? []).map(({ stream, expectedVersion, authorize }) => ({ stream, expectedVersion, isAsked: authorize !== undefined })),
    }), writes.find(({ authorize }) => authorize !== undefined)?.authorize, (guard) => this.#store.appendToStreams(writes.map((write) => ({ ...write, authorize: both(guard, write.authorize) })), options));
  }

  deleteStream(stream: string, expectedVersion: number, kind: 'soft' | 'hard', authorize?: Authorize): Promise<{ readonly position: number }> {
    return this.#write(() => ({ ...NOTHING, kind, writes: [{ stream, expectedVersion, events: [] }] }), authorize, (guard) => this.#store.deleteStream(stream, expectedVersion, kind, both(guard, authorize)));
  }

  #write<T>(valueOf: () => Omit<CarriedWrite, 'by' | 'unchanged' | 'atMs'>, authorize: Authorize | undefined, write: (guard: Authorize) => Promise<T>): Promise<T> {
    const passage = this.#passageOf();
    if (passage instanceof EpochPassage) return passage.passed(write(passage.authorize));
    const order = passage?.order ?? null;
    const by = this.#elsewhere.takes(order) ? writerOf(passage, authorize) : null;
    if (by === null) {
      const held = this.#patience.begin(STAYS);
      const here = write(() => held.refusal());
      if (order !== null) order.here = here;
      return here;
    }
    const held = this.#patience.begin(passage?.isGone ?? STAYS);
    return this.#elsewhere.write(order ?? newOrder(), { write: { ...valueOf(), by, unchanged: authorize?.unchanged ?? [] }, held, here: () => write(() => held.refusal()) });
  }

  readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> { return this.#store.readStream(stream, options); }
  readEvent(stream: string, number: number | 'last', resolveLinks?: boolean, share?: ByteShare): Promise<StoredEvent> { return this.#store.readEvent(stream, number, resolveLinks, share); }
  readAll(options: ReadAllOptions): Promise<AllPage> { return this.#store.readAll(options); }
  streamInfo(stream: string): Promise<StreamInfo> { return this.#store.streamInfo(stream); }
  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionMessage<number>> { return this.#store.subscribeToStream(stream, options); }
  subscribeToAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionMessage<AllPosition>> { return this.#store.subscribeToAll(options); }
  followStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionPage<number>> { return this.#store.followStream(stream, options); }
  followAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionPage<AllPosition>> { return this.#store.followAll(options); }
  waitForStream(stream: string, signal: AbortSignal): Promise<boolean> { return this.#store.waitForStream(stream, signal); }
  waitForLog(position: number, signal: AbortSignal): Promise<boolean> { return this.#store.waitForLog(position, signal); }
}

/** For whom another member is to write; null where what is asked before can't be said as a value, so that this member decides. */
function writerOf(passage: OwnPassage | null, authorize: Authorize | undefined): Writer | null {
  const writer = passage === null ? OWN : passage.writer();
  return authorize === undefined || authorize.unchanged !== undefined || writer.asks === 'list' ? writer : null;
}

function both(first: Authorize, second: Authorize | undefined): Authorize {
  return second === undefined ? first : (metadata, endOf) => first(metadata, endOf) ?? second(metadata, endOf);
}
