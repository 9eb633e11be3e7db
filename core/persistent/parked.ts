import { isSkuaError } from '../base/errors.ts';
import { ANY } from '../streams/api.ts';
import type { NewEvent, StoredEvent } from '../streams/api.ts';
import { LINK_TYPE, METADATA_TYPE, metastreamOf } from '../streams/format/names.ts';
import { encodeText } from '../base/text.ts';
import { parkedStreamOf } from './api.ts';
import type { Ledger } from './ledger.ts';
import type { Message } from './message.ts';
import { ABSENT, ownEvent } from './group-parts.ts';
import type { GroupParts } from './group-parts.ts';
import { encodeParkedMetadata, encodeParkedTruncation } from './stored-forms.ts';
import type { KeptGroup } from './stored-forms.ts';

export interface ParkedParts {
  readonly parts: GroupParts;
  readonly kept: KeptGroup;
  readonly ledger: Ledger;
  /** The messages are in the parked stream. */
  readonly onParked: (messages: readonly Message[]) => void;
}

interface Parking {
  readonly message: Message;
  /** The same at every attempt: a write whose outcome was unknown is recognised. */
  readonly event: NewEvent;
}

/** Characters of a reason that are kept. */
const REASON_LENGTH_MAX = 4_096;

/**
 * The parked messages of one group: links in a stream of its own. A message counts as done only when its link is
 * durable; a parked one that is replayed is hidden only when it is done again, so that a crash leaves it parked.
 */
export class ParkedMessages {
  readonly #parts: GroupParts;
  readonly #kept: KeptGroup;
  readonly #stream: string;
  readonly #of: ParkedParts;
  readonly #ledger: Ledger;
  readonly #queue: Parking[] = [];
  /** Of the queue, what is being written. */
  #batchSize = 0;
  /** Number that the next parked message gets. */
  #end = 0;
  /** Everything below is hidden, by what is durable. */
  #hiddenTo = 0;
  /** Messages below have been put up for replay, or were forgotten; those below `#replayed` have been read. */
  #replayTo = 0;
  #replayed = 0;
  #parking: Promise<void> | null = null;
  #hiding: Promise<void> | null = null;
  #retryAtMs = -Infinity;
  #isStopped = false;
  replays = 0;
  truncations = 0;
  /** The message that was the oldest when that was asked last, by its number. */
  #oldest: { readonly number: number; readonly createdMs: number } | null = null;

  constructor(of: ParkedParts) {
    this.#of = of;
    this.#parts = of.parts;
    this.#kept = of.kept;
    this.#ledger = of.ledger;
    this.#stream = parkedStreamOf(of.kept.stream, of.kept.group);
  }

  async load(): Promise<void> {
    const { lastEventNumber, isTombstoned, metadata } = await this.#parts.store.streamInfo(this.#stream);
    this.#end = isTombstoned ? 0 : lastEventNumber + 1;
    this.#hiddenTo = Math.min(metadata.truncateBefore ?? 0, this.#end);
    this.#replayTo = this.#hiddenTo;
    this.#replayed = this.#hiddenTo;
  }

  /** Messages that are parked and not being replayed. */
  get count(): number {
    return this.#end - this.#replayTo;
  }
  /** Messages to be replayed that have not been read yet. */
  get toReplay(): number {
    return this.#replayTo - this.#replayed;
  }
  get hasWork(): boolean {
    return this.#queue.length > 0 || this.#lowest() > this.#hiddenTo;
  }

