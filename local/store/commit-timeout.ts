import { background } from '../../core/base/background.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { ByteShare } from '../../core/base/byte-budget.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type {
  AllPage, AllPosition, AppendResult, AppendToStreamsOptions, AppendToStreamsResult, Authorize, EventStore, NewEvent, ReadAllOptions, ReadStreamOptions, StoredEvent, StreamInfo, StreamPage, StreamWrite,
  SubscribeAllOptions, SubscribeStreamOptions, SubscriptionMessage, SubscriptionPage,
} from '../../core/streams/api.ts';

/** Time between two looks at the writes that wait: the reference looks once a second. */
const LOOK_MS = 250;

/**
 * The store as clients write to it where CommitTimeoutMs is given: who writes is told after this time that the outcome is not known, with
 * `commit_outcome_unknown`. The write itself goes on, since it can't be taken back.
 */
export class CommitTimeout implements EventStore {
  readonly #store: EventStore;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  /** In the order of their begin, and so of their ends. */
  readonly #waiting = new Set<Waiting>();
  #isLooking = false;
  readonly streamInfoNow?: (stream: string) => StreamInfo | null;

  constructor(store: EventStore, timeoutMs: number, clock: Clock) {
    this.#store = store;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    if (store.streamInfoNow !== undefined) this.streamInfoNow = (stream) => store.streamInfoNow!(stream);
  }

  get end(): number { return this.#store.end; }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> {
    return this.#inTime(this.#store.append(stream, expectedVersion, events, authorize));
  }

  appendToStreams(writes: readonly StreamWrite[], options?: AppendToStreamsOptions): Promise<AppendToStreamsResult> {
    return this.#inTime(this.#store.appendToStreams(writes, options));
  }

  deleteStream(stream: string, expectedVersion: number, kind: 'soft' | 'hard', authorize?: Authorize): Promise<{ readonly position: number }> {
    return this.#inTime(this.#store.deleteStream(stream, expectedVersion, kind, authorize));
  }

  #inTime<T>(write: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { untilMs: this.#clock.monotonicMs() + this.#timeoutMs, reject };
      this.#waiting.add(waiting);
      write.then(resolve, reject).finally(() => { this.#waiting.delete(waiting); });
      if (!this.#isLooking) background(this.#look());
    });
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiting.size > 0) {
      await this.#clock.sleep(LOOK_MS);
      const nowMs = this.#clock.monotonicMs();
      for (const waiting of this.#waiting) {
        if (waiting.untilMs > nowMs) break;
        this.#waiting.delete(waiting);
        waiting.reject(new SkuaError('commit_outcome_unknown', `Operation timed out: the write was not committed within ${this.#timeoutMs} ms (CommitTimeoutMs). It may yet be: look, or send it again with the same ids.`));
      }
    }
    this.#isLooking = false;
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

interface Waiting {
  readonly untilMs: number;
  readonly reject: (error: unknown) => void;
}
