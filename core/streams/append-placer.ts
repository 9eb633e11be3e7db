import { SkuaError } from '../base/errors.ts';
import { prepareFrameBytes, TOMBSTONE } from '../log/format/records.ts';
import type { CommitLog } from '../ports/commit-log.ts';
import { ANY, type EndOf, STREAM_EXISTS } from './api.ts';
import { conflictError, decideAppend, decideHardDelete, decideSoftDelete, type Decision, lastNumberOf, metadataBytes, refusalOf } from './append-decision.ts';
import { type AppendGroup, epochBytes } from './append-group.ts';
import type { AppendRequest, CompleteChunkRequest, DeleteRequest, EpochRequest, EventsRequest } from './append-request.ts';
import { parseMetadata, SOFT_DELETE_JSON, UNREADABLE_METADATA, withTruncateBefore } from './format/metadata.ts';
import { TOMBSTONE_TYPE } from './format/names.ts';
import type { CheckedEvents } from './pending-request.ts';
import type { RecentIds } from './recent-ids.ts';
import { type ComparedEvents, CONFLICT, NEW, type RepeatCheck, REPEAT, type RepeatScope, type Verdict, WAIT } from './repeat-check.ts';
import type { StreamState, StreamVersion } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';
import { ALL_REPEATED, StreamsDecider } from './streams-decider.ts';
import type { StreamsRequest } from './streams-request.ts';

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
  readonly #streams: StreamsDecider;
  #scope: RepeatScope | null = null;

  constructor({ states, recent, repeat, log }: PlacerParts) {
    this.#states = states;
    this.#recent = recent;
    this.#repeat = repeat;
    this.#log = log;
    this.#streams = new StreamsDecider({ states, repeat, endOf: this.#endOf, compare: (part, state, group, byIds) => this.#compare(part, state, group, byIds) });
  }

  readonly #endOf: EndOf = (stream) => {
    const latest = this.#states.get(stream)?.latest;
    return latest === undefined ? null : { lastEventNumber: latest.lastNumber, metadataVersion: latest.metadataVersion };
  };

  /** Call it before the first step of a request, and when the state has changed between its steps. */
  begin(): void {
    this.#repeat.begin();
    this.#streams.begin();
  }

  /** One step for the request. With an empty group it never asks to WAIT. */
  step(request: AppendRequest, group: AppendGroup): Placed {
    const state = this.#states.load(request.owner);
    if (state instanceof Promise) return state;
    switch (request.kind) {
      case 'append': return this.#append(request, state, group);
      case 'append-to-streams': return this.#appendToStreams(request, group);
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

  #compare(request: ComparedEvents, state: StreamState, group: AppendGroup, byIds: boolean): Verdict {
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
    const json = revival(state.latest, request.isMeta, request);
    if (this.#fit(request, request.bytes + (json === null ? 0 : metadataBytes(state, json)), group) === FULL) return FULL;
    if (request.error !== null) return TAKEN;
    request.first = lastNumberOf(state.latest, request.isMeta) + 1;
    request.last = request.first + request.events.length - 1;
    this.#put(request, request.isMeta, request.expected === ANY || request.expected === STREAM_EXISTS, state, group);
    request.position = group.lastEventPosition;
    return TAKEN;
  }

  /** Writes events behind the last one, and what a soft-deleted stream needs to come back: `$tb` moves behind its last event that was deleted, in the same group. */
  #put(events: CheckedEvents, isMeta: boolean, isUnknown: boolean, state: StreamState, group: AppendGroup): void {
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

  /** All streams of the request, or none. */
  #appendToStreams(request: StreamsRequest, group: AppendGroup): Placed {
    const decided = this.#streams.step(request, group);
    if (decided instanceof SkuaError) return refuse(request, decided);
    if (decided === WAIT || decided instanceof Promise) return decided;
    request.isRepeat = decided === ALL_REPEATED;
    if (request.isRepeat) {
      request.position = request.parts.reduce((max, { position }) => Math.max(max, position), -1);
      return TAKEN;
    }
    let bytes = request.bytes + request.revivalBytes;
    for (const { part, checked } of request.runs) {
      const state = this.#states.get(part.owner)!;
      const json = revival(state.latest, part.isMeta, checked);
      if (json !== null) bytes += metadataBytes(state, json);
    }
    if (this.#fit(request, bytes, group) === FULL) return FULL;
    if (request.error !== null) return TAKEN;
    for (const { part, checked, isFirst } of request.runs) {
      const state = this.#states.get(part.owner)!;
      part.last = lastNumberOf(state.latest, part.isMeta) + checked.events.length;
      this.#put(checked, part.isMeta, isFirst && part.expected < 0 && request.isRepeatable, state, group);
      part.position = request.position = group.lastEventPosition;
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

function withMetadataOf(version: StreamVersion, number: number, { events }: CheckedEvents): StreamVersion {
  const { data, isJson } = events.at(-1)!;
  return version.withMetadata(number, data, isJson);
}

/**
 * The JSON of the metadata with which a soft-deleted stream comes back; null for every other one. Metadata that say nothing of `$tb` bring it back without the events that
 * were deleted; what they say of `$tb` counts, and so it may stay deleted.
 */
function revival(version: StreamVersion, isMeta: boolean, { events }: CheckedEvents): Uint8Array | null {
  if (version.softDeleteJson === null) return null;
  if (!isMeta) return withTruncateBefore(version.softDeleteJson, version.lastNumber + 1);
  const { data, isJson } = events.at(-1)!;
  const metadata = parseMetadata(data, isJson, 1);
  return metadata.truncateBefore === undefined && metadata !== UNREADABLE_METADATA ? withTruncateBefore(data, version.lastNumber + 1) : null;
}

/** The refusal is told with the group's outcome, because the state behind it may be that of the group. */
function refuse(request: AppendRequest, error: SkuaError): typeof TAKEN {
  request.error = error;
  return TAKEN;
}
