import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import { isSameSet } from '../tls/certificate-set.ts';
import type { CertificateSet } from '../tls/certificate-set.ts';
import { CONNECTION_LIFETIME_MS } from './connection-lifetime.ts';
import { PeerAgent } from './peer-agent.ts';
import { Exchange, isUnknownMember } from './peer-exchange.ts';
import type { PeerReply, PeerRequest } from './peer-exchange.ts';
import { Lane } from './peer-lane.ts';

/** A connection is taken for a new request up to so long before its end, so that the request ends in time, too. */
const LAST_REQUEST_MS = 30_000;
/**
 * Requests to one member at a time, each with a connection of its own; those of the members themselves have as many
 * beside them.
 */
const REQUESTS_MAX = 128;
/** Certificates of before a reload that are tried where a member does not know the new ones yet. */
const FORMER_MAX = 3;
/** A member that did not know the new certificate is asked with it again after this, in milliseconds. */
const RETRY_NEW_MS = 5_000;
/** Header of a member that passes a request on; see handlers/cluster/members.ts. */
const FORWARDER = 'skua-member';

export interface PeerClientOptions {
  /** With TLS: certificate, key and roots of this node. Null for plain HTTP. */
  readonly certificates: CertificateSet | null;
  /**
   * What the members share, shown to each whose certificate was verified, where there is TLS; null or empty for
   * nothing: then certificates prove that a caller is a member, or security is off.
   */
  readonly secret: string | null;
  readonly namesOf?: (host: string, port: number) => readonly string[];
  readonly connectionLifetimeMs?: number;
  readonly requestsMax?: number;
}

/** The connections of one certificate: requests that are passed on must not keep the members' own waiting. */
interface Generation {
  readonly certificates: CertificateSet | null;
  readonly agent: PeerAgent;
  /** When it is used no more; by the monotonic clock. */
  endsMs: number;
}

/**
 * Requests to other members over connections that are kept. A reply is a reply whatever its status. Rejects with
 * `member_unreachable` where it is certain that the request was not worked on: no connection was made for it, or none
 * of it was given to the system. With `member_silent` where that is not known: the time is over, or the connection
 * broke after a part of it was written. That counts as not known even where the connection had been idle: the other
 * side may have read the request, acted, and died. Both have `node` and `reason` in their data. With `too_busy` where
 * no connection was free in time, which says nothing about the member. A signal that aborts is the end of the time.
 */
export class PeerClient {
  readonly #options: PeerClientOptions;
  readonly #lifetimeMs: number;
  readonly #lanes = new Map<string, Lane>();
  /** The one in force, then those of before reloads, newest first. */
  #generations: Generation[];
  /** Members that do not know the certificates in force, with those that they know, and until when that is believed. */
  readonly #behind = new Map<string, { readonly generation: Generation; readonly untilMs: number }>();

  constructor(options: PeerClientOptions) {
    this.#options = options;
    this.#lifetimeMs = options.connectionLifetimeMs ?? CONNECTION_LIFETIME_MS;
    this.#generations = [this.#generation(options.certificates)];
  }

  /**
   * From now on new connections are made with these certificates; idle ones of before are closed, requests under way
   * end on theirs.
   */
  setCertificates(certificates: CertificateSet): void {
    const [inForce] = this.#generations;
    if (inForce!.certificates !== null && isSameSet(inForce!.certificates, certificates)) return;
    const nowMs = performance.now();
    inForce!.agent.retire(this.#lifetimeMs);
    inForce!.endsMs = nowMs + this.#lifetimeMs;
    this.#generations = [this.#generation(certificates), ...this.#former(nowMs).slice(0, FORMER_MAX)];
    this.#behind.clear();
  }

  async request(request: PeerRequest): Promise<PeerReply> {
    const key = nodeKey(request.node);
    const lane = this.#lane(`${request.as} ${key}`);
    const deadlineMs = performance.now() + request.timeoutMs;
    const turn = lane.enter(request, deadlineMs);
    if (turn !== null) await turn;
    try {
      return await this.#sendAs(request, key, deadlineMs);
    } finally {
      lane.leave();
      if (lane.isEmpty) this.#lanes.delete(`${request.as} ${key}`);
    }
  }

  close(): void {
    for (const { agent } of this.#generations) agent.destroy();
  }

  /**
   * With the certificates in force, or for a while after a reload with former ones, where the member has not been
   * reloaded yet and knows only those.
   */
  async #sendAs(request: PeerRequest, key: string, deadlineMs: number): Promise<PeerReply> {
    const [inForce, ...former] = this.#generations;
    const behind = this.#behind.get(key);
    const nowMs = performance.now();
    const first =
      behind !== undefined && nowMs < Math.min(behind.untilMs, behind.generation.endsMs) ? behind.generation : inForce!;
    const reply = await this.#send(request, first, deadlineMs);
    if (former.length === 0 || !isUnknownMember(reply)) return reply;
    for (const generation of [inForce!, ...this.#former(nowMs)]) {
      if (generation === first) continue;
      const other = await this.#send(request, generation, deadlineMs);
      if (isUnknownMember(other)) continue;
      if (generation === inForce) this.#behind.delete(key);
      else this.#behind.set(key, { generation, untilMs: performance.now() + RETRY_NEW_MS });
      return other;
    }
    return reply;
  }

  async #send(request: PeerRequest, { agent }: Generation, deadlineMs: number): Promise<PeerReply> {
    const headers = { ...request.headers, ...this.#proof(request.as) };
    for (let isRetry = false; ; isRetry = true) {
      const exchange = new Exchange(request, agent, headers, deadlineMs);
      try {
        return await exchange.reply;
      } catch (error) {
        // A connection that had been kept tells nothing of the member: it may have been closed long ago. A new one
        // does.
        const isStale =
          exchange.wasReused &&
          !isRetry &&
          (isSkuaError(error, 'member_unreachable') ||
            (request.isRepeatable === true && isSkuaError(error, 'member_silent'))) &&
          error.data.reason === 'broken';
        if (!isStale) throw error;
      }
    }
  }

  #proof(as: PeerRequest['as']): Readonly<Record<string, string>> {
    const { secret } = this.#options;
    if (secret === null || secret === '') return {};
    return as === 'member' ? { authorization: `Cluster ${secret}` } : { [FORWARDER]: secret };
  }

  #former(nowMs: number): Generation[] {
    return this.#generations.filter(({ endsMs }) => endsMs !== Number.POSITIVE_INFINITY && nowMs < endsMs);
  }

  #generation(certificates: CertificateSet | null): Generation {
    if (certificates !== null && !certificates.trustsNodes) {
      throw new SkuaError(
        'certificate_invalid',
        'Cluster members authenticate with certificates, and no trusted roots are configured: set TrustedRootCertificatesPath.',
        { file: 'TrustedRootCertificatesPath', reason: 'no trusted roots are configured' },
      );
    }
    const lifetimeMs = Math.max(this.#lifetimeMs - LAST_REQUEST_MS, this.#lifetimeMs / 2);
    const agent = new PeerAgent(
      { certificates, lifetimeMs, namesOf: this.#options.namesOf ?? (() => []) },
      { maxFreeSockets: 2 * (this.#options.requestsMax ?? REQUESTS_MAX) },
    );
    return { certificates, agent, endsMs: Number.POSITIVE_INFINITY };
  }

  #lane(key: string): Lane {
    let lane = this.#lanes.get(key);
    if (lane === undefined) {
      lane = new Lane(this.#options.requestsMax ?? REQUESTS_MAX);
      this.#lanes.set(key, lane);
    }
    return lane;
  }
}
