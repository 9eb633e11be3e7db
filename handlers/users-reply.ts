import { timestampText } from '../core/time.ts';
import type { User } from '../core/security/api.ts';
import { corsHeaders } from './cors.ts';
import type { Call } from './context.ts';
import { baseOf, escapeName } from './links.ts';

/** Documents of the users API, member by member as in http-api.md section 6. */

/** Numbers that the reference's replies end with. They mean nothing to clients. */
const UPDATE_TYPE_ID = 259;
const DETAILS_TYPE_ID = 260;
const LIST_TYPE_ID = 261;
const CURRENT_TYPE_ID = 262;

export function listReply(call: Call, users: readonly User[]): Response {
  return jsonReply(call, 200, succeeded(users.map((user) => detailsOf(call, user)), LIST_TYPE_ID));
}

export function detailsReply(call: Call, user: User): Response {
  return jsonReply(call, 200, succeeded(detailsOf(call, user), DETAILS_TYPE_ID));
}

/** The caller's own record: without links, and with the time of its last change. */
export function currentReply(call: Call, user: User): Response {
  return jsonReply(call, 200, succeeded(fieldsOf(user, offsetTime(user.updatedMs, user.updatedTicks ?? 0)), CURRENT_TYPE_ID));
}

export function updatedReply(call: Call, loginName: string): Response {
  return jsonReply(call, 200, updated(loginName));
}

export function createdReply(call: Call, loginName: string): Response {
  return jsonReply(call, 201, updated(loginName), { location: userUrl(call, loginName) });
}

/** Who the caller is: default values are left out. */
export function identityReply(call: Call, loginName: string | null, groups: readonly string[], nowMs: number): Response {
  return jsonReply(call, 200, { data: { loginName, fullName: loginName, groups, dateLastUpdated: offsetTime(nowMs, 0) }, success: true });
}

function updated(loginName: string) {
  return { loginName, success: true, error: 'Success', msgTypeId: UPDATE_TYPE_ID, label: 'Other' };
}

function succeeded(data: unknown, msgTypeId: number) {
  return { data, success: true, error: 'Success', msgTypeId, label: 'Other' };
}

function fieldsOf({ loginName, fullName, groups, isDisabled }: User, dateLastUpdated: string | null) {
  return { loginName, fullName, groups, dateLastUpdated, disabled: isDisabled };
}

function detailsOf(call: Call, user: User) {
  const url = userUrl(call, user.loginName);
  const toggle = user.isDisabled ? 'enable' : 'disable';
  const links = [
    { href: `${url}/command/reset-password`, rel: 'reset-password' }, { href: `${url}/command/change-password`, rel: 'change-password' },
    { href: url, rel: 'edit' }, { href: url, rel: 'delete' }, { href: `${url}/command/${toggle}`, rel: toggle },
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

function jsonReply(call: Call, status: number, value: unknown, more: Record<string, string> = {}): Response {
  const headers = { ...corsHeaders(call.methods), 'content-type': 'application/json; charset=utf-8', ...more };
  return new Response(JSON.stringify(value, null, 2), { status, statusText: REASONS[status]!, headers });
}
