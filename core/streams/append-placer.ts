import { SkuaError } from '../errors.ts';
import { prepareFrameBytes, TOMBSTONE } from '../log/records.ts';
import type { CommitLog } from '../ports/commit-log.ts';
import { ANY, type EndOf, NO_STREAM, STREAM_EXISTS } from './api.ts';
import { type AppendGroup, epochBytes } from './append-group.ts';
import type { AppendRequest, CompleteChunkRequest, DeleteRequest, EpochRequest, EventsRequest } from './append-request.ts';
import { SOFT_DELETE_JSON, withTruncateBefore } from './metadata.ts';
import { METADATA_TYPE, TOMBSTONE_TYPE } from './names.ts';
import type { RecentIds } from './recent-ids.ts';
import { CONFLICT, NEW, type RepeatCheck, REPEAT, type RepeatScope, type Verdict, WAIT } from './repeat-check.ts';
import { deletedError } from './store-context.ts';
import type { StreamState, StreamVersion } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';

/** The request is in the group: written, recognised, or refused. */
export const TAKEN = 20;
/** It does not fit into the rest of the chunk. */
export const FULL = 21;
/** A promise: something must be read first, the step is taken again behind it. */
type Placed = typeof TAKEN | typeof FULL | typeof WAIT | Promise<unknown>;

interface PlacerParts {
  readonly states: StreamStates;
  readonly recent: RecentIds;
  readonly repeat: RepeatCheck;
  readonly log: CommitLog;
}

/** Decides one request after the other against the latest state, and writes what is to be written into the group. */
export class AppendPlacer {
  readonly #states: StreamStates;
  readonly #recent: RecentIds;
  readonly #log: CommitLog;
  readonly #repeat: RepeatCheck;
  #scope: RepeatScope | null = null;

  constructor({ states, recent, repeat, log }: PlacerParts) {
    this.#states = states;
    this.#recent = recent;
    this.#repeat = repeat;
    this.#log = log;
  }

