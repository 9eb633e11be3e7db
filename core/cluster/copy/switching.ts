import type { ByteShare } from '../../byte-budget.ts';
import type { DryRunReport, Explanation, LastScavenge, OlderPoint, ScavengeOptions, ScavengeProgress, Scavenger, ScavengeStarted } from '../../scavenge/api.ts';
import type {
  AllPage, AllPosition, AppendResult, Authorize, EventStore, NewEvent, ReadAllOptions, ReadStreamOptions, StoredEvent, StreamInfo, StreamPage, SubscribeAllOptions, SubscribeStreamOptions, SubscriptionMessage,
} from '../../streams/api.ts';

/** The part of the opening in force; throws `not_ready` while there is none. */
type Current<T> = () => T;

/** The store of a member, whichever opening of its copy is in force. */
export class SwitchingStore implements EventStore {
  readonly #open: () => EventStore | null;
  readonly #store: Current<EventStore>;
  readonly #endOf: () => number;

  constructor(open: () => EventStore | null, store: Current<EventStore>, end: () => number) {
    this.#open = open;
    this.#store = store;
    this.#endOf = end;
  }

  get end(): number { return this.#endOf(); }
  async append(stream: string, expectedVersion: number, events: readonly NewEvent[], authorize?: Authorize): Promise<AppendResult> { return this.#store().append(stream, expectedVersion, events, authorize); }
  async deleteStream(stream: string, expectedVersion: number, kind: 'soft' | 'hard', authorize?: Authorize): Promise<{ readonly position: number }> { return this.#store().deleteStream(stream, expectedVersion, kind, authorize); }
  async readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> { return this.#store().readStream(stream, options); }
  async readEvent(stream: string, number: number | 'last', resolveLinks?: boolean, share?: ByteShare): Promise<StoredEvent> { return this.#store().readEvent(stream, number, resolveLinks, share); }
  async readAll(options: ReadAllOptions): Promise<AllPage> { return this.#store().readAll(options); }
  async streamInfo(stream: string): Promise<StreamInfo> { return this.#store().streamInfo(stream); }
  streamInfoNow(stream: string): StreamInfo | null { return this.#open()?.streamInfoNow?.(stream) ?? null; }
  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionMessage<number>> { return this.#store().subscribeToStream(stream, options); }
  subscribeToAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionMessage<AllPosition>> { return this.#store().subscribeToAll(options); }
  async waitForStream(stream: string, signal: AbortSignal): Promise<boolean> { return this.#store().waitForStream(stream, signal); }
  async waitForLog(position: number, signal: AbortSignal): Promise<boolean> { return this.#store().waitForLog(position, signal); }
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
