import { SkuaError } from '../../core/base/errors.ts';
import { ADMIN_REPLY_BYTES_MAX, type AdminCalls } from '../../core/ports/admin-calls.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import type { PeerClient } from './peer-client.ts';

/** What auto-scavenge asks of another member over this one's connections to it: the admin interface. */

const JSON_REPLY = { accept: 'application/json' };

/** Orders may be repeated, and so may questions. */
export function adminCallsOf(client: Pick<PeerClient, 'request'>): AdminCalls {
  return {
    request: async (node, method, path, timeoutMs) => {
      const { status, body } = await client.request({
        node,
        method,
        path,
        headers: JSON_REPLY,
        body: null,
        as: 'member',
        timeoutMs,
        isRepeatable: true,
      });
      if (body.length > ADMIN_REPLY_BYTES_MAX)
        throw new SkuaError(
          'member_refused',
          `The answer of the member ${nodeKey(node)} has ${body.length} bytes; at most ${ADMIN_REPLY_BYTES_MAX} are accepted.`,
          { node: nodeKey(node), status, code: null },
        );
      return { status, body };
    },
  };
}
