import { SkuaError } from '../base/errors.ts';
import { prepareFrameBytes } from '../log/format/records.ts';
import { ANY, type EndOf, NO_STREAM, STREAM_EXISTS } from './api.ts';
import type { DeleteRequest, EventsRequest } from './append-request.ts';
import { deletedError, METADATA_TYPE } from './format/names.ts';
import type { StreamState, StreamVersion } from './stream-state.ts';

/** What requests to write may do, and why they may not. */

export function metadataBytes(state: StreamState, json: Uint8Array): number {
  return prepareFrameBytes(state.metaKey.bytes.length, METADATA_TYPE.length, json.length, 0);
}

/** Why nothing may be written, whatever the request expects: a stream that is gone for ever says so to everyone. */
export function refusalOf(request: EventsRequest | DeleteRequest, version: StreamVersion, decision: Decision, endOf: EndOf): SkuaError | null {
  if (version.isTombstoned) return deletedError(request.stream);
  const denied = request.authorize === null ? null : request.authorize(version.metadata, endOf);
  return denied === null && decision === 'deleted' ? deletedError(request.stream) : denied;
}

/**
 * What a request may do, by the expected version and the state of the stream. `compare-*`: it may be a repeat,
 * which the ids of the events decide.
 */
export type Decision = 'write' | 'conflict' | 'deleted' | 'compare-ids' | 'compare-numbers';

/** Last event number of a stream or of its metastream. */
export function lastNumberOf(version: StreamVersion, isMeta: boolean): number {
  return isMeta ? version.metadataVersion : version.lastNumber;
}

export function decideAppend(version: StreamVersion, isMeta: boolean, expected: number): Decision {
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

export function decideSoftDelete(version: StreamVersion, expected: number): Decision {
  if (version.isTombstoned) return 'deleted';
  if (version.isSoftDeleted) return decideOnSoftDeleted(version, expected);
  if (version.lastNumber < 0) return version.metadataVersion >= 0 && expected < 0 ? 'write' : 'conflict';
  return decideOnEvents(version, expected);
}

export function decideHardDelete(version: StreamVersion, expected: number): Decision {
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

export function conflictError(stream: string, expected: number, actual: number): SkuaError {
  const found = actual < 0 ? 'it has no events' : `its last event is ${actual}`;
  const message = expected === ANY
    ? `The write to ${stream} was refused: ${found}. A part of it had been written before, or there is nothing to delete: read the stream and decide anew.`
    : `The write to ${stream} expected ${EXPECTATIONS[expected] ?? `event ${expected} to be the last`}, but ${found}: read the stream and decide anew.`;
  return new SkuaError('wrong_expected_version', message, { stream, expected, actual });
}
