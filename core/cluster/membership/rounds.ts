import { isSkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Meter } from '../../ports/meter.ts';
import { type NodeAddress, nodeKey } from '../../ports/nodes.ts';
import type { Gossip, Peers } from '../../ports/peers.ts';
import { MEMBERS_MAX } from './api.ts';
import { checkGossip } from '../format/peers.ts';

export interface RoundsParts {
  readonly peers: Peers;
  readonly clock: Clock;
  readonly meter: Meter;
  readonly timeoutMs: number;
  /** What is said now. */
  readonly say: () => Gossip;
  readonly onAnswer: (to: NodeAddress, answer: Gossip) => void;
  /** `startMs`: monotonic time at which the call began. */
  readonly onFailure: (to: NodeAddress, error: unknown, startMs: number) => void;
}

/** One call to one member at a time. What changes while it is under way is told behind it. */
interface Conversation {
  again: boolean;
  readonly over: Promise<void>;
}

/** The calls by which this member tells others what it knows, and hears in the answers what they know. */
export class Rounds {
  readonly #parts: RoundsParts;
  readonly #conversations = new Map<string, Conversation>();
  #isClosed = false;

  constructor(parts: RoundsParts) {
    this.#parts = parts;
  }

  /** Tells a member, at once or when the call under way has ended. Resolves when it was told, or could not be. */
  async tell(to: NodeAddress): Promise<void> {
    const key = nodeKey(to);
    const present = this.#conversations.get(key);
    if (this.#isClosed || (present === undefined && this.#conversations.size >= MEMBERS_MAX)) return;
    if (present !== undefined) {
      present.again = true;
      return present.over;
    }
    const conversation: Conversation = { again: false, over: Promise.resolve().then(() => this.#talk(to, conversation)) };
    this.#conversations.set(key, conversation);
    await conversation.over;
  }

  /** Asks a member beside a call that may be under way, which may hang: after a connection to it broke. False when it did not answer. */
  async probe(to: NodeAddress, timeoutMs: number): Promise<boolean> {
    return this.#isClosed ? false : this.#call(to, timeoutMs);
  }

  /** No further call begins. */
  close(): void {
    this.#isClosed = true;
  }

  async #talk(to: NodeAddress, conversation: Conversation): Promise<void> {
    try {
      do {
        conversation.again = false;
        await this.#call(to, this.#parts.timeoutMs);
      } while (conversation.again && !this.#isClosed);
    } finally {
      this.#conversations.delete(nodeKey(to));
    }
  }

  async #call(to: NodeAddress, timeoutMs: number): Promise<boolean> {
    const { peers, clock, meter, say, onAnswer, onFailure } = this.#parts;
    const startMs = clock.monotonicMs();
    const told = (status: 'successful' | 'failed') => { meter.observe('eventstore_gossip_latency_seconds', (clock.monotonicMs() - startMs) / 1_000, { activity: 'push-to-peer', status }); };
    try {
      const said = say();
      const answer = checkGossip(await peers.gossip(to, said, timeoutMs));
      told('successful');
      if (answer.logId === said.logId) onAnswer(to, answer);
      return answer.logId === said.logId;
    } catch (error) {
      told('failed');
      onFailure(to, error, startMs);
      return false;
    }
  }
}

/** The address of this member belongs to another one that is alive: whoever was asked says so. */
export function saysAddressInUse(error: unknown): boolean {
  return isSkuaError(error, 'member_refused') && error.data.code === 'address_in_use';
}
