import type { NodeAddress } from './nodes.ts';

/** Requests to the admin interface of another member, made as this node itself and not as any user. */
export interface AdminCalls {
  /**
   * `path` includes the query; no body is sent, and JSON is asked for. Resolves with the answer whatever its status.
   * Rejects with `member_unreachable` where it is certain that the request did not arrive, and with `member_silent`
   * where that is not known.
   */
  request(node: NodeAddress, method: 'GET' | 'POST' | 'DELETE', path: string, timeoutMs: number): Promise<AdminReply>;
}

export interface AdminReply {
  readonly status: number;
  /** At most ADMIN_REPLY_BYTES_MAX; a longer answer counts as none. */
  readonly body: Uint8Array;
}

/** Largest answer of a member that is taken in. */
export const ADMIN_REPLY_BYTES_MAX = 65_536;
