import { SkuaError } from '../errors.ts';
import type { ScavengeCheckpoint, ScavengeStage, ScavengeState, StreamHandle } from '../ports/scavenge-state.ts';
import { ACCUMULATE_JOB } from './accumulation.ts';
import type { AccumulateArgs, AccumulateResult } from './accumulation.ts';
import type { ScavengePhase } from './api.ts';
import { decideBeginning, notAhead, readLatestPoint, writePoint } from './beginning.ts';
import { CALCULATE_JOB } from './calculation.ts';
import type { CalculateArgs, CalculateResult } from './calculation.ts';
import { CLEAN_JOB } from './cleaning.ts';
import type { CleanArgs } from './cleaning.ts';
import { runChunkExecution } from './chunk-execution.ts';
import { runIndexExecution } from './index-execution.ts';
import { runChunkMerging } from './chunk-merging.ts';
import { commit, withFiles } from './run-context.ts';
import type { RunContext } from './run-context.ts';
import { pointName } from './run-log.ts';

/** What an administrator asked for that matters only at the beginning. */
export interface BeginningOptions {
  readonly threshold: number;
  readonly syncOnly: boolean;
}

const STAGES: readonly ScavengeStage[] = ['Accumulating', 'Calculating', 'ExecutingChunks', 'MergingChunks', 'ExecutingIndex', 'Cleaning'];

/**
 * One run from its beginning to its end; scavenge.md sections 3 to 9. Rejects with `aborted` when it was stopped, and
 * with what made it fail. What was committed and switched in by then stays, and the next run goes on behind it.
 */
export async function runScavenge(run: RunContext, options: BeginningOptions): Promise<void> {
  const stored = await run.withState((state) => {
    run.lines.opened(state.collisions());
    return state.checkpoint();
  });
  run.history.started();
  const first = await begin(run, stored, options);
  if (first === null) return;
  await completePointsChunk(run);
  // Entries of the log before the scavenge point must be in tables, which are all that jobs read.
  await run.orAborted(run.deps.data.index.flush());
  const stage = STAGES.indexOf(first.stage);
  if (stage <= 0) await accumulate(run, (first.doneChunk ?? -1) + 1, first !== stored);
  if (stage <= 1) await calculate(run, stage === 1 ? first.doneStream ?? null : null, stage < 1);
  if (stage <= 4) await run.withState((state) => execute(run, state, first, stage));
  await clean(run);
}

/** Finds out where to begin. Null when there is nothing to do. */
async function begin(run: RunContext, stored: ScavengeCheckpoint | null, options: BeginningOptions): Promise<ScavengeCheckpoint | null> {
  const { data: { store, table }, ports: { ids } } = run.deps;
  if (stored !== null) checkBelongsToLog(stored, table.end);
  const isResumed = stored !== null && stored.stage !== 'Done';
  const latest = isResumed ? null : await run.orAborted(readLatestPoint(store));
  const beginning = decideBeginning(stored, latest, options.syncOnly, table.chunkSize);
  if (beginning.kind === 'nothing') {
    run.lines.nothingToDo();
    return null;
  }
  if (beginning.kind === 'resume') {
    run.point = beginning.checkpoint.point;
    run.lines.resumed(beginning.checkpoint.stage, run.point);
    return beginning.checkpoint;
  }
  run.check();
  const point = beginning.kind === 'use' ? beginning.point : await run.deps.data.withNextChunk(() => writePoint(store, ids, beginning.after, options.threshold));
  run.point = notAhead(point, run.deps.ports.clock.nowMs());
  run.lines.usesPoint(run.point, beginning.kind === 'use' ? 'existing' : 'created', stored === null ? null : pointName(stored.point));
  return { point: run.point, stage: 'Accumulating', ...(beginning.fromChunk > 0 && { doneChunk: beginning.fromChunk - 1 }) };
}

/**
 * Sees to it that the chunk of the point is complete: a full disk or the end of the process can come between the two.
 * Nothing may be accumulated before, as an open chunk is not read and would never be read later.
 */
