import { SkuaError, type StreamViolation } from '../base/errors.ts';
import { prepareFrameBytes, TOMBSTONE } from '../log/format/records.ts';
import type { CommitLog } from '../ports/commit-log.ts';
import {
  ANY,
  type EndOf,
  IS_SOFT_DELETED,
  IS_TOMBSTONED,
  NO_STREAM,
  STREAM_EXISTS,
  type StreamOutcome,
} from './api.ts';
import { type AppendGroup, epochBytes } from './append-group.ts';
import {
  type AppendRequest,
  type CheckedEvents,
  type CheckedStream,
  type CompleteChunkRequest,
  type DeleteRequest,
  type EpochRequest,
  type EventsRequest,
  type StreamPart,
  type StreamsRequest,
  VERDICT,
  type Verdict,
} from './append-request.ts';
import { parseMetadata, SOFT_DELETE_JSON, UNREADABLE_METADATA, withTruncateBefore } from './format/metadata.ts';
import { deletedError, METADATA_TYPE, TOMBSTONE_TYPE } from './format/names.ts';
import type { Conditions } from './conditions.ts';
import { checkRoomForMarks } from './load-marks/load-marks.ts';
import type { RecentIds } from './recent-ids.ts';
import type { ComparedEvents, RepeatCheck, RepeatScope } from './repeat-check.ts';
import type { StreamState, StreamVersion } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';

/** A promise: something must be read first. */
type Decided = Verdict | Promise<unknown>;

interface DeciderParts {
  readonly states: StreamStates;
  readonly recent: RecentIds;
  readonly repeat: RepeatCheck;
  readonly log: CommitLog;
  readonly conditions: Conditions;
}

/** Decides one request after the other against the latest state, and writes what is to be written into the group. */
export class AppendDecider {
  readonly #states: StreamStates;
  readonly #recent: RecentIds;
  readonly #log: CommitLog;
  readonly #repeat: RepeatCheck;
  readonly #conditions: Conditions;
  #scope: RepeatScope | null = null;
  /** Of a request to several streams: the verdicts on its first ones, and where the repeats among them were written. */
  readonly #verdicts: Verdict[] = [];
  #repeated: StreamOutcome[] = [];

  constructor({ states, recent, repeat, log, conditions }: DeciderParts) {
    this.#conditions = conditions;
    this.#states = states;
    this.#recent = recent;
    this.#repeat = repeat;
    this.#log = log;
  }

