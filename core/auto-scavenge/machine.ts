import { SkuaError } from '../base/errors.ts';
import { leads, nodeKey } from '../ports/nodes.ts';
import type { NodeAddress, NodesView, StartReply, StopReply } from '../ports/nodes.ts';
import { heard, isShortForGood, note, stay, store } from './decision.ts';
import type { AskReply, Decision, Effect, Input, Note, World } from './decision.ts';
import type { NodeResult } from './facts.ts';
import { healthOf, remainingOf } from './state.ts';
import type { Cycle, Designation, Seen, State } from './state.ts';

/**
 * The state machine of auto-scavenge, for the leader: from a state and an input to what is stored, what is done and
 * what is answered. Pure. Errors: `auto_scavenge_pausing` for a resume while pausing.
 */
export function decide(state: State, input: Input, world: World): Decision {
  switch (input.kind) {
    case 'members':
      return members(state, input.view, world);
    case 'clock':
      return assess(state, world);
    case 'configure':
      return configure(state, input.schedule, world);
    case 'pause':
      return pause(state, world);
    case 'resume':
      return resume(state, world);
    case 'started':
      return isCurrent(state, input.attempt, 'Starting') ? started(state, input.reply, world) : stay(state);
    case 'asked':
      return isCurrent(state, input.attempt, 'Starting', 'Monitoring') ? asked(state, input.reply, world) : stay(state);
    case 'stopped':
      return isCurrent(state, input.attempt, 'Pausing') ? stopped(state, input.reply, world) : stay(state);
  }
}

/** Whether an outcome still belongs to what is designated. */
function isCurrent(state: State, attempt: number, ...phases: State['phase'][]): boolean {
  return phases.includes(state.phase) && state.cycle?.designated?.attempt === attempt;
}

function configure(state: State, schedule: string, world: World): Decision {
  return store(
    state,
    { type: '$configuration-updated', schedule, atMs: world.nowMs },
    { answer: 'done', notes: [note('info', 'the schedule was set', { schedule })] },
  );
}

function pause(state: State, world: World): Decision {
  const atMs = world.nowMs;
  switch (state.phase) {
    case 'Starting':
    case 'Monitoring': {
      const node = nodeKey(state.cycle!.designated!.node);
      const decided = store(
        state,
        { type: '$pause-requested', atMs },
        {
          answer: 'accepted',
          notes: [note('info', 'a pause was requested: the scavenge of the node is being stopped', { node })],
        },
      );
      return { ...decided, effects: assess(decided.state, world).effects };
    }
    case 'Pausing':
      return stay(state, { answer: 'accepted', effects: assess(state, world).effects });
    case 'PausedInCycle':
    case 'PausedIdle':
      return stay(state, { answer: 'done' });
    default:
      return store(state, { type: '$paused', atMs }, { answer: 'done', notes: [note('info', 'paused')] });
  }
}

function resume(state: State, world: World): Decision {
  switch (state.phase) {
    case 'Pausing':
      throw new SkuaError('auto_scavenge_pausing', 'Auto scavenge process is currently pausing', {
        hint: 'Wait until GET /auto-scavenge/status says Paused.',
      });
    case 'PausedInCycle':
    case 'PausedIdle':
      return store(
        state,
        { type: '$resumed', atMs: world.nowMs },
        { answer: 'done', notes: [note('info', 'resumed')] },
      );
    default:
      return stay(state, { answer: 'done' });
  }
}

/** Takes in what the cluster looks like, and brings the cycle's members up to it. */
function members(state: State, view: NodesView, world: World): Decision {
  const seen = look(state, view, world);
  const looked = { ...state, seen };
  const { cycle } = state;
  const isHealthy = healthOf(view) === 'healthy';
  if (cycle === null || !leads(view) || (!isHealthy && !isShortForGood(seen, world))) return stay(looked);
  const listed = new Set(view.members.map(({ node }) => nodeKey(node)));
  const known = new Set(cycle.members.map(nodeKey));
  const added = view.members.map(({ node }) => node).filter((node) => !known.has(nodeKey(node)));
  // While members are missing no node is left out because it is not listed: its part ends as that of a lost node.
  const removed = isHealthy ? cycle.members.filter((node) => !listed.has(nodeKey(node))) : [];
  if (added.length === 0 && removed.length === 0) return stay(looked);
  const fields = { added: added.map(nodeKey), removed: removed.map(nodeKey) };
  return store(
    looked,
    { type: '$cluster-members-changed', added, removed },
    { notes: [note('info', 'the members of the cluster have changed', fields)] },
  );
}

function look({ seen, cycle }: State, view: NodesView, { monotonicMs }: World): Seen {
  const alive = new Set(view.members.filter((member) => member.isAlive).map(({ node }) => nodeKey(node)));
  const absentSinceMs = new Map<string, number>();
  for (const key of new Set([...view.members.map(({ node }) => node), ...(cycle?.members ?? [])].map(nodeKey))) {
    if (!alive.has(key)) absentSinceMs.set(key, seen.absentSinceMs.get(key) ?? monotonicMs);
  }
  return {
    ...seen,
    view,
    absentSinceMs,
    shortSinceMs: healthOf(view) === 'short' ? (seen.shortSinceMs ?? monotonicMs) : null,
  };
}

