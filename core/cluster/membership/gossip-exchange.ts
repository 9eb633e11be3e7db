import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Meter } from '../../ports/meter.ts';
import { type NodeAddress, nodeKey } from '../../ports/nodes.ts';
import type { Gossip, GossipEntry, Peers } from '../../ports/peers.ts';
import { sameNode } from '../api.ts';
import type { MembershipParts } from './api.ts';
import { MEMBERS_MAX } from './api.ts';
import { checkGossip } from '../format/peer-messages.ts';
import { otherLog } from './commit-feed.ts';
import { type MemberView, notReady } from './view.ts';
import { background } from '../../base/background.ts';

/** How long it is waited for the answer of what may be behind an address. */
const ADDRESS_WAIT_MS = 500;

export interface GossipExchangeParts extends Pick<MembershipParts, 'copy' | 'peers' | 'clock' | 'log' | 'meter'> {
  readonly view: MemberView;
  /** Something was heard, or a member was not reached. */
  readonly onNews: () => void;
  /** Another member knows of an epoch that is not in the copy. */
  readonly onNewerEpoch: () => void;
}

/** Both sides of gossip, and what follows from which members answer and which do not. */
export class GossipExchange {
  readonly #parts: GossipExchangeParts;
  readonly #rounds: GossipCalls;
  readonly #verifying = new Map<string, Promise<boolean>>();
  #epochHeard = -1;

  constructor(parts: GossipExchangeParts) {
    const { peers, clock, meter, view } = parts;
    this.#parts = parts;
    this.#rounds = new GossipCalls({
      peers,
      clock,
      meter,
      timeoutMs: view.options.gossipTimeoutMs,
      say: () => view.say(),
      onAnswer: (to, answer) => {
        this.#onAnswer(to, answer);
      },
      onFailure: (to, error, startMs) => {
        this.#onFailure(to, error, startMs);
      },
    });
  }

  /** Resolves when all were told, or could not be. */
  async sendToAll(): Promise<void> {
    await Promise.all(this.#parts.view.table.records().map(async ({ entry }) => this.#rounds.send(entry.node)));
  }

  /** Tells all, but waits no longer than this for those that do not answer. */
  async sendToAllWithin(ms: number): Promise<void> {
    const told = new AbortController();
    await Promise.race([this.sendToAll(), this.#parts.clock.sleep(ms, told.signal)]);
    told.abort();
  }

  send(node: NodeAddress): void {
    background(this.#rounds.send(node));
  }

  /** No further call begins. */
  close(): void {
    this.#rounds.close();
  }

  refuse(error: SkuaError, by: string): void {
    const { view, log, onNews } = this.#parts;
    if (view.refusal === null && view.stage === 'running')
      log.error('this member has left the cluster', { error: error.message });
    view.refusal ??= { error, by };
    onNews();
  }

  /**
   * The connection to this instance broke. Connections break for other reasons too, such as a new certificate; so it is
   * asked once, and until then no member votes against it.
   */
  lost(instanceId: string): void {
    const { view, onNews } = this.#parts;
    const record = view.table.byInstance(instanceId);
    if (record === null || record.lost !== 'no') return;
    record.lost = 'asking';
    background(
      this.#rounds.probe(record.entry.node, view.options.leaderElectionTimeoutMs).then(() => {
        if (record.lost === 'asking') record.lost = 'yes';
        onNews();
      }),
    );
    onNews();
  }

  async onGossip(gossip: Gossip): Promise<Gossip> {
    const { clock, meter, copy, view } = this.#parts;
    const startMs = clock.monotonicMs();
    let status: 'successful' | 'failed' = 'failed';
    try {
      const {
        logId,
        sender,
        entries: [own, ...others],
      } = checkGossip(gossip);
      if (logId !== copy.logId) throw otherLog(copy.logId, logId);
      if (view.stage === 'stopped') throw notReady();
      if (sameNode(sender, view.options.self)) {
        if (own!.instanceId !== view.instanceId) throw addressInUse(sender);
      } else if (view.table.merge(own!, 'call') === 'conflict' && !(await this.#isBehind(own!)))
        throw addressInUse(sender);
      this.#relay(others);
      status = 'successful';
      return view.say();
    } finally {
      meter.observe('eventstore_gossip_processing_duration_seconds', (clock.monotonicMs() - startMs) / 1_000, {
        activity: 'push-from-peer',
        status,
      });
    }
  }

  /** At a start: the note of another instance is under this address. Throws when it answers there. */
  async refuseOwnAddressInUse(): Promise<void> {
    const { peers, view, copy } = this.#parts;
    const { self } = view.options;
    const answer = await peers
      .gossip(self, view.say(), ADDRESS_WAIT_MS)
      .then(checkGossip)
      .catch((error: unknown) => {
        if (saysAddressInUse(error)) throw addressInUse(self);
        return null;
      });
    if (answer !== null && answer.logId === copy.logId && answer.entries[0]!.instanceId !== view.instanceId)
      throw addressInUse(self);
  }

  #onAnswer(to: NodeAddress, { sender, entries: [own, ...others] }: Gossip): void {
    const { view } = this.#parts;
    if (own === undefined || !sameNode(to, sender)) return;
    if (view.refusal?.by === nodeKey(to)) view.refusal = null;
    view.table.merge(own, 'answer');
    this.#relay(others);
  }

  #relay(entries: readonly GossipEntry[]): void {
    const { view, onNews, onNewerEpoch } = this.#parts;
    for (const entry of entries) {
      // Which instance is behind an address is known by asking there.
      if (view.table.merge(entry, 'relay') === 'conflict') this.send(entry.node);
    }
    const newest = Math.max(-1, ...view.table.records().map(({ entry }) => entry.epoch?.number ?? -1));
    // Each one is a reason to ask once: a member that is mistaken about an epoch does not make others ask for ever.
    if (newest > this.#epochHeard && newest > view.epochNumber) onNewerEpoch();
    this.#epochHeard = Math.max(this.#epochHeard, newest);
    onNews();
  }

  #onFailure(to: NodeAddress, error: unknown, startMs: number): void {
    const { view, onNews } = this.#parts;
    const record = view.table.get(to);
    if (saysAddressInUse(error)) this.refuse(addressInUse(view.options.self), nodeKey(to));
    if (record === null || record.heardFromMs > startMs) return;
    const isOut = isSkuaError(error, 'member_unreachable');
    if (isOut) record.isOut = true;
    // A member that refused this one and is gone says nothing any more.
    if (isOut && view.refusal?.by === nodeKey(to)) view.refusal = null;
    if (isOut || isSkuaError(error, 'member_silent')) this.lost(record.entry.instanceId);
    onNews();
  }

  /**
   * Another instance was there a moment ago: the instance that answers at the address is the one that counts. Where
   * none does, it has gone.
   */
  async #isBehind(entry: GossipEntry): Promise<boolean> {
    const { table } = this.#parts.view;
    const key = nodeKey(entry.node);
    let verifying = this.#verifying.get(key);
    if (verifying === undefined) {
      verifying = this.#rounds.probe(entry.node, ADDRESS_WAIT_MS).finally(() => {
        this.#verifying.delete(key);
      });
      this.#verifying.set(key, verifying);
    }
    if (!(await verifying)) table.merge(entry, 'answer');
    return table.get(entry.node)?.entry.instanceId === entry.instanceId;
  }
}

