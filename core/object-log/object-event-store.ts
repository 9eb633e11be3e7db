import type {
  AllPage, AppendResult, Authorize, EventStore, NewEvent, ReadAllOptions, ReadStreamOptions, StoredEvent, StreamInfo, StreamPage, SubscribeAllOptions, SubscribeStreamOptions, SubscriptionMessage,
} from '../streams/api.ts';
import type { EventStoreInternals } from '../streams/event-store.ts';
import type { Poller } from './poller.ts';
import type { Refresher } from './refresher.ts';

/**
 * The store over a log that others write to: every read asks for the next commit first, so that it sees what anybody had
 * acknowledged before. Writes need not ask: if another writer was first the commit itself says so.
 */
export class ObjectEventStore implements EventStore {
  readonly #store: EventStoreInternals;
  readonly #refresher: Refresher;
  readonly #poller: Poller;

  constructor(store: EventStoreInternals, refresher: Refresher, poller: Poller) {
    this.#store = store;
    this.#refresher = refresher;
    this.#poller = poller;
  }

  get end(): number { return this.#store.end; }

  append(stream: string, expectedVersion: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> {
    return this.#refresher.again(() => this.#store.append(stream, expectedVersion, events, authorize));
  }

  deleteStream(stream: string, expectedVersion: number, kind: 'soft' | 'hard', authorize?: Authorize): Promise<{ readonly position: number }> {
    return this.#refresher.again(() => this.#store.deleteStream(stream, expectedVersion, kind, authorize));
  }

  readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> {
    return this.#fresh(() => this.#store.readStream(stream, options));
  }

  readEvent(stream: string, number: number | 'last', resolveLinks?: boolean): Promise<StoredEvent> {
    return this.#fresh(() => this.#store.readEvent(stream, number, resolveLinks));
  }

  readAll(options: ReadAllOptions): Promise<AllPage> {
    return this.#fresh(() => this.#store.readAll(options));
  }

  streamInfo(stream: string): Promise<StreamInfo> {
    return this.#fresh(() => this.#store.streamInfo(stream));
  }

  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionMessage> {
    return this.#poller.follow(() => this.#store.subscribeToStream(stream, options));
  }

  subscribeToAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionMessage> {
    return this.#poller.follow(() => this.#store.subscribeToAll(options));
  }

  waitForStream(stream: string, signal: AbortSignal): Promise<boolean> {
    return this.#poller.during(() => this.#store.waitForStream(stream, signal));
  }

  waitForLog(position: number, signal: AbortSignal): Promise<boolean> {
    return this.#poller.during(() => this.#store.waitForLog(position, signal));
  }

  async #fresh<T>(read: () => Promise<T>): Promise<T> {
    await this.#refresher.refresh();
    return this.#refresher.again(read);
  }
}
