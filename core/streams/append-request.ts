import { SkuaError } from '../base/errors.ts';
import { guidFromText, guidIsEmpty } from '../base/guid.ts';
import { EPOCH_STREAM } from '../log/format/epochs.ts';
import { prepareFrameBytes } from '../log/format/records.ts';
import { encodeText } from '../base/text.ts';
import { ANY, type Authorize, EVENT_BYTES_MAX, EVENT_TYPE_LENGTH_MAX, type NewEvent, NO_STREAM, STREAM_EXISTS } from './api.ts';
import { isMetastream, originalOf, POINTS_STREAM, utf8Length } from './format/names.ts';
import { type CheckedEvents, PendingRequest } from './pending-request.ts';
import type { StreamsRequest } from './streams-request.ts';

/** One request to write, from its arrival to its answer. */
export type AppendRequest = EventsRequest | StreamsRequest | DeleteRequest | EpochRequest | CompleteChunkRequest;

/** Events for a stream; none at all check the expected version and leave a record that says so. */
export class EventsRequest extends PendingRequest {
  readonly kind = 'append';
  readonly stream: string;
  readonly isMeta: boolean;
  readonly expected: number;
  readonly events: readonly NewEvent[];
  readonly ids: Uint8Array;
  readonly idsAt: number;
  readonly authorize: Authorize | null;

  constructor(stream: string, expected: number, checked: CheckedEvents, endsChunk: boolean, authorize: Authorize | null) {
    const isMeta = isMetastream(stream);
    super(isMeta ? originalOf(stream) : stream, checked.bytes, endsChunk);
    this.stream = stream;
    this.isMeta = isMeta;
    this.expected = expected;
    this.events = checked.events;
    this.ids = checked.ids;
    this.idsAt = checked.idsAt;
    this.authorize = authorize;
  }
}

/** Room in the queue that a request without events counts for. */
const SMALL_BYTES = 1_024;

/** The end of a stream that is no metastream, until it is written again or for ever. */
export class DeleteRequest extends PendingRequest {
  readonly kind: 'soft-delete' | 'hard-delete';
  readonly stream: string;
  readonly expected: number;
  readonly authorize: Authorize | null;

  constructor(kind: 'soft-delete' | 'hard-delete', stream: string, expected: number, authorize: Authorize | null) {
    super(stream, SMALL_BYTES + 3 * stream.length, false);
    this.kind = kind;
    this.stream = stream;
    this.expected = expected;
    this.authorize = authorize;
  }
}

/** What an epoch record says. */
export interface EpochInput {
  readonly epochNumber: number;
  /** -1 for the first epoch. */
  readonly prevEpochPosition: number;
  /** UUID text. */
  readonly leaderInstanceId: string;
}

/** Says what an epoch record is to say, or why there is to be none, when it takes its place in the log. `isFirst`: no other one stands before it in the same commit. */
export type EpochDecision = (isFirst: boolean) => EpochInput | SkuaError;

/** An epoch record and its event. */
export class EpochRequest extends PendingRequest {
  readonly kind = 'epoch';
  readonly decide: EpochDecision;

  constructor(decide: EpochDecision) {
    super(EPOCH_STREAM, SMALL_BYTES, false);
    this.decide = decide;
  }
}

/** Completes the chunk that holds a position of the log if it is still open. */
export class CompleteChunkRequest extends PendingRequest {
  readonly kind = 'complete-chunk';
  readonly inChunkOf: number;

  constructor(inChunkOf: number) {
    super(POINTS_STREAM, SMALL_BYTES, true);
    this.inChunkOf = inChunkOf;
  }
}

/** Event types whose bytes are kept. */
const TYPES_MAX = 4_096;

/** UTF-8 bytes of event types. They repeat, so their bytes are kept. */
export class EventTypes {
  #types = new Map<string, Uint8Array>();

  /** Null when the text can't be an event type. */
  bytes(type: string): Uint8Array | null {
    const known = this.#types.get(type);
    if (known !== undefined) return known;
    if (type.length === 0 || type.length > EVENT_TYPE_LENGTH_MAX || !type.isWellFormed()) return null;
    const bytes = encodeText(type);
    if (this.#types.size >= TYPES_MAX) this.#types = new Map();
    this.#types.set(type, bytes);
    return bytes;
  }
}

/** Bytes of the arrays that hold the ids of many requests. */
const ID_SLAB_BYTES = 65_536;

/** Checks what can be known of a request without any state. */
export class EventChecks {
  readonly #types: EventTypes;
  /** Room for ids from `#used` on: an array of its own would cost a small request more than all the rest of it. */
  #slab = new Uint8Array(0);
  #used = 0;

