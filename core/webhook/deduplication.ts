import { i32 } from '../bytes.ts';
import { isSkuaError, SkuaError } from '../errors.ts';
import { guidFromText } from '../guid.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import { ANY } from '../streams/api.ts';
import type { EventStore, NewEvent, StoredEvent, StreamMetadata } from '../streams/api.ts';
import { formatMetadata } from '../streams/metadata.ts';
import { METADATA_TYPE, metastreamOf } from '../streams/names.ts';
import { encodeText } from '../text.ts';
import { uuidText } from './delivery-id.ts';
import type { Delivery } from './delivery-item.ts';
import { DeliveryMemory } from './delivery-memory.ts';
import { encodeNote, encodeWithdrawal, NOTE_TYPE, parseNote, parseWithdrawal, WITHDRAWAL_TYPE } from './delivery-note.ts';
import type { DeliveryNote } from './delivery-note.ts';

/**
 * Writes each delivery of a connector once, however often and wherever it arrives.
 *
 * The ids stand in `$webhook-<id>-deliveries`, one note a delivery, for as long and as many as `$maxAge` and `$maxCount`
 * of that stream allow. Two streams can't be written at once, so:
 *
 * 1. A note is appended, which says where the event will go and the last event number there. It expects the number of
 *    the last note that is known here. Conflict: another instance was first; its notes are read, the deliveries are
 *    looked up again, and the rest is tried again.
 * 2. When the note is durable the event is appended, with an id that follows from connector and delivery.
 * 3. Later notes of the same writer say up to where its events are written (`settled`).
 *
 * A delivery that has a note is answered without its script. Whether its event is there is known from memory, or from
 * `settled` in later notes, or by looking for the id in the target behind the number in the note. Only if it is absent,
 * a new note with the old target is made and the event appended, whose data are those of the new call.
 *
 * | Crash, or loss of another kind | Found by the next delivery of the same id | Done |
 * |---|---|---|
 * | before the note is durable | nothing | a new delivery: script, note, event |
 * | note durable, event not | a note, not settled, no event in the target | new note, event into the target of the first note |
 * | both durable, no later note | a note, not settled; the event in the target | answered, nothing written |
 * | both durable, and a later note | a note, settled | answered, nothing written |
 * | the event was refused for good | no note: it was withdrawn | a new delivery, perhaps with a better script |
 * | refused, and the withdrawal lost | a note, not settled, no event in the target | as in the second row |
 *
 * What remains is an event that is on its way (another instance has made the note and is about to append), or that was
 * written and cannot be seen in the target any more. The store itself refuses to write an event twice to a stream
 * whose id is among the recent ones of the log, seen or not, also after a restart: of two appends that cross, the
 * second one is a repeat. So the id is sent with no expected version, on which that check depends.
 */
export class Deduplication {
  readonly #parts: DeduplicationParts;
  readonly #memory: DeliveryMemory;
  readonly #writer: string;
  /** Own notes whose events are not settled, in their order. */
  readonly #open = new Set<number>();
  /** Last event of the stream that is known here. */
  #last = -1;
  #isRead = false;
  #reading: Promise<void> | null = null;
  #isPrepared = false;

  constructor(parts: DeduplicationParts) {
    this.#parts = parts;
    this.#memory = new DeliveryMemory(parts.maxCount);
    this.#writer = uuidText(parts.ids.uuidBytes());
  }

  /**
   * What is known of a delivery by notes behind number `above`; at once for most deliveries, which are new. Rejects with
   * what reading fails with.
   */
  find(deliveryId: string, eventId: string, above = -1): Known | null | Promise<Known | null> {
    const behind = this.#catchUp();
    if (behind !== null) return behind.then(() => this.#find(deliveryId, eventId, above));
    return this.#find(deliveryId, eventId, above);
  }

  #find(deliveryId: string, eventId: string, above: number): Known | null | Promise<Known | null> {
    const { clock, maxAgeMs } = this.#parts;
    this.#memory.expire(Math.floor((clock.nowMs() - maxAgeMs) / 1_000));
    const { high, low } = hashOf(eventId);
    const number = this.#memory.find(high, low, Number.POSITIVE_INFINITY);
    return number <= above ? null : this.#search(deliveryId, eventId, above);
  }