  readonly #endOf: EndOf = (stream) => {
    const latest = this.#states.get(stream)?.latest;
    return latest === undefined
      ? null
      : { lastEventNumber: latest.lastNumber, metadataVersion: latest.metadataVersion };
  };

  /** Call it before the first step of a request, and when the state has changed between its steps. */
  begin(): void {
    this.#repeat.begin();
    if (this.#verdicts.length === 0) return;
    this.#verdicts.length = 0;
    this.#repeated = [];
  }

  /**
   * One step for a request. NEW, REPEAT, REFUSED: the request is decided, and what is new of it is in the group. FULL:
   * its turn comes in the next chunk. WAIT: its turn comes behind the group, which is not empty then. AGAIN: it leaves
   * the queue until its condition has been searched. A promise: its next step comes behind that.
   */
  decide(request: AppendRequest, group: AppendGroup): Decided {
    const state = this.#states.load(request.owner);
    if (state instanceof Promise) return state;
    switch (request.kind) {
      case 'append':
        return this.#append(request, state, group);
      case 'append-to-streams':
        return this.#appendToStreams(request, group);
      case 'soft-delete':
        return this.#delete(request, state, group, onSoftDelete(state.latest, request.expected));
      case 'hard-delete':
        return this.#delete(request, state, group, onHardDelete(state.latest, request.expected));
      case 'epoch':
        return this.#epoch(request, state, group);
      case 'complete-chunk':
        return this.#completeChunk(request, group);
    }
  }

  #append(request: EventsRequest, state: StreamState, group: AppendGroup): Decided {
    const version = state.latest;
    const expectation = onAppend(version, request.isMeta, request.expected);
    const refusal = this.#refusal(request, version, expectation);
    if (refusal !== null) return request.refuse(refusal);
    const verdict = expectation === VERDICT.COMPARE ? this.#compare(request, state, group) : expectation;
    if (verdict === VERDICT.NEW)
      return request.events.length === 0
        ? this.#writeEmpty(request, state, group)
        : this.#writeEvents(request, state, group);
    if (verdict === VERDICT.CONFLICT)
      return request.refuse(conflictError(request.stream, request.expected, lastNumberOf(version, request.isMeta)));
    if (verdict !== VERDICT.REPEAT) return verdict;
    const { first, last, position } = this.#repeat;
    request.accept({ firstEventNumber: first, lastEventNumber: last, position, isRepeat: true });
    return VERDICT.REPEAT;
  }

  /**
   * Why nothing may be written, whatever the request expects: that a stream is gone for ever is answered to every
   * caller.
   */
  #refusal(
    { stream, authorize }: EventsRequest | DeleteRequest,
    version: StreamVersion,
    expectation: Verdict,
  ): SkuaError | null {
    if (version.isTombstoned) return deletedError(stream);
    const denied = authorize === null ? null : authorize(version.metadata, this.#endOf);
    return denied === null && expectation === VERDICT.DELETED ? deletedError(stream) : denied;
  }

  #compare(events: ComparedEvents, state: StreamState, group: AppendGroup): Decided {
    const { isMeta } = events;
    // Ids of the group in flight matter only to writes to a stream that the group writes to.
    if (state.draft !== null) group.rememberIds();
    const key = isMeta ? state.metaKey : state.key;
    const scope = (this.#scope ??= {
      key,
      committedLast: -1,
      latestLast: -1,
      isSoftDeleted: false,
      groupStart: 0,
      isGroupHuge: false,
    });
    scope.key = key;
    scope.committedLast = lastNumberOf(state.committed, isMeta);
    scope.latestLast = lastNumberOf(state.latest, isMeta);
    scope.isSoftDeleted = !isMeta && state.latest.isSoftDeleted;
    scope.groupStart = group.start;
    scope.isGroupHuge = group.events.count >= this.#recent.capacity;
    return isByIds(events.expected) ? this.#repeat.byIds(events, scope) : this.#repeat.byNumbers(events, scope);
  }

  /** NEW when the bytes fit. The request is refused when they would fit into no chunk. */
  #room(
    request: AppendRequest,
    bytes: number,
    group: AppendGroup,
  ): typeof VERDICT.NEW | typeof VERDICT.FULL | typeof VERDICT.REFUSED {
    if (group.length + bytes <= this.#log.remaining) return VERDICT.NEW;
    if (bytes <= this.#log.capacity) return VERDICT.FULL;
    return request.refuse(
      new SkuaError(
        'batch_too_large',
        `The events of one write must fit into one chunk of ${this.#log.capacity} bytes, and these need ${bytes}: split them.`,
        { size: bytes, limit: this.#log.capacity },
      ),
    );
  }

  #writeEvents(request: EventsRequest, state: StreamState, group: AppendGroup): Verdict {
    const { isMeta, expected, events } = request;
    const json = revival(state.latest, isMeta, request);
    const last = lastNumberOf(state.latest, isMeta);
    const full = checkRoomForMarks(request.stream, last, events.length);
    if (full !== null) return request.refuse(full);
    const room = this.#room(request, request.bytes + (json === null ? 0 : metadataBytes(state, json)), group);
    if (room !== VERDICT.NEW) return room;
    put(request, isMeta, isByIds(expected), state, group);
    request.accept({
      firstEventNumber: last + 1,
      lastEventNumber: last + events.length,
      position: group.lastEventPosition,
      isRepeat: false,
    });
    return VERDICT.NEW;
  }

  #writeEmpty(request: EventsRequest, state: StreamState, group: AppendGroup): Verdict {
    const { isMeta, bytes } = request;
    const room = this.#room(request, bytes, group);
    if (room !== VERDICT.NEW) return room;
    const last = lastNumberOf(state.latest, isMeta);
    group.writeEmpty(isMeta ? state.metaKey : state.key, last, bytes);
    request.accept({
      firstEventNumber: last + 1,
      lastEventNumber: last,
      position: group.lastPosition,
      isRepeat: false,
    });
    return VERDICT.NEW;
  }

  #delete(request: DeleteRequest, state: StreamState, group: AppendGroup, expectation: Verdict): Verdict {
    const version = state.latest;
    const refusal = this.#refusal(request, version, expectation);
    if (refusal !== null) return request.refuse(refusal);
    if (expectation === VERDICT.CONFLICT)
      return request.refuse(conflictError(request.stream, request.expected, version.lastNumber));
    const isSoft = request.kind === 'soft-delete';
    const bytes = isSoft
      ? metadataBytes(state, SOFT_DELETE_JSON)
      : prepareFrameBytes(state.key.bytes.length, TOMBSTONE_TYPE.length, 0, 0);
    const room = this.#room(request, bytes, group);
    if (room !== VERDICT.NEW) return room;
    if (isSoft) {
      group.writeMetadata(state.metaKey, version.metadataVersion, SOFT_DELETE_JSON, bytes);
      group.draft(state, version.withMetadata(version.metadataVersion + 1, SOFT_DELETE_JSON, true));
    } else {
      group.writeTombstone(state.key, bytes);
      group.draft(state, version.withLast(TOMBSTONE));
    }
    request.accept({ position: group.lastPosition });
    return VERDICT.NEW;
  }

  #epoch(request: EpochRequest, state: StreamState, group: AppendGroup): Verdict {
    const position = group.end;
    const epoch = request.decide(state.draft === null);
    if (epoch instanceof SkuaError) return request.refuse(epoch);
    const json = group.epochJson(epoch);
    const room = this.#room(request, epochBytes(json), group);
    if (room !== VERDICT.NEW) return room;
    const last = state.latest.lastNumber;
    group.writeEpoch(state.key, last, json);
    group.draft(state, state.latest.withLast(last + 1));
    request.accept(position);
    return VERDICT.NEW;
  }

  /**
   * Nothing is written: that the request is in the group makes the chunk end behind it, unless the log has left that
   * chunk.
   */
  #completeChunk(request: CompleteChunkRequest, group: AppendGroup): Verdict {
    const { capacity } = this.#log;
    request.accept();
    return Math.floor(group.end / capacity) === Math.floor(request.inChunkOf / capacity) ? VERDICT.NEW : VERDICT.REPEAT;
  }

  /** All streams of the request by what they were before it: all of it, or none. */
  #appendToStreams(request: StreamsRequest, group: AppendGroup): Decided {
    const loading = this.#load(request, group);
    if (loading !== null) return loading;
    const denied = this.#denial(request);
    if (denied !== null) return request.refuse(denied);
    for (let i = this.#verdicts.length; i < request.parts.length; i++) {
      const part = request.parts[i]!;
      const verdict = this.#verdictOn(part, request, group);
      if (verdict === VERDICT.WAIT || verdict instanceof Promise) return verdict;
      this.#verdicts.push(verdict);
      if (verdict === VERDICT.REPEAT)
        this.#repeated.push({
          stream: part.stream,
          lastEventNumber: this.#repeat.last,
          position: this.#repeat.position,
        });
      this.#repeat.begin();
    }
    const streams = this.#repeated;
    if (streams.length === request.parts.length) {
      request.accept({
        streams,
        position: streams.reduce((max, { position }) => Math.max(max, position), -1),
        isRepeat: true,
      });
      return VERDICT.REPEAT;
    }
    const refusal = this.#violation(request) ?? this.#conflict(request) ?? this.#full(request);
    if (refusal !== null) return request.refuse(refusal);
    const verdict = request.search === null ? VERDICT.NEW : this.#conditions.decide(request, request.search, group);
    return verdict === VERDICT.NEW ? this.#writeStreams(request, group) : verdict;
  }

  /** Null once the states of all streams are there. */
  #load({ parts, checks }: StreamsRequest, group: AppendGroup): Promise<unknown> | null {
    for (const { owner } of parts) {
      const state = this.#states.load(owner);
      if (state instanceof Promise) return state;
      // A state with a draft stays where it is while the others are read, and until the group is decided.
      group.draft(state, state.latest);
    }
    for (const { owner } of checks) {
      const state = this.#states.load(owner);
      if (state instanceof Promise) return state;
    }
    return null;
  }

  /**
   * That a stream is gone for ever is answered to every caller, as in a write to it alone; a stream that the caller may
   * not see is refused before the answer shows anything of the others.
   */
  #denial({ parts, checks }: StreamsRequest): SkuaError | null {
    for (const { owner, authorize } of [...parts, ...checks]) {
      const { latest } = this.#states.get(owner)!;
      const denied =
        latest.isTombstoned || authorize === null || authorize === undefined
          ? null
          : authorize(latest.metadata, this.#endOf);
      if (denied !== null) return denied;
    }
    return null;
  }

  #verdictOn(part: StreamPart, { isRepeatable }: StreamsRequest, group: AppendGroup): Decided {
    const state = this.#states.get(part.owner)!;
    const { isMeta, expected } = part;
    const expectation = onAppend(state.latest, isMeta, expected);
    if (expectation !== VERDICT.COMPARE) return expectation;
    if (isRepeatable) return this.#compare(part, state, group);
    const isNoneAgain = expected === NO_STREAM && !isMeta && state.latest.isSoftDeleted;
    return isByIds(expected) || isNoneAgain ? VERDICT.NEW : VERDICT.CONFLICT;
  }

  #full({ parts }: StreamsRequest): SkuaError | null {
    for (const { stream, owner, isMeta, events } of parts) {
      const full = checkRoomForMarks(stream, lastNumberOf(this.#states.get(owner)!.latest, isMeta), events.length);
      if (full !== null) return full;
    }
    return null;
  }

  /** All checks that do not hold. */
  #violation({ checks }: StreamsRequest): SkuaError | null {
    const violations: StreamViolation[] = [];
    for (const [index, check] of checks.entries()) {
      const { latest } = this.#states.get(check.owner)!;
      if (!holds(check, latest))
        violations.push({
          index,
          stream: check.stream,
          expected: check.expectedVersion,
          actual: actualOf(check, latest),
        });
    }
    if (violations.length === 0) return null;
    const names = violations
      .slice(0, 3)
      .map(({ stream, expected, actual }) => `${stream} (expected ${expected}, found ${actual})`)
      .join(', ');
    return new SkuaError(
      'consistency_violation',
      `Nothing was written: ${violations.length} of the ${checks.length} checks failed: ${names}. Read the streams and decide again.`,
      { violations },
    );
  }

  /** Where all checks hold, why not all of the request is new: what conflicts nevertheless was written in part. */
  #conflict({ parts }: StreamsRequest): SkuaError | null {
    for (const [i, { stream, owner, isMeta, expected }] of parts.entries()) {
      const { latest } = this.#states.get(owner)!;
      if (latest.isTombstoned) return deletedError(stream);
      const verdict = this.#verdicts[i]!;
      if (verdict === VERDICT.NEW) continue;
      if (verdict === VERDICT.DELETED)
        return new SkuaError(
          'stream_deleted',
          `The stream ${stream} was deleted and does not exist until it is written to again without an expectation that it exists.`,
          { stream, isSoftDeleted: true },
        );
      return conflictError(stream, expected, lastNumberOf(latest, isMeta));
    }
    return null;
  }

  #writeStreams(request: StreamsRequest, group: AppendGroup): Verdict {
    let bytes = request.bytes + request.revivalBytes;
    for (const { part, checked } of request.runs) {
      const state = this.#states.get(part.owner)!;
      const json = revival(state.latest, part.isMeta, checked);
      if (json !== null) bytes += metadataBytes(state, json);
    }
    const room = this.#room(request, bytes, group);
    if (room !== VERDICT.NEW) return room;
    const streams: StreamOutcome[] = [];
    for (const { part, checked, isFirst } of request.runs) {
      const { stream, owner, isMeta, expected, index } = part;
      const state = this.#states.get(owner)!;
      const lastEventNumber = lastNumberOf(state.latest, isMeta) + checked.events.length;
      put(checked, isMeta, isFirst && expected < 0 && request.isRepeatable, state, group);
      streams[index] = { stream, lastEventNumber, position: group.lastEventPosition };
    }
    request.accept({ streams, position: group.lastEventPosition, isRepeat: false });
    return VERDICT.NEW;
  }
}

