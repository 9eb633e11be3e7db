import { SkuaError } from '../core/base/errors.ts';
import type { ErrorCode } from '../core/base/errors.ts';
import { isAnonymous } from '../core/base/principal.ts';
import { authenticate } from './authentication.ts';
import type { GrpcMethod } from './grpc/call.ts';
import { refusal, requireAccess } from './http/authorization.ts';
import type { Access, App, Call } from './http/context.ts';
import type { Operation } from './http/route.ts';

/**
 * What every request passes by its head alone, before anything of its body or its messages is read: a caller without
 * rights is refused here, and holds nothing.
 */

/**
 * Tells the audit what is asked for, also where that is refused, and throws, or rejects, unless the caller may ask for
 * it.
 */
export function enter(
  call: Call,
  app: App,
  { access, audit }: Pick<Operation, 'access' | 'audit'>,
): void | Promise<void> {
  if (audit !== undefined) call.audited = { action: audit, target: targetOf(call), details: null };
  return admit(call, app, access);
}

/** The same for a method of gRPC. What a message names the method adds to the audit later. */
export function enterMethod(call: Call, app: App, { access, audit, refused }: GrpcMethod): void | Promise<void> {
  if (audit !== undefined) call.audited = { action: audit, target: null, details: null };
  const told = (error: unknown): never => {
    throw refused?.(error, { call, app }) ?? error;
  };
  try {
    requireLogin(call, app, access);
    return admit(call, app, access)?.catch(told);
  } catch (error) {
    told(error);
  }
}

/**
 * As `requireAccess`; but a member of a cluster refuses no caller before it has seen whether the user was changed
 * elsewhere a moment ago.
 */
export function admit(call: Call, app: App, access: Access): void | Promise<void> {
  call.entered = access;
  try {
    requireAccess(call, app, access);
  } catch (error) {
    const looking = isAnonymous(call.principal) ? null : (app.features.cluster?.upToDate() ?? null);
    if (looking === null) throw error;
    return looking.then(() => admitChanged(call, app, access, error));
  }
}

async function admitChanged(call: Call, app: App, access: Access, refused: unknown): Promise<void> {
  if ((await app.security?.authenticator.hasChanged?.(call.principal)) !== true) throw refused;
  call.principal = await authenticate(call, app);
  requireAccess(call, app, access);
}

/**
 * Refuses the anonymous caller what every stream refuses him, whichever it is. For what names its stream in what is
 * still to be read.
 */
export function requireLogin(call: Call, { security }: App, access: Access): void {
  if (access === 'stream' && isAnonymous(call.principal) && security?.access.allowsAnonymous === false)
    throw refusal(call.principal, '');
}

/** Codes of requests and gRPC calls that could have been answered, and were refused for want of rights or of room. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'not_authenticated',
  'not_a_member',
  'access_denied',
  'foreign_origin',
  'foreign_host',
  'too_many_failures',
  'too_busy',
]);

/** Counts what was refused, by kind; other errors are none. */
export function countRefusal({ world: { meter } }: App, error: unknown): void {
  const cause = error instanceof SkuaError ? error : (error as Partial<Error> | null)?.cause;
  if (cause instanceof SkuaError && REFUSALS.has(cause.code))
    meter.count('eventstore_requests_refused_total', 1, { kind: cause.code });
}

/** What the variables of the path name, as people write it. */
function targetOf({ params }: Call): string | null {
  const [named] = Object.values(params);
  if (named === undefined) return null;
  try {
    return decodeURIComponent(named);
  } catch {
    return named;
  }
}