async function completePointsChunk(run: RunContext): Promise<void> {
  const { store, table } = run.deps.data;
  const { position } = run.point;
  const isComplete = () => table.chunkAt(position)?.isCompleted === true;
  if (isComplete()) return;
  await run.orAborted(store.completeChunk(position));
  if (!isComplete()) throw new SkuaError('scavenge_failed', `The chunk of ${pointName(run.point)} could not be completed: free some disk space, and start again`, { position });
}

/** What was learnt of another log, or of a part of this one that was cut off since, must not be applied. */
function checkBelongsToLog({ point }: ScavengeCheckpoint, logEnd: number): void {
  if (point.position < logEnd) return;
  throw new SkuaError('scavenge_state_invalid', `The scavenge database reaches to position ${point.position}, beyond the end of the log at ${logEnd}: it belongs to another log, or this one was truncated. Delete index/scavenging/scavenging.db, which is always safe, and start again`, { position: point.position, logEnd });
}

/** Stores that a stage has begun. */
async function storeBegun(run: RunContext, checkpoint: ScavengeCheckpoint): Promise<void> {
  await run.withState((state) => commit(state, checkpoint));
}

async function accumulate(run: RunContext, fromChunk: number, isNew: boolean): Promise<void> {
  const { point } = run;
  if (isNew) await storeBegun(run, { point, stage: 'Accumulating', ...(fromChunk > 0 && { doneChunk: fromChunk - 1 }) });
  await phase(run, 'Accumulation', async () => {
    let from = fromChunk;
    const result = await withFiles(run.deps.data, false, (files) => {
      const args: AccumulateArgs = { files, settings: run.settings(), fromChunk: from };
      return run.job<AccumulateResult>(ACCUMULATE_JOB, args, (progress) => run.progress.ofPhase(progress)).catch(async (error: unknown) => {
        // Where the files have to be listed anew, the chunks that are done are not read again.
        from = await run.withState((state) => (state.checkpoint()?.doneChunk ?? -1) + 1);
        throw error;
      });
    }, (file) => run.lines.filesVanished(ACCUMULATE_JOB, file));
    run.throttle.restedMs = result.restedMs;
    return { chunks: result.chunks, records: result.records, metadata: result.metadata, tombstones: result.tombstones };
  });
}

async function calculate(run: RunContext, after: StreamHandle | null, isNew: boolean): Promise<void> {
  const { point } = run;
  if (isNew) await storeBegun(run, { point, stage: 'Calculating' });
  await phase(run, 'Calculation', async () => {
    let from = after;
    const result = await withFiles(run.deps.data, false, (files) => {
      const args: CalculateArgs = { files, settings: run.settings(), after: from };
      return run.job<CalculateResult>(CALCULATE_JOB, args, (progress) => run.progress.ofPhase(progress)).catch(async (error: unknown) => {
        from = await run.withState((state) => state.checkpoint()?.doneStream ?? null);
        throw error;
      });
    }, (file) => run.lines.filesVanished(CALCULATE_JOB, file));
    run.throttle.restedMs = result.restedMs;
    return { streams: result.streams };
  });
}

/** The stages that change files, with the state open on this thread. Its rows were written by jobs that have ended, so what is written here is small. */
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

async function clean(run: RunContext): Promise<void> {
  await phase(run, 'Cleaning', async () => {
    const args: CleanArgs = { settings: run.settings() };
    await run.job(CLEAN_JOB, args, () => {});
  });
}

async function phase(run: RunContext, name: ScavengePhase, work: () => Promise<Record<string, unknown> | void>): Promise<void> {
  run.check();
  run.progress.begin(name, 0, 0);
  run.lines.phaseStarted(name);
  const { clock } = run.deps.ports;
  const startedMs = clock.monotonicMs();
  const details = await work();
  run.lines.phaseCompleted(name, clock.monotonicMs() - startedMs, run.throttle.restedMs, details ?? {});
}
