import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { NewUser, User, UserChange } from '../../core/security/api.ts';
import { isBlankPassword } from '../../core/security/format/user.ts';
import { timestampText } from '../../core/base/time.ts';
import type {
  CurrentUserDocument,
  IdentityDocument,
  SuccessMembers,
  UserChangedDocument,
  UserDetailsDocument,
  UserDocument,
  UserMembers,
  UsersDocument,
} from '../documents/users.ts';
import { readJson } from '../http/body.ts';
import type { App, Call, Reply } from '../http/context.ts';
import { commonHeaders } from '../http/reply.ts';
import { baseOf, escapeName } from '../http/url.ts';

/** Bodies of the users API. Members are found in any case; those that mean nothing are ignored. */

/** Largest body of a request about a user. */
export const USER_BODY_BYTES_MAX = 65_536;

type Members = ReadonlyMap<string, unknown>;

export async function newUserOf(call: Call, app: App): Promise<NewUser> {
  const members = await membersOf(call, app);
  return {
    loginName: textOf(members, 'loginName'),
    fullName: fullNameOf(members),
    groups: groupsOf(members),
    password: textOf(members, 'password'),
  };
}

/** What the body leaves out is left out here. */
export async function userChangeOf(call: Call, app: App): Promise<UserChange> {
  const members = await membersOf(call, app);
  // A password is not changed here and, as others that mean nothing here, not looked at; but an empty one is refused
  // wherever it is given.
  const password = members.get('password');
  if (typeof password === 'string' && isBlankPassword(password))
    throw new SkuaError(
      'invalid_user',
      'The password is empty or only white space. Leave it out: a password is set with command/reset-password.',
      { member: 'password' },
    );
  return {
    ...(members.has('fullname') && { fullName: fullNameOf(members) }),
    ...(members.has('groups') && { groups: groupsOf(members) }),
  };
}

export async function newPasswordOf(call: Call, app: App): Promise<string> {
  return textOf(await membersOf(call, app), 'newPassword');
}

export async function passwordChangeOf(
  call: Call,
  app: App,
): Promise<{ readonly currentPassword: string; readonly newPassword: string }> {
  const members = await membersOf(call, app);
  return { currentPassword: textOf(members, 'currentPassword'), newPassword: textOf(members, 'newPassword') };
}

async function membersOf(call: Call, app: App): Promise<Members> {
  const value = await jsonOf(call, app);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SkuaError('bad_json', 'The body must be a JSON object.');
  return new Map(Object.entries(value).map(([name, member]) => [name.toLowerCase(), member]));
}

async function jsonOf(call: Call, app: App): Promise<unknown> {
  try {
    return await readJson(call, app, USER_BODY_BYTES_MAX);
  } catch (error) {
    if (!isSkuaError(error, 'body_too_large')) throw error;
    throw new SkuaError(
      'body_too_large',
      `The request body exceeds ${USER_BODY_BYTES_MAX} bytes, more than a user needs.`,
      { limit: USER_BODY_BYTES_MAX },
    );
  }
}

function textOf(members: Members, name: string): string {
  const value = members.get(name.toLowerCase()) ?? null;
  if (value === null)
    throw new SkuaError('invalid_user', `The body has no ${name}. Give it as a string.`, { member: name });
  if (typeof value !== 'string') throw new SkuaError('invalid_user', `${name} must be a string.`, { member: name });
  return value;
}

function fullNameOf(members: Members): string | null {
  const value = members.get('fullname') ?? null;
  if (value !== null && typeof value !== 'string')
    throw new SkuaError('invalid_user', 'fullName must be a string.', { member: 'fullName' });
  return value;
}

function groupsOf(members: Members): readonly string[] {
  const value = members.get('groups') ?? [];
  if (Array.isArray(value) && value.every((group) => typeof group === 'string')) return value;
  throw new SkuaError('invalid_user', 'groups must be an array of strings.', { member: 'groups' });
}

