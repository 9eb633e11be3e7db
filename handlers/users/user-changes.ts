import { SkuaError } from '../../core/base/errors.ts';
import type { NewUser, UserChange, Users } from '../../core/security/api.ts';
import { isAdministrator } from '../../core/base/principal.ts';
import { refusal } from '../http/authorization.ts';
import { noteForAudit } from '../http/context.ts';
import type { App, Call } from '../http/context.ts';

/** What is done to users, whichever protocol asks for it: with what the audit records, and what no protocol allows. */

export async function create(call: Call, users: Users, user: NewUser): Promise<void> {
  noteForAudit(call, { target: user.loginName, details: { groups: user.groups } });
  if (user.loginName === '.' || user.loginName === '..') throw unreachable();
  if (user.loginName === CURRENT)
    throw new SkuaError(
      'invalid_user',
      `A user can't be named '${CURRENT}', which stands for whoever asks. Choose another name.`,
    );
  await users.create(user);
}

export async function update(call: Call, users: Users, login: string, change: UserChange): Promise<void> {
  if (change.groups !== undefined) noteForAudit(call, { details: { groups: change.groups } });
  await users.update(login, change);
}

/** Failures count as those of a login from where the call comes from. */
export function changePassword(
  call: Call,
  { server }: App,
  users: Users,
  login: string,
  currentPassword: string,
  newPassword: string,
): Promise<void> {
  return users.changePassword(
    login,
    currentPassword,
    newPassword,
    server.addressOf?.(call.request) ?? null,
    server.isLocal?.(call.request),
  );
}

/** Throws unless the caller is the user, or an administrator. Null stands for all users. */
export function mayLookAt({ principal }: Call, login: string | null): void {
  if (login !== principal.name && !isAdministrator(principal))
    throw refusal(principal, 'Only members of $admins may look at other users.');
}

/** In a path: the caller. */
const CURRENT = '$current';

export function unreachable(): SkuaError {
  return new SkuaError(
    'invalid_user',
    "A user can't be named '.' or '..': URLs resolve these away. Choose another name.",
  );
}
