import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { ErrorCode } from '../../core/base/errors.ts';
import type { Violation } from '../../core/webhook/api.ts';
import type { RpcStatusDocument } from '../documents/connectors.ts';
import type { App, Call, Reply } from '../http/context.ts';
import { failure, outcomeOf } from '../http/problem-document.ts';

/** Failures of connector routes, which have a body of their own: `{code, message, details}`. */

/** Numbers of gRPC's status codes. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

const CODES: Readonly<Partial<Record<ErrorCode, number>>> = {
  connector_state: FAILED_PRECONDITION,
  secret_refused: FAILED_PRECONDITION,
};
const CODES_BY_STATUS: Readonly<Record<number, number>> = {
  400: INVALID_ARGUMENT,
  401: UNAUTHENTICATED,
  403: PERMISSION_DENIED,
  404: NOT_FOUND,
  405: UNIMPLEMENTED,
  406: INVALID_ARGUMENT,
  409: ALREADY_EXISTS,
  413: RESOURCE_EXHAUSTED,
  415: INVALID_ARGUMENT,
  421: FAILED_PRECONDITION,
  429: RESOURCE_EXHAUSTED,
  503: UNAVAILABLE,
  507: RESOURCE_EXHAUSTED,
};
const TYPE_PREFIX = 'type.googleapis.com/google.rpc.';

/** As every failure, but for the body. */
export function connectorFailure(error: unknown, call: Call, app: App): Reply {
  const reply = failure(error, call, app);
  return {
    ...reply,
    headers: { ...reply.headers, 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(statusOf(error, reply.status, call)),
  };
}

function statusOf(error: unknown, status: number, call: Call): RpcStatusDocument {
  if (!(error instanceof SkuaError) || outcomeOf(error.code).status !== status || status === 500)
    return {
      code: INTERNAL,
      message: "The request failed inside the server. See the server's log for the reason.",
      details: [],
    };
  const code = CODES[error.code] ?? CODES_BY_STATUS[status] ?? INTERNAL;
  return { code, message: messageOf(error), details: detailsOf(error, code, call.params['connector'] ?? '') };
}

/** For several failures at once their JSON, by field, as the reference has it. */
function messageOf(error: SkuaError): string {
  const violations = violationsOf(error);
  if (violations.length === 0) return error.message;
  const byField = new Map<string, string[]>();
  for (const { field, description } of violations) byField.set(field, [...(byField.get(field) ?? []), description]);
  return JSON.stringify(Object.fromEntries(byField));
}

function violationsOf(error: SkuaError): readonly Violation[] {
  return isSkuaError(error, 'invalid_connector') ? (error.data.violations ?? []) : [];
}

function detailsOf(error: SkuaError, code: number, connectorId: string): RpcStatusDocument['details'] {
  const { message } = error;
  const violations = violationsOf(error);
  switch (code) {
    case INVALID_ARGUMENT:
      return [
        {
          '@type': `${TYPE_PREFIX}BadRequest`,
          fieldViolations:
            violations.length > 0
              ? violations
              : [{ field: error.code === 'bad_json' ? 'body' : '', description: message }],
        },
      ];
    case UNAUTHENTICATED:
      return [{ '@type': `${TYPE_PREFIX}ErrorInfo`, reason: 'UNAUTHENTICATED', domain: 'authorization' }];
    case PERMISSION_DENIED:
      return [{ '@type': `${TYPE_PREFIX}ErrorInfo`, reason: 'PERMISSION_DENIED', domain: 'authorization' }];
    case ALREADY_EXISTS:
      return [
        {
          '@type': `${TYPE_PREFIX}ResourceInfo`,
          resourceType: 'Connector',
          resourceName: connectorId,
          description: message,
        },
      ];
    case NOT_FOUND:
      return error.code !== 'connector_not_found'
        ? []
        : [
            {
              '@type': `${TYPE_PREFIX}ResourceInfo`,
              resourceType: 'Connector',
              resourceName: connectorId,
              description: message,
            },
          ];
    case FAILED_PRECONDITION:
      return [
        {
          '@type': `${TYPE_PREFIX}PreconditionFailure`,
          violations: [{ type: error.code.toUpperCase(), subject: connectorId, description: message }],
        },
      ];
    default:
      return [];
  }
}
