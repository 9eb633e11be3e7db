import type { NodeAddress, NodesView } from '../ports/nodes.ts';
import { nodeKey } from '../ports/nodes.ts';
import type { Decision, Effect, World } from './decision.ts';
import { isShortForGood, note, stay, store } from './decision.ts';
import { ended, unanswered } from './replies.ts';
import type { Cycle, Designation, State } from './state.ts';
import { healthOf, remainingOf } from './state.ts';

/** What the leader does as time goes on; auto-scavenge.md section 8. */

/**
 * A node that has been silent for this part of the time after which it counts as lost is no longer told that its run is
 * waited for. So the run ends by itself (orders.ts) before the next node begins.
 */
const RENEWING_SHARE = 1 / 2;

export function assess(state: State, world: World): Decision {
  const { cycle } = state;
  const { view } = state.seen;
  if (cycle === null) return view !== null && state.phase === 'Waiting' ? waiting(state, view, world) : stay(state);
  const { designated } = cycle;
  switch (state.phase) {
    case 'Choosing': return view === null ? stay(state) : choosing(state, cycle, view, world);
    case 'Starting':
    case 'Monitoring': return atNode(state, cycle, designated!, world);
    case 'Pausing': return pausing(state, cycle, designated, world);
    default: return stay(state);
  }
}

function waiting(given: State, view: NodesView, world: World): Decision {
  const { nowMs } = world;
  // The clock was set back: starts are computed from now on, else the next one would be that far away.
  const state = given.anchorMs !== null && given.anchorMs > nowMs ? { ...given, anchorMs: nowMs } : given;
  const { schedule, anchorMs } = state;
  const dueMs = schedule === null || anchorMs === null ? null : world.next(schedule, anchorMs);
  if (dueMs === null || dueMs > nowMs) return stay(state);
  const health = healthOf(view);
  if (health !== 'healthy') return stay(state, { notes: [note('info', 'a cycle is due; it begins as soon as the cluster has its members', { health, clusterSize: view.clusterSize })] });
  const members = view.members.map(({ node }) => node);
  const { freshId: clusterScavengeId } = world;
  return store(state, { type: '$cluster-scavenge-started', clusterScavengeId, members, atMs: nowMs },
    { notes: [note('info', 'a cycle begins', { clusterScavengeId, members: members.map(nodeKey) })] });
}

function choosing(state: State, cycle: Cycle, view: NodesView, world: World): Decision {
  const health = healthOf(view);
  if (health !== 'healthy' && !isShortForGood(state.seen, world)) return stay(state, { notes: [note('info', 'the cycle goes on as soon as the cluster has its members', { health, clusterSize: view.clusterSize })] });
  const remaining = remainingOf(cycle);
  const { id: clusterScavengeId, members } = cycle;
  if (remaining.length === 0) {
    return store(state, { type: '$cluster-scavenge-completed', clusterScavengeId, members, atMs: world.nowMs }, { notes: [note('info', 'the cycle is complete', { clusterScavengeId })] });
  }
  return designate(state, choose(remaining, view), cycle, world);
}

function designate(state: State, node: NodeAddress, cycle: Cycle, world: World): Decision {
  return store(state, { type: '$node-designated', node, atMs: world.nowMs }, { notes: [note('info', 'a node was chosen', { node: nodeKey(node), remaining: remainingOf(cycle).length })] });
}

/**
 * The node that is furthest behind. One that can't be reached comes after those that can: it is waited for, and may be
 * back by then. This node, which leads, comes last.
 */
export function choose(remaining: readonly NodeAddress[], view: NodesView): NodeAddress {
  const self = nodeKey(view.self);
  const members = new Map(view.members.map((member) => [nodeKey(member.node), member]));
  const rank = (node: NodeAddress) => nodeKey(node) === self ? 2 : members.get(nodeKey(node))?.isAlive === true ? 0 : 1;
  const checkpoint = (node: NodeAddress) => members.get(nodeKey(node))?.writerCheckpoint ?? 0;
  return remaining.toSorted((a, b) => rank(a) - rank(b) || checkpoint(a) - checkpoint(b))[0]!;
}

/** Starts the scavenge of the designated node, or asks how it stands. */
function atNode(state: State, cycle: Cycle, designated: Designation, world: World): Decision {
  const { node, attempt, scavengeId } = designated;
  const { view, silentSinceMs, absentSinceMs } = state.seen;
  const { monotonicMs, nodeLostAfterMs } = world;
  if (scavengeId === null) {
    if (view !== null && nodeKey(node) === nodeKey(view.self)) {
      if (view.clusterSize > 1) return resigning(state, designated, view, world);
      // Replicas that have joined since go first, unless it may have begun.
      const other = choose(remainingOf(cycle), view);
      if (silentSinceMs === null && nodeKey(other) !== nodeKey(node)) return designate(state, other, cycle, world);
    }
    // Away for so long when its turn came that it need not be asked. Once it was asked a run may go on there, and only its silence counts.
    const awaySinceMs = absentSinceMs.get(nodeKey(node));
    if (silentSinceMs === null && awaySinceMs !== undefined && monotonicMs - awaySinceMs >= nodeLostAfterMs) return ended(state, designated, 'Errored', world, 'the node has been away for too long');
  }
  const isRenewing = silentSinceMs === null || monotonicMs - silentSinceMs < nodeLostAfterMs * RENEWING_SHARE;
  const order = { clusterScavengeId: cycle.id, attempt };
  const effect: Effect = scavengeId === null && isRenewing ? { kind: 'start', node, order } : { kind: 'ask', node, order, isRenewing, scavengeId };
  return stay(state, { effects: [effect] });
}

/** The leader is not scavenged while it leads. With nobody else to lead it stays: the cluster matters more than a cycle. */
function resigning(state: State, designated: Designation, view: NodesView, world: World): Decision {
  const node = nodeKey(view.self);
  const canFollow = view.members.some((member) => member.isAlive && !member.isReadOnlyReplica && nodeKey(member.node) !== node);
  const line = note('info', canFollow ? 'the leader is to be scavenged: it resigns' : 'the leader is to be scavenged, but no other node could lead', { node });
  const decision = unanswered(state, designated, world, line);
  return canFollow && decision.events.length === 0 ? { ...decision, effects: [{ kind: 'resign' }] } : decision;
}

function pausing(state: State, cycle: Cycle, designated: Designation | null, world: World): Decision {
  if (designated === null) return store(state, { type: '$paused', atMs: world.nowMs }, { notes: [note('info', 'there is no node scavenge to stop any more: paused')] });
  const { node, attempt, scavengeId } = designated;
  const order = { clusterScavengeId: cycle.id, attempt: cycle.stopAttempt };
  return stay(state, { effects: [{ kind: 'stop', node, order, attempt, scavengeId }] });
}
