import type { JobContext } from '../../ports/jobs.ts';
import type { RunContext } from '../run-context.ts';

export const CHECK_STATE_JOB = 'scavenge.check-state';

type CheckStateResult = readonly string[] | null;

/**
 * Before a run goes on with what earlier ones have learnt: a damaged database would have it remove what must stay. It only saves work, so it is
 * removed then, and the run learns everything anew.
 */
export async function dropDamagedState(run: RunContext): Promise<void> {
  if (!run.deps.config.checkState || !run.deps.ports.states.isOnDisk()) return;
  const found = await run.orAborted(run.job<CheckStateResult>(CHECK_STATE_JOB, {}, () => {}));
  if (found === null || found.length === 0) return;
  run.lines.stateDamaged(found);
  run.deps.ports.states.remove();
}

/** SQLite's own check of its pages, about as long as reading the file once. Not to be interrupted. */
export async function checkState(_args: Record<string, never>, context: JobContext): Promise<CheckStateResult> {
  return context.scavengeStates.check('quick');
}
