import { SkuaError } from '../../base/errors.ts';
import type { JobContext } from '../../ports/jobs.ts';
import type { ScavengeCheckpoint, ScavengePoint } from '../../ports/scavenge-state.ts';
import { ACCUMULATE_JOB } from '../accumulation.ts';
import {
  type BeginningOptions,
  decideBeginning,
  notAhead,
  resumedPointOf,
  readLatestPoint,
  writePoint,
} from '../points/points.ts';
import type { RunContext } from '../run-context.ts';
import { pointName } from '../run-log.ts';
import type { RunSettings } from '../sources/run-settings.ts';

/** Finds out where to begin. Null when there is nothing to do. */
export async function beginRun(
  run: RunContext,
  stored: ScavengeCheckpoint | null,
  options: BeginningOptions,
): Promise<ScavengeCheckpoint | null> {
  const {
    data: { store, table },
    ports: { ids, jobs },
    config: { keepsDeletedData },
  } = run.deps;
  if (stored !== null) checkBelongsToLog(stored, table.end);
  const isResumed = stored !== null && stored.stage !== 'Done' && !options.startAfresh;
  const latest = isResumed ? null : await run.orAborted(readLatestPoint(store));
  const beginning = decideBeginning(stored, latest, options, table.chunkSize);
  run.decided(resumedPointOf(beginning));
  if (beginning.kind === 'nothing') {
    run.lines.nothingToDo();
    return null;
  }
  if (beginning.kind === 'resume') {
    run.point = markedPoint(
      beginning.checkpoint.point,
      beginning.checkpoint.point.emptiesDeleted === true && !keepsDeletedData,
    );
    run.lines.resumed(beginning.checkpoint.stage, run.point);
    return beginning.checkpoint;
  }
  run.check();
  // While the point is written and its chunk completed, there will be threads for what comes behind that.
  jobs.prepare?.(ACCUMULATE_JOB);
  jobs.prepare?.();
  const { point, isOwn } =
    beginning.kind === 'use'
      ? { point: beginning.point, isOwn: false }
      : await run.deps.data.withNextChunk(() => writePoint(store, ids, beginning.after, options.threshold));
  run.point = markedPoint(notAhead(point, run.deps.ports.clock.nowMs()), !keepsDeletedData);
  run.lines.usesPoint(run.point, isOwn ? 'created' : 'existing', stored === null ? null : pointName(stored.point));
  const fromChunk = missesDeleted(run, stored) ? 0 : beginning.fromChunk;
  return { point: run.point, stage: 'Accumulating', ...(fromChunk > 0 && { doneChunk: fromChunk - 1 }) };
}

/**
 * True when rows of soft-deleted streams may be gone from the database though their last events still have their data:
 * the reference, an older version, or runs that keep these data have written it. A run that begins then learns all of
 * the log anew.
 */
export function missesDeleted(
  { deps: { config } }: Pick<RunContext, 'deps'>,
  stored: ScavengeCheckpoint | null,
): stored is ScavengeCheckpoint {
  return stored !== null && !config.keepsDeletedData && stored.point.emptiesDeleted !== true;
}

function markedPoint({ emptiesDeleted: _before, ...point }: ScavengePoint, isMarked: boolean): ScavengePoint {
  return isMarked ? { ...point, emptiesDeleted: true } : point;
}

export const ABANDON_JOB = 'scavenge.abandon';

interface AbandonArgs {
  readonly settings: RunSettings;
  readonly first: ScavengeCheckpoint;
}

/**
 * Begins afresh, once the chunk of the point is complete: puts the beginning of this run in the place of one that did
 * not end, if there is one. What that one has learnt of the log stays, since each chunk of it is read once; so do the
 * chunks that it has rewritten. What it has decided is decided anew. All of it is one transaction: a crash before it
 * leaves the unfinished run as it was, beside one more scavenge point, and a crash behind it this run.
 */
export async function restart(
  run: RunContext,
  stored: ScavengeCheckpoint | null,
  first: ScavengeCheckpoint,
): Promise<void> {
  if (stored !== null && stored.stage !== 'Done') {
    const args: AbandonArgs = { settings: run.settings(), first };
    await run.job(ABANDON_JOB, args, () => {});
    run.lines.abandoned(stored.stage, stored.point);
  }
  run.isAfresh = true;
}

/** The job. */
export async function abandonUnfinished(
  { settings, first }: AbandonArgs,
  context: JobContext,
): Promise<Record<string, never>> {
  await context.checkpoint();
  const state = context.scavengeStates.open(settings.state);
  try {
    state.begin();
    try {
      state.forgetDiscardPoints();
    } catch (error) {
      state.rollback();
      throw error;
    }
    state.commit(first);
  } finally {
    state.close();
  }
  return {};
}

/**
 * Sees to it that the chunk of the point is complete: a full disk or the end of the process can come between the two.
 * Nothing may be accumulated before, as an open chunk is not read and would never be read later.
 */
export async function completePointsChunk(run: RunContext): Promise<void> {
  const { store, table } = run.deps.data;
  const { position } = run.point;
  const isComplete = () => table.chunkAt(position)?.isCompleted === true;
  if (isComplete()) return;
  await run.orAborted(store.completeChunk(position));
  if (!isComplete())
    throw new SkuaError(
      'scavenge_failed',
      `The chunk of ${pointName(run.point)} could not be completed: free disk space and start again`,
      { position },
    );
}

/** What was learnt of another log, or of a part of this one that was cut off since, must not be applied. */
function checkBelongsToLog({ point }: ScavengeCheckpoint, logEnd: number): void {
  if (point.position < logEnd) return;
  throw new SkuaError(
    'scavenge_state_invalid',
    `The scavenge database reaches position ${point.position}, beyond the end of the log at ${logEnd}: it belongs to another log, or this one was truncated. Delete index/scavenging/scavenging.db, which is always safe, and start again`,
    { position: point.position, logEnd },
  );
}

export const CHECK_STATE_JOB = 'scavenge.check-state';

type CheckStateResult = readonly string[] | null;

/**
 * Before a run goes on with what earlier ones have learnt: a damaged database would have it remove what must stay. It
 * only saves work, so it is removed then, and the run learns everything anew.
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