/**
 * What the expected version decides by itself. DELETED: the stream is gone, though its last event may be the one that
 * is expected.
 */
function onAppend(version: StreamVersion, isMeta: boolean, expected: number): Verdict {
  if (version.isTombstoned) return VERDICT.DELETED;
  const last = lastNumberOf(version, isMeta);
  if (expected === STREAM_EXISTS) {
    if (!isMeta && version.isSoftDeleted) return VERDICT.DELETED;
    if (last < 0) return !isMeta && version.metadataVersion >= 0 ? VERDICT.NEW : VERDICT.CONFLICT;
    return VERDICT.COMPARE;
  }
  if (expected === ANY) return last < 0 ? VERDICT.NEW : VERDICT.COMPARE;
  if (expected === last) return VERDICT.NEW;
  return expected > last ? VERDICT.CONFLICT : VERDICT.COMPARE;
}

function onSoftDelete(version: StreamVersion, expected: number): Verdict {
  if (version.isTombstoned) return VERDICT.DELETED;
  if (version.isSoftDeleted) return onDeleteAgain(version, expected);
  if (version.lastNumber < 0) return version.metadataVersion >= 0 && expected < 0 ? VERDICT.NEW : VERDICT.CONFLICT;
  return onDeleteOfEvents(version, expected);
}

