import { SkuaError } from '../errors.ts';
import { guidFromText, guidIsEmpty } from '../guid.ts';
import { prepareFrameBytes } from '../log/records.ts';
import { encodeText } from '../text.ts';
import { ANY, type AppendResult, type Authorize, EVENT_BYTES_MAX, EVENT_TYPE_LENGTH_MAX, type NewEvent, NO_STREAM, STREAM_EXISTS } from './api.ts';
import { isMetastream, originalOf, utf8Length } from './names.ts';

export type RequestKind = 'append' | 'soft-delete' | 'hard-delete' | 'epoch' | 'complete-chunk';

/** What an epoch record says (disk-format.md section 3.7). */
export interface EpochInput {
  readonly epochNumber: number;
  /** -1 for the first epoch. */
  readonly prevEpochPosition: number;
  /** UUID text. */
  readonly leaderInstanceId: string;
}

/** One request to write, from its arrival to its answer. */
export class AppendRequest {
  readonly kind: RequestKind;
  readonly stream: string;
  readonly isMeta: boolean;
  /** The stream whose state decides: a metastream's is part of its original's. */
  readonly owner: string;
  readonly expected: number;
  readonly events: readonly NewEvent[];
  /** On-disk ids of the events, 16 bytes each, from `idsAt` on. */
  readonly ids: Uint8Array;
  readonly idsAt: number;
  /** Framed bytes of the records, without what a returning stream adds. */
  readonly bytes: number;
  readonly epoch: EpochInput | null;
  /** The chunk must end behind this write. */
  readonly completeChunkAfter: boolean;
  /** Asked before anything is decided but whether the stream is deleted. */
  authorize: Authorize | null = null;
  error: unknown = null;
  first = -1;
  last = -1;
  position = -1;
  isRepeat = false;
  /** The state by which it is decided is one of after its arrival, whoever else writes to the log. */
  isConfirmed = false;
  resolve!: (result: AppendResult) => void;
  reject!: (error: unknown) => void;

  constructor(kind: RequestKind, stream: string, expected: number, events: readonly NewEvent[], ids: Uint8Array, idsAt: number, bytes: number, completeChunkAfter: boolean, epoch: EpochInput | null) {
    this.kind = kind;
    this.stream = stream;
    this.isMeta = isMetastream(stream);
    this.owner = this.isMeta ? originalOf(stream) : stream;
    this.expected = expected;
    this.events = events;
    this.ids = ids;
    this.idsAt = idsAt;
    this.bytes = bytes;
    this.completeChunkAfter = completeChunkAfter;
    this.epoch = epoch;
  }

  /** Forgets what was decided: it is to be decided anew. */
  reset(): void {
    this.error = null;
    this.first = -1;
    this.last = -1;
    this.position = -1;
    this.isRepeat = false;
  }

  /** Answers the caller. */
  settle(): void {
    if (this.error !== null) this.reject(this.error);
    else this.resolve({ firstEventNumber: this.first, lastEventNumber: this.last, position: this.position, isRepeat: this.isRepeat });
  }
}

/** Event types whose bytes are kept. */
const TYPES_MAX = 4_096;
let types = new Map<string, Uint8Array>();

/** UTF-8 bytes of an event type, or null when it can't be one. Types repeat, so their bytes are kept; no caller can tell. */
export function typeBytes(type: string): Uint8Array | null {
  const known = types.get(type);
  if (known !== undefined) return known;
  if (type.length === 0 || type.length > EVENT_TYPE_LENGTH_MAX || !type.isWellFormed()) return null;
  const bytes = encodeText(type);
  if (types.size >= TYPES_MAX) types = new Map();
  types.set(type, bytes);
  return bytes;
}

/** Bytes of the arrays that hold the ids of many requests. */
const ID_SLAB_BYTES = 65_536;
const NO_IDS = new Uint8Array(0);
let slab = NO_IDS;
let slabUsed = 0;

/** Room for ids from `slabUsed` on in `slab`: an array of its own would cost a small request more than all the rest of it. */
function makeRoomForIds(bytes: number): void {
  if (slabUsed + bytes <= slab.length) return;
  slab = new Uint8Array(Math.max(ID_SLAB_BYTES, bytes));
  slabUsed = 0;
}

const NO_EVENTS: readonly NewEvent[] = [];

/** Checks what can be known without any state, and makes a request of it. */
export function appendRequest(stream: string, expected: number, events: readonly NewEvent[], completeChunkAfter: boolean): AppendRequest | SkuaError {
  const nameBytes = utf8Length(stream);
  makeRoomForIds(events.length * 16);
  const ids = slab;
  const idsAt = slabUsed;
  let bytes = events.length === 0 ? prepareFrameBytes(nameBytes, 0, 0, 0) : 0;
  for (let i = 0; i < events.length; i++) {
    const event = events[i]!;
    const type = typeBytes(event.type);
    if (type === null) return invalidEvent(i, `has the type ${JSON.stringify(event.type.slice(0, 100))}: give one of 1 to ${EVENT_TYPE_LENGTH_MAX} characters`);
    if (!guidFromText(event.id, ids, idsAt + i * 16) || guidIsEmpty(ids, idsAt + i * 16)) return invalidEvent(i, `has the id ${JSON.stringify(String(event.id).slice(0, 100))}: give a UUID that is not all zeros`);
    const size = event.data.length + event.metadata.length;
    if (size > EVENT_BYTES_MAX) {
      return new SkuaError('event_too_large', `Event ${i} has ${size} bytes of data and metadata, and the limit is ${EVENT_BYTES_MAX}: store large content elsewhere and refer to it.`, { index: i, size, limit: EVENT_BYTES_MAX });
    }
    bytes += prepareFrameBytes(nameBytes, type.length, event.data.length, event.metadata.length);
  }
  slabUsed += events.length * 16;
  return new AppendRequest('append', stream, expected, events, ids, idsAt, bytes, completeChunkAfter, null);
}

function invalidEvent(index: number, why: string): SkuaError {
  return new SkuaError('invalid_event', `Event ${index} of the request ${why}.`, { index });
}

/** Room in the queue that a request without events counts for. */
const SMALL_BYTES = 1_024;

export function deleteRequest(stream: string, expected: number, kind: 'soft' | 'hard'): AppendRequest {
  return new AppendRequest(kind === 'soft' ? 'soft-delete' : 'hard-delete', stream, expected, NO_EVENTS, NO_IDS, 0, SMALL_BYTES + 3 * stream.length, false, null);
}

export function epochRequest(stream: string, epoch: EpochInput): AppendRequest {
  return new AppendRequest('epoch', stream, ANY, NO_EVENTS, NO_IDS, 0, SMALL_BYTES, false, epoch);
}

/** Completes the chunk that holds `position` if it is still open. The position stands in place of the expected version. */
export function completeChunkRequest(stream: string, position: number): AppendRequest {
  return new AppendRequest('complete-chunk', stream, position, NO_EVENTS, NO_IDS, 0, SMALL_BYTES, true, null);
}

/** Refuses what no expected version can be. */
export function checkExpected(expected: number): SkuaError | null {
  if (Number.isSafeInteger(expected) && (expected >= NO_STREAM || expected === ANY || expected === STREAM_EXISTS)) return null;
  return new SkuaError('invalid_expected_version', `The expected version ${expected} means nothing: give the last event number, or ${NO_STREAM} (no stream), ${ANY} (any) or ${STREAM_EXISTS} (stream exists).`, { expected });
}
