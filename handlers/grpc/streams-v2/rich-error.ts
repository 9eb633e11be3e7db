import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import type { NodeAddress } from '../../../core/ports/nodes.ts';
import { isAnonymous } from '../../../core/base/principal.ts';
import { GrpcError, STATUS } from '../call.ts';
import type { GrpcCall, GrpcEnding } from '../call.ts';
import { notLeader } from '../grpc-errors.ts';
import { writeAccessDeniedErrorDetails, writeNotLeaderNodeErrorDetails } from '../messages/errors-kurrent.ts';
import {
  writeAppendConsistencyViolationErrorDetails,
  writeAppendRecordSizeExceededErrorDetails,
  writeAppendTransactionSizeExceededErrorDetails,
  writeStreamAlreadyInAppendSessionErrorDetails,
  writeStreamDeletedErrorDetails,
  writeStreamRevisionConflictErrorDetails,
  writeStreamTombstonedErrorDetails,
} from '../messages/errors-v2.ts';
import { writeBadRequest, writeStatus } from '../messages/rpc.ts';
import type { BadRequestFieldViolation } from '../messages/rpc.ts';
import { encode, MalformedMessage } from '../messages/wire.ts';
import type { Writer } from '../messages/wire.ts';

/**
 * Errors of the second generation: a status with one detail, whose type says what happened, in
 * `grpc-status-details-bin`. One alone, as there are clients that read the list of details as if it had no more.
 */

const STREAMS = 'kurrentdb.protocol.v2.streams.errors';

function rich<T>(
  code: number,
  message: string,
  type: string,
  detail: T,
  write: (detail: T, writer: Writer) => void,
  cause?: unknown,
  trailers: GrpcEnding['trailers'] = {},
): GrpcError {
  const status = { code, message, details: [{ typeUrl: `type.googleapis.com/${type}`, value: encode(detail, write) }] };
  return new GrpcError(code, message, { ...trailers, 'grpc-status-details-bin': encode(status, writeStatus) }, cause);
}

/** With the trailers of the first generation, too: clients that call both go to the leader by those alone. */
export function notLeaderNode(leader: NodeAddress): GrpcError {
  const { message, ending } = notLeader(leader);
  return rich(
    STATUS.failedPrecondition,
    message,
    'kurrent.rpc.NotLeaderNodeErrorDetails',
    { currentLeader: { host: leader.address, port: leader.port } },
    writeNotLeaderNodeErrorDetails,
    undefined,
    ending.trailers,
  );
}

/** Fields that are not as they must be, all of them at once. */
export function badRequest(fieldViolations: readonly BadRequestFieldViolation[]): GrpcError {
  const { field, description } = fieldViolations[0]!;
  return rich(
    STATUS.invalidArgument,
    `${field}: ${description}`,
    'google.rpc.BadRequest',
    { fieldViolations },
    writeBadRequest,
  );
}

export function alreadyInSession(stream: string): GrpcError {
  return rich(
    STATUS.aborted,
    `Stream '${stream}' is already in this append session: send all of its records in one request.`,
    `${STREAMS}.StreamAlreadyInAppendSessionErrorDetails`,
    { stream },
    writeStreamAlreadyInAppendSessionErrorDetails,
  );
}

export function sessionEmpty(): GrpcError {
  return new GrpcError(STATUS.failedPrecondition, 'The append session has no requests: send at least one.');
}

export function recordTooLarge(stream: string, recordId: string, size: number, maxSize: number): GrpcError {
  return rich(
    STATUS.invalidArgument,
    `Record ${recordId} for stream '${stream}' has ${size} bytes, and the limit is ${maxSize}.`,
    `${STREAMS}.AppendRecordSizeExceededErrorDetails`,
    { stream, recordId, size, maxSize },
    writeAppendRecordSizeExceededErrorDetails,
  );
}

/** Sizes have 32 bits there. */
const SIZE_MAX = 2_147_483_647;

export function transactionTooLarge(size: number, maxSize: number, cause?: unknown): GrpcError {
  const detail = { size: Math.min(size, SIZE_MAX), maxSize: Math.min(maxSize, SIZE_MAX) };
  return rich(
    STATUS.aborted,
    `The records have ${size} bytes together, and the limit is ${maxSize}: split them.`,
    `${STREAMS}.AppendTransactionSizeExceededErrorDetails`,
    detail,
    writeAppendTransactionSizeExceededErrorDetails,
    cause,
  );
}

