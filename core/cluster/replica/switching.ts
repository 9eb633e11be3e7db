import type { ByteShare } from '../../base/byte-budget.ts';
import { SkuaError } from '../../base/errors.ts';
import type { DryRunReport, Explanation, LastScavenge, OlderPoint, ScavengeOptions, ScavengeProgress, Scavenger, ScavengeStarted } from '../../scavenge/api.ts';
import type {
  AllPage, AllPosition, AppendResult, AppendToStreamsOptions, AppendToStreamsResult, Authorize, EventStore, NewEvent, ReadAllOptions, ReadStreamOptions, StoredEvent, StreamInfo, StreamPage, StreamWrite, SubscribeAllOptions, SubscribeStreamOptions, SubscriptionMessage, SubscriptionPage,
} from '../../streams/api.ts';
import type { MemberLog } from '../api.ts';
import { copyClosed } from './member-log.ts';

/** What a copy that is closed, or must be, says to those who use it. */
const CLOSED: ReadonlySet<string> = new Set(['copy_behind', 'store_closed', 'io_error', 'file_not_found']);

/** The part of the opening in force; throws `not_ready` while there is none. */
type Current<T> = () => T;

/** The store of a member, whichever opening of its copy is in force. */
export class SwitchingStore implements EventStore {
  readonly #open: () => EventStore | null;
  readonly #store: Current<EventStore>;
  readonly #log: Pick<MemberLog, 'end' | 'refresh'>;

  constructor(open: () => EventStore | null, store: Current<EventStore>, log: Pick<MemberLog, 'end' | 'refresh'>) {
    this.#open = open;
    this.#store = store;
    this.#log = log;
  }

  /** Also where the copy has ended its chunk since its last commit, which readers see; and while it is opened again it does not go back. */
  get end(): number { return Math.max(this.#open()?.end ?? 0, this.#log.end); }
  append(stream: string, expectedVersion: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> { return this.#use((store) => store.append(stream, expectedVersion, events, authorize)); }
  appendToStreams(writes: readonly StreamWrite[], options?: AppendToStreamsOptions): Promise<AppendToStreamsResult> { return this.#use((store) => store.appendToStreams(writes, options)); }
  deleteStream(stream: string, expectedVersion: number, kind: 'soft' | 'hard', authorize?: Authorize): Promise<{ readonly position: number }> { return this.#use((store) => store.deleteStream(stream, expectedVersion, kind, authorize)); }
  readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> { return this.#use((store) => store.readStream(stream, options)); }
  readEvent(stream: string, number: number | 'last', resolveLinks?: boolean, share?: ByteShare): Promise<StoredEvent> { return this.#use((store) => store.readEvent(stream, number, resolveLinks, share)); }
  readAll(options: ReadAllOptions): Promise<AllPage> { return this.#use((store) => store.readAll(options)); }
  streamInfo(stream: string): Promise<StreamInfo> { return this.#use((store) => store.streamInfo(stream)); }
  streamInfoNow(stream: string): StreamInfo | null { return this.#open()?.streamInfoNow?.(stream) ?? null; }
  waitForStream(stream: string, signal: AbortSignal): Promise<boolean> { return this.#use((store) => store.waitForStream(stream, signal)); }
  waitForLog(position: number, signal: AbortSignal): Promise<boolean> { return this.#use((store) => store.waitForLog(position, signal)); }

  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncGenerator<SubscriptionMessage<number>, void, undefined> {
    return this.#follow((store) => store.subscribeToStream(stream, options));
  }

  async *subscribeToAll(options: SubscribeAllOptions): AsyncGenerator<SubscriptionMessage<AllPosition>, void, undefined> {
    await this.#reach(options);
    yield* this.#follow((store) => store.subscribeToAll(options));
  }

  followStream(stream: string, options: SubscribeStreamOptions): AsyncGenerator<SubscriptionPage<number>, void, undefined> {
    return this.#follow((store) => store.followStream(stream, options));
  }

  async *followAll(options: SubscribeAllOptions): AsyncGenerator<SubscriptionPage<AllPosition>, void, undefined> {
    await this.#reach(options);
    yield* this.#follow((store) => store.followAll(options));
  }

  /** Who has read on at another member may come with a place that this copy has not reached: what lies before it must not come again. */
  async #reach({ after }: SubscribeAllOptions): Promise<void> {
    if (typeof after === 'object' && after.commit >= this.#log.end) await this.#use(() => this.#log.refresh());
  }

  async #use<T>(call: (store: EventStore) => Promise<T>): Promise<T> {
    const store = this.#store();
    try {
      return await call(store);
    } catch (error) {
      throw this.#told(store, error);
    }
  }

  async *#follow<T>(subscribe: (store: EventStore) => AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    const store = this.#store();
    try {
      yield* subscribe(store);
    } catch (error) {
      throw this.#told(store, error);
    }
  }

  /** Errors of a copy that is being closed and opened again say only that. None of them leaves open whether something was written. */
  #told(store: EventStore, error: unknown): unknown {
    if (!(error instanceof SkuaError) || !CLOSED.has(error.code)) return error;
    return error.code === 'copy_behind' || this.#open() !== store ? copyClosed(error) : error;
  }
}

/** The scavenger of a member's copy. What it remembers of runs ends with the opening that they ran in. */
export class SwitchingScavenger implements Scavenger {
  readonly #open: () => Scavenger | null;
  readonly #scavenger: Current<Scavenger>;

  constructor(open: () => Scavenger | null, scavenger: Current<Scavenger>) {
    this.#open = open;
    this.#scavenger = scavenger;
  }

  async start(options?: ScavengeOptions): Promise<ScavengeStarted> { return this.#scavenger().start(options); }
  async stop(scavengeId: string): Promise<string> { return this.#scavenger().stop(scavengeId); }
  current(): string | null { return this.#open()?.current() ?? null; }
  last(): LastScavenge | null { return this.#open()?.last() ?? null; }
  async waiting(): Promise<OlderPoint | null> { return this.#scavenger().waiting(); }
  lastOptions(): ScavengeOptions { return this.#open()?.lastOptions?.() ?? {}; }
  progress(): ScavengeProgress | null { return this.#open()?.progress() ?? null; }
  async startDryRun(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> { return this.#scavenger().startDryRun(options); }
  async dryRun(scavengeId: string): Promise<DryRunReport | null> { return this.#scavenger().dryRun(scavengeId); }
  async explain(stream: string): Promise<Explanation> { return this.#scavenger().explain(stream); }
  hold(): () => void { return this.#scavenger().hold(); }
  async idle(): Promise<void> { await this.#open()?.idle(); }
  async close(): Promise<void> { await this.#open()?.close(); }
}
