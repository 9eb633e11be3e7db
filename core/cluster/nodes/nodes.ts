import { inTime } from '../../ports/in-time.ts';
import { type AskedOrders, lastReply, NO_ANSWER, startReply, stopReply } from '../../auto-scavenge/orders/orders.ts';
import { isSkuaError } from '../../base/errors.ts';
import type { AdminCalls, AdminReply } from '../../ports/admin-calls.ts';
import type { Clock } from '../../ports/clock.ts';
import { nodeKey } from '../../ports/nodes.ts';
import type {
  LastReply,
  Member,
  NodeAddress,
  Nodes,
  NodesView,
  NoReply,
  ScavengeOrder,
  StartReply,
  StopReply,
} from '../../ports/nodes.ts';
import type { MemberState } from '../../ports/peers.ts';
import { decodeText } from '../../base/text.ts';
import type { MemberLog, Membership } from '../api.ts';
import { sameNode } from '../api.ts';

export interface ClusterNodesParts {
  readonly membership: Pick<
    Membership,
    'self' | 'clusterSize' | 'members' | 'leader' | 'isLeader' | 'leadsSinceMs' | 'resign'
  >;
  readonly log: Pick<MemberLog, 'confirmFresh'>;
  /** Of this member, which is called in process. */
  readonly orders: AskedOrders;
  readonly calls: AdminCalls;
  readonly clock: Clock;
}

/**
 * The members of a cluster for auto-scavenge, asked through the admin interface that users have. Only known members are
 * called: an address in a stored event may be any machine's, and a call carries what members know each other by.
 */
export function createClusterNodes(parts: ClusterNodesParts): Nodes {
  return new ClusterNodes(parts);
}

/**
 * A run is told that it is waited for only by a leader that proved this long ago at most, in milliseconds, that no
 * epoch came behind its own. So a deposed one that is cut off from the log does not keep a run going which the new one
 * has given up (the shortest time for which a run goes on unasked is 15 s).
 */
const LEAD_CONFIRM_MS = 5_000;
/** Of the time of a call to stop, this part waits for the end of the run; the rest asks how it stands. */
const STOP_SHARE = 0.6;
/** How long a tick waits for a lead that is given away, in milliseconds; it goes on by itself. */
const RESIGN_WAIT_MS = 1_000;
/** Longest name of a result that is passed on. */
const RESULT_LENGTH_MAX = 32;
const PATH = '/admin/scavenge';
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const NO_SCAVENGE_ID = '00000000-0000-0000-0000-000000000000';
/** What takes no orders, however well it is heard. */
const AWAY: ReadonlySet<MemberState> = new Set(['Initializing', 'CatchingUp', 'ShuttingDown', 'Shutdown']);

class ClusterNodes implements Nodes {
  readonly #parts: ClusterNodesParts;
  #resigning: Promise<unknown> | null = null;

  constructor(parts: ClusterNodesParts) {
    this.#parts = parts;
  }

  view(): NodesView {
    const { membership } = this.#parts;
    const self = addressOf(membership.self.node);
    const leader = this.#leader(self);
    const members = new Map<string, Member>();
    for (const { node, isAlive, state, isReadOnlyReplica, writerCheckpoint } of membership.members()) {
      const member = {
        node: addressOf(node),
        isLeader: leader !== null && sameNode(leader, node),
        isReadOnlyReplica,
        writerCheckpoint,
        isAlive: isAlive && !AWAY.has(state),
      };
      // One that was started anew may be known twice for a moment.
      if (members.get(nodeKey(node))?.isAlive !== true) members.set(nodeKey(node), member);
    }
    return {
      self,
      clusterSize: membership.clusterSize,
      leadsSinceMs: membership.leadsSinceMs ?? 0,
      members: [...members.values()],
    };
  }