function accessDenied({ call }: Pick<GrpcCall, 'call'>, operation: string, cause: SkuaError): GrpcError {
  const username = isAnonymous(call.principal) ? undefined : (call.principal.name ?? undefined);
  return rich(
    STATUS.permissionDenied,
    'Access Denied',
    'kurrent.rpc.AccessDeniedErrorDetails',
    { operation, username },
    writeAccessDeniedErrorDetails,
    cause,
  );
}

const UNAVAILABLE: ReadonlySet<string> = new Set([
  'not_ready',
  'store_closed',
  'writer_stopped',
  'sync_failed',
  'too_busy',
  'storage_unreachable',
  'storage_throttled',
  'storage_denied',
  'bucket_not_found',
  'wrong_region',
  'clock_skewed',
  'commit_contended',
  'write_expired',
  'no_leader',
]);
const INVALID: ReadonlyMap<string, string> = new Map([
  ['invalid_stream_name', 'stream'],
  ['invalid_metadata', 'data'],
  ['bad_tags', 'records'],
  ['stream_is_view', 'stream'],
  ['invalid_event', 'records'],
  ['invalid_expected_version', 'expected_revision'],
  ['bad_request', 'records'],
  ['batch_empty', 'records'],
]);
/** What the dispatcher answers in its own way. */
const ELSEWHERE: ReadonlySet<string> = new Set(['not_leader', 'aborted', 'disk_full']);

/** What went wrong, as this service answers it; `operation` is what the caller wanted. Malfunctions are logged. */
export function richErrorOf(error: unknown, grpc: Pick<GrpcCall, 'call' | 'app'>, operation: string): unknown {
  if (!(error instanceof SkuaError))
    return error instanceof GrpcError || error instanceof MalformedMessage ? error : malfunction(error, grpc);
  const { code, message } = error;
  if (isSkuaError(error, 'wrong_expected_version')) {
    const { stream, expected, actual } = error.data;
    const detail = { stream, expectedRevision: expected, actualRevision: actual };
    return rich(
      STATUS.failedPrecondition,
      message,
      `${STREAMS}.StreamRevisionConflictErrorDetails`,
      detail,
      writeStreamRevisionConflictErrorDetails,
      error,
    );
  }
  if (isSkuaError(error, 'consistency_violation')) {
    const violations = error.data.violations.map(({ index, stream, expected, actual }) => ({
      checkIndex: index,
      streamState: { stream, expectedState: expected, actualState: actual },
    }));
    return rich(
      STATUS.failedPrecondition,
      message,
      `${STREAMS}.AppendConsistencyViolationErrorDetails`,
      { violations },
      writeAppendConsistencyViolationErrorDetails,
      error,
    );
  }
  if (isSkuaError(error, 'stream_deleted')) {
    const { stream, isSoftDeleted = false } = error.data;
    return isSoftDeleted
      ? rich(
          STATUS.failedPrecondition,
          `Stream '${stream}' is deleted.`,
          `${STREAMS}.StreamDeletedErrorDetails`,
          { stream },
          writeStreamDeletedErrorDetails,
          error,
        )
      : rich(
          STATUS.failedPrecondition,
          `Stream '${stream}' is tombstoned.`,
          `${STREAMS}.StreamTombstonedErrorDetails`,
          { stream },
          writeStreamTombstonedErrorDetails,
          error,
        );
  }
  if (isSkuaError(error, 'batch_too_large')) return transactionTooLarge(error.data.size, error.data.limit, error);
  switch (code) {
    case 'access_denied':
    case 'not_authenticated':
      return accessDenied(grpc, operation, error);
    // Whether the write took place is unknown, as with a call that took too long.
    case 'commit_outcome_unknown':
      return new GrpcError(STATUS.deadlineExceeded, message, {}, error);
    default:
      if (INVALID.has(code)) return badRequest([{ field: INVALID.get(code)!, description: message }]);
      if (UNAVAILABLE.has(code)) return new GrpcError(STATUS.unavailable, message, {}, error);
      return ELSEWHERE.has(code) ? error : malfunction(error, grpc);
  }
}

function malfunction(error: unknown, { app, call }: Pick<GrpcCall, 'call' | 'app'>): GrpcError {
  app.world.log.error('a call of gRPC failed', { path: call.path, error });
  return new GrpcError(STATUS.internal, 'The request failed. See the log of the node for the reason.', {}, error);
}
