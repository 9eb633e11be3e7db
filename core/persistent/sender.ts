import type { StoredEvent } from '../streams/api.ts';
import { ALL_STREAM } from './api.ts';
import type { Delivery } from './api.ts';
import type { Consumer } from './consumer.ts';
import type { Ledger } from './ledger.ts';
import { Measurement } from './measurement.ts';
import { Backlog, Retries, SentMessages } from './message.ts';
import type { Message } from './message.ts';
import type { GroupParts } from './group-parts.ts';
import type { GroupReader } from './reader.ts';
import type { KeptGroup } from './stored-forms.ts';
import { createStrategy } from './strategies.ts';
import type { Strategy } from './strategies.ts';
import { background } from '../base/background.ts';

export interface SenderParts {
  readonly parts: GroupParts;
  readonly kept: KeptGroup;
  readonly ledger: Ledger;
  readonly reader: GroupReader;
  readonly signal: AbortSignal;
  readonly onFailed: (what: string, error: unknown) => void;
}

/** Gives the messages of a group to its consumers: first those that are sent again, then new ones. */
export class Sender {
  readonly backlog = new Backlog();
  readonly retries = new Retries();
  readonly sent = new SentMessages();
  readonly consumers = new Set<Consumer>();
  readonly measurement: Measurement;
  readonly #of: SenderParts;
  readonly #strategy: Strategy;
  #isReloading = false;

  constructor(of: SenderParts) {
    this.#of = of;
    this.#strategy = createStrategy(of.kept.settings.strategy, of.parts.hasher);
    this.measurement = new Measurement(of.parts.clock, false);
  }

  get hasRoom(): boolean {
    for (const consumer of this.consumers) if (consumer.hasRoom) return true;
    return false;
  }

  add(consumer: Consumer): void {
    this.consumers.add(consumer);
    this.#strategy.add(consumer);
  }

  /** False when it was gone already. */
  remove(consumer: Consumer): boolean {
    if (!this.consumers.delete(consumer)) return false;
    this.#strategy.remove(consumer);
    return true;
  }

  /** Gives out what there is to consumers that have room. */
  dispatch(): void {
    if (this.#of.signal.aborted || this.consumers.size === 0) return;
    this.dropHidden();
    if (this.#dispatchRetries()) this.#dispatchNew();
  }

  /** False when new messages must wait for those that are sent again. */
  #dispatchRetries(): boolean {
    if (this.retries.count === 0) return true;
    const { isPinned } = this.#strategy;
    let isLacking = false;
    for (const message of this.retries.inOrder()) {
      if (!this.hasRoom) break;
      // Without its event nothing is known of it but what it is pinned by.
      if (message.event === null && (!isPinned || message.bucket < 0)) {
        isLacking = true;
        break;
      }
      const consumer = this.#strategy.choose(message);
      if (consumer === null) continue;
      if (message.event === null) isLacking = true;
      else this.#send(message, consumer);
    }
    this.retries.prune();
    if (isLacking && !this.#isReloading)
      background(
        this.reload(this.#of.parts.limits.batchMax).then(() => {
          this.dispatch();
        }),
      );
    return !isLacking && (isPinned || this.retries.count === 0);
  }

  #dispatchNew(): void {
    const passed: Message[] = [];
    const { isPinned } = this.#strategy;
    for (let { head } = this.backlog; head !== null && (!isPinned || this.hasRoom); { head } = this.backlog) {
      const consumer = this.#strategy.choose(head);
      if (consumer === null && !isPinned) break;
      const message = this.backlog.shift();
      if (consumer === null) passed.push(message);
      else this.#send(message, consumer);
    }
    this.backlog.unshift(passed);
  }

  #send(message: Message, consumer: Consumer): void {
    message.state = 'sent';
    message.consumer = consumer;
    this.sent.add(message, this.#of.parts.clock.monotonicMs());
    this.#strategy.assigned(message);
    this.measurement.sent();
    consumer.assign(message);
    if (this.sent.count === 1) this.#of.parts.onWork();
  }

