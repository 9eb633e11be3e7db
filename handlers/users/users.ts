import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { Users } from '../../core/security/api.ts';
import { refusal } from '../http/authorization.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import type { Operation } from '../http/route.ts';
import { decodeSegment } from '../http/url.ts';
import { USER_DOCS } from '../openapi/user-paths.ts';
import { changePassword as changeOwnPassword, create, mayLookAt, unreachable, update } from './user-changes.ts';
import {
  createdReply,
  currentReply,
  detailsReply,
  identityReply,
  listReply,
  newPasswordOf,
  newUserOf,
  passwordChangeOf,
  updatedReply,
  userChangeOf,
} from './user-bodies.ts';

/** Users over HTTP. Absent while security is off. */

/**
 * GET `/users`; with `?passwordFormats=true` each with how its password is stored, which the reference's answer does
 * not have.
 */
const listUsers: Handler = async (call, app) => {
  const users = usersOf(call, app);
  negotiate(call, JSON_ONLY);
  return listReply(call, await users.list(), booleanParameter(call, 'passwordFormats'));
};

function booleanParameter(call: Call, name: string): boolean {
  const text = queryOf(call, name) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new SkuaError('bad_request', `${name} must be true or false.`);
}

/** GET `/users/{login}`: for administrators, and for users about themselves. */
const userDetails: Handler = async (call, app) => {
  const users = usersOf(call, app);
  negotiate(call, JSON_ONLY);
  const login = loginOf(call);
  mayLookAt(call, login);
  return detailsReply(call, await users.get(login));
};

/** GET `/users/$current`. */
const currentUser: Handler = async (call, app) => {
  const users = usersOf(call, app);
  negotiate(call, JSON_ONLY);
  const { name } = call.principal;
  if (name === null) throw refusal(call.principal, '');
  return currentReply(call, await users.get(name));
};

/** POST `/users`. */
const createUser: Handler = async (call, app) => {
  const users = usersOf(call, app);
  negotiate(call, JSON_ONLY);
  const user = await newUserOf(call, app);
  await written(create(call, users, user));
  return createdReply(call, user.loginName);
};

/**
 * PUT `/users/{login}`: full name and groups as given; what is left out stays as it is, so that `{}` changes nothing.
 */
const updateUser: Handler = (call, app) =>
  change(call, app, async (users, login) => update(call, users, login, await userChangeOf(call, app)));

const deleteUser: Handler = (call, app) => change(call, app, (users, login) => users.delete(login));
const enableUser: Handler = (call, app) => change(call, app, (users, login) => users.enable(login));
const disableUser: Handler = (call, app) => change(call, app, (users, login) => users.disable(login));
const resetPassword: Handler = (call, app) =>
  change(call, app, async (users, login) => users.resetPassword(login, await newPasswordOf(call, app)));

/** POST `/users/{login}/command/change-password`: by the user alone, who proves to know the present one. */
const changePassword: Handler = (call, app) =>
  change(call, app, async (users, login) => {
    requireSelf(call, login);
    const { currentPassword, newPassword } = await passwordChangeOf(call, app);
    await changeOwnPassword(call, app, users, login, currentPassword, newPassword);
  });

function requireSelf({ principal }: Call, login: string): void {
  if (login !== principal.name)
    throw refusal(
      principal,
      'Users can change only their own password. An administrator can set a new one with reset-password.',
    );
}

/** GET `/admin/login`: the caller's login and groups. */
export const loginEcho: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  return identityReply(call, call.principal.name, call.principal.roles, app.world.clock.nowMs());
};

async function change(call: Call, app: App, made: (users: Users, login: string) => Promise<void>): Promise<Reply> {
  const users = usersOf(call, app);
  negotiate(call, JSON_ONLY);
  const login = loginOf(call);
  await written(made(users, login));
  return updatedReply(call, login);
}

/** Versions of the user's stream are no business of the caller's. */
async function written(change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!isSkuaError(error, 'wrong_expected_version')) throw error;
    throw new SkuaError('too_busy', 'The user keeps being changed by others. Try again.');
  }
}

function usersOf(call: Call, app: App): Users {
  if (app.security !== null) return app.security.users;
  call.methods = '';
  throw new SkuaError(
    'not_found',
    `There is nothing at ${call.path}: this node runs without security, so it has no users.`,
  );
}

/** The user in the path. */
function loginOf(call: Call): string {
  try {
    return decodeSegment(call.params['login']!);
  } catch (error) {
    if (!isSkuaError(error, 'invalid_stream_name')) throw error;
    throw unreachable();
  }
}

const USER = '/users/:login';
const UPDATE = operation('administrators', 'writes', updateUser, USER_DOCS.update, 'user.update');
const DELETE = operation('administrators', 'writes', deleteUser, USER_DOCS.delete, 'user.delete');

/** The paths of users. `$current` stands escaped, as `$all` does in streams/routes.ts. */
export const USERS_ROUTES = area({ tag: 'Users', feature: 'users' }, [
  {
    path: '/users',
    methods: 'GET, POST, OPTIONS',
    operations: {
      GET: operation('administrators', 'here', inRoom(listUsers), USER_DOCS.list),
      POST: operation('administrators', 'writes', createUser, USER_DOCS.create, 'user.create'),
    },
  },
  {
    path: '/users/%24current',
    methods: 'GET, PUT, DELETE, GET, OPTIONS',
    operations: {
      GET: operation('authenticated', 'here', currentUser, USER_DOCS.current),
      PUT: named('$current', UPDATE),
      DELETE: named('$current', DELETE),
    },
  },
  {
    path: USER,
    methods: 'GET, PUT, DELETE, OPTIONS',
    operations: { GET: operation('self', 'here', userDetails, USER_DOCS.details), PUT: UPDATE, DELETE },
  },
  {
    path: `${USER}/command/enable`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('administrators', 'writes', enableUser, USER_DOCS.enable, 'user.enable') },
  },
  {
    path: `${USER}/command/disable`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('administrators', 'writes', disableUser, USER_DOCS.disable, 'user.disable') },
  },
  {
    path: `${USER}/command/reset-password`,
    methods: 'POST, OPTIONS',
    operations: {
      POST: operation('administrators', 'writes', resetPassword, USER_DOCS.resetPassword, 'user.reset-password'),
    },
  },
  {
    path: `${USER}/command/change-password`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('self', 'writes', changePassword, USER_DOCS.changePassword, 'user.change-password') },
  },
]);

/** An operation of a path whose user is a literal. */
function named(login: string, { access, place, handler, doc, audit }: Operation): Operation {
  return operation(
    access,
    place,
    (call, app) => {
      call.params = { login };
      noteForAudit(call, { target: login });
      return handler(call, app);
    },
    doc,
    audit,
  );
}
