import { SkuaError } from '../../core/base/errors.ts';
import { isAdministrator, isAnonymous, isBackupKeeper, isOperator, SYSTEM } from '../../core/base/principal.ts';
import type { Principal } from '../../core/security/api.ts';
import type { Access, App, Call } from './context.ts';

/** Throws unless the caller may use an operation. */
export function requireAccess(call: Call, app: App, access: Access): void {
  if (isAllowed(call.principal, app, access)) return;
  if (access === 'members' && isAnonymous(call.principal)) throw notAMember('This is for the members of the cluster.');
  throw refusal(call.principal, MISSING[access] ?? 'Access denied.');
}

function isAllowed(principal: Principal, { options }: App, access: Access): boolean {
  switch (access) {
    case 'probe':
    case 'sender':
    case 'anyone':
    // The handlers ask the access list of the stream.
    case 'stream':
      return true;
    case 'gossip':
      return options.allowAnonymousGossip || !isAnonymous(principal);
    case 'statistics':
      return options.allowAnonymousEndpointAccess || !isAnonymous(principal);
    case 'authenticated':
    // The handlers compare the user in the path with the caller.
    case 'self':
      return !isAnonymous(principal);
    case 'operators':
      return isOperator(principal);
    case 'backup':
      return isBackupKeeper(principal);
    case 'administrators':
      return isAdministrator(principal);
    case 'members':
      return principal === SYSTEM;
  }
}

/** For a caller that claims to be a member, or would have to be one, and proves nothing. */
export function notAMember(what: string): SkuaError {
  return new SkuaError(
    'not_a_member',
    `${what} A member authenticates with its certificate, or with the ClusterSecret that all members share.`,
  );
}

const MISSING: Readonly<Partial<Record<Access, string>>> = {
  operators:
    'Only members of $ops and $admins may do this. An administrator can add the user to a group with PUT /users/{login}.',
  backup:
    'Only members of $backup and $admins may read the files of the node, which contain all events and users. An administrator can add the user to the group $backup with PUT /users/{login}.',
  administrators: 'Only members of $admins may do this.',
  members: 'Only the members of the cluster themselves may do this.',
};

/**
 * The answer to a caller that may not do something: to name a user where none was named, else why that user is not
 * enough.
 */
export function refusal(principal: Principal, why: string, data: Record<string, unknown> = {}): SkuaError {
  // Any caller may cause as many refusals as a connection carries, and to note where one was made takes a quarter of
  // the time of each; that note has no reader.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = isAnonymous(principal)
    ? new SkuaError(
        'not_authenticated',
        'This requires a login. Send a user name and password as Basic credentials.',
        data,
      )
    : new SkuaError('access_denied', why, data);
  Error.stackTraceLimit = stackTraceLimit;
  return error;
}
