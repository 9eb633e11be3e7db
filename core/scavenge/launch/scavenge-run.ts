import type { ScavengeCheckpoint, ScavengeStage, ScavengeState } from '../../ports/scavenge-state.ts';
import { runAccumulation } from '../accumulation.ts';
import type { ScavengePhase } from '../api.ts';
import { beginRun, completePointsChunk, dropDamagedState, missesDeleted, restart } from './beginning.ts';
import { runCalculation } from '../calculation.ts';
import { runChunkExecution } from '../chunk-execution.ts';
import { runChunkMerging } from '../chunk-merging.ts';
import { runCleaning } from '../cleaning.ts';
import { runIndexExecution } from '../index-execution.ts';
import type { BeginningOptions } from '../points/points.ts';
import { commit, type RunContext } from '../run-context.ts';

const STAGES: readonly ScavengeStage[] = [
  'Accumulating',
  'Calculating',
  'ExecutingChunks',
  'MergingChunks',
  'ExecutingIndex',
  'Cleaning',
];

/**
 * One run from its beginning to its end. Rejects with `aborted` when it was stopped, and with what made it fail. What
 * was committed and switched in by then stays, and the next run goes on behind it.
 */
export async function runScavenge(run: RunContext, options: BeginningOptions): Promise<void> {
  await dropDamagedState(run);
  const stored = await run.withState((state) => {
    run.lines.opened(state.collisions());
    return state.checkpoint();
  });
  run.history.started();
  const first = await beginRun(run, stored, options);
  if (first === null) return;
  await completePointsChunk(run);
  if (first !== stored && missesDeleted(run, stored)) {
    run.lines.learnsDeleted();
    // As ever it only saves work: a crash from here on has the next run learn all of it to the same point.
    run.deps.ports.states.remove();
    // At once, so that a run which is ended before it has learnt anything leaves a database for its tick to store
    // in the bucket.
    await storeBegun(run, first);
  }
  if (options.startAfresh) await restart(run, stored, first);
  // Entries of the log before the scavenge point must be in tables, which are all that jobs read. Merges of them end
  // here, too: they would take tables away faster than a job can open many of them.
  await run.orAborted(run.deps.data.index.flush());
  const stage = STAGES.indexOf(first.stage);
  if (stage <= 0) {
    if (first !== stored) await storeBegun(run, first);
    await phase(run, 'Accumulation', () => runAccumulation(run, (first.doneChunk ?? -1) + 1));
  }
  if (stage <= 1) {
    if (stage < 1) await storeBegun(run, { point: run.point, stage: 'Calculating' });
    await phase(run, 'Calculation', () => runCalculation(run, stage === 1 ? (first.doneStream ?? null) : null));
  }
  if (stage <= 4) await run.withState((state) => execute(run, state, first, stage));
  await phase(run, 'Cleaning', () => runCleaning(run));
}

/** Stores that a stage has begun. */
async function storeBegun(run: RunContext, checkpoint: ScavengeCheckpoint): Promise<void> {
  await run.withState((state) => commit(state, checkpoint));
}

/**
 * The stages that change files, with the state open on this thread. Its rows were written by jobs that have ended, so
 * what is written here is small.
 */
async function execute(run: RunContext, state: ScavengeState, first: ScavengeCheckpoint, stage: number): Promise<void> {
  const { point } = run;
  if (stage <= 2) {
    if (stage < 2) commit(state, { point, stage: 'ExecutingChunks' });
    await phase(run, 'Chunk execution', () => runChunkExecution(run, state, stage === 2 ? first.doneChunk : undefined));
  }
  if (stage <= 3 && !run.deps.config.disableMerging) {
    if (stage < 3) commit(state, { point, stage: 'MergingChunks' });
    await phase(run, 'Chunk merging', () => runChunkMerging(run));
  }
  if (stage < 4) commit(state, { point, stage: 'ExecutingIndex' });
  await phase(run, 'Index execution', () => runIndexExecution(run));
  commit(state, { point, stage: 'Cleaning' });
}

async function phase(
  run: RunContext,
  name: ScavengePhase,
  work: () => Promise<Record<string, unknown> | void>,
): Promise<void> {
  run.check();
  run.progress.begin(name, 0, 0);
  run.lines.phaseStarted(name);
  const { clock } = run.deps.ports;
  const startedMs = clock.monotonicMs();
  const details = await work();
  run.lines.phaseCompleted(name, clock.monotonicMs() - startedMs, run.throttle.restedMs, details ?? {});
}