  /** Up to so many messages for a reader without a connection, of those that hold their events. */
  hand(count: number): Delivery[] {
    const deliveries: Delivery[] = [];
    for (const message of this.retries.inOrder()) {
      if (deliveries.length >= count) break;
      if (message.event !== null) deliveries.push(this.#hand(message));
    }
    this.retries.prune();
    while (deliveries.length < count && this.backlog.count > 0) deliveries.push(this.#hand(this.backlog.shift()));
    if (deliveries.length > 0) this.#of.parts.onWork();
    return deliveries;
  }

  #hand(message: Message): Delivery {
    const event = this.#of.parts.store.redactions.shown(message.event!);
    this.#of.ledger.dropEvent(message);
    message.state = 'sent';
    this.measurement.sent();
    this.sent.add(message, this.#of.parts.clock.monotonicMs());
    return { event, retryCount: message.retryCount };
  }

  /** Takes a message back from the consumer that has it. */
  unsend(message: Message): void {
    const { consumer } = message;
    this.sent.remove(message);
    if (consumer === null) return;
    consumer.inFlight--;
    this.#strategy.answered(message);
    message.consumer = null;
  }

  /** The message waits to be sent again. */
  again(message: Message): void {
    this.#of.ledger.dropEvent(message);
    message.state = 'waiting';
    this.retries.add(message);
  }

  /**
   * Nothing is sent that was deleted after it had been read: what has waited long is read again, and of a stream it is
   * known what it hides.
   */
  dropHidden(): void {
    const { backlog } = this;
    const { head } = backlog;
    if (head === null) return;
    const {
      parts: { store, clock, limits },
      kept: { stream },
      ledger,
    } = this.#of;
    if (clock.monotonicMs() - head.sentAtMs >= limits.staleMs) {
      while (backlog.count > 0) this.again(backlog.shift());
    } else if (stream !== ALL_STREAM) {
      const info = store.streamInfoNow?.(stream) ?? null;
      const before = info === null ? 0 : info.isTombstoned ? Infinity : (info.metadata.truncateBefore ?? 0);
      while (backlog.head !== null && backlog.head.commit < before) ledger.finish(backlog.shift());
    }
  }

  /** Of those that wait to be sent again, what was read long ago is read once more when it is. */
  forgetStale(): void {
    const {
      parts: { clock, limits },
      ledger,
    } = this.#of;
    const nowMs = clock.monotonicMs();
    for (const message of this.retries.inOrder())
      if (message.event !== null && nowMs - message.sentAtMs >= limits.staleMs) ledger.dropEvent(message);
  }

  /** Reads the events of the first messages that wait to be sent again. Never rejects. */
  async reload(count: number): Promise<void> {
    const {
      parts: { limits, clock },
      reader,
      signal,
      onFailed,
    } = this.#of;
    if (this.#isReloading || signal.aborted) return;
    const lacking: Message[] = [];
    for (const message of this.retries.inOrder()) {
      if (lacking.length >= Math.min(count, limits.batchMax)) break;
      if (message.event === null) lacking.push(message);
    }
    if (lacking.length === 0) return;
    this.#isReloading = true;
    try {
      const events = await Promise.all(lacking.map((message) => reader.again(message)));
      for (const [i, message] of lacking.entries())
        if (message.state === 'waiting' && !signal.aborted) this.#reloaded(message, events[i]!);
      this.retries.prune();
    } catch (error) {
      onFailed('messages could not be read again', error);
      await clock.sleep(limits.retryMs, signal);
    } finally {
      this.#isReloading = false;
    }
  }

  #reloaded(message: Message, event: StoredEvent | null): void {
    const {
      ledger,
      parts: { clock },
    } = this.#of;
    // What has been deleted in the meantime is sent no more.
    if (event === null) ledger.finish(message);
    else ledger.holdEvent(message, event, clock.monotonicMs());
  }
}
