import { isSkuaError, SkuaError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { EventStore } from '../../streams/api.ts';
import type { Delivery } from './delivery.ts';
import { DeliveryNotes, isSomeEvent } from './delivery-notes.ts';
import type { DeliveryNote } from './delivery-notes.ts';

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
  readonly #store: EventStore;
  readonly #notes: DeliveryNotes;

  constructor(parts: DeduplicationParts) {
    this.#store = parts.store;
    this.#notes = new DeliveryNotes(parts);
  }

  /**
   * What is known of a delivery by notes behind number `above`; at once for most deliveries, which are new. Rejects with
   * what reading fails with.
   */
  find(deliveryId: string, eventId: string, above = -1): Known | null | Promise<Known | null> {
    const behind = this.#notes.catchUp();
    if (behind !== null) return behind.then(() => this.#search(deliveryId, eventId, above));
    return this.#notes.newest(eventId) <= above ? null : this.#search(deliveryId, eventId, above);
  }

  async #search(deliveryId: string, eventId: string, above: number): Promise<Known | null> {
    for (let number = this.#notes.newest(eventId); number > above; number = this.#notes.newest(eventId, number)) {
      const note = await this.#notes.read(number);
      // Another id with the same hash, or one that has expired.
      if (note === null || note.deliveryId !== deliveryId) continue;
      const isWritten = this.#notes.isSettled(number) || await this.#isWritten(number, note, eventId);
      if (isWritten) this.#notes.settle(number);
      return { number, note, isWritten };
    }
    return null;
  }

  async #isWritten(number: number, { stream, after, writer }: DeliveryNote, eventId: string): Promise<boolean> {
    // Most events stand close behind the number in their note.
    if (await this.#isInTarget(stream, after + 1, eventId, NEAR_EVENTS)) return true;
    if (await this.#notes.isMarked(number, writer)) return true;
    return this.#isInTarget(stream, after + 1 + NEAR_EVENTS, eventId, Number.POSITIVE_INFINITY);
  }

  #isInTarget(stream: string, from: number, eventId: string, count: number): Promise<boolean> {
    return isSomeEvent(this.#store, stream, from, count, (event) => event.id === eventId);
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
      try {
        if (open.length > 0) await this.#notes.append(open);
        return;
      } catch (error) {
        if (!isSkuaError(error, 'wrong_expected_version')) throw error;
      }
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

  /** The delivery's event is durable. */
  settle(delivery: Delivery): void {
    this.#notes.settle(delivery.note);
  }

  /** The delivery's event has been refused and is nowhere: the delivery shall count as never seen. Rejects with what the append fails with. */
  withdraw(delivery: Delivery): Promise<void> {
    return this.#notes.withdraw(delivery);
  }
}

interface DeduplicationParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Where the notes stand. */
  readonly stream: string;
  readonly maxAgeMs: number;
  readonly maxCount: number;
}

/** A delivery that has a note. */
interface Known {
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

/** How often a list of notes is tried again because another instance was first. */
const CONFLICTS_MAX = 20;
/** Events behind the number in a note among which most events are found. */
const NEAR_EVENTS = 128;