  /** When the oldest was parked, in milliseconds since 1970; null for none. */
  async oldestMs(): Promise<number | null> {
    const number = this.#replayTo;
    if (this.count === 0) return null;
    if (this.#oldest?.number === number) return this.#oldest.createdMs;
    try {
      const { events } = await this.#parts.store.readStream(this.#stream, {
        direction: 'forward',
        from: number,
        count: 1,
        payloads: false,
      });
      if (events.length > 0) this.#oldest = { number, createdMs: events[0]!.createdMs };
      return events[0]?.createdMs ?? null;
    } catch (error) {
      if (isSkuaError(error) && ABSENT.has(error.code)) return null;
      throw error;
    }
  }

  park(message: Message, reason: string): void {
    const { clock } = this.#parts;
    const metadata = encodeParkedMetadata(
      clock.nowMs(),
      reason.slice(0, REASON_LENGTH_MAX).toWellFormed(),
      message.sourceNumber,
    );
    this.#queue.push({
      message,
      event: ownEvent(this.#parts, LINK_TYPE, false, encodeText(`${message.number}@${message.stream}`), metadata),
    });
    this.#write();
  }

  /** Puts parked messages up for replay, those below `stopAt`. */
  replay(stopAt: number | null): void {
    const to = Math.min(stopAt ?? this.#end, this.#end);
    if (to <= this.#replayTo) return;
    this.replays += to - this.#replayTo;
    this.#replayTo = to;
  }

  /**
   * Forgets parked messages, those below `stopAt`, also such as wait for their replay. What is being replayed goes on,
   * and until it is done a crash brings back what lies behind it. Errors: as appends.
   */
  async truncate(stopAt: number | null): Promise<void> {
    const to = Math.min(stopAt ?? this.#end, this.#end);
    this.#replayed = Math.max(this.#replayed, to);
    this.#replayTo = Math.max(this.#replayTo, to);
    await this.#hiding;
    if (this.#lowest() > this.#hiddenTo) await this.#writeHidden(this.#lowest());
    this.truncations++;
  }

  /** The next messages to be replayed; none when all have been read. */
  async readReplay(count: number, bytesMax: number): Promise<Message[]> {
    const { store } = this.#parts;
    const from = this.#replayed;
    let events: readonly StoredEvent[] = [];
    let next = this.#replayTo;
    try {
      const page = await store.readStream(this.#stream, {
        direction: 'forward',
        from,
        count: Math.min(count, this.#replayTo - from),
        resolveLinks: true,
        bytesMax,
      });
      events = page.events;
      if (!page.isEnd) next = Math.max(page.nextEventNumber, from + 1);
    } catch (error) {
      if (!isSkuaError(error) || !ABSENT.has(error.code)) throw error;
    }
    const messages: Message[] = [];
    for (const event of events) {
      const { number } = event.link ?? event;
      // An event that is gone can't be worked off any more.
      if (number >= this.#replayTo || event.link === null) continue;
      messages.push(this.#ledger.addReplayed(event, number, this.#parts.clock.monotonicMs()));
    }
    this.#replayed = Math.min(next, this.#replayTo);
    return messages;
  }

  /** Hides what has been replayed and is done. */
  settle(): void {
    const { clock } = this.#parts;
    if (this.#queue.length > 0) this.#write();
    const to = this.#lowest();
    if (to <= this.#hiddenTo || this.#hiding !== null || this.#isStopped || clock.monotonicMs() < this.#retryAtMs)
      return;
    this.#hiding = this.#hide(to).finally(() => {
      this.#hiding = null;
    });
  }

  /** Waits for what is being written, and writes nothing afterwards; with `isFlushing` what is left first. */
  async stop(isFlushing: boolean): Promise<void> {
    this.#isStopped = true;
    await Promise.all([this.#parking, this.#hiding]);
    const to = this.#lowest();
    if (isFlushing && to > this.#hiddenTo) await this.#hide(to);
  }

  /** Number below which everything was replayed and is done, or was forgotten. */
  #lowest(): number {
    return this.#ledger.replayed.first?.parkedNumber ?? this.#replayed;
  }

  #write(): void {
    if (this.#parking !== null || this.#isStopped || this.#parts.clock.monotonicMs() < this.#retryAtMs) return;
    this.#parking = this.#writeAll().finally(() => {
      this.#parking = null;
    });
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    const { writes, clock, limits } = this.#parts;
    while (this.#queue.length > 0 && !this.#isStopped) {
      // The same once more after a write whose outcome was not known: only as a whole is it recognised.
      this.#batchSize ||= Math.min(this.#queue.length, limits.batchMax);
      const batch = this.#queue.slice(0, this.#batchSize);
      try {
        const { lastEventNumber } = await writes.append(
          this.#stream,
          ANY,
          batch.map(({ event }) => event),
        );
        this.#end = Math.max(this.#end, lastEventNumber + 1);
      } catch (error) {
        this.#retryAtMs = clock.monotonicMs() + limits.retryMs;
        this.#failed('messages could not be parked', error);
        return;
      }
      this.#queue.splice(0, batch.length);
      this.#batchSize = 0;
      this.#of.onParked(batch.map(({ message }) => message));
    }
  }

  /** Never rejects. */
  async #hide(to: number): Promise<void> {
    try {
      await this.#writeHidden(to);
    } catch (error) {
      this.#retryAtMs = this.#parts.clock.monotonicMs() + this.#parts.limits.retryMs;
      this.#failed('replayed messages could not be removed from the parked ones', error);
    }
  }

  async #writeHidden(to: number): Promise<void> {
    await this.#parts.writes.append(metastreamOf(this.#stream), ANY, [
      ownEvent(this.#parts, METADATA_TYPE, true, encodeParkedTruncation(to)),
    ]);
    this.#hiddenTo = Math.max(this.#hiddenTo, to);
  }

  #failed(what: string, error: unknown): void {
    if (!isSkuaError(error, 'not_leader'))
      this.#parts.log.warn(`persistent subscription: ${what}`, {
        stream: this.#kept.stream,
        group: this.#kept.group,
        error,
      });
  }
}
