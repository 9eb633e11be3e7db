import { formatMemberAppend, readAppendResult } from '../../core/cluster/member-append.ts';
import type { MemberAppends } from '../../core/cluster/member-writes.ts';
import { type ErrorCode, SkuaError } from '../../core/errors.ts';
import { ADMIN_REPLY_BYTES_MAX, type AdminCalls } from '../../core/ports/admin-calls.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import { decodeText } from '../../core/text.ts';
import type { PeerClient } from './peer-client.ts';
import { codeOf } from './peer-exchange.ts';
import type { PeerReply } from './peer-exchange.ts';

/** What parts of a member ask of another one over its connections to it: the admin interface for auto-scavenge, appends for what it writes for itself. */

const JSON_REPLY = { accept: 'application/json' };
const JSON_BODY = { ...JSON_REPLY, 'content-type': 'application/json' };
/** Bytes of the answer to an append. */
const RESULT_BYTES_MAX = 4_096;
/** Longest explanation of another member that is passed on. */
const DETAIL_LENGTH_MAX = 500;

/** Orders may be repeated, and so may questions. */
export function adminCallsOf(client: Pick<PeerClient, 'request'>): AdminCalls {
  return {
    request: async (node, method, path, timeoutMs) => {
      const { status, body } = await client.request({ node, method, path, headers: JSON_REPLY, body: null, as: 'member', timeoutMs, isRepeatable: true });
      if (body.length > ADMIN_REPLY_BYTES_MAX) throw new SkuaError('member_refused', `The answer of the member ${nodeKey(node)} has ${body.length} bytes, and ${ADMIN_REPLY_BYTES_MAX} are taken in.`, { node: nodeKey(node), status, code: null });
      return { status, body };
    },
  };
}

/** Appends may be repeated: their events have ids. */
export function memberAppendsOf(client: Pick<PeerClient, 'request'>): MemberAppends {
  return {
    append: async ({ node }, request, timeoutMs) => {
      const reply = await client.request({ node, method: 'POST', path: '/cluster/append', headers: JSON_BODY, body: formatMemberAppend(request), as: 'member', timeoutMs, isRepeatable: true });
      if (reply.status !== 200 || reply.body.length > RESULT_BYTES_MAX) throw refused(node, reply);
      return readAppendResult(jsonOf(reply));
    },
  };
}

/** What an append is refused with, which means the same here as there. */
const APPEND_CODES: ReadonlySet<string | null> = new Set<ErrorCode>([
  'not_leader', 'not_ready', 'store_closed', 'wrong_expected_version', 'stream_deleted', 'too_busy', 'disk_full', 'writer_stopped', 'storage_unreachable', 'storage_throttled', 'storage_denied',
  'commit_outcome_unknown', 'commit_contended', 'write_expired', 'batch_too_large', 'event_too_large', 'invalid_event', 'invalid_stream_name', 'invalid_expected_version', 'invalid_metadata',
]);

function refused(by: NodeAddress, reply: PeerReply): SkuaError {
  const code = codeOf(reply);
  const detail = (jsonOf(reply) as { readonly detail?: unknown } | null)?.detail;
  const said = typeof detail === 'string' ? detail.slice(0, DETAIL_LENGTH_MAX) : reply.statusText;
  if (APPEND_CODES.has(code)) return new SkuaError(code as ErrorCode, said, { node: nodeKey(by) });
  return new SkuaError('member_refused', `The member ${nodeKey(by)} refused an append: ${reply.status} ${said}`, { node: nodeKey(by), status: reply.status, code });
}

function jsonOf({ body }: PeerReply): unknown {
  try {
    return JSON.parse(decodeText(body.subarray(0, ADMIN_REPLY_BYTES_MAX)));
  } catch {
    return null;
  }
}
