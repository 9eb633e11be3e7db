import type { ClusterMember } from '../../core/cluster/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import type { Forwarder, ReplyParts, RequestParts } from '../../handlers/http/cluster-feature.ts';
import { FORWARDED_HEADER } from '../../handlers/http/forwarded.ts';
import type { PeerClient } from './peer-client.ts';

/** Bytes of an answer that is given back: operations of the leader answer with a line or a short document. */
const REPLY_BYTES_MAX = 1_048_576;
/** Headers of the connection between the two members alone; what sends the answer on sets the length. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'trailer',
  'upgrade',
  'date',
]);

/** Requests that other members are to decide, over the connections of the members. */
export class PeerForwarder implements Forwarder {
  readonly scheme: Forwarder['scheme'];
  readonly #client: Pick<PeerClient, 'request'>;

  constructor(client: Pick<PeerClient, 'request'>, scheme: Forwarder['scheme']) {
    this.#client = client;
    this.scheme = scheme;
  }

  async send(
    { node }: ClusterMember,
    { method, target, headers, body }: RequestParts,
    timeoutMs: number,
    signal: AbortSignal | null,
  ): Promise<ReplyParts> {
    const as = headers[FORWARDED_HEADER] === undefined ? 'member' : 'caller';
    const reply = await this.#client.request({
      node,
      method,
      path: target,
      headers,
      body,
      as,
      timeoutMs,
      ...(signal !== null && { signal }),
    });
    if (as === 'caller' && reply.body.length > REPLY_BYTES_MAX)
      throw new SkuaError(
        'member_silent',
        `The answer of ${nodeKey(node)} has ${reply.body.length} bytes, more than any operation returns.`,
        { node: nodeKey(node), reason: 'length' },
      );
    return {
      status: reply.status,
      statusText: reply.statusText,
      headers: withoutConnection(reply.headers),
      body: reply.body.length === 0 ? null : reply.body,
    };
  }
}

function withoutConnection(headers: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name in headers) if (!LEFT_OUT.has(name)) kept[name] = headers[name]!;
  return kept;
}
