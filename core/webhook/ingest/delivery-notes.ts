import { i32 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { guidFromText, guidToText } from '../../base/guid.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import { ANY } from '../../streams/api.ts';
import type { EventStore, NewEvent, StoredEvent, StreamMetadata, StreamWrite } from '../../streams/api.ts';
import { formatMetadata } from '../../streams/format/metadata.ts';
import { METADATA_TYPE, metastreamOf } from '../../streams/format/names.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { DeliveryMemory } from './delivery-memory.ts';
import { eventOf, uuidText } from './delivery.ts';
import type { AuthorizeDelivery, Delivery } from './delivery.ts';

interface DeliveryNotesParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly stream: string;
  readonly maxAgeMs: number;
  readonly maxCount: number;
}

/** The stream of notes of one connector, and what is remembered of it. The protocol stands in deduplication.ts. */
export class DeliveryNotes {
  readonly #parts: DeliveryNotesParts;
  readonly #memory: DeliveryMemory;
  /** Last event of the stream that is known here. */
  #last = -1;
  #isRead = false;
  #reading: Promise<void> | null = null;
  #isPrepared = false;

  constructor(parts: DeliveryNotesParts) {
    this.#parts = parts;
    this.#memory = new DeliveryMemory(parts.maxCount);
  }

  /** Number of the last event of the stream that is known here. */
  get last(): number {
    return this.#last;
  }

  /**
   * Number of the newest note below `below` that may be the one of this event, -1 for none. What is written since
   * `catchUp` is not known.
   */
  newest(eventId: string, below = Number.POSITIVE_INFINITY): number {
    const { clock, maxAgeMs } = this.#parts;
    this.#memory.expire(Math.floor((clock.nowMs() - maxAgeMs) / 1_000));
    guidFromText(eventId, guid, 0);
    return this.#memory.find(i32(guid, HIGH_AT), i32(guid, LOW_AT), below);
  }

  /** Null for what is no note, or not to be seen any more. */
  async read(number: number): Promise<DeliveryNote | null> {
    try {
      const event = await this.#parts.store.readEvent(this.#parts.stream, number);
      return event.type === NOTE_TYPE ? parseNote(event.data) : null;
    } catch (error) {
      if (isAbsent(error)) return null;
      throw error;
    }
  }

  /**
   * Writes the events of these deliveries with their notes, behind this event of the stream. Errors: as an append;
   * `wrong_expected_version` where others have written to it, too.
   */
  async append(deliveries: readonly Delivery[], last: number, authorize: AuthorizeDelivery): Promise<void> {
    const { store, stream, clock } = this.#parts;
    await this.#prepare();
    // Whatever is to be said against an event is said before the number of the notes is looked at.
    const writes: StreamWrite[] = [];
    for (const delivery of deliveries)
      writes.push({
        stream: delivery.stream,
        expectedVersion: ANY,
        events: [eventOf(delivery)],
        authorize: (await authorize(delivery)) ?? undefined,
      });
    writes.push({ stream, expectedVersion: last, events: deliveries.map(noteOf) });
    try {
      await store.appendToStreams(writes);
    } catch (error) {
      this.#isRead = false;
      throw error;
    }
    const seconds = Math.floor(clock.nowMs() / 1_000);
    for (const [i, { eventId }] of deliveries.entries()) this.#learn(last + 1 + i, eventId, seconds);
    this.#last = Math.max(this.#last, last + deliveries.length);
  }

  /** Reads what was written since; null where nothing was. */
  catchUp(): Promise<void> | null {
    const { store, stream } = this.#parts;
    if (this.#isRead && store.streamInfoNow !== undefined) {
      const info = store.streamInfoNow(stream);
      if (info !== null && info.lastEventNumber <= this.#last) return null;
    }
    this.#reading ??= this.#readOn().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readOn(): Promise<void> {
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
    if (type === NOTE_TYPE) this.#learn(number, mirrorId(id), Math.floor(createdMs / 1_000));
    else if (type === WITHDRAWAL_TYPE) {
      const withdrawn = parseWithdrawal(data);
      if (withdrawn !== null) this.#memory.withdraw(withdrawn);
    }
  }

  #learn(number: number, eventId: string, seconds: number): void {
    guidFromText(eventId, guid, 0);
    this.#memory.add(number, i32(guid, HIGH_AT), i32(guid, LOW_AT), seconds);
  }