function onHardDelete(version: StreamVersion, expected: number): Verdict {
  if (version.isTombstoned) return VERDICT.DELETED;
  if (version.isSoftDeleted) return onDeleteAgain(version, expected);
  if (version.lastNumber >= 0) return onDeleteOfEvents(version, expected);
  if (expected === ANY || expected === NO_STREAM) return VERDICT.NEW;
  return expected === STREAM_EXISTS && version.metadataVersion >= 0 ? VERDICT.NEW : VERDICT.CONFLICT;
}

/** The stream is soft-deleted. */
function onDeleteAgain(version: StreamVersion, expected: number): Verdict {
  if (expected === STREAM_EXISTS) return VERDICT.DELETED;
  return expected === ANY || expected === NO_STREAM || expected === version.lastNumber ? VERDICT.NEW : VERDICT.CONFLICT;
}

function onDeleteOfEvents(version: StreamVersion, expected: number): Verdict {
  return expected === ANY || expected === STREAM_EXISTS || expected === version.lastNumber
    ? VERDICT.NEW
    : VERDICT.CONFLICT;
}

/** Whether a repeat of a write that expects this is known by the ids of its events alone; else by their numbers. */
function isByIds(expected: number): boolean {
  return expected === ANY || expected === STREAM_EXISTS;
}

