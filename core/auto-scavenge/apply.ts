import { nodeKey } from '../ports/nodes.ts';
import type { NodeAddress } from '../ports/nodes.ts';
import type { Fact } from './facts.ts';
import { INITIAL, outcomesOf } from './state.ts';
import type { Cycle, Seen, State } from './state.ts';
import type { Loaded } from './auto-scavenge-streams.ts';

/**
 * What a stored fact makes of the state. `number` is that of its event. A fact that does not fit changes nothing but
 * the version: it may be another program's.
 */
export function apply(state: State, fact: Fact, number: number): State {
  if (fact.type === '$configuration-updated') {
    return {
      ...state,
      schedule: fact.schedule,
      anchorMs: fact.atMs,
      phase: state.phase === 'NotConfigured' ? 'Waiting' : state.phase,
    };
  }
  return { ...(applied(state, fact, number) ?? state), version: number };
}

type CycleFact = Exclude<Fact, { readonly type: '$configuration-updated' }>;

/** Null where the fact does not fit. */
function applied(state: State, fact: CycleFact, number: number): State | null {
  const { cycle } = state;
  switch (fact.type) {
    case '$cluster-scavenge-started':
      return {
        ...state,
        phase: 'Choosing',
        cycle: {
          id: fact.clusterScavengeId,
          startedAtMs: fact.atMs,
          members: fact.members,
          parts: new Map(),
          designated: null,
          stopAttempt: -1,
        },
      };
    case '$paused':
      return cycle === null
        ? { ...state, phase: 'PausedIdle' }
        : { ...state, phase: 'PausedInCycle', cycle: { ...cycle, designated: null } };
    case '$resumed':
      return {
        ...state,
        phase: cycle !== null ? 'Choosing' : idle(state),
        anchorMs: state.schedule === null ? null : fact.atMs,
      };
    default:
      return cycle === null ? null : appliedInCycle(state, cycle, fact, number);
  }
}

type InCycleFact = Exclude<CycleFact, { readonly type: '$cluster-scavenge-started' | '$paused' | '$resumed' }>;

function appliedInCycle(state: State, cycle: Cycle, fact: InCycleFact, number: number): State | null {
  const { designated } = cycle;
  switch (fact.type) {
    case '$cluster-scavenge-completed':
      return fact.clusterScavengeId !== cycle.id
        ? null
        : {
            ...state,
            phase: idle(state),
            anchorMs: state.schedule === null ? null : fact.atMs,
            cycle: null,
            lastCycle: {
              id: cycle.id,
              completedAtMs: fact.atMs,
              nodes: outcomesOf({ ...cycle, members: fact.members, designated: null }),
            },
          };
    case '$cluster-members-changed':
      return membersChanged(state, cycle, fact.added, fact.removed);
    case '$node-designated': {
      const tries = designated !== null && isSame(designated.node, fact.node) ? designated.tries + 1 : 1;
      return {
        ...state,
        phase: 'Starting',
        cycle: { ...cycle, designated: { node: fact.node, attempt: number, tries, scavengeId: null } },
      };
    }
    case '$node-scavenge-started':
      if (designated === null || !isSame(designated.node, fact.node)) return null;
      return {
        ...state,
        phase: 'Monitoring',
        cycle: { ...cycle, designated: { ...designated, scavengeId: fact.scavengeId } },
      };
    case '$node-scavenge-completed': {
      if (designated === null || !isSame(designated.node, fact.node)) return null;
      const part = { scavengeId: designated.scavengeId, result: fact.result };
      return {
        ...state,
        phase: unlessPausing(state),
        cycle: { ...cycle, designated: null, parts: new Map(cycle.parts).set(nodeKey(fact.node), part) },
      };
    }
    case '$pause-requested':
      return { ...state, phase: 'Pausing', cycle: { ...cycle, stopAttempt: number } };
    default:
      return null;
  }
}

function membersChanged(
  state: State,
  cycle: Cycle,
  added: readonly NodeAddress[],
  removed: readonly NodeAddress[],
): State {
  const gone = new Set(removed.map(nodeKey));
  const there = new Set(cycle.members.map(nodeKey));
  const members = [...cycle.members, ...added.filter((node) => !there.has(nodeKey(node)))].filter(
    (node) => !gone.has(nodeKey(node)),
  );
  const parts = new Map([...cycle.parts].filter(([key]) => !gone.has(key)));
  const { designated } = cycle;
  if (designated === null || !gone.has(nodeKey(designated.node)))
    return { ...state, cycle: { ...cycle, members, parts } };
  return { ...state, phase: unlessPausing(state), cycle: { ...cycle, members, parts, designated: null } };
}

/** After a node's part has ended the next one is chosen, unless nothing more is to begin. */
function unlessPausing(state: State): State['phase'] {
  return state.phase === 'Pausing' ? 'Pausing' : 'Choosing';
}

function idle(state: State): State['phase'] {
  return state.schedule === null ? 'NotConfigured' : 'Waiting';
}

function isSame(a: NodeAddress, b: NodeAddress): boolean {
  return a.port === b.port && a.address === b.address;
}

/**
 * The state that stored events lead to. Starts that were due before this node took the lead (`leadsSinceMs`) are
 * skipped.
 */
export function stateOf({ configuration, facts, version }: Loaded, leadsSinceMs: number, seen: Seen): State {
  let state = configuration === null ? INITIAL : apply(INITIAL, configuration, -1);
  let { anchorMs } = state;
  for (const { fact, number } of facts) {
    state = apply(state, fact, number);
    if (state.anchorMs !== null) anchorMs = Math.max(anchorMs ?? 0, state.anchorMs);
  }
  // The two streams do not show in which order their events came: the later time counts.
  return { ...state, version, seen, anchorMs: anchorMs === null ? null : Math.max(anchorMs, leadsSinceMs) };
}
