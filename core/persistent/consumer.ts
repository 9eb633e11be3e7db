import type { ConnectOptions, Delivery, GroupConsumer, NackAction } from './api.ts';
import type { SkuaError } from '../base/errors.ts';
import type { StoredEvent } from '../streams/api.ts';
import type { EngineLimits, Held } from './group-limits.ts';
import { Measurement } from './measurement.ts';
import type { Message } from './message.ts';

/** What a consumer asks of its group. */
export interface ConsumerGroup {
  readonly subscriptionId: string;
  /** The event of a message as it reads now. */
  shown(event: StoredEvent): StoredEvent;
  ack(ids: readonly string[], consumer: Consumer): void;
  nack(ids: readonly string[], action: NackAction, reason: string, consumer: Consumer): void;
  left(consumer: Consumer): void;
  /** The consumer takes deliveries: there may be room for more. */
  took(): void;
}

/** One reader of a group. What is assigned to it waits here until it takes it, at most a page. */
export class Consumer implements GroupConsumer {
  readonly options: ConnectOptions;
  readonly measurement: Measurement;
  /** Assigned and not answered. */
  inFlight = 0;
  /** Of the buckets of a pinned strategy, those that are its, or will be. */
  buckets = 0;
  readonly #group: ConsumerGroup;
  readonly #limits: EngineLimits;
  readonly #held: Held;
  readonly bufferSize: number;
  #waiting: Message[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | null = null;
  #ended: { readonly error: SkuaError | null } | null = null;
  readonly #onAbort = () => {
    this.close();
  };

  constructor(
    options: ConnectOptions,
    group: ConsumerGroup,
    limits: EngineLimits,
    held: Held,
    measurement: Measurement,
  ) {
    this.options = options;
    this.#group = group;
    this.#limits = limits;
    this.#held = held;
    this.measurement = measurement;
    this.bufferSize = Math.max(0, Math.min(Math.trunc(options.bufferSize) || 0, limits.consumerBufferMax));
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get subscriptionId(): string {
    return this.#group.subscriptionId;
  }
  get isEnded(): boolean {
    return this.#ended !== null;
  }

  get hasRoom(): boolean {
    return (
      this.inFlight < this.bufferSize &&
      this.#waiting.length < this.#limits.deliveriesMax &&
      this.#waitingBytes < this.#limits.deliveryBytesMax
    );
  }

  /** Gives it a message that holds its event. */
  assign(message: Message): void {
    this.inFlight++;
    this.measurement.sent();
    this.#waiting.push(message);
    this.#waitingBytes += message.bytes;
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  async next(): Promise<readonly Delivery[]> {
    for (;;) {
      const deliveries = this.#take();
      if (deliveries.length > 0) return deliveries;
      const ended = this.#ended;
      if (ended !== null) {
        if (ended.error !== null) throw ended.error;
        return [];
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      // oxlint-disable-next-line no-await-in-loop
      await promise;
    }
  }

  #take(): Delivery[] {
    const messages = this.#waiting;
    if (messages.length === 0) return [];
    const deliveries: Delivery[] = [];
    for (const message of messages) {
      const { event } = message;
      // The message may have been taken back: its time was over before the consumer took it.
      if (message.consumer !== this || message.state !== 'sent' || event === null) continue;
      deliveries.push({ event: this.#group.shown(event), retryCount: message.retryCount });
      message.event = null;
      this.#held.bytes -= message.bytes;
    }
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#group.took();
    return deliveries;
  }

  ack(ids: readonly string[]): void {
    if (!this.isEnded) this.#group.ack(ids, this);
  }

  nack(ids: readonly string[], action: NackAction, reason: string): void {
    if (!this.isEnded) this.#group.nack(ids, action, reason, this);
  }

  close(): void {
    if (this.isEnded) return;
    this.end(null);
    this.#group.left(this);
  }

  /** The group lets it go: `next` rejects with the error, or resolves with nothing. */
  end(error: SkuaError | null): void {
    if (this.isEnded) return;
    this.#ended = { error };
    this.#waiting = [];
    this.options.signal?.removeEventListener('abort', this.#onAbort);
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
