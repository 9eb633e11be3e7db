import { isSkuaError, SkuaError } from '../errors.ts';
import { guidFromUuidBytes } from '../guid.ts';
import type { Chunk } from '../log/chunk.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { EXECUTE_CHUNK_JOB, type ExecuteChunkArgs, type ExecuteChunkResult } from './chunk-execution.ts';
import { switchChunk } from './chunk-switch.ts';
import { chunkName } from './run-log.ts';
import { commit, newId, type RunContext } from './run-context.ts';
import { type Taken, TrailingCheckpoint } from './trailing-checkpoint.ts';

/** Chunks whose weights are asked for between two chances for other work. */
const WEIGHTS_SLICE = 128;

interface Planned {
  readonly chunk: Chunk;
  readonly weight: number;
  readonly isExecuted: boolean;
}

/** Chunk execution, scavenge.md section 6: rewrites the chunks that weigh enough, several at a time, and skips the others. */
export async function executeChunks(run: RunContext, state: ScavengeState, done: number | undefined): Promise<void> {
  const plan = await planChunks(run, state, done);
  const executed = plan.filter((planned) => planned.isExecuted);
  run.progress.begin('Chunk execution', plan.length, executed.reduce((sum, { chunk }) => sum + chunk.physicalBytes, 0));
  await new ChunkExecution(run, state, plan, done).run();
}

/** The chunks that begin before the scavenge point and behind what is done, and what is to happen to each. */
async function planChunks(run: RunContext, state: ScavengeState, done = -1): Promise<readonly Planned[]> {
  const { data: { table }, ports: { clock }, config } = run.deps;
  const { position, threshold } = run.point;
  const isAll = config.unsafeIgnoreHardDelete || threshold < 0;
  const hasWeights = !state.allWeightsZero();
  const plan: Planned[] = [];
  for (const chunk of table.all()) {
    if (chunk.endNumber <= done) continue;
    if (chunk.startPosition >= position) break;
    if (!chunk.isCompleted) throw new SkuaError('scavenge_failed', `Chunk ${chunkName(chunk)} lies before the scavenge point and is still being written: free some disk space so that it can be completed, and start again`, { file: chunk.name });
    const weight = hasWeights ? state.weight(chunk.startNumber, chunk.endNumber) : 0;
    plan.push({ chunk, weight, isExecuted: isAll || (weight > 0 && weight >= threshold) });
    if (hasWeights && plan.length % WEIGHTS_SLICE === 0) {
      await clock.yield();
      run.check();
    }
  }
  return plan;
}

/** What an earlier proof said counts no more: the chunk is looked at anew in the background, and ends the node if it is damaged. */
export function doubtIfDamaged(chunk: Chunk, error: unknown): void {
  if (isSkuaError(error, 'log_corrupt') && error.data.file === chunk.name) chunk.provenMs = null;
}

class ChunkExecution {
  readonly #run: RunContext;
  readonly #state: ScavengeState;
  readonly #plan: readonly Planned[];
  readonly #checkpoint: TrailingCheckpoint;
  /** Ends the other threads when one fails. */
  readonly #ending = new AbortController();
  readonly #signal: AbortSignal;
  #next = 0;
  #stored: number | undefined;
  #failure: { readonly error: unknown } | null = null;

  constructor(run: RunContext, state: ScavengeState, plan: readonly Planned[], done: number | undefined) {
    this.#run = run;
    this.#state = state;
    this.#plan = plan;
    this.#checkpoint = new TrailingCheckpoint(done);
    this.#stored = done;
    this.#signal = AbortSignal.any([run.signal, this.#ending.signal]);
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.#run.threads }, () => this.#thread()));
    // What was skipped last is stored here, also when the run was stopped.
    if (this.#checkpoint.done !== this.#stored) this.#store();
    if (this.#failure !== null) throw this.#failure.error;
  }

  async #thread(): Promise<void> {
    try {
      for (let planned = this.#take(); planned !== null; planned = this.#take()) {
        await this.#execute(planned, this.#checkpoint.take(planned.chunk.endNumber));
        if (this.#run.threads === 1) await this.#run.throttle.rest();
      }
    } catch (error) {
      this.#failure ??= { error };
      this.#ending.abort();
    }
  }

  /** The next chunk to execute, past those that are skipped; null when there is none. */
  #take(): Planned | null {
    for (;;) {
      this.#run.check();
      if (this.#ending.signal.aborted) return null;
      const planned = this.#plan[this.#next++];
      if (planned === undefined || planned.isExecuted) return planned ?? null;
      this.#run.lines.chunkSkipped(planned.chunk, planned.weight, this.#run.point.threshold);
      this.#checkpoint.finish(this.#checkpoint.take(planned.chunk.endNumber));
      this.#run.progress.chunksDone++;
    }
  }

  async #execute({ chunk, weight }: Planned, taken: Taken): Promise<void> {
    const { deps, lines, progress, history } = this.#run;
    const startedMs = deps.ports.clock.monotonicMs();
    const target = `${newId(deps.ports.ids)}.scavenge.tmp`;
    lines.chunkStarted(chunk, weight, target);
    const part = Symbol();
    const args: ExecuteChunkArgs = { settings: this.#run.settings(this.#run.threads), chunkSize: deps.data.table.chunkSize, source: chunk.name, target, chunkId: guidFromUuidBytes(deps.ports.ids.uuidBytes()) };
    let isDone = false;
    try {
      const result = await this.#run.job<ExecuteChunkResult>(EXECUTE_CHUNK_JOB, args, (told) => progress.ofPart(part, told, chunk.physicalBytes), this.#signal);
      const replacement = await switchChunk(this.#run.switchParts(), target, chunk.startNumber, chunk.endNumber);
      isDone = true;
      const elapsedMs = deps.ports.clock.monotonicMs() - startedMs;
      const spaceSaved = result.bytesBefore - result.bytesAfter;
      history.chunkExecuted(chunk.startNumber, chunk.endNumber, elapsedMs, spaceSaved);
      progress.bytesReclaimed += spaceSaved;
      lines.chunkDone(chunk, replacement, elapsedMs, result);
      this.#checkpoint.finish(taken);
      this.#store(() => this.#state.resetWeights(chunk.startNumber, chunk.endNumber));
    } catch (error) {
      doubtIfDamaged(chunk, error);
      throw error;
    } finally {
      progress.endPart(part, isDone ? chunk.physicalBytes : 0, isDone ? 1 : 0);
      // The job removes what it can't finish; what is left when its thread died goes here, or at the next start.
      if (!isDone) await deps.ports.storage.remove(target).catch(() => {});
    }
  }

  #store(change?: () => void): void {
    const { done } = this.#checkpoint;
    commit(this.#state, { point: this.#run.point, stage: 'ExecutingChunks', ...(done !== undefined && { doneChunk: done }) }, change);
    this.#stored = done;
  }
}
