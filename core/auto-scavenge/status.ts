import type { AutoScavengeStatus } from './api.ts';
import type { State } from './state.ts';
import { outcomesOf, shownAs } from './state.ts';

/** What is shown of a state; auto-scavenge.md section 6.2. `next` gives the start after an instant, null for never. */
export function statusOf(state: State, nowMs: number, next: (schedule: string, afterMs: number) => number | null): AutoScavengeStatus {
  const { phase, schedule, cycle, lastCycle } = state;
  return {
    state: shownAs(phase),
    schedule,
    untilNextCycleMs: untilNext(state, nowMs, next),
    cycle: cycle === null ? null : { clusterScavengeId: cycle.id, startedAtMs: cycle.startedAtMs, nodes: outcomesOf(cycle) },
    lastCycle: lastCycle === null ? null : { clusterScavengeId: lastCycle.id, completedAtMs: lastCycle.completedAtMs, nodes: lastCycle.nodes },
  };
}

function untilNext({ phase, schedule, anchorMs, cycle }: State, nowMs: number, next: (schedule: string, afterMs: number) => number | null): number | null {
  if (cycle !== null) return 0;
  if (schedule === null) return null;
  const dueMs = next(schedule, phase === 'PausedIdle' ? nowMs : Math.min(anchorMs ?? nowMs, nowMs));
  return dueMs === null ? null : Math.max(0, dueMs - nowMs);
}
