import { ATTRIBUTE_BYTES_MAX, TAGS_MAX } from '../attributes/format/attribute-keys.ts';
import { oddityOfTags } from '../attributes/format/attribute-texts.ts';
import { SkuaError } from '../base/errors.ts';
import { guidFromText, guidIsEmpty } from '../base/guid.ts';
import { EPOCH_STREAM } from '../log/format/epochs.ts';
import { prepareFrameBytes } from '../log/format/records.ts';
import { encodeText } from '../base/text.ts';
import {
  ANY,
  type AppendResult,
  type AppendToStreamsOptions,
  type AppendToStreamsResult,
  type Authorize,
  bothAllow,
  EVENT_BYTES_MAX,
  EVENT_TYPE_LENGTH_MAX,
  type NewEvent,
  NO_STREAM,
  STREAM_EXISTS,
  type StreamCheck,
  STREAMS_PER_WRITE_MAX,
  type StreamWrite,
} from './api.ts';
import type { ConditionSearch } from './condition-search.ts';
import { isMetastream, originalOf, POINTS_STREAM, utf8Length } from './format/names.ts';

/** One request to write, from its arrival to its answer. */
export type AppendRequest = EventsRequest | StreamsRequest | DeleteRequest | EpochRequest | CompleteChunkRequest;

/**
 * What a request comes to, or the events that it has for one stream. Where something must be read before that is known,
 * there is a promise in its place.
 */
export const VERDICT = {
  /** Nothing of it is in the log: it is written. */
  NEW: 0,
  /** All of it is in the log already. */
  REPEAT: 1,
  /** The stream is where it may be new or a repeat, as the ids of its events say. */
  COMPARE: 2,
  /** The stream is not what is expected, or a part of it was written before. */
  CONFLICT: 3,
  /** The stream is gone. */
  DELETED: 4,
  /** The request has its error, and changes nothing. */
  REFUSED: 5,
  /** The request does not fit into the rest of the chunk. */
  FULL: 6,
  /** The request depends on the group in flight: that is committed first, then the request is decided anew. */
  WAIT: 7,
  /** Something must be read that is not in memory: the request leaves the queue meanwhile, and comes again. */
  AGAIN: 8,
} as const;

export type Verdict = (typeof VERDICT)[keyof typeof VERDICT];

/**
 * What all requests to write have: a place in the queue and, once decided, a result or an error, which its caller gets
 * with the group's outcome.
 */
export abstract class PendingRequest<R> {
  /** The stream whose state decides; a metastream's is part of its original's. */
  readonly owner: string;
  /**
   * Bytes of its framed records, as far as they are known; of a request without events, the room that it takes in the
   * queue.
   */
  readonly bytes: number;
  /** The chunk must end behind this write. */
  readonly endsChunk: boolean;
  /** The state by which it is decided is one of after its arrival, whatever other writers the log has. */
  isConfirmed = false;
  resolve!: (result: R) => void;
  reject!: (error: unknown) => void;
  #result: R | null = null;
  #error: unknown = null;

  constructor(owner: string, bytes: number, endsChunk: boolean) {
    this.owner = owner;
    this.bytes = bytes;
    this.endsChunk = endsChunk;
  }

  /** Null where it is not refused. */
  get error(): unknown {
    return this.#error;
  }

  /** What its caller gets; what was decided before counts no more. */
  accept(result: R): void {
    this.#result = result;
    this.#error = null;
  }

  refuse(error: unknown): typeof VERDICT.REFUSED {
    this.#error = error;
    return VERDICT.REFUSED;
  }

