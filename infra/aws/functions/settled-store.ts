import type { AppendResult, AllPage, Authorize, EventStore, NewEvent, ReadAllOptions, ReadStreamOptions, StoredEvent, StreamInfo, StreamPage, SubscribeAllOptions, SubscribeStreamOptions, SubscriptionMessage } from '../../../core/streams/api.ts';

/**
 * A store that knows what is under way in it. A function's process is frozen when its reply has been sent, so what was begun
 * in the background (a note about a refused call, say) must end before. Subscriptions and waits don't count: they end with their request.
 */
export class SettledStore implements EventStore {
  readonly #store: EventStore;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly streamInfoNow?: (stream: string) => StreamInfo | null;

  constructor(store: EventStore) {
    this.#store = store;
    if (store.streamInfoNow !== undefined) this.streamInfoNow = (stream) => store.streamInfoNow!(stream);
  }

  /** Resolves when nothing is under way any more, also nothing that something else was followed by; never rejects. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay);
      // Whatever goes on behind a promise has begun its next step by then.
      await new Promise((resolve) => { setImmediate(resolve); });
    }
  }

  get end(): number { return this.#store.end; }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> {
    return this.#watch(this.#store.append(stream, expectedVersion, events, authorize));
  }

  deleteStream(stream: string, expectedVersion: number, kind: 'soft' | 'hard', authorize?: Authorize): Promise<{ readonly position: number }> {
    return this.#watch(this.#store.deleteStream(stream, expectedVersion, kind, authorize));
  }

  readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> { return this.#watch(this.#store.readStream(stream, options)); }
  readEvent(stream: string, number: number | 'last', resolveLinks?: boolean): Promise<StoredEvent> { return this.#watch(this.#store.readEvent(stream, number, resolveLinks)); }
  readAll(options: ReadAllOptions): Promise<AllPage> { return this.#watch(this.#store.readAll(options)); }
  streamInfo(stream: string): Promise<StreamInfo> { return this.#watch(this.#store.streamInfo(stream)); }
  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionMessage> { return this.#store.subscribeToStream(stream, options); }
  subscribeToAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionMessage> { return this.#store.subscribeToAll(options); }
  waitForStream(stream: string, signal: AbortSignal): Promise<boolean> { return this.#store.waitForStream(stream, signal); }
  waitForLog(position: number, signal: AbortSignal): Promise<boolean> { return this.#store.waitForLog(position, signal); }

  #watch<T>(work: Promise<T>): Promise<T> {
    const end = () => { this.#underWay.delete(work); };
    this.#underWay.add(work);
    work.then(end, end);
    return work;
  }
}
