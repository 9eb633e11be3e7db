import type { AuditAction } from '../../../core/ports/audit.ts';
import { isSkuaError } from '../../../core/base/errors.ts';
import type { User, Users } from '../../../core/security/api.ts';
import { noteForAudit } from '../../http/context.ts';
import type { Access, App } from '../../http/context.ts';
import { changePassword, create, mayLookAt, update } from '../../users/user-changes.ts';
import { GrpcError, send, serverStreaming, STATUS, unary } from '../call.ts';
import type { GrpcCall, GrpcMethod, GrpcService, MethodShape } from '../call.ts';
import { UsersService, writeDetailsResp } from '../messages/users.ts';
import type { DetailsResp } from '../messages/users.ts';
import { MalformedMessage } from '../messages/wire.ts';

/** Users, as `/users` over HTTP. Null while security is off: there are none then. */
export function users({ security }: App): GrpcService | null {
  return security === null ? null : { name: UsersService.name, methods: methodsOf(security.users) };
}

function methodsOf(all: Users): readonly GrpcMethod[] {
  const { methods } = UsersService;
  return [
    change(methods.Create, 'user.create', 'administrators', (options, { call }) => create(call, all, options)),
    // What was not sent can't be told from what is empty: both are set. The password is not looked at.
    change(methods.Update, 'user.update', 'administrators', ({ loginName, fullName, groups }, { call }) =>
      update(call, all, loginName, { fullName, groups }),
    ),
    change(methods.Delete, 'user.delete', 'administrators', ({ loginName }) => all.delete(loginName)),
    change(methods.Disable, 'user.disable', 'administrators', ({ loginName }) => all.disable(loginName)),
    change(methods.Enable, 'user.enable', 'administrators', ({ loginName }) => all.enable(loginName)),
    serverStreaming(methods.Details, { place: 'here', access: 'authenticated' }, (request, call) =>
      details(all, request, call),
    ),
    // Any caller may: one that knows the present password could log in as that user just as well.
    change(
      methods.ChangePassword,
      'user.change-password',
      'authenticated',
      ({ loginName, currentPassword, newPassword }, { call, app }) =>
        changePassword(call, app, all, loginName, currentPassword, newPassword),
    ),
    change(methods.ResetPassword, 'user.reset-password', 'administrators', ({ loginName, newPassword }) =>
      all.resetPassword(loginName, newPassword),
    ),
  ];
}

interface Change<Options> {
  readonly options?: Options | undefined;
}

/** A change to one user, answered with nothing. */
function change<Options extends { readonly loginName: string }>(
  shape: MethodShape<Change<Options>, object>,
  audit: AuditAction,
  access: Access,
  made: (options: Options, call: GrpcCall) => Promise<void>,
): GrpcMethod {
  return unary(shape, { place: 'writes', access, audit }, async ({ options }, call) => {
    noteForAudit(call.call, { target: options?.loginName ?? null });
    if (options === undefined) throw new MalformedMessage('options are not set');
    await written(made(options, call), options.loginName);
    return {};
  });
}

/** Versions of the user's stream are no business of the caller's. */
async function written(made: Promise<void>, loginName: string): Promise<void> {
  try {
    await made;
  } catch (error) {
    if (!isSkuaError(error, 'wrong_expected_version')) throw error;
    throw new GrpcError(
      STATUS.deadlineExceeded,
      'Try again.',
      { exception: 'user-conflict', 'login-name': loginName },
      error,
    );
  }
}

/** One user, or all of them: for administrators, and for users about themselves. */
async function details(
  all: Users,
  { options }: { readonly options?: { readonly loginName: string } | undefined },
  call: GrpcCall,
): Promise<void> {
  if (options === undefined) throw new MalformedMessage('options are not set');
  const { loginName } = options;
  const isOne = loginName !== '';
  mayLookAt(call.call, isOne ? loginName : null);
  for (const user of isOne ? [await all.get(loginName)] : await all.list())
    await send(call, detailsOf(user), writeDetailsResp);
}

function detailsOf({ loginName, fullName, groups, updatedMs, updatedTicks = 0, isDisabled }: User): DetailsResp {
  const ticksSinceEpoch = BigInt(Math.floor(updatedMs)) * 10_000n + BigInt(updatedTicks);
  return {
    userDetails: {
      loginName,
      fullName: fullName ?? '',
      groups,
      lastUpdated: { ticksSinceEpoch },
      disabled: isDisabled,
    },
  };
}
