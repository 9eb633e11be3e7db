import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import { ANY } from '../../streams/api.ts';
import type { EventStore } from '../../streams/api.ts';
import type { AuthorizeDelivery, Delivery } from './delivery.ts';
import { DeliveryNotes, isAbsent } from './delivery-notes.ts';

/**
 * Writes each delivery of a connector once, however often and wherever it arrives.
 *
 * The ids stand in `$webhook-<id>-deliveries`, one note a delivery, for as long and as many as `$maxAge` and
 * `$maxCount` of that stream allow. A commit holds the note of a delivery and its event, whose id follows from
 * connector and delivery, and those of the other deliveries that waited with it. It expects the number of the last note
 * that was looked through for them. Conflict: another instance was first; its notes are read, the deliveries are looked
 * up again, and the rest is tried again. A delivery that has a note is answered without its script.
 *
 * | Crash, or loss of another kind | Found by the next delivery of the same id | Done |
 * |---|---|---|
 * | before the commit is durable | nothing | a new delivery: script, note and event |
 * | behind it | a note | answered, nothing written |
 *
 * Earlier versions wrote the note first and the event in a commit of its own. Their notes say behind which number the
 * event stands, if it does; where it is not in its target it goes there, with a note of this kind and the data of the
 * new call.
 */
export class Deduplication {
  readonly #store: EventStore;
  readonly #notes: DeliveryNotes;

  constructor(parts: DeduplicationParts) {
    this.#store = parts.store;
    this.#notes = new DeliveryNotes(parts);
  }

  /**
   * Whether the event of a delivery is written; at once for most deliveries, which are new. One whose note says where
   * the event was to go, and whose event is missing, has that stream and type from now on. Rejects with what reading
   * fails with.
   */
  isWritten(delivery: Delivery): boolean | Promise<boolean> {
    const behind = this.#notes.catchUp();
    if (behind !== null) return behind.then(() => this.#search(delivery));
    return this.#notes.newest(delivery.eventId) >= 0 && this.#search(delivery);
  }

  async #search(delivery: Delivery): Promise<boolean> {
    const { eventId } = delivery;
    for (let number = this.#notes.newest(eventId); number >= 0; number = this.#notes.newest(eventId, number)) {
      const note = await this.#notes.read(number);
      // Another id with the same hash, or one that has expired.
      if (note === null || note.deliveryId !== delivery.deliveryId) continue;
      if (note.after === null || (await this.#isInTarget(note.stream, note.after + 1, eventId))) return true;
      delivery.stream = note.stream;
      delivery.type = note.type;
      return false;
    }
    return false;
  }

  async #isInTarget(stream: string, from: number, eventId: string): Promise<boolean> {
    try {
      for (let next = from, isEnd = !Number.isSafeInteger(from); !isEnd;) {
        const page = await this.#store.readStream(stream, { direction: 'forward', from: next, count: PAGE_EVENTS });
        if (page.events.some(({ id }) => id === eventId)) return true;
        next = page.nextEventNumber;
        isEnd = page.isEnd;
      }
      return false;
    } catch (error) {
      if (isAbsent(error)) return false;
      throw error;
    }
  }

  /**
   * Writes the events of deliveries with their notes, durably and all at once, but for those that another instance has
   * written meanwhile. Call it for one list at a time. Rejects, and has written nothing, with what an append is refused
   * with; `wrong_expected_version` where one of several has been written before.
   */
  async write(deliveries: readonly Delivery[], authorize: AuthorizeDelivery): Promise<void> {
    for (let attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
      await this.#notes.catchUp();
      // What is read from here on, for others, none of these has been looked up in.
      const { last } = this.#notes;
      const missing: Delivery[] = [];
      for (const delivery of deliveries)
        if (this.#notes.newest(delivery.eventId) < 0 || !(await this.#search(delivery))) missing.push(delivery);
      if (missing.length === 0) return;
      try {
        await this.#notes.append(missing, last, authorize);
        return;
      } catch (error) {
        if (!isSkuaError(error, 'wrong_expected_version')) throw error;
        // Not the notes but an event: the store remembers its id, and its note is not to be seen any more.
        const isRepeat = error.data.expected === ANY;
        if (isRepeat && missing.length > 1) throw error;
        if (isRepeat) return;
      }
    }
    throw new SkuaError('too_busy', 'Other instances keep recording deliveries of this connector: try again.');
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

/** How often a list is tried again because another instance was first. */
const CONFLICTS_MAX = 20;
const PAGE_EVENTS = 1_024;