  async #search(deliveryId: string, eventId: string, above: number): Promise<Known | null> {
    const { high, low } = hashOf(eventId);
    for (let number = this.#memory.find(high, low, Number.POSITIVE_INFINITY); number > above; number = this.#memory.find(high, low, number)) {
      const note = await this.#noteAt(number);
      // Another id with the same hash, or one that has expired.
      if (note === null || note.deliveryId !== deliveryId) continue;
      const isWritten = this.#memory.isSettled(number) || await this.#isWritten(number, note, eventId);
      if (isWritten) this.#memory.settle(number);
      return { number, note, isWritten };
    }
    return null;
  }

  async #noteAt(number: number): Promise<DeliveryNote | null> {
    try {
      const event = await this.#parts.store.readEvent(this.#parts.stream, number);
      return event.type === NOTE_TYPE ? parseNote(event.data) : null;
    } catch (error) {
      if (isAbsent(error)) return null;
      throw error;
    }
  }

  async #isWritten(number: number, note: DeliveryNote, eventId: string): Promise<boolean> {
    // Most events stand close behind the number in their note.
    if (await this.#isInTarget(note.stream, note.after + 1, eventId, NEAR_EVENTS)) return true;
    if (await this.#some(this.#parts.stream, number + 1, LATER_NOTES, (event) => isMark(event, number, note.writer))) return true;
    return this.#isInTarget(note.stream, note.after + 1 + NEAR_EVENTS, eventId, Number.POSITIVE_INFINITY);
  }

  #isInTarget(stream: string, from: number, eventId: string, count: number): Promise<boolean> {
    return this.#some(stream, from, count, (event) => event.id === eventId);
  }

  /** Whether the test holds for one of the events from this number on, of which at most `count` are looked at. */
  async #some(stream: string, from: number, count: number, test: (event: StoredEvent) => boolean): Promise<boolean> {
    if (!Number.isSafeInteger(from)) return false;
    try {
      for (let left = count, next = from; left > 0;) {
        const page = await this.#parts.store.readStream(stream, { direction: 'forward', from: next, count: Math.min(left, PAGE_EVENTS) });
        if (page.events.some(test)) return true;
        if (page.isEnd) return false;
        left -= PAGE_EVENTS;
        next = page.nextEventNumber;
      }
      return false;
    } catch (error) {
      if (isAbsent(error)) return false;
      throw error;
    }
  }

  /**
   * Makes notes for deliveries, durably and all at once. One that another instance has written meanwhile comes back with
   * `isWritten` and without a note, one that it has noted with the target of that note. Call it for one list at a time.
   * Rejects, without any note, with what an append is refused with.
   */
  async note(deliveries: readonly Delivery[]): Promise<void> {
    for (let attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
      const open: Delivery[] = [];
      for (const delivery of deliveries) if (!await this.#isKnown(delivery)) open.push(delivery);
      if (open.length === 0 || await this.#append(open)) return;
    }
    throw new SkuaError('too_busy', 'Other instances note deliveries of this connector all the time: try again.');
  }

  async #isKnown(delivery: Delivery): Promise<boolean> {
    const found = this.find(delivery.deliveryId!, delivery.eventId, delivery.seen);
    const known = found instanceof Promise ? await found : found;
    if (known === null) return false;
    if (known.isWritten) delivery.isWritten = true;
    else adopt(delivery, known);
    return known.isWritten;
  }

  /** False after a conflict. */
  async #append(deliveries: readonly Delivery[]): Promise<boolean> {
    const { store, stream, clock } = this.#parts;
    await this.#prepare();
    const settled = this.#mark();
    const notes = deliveries.map(({ deliveryId, eventId, stream, type, after }): NewEvent => ({
      id: eventId, type: NOTE_TYPE, isJson: true, metadata: NO_BYTES,
      data: encodeNote({ deliveryId: deliveryId!, stream, type, after: after ?? -1, writer: this.#writer, settled }),
    }));
    let first: number;
    try {
      first = (await store.append(stream, this.#last, notes)).firstEventNumber;
    } catch (error) {
      if (!isSkuaError(error, 'wrong_expected_version')) throw error;
      this.#isRead = false;
      return false;
    }
    const seconds = Math.floor(clock.nowMs() / 1_000);
    for (const [i, delivery] of deliveries.entries()) {
      delivery.note = first + i;
      this.#learn(delivery.note, delivery.eventId, seconds);
      this.#open.add(delivery.note);
    }
    this.#last = Math.max(this.#last, first + deliveries.length - 1);
    return true;
  }

  #mark(): number {
    for (const number of this.#open) return number;
    return this.#last + 1;
  }

  #learn(number: number, eventId: string, seconds: number): void {
    const { high, low } = hashOf(eventId);
    this.#memory.add(number, high, low, seconds);
  }

  /** The delivery's event is durable. */
  settle({ note }: Delivery): void {
    this.#open.delete(note);
    this.#memory.settle(note);
  }

  /** The delivery's event has been refused and is nowhere: the delivery shall count as never seen. Rejects with what the append fails with. */
  async withdraw(delivery: Delivery): Promise<void> {
    const { store, stream, ids } = this.#parts;
    const { note } = delivery;
    await store.append(stream, ANY, [{ id: uuidText(ids.uuidBytes()), type: WITHDRAWAL_TYPE, isJson: true, data: encodeWithdrawal(note), metadata: NO_BYTES }]);
    this.#memory.withdraw(note);
    this.#open.delete(note);
    delivery.note = -1;
  }

  /** Reads what was written since; null where nothing was. */
  #catchUp(): Promise<void> | null {
    const { store, stream } = this.#parts;
    if (this.#isRead && store.streamInfoNow !== undefined) {
      const info = store.streamInfoNow(stream);
      if (info !== null && info.lastEventNumber <= this.#last) return null;
    }
    this.#reading ??= this.#read().finally(() => { this.#reading = null; });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { store, stream } = this.#parts;
    const { lastEventNumber } = await store.streamInfo(stream);
    try {
      for (let from = this.#last + 1, isEnd = lastEventNumber < from; !isEnd;) {
        const page = await store.readStream(stream, { direction: 'forward', from, count: PAGE_EVENTS });
        for (const event of page.events) this.#take(event);
        from = page.nextEventNumber;
        isEnd = page.isEnd;
        this.#last = Math.max(this.#last, isEnd ? page.lastEventNumber : from - 1);
      }
    } catch (error) {
      // Deleted with the connector, whose successor starts with nothing; its numbers go on.
      if (!isSkuaError(error, 'stream_not_found')) throw error;
      this.#last = Math.max(this.#last, lastEventNumber);
    }
    this.#isRead = true;
  }

  #take({ number, type, id, data, createdMs }: StoredEvent): void {
    if (type === NOTE_TYPE) this.#learn(number, id, Math.floor(createdMs / 1_000));
    else if (type === WITHDRAWAL_TYPE) {
      const withdrawn = parseWithdrawal(data);
      if (withdrawn !== null) this.#memory.withdraw(withdrawn);
    }
  }

  /** Gives the stream its limits, where it has others. */
  async #prepare(): Promise<void> {
    if (this.#isPrepared) return;
    const { store, stream, ids, maxAgeMs, maxCount } = this.#parts;
    const maxAge = Math.ceil(maxAgeMs / 1_000);
    await changeMetadata(store, ids, stream, (metadata) => (metadata.maxAge === maxAge && metadata.maxCount === maxCount ? null : { ...metadata, maxAge, maxCount }));
    this.#isPrepared = true;
  }
}

export interface DeduplicationParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Where the notes stand. */
  readonly stream: string;
  readonly maxAgeMs: number;
  readonly maxCount: number;
}