  constructor(types: EventTypes) {
    this.#types = types;
  }

  /** Throws `invalid_event` or `event_too_large`. */
  check(stream: string, events: readonly NewEvent[]): CheckedEvents {
    const nameBytes = utf8Length(stream);
    const ids = this.#roomFor(events.length * 16);
    const idsAt = this.#used;
    let bytes = events.length === 0 ? prepareFrameBytes(nameBytes, 0, 0, 0) : 0;
    for (let i = 0; i < events.length; i++) {
      const event = events[i]!;
      const type = this.#types.bytes(event.type);
      if (type === null) throw invalidEvent(i, `has the type ${JSON.stringify(event.type.slice(0, 100))}: give one of 1 to ${EVENT_TYPE_LENGTH_MAX} characters`);
      if (!guidFromText(event.id, ids, idsAt + i * 16) || guidIsEmpty(ids, idsAt + i * 16)) throw invalidEvent(i, `has the id ${JSON.stringify(String(event.id).slice(0, 100))}: give a UUID that is not all zeros`);
      const size = event.data.length + event.metadata.length;
      if (size > EVENT_BYTES_MAX) {
        throw new SkuaError('event_too_large', `Event ${i} has ${size} bytes of data and metadata, and the limit is ${EVENT_BYTES_MAX}: store large content elsewhere and refer to it.`, { index: i, size, limit: EVENT_BYTES_MAX });
      }
      bytes += prepareFrameBytes(nameBytes, type.length, event.data.length, event.metadata.length);
    }
    this.#used += events.length * 16;
    return { events, ids, idsAt, bytes };
  }

  #roomFor(bytes: number): Uint8Array {
    if (this.#used + bytes > this.#slab.length) {
      this.#slab = new Uint8Array(Math.max(ID_SLAB_BYTES, bytes));
      this.#used = 0;
    }
    return this.#slab;
  }
}

function invalidEvent(index: number, why: string): SkuaError {
  return new SkuaError('invalid_event', `Event ${index} of the request ${why}.`, { index });
}

/** Refuses what no expected version can be. */
export function checkExpected(expected: number): SkuaError | null {
  if (Number.isSafeInteger(expected) && (expected >= NO_STREAM || expected === ANY || expected === STREAM_EXISTS)) return null;
  return new SkuaError('invalid_expected_version', `The expected version ${expected} means nothing: give the last event number, or ${NO_STREAM} (no stream), ${ANY} (any) or ${STREAM_EXISTS} (stream exists).`, { expected });
}

/** Consumed entries are cut off the front once there are this many. */
const COMPACT_AT = 1_024;

/** Requests that wait for their group, first come first served; bounded in number and bytes. */
export class AppendQueue {
  readonly #requestsMax: number;
  readonly #bytesMax: number;
  #items: AppendRequest[] = [];
  #head = 0;
  #bytes = 0;

  constructor(requestsMax: number, bytesMax: number) {
    this.#requestsMax = requestsMax;
    this.#bytesMax = bytesMax;
  }

  get length(): number { return this.#items.length - this.#head; }
  get bytes(): number { return this.#bytes; }

  /** Takes the request in, or says why not. */
  push(request: AppendRequest): SkuaError | null {
    if (this.length >= this.#requestsMax || (this.length > 0 && this.#bytes + request.bytes > this.#bytesMax)) {
      return new SkuaError('too_busy', `${this.length} appends with ${this.#bytes} bytes wait already: try again in a moment.`, { requests: this.length, bytes: this.#bytes });
    }
    this.#bytes += request.bytes;
    this.#items.push(request);
    return null;
  }

  peek(): AppendRequest | undefined {
    return this.#items[this.#head];
  }

  /** Removes the first one. */
  shift(): void {
    this.#bytes -= this.#items[this.#head]!.bytes;
    this.#head++;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head >= COMPACT_AT && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Puts requests back before all others, in their order; there is always room for what has been let in. */
  putBack(requests: readonly AppendRequest[]): void {
    for (const request of requests) this.#bytes += request.bytes;
    this.#items = [...requests, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }

  /** Rejects everything that waits. */
  rejectAll(error: unknown): void {
    for (let request = this.peek(); request !== undefined; request = this.peek()) {
      this.shift();
      request.reject(error);
    }
  }
}
