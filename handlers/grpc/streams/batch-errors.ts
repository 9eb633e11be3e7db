import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import { ANY, NO_STREAM, STREAM_EXISTS } from '../../../core/streams/api.ts';
import { encodeText } from '../../../core/base/text.ts';
import type { App } from '../../http/context.ts';
import { STATUS } from '../call.ts';
import { isNotLeader } from '../grpc-errors.ts';
import { encode, NO_BYTES, writeNothing } from '../messages/wire.ts';
import type { Writer } from '../messages/wire.ts';
import {
  writeBadRequest,
  writeMaximumAppendEventSizeExceeded,
  writeMaximumAppendSizeExceeded,
  writeStreamDeleted,
  writeWrongExpectedVersion,
} from '../messages/shared.ts';
import type { WrongExpectedVersion } from '../messages/shared.ts';
import type { BatchAppendRespStatus } from '../messages/streams.ts';
import { conflictOf } from './expectation.ts';
import { eventTooLarge } from './stream-limits.ts';
import { faultOf } from './proposed.ts';

/** How an append of a batch call fails. */

const PREFIX = 'type.googleapis.com/';
const CLIENT = `${PREFIX}event_store.client.`;

function status<T>(
  code: number,
  name: string,
  detail: T,
  write: (detail: T, writer: Writer) => void,
): BatchAppendRespStatus {
  return { code, message: name, details: { typeUrl: CLIENT + name, value: encode(detail, write) } };
}

export const TIMEOUT: BatchAppendRespStatus = status(STATUS.deadlineExceeded, 'Timeout', {}, writeNothing);
export const ACCESS_DENIED: BatchAppendRespStatus = status(STATUS.permissionDenied, 'AccessDenied', {}, writeNothing);
const UNKNOWN: BatchAppendRespStatus = status(STATUS.unknown, 'Unknown', {}, writeNothing);

/** What can't be handled now keeps the code that a code has before it is set. */
function unhandled(message: string, code = 0): BatchAppendRespStatus {
  return { code, message, details: { typeUrl: `${PREFIX}google.protobuf.Empty`, value: NO_BYTES } };
}

export const BUSY = unhandled('Server Is Busy');
const NO_LEADER = unhandled('No leader info available in response');

export function badRequest(message: string): BatchAppendRespStatus {
  return status(STATUS.invalidArgument, 'BadRequest', { message }, writeBadRequest);
}

export function sizeExceeded(maxAppendSize: number): BatchAppendRespStatus {
  return status(STATUS.invalidArgument, 'MaximumAppendSizeExceeded', { maxAppendSize }, writeMaximumAppendSizeExceeded);
}

/** What the recorded server says of each fault of an event. */
export const FAULT_TEXTS: Readonly<Record<NonNullable<ReturnType<typeof faultOf>>, string>> = {
  'no-id': "Value cannot be null. (Parameter 'dto')",
  'bad-id': 'Unrecognized Guid format.',
  'zero-id': "Empty eventId provided. (Parameter 'eventId')",
  'no-type': 'The given key was not present in the dictionary.',
  'no-content-type': 'The given key was not present in the dictionary.',
  'empty-type': "Empty eventType provided. (Parameter 'eventType')",
};

const BUSY_CODES: ReadonlySet<string> = new Set([
  'too_busy',
  'storage_throttled',
  'storage_unreachable',
  'storage_denied',
  'bucket_not_found',
  'wrong_region',
  'clock_skewed',
  'commit_contended',
  'write_expired',
  'disk_full',
]);
const NOT_READY_CODES: ReadonlySet<string> = new Set(['not_ready', 'store_closed', 'writer_stopped', 'sync_failed']);
const INVALID_CODES: ReadonlySet<string> = new Set([
  'invalid_stream_name',
  'invalid_expected_version',
  'invalid_metadata',
  'bad_request',
]);

/** The status for what an append failed with; what is not foreseen is logged. */
export function statusOf(
  error: unknown,
  app: App,
  stream: string,
  events: readonly { readonly id: string }[],
): BatchAppendRespStatus {
  const conflict = conflictOf(error);
  if (conflict !== null)
    return status(
      STATUS.alreadyExists,
      'WrongExpectedVersion',
      wrongExpectedVersion(conflict),
      writeWrongExpectedVersion,
    );
  const large = eventTooLarge(error, events);
  if (large !== null) {
    return status(
      STATUS.invalidArgument,
      'MaximumAppendEventSizeExceeded',
      { eventId: large.eventId, proposedEventSize: large.size, maxAppendEventSize: large.limit },
      writeMaximumAppendEventSizeExceeded,
    );
  }
  if (error instanceof SkuaError) {
    const { code } = error;
    if (code === 'stream_deleted')
      return status(
        STATUS.notFound,
        'StreamDeleted',
        { streamIdentifier: { streamName: encodeText(stream) } },
        writeStreamDeleted,
      );
    if (code === 'access_denied' || code === 'not_authenticated') return ACCESS_DENIED;
    if (isSkuaError(error, 'batch_too_large')) return sizeExceeded(error.data.limit);
    if (code === 'invalid_event') return badRequest(FAULT_TEXTS['bad-id']);
    if (code === 'no_leader') return NO_LEADER;
    // Whether the append was written is unknown: what a client makes of a timeout is right here too.
    if (code === 'commit_outcome_unknown') return TIMEOUT;
    if (INVALID_CODES.has(code)) return badRequest(error.message);
    if (BUSY_CODES.has(code)) return BUSY;
  }
  // Once the call is over, no client waits for the answer.
  if (!isSkuaError(error, 'aborted')) app.world.log.error('an append of a batch call failed', { stream, error });
  return error instanceof SkuaError ? unhandled(error.message, STATUS.internal) : UNKNOWN;
}

/**
 * Whether an append failed because this member does not lead, or can write nothing at all: then the whole call ends, so
 * that its client goes to another one. (The recorded server answers the append alone where it is not ready, and clients
 * do not try that again.)
 */
export function endsCall(error: unknown): boolean {
  return (
    isNotLeader(error) ||
    isSkuaError(error, 'not_leader') ||
    (error instanceof SkuaError && NOT_READY_CODES.has(error.code))
  );
}

function wrongExpectedVersion({
  expected,
  actual,
}: {
  readonly expected: number;
  readonly actual: number;
}): WrongExpectedVersion {
  const current = actual < 0 ? { currentNoStream: {} } : { currentStreamRevision: actual };
  switch (expected) {
    case ANY:
      return { ...current, expectedAny: {} };
    case STREAM_EXISTS:
      return { ...current, expectedStreamExists: {} };
    case NO_STREAM:
      return { ...current, expectedNoStream: {} };
    default:
      return { ...current, expectedStreamPosition: expected };
  }
}