/** A delivery that has a note. */
export interface Known {
  readonly number: number;
  readonly note: DeliveryNote;
  readonly isWritten: boolean;
}

/** What is missing goes where the first note wanted it. */
export function adopt(delivery: Delivery, { number, note }: Known): void {
  delivery.stream = note.stream;
  delivery.type = note.type;
  delivery.after = note.after;
  delivery.seen = number;
}

/** Replaces the metadata of a stream by what `change` makes of it; null for no change. What others write meanwhile is kept. */
export async function changeMetadata(store: EventStore, ids: Ids, stream: string, change: (metadata: StreamMetadata) => StreamMetadata | null): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const { metadata, metadataVersion } = await store.streamInfo(stream);
    const changed = change(metadata);
    if (changed === null) return;
    try {
      await store.append(metastreamOf(stream), metadataVersion, [{ id: uuidText(ids.uuidBytes()), type: METADATA_TYPE, isJson: true, data: encodeText(formatMetadata(changed)), metadata: NO_BYTES }]);
      return;
    } catch (error) {
      if (!isSkuaError(error, 'wrong_expected_version') || attempt >= CONFLICTS_MAX) throw error;
    }
  }
}

/** How often a list of notes is tried again because another instance was first. */
const CONFLICTS_MAX = 20;
const PAGE_EVENTS = 1_024;
/** Events behind the number in a note among which most events are found. */
const NEAR_EVENTS = 128;
/** Notes behind a note among which one says that its event is settled, if there are that many. */
const LATER_NOTES = 1_024;
const NO_BYTES = new Uint8Array(0);

function isAbsent(error: unknown): boolean {
  return isSkuaError(error, 'event_not_found') || isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'stream_deleted');
}

function isMark({ type, data }: StoredEvent, number: number, writer: string): boolean {
  const note = type === NOTE_TYPE ? parseNote(data) : null;
  return note !== null && note.writer === writer && note.settled > number;
}

const guid = new Uint8Array(16);
const hash = { high: 0, low: 0 };

/** 64 of the random bits of an event id: none of those that tell the version and variant of a UUID. One object serves all. */
function hashOf(eventId: string): { readonly high: number; readonly low: number } {
  guidFromText(eventId, guid, 0);
  hash.high = i32(guid, 0);
  hash.low = i32(guid, 12);
  return hash;
}