  /** Of itself only this member knows: others may tell of a lead that it is about to give away. */
  #leader(self: NodeAddress): NodeAddress | null {
    const { membership } = this.#parts;
    if (membership.isLeader) return self;
    const leader = membership.leader()?.node ?? null;
    return leader === null || sameNode(leader, self) ? null : leader;
  }

  async startScavenge(node: NodeAddress, order: ScavengeOrder, timeoutMs: number): Promise<StartReply> {
    const { orders, clock } = this.#parts;
    if (this.#isSelf(node)) return inTime<StartReply>(clock, timeoutMs, () => startReply(orders, order), NO_ANSWER);
    const reply = await this.#call(node, 'POST', pathOf(PATH, order), timeoutMs);
    if ('kind' in reply) return reply;
    const { status, document } = reply;
    const { scavengeId, code, seen } = document;
    if (status === 200 && isScavengeId(scavengeId)) return { kind: 'started', scavengeId };
    if (code === 'scavenge_in_progress' || code === 'backup_running') return { kind: 'busy' };
    return code === 'late_order' && typeof seen === 'number' ? { kind: 'late' } : refusal(reply);
  }

  async lastScavenge(node: NodeAddress, order: ScavengeOrder | null, timeoutMs: number): Promise<LastReply> {
    const { orders, clock } = this.#parts;
    const untilMs = clock.monotonicMs() + timeoutMs;
    const renewed = order !== null && (await this.#isLeaderByTheLog(timeoutMs / 2)) ? order : null;
    return this.#isSelf(node) ? lastReply(orders, renewed) : this.#last(node, renewed, untilMs - clock.monotonicMs());
  }

  async #last(node: NodeAddress, order: ScavengeOrder | null, timeoutMs: number): Promise<LastReply> {
    const reply = await this.#call(node, 'GET', pathOf(`${PATH}/last`, order), timeoutMs);
    if ('kind' in reply) return reply;
    const { scavengeId, scavengeResult } = reply.document;
    if (
      reply.status !== 200 ||
      !isScavengeId(scavengeId) ||
      typeof scavengeResult !== 'string' ||
      scavengeResult.length > RESULT_LENGTH_MAX
    )
      return refusal(reply);
    return { kind: 'last', scavengeId: scavengeId === NO_SCAVENGE_ID ? null : scavengeId, result: scavengeResult };
  }

  async stopScavenge(
    node: NodeAddress,
    order: ScavengeOrder,
    scavengeId: string | null,
    timeoutMs: number,
  ): Promise<StopReply> {
    const { orders, clock } = this.#parts;
    if (this.#isSelf(node))
      return inTime<StopReply>(clock, timeoutMs, () => stopReply(orders, order, scavengeId), { kind: 'stopping' });
    const untilMs = clock.monotonicMs() + timeoutMs;
    const reply = await this.#call(
      node,
      'DELETE',
      pathOf(`${PATH}/${encodeURIComponent(scavengeId ?? 'current')}`, order),
      timeoutMs * STOP_SHARE,
    );
    if (!('kind' in reply))
      return reply.status === 200 || reply.document['code'] === 'scavenge_not_found'
        ? { kind: 'stopped' }
        : refusal(reply);
    // It is answered when the run has ended. Whether that takes long, or no member is there, is told by asking.
    const last = await this.#last(node, null, untilMs - clock.monotonicMs());
    return last.kind === 'last' && last.result === 'InProgress' ? { kind: 'stopping' } : reply;
  }

  /** Waits a little for what came of it, which shows in the view. */
  async resign(): Promise<void> {
    const { membership, clock } = this.#parts;
    this.#resigning ??= membership
      .resign()
      .catch(() => {})
      .finally(() => {
        this.#resigning = null;
      });
    const resigning = this.#resigning;
    await inTime<unknown>(clock, RESIGN_WAIT_MS, () => resigning, null);
  }

  #isSelf(node: NodeAddress): boolean {
    return sameNode(node, this.#parts.membership.self.node);
  }

  async #isLeaderByTheLog(waitMs: number): Promise<boolean> {
    const { log, membership, clock } = this.#parts;
    const isFresh = await inTime(
      clock,
      waitMs,
      () =>
        log.confirmFresh(LEAD_CONFIRM_MS).then(
          () => true,
          () => false,
        ),
      false,
    );
    return isFresh && membership.isLeader;
  }

  async #call(
    node: NodeAddress,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    timeoutMs: number,
  ): Promise<NoReply | MemberReply> {
    const { membership, calls } = this.#parts;
    if (!membership.members().some((member) => sameNode(member.node, node)))
      return { kind: 'unreachable', reason: `${nodeKey(node)} is not a known member of the cluster` };
    try {
      const { status, body } = await calls.request(node, method, path, Math.max(1, Math.floor(timeoutMs)));
      return { status, document: documentOf(body) };
    } catch (error) {
      const reason = String(error);
      return {
        kind:
          isSkuaError(error, 'member_unreachable') || isSkuaError(error, 'member_silent') ? 'unreachable' : 'failed',
        reason,
      };
    }
  }
}

interface MemberReply {
  readonly status: number;
  /** Empty where the body is no JSON object. */
  readonly document: Readonly<Record<string, unknown>>;
}

function documentOf(body: AdminReply['body']): MemberReply['document'] {
  try {
    const value: unknown = JSON.parse(decodeText(body));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Length of what is passed on of another member's explanation. */
const DETAIL_LENGTH_MAX = 200;

function refusal({ status, document: { code, detail } }: MemberReply): NoReply {
  const said = [code, detail]
    .filter((each) => typeof each === 'string')
    .join(': ')
    .slice(0, DETAIL_LENGTH_MAX);
  return {
    kind: 'failed',
    reason: said === '' ? `it answered with status ${status}` : `it answered with status ${status}: ${said}`,
  };
}

function pathOf(path: string, order: ScavengeOrder | null): string {
  return order === null
    ? path
    : `${path}?clusterScavengeId=${encodeURIComponent(order.clusterScavengeId)}&attempt=${order.attempt}`;
}

function isScavengeId(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}

/** Without what else a member's address may hold: it is stored. */
function addressOf({ address, port }: NodeAddress): NodeAddress {
  return { address, port };
}
