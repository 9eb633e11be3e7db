import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { nodeKey } from '../../core/ports/nodes.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import { FRAMES_PATH, FRAMES_PROTOCOL } from '../http/frames.ts';
import type { PeerAgent } from './peer-agent.ts';
import { PeerLink } from './peer-link.ts';
import type { PeerRequest } from './peer-exchange.ts';
import { background } from '../../core/background.ts';

/** A member that gives no link (it is gone, does not know us, or is of an older version) is asked for one again after this, in milliseconds. */
const ASK_AGAIN_MS = 5_000;
/** It says no more for so long: then there is no link. */
const OPEN_MS = 5_000;

/** By what a link is asked for: the agents of the certificates that a member may know, the one in force first. */
export interface LinkWays {
  readonly headers: Readonly<Record<string, string>>;
  readonly agents: readonly PeerAgent[];
  /** For so long a link by another agent than the first is used, in milliseconds. */
  readonly formerMs: number;
}

/**
 * One link to each member that has one (peer-link.ts). Nobody waits for a link: while there is none, requests have connections of their own, over which
 * it also turns out why there is none.
 */
export class PeerLinks {
  readonly #waysOf: () => LinkWays;
  /** Those on which requests end, too. */
  readonly #all = new Set<PeerLink>();
  readonly #links = new Map<string, PeerLink>();
  /** Members that are asked, or were in vain, and until when they are not asked again. */
  readonly #notBefore = new Map<string, number>();
  /** Links of before a change of certificates are used no more. */
  #change = 0;

  constructor(waysOf: () => LinkWays) {
    this.#waysOf = waysOf;
  }

  /** The link by which this request can go; null for none, which may be there for the next one. */
  for(request: PeerRequest): PeerLink | null {
    const key = nodeKey(request.node);
    const link = this.#links.get(key);
    if (link?.isOpen === true) return link.takes(request) ? link : null;
    if (link !== undefined) {
      link.retire();
      this.#links.delete(key);
    }
    const nowMs = performance.now();
    if (nowMs >= (this.#notBefore.get(key) ?? 0)) {
      // Members come and go under other addresses; those of long ago need not be remembered.
      for (const [each, untilMs] of this.#notBefore) if (nowMs >= untilMs) this.#notBefore.delete(each);
      this.#notBefore.set(key, Number.POSITIVE_INFINITY);
      // It never rejects.
      background(this.#open(request.node, key));
    }
    return null;
  }

  /** The requests under way end on their links; others get new ones. */
  renew(): void {
    this.#change++;
    for (const link of this.#links.values()) link.retire();
    this.#links.clear();
    for (const [key, untilMs] of this.#notBefore) if (untilMs !== Number.POSITIVE_INFINITY) this.#notBefore.delete(key);
  }

  /** What is still under way is not waited for. */
  close(): void {
    this.renew();
    for (const link of this.#all) link.close();
  }

  async #open(node: NodeAddress, key: string): Promise<void> {
    const change = this.#change;
    const { agents, headers, formerMs } = this.#waysOf();
    for (const [i, agent] of agents.entries()) {
      const answer = await ask(node, agent, headers);
      if (answer === 'unknown') continue;
      if (answer === 'no' || answer.destroyed) break;
      const endsMs = i === 0 ? agent.endsMsOf(answer) : Math.min(agent.endsMsOf(answer), performance.now() + formerMs);
      const link = new PeerLink(answer, endsMs);
      this.#all.add(link);
      answer.once('close', () => this.#all.delete(link));
      this.#notBefore.delete(key);
      if (change === this.#change) this.#links.set(key, link);
      else link.retire();
      return;
    }
    this.#notBefore.set(key, performance.now() + ASK_AGAIN_MS);
  }
}

/** The connection; `unknown` where the member does not know who asks, `no` where there is none. */
function ask(node: NodeAddress, agent: PeerAgent, headers: Readonly<Record<string, string>>): Promise<Socket | 'unknown' | 'no'> {
  return new Promise((resolve) => {
    const request = httpRequest({ agent, host: node.address, port: node.port, path: FRAMES_PATH, headers: { ...headers, connection: 'Upgrade', upgrade: FRAMES_PROTOCOL } });
    const timer = setTimeout(() => request.destroy(), OPEN_MS);
    request.on('close', () => clearTimeout(timer));
    request.on('error', () => resolve('no'));
    request.on('close', () => resolve('no'));
    request.on('response', (message: IncomingMessage) => {
      resolve(message.statusCode === 401 ? 'unknown' : 'no');
      message.on('error', () => {});
      message.resume();
    });
    request.on('upgrade', (_, socket: Socket, head: Buffer) => {
      // Until somebody listens who knows what to do; its end is seen by 'close'.
      socket.on('error', () => {});
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.end();
  });
}