/** Last event number of a stream or of its metastream. */
function lastNumberOf(version: StreamVersion, isMeta: boolean): number {
  return isMeta ? version.metadataVersion : version.lastNumber;
}

function holds({ expectedVersion: expected, isMeta, isWritten }: CheckedStream, version: StreamVersion): boolean {
  if (expected === ANY) return true;
  if (version.isTombstoned) return expected === NO_STREAM && !isWritten;
  const last = lastNumberOf(version, isMeta);
  // A stream that was deleted is none, whatever its numbers.
  const isNone = !isMeta && version.isSoftDeleted;
  if (expected === NO_STREAM) return last < 0 || isNone;
  if (isNone) return false;
  return expected === STREAM_EXISTS ? last >= 0 || (!isMeta && version.metadataVersion >= 0) : last === expected;
}

function actualOf({ isMeta }: CheckedStream, version: StreamVersion): number {
  if (version.isTombstoned) return IS_TOMBSTONED;
  return !isMeta && version.isSoftDeleted ? IS_SOFT_DELETED : Math.max(NO_STREAM, lastNumberOf(version, isMeta));
}

const EXPECTATIONS: Readonly<Record<number, string>> = {
  [NO_STREAM]: 'no events',
  [STREAM_EXISTS]: 'an existing stream',
};

