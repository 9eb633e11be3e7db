import { nodeKey } from '../ports/nodes.ts';
import type { NodeAddress, NodesView } from '../ports/nodes.ts';
import type { AutoScavengeState, AutoScavengeStatus, NodeOutcome } from './api.ts';
import type { NodeResult } from './facts.ts';

/** What the state machine knows. Values, never changed in place. */

type Phase =
  | 'NotConfigured'
  | 'Waiting'
  | 'Choosing'
  | 'Starting'
  | 'Monitoring'
  | 'Pausing'
  | 'PausedInCycle'
  | 'PausedIdle';

export interface State {
  readonly phase: Phase;
  readonly schedule: string | null;
  /** From here the next start is computed; null without a schedule. */
  readonly anchorMs: number | null;
  /** Number of the last event of the stream of cycles, -1 for none. */
  readonly version: number;
  readonly cycle: Cycle | null;
  readonly lastCycle: LastCycle | null;
  readonly seen: Seen;
}

export interface Cycle {
  readonly id: string;
  readonly startedAtMs: number;
  /** In the order in which they were there. */
  readonly members: readonly NodeAddress[];
  /** How their part went, of those members that had one. */
  readonly parts: ReadonlyMap<string, Part>;
  readonly designated: Designation | null;
  /** Number of the event that last asked for a pause, -1 for none: the attempt of the order to stop. */
  readonly stopAttempt: number;
}

interface Part {
  /** Null when it ended without a run. */
  readonly scavengeId: string | null;
  readonly result: NodeResult;
}

export interface Designation {
  readonly node: NodeAddress;
  /** Number of the event that designated it. */
  readonly attempt: number;
  /** How often it was designated in a row. */
  readonly tries: number;
  /** Of the run that was started, null before. */
  readonly scavengeId: string | null;
}

interface LastCycle {
  readonly id: string;
  readonly completedAtMs: number;
  readonly nodes: readonly NodeOutcome[];
}

/** What was seen rather than stored; times are of the monotonic clock. */
export interface Seen {
  /** Null until the cluster was looked at. */
  readonly view: NodesView | null;
  /** The first call to the designated node that had no useful answer, since one that had; null for none. */
  readonly silentSinceMs: number | null;
  /** Since when members of the cycle are not there, or not alive; those that are there are left out. */
  readonly absentSinceMs: ReadonlyMap<string, number>;
  /** Since when there are fewer voting members than there should be; null when there are enough. */
  readonly shortSinceMs: number | null;
}

export const NOTHING_SEEN: Seen = { view: null, silentSinceMs: null, absentSinceMs: new Map(), shortSinceMs: null };

export const INITIAL: State = {
  phase: 'NotConfigured',
  schedule: null,
  anchorMs: null,
  version: -1,
  cycle: null,
  lastCycle: null,
  seen: NOTHING_SEEN,
};

const SHOWN: Readonly<Record<Phase, AutoScavengeState>> = {
  NotConfigured: 'NotConfigured',
  Waiting: 'Waiting',
  Choosing: 'InProgress',
  Starting: 'InProgress',
  Monitoring: 'InProgress',
  Pausing: 'Pausing',
  PausedInCycle: 'Paused',
  PausedIdle: 'Paused',
};

export function shownAs(phase: Phase): AutoScavengeState {
  return SHOWN[phase];
}

/** Members of the cycle whose part has not ended. */
export function remainingOf(cycle: Cycle): NodeAddress[] {
  return cycle.members.filter((node) => !cycle.parts.has(nodeKey(node)));
}

/** The members of a cycle as they are shown. */
export function outcomesOf({ members, parts, designated }: Cycle): NodeOutcome[] {
  return members.map((member) => {
    const node = nodeKey(member);
    const part = parts.get(node);
    if (part !== undefined) return { node, state: 'completed', ...part };
    const scavengeId = designated !== null && nodeKey(designated.node) === node ? designated.scavengeId : null;
    return { node, state: scavengeId === null ? 'waiting' : 'running', scavengeId, result: null };
  });
}

type Health = 'healthy' | 'short' | 'surplus';

/**
 * Whether the cluster has exactly the voting members that it is meant to have; dead ones that are still listed count.
 */
export function healthOf(view: NodesView): Health {
  const voting = view.members.filter((member) => !member.isReadOnlyReplica).length;
  if (voting === view.clusterSize) return 'healthy';
  return voting < view.clusterSize ? 'short' : 'surplus';
}

/** What is shown of a state. `next` gives the start after an instant, null for never. */
export function statusOf(
  state: State,
  nowMs: number,
  next: (schedule: string, afterMs: number) => number | null,
): AutoScavengeStatus {
  const { phase, schedule, cycle, lastCycle } = state;
  return {
    state: shownAs(phase),
    schedule,
    untilNextCycleMs: untilNext(state, nowMs, next),
    cycle:
      cycle === null ? null : { clusterScavengeId: cycle.id, startedAtMs: cycle.startedAtMs, nodes: outcomesOf(cycle) },
    lastCycle:
      lastCycle === null
        ? null
        : { clusterScavengeId: lastCycle.id, completedAtMs: lastCycle.completedAtMs, nodes: lastCycle.nodes },
  };
}

function untilNext(
  { phase, schedule, anchorMs, cycle }: State,
  nowMs: number,
  next: (schedule: string, afterMs: number) => number | null,
): number | null {
  if (cycle !== null) return 0;
  if (schedule === null) return null;
  const dueMs = next(schedule, phase === 'PausedIdle' ? nowMs : Math.min(anchorMs ?? nowMs, nowMs));
  return dueMs === null ? null : Math.max(0, dueMs - nowMs);
}
