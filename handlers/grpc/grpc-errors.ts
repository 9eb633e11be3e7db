import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import type { App } from '../http/context.ts';
import { GrpcError, STATUS } from './call.ts';
import type { GrpcEnding } from './call.ts';
import { MalformedMessage } from './messages/wire.ts';

const NOT_LEADER = 'not-leader';

type Trailers = Readonly<Record<string, string>>;
type Ended = (error: SkuaError) => GrpcEnding;

function ended(
  status: number,
  exception: string | null,
  message?: string,
  trailers: (error: SkuaError) => Trailers = () => ({}),
): Ended {
  return (error) => ({
    status,
    message: message ?? error.message,
    trailers: { ...(exception !== null && { exception }), ...trailers(error) },
  });
}

const stream = ({ data }: SkuaError): Trailers => ({ 'stream-name': String(data['stream'] ?? '') });
const group = (error: SkuaError): Trailers => ({ ...stream(error), 'group-name': String(error.data['group'] ?? '') });
const loginName = ({ data }: SkuaError): string => String(data['loginName'] ?? '');
const DENIED: Ended = ended(STATUS.permissionDenied, 'access-denied', 'Access Denied');
const UNHANDLED: GrpcEnding = { status: STATUS.unknown, message: 'Exception was thrown by handler.', trailers: {} };
const NOT_READY: Ended = ended(STATUS.unavailable, null, 'Server Is Not Ready');
const BUSY: Ended = ended(STATUS.unavailable, null, 'Server Is Too Busy');
// The recorded server says UNKNOWN, which clients give up on: with this they look for a leader again.
const LEADERLESS: Ended = ended(STATUS.unavailable, null, 'No leader info available in response');
const INVALID: Ended = ended(STATUS.invalidArgument, null);

/** From codes to endings; what is not named is UNKNOWN, and is logged. */
const ENDINGS: Readonly<Partial<Record<SkuaError['code'], Ended>>> = {
  access_denied: DENIED,
  stream_deleted: (error) => ({
    status: STATUS.failedPrecondition,
    message: `Event stream '${String(error.data['stream'])}' is deleted.`,
    trailers: { exception: 'stream-deleted', ...stream(error) },
  }),
  user_not_found: (error) => ({
    status: STATUS.notFound,
    message: `User '${loginName(error)}' is not found.`,
    trailers: { exception: 'user-not-found', 'login-name': loginName(error) },
  }),
  user_exists: ended(STATUS.failedPrecondition, 'user-conflict', 'Conflict.', (error) => ({
    'login-name': loginName(error),
  })),
  wrong_password: DENIED,
  last_administrator: ended(STATUS.failedPrecondition, null),
  scavenge_not_found: ended(STATUS.notFound, 'scavenge-not-found', 'Scavenge id was invalid.', ({ data }) => ({
    'scavenge-id': String(data['scavengeId'] ?? ''),
  })),
  persistent_subscription_not_found: ended(STATUS.notFound, 'persistent-subscription-does-not-exist', undefined, group),
  persistent_subscription_exists: ended(STATUS.alreadyExists, 'persistent-subscription-exists', undefined, group),
  persistent_subscription_failed: ended(STATUS.internal, 'persistent-subscription-failed', undefined, (error) => ({
    ...group(error),
    reason: String(error.data['reason'] ?? ''),
  })),
  persistent_subscription_dropped: ended(STATUS.cancelled, 'persistent-subscription-dropped', undefined, group),
  maximum_subscribers_reached: ended(STATUS.failedPrecondition, 'maximum-subscribers-reached', undefined, group),
  too_many_failures: ended(STATUS.unauthenticated, null),
  not_ready: NOT_READY,
  store_closed: NOT_READY,
  writer_stopped: NOT_READY,
  sync_failed: NOT_READY,
  too_busy: BUSY,
  storage_unreachable: BUSY,
  storage_throttled: BUSY,
  commit_contended: BUSY,
  write_expired: BUSY,
  storage_denied: BUSY,
  bucket_not_found: BUSY,
  wrong_region: BUSY,
  clock_skewed: BUSY,
  no_leader: LEADERLESS,
  not_leader: LEADERLESS,
  commit_outcome_unknown: ended(STATUS.aborted, null, undefined),
  aborted: ended(STATUS.cancelled, null),
  disk_full: ended(STATUS.resourceExhausted, null),
  invalid_stream_name: INVALID,
  bad_tags: INVALID,
  stream_is_view: INVALID,
  condition_too_broad: INVALID,
  invalid_event: INVALID,
  invalid_expected_version: INVALID,
  invalid_metadata: INVALID,
  invalid_mark: INVALID,
  event_too_large: INVALID,
  batch_too_large: INVALID,
  invalid_count: INVALID,
  page_too_large: INVALID,
  invalid_position: INVALID,
  invalid_event_number: INVALID,
  bad_request: INVALID,
  invalid_user: INVALID,
  invalid_expression: INVALID,
  unsupported_expression: INVALID,
  expression_too_large: INVALID,
};

/** Sends a client to the member that leads. */
export function notLeader({ address, port }: NodeAddress): GrpcError {
  return new GrpcError(STATUS.notFound, 'Leader info available', {
    exception: NOT_LEADER,
    'leader-endpoint-host': address,
    'leader-endpoint-port': String(port),
  });
}

export function isNotLeader(error: unknown): boolean {
  return error instanceof GrpcError && error.ending.trailers['exception'] === NOT_LEADER;
}

/**
 * How a call ends that failed with this. Services throw a GrpcError of their own where what went wrong has another name
 * with them. Anonymous callers without a right get `access-denied`, too: `not_authenticated` is for credentials that
 * are wrong, before the method runs (`isLogin`).
 */
export function endingOf(error: unknown, app: App, path: string, isLogin = false): GrpcEnding {
  if (error instanceof GrpcError) return error.ending;
  if (error instanceof MalformedMessage) return UNHANDLED;
  if (isSkuaError(error, 'not_authenticated'))
    return isLogin ? { status: STATUS.unauthenticated, message: 'Unauthenticated', trailers: {} } : DENIED(error);
  if (error instanceof SkuaError) {
    const found = ENDINGS[error.code];
    if (found !== undefined) return found(error);
  }
  app.world.log.error('a call of gRPC failed', { path, error });
  return UNHANDLED;
}