  /** Answers the caller. */
  settle(): void {
    if (this.#error !== null) this.reject(this.#error);
    else this.resolve(this.#result!);
  }
}

/** What is known of the events of a request. */
export interface CheckedEvents {
  readonly events: readonly NewEvent[];
  /** On-disk ids of the events, 16 bytes each, from `idsAt` on. */
  readonly ids: Uint8Array;
  readonly idsAt: number;
  /** Framed bytes of the records, without what a returning stream adds. */
  readonly bytes: number;
}

/** Events for a stream; none at all check the expected version and leave a record that says so. */
export class EventsRequest extends PendingRequest<AppendResult> {
  readonly kind = 'append';
  readonly stream: string;
  readonly isMeta: boolean;
  readonly expected: number;
  readonly events: readonly NewEvent[];
  readonly ids: Uint8Array;
  readonly idsAt: number;
  readonly authorize: Authorize | null;

  constructor(
    stream: string,
    expected: number,
    checked: CheckedEvents,
    endsChunk: boolean,
    authorize: Authorize | null,
  ) {
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
export class DeleteRequest extends PendingRequest<{ readonly position: number }> {
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

/** What an epoch record holds. */
export interface EpochInput {
  readonly epochNumber: number;
  /** -1 for the first epoch. */
  readonly prevEpochPosition: number;
  /** UUID text. */
  readonly leaderInstanceId: string;
}

/**
 * Gives what an epoch record is to hold, or why there is to be none, when the record takes its position in the log.
 * `isFirst`: no other one stands before it in the same commit.
 */
export type EpochDecision = (isFirst: boolean) => EpochInput | SkuaError;

/** An epoch record and its event. The result is the position of the record. */
export class EpochRequest extends PendingRequest<number> {
  readonly kind = 'epoch';
  readonly decide: EpochDecision;

  constructor(decide: EpochDecision) {
    super(EPOCH_STREAM, SMALL_BYTES, false);
    this.decide = decide;
  }
}

/** Completes the chunk that holds a position of the log if it is still open. */
export class CompleteChunkRequest extends PendingRequest<void> {
  readonly kind = 'complete-chunk';
  readonly inChunkOf: number;

  constructor(inChunkOf: number) {
    super(POINTS_STREAM, SMALL_BYTES, true);
    this.inChunkOf = inChunkOf;
  }
}

/** One stream of a write to several, with all its events. */
export interface StreamPart {
  readonly stream: string;
  readonly owner: string;
  readonly isMeta: boolean;
  /** What has to hold; where a check says it, that is what repeats are known by. */
  readonly expected: number;
  readonly authorize: Authorize | null;
  readonly events: readonly NewEvent[];
  readonly ids: Uint8Array;
  readonly idsAt: number;
  /** Among the parts. */
  readonly index: number;
}

/** Events that follow each other in one stream: a transaction of the log. */
export interface StreamRun {
  readonly part: StreamPart;
  readonly checked: CheckedEvents;
  /** The run begins with the first event of its part. */
  readonly isFirst: boolean;
}

/** A check with the stream whose state it asks for. */
export interface CheckedStream extends StreamCheck {
  readonly owner: string;
  readonly isMeta: boolean;
  readonly isWritten: boolean;
}

/** Bytes of a metadata event beside its JSON, at most, without the name of its stream. */
const REVIVAL_BYTES = 160;
/** How much longer JSON can become that is written anew: a character may be escaped. */
const REWRITTEN_FACTOR = 6;

/** Appends to several streams in one commit. */
export class StreamsRequest extends PendingRequest<AppendToStreamsResult> {
  readonly kind = 'append-to-streams';
  readonly parts: readonly StreamPart[];
  readonly runs: readonly StreamRun[];
  readonly checks: readonly CheckedStream[];
  readonly isRepeatable: boolean;
  /** Null where there is no condition. */
  search: ConditionSearch | null = null;
  /** Bytes that streams may need that come back by what the request itself writes to their metadata. */
  readonly revivalBytes: number;

  /** `check` looks at the events of one stream. Throws `batch_empty`, `bad_request`, and what `check` throws. */
  constructor(
    writes: readonly StreamWrite[],
    { checks = [], isRepeatable = true }: AppendToStreamsOptions,
    check: (stream: string, events: readonly NewEvent[]) => CheckedEvents,
  ) {
    if (writes.length === 0) throw new SkuaError('batch_empty', 'The request has no events: send at least one.');
    const byStream = collect(writes);
    const expected = new Map(
      checks
        .filter(({ expectedVersion }) => expectedVersion !== ANY)
        .map(({ stream, expectedVersion }) => [stream, expectedVersion]),
    );
    const parts = new Map<string, StreamPart>();
    const whole = new Map<string, CheckedEvents>();
    let bytes = 0;
    for (const [stream, { events, expectedVersion, authorize }] of byStream) {
      const checked = check(stream, events);
      const isMeta = isMetastream(stream);
      const said = expected.get(stream);
      bytes += checked.bytes;
      whole.set(stream, checked);
      parts.set(stream, {
        stream,
        owner: isMeta ? originalOf(stream) : stream,
        isMeta,
        expected: said ?? expectedVersion,
        authorize,
        events: checked.events,
        ids: checked.ids,
        idsAt: checked.idsAt,
        index: parts.size,
      });
    }
    super([...parts.values()][0]!.owner, bytes, false);
    this.parts = [...parts.values()];
    this.runs = runsOf(writes, parts, whole, check);
    this.checks = checks.map((one) => {
      const isMeta = isMetastream(one.stream);
      return { ...one, isMeta, owner: isMeta ? originalOf(one.stream) : one.stream, isWritten: parts.has(one.stream) };
    });
    this.isRepeatable = isRepeatable;
    this.revivalBytes = this.parts.reduce((sum, part) => sum + (part.isMeta ? revivalOf(part, this.runs) : 0), 0);
    const touched = new Set([...parts.keys(), ...checks.map(({ stream }) => stream)]).size;
    if (touched > STREAMS_PER_WRITE_MAX)
      throw new SkuaError(
        'bad_request',
        `One write can write to and check at most ${STREAMS_PER_WRITE_MAX} streams, and this one has ${touched}: split it.`,
        { limit: STREAMS_PER_WRITE_MAX, size: touched },
      );
  }
}

interface Collected {
  readonly events: NewEvent[];
  readonly expectedVersion: number;
  authorize: Authorize | null;
}

function collect(writes: readonly StreamWrite[]): Map<string, Collected> {
  const byStream = new Map<string, Collected>();
  for (const { stream, expectedVersion, events, authorize } of writes) {
    if (events.length === 0)
      throw new SkuaError('batch_empty', `The write to ${stream} has no events: give at least one for each stream.`, {
        stream,
      });
    const known = byStream.get(stream);
    if (known === undefined)
      byStream.set(stream, { events: [...events], expectedVersion, authorize: authorize ?? null });
    else if (known.expectedVersion !== ANY || expectedVersion !== ANY)
      throw new SkuaError(
        'bad_request',
        `${stream} occurs more than once, so its writes can't expect a version: use a check.`,
        { stream },
      );
    else {
      for (const event of events) known.events.push(event);
      known.authorize = bothAllow(known.authorize, authorize ?? null);
    }
  }
  return byStream;
}

/** The writes in their order; those that follow each other in one stream are one. */
function runsOf(
  writes: readonly StreamWrite[],
  parts: ReadonlyMap<string, StreamPart>,
  whole: ReadonlyMap<string, CheckedEvents>,
  check: (stream: string, events: readonly NewEvent[]) => CheckedEvents,
): StreamRun[] {
  const runs: StreamRun[] = [];
  const begun = new Set<string>();
  for (let i = 0; i < writes.length;) {
    const { stream } = writes[i]!;
    let end = i + 1;
    while (end < writes.length && writes[end]!.stream === stream) end++;
    const part = parts.get(stream)!;
    const events = writes.slice(i, end).flatMap((write) => write.events);
    // Nearly always a stream is one run, whose events have been looked at.
    runs.push({
      part,
      checked: events.length === part.events.length ? whole.get(stream)! : check(stream, events),
      isFirst: !begun.has(stream),
    });
    begun.add(stream);
    i = end;
  }
  return runs;
}

function revivalOf({ stream, events, owner }: StreamPart, runs: readonly StreamRun[]): number {
  const longest = events.reduce((max, { data }) => Math.max(max, data.length), 0);
  const behind = runs.filter(({ part }) => part.stream === owner || part.stream === stream).length - 1;
  return behind * (REVIVAL_BYTES + 3 * owner.length + REWRITTEN_FACTOR * longest);
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

  /** Throws `invalid_event`, `event_too_large` or `bad_tags`. */
  check(stream: string, events: readonly NewEvent[]): CheckedEvents {
    const nameBytes = utf8Length(stream);
    const ids = this.#roomFor(events.length * 16);
    const idsAt = this.#used;
    let bytes = events.length === 0 ? prepareFrameBytes(nameBytes, 0, 0, 0) : 0;
    for (let i = 0; i < events.length; i++) {
      const event = events[i]!;
      const type = this.#types.bytes(event.type);
      if (type === null)
        throw invalidEvent(
          i,
          `has the type ${JSON.stringify(event.type.slice(0, 100))}: give one of 1 to ${EVENT_TYPE_LENGTH_MAX} characters`,
        );
      if (!guidFromText(event.id, ids, idsAt + i * 16) || guidIsEmpty(ids, idsAt + i * 16))
        throw invalidEvent(
          i,
          `has the id ${JSON.stringify(String(event.id).slice(0, 100))}: give a UUID that is not all zeros`,
        );
      const size = event.data.length + event.metadata.length;
      if (size > EVENT_BYTES_MAX) {
        throw new SkuaError(
          'event_too_large',
          `Event ${i} has ${size} bytes of data and metadata, and the limit is ${EVENT_BYTES_MAX}: store large content elsewhere and refer to it.`,
          { index: i, size, limit: EVENT_BYTES_MAX },
        );
      }
      const beyond = event.metadata.length === 0 ? null : oddityOfTags(event.metadata);
      if (beyond !== null) {
        throw new SkuaError(
          'bad_tags',
          `Event ${i} of the request has ${beyond} in $tags of its metadata, and the limits are ${TAGS_MAX} tags of ${ATTRIBUTE_BYTES_MAX} bytes: give fewer, or shorter ones.`,
          { index: i, tags: TAGS_MAX, bytes: ATTRIBUTE_BYTES_MAX },
        );
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
  if (Number.isSafeInteger(expected) && (expected >= NO_STREAM || expected === ANY || expected === STREAM_EXISTS))
    return null;
  return new SkuaError(
    'invalid_expected_version',
    `The expected version ${expected} means nothing: give the last event number, or ${NO_STREAM} (no stream), ${ANY} (any) or ${STREAM_EXISTS} (stream exists).`,
    { expected },
  );
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
  /** Those that are to come, or to come again, when something has been read for them: they take room, too. */
  #held = 0;
  #heldBytes = 0;

  constructor(requestsMax: number, bytesMax: number) {
    this.#requestsMax = requestsMax;
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#items.length - this.#head;
  }
  get bytes(): number {
    return this.#bytes;
  }

  /** Why there is no room for one more; null where there is. */
  refusalOf(request: AppendRequest): SkuaError | null {
    const requests = this.length + this.#held;
    const bytes = this.#bytes + this.#heldBytes;
    if (requests < this.#requestsMax && (requests === 0 || bytes + request.bytes <= this.#bytesMax)) return null;
    return new SkuaError('too_busy', `${requests} appends with ${bytes} bytes wait already: try again in a moment.`, {
      requests,
      bytes,
    });
  }

  push(request: AppendRequest): void {
    this.#bytes += request.bytes;
    this.#items.push(request);
  }

  /** Keeps room for a request until it is released. */
  hold(request: AppendRequest): void {
    this.#held++;
    this.#heldBytes += request.bytes;
  }

  release(request: AppendRequest): void {
    this.#held--;
    this.#heldBytes -= request.bytes;
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