function conflictError(stream: string, expected: number, actual: number): SkuaError {
  const found = actual < 0 ? 'it has no events' : `its last event is ${actual}`;
  const message =
    expected === ANY
      ? `The write to ${stream} was refused: ${found}. A part of it had been written before, or there is nothing to delete: read the stream and decide anew.`
      : `The write to ${stream} expected ${EXPECTATIONS[expected] ?? `event ${expected} to be the last`}, but ${found}: read the stream and decide anew.`;
  return new SkuaError('wrong_expected_version', message, { stream, expected, actual });
}

/**
 * Writes events behind the last one, and what a soft-deleted stream needs to come back: `$tb` moves behind its last
 * event that was deleted, in the same group.
 */
function put(events: CheckedEvents, isMeta: boolean, isUnknown: boolean, state: StreamState, group: AppendGroup): void {
  const version = state.latest;
  const json = revival(version, isMeta, events);
  const last = lastNumberOf(version, isMeta);
  const next = last + events.events.length;
  group.writeEvents(isMeta ? state.metaKey : state.key, last, events, isUnknown);
  const written = isMeta ? withMetadataOf(version, next, events) : version.withLast(next);
  if (json === null) group.draft(state, written);
  else {
    group.writeMetadata(state.metaKey, written.metadataVersion, json, metadataBytes(state, json));
    group.draft(state, written.withMetadata(written.metadataVersion + 1, json, true));
  }
}

function withMetadataOf(version: StreamVersion, number: number, { events }: CheckedEvents): StreamVersion {
  const { data, isJson } = events.at(-1)!;
  return version.withMetadata(number, data, isJson);
}

/**
 * The JSON of the metadata with which a soft-deleted stream comes back; null for every other one. Metadata that say
 * nothing of `$tb` bring it back without the events that were deleted; what they say of `$tb` counts, and so it may
 * stay deleted.
 */
function revival(version: StreamVersion, isMeta: boolean, { events }: CheckedEvents): Uint8Array | null {
  if (version.softDeleteJson === null) return null;
  if (!isMeta) return withTruncateBefore(version.softDeleteJson, version.lastNumber + 1);
  const { data, isJson } = events.at(-1)!;
  const metadata = parseMetadata(data, isJson, 1);
  return metadata.truncateBefore === undefined && metadata !== UNREADABLE_METADATA
    ? withTruncateBefore(data, version.lastNumber + 1)
    : null;
}

function metadataBytes(state: StreamState, json: Uint8Array): number {
  return prepareFrameBytes(state.metaKey.bytes.length, METADATA_TYPE.length, json.length, 0);
}