function addressInUse(node: NodeAddress): SkuaError {
  return new SkuaError(
    'address_in_use',
    `Another member that is running has the address ${nodeKey(node)}: give each member its own address with --node-ip, --node-port or --node-host-advertise-as.`,
    { address: nodeKey(node) },
  );
}

interface GossipCallsParts {
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
class GossipCalls {
  readonly #parts: GossipCallsParts;
  readonly #conversations = new Map<string, Conversation>();
  #isClosed = false;

  constructor(parts: GossipCallsParts) {
    this.#parts = parts;
  }

  /** Tells a member, at once or when the call under way has ended. Resolves when it was told, or could not be. */
  async send(to: NodeAddress): Promise<void> {
    const key = nodeKey(to);
    const present = this.#conversations.get(key);
    if (this.#isClosed || (present === undefined && this.#conversations.size >= MEMBERS_MAX)) return;
    if (present !== undefined) {
      present.again = true;
      return present.over;
    }
    const conversation: Conversation = {
      again: false,
      over: Promise.resolve().then(() => this.#talk(to, conversation)),
    };
    this.#conversations.set(key, conversation);
    await conversation.over;
  }

  /**
   * Asks a member beside a call that may be under way, which may hang: after a connection to it broke. False when it
   * did not answer.
   */
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
    const told = (status: 'successful' | 'failed') => {
      meter.observe('eventstore_gossip_latency_seconds', (clock.monotonicMs() - startMs) / 1_000, {
        activity: 'push-to-peer',
        status,
      });
    };
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

/** The address of this member belongs to another one that is alive: the member that was asked says so. */
function saysAddressInUse(error: unknown): boolean {
  return isSkuaError(error, 'member_refused') && error.data.code === 'address_in_use';
}
