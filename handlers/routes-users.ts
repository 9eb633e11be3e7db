import { USER_DOCS as DOCS } from './openapi-users.ts';
import { operation } from './route.ts';
import type { Operation, Route } from './route.ts';
import { changePassword, createUser, currentUser, deleteUser, disableUser, enableUser, listUsers, resetPassword, updateUser, userDetails } from './users.ts';

const USER = '/users/:login';
const UPDATE = operation('administrators', updateUser, DOCS.update);
const DELETE = operation('administrators', deleteUser, DOCS.delete);

/** The paths of users (http-api.md section 6). `$current` stands escaped, as `$all` does in routes-streams.ts. */
export const USERS_ROUTES: readonly Route[] = [
  { path: '/users', methods: 'GET, POST, OPTIONS', operations: { GET: operation('administrators', listUsers, DOCS.list), POST: operation('administrators', createUser, DOCS.create) } },
  {
    path: '/users/%24current', methods: 'GET, PUT, DELETE, GET, OPTIONS',
    operations: { GET: operation('authenticated', currentUser, DOCS.current), PUT: named('$current', UPDATE), DELETE: named('$current', DELETE) },
  },
  { path: USER, methods: 'GET, PUT, DELETE, OPTIONS', operations: { GET: operation('self', userDetails, DOCS.details), PUT: UPDATE, DELETE } },
  { path: `${USER}/command/enable`, methods: 'POST, OPTIONS', operations: { POST: operation('administrators', enableUser, DOCS.enable) } },
  { path: `${USER}/command/disable`, methods: 'POST, OPTIONS', operations: { POST: operation('administrators', disableUser, DOCS.disable) } },
  { path: `${USER}/command/reset-password`, methods: 'POST, OPTIONS', operations: { POST: operation('administrators', resetPassword, DOCS.resetPassword) } },
  { path: `${USER}/command/change-password`, methods: 'POST, OPTIONS', operations: { POST: operation('self', changePassword, DOCS.changePassword) } },
];

/** An operation of a path whose user is a literal. */
function named(login: string, { access, handler, doc }: Operation): Operation {
  return operation(access, (call, app) => {
    call.params = { login };
    return handler(call, app);
  }, doc);
}
