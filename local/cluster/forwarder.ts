import type { ClusterMember } from '../../core/cluster/api.ts';
import type { Forwarder, ReplyParts, RequestParts } from '../../handlers/http/cluster.ts';
import type { PeerClient } from './peer-client.ts';

/** Until then the answer of the leader must be there, in milliseconds; the handler gives up before. */
const ANSWER_MS_MAX = 60_000;

/** Requests of clients on their way to the leader, over the connections that members keep to each other. */
export class PeerForwarder implements Forwarder {
  readonly scheme: 'http' | 'https';
  readonly #client: PeerClient;

  constructor(client: PeerClient, scheme: 'http' | 'https') {
    this.#client = client;
    this.scheme = scheme;
  }

  send({ node }: ClusterMember, { method, target, headers, body }: RequestParts, signal: AbortSignal): Promise<ReplyParts> {
    const byName: Record<string, string> = {};
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!.toLowerCase();
      byName[name] = byName[name] === undefined ? headers[i + 1]! : `${byName[name]}, ${headers[i + 1]!}`;
    }
    return this.#client.request({ node, method, path: target, headers: byName, body, as: 'caller', timeoutMs: ANSWER_MS_MAX, signal });
  }
}
