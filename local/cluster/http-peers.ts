import { checkEpoch, checkGossip } from '../../core/cluster/format/peer-messages.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import type { CommitsReply, CommitsRequest, Epoch, Gossip, LeadRequest, Peers } from '../../core/ports/peers.ts';
import { decodeText } from '../../core/base/text.ts';
import type { PeerClient } from './peer-client.ts';
import { codeOf } from './peer-exchange.ts';
import type { PeerReply } from './peer-exchange.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
/** Bytes of answers. */
const GOSSIP_BYTES_MAX = 262_144;
const EPOCH_BYTES_MAX = 4_096;
const NONE = new Uint8Array(0);
/** How much longer than asked for an answer with commits may take, in milliseconds. */
const COMMITS_GRACE_MS = 5_000;

/** What members ask of each other, over HTTP: handlers/cluster/routes.ts answers. */
export class HttpPeers implements Peers {
  readonly #client: PeerClient;

  constructor(client: PeerClient) {
    this.#client = client;
  }

  async gossip(to: NodeAddress, gossip: Gossip, timeoutMs: number): Promise<Gossip> {
    const reply = await this.#client.request({
      node: to,
      method: 'POST',
      path: '/cluster/gossip',
      headers: JSON_TYPE,
      body: JSON.stringify(gossip),
      as: 'member',
      timeoutMs,
      isRepeatable: true,
    });
    return understood(to, reply, GOSSIP_BYTES_MAX, checkGossip);
  }

  async commits(
    to: NodeAddress,
    { logId, from, instanceId, waitMs }: CommitsRequest,
    signal: AbortSignal,
  ): Promise<CommitsReply> {
    const path = `/cluster/commits?log=${logId}&from=${from}&instance=${instanceId}&waitMs=${Math.round(waitMs)}`;
    const reply = await this.#client.request({
      node: to,
      method: 'GET',
      path,
      headers: {},
      body: null,
      as: 'member',
      timeoutMs: waitMs + COMMITS_GRACE_MS,
      signal,
      isRepeatable: true,
    });
    switch (reply.status) {
      case 200:
        return { kind: 'commits', bytes: reply.body };
      case 204:
        return { kind: 'commits', bytes: NONE };
      case 410:
        return { kind: 'gone' };
      default:
        throw refused(to, reply);
    }
  }

  async lead(to: NodeAddress, request: LeadRequest, timeoutMs: number): Promise<Epoch> {
    const reply = await this.#client.request({
      node: to,
      method: 'POST',
      path: '/cluster/lead',
      headers: JSON_TYPE,
      body: JSON.stringify(request),
      as: 'member',
      timeoutMs,
    });
    return understood(to, reply, EPOCH_BYTES_MAX, checkEpoch);
  }
}

/** What a reply of status 200 holds. Errors: `member_refused`, also for what is not understood. */
function understood<T>(from: NodeAddress, reply: PeerReply, bytesMax: number, read: (value: unknown) => T): T {
  if (reply.status !== 200) throw refused(from, reply);
  if (reply.body.length > bytesMax) throw unclear(from, `it has ${reply.body.length} bytes`, null);
  try {
    return read(JSON.parse(decodeText(reply.body)));
  } catch (error) {
    throw unclear(from, (error as Error).message, error);
  }
}

function refused(by: NodeAddress, reply: PeerReply): SkuaError {
  const code = codeOf(reply);
  return new SkuaError(
    'member_refused',
    `The member ${nodeKey(by)} refused: ${reply.status} ${reply.statusText}${code === null ? '' : ` (${code})`}.`,
    { node: nodeKey(by), status: reply.status, code },
  );
}

function unclear(by: NodeAddress, why: string, cause: unknown): SkuaError {
  return new SkuaError(
    'member_refused',
    `The answer of the member ${nodeKey(by)} is invalid: ${why}.`,
    { node: nodeKey(by), status: 200, code: null },
    cause ?? undefined,
  );
}
