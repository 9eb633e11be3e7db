import { SkuaError } from '../errors.ts';
import type { NodesView } from '../ports/nodes.ts';
import { leads, nodeKey } from '../ports/nodes.ts';
import { assess } from './assess.ts';
import type { Decision, Input, World } from './decision.ts';
import { isShortForGood, note, stay, store } from './decision.ts';
import { asked, started, stopped } from './replies.ts';
import type { Seen, State } from './state.ts';
import { healthOf } from './state.ts';

/**
 * The state machine of auto-scavenge, for the leader: from a state and an input to what is stored, what is done and what is
 * answered. Pure; auto-scavenge.md sections 6 to 10. Errors: `auto_scavenge_pausing` for a resume while pausing.
 */
export function decide(state: State, input: Input, world: World): Decision {
  switch (input.kind) {
    case 'members': return members(state, input.view, world);
    case 'clock': return assess(state, world);
    case 'configure': return configure(state, input.schedule, world);
    case 'pause': return pause(state, world);
    case 'resume': return resume(state, world);
    case 'started': return isCurrent(state, input.attempt, 'Starting') ? started(state, input.reply, world) : stay(state);
    case 'asked': return isCurrent(state, input.attempt, 'Starting', 'Monitoring') ? asked(state, input.reply, world) : stay(state);
    case 'stopped': return isCurrent(state, input.attempt, 'Pausing') ? stopped(state, input.reply, world) : stay(state);
  }
}

/** Whether an outcome still belongs to what is designated. */
function isCurrent(state: State, attempt: number, ...phases: State['phase'][]): boolean {
  return phases.includes(state.phase) && state.cycle?.designated?.attempt === attempt;
}

function configure(state: State, schedule: string, world: World): Decision {
  return store(state, { type: '$configuration-updated', schedule, atMs: world.nowMs }, { answer: 'done', notes: [note('info', 'the schedule was set', { schedule })] });
}

function pause(state: State, world: World): Decision {
  const atMs = world.nowMs;
  switch (state.phase) {
    case 'Starting':
    case 'Monitoring': {
      const node = nodeKey(state.cycle!.designated!.node);
      const decided = store(state, { type: '$pause-requested', atMs }, { answer: 'accepted', notes: [note('info', 'a pause was asked for: the scavenge of the node is stopped', { node })] });
      return { ...decided, effects: assess(decided.state, world).effects };
    }
    case 'Pausing': return stay(state, { answer: 'accepted', effects: assess(state, world).effects });
    case 'PausedInCycle':
    case 'PausedIdle': return stay(state, { answer: 'done' });
    default: return store(state, { type: '$paused', atMs }, { answer: 'done', notes: [note('info', 'paused')] });
  }
}

function resume(state: State, world: World): Decision {
  switch (state.phase) {
    case 'Pausing': throw new SkuaError('auto_scavenge_pausing', 'Auto scavenge process is currently pausing', { hint: 'Wait until GET /auto-scavenge/status says Paused.' });
    case 'PausedInCycle':
    case 'PausedIdle': return store(state, { type: '$resumed', atMs: world.nowMs }, { answer: 'done', notes: [note('info', 'resumed')] });
    default: return stay(state, { answer: 'done' });
  }
}

/** Takes in what the cluster looks like, and brings the cycle's members up to it; sections 7.2 and 7.3. */
function members(state: State, view: NodesView, world: World): Decision {
  const seen = look(state, view, world);
  const looked = { ...state, seen };
  const { cycle } = state;
  const isHealthy = healthOf(view) === 'healthy';
  if (cycle === null || !leads(view) || (!isHealthy && !isShortForGood(seen, world))) return stay(looked);
  const listed = new Set(view.members.map(({ node }) => nodeKey(node)));
  const known = new Set(cycle.members.map(nodeKey));
  const added = view.members.map(({ node }) => node).filter((node) => !known.has(nodeKey(node)));
  // While members are missing nobody is left out because it is not listed: its part ends as that of a lost node.
  const removed = isHealthy ? cycle.members.filter((node) => !listed.has(nodeKey(node))) : [];
  if (added.length === 0 && removed.length === 0) return stay(looked);
  const fields = { added: added.map(nodeKey), removed: removed.map(nodeKey) };
  return store(looked, { type: '$cluster-members-changed', added, removed }, { notes: [note('info', 'the members of the cluster have changed', fields)] });
}

function look({ seen, cycle }: State, view: NodesView, { monotonicMs }: World): Seen {
  const alive = new Set(view.members.filter((member) => member.isAlive).map(({ node }) => nodeKey(node)));
  const absentSinceMs = new Map<string, number>();
  for (const key of new Set([...view.members.map(({ node }) => node), ...cycle?.members ?? []].map(nodeKey))) {
    if (!alive.has(key)) absentSinceMs.set(key, seen.absentSinceMs.get(key) ?? monotonicMs);
  }
  return { ...seen, view, absentSinceMs, shortSinceMs: healthOf(view) === 'short' ? seen.shortSinceMs ?? monotonicMs : null };
}