/** What the leader does as time goes on. */

/**
 * A node that has been silent for this part of the time after which it counts as lost no longer hears that its run is
 * waited for. So the run ends by itself (orders.ts) before the next node begins.
 */
const RENEWING_SHARE = 1 / 2;

function assess(state: State, world: World): Decision {
  const { cycle } = state;
  const { view } = state.seen;
  if (cycle === null) return view !== null && state.phase === 'Waiting' ? waiting(state, view, world) : stay(state);
  const { designated } = cycle;
  switch (state.phase) {
    case 'Choosing':
      return view === null ? stay(state) : choosing(state, cycle, view, world);
    case 'Starting':
    case 'Monitoring':
      return atNode(state, cycle, designated!, world);
    case 'Pausing':
      return pausing(state, cycle, designated, world);
    default:
      return stay(state);
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
  if (health !== 'healthy')
    return stay(state, {
      notes: [
        note('info', 'a cycle is due; it starts as soon as all cluster members are present', {
          health,
          clusterSize: view.clusterSize,
        }),
      ],
    });
  const members = view.members.map(({ node }) => node);
  const { freshId: clusterScavengeId } = world;
  return store(
    state,
    { type: '$cluster-scavenge-started', clusterScavengeId, members, atMs: nowMs },
    { notes: [note('info', 'a cycle starts', { clusterScavengeId, members: members.map(nodeKey) })] },
  );
}

function choosing(state: State, cycle: Cycle, view: NodesView, world: World): Decision {
  const health = healthOf(view);
  if (health !== 'healthy' && !isShortForGood(state.seen, world))
    return stay(state, {
      notes: [
        note('info', 'the cycle continues as soon as all cluster members are present', {
          health,
          clusterSize: view.clusterSize,
        }),
      ],
    });
  const remaining = remainingOf(cycle);
  const { id: clusterScavengeId, members } = cycle;
  if (remaining.length === 0) {
    return store(
      state,
      { type: '$cluster-scavenge-completed', clusterScavengeId, members, atMs: world.nowMs },
      { notes: [note('info', 'the cycle is complete', { clusterScavengeId })] },
    );
  }
  return designate(state, choose(remaining, view), cycle, world);
}

function designate(state: State, node: NodeAddress, cycle: Cycle, world: World): Decision {
  return store(
    state,
    { type: '$node-designated', node, atMs: world.nowMs },
    { notes: [note('info', 'a node was chosen', { node: nodeKey(node), remaining: remainingOf(cycle).length })] },
  );
}

/**
 * The node that is furthest behind. One that can't be reached comes after those that can: it is waited for, and may be
 * back by then. This node, which leads, comes last.
 */
function choose(remaining: readonly NodeAddress[], view: NodesView): NodeAddress {
  const self = nodeKey(view.self);
  const members = new Map(view.members.map((member) => [nodeKey(member.node), member]));
  const rank = (node: NodeAddress) =>
    nodeKey(node) === self ? 2 : members.get(nodeKey(node))?.isAlive === true ? 0 : 1;
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
    // Away for so long when its turn came that it need not be asked. Once it was asked a run may go on there, and only
    // its silence counts.
    const awaySinceMs = absentSinceMs.get(nodeKey(node));
    if (silentSinceMs === null && awaySinceMs !== undefined && monotonicMs - awaySinceMs >= nodeLostAfterMs)
      return ended(state, designated, 'Errored', world, 'the node has been unreachable for too long');
  }
  const isRenewing = silentSinceMs === null || monotonicMs - silentSinceMs < nodeLostAfterMs * RENEWING_SHARE;
  const order = { clusterScavengeId: cycle.id, attempt };
  const effect: Effect =
    scavengeId === null && isRenewing
      ? { kind: 'start', node, order }
      : { kind: 'ask', node, order, isRenewing, scavengeId };
  return stay(state, { effects: [effect] });
}

/**
 * The leader is not scavenged while it leads. With no other member to lead it stays the leader: the cluster matters
 * more than a cycle.
 */
function resigning(state: State, designated: Designation, view: NodesView, world: World): Decision {
  const node = nodeKey(view.self);
  const canFollow = view.members.some(
    (member) => member.isAlive && !member.isReadOnlyReplica && nodeKey(member.node) !== node,
  );
  const line = note(
    'info',
    canFollow
      ? 'the leader is to be scavenged: it resigns'
      : 'the leader is to be scavenged, but no other node could lead',
    { node },
  );
  const decision = unanswered(state, designated, world, line);
  return canFollow && decision.events.length === 0 ? { ...decision, effects: [{ kind: 'resign' }] } : decision;
}