/** Documents of the users API, member by member as the reference has them. */

/** Numbers that the reference's replies end with. They mean nothing to clients. */
const UPDATE_TYPE_ID = 259;
const DETAILS_TYPE_ID = 260;
const LIST_TYPE_ID = 261;
const CURRENT_TYPE_ID = 262;

/** Only administrators may see the list, and they alone learn the formats of passwords. */
export function listReply(call: Call, users: readonly User[], hasFormats: boolean): Reply {
  return jsonReply(
    call,
    200,
    succeeded(
      users.map((user) => ({ ...detailsOf(call, user), ...(hasFormats && { passwordFormat: user.passwordFormat }) })),
      LIST_TYPE_ID,
    ) satisfies UsersDocument,
  );
}

export function detailsReply(call: Call, user: User): Reply {
  return jsonReply(call, 200, succeeded(detailsOf(call, user), DETAILS_TYPE_ID) satisfies UserDetailsDocument);
}

/** The caller's own record: without links, and with the time of its last change. */
export function currentReply(call: Call, user: User): Reply {
  return jsonReply(
    call,
    200,
    succeeded(
      fieldsOf(user, offsetTime(user.updatedMs, user.updatedTicks ?? 0)),
      CURRENT_TYPE_ID,
    ) satisfies CurrentUserDocument,
  );
}

export function updatedReply(call: Call, loginName: string): Reply {
  return jsonReply(call, 200, updated(loginName));
}

export function createdReply(call: Call, loginName: string): Reply {
  return jsonReply(call, 201, updated(loginName), { location: userUrl(call, loginName) });
}

/** The caller's login and groups: default values are left out. */
export function identityReply(call: Call, loginName: string | null, groups: readonly string[], nowMs: number): Reply {
  return jsonReply(call, 200, {
    data: { loginName, fullName: loginName, groups, dateLastUpdated: offsetTime(nowMs, 0) },
    success: true,
  } satisfies IdentityDocument);
}

function updated(loginName: string): UserChangedDocument {
  return { loginName, success: true, error: 'Success', msgTypeId: UPDATE_TYPE_ID, label: 'Other' };
}

function succeeded<D>(data: D, msgTypeId: number): SuccessMembers & { readonly data: D } {
  return { data, success: true, error: 'Success', msgTypeId, label: 'Other' };
}

function fieldsOf({ loginName, fullName, groups, isDisabled }: User, dateLastUpdated: string | null): UserMembers {
  return { loginName, fullName, groups, dateLastUpdated, disabled: isDisabled };
}

function detailsOf(call: Call, user: User): UserDocument {
  const url = userUrl(call, user.loginName);
  const toggle = user.isDisabled ? 'enable' : 'disable';
  const links = [
    { href: `${url}/command/reset-password`, rel: 'reset-password' },
    { href: `${url}/command/change-password`, rel: 'change-password' },
    { href: url, rel: 'edit' },
    { href: url, rel: 'delete' },
    { href: `${url}/command/${toggle}`, rel: toggle },
  ];
  return { ...fieldsOf(user, null), links };
}

function userUrl(call: Call, loginName: string): string {
  return `${baseOf(call)}/users/${escapeName(loginName)}`;
}

/** With the offset written out: `2031-04-02T09:15:30.1234567+00:00`. */
function offsetTime(ms: number, ticks: number): string {
  const wholeMs = Math.floor(ms);
  return timestampText(wholeMs, ticks).replace(/Z$/, '+00:00');
}

const REASONS: Readonly<Record<number, string>> = { 200: 'OK', 201: 'Created' };

function jsonReply(call: Call, status: number, value: unknown, more: Record<string, string> = {}): Reply {
  const headers = { ...commonHeaders(call.methods), 'content-type': 'application/json; charset=utf-8', ...more };
  return { status, statusText: REASONS[status]!, headers, body: JSON.stringify(value, null, 2) };
}