  readonly #endOf: EndOf = (stream) => {
    const latest = this.#states.get(stream)?.latest;
    return latest === undefined ? null : { lastEventNumber: latest.lastNumber, metadataVersion: latest.metadataVersion };
  };

  /** Call it before the first step of a request, and when the state has changed between its steps. */
  begin(): void {
    this.#repeat.begin();
  }

  /** One step for the request. With an empty group it never asks to WAIT. */
  step(request: AppendRequest, group: AppendGroup): Placed {
    const state = this.#states.load(request.owner);
    if (state instanceof Promise) return state;
    switch (request.kind) {
      case 'append': return this.#append(request, state, group);
      case 'soft-delete': return this.#delete(request, state, group, decideSoftDelete(state.latest, request.expected));
      case 'hard-delete': return this.#delete(request, state, group, decideHardDelete(state.latest, request.expected));
      case 'epoch': return this.#epoch(request, state, group);
      case 'complete-chunk': return this.#completeChunk(request, group);
    }
  }

  /** Nothing is written: that the request is in the group makes the chunk end behind it, unless the log has left that chunk. */
  #completeChunk(request: CompleteChunkRequest, group: AppendGroup): Placed {
    const { capacity } = this.#log;
    request.isRepeat = Math.floor(group.end / capacity) !== Math.floor(request.inChunkOf / capacity);
    request.position = group.end;
    return TAKEN;
  }

  #append(request: EventsRequest, state: StreamState, group: AppendGroup): Placed {
    const version = state.latest;
    const decision = decideAppend(version, request.isMeta, request.expected);
    const refusal = refusalOf(request, version, decision, this.#endOf);
    if (refusal !== null) return refuse(request, refusal);
    const verdict = decision === 'write' ? NEW : decision === 'conflict' ? CONFLICT : this.#compare(request, state, group, decision === 'compare-ids');
    if (verdict === NEW) return request.events.length === 0 ? this.#writeEmpty(request, state, group) : this.#write(request, state, group);
    if (verdict === CONFLICT) return refuse(request, conflictError(request.stream, request.expected, lastNumberOf(version, request.isMeta)));
    if (verdict !== REPEAT) return verdict;
    request.isRepeat = true;
    request.first = this.#repeat.first;
    request.last = this.#repeat.last;
    request.position = this.#repeat.position;
    return TAKEN;
  }

  #compare(request: EventsRequest, state: StreamState, group: AppendGroup, byIds: boolean): Verdict {
    const { isMeta } = request;
    // Ids of the group in flight matter to those only who write to a stream that it writes to.
    if (state.draft !== null) group.rememberIds();
    const key = isMeta ? state.metaKey : state.key;
    const scope = this.#scope ??= { key, committedLast: -1, latestLast: -1, isSoftDeleted: false, groupStart: 0, isGroupHuge: false };
    scope.key = key;
    scope.committedLast = lastNumberOf(state.committed, isMeta);
    scope.latestLast = lastNumberOf(state.latest, isMeta);
    scope.isSoftDeleted = !isMeta && state.latest.isSoftDeleted;
    scope.groupStart = group.start;
    scope.isGroupHuge = group.events.count >= this.#recent.capacity;
    return byIds ? this.#repeat.byIds(request, scope) : this.#repeat.byNumbers(request, scope);
  }

  /** TAKEN when the bytes fit. The request is refused when they would fit into no chunk. */
  #fit(request: AppendRequest, bytes: number, group: AppendGroup): typeof TAKEN | typeof FULL {
    if (group.length + bytes <= this.#log.remaining) return TAKEN;
    if (bytes <= this.#log.capacity) return FULL;
    return refuse(request, new SkuaError('batch_too_large', `The events of one write must fit into one chunk of ${this.#log.capacity} bytes, and these need ${bytes}: split them.`, { size: bytes, limit: this.#log.capacity }));
  }

  #write(request: EventsRequest, state: StreamState, group: AppendGroup): Placed {
    const version = state.latest;
    const { isMeta, events } = request;
    const last = lastNumberOf(version, isMeta);
    // A soft-deleted stream comes back: `$tb` moves to its first new event, in the same group.
    const json = !isMeta && version.softDeleteJson !== null ? withTruncateBefore(version.softDeleteJson, last + 1) : null;
    const metaBytes = json === null ? 0 : metadataBytes(state, json);
    if (this.#fit(request, request.bytes + metaBytes, group) === FULL) return FULL;
    if (request.error !== null) return TAKEN;
    const isUnknown = request.expected === ANY || request.expected === STREAM_EXISTS;
    group.writeEvents(isMeta ? state.metaKey : state.key, last, request, request.bytes, isUnknown);
    request.first = last + 1;
    request.last = last + events.length;
    request.position = group.lastPosition;
    const final = events[events.length - 1]!;
    if (isMeta) group.draft(state, version.withMetadata(request.last, final.data, final.isJson));
    else {
      let next = version.withLast(request.last);
      if (json !== null) {
        group.writeMetadata(state.metaKey, version.metadataVersion, json, metaBytes);
        next = next.withMetadata(version.metadataVersion + 1, json, true);
      }
      group.draft(state, next);
    }
    return TAKEN;
  }

  #writeEmpty(request: EventsRequest, state: StreamState, group: AppendGroup): Placed {
    if (this.#fit(request, request.bytes, group) === FULL) return FULL;
    if (request.error !== null) return TAKEN;
    const last = lastNumberOf(state.latest, request.isMeta);
    group.writeEmpty(request.isMeta ? state.metaKey : state.key, last, request.bytes);
    request.first = last + 1;
    request.last = last;
    request.position = group.lastPosition;
    return TAKEN;
  }

  #delete(request: DeleteRequest, state: StreamState, group: AppendGroup, decision: Decision): Placed {
    const version = state.latest;
    const refusal = refusalOf(request, version, decision, this.#endOf);
    if (refusal !== null) return refuse(request, refusal);
    if (decision === 'conflict') return refuse(request, conflictError(request.stream, request.expected, version.lastNumber));
    const isSoft = request.kind === 'soft-delete';
    const bytes = isSoft ? metadataBytes(state, SOFT_DELETE_JSON) : prepareFrameBytes(state.key.bytes.length, TOMBSTONE_TYPE.length, 0, 0);
    if (this.#fit(request, bytes, group) === FULL) return FULL;
    if (request.error !== null) return TAKEN;
    if (isSoft) {
      group.writeMetadata(state.metaKey, version.metadataVersion, SOFT_DELETE_JSON, bytes);
      group.draft(state, version.withMetadata(version.metadataVersion + 1, SOFT_DELETE_JSON, true));
    } else {
      group.writeTombstone(state.key, bytes);
      group.draft(state, version.withLast(TOMBSTONE));
    }
    request.position = group.lastPosition;
    return TAKEN;
  }

  #epoch(request: EpochRequest, state: StreamState, group: AppendGroup): Placed {
    const position = group.end;
    const epoch = request.decide(state.draft === null);
    if (epoch instanceof SkuaError) return refuse(request, epoch);
    const json = group.epochJson(epoch);
    if (this.#fit(request, epochBytes(json), group) === FULL) return FULL;
    if (request.error !== null) return TAKEN;
    const last = state.latest.lastNumber;
    group.writeEpoch(state.key, last, json);
    group.draft(state, state.latest.withLast(last + 1));
    request.position = position;
    return TAKEN;
  }
}

function metadataBytes(state: StreamState, json: Uint8Array): number {
  return prepareFrameBytes(state.metaKey.bytes.length, METADATA_TYPE.length, json.length, 0);
}

/** Why nothing may be written, whatever the request expects: a stream that is gone for ever says so to everyone. */
function refusalOf(request: EventsRequest | DeleteRequest, version: StreamVersion, decision: Decision, endOf: EndOf): SkuaError | null {
  if (version.isTombstoned) return deletedError(request.stream);
  const denied = request.authorize === null ? null : request.authorize(version.metadata, endOf);
  return denied === null && decision === 'deleted' ? deletedError(request.stream) : denied;
}

/** The refusal is told with the group's outcome, because the state behind it may be that of the group. */
function refuse(request: AppendRequest, error: SkuaError): typeof TAKEN {
  request.error = error;
  return TAKEN;
}

/**
 * What a request may do, by the expected version and the state of the stream (http-api.md 2.1 and 2.4, grpc-api.md
 * 3.7). `compare-*`: it may be a repeat, which the ids of the events decide.
 */
type Decision = 'write' | 'conflict' | 'deleted' | 'compare-ids' | 'compare-numbers';

/** Last event number of a stream or of its metastream. */
function lastNumberOf(version: StreamVersion, isMeta: boolean): number {
  return isMeta ? version.metadataVersion : version.lastNumber;
}

function decideAppend(version: StreamVersion, isMeta: boolean, expected: number): Decision {
  if (version.isTombstoned) return 'deleted';
  const last = lastNumberOf(version, isMeta);
  if (expected === STREAM_EXISTS) {
    if (!isMeta && version.isSoftDeleted) return 'deleted';
    if (last < 0) return !isMeta && version.metadataVersion >= 0 ? 'write' : 'conflict';
    return 'compare-ids';
  }
  if (expected === ANY) return last < 0 ? 'write' : 'compare-ids';
  if (expected === last) return 'write';
  return expected > last ? 'conflict' : 'compare-numbers';
}

function decideSoftDelete(version: StreamVersion, expected: number): Decision {
  if (version.isTombstoned) return 'deleted';
  if (version.isSoftDeleted) return decideOnSoftDeleted(version, expected);
  if (version.lastNumber < 0) return version.metadataVersion >= 0 && expected < 0 ? 'write' : 'conflict';
  return decideOnEvents(version, expected);
}

function decideHardDelete(version: StreamVersion, expected: number): Decision {
  if (version.isTombstoned) return 'deleted';
  if (version.isSoftDeleted) return decideOnSoftDeleted(version, expected);
  if (version.lastNumber >= 0) return decideOnEvents(version, expected);
  if (expected === ANY || expected === NO_STREAM) return 'write';
  return expected === STREAM_EXISTS && version.metadataVersion >= 0 ? 'write' : 'conflict';
}

function decideOnSoftDeleted(version: StreamVersion, expected: number): Decision {
  if (expected === STREAM_EXISTS) return 'deleted';
  return expected === ANY || expected === NO_STREAM || expected === version.lastNumber ? 'write' : 'conflict';
}

function decideOnEvents(version: StreamVersion, expected: number): Decision {
  return expected === ANY || expected === STREAM_EXISTS || expected === version.lastNumber ? 'write' : 'conflict';
}

const EXPECTATIONS: Readonly<Record<number, string>> = { [NO_STREAM]: 'no events', [STREAM_EXISTS]: 'an existing stream' };

function conflictError(stream: string, expected: number, actual: number): SkuaError {
  const found = actual < 0 ? 'it has no events' : `its last event is ${actual}`;
  const message = expected === ANY
    ? `The write to ${stream} was refused: ${found}. A part of it had been written before, or there is nothing to delete: read the stream and decide anew.`
    : `The write to ${stream} expected ${EXPECTATIONS[expected] ?? `event ${expected} to be the last`}, but ${found}: read the stream and decide anew.`;
  return new SkuaError('wrong_expected_version', message, { stream, expected, actual });
}