function pausing(state: State, cycle: Cycle, designated: Designation | null, world: World): Decision {
  if (designated === null)
    return store(
      state,
      { type: '$paused', atMs: world.nowMs },
      { notes: [note('info', 'no node scavenge is left to stop: paused')] },
    );
  const { node, attempt, scavengeId } = designated;
  const order = { clusterScavengeId: cycle.id, attempt: cycle.stopAttempt };
  return stay(state, { effects: [{ kind: 'stop', node, order, attempt, scavengeId }] });
}

/** What answers of nodes lead to. */

/** How often in a row a run on a node may be lost before its part of the cycle ends as `Errored`. */
const TRIES_MAX = 10;

export function started(state: State, reply: StartReply, world: World): Decision {
  const designated = state.cycle!.designated!;
  const node = nodeKey(designated.node);
  switch (reply.kind) {
    case 'started':
      return store(
        heard(state),
        { type: '$node-scavenge-started', node: designated.node, scavengeId: reply.scavengeId, atMs: world.nowMs },
        { notes: [note('info', 'a node scavenge was started', { node, scavengeId: reply.scavengeId })] },
      );
    case 'busy':
      return stay(heard(state), {
        notes: [note('info', 'the node is busy with another scavenge or a backup; waiting for it to finish', { node })],
      });
    case 'late':
      return again(state, designated, world, 'the node has seen a newer order than ours');
    default:
      return unanswered(
        state,
        designated,
        world,
        note('info', 'a node scavenge could not be started; will retry', {
          node,
          why: reply.kind,
          error: reply.reason,
        }),
      );
  }
}

export function asked(state: State, reply: AskReply, world: World): Decision {
  const designated = state.cycle!.designated!;
  const { scavengeId } = designated;
  const node = nodeKey(designated.node);
  if (reply.kind === 'unknown')
    return unanswered(
      state,
      designated,
      world,
      note('info', 'the state of the node scavenge is unknown; will ask again', {
        node,
        scavengeId,
        error: reply.reason,
      }),
    );
  // Nothing was started yet as far as we know: the node is there again, that was the question.
  if (scavengeId === null)
    return stay(heard(state), { notes: [note('info', 'the node can be reached again', { node })] });
  const foreign =
    reply.other === null
      ? []
      : [
          note('warn', 'the last scavenge of the node is not the one that was started', {
            node,
            scavengeId,
            last: reply.other,
          }),
        ];
  switch (reply.kind) {
    case 'running':
      return stay(heard(state), {
        notes: foreign.length > 0 ? foreign : [note('debug', 'the node scavenge continues', { node, scavengeId })],
      });
    case 'gone':
      return again(state, designated, world, 'the node scavenge has not continued, for an unknown reason');
    default:
      return ended(
        state,
        designated,
        reply.kind,
        world,
        foreign.length > 0 ? 'by a later scavenge' : 'by its scavenge',
      );
  }
}

function stopped(state: State, reply: StopReply, world: World): Decision {
  const designated = state.cycle!.designated!;
  const node = nodeKey(designated.node);
  switch (reply.kind) {
    case 'stopped':
      return store(
        state,
        { type: '$paused', atMs: world.nowMs },
        { notes: [note('info', 'the node scavenge has stopped: paused', { node })] },
      );
    case 'stopping':
      return stay(heard(state), { notes: [note('info', 'the node scavenge is being stopped', { node })] });
    default:
      return unanswered(
        state,
        designated,
        world,
        note('info', 'a node scavenge could not be stopped; will retry', {
          node,
          why: reply.kind,
          error: reply.reason,
        }),
      );
  }
}

/**
 * A call that helped nothing. Only calls count, not the time between them: a leader that was asleep knows nothing about
 * its nodes. From the first to the last one the node has been silent, and with that lost if it was too long.
 */
function unanswered(state: State, designated: Designation, world: World, line: Note): Decision {
  const silentSinceMs = state.seen.silentSinceMs ?? world.monotonicMs;
  if (world.monotonicMs - silentSinceMs >= world.nodeLostAfterMs)
    return ended(state, designated, 'Errored', world, 'the node has given no useful answer for too long');
  return stay({ ...state, seen: { ...state.seen, silentSinceMs } }, { notes: [line] });
}

/** Designates the same node once more, which makes a newer order; so often and no more. */
function again(state: State, designated: Designation, world: World, why: string): Decision {
  const { node, tries, scavengeId } = designated;
  if (tries >= TRIES_MAX) return ended(state, designated, 'Errored', world, `${why}, ${tries} times in a row`);
  return store(
    state,
    { type: '$node-designated', node, atMs: world.nowMs },
    { notes: [note('info', `${why}: it is restarted`, { node: nodeKey(node), scavengeId, tries })] },
  );
}

/** The node's part of the cycle is over. */
export function ended(
  state: State,
  { node, scavengeId }: Designation,
  result: NodeResult,
  world: World,
  why: string,
): Decision {
  return store(
    state,
    { type: '$node-scavenge-completed', node, result, atMs: world.nowMs },
    {
      notes: [
        note(result === 'Success' ? 'info' : 'warn', 'a node has completed its part', {
          node: nodeKey(node),
          scavengeId,
          result,
          why,
        }),
      ],
    },
  );
}