  /** Gives the stream its limits, where it has others. */
  async #prepare(): Promise<void> {
    if (this.#isPrepared) return;
    const { store, stream, ids, maxAgeMs, maxCount } = this.#parts;
    const maxAge = Math.ceil(maxAgeMs / 1_000);
    await changeMetadata(store, ids, stream, (metadata) =>
      metadata.maxAge === maxAge && metadata.maxCount === maxCount ? null : { ...metadata, maxAge, maxCount },
    );
    this.#isPrepared = true;
  }
}

/**
 * Replaces the metadata of a stream by what `change` makes of it; null for no change. What others write meanwhile is
 * kept.
 */
export async function changeMetadata(
  store: EventStore,
  ids: Ids,
  stream: string,
  change: (metadata: StreamMetadata) => StreamMetadata | null,
): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const { metadata, metadataVersion } = await store.streamInfo(stream);
    const changed = change(metadata);
    if (changed === null) return;
    try {
      await store.append(metastreamOf(stream), metadataVersion, [
        {
          id: uuidText(ids.uuidBytes()),
          type: METADATA_TYPE,
          isJson: true,
          data: encodeText(formatMetadata(changed)),
          metadata: NO_BYTES,
        },
      ]);
      return;
    } catch (error) {
      if (!isSkuaError(error, 'wrong_expected_version') || attempt >= METADATA_CONFLICTS_MAX) throw error;
    }
  }
}

const PAGE_EVENTS = 1_024;
const METADATA_CONFLICTS_MAX = 20;
const NO_BYTES = new Uint8Array(0);

export function isAbsent(error: unknown): boolean {
  return (
    isSkuaError(error, 'event_not_found') ||
    isSkuaError(error, 'stream_not_found') ||
    isSkuaError(error, 'stream_deleted')
  );
}

/** The hash of an event id: 64 of its bits, none of those that tell the version and variant of a UUID. */
const guid = new Uint8Array(16);
const HIGH_AT = 0;
const LOW_AT = 12;

/**
 * Events of `$webhook-<id>-deliveries`. The id of a note is the id of the event that it is about, so that the memory
 * can be filled without reading what notes say.
 */

const NOTE_TYPE = '$webhook-delivery';
/** Of earlier versions: a note whose event was not written, so that the delivery counts as never seen. */
const WITHDRAWAL_TYPE = '$webhook-delivery-withdrawn';

export interface DeliveryNote {
  readonly deliveryId: string;
  /** Where the event is, and its type. */
  readonly stream: string;
  readonly type: string;
  /**
   * Of earlier versions: last event number of that stream before the event, which stands behind this one if it is
   * there. Null: it was written with the note.
   */
  readonly after: number | null;
}

function noteOf({ deliveryId, eventId, stream, type }: Delivery): NewEvent {
  return {
    id: mirrorId(eventId),
    type: NOTE_TYPE,
    isJson: true,
    data: encodeText(JSON.stringify({ deliveryId, stream, type })),
    metadata: NO_BYTES,
  };
}

/** Null for what is no note: others can write to the stream as administrators. */
function parseNote(data: Uint8Array): DeliveryNote | null {
  const {
    deliveryId,
    stream,
    type,
    after = null,
  } = (parse(data) ?? {}) as Partial<Record<keyof DeliveryNote, unknown>>;
  if (typeof deliveryId !== 'string' || typeof stream !== 'string' || typeof type !== 'string') return null;
  return after === null || isNumber(after) ? { deliveryId, stream, type, after } : null;
}

/** Number of the note that is withdrawn, null for what is no withdrawal. */
function parseWithdrawal(data: Uint8Array): number | null {
  const number = (parse(data) as { readonly number?: unknown } | null)?.number;
  return isNumber(number) ? number : null;
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= -1;
}

function parse(data: Uint8Array): object | null {
  try {
    const value: unknown = JSON.parse(decodeText(data));
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/** By on-disk byte of a GUID: all bits but the digits that say version and variant. */
const MIRRORED = Uint8Array.from({ length: 16 }, (_, i) => (i === 7 || i === 8 ? 0x0f : 0xff));

/**
 * The id of the note about an event, and of the event that a note is about: all bits turned round but those of version
 * and variant. With the event's own id a note would be a trace of it in the log after the event was erased.
 */
export function mirrorId(id: string): string {
  guidFromText(id, guid, 0);
  for (let i = 0; i < guid.length; i++) guid[i] = guid[i]! ^ MIRRORED[i]!;
  return guidToText(guid, 0);
}
