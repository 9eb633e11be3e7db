import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidFromUuidBytes } from '../base/guid.ts';
import type { Chunk } from '../log/api.ts';
import { newId } from '../ports/ids.ts';
import type { Job, JobContext } from '../ports/jobs.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { doubtIfDamaged, switchChunk } from './chunk-switch.ts';
import { ChunkWriter, openSource } from './chunk-writer.ts';
import type { MarkColumns } from '../streams/api.ts';
import { KeepRule } from './keep-rule.ts';
import type { MergePolicy } from './merge-policy.ts';
import {
  EXECUTE_NEIGHBOURS_JOB,
  type ExecuteNeighboursArgs,
  type ExecuteNeighboursResult,
  executeNeighbours,
} from './neighbours-job.ts';
import { neighboursFrom, type Planned, SurvivorEstimate } from './neighbours.ts';
import { commit, type RunContext } from './run-context.ts';
import { chunkName } from './run-log.ts';
import type { RunSettings } from './sources/run-settings.ts';
import { SurvivorCopy } from './survivor-copy.ts';

/** Chunks whose weights are asked for between two chances for other work. */
const WEIGHTS_SLICE = 128;

/** Chunk execution: rewrites the chunks that weigh enough, several at a time, and skips the others. */
export async function runChunkExecution(
  run: RunContext,
  state: ScavengeState,
  done: number | undefined,
): Promise<void> {
  const plan = await planChunks(run, state, done);
  run.progress.begin('Chunk execution', plan.length, executedBytes(plan));
  const execution = new ChunkExecution(run, state, plan, done);
  try {
    await execution.run();
  } finally {
    execution.tellMerges();
  }
}

/** The chunks that begin before the scavenge point and behind what is done, and what is to happen to each. */
async function planChunks(run: RunContext, state: ScavengeState, done = -1): Promise<readonly Planned[]> {
  const {
    data: { table },
    ports: { clock },
    config,
  } = run.deps;
  const { position, threshold } = run.point;
  const isAll = config.unsafeIgnoreHardDelete || threshold < 0;
  const hasWeights = !state.allWeightsZero();
  const plan: Planned[] = [];
  for (const chunk of table.all()) {
    if (chunk.endNumber <= done) continue;
    if (chunk.startPosition >= position) break;
    if (!chunk.isCompleted)
      throw new SkuaError(
        'scavenge_failed',
        `Chunk ${chunkName(chunk)} is before the scavenge point but still being written: free disk space so that it can be completed, and start again`,
        { file: chunk.name },
      );
    const weight = hasWeights ? state.weight(chunk.startNumber, chunk.endNumber) : 0;
    plan.push({ chunk, weight, isExecuted: isAll || (weight > 0 && weight >= threshold) });
    if (hasWeights && plan.length % WEIGHTS_SLICE === 0) {
      await clock.yield();
      run.check();
    }
  }
  return plan;
}

/** Chunks that one thread executes, neighbours in the order of the log. */
interface WorkItem {
  /** Those that are not done yet. */
  members: readonly Planned[];
  /** Place in the plan behind the last. */
  readonly end: number;
  readonly ticket: Ticket;
  /** To be executed one by one, because together they could not be. */
  isAlone: boolean;
}

class ChunkExecution {
  readonly #run: RunContext;
  readonly #state: ScavengeState;
  readonly #plan: readonly Planned[];
  readonly #checkpoint: TrailingCheckpoint;
  readonly #estimate: SurvivorEstimate;
  readonly #merges: boolean;
  readonly #policy: MergePolicy;
  readonly #merged: Parameters<RunContext['history']['merged']>[0][] = [];
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
    this.#estimate = new SurvivorEstimate(run.recordCounts);
    this.#merges = !run.deps.config.disableMerging && run.deps.config.mergesWhileExecuting;
    this.#policy = { chunkSize: run.deps.data.table.chunkSize, always: run.deps.config.mergesAlways };
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
      for (let item = this.#take(); item !== null; item = this.#take()) {
        while (item.members.length > 0) {
          await this.#advance(item);
          if (this.#run.threads === 1) await this.#run.throttle.rest();
          this.#run.check();
        }
      }
    } catch (error) {
      this.#failure ??= { error };
      this.#ending.abort();
    }
  }

  /** The next chunks to execute, past those that are skipped; null when there are none. */
  #take(): WorkItem | null {
    for (;;) {
      this.#run.check();
      if (this.#ending.signal.aborted || this.#next === this.#plan.length) return null;
      const members = this.#merges
        ? neighboursFrom(this.#plan, this.#next, this.#estimate, this.#policy)
        : [this.#plan[this.#next]!];
      this.#next += members.length;
      const ticket = this.#checkpoint.take(members.at(-1)!.chunk.endNumber);
      if (members.some(({ isExecuted }) => isExecuted)) return { members, end: this.#next, ticket, isAlone: false };
      for (const member of members) this.#skip(member);
      this.#checkpoint.finish(ticket);
    }
  }

  #skip({ chunk, weight }: Planned): void {
    this.#run.lines.chunkSkipped(chunk, weight, this.#run.point.threshold);
    this.#run.progress.chunksDone++;
  }

  /** Does the next of a portion's chunks, one or several. */
  async #advance(item: WorkItem): Promise<void> {
    const { members } = item;
    const [first] = members as [Planned];
    if (members.length > 1 && !item.isAlone) {
      try {
        await this.#executeTogether(item);
      } catch (error) {
        if (this.#signal.aborted || isSkuaError(error, 'aborted')) throw error;
        // A chunk that is damaged must not keep its neighbours from being executed, nor a disk that has room for less.
        for (const { chunk } of members) doubtIfDamaged(chunk, error);
        this.#run.lines.notTogether(
          members.map(({ chunk }) => chunk),
          error,
        );
        item.isAlone = true;
      }
    } else if (first.isExecuted) await this.#executeAlone(first, item);
    else this.#finish(item, 1);
  }

  async #executeAlone(planned: Planned, item: WorkItem): Promise<void> {
    const { chunk, weight } = planned;
    const { deps, lines, progress, history } = this.#run;
    const startedMs = deps.ports.clock.monotonicMs();
    const target = `${newId(deps.ports.ids)}.scavenge.tmp`;
    lines.chunkStarted(chunk, weight, target);
    const part = Symbol();
    const args: ExecuteChunkArgs = {
      settings: this.#run.settings(this.#run.threads),
      chunkSize: deps.data.table.chunkSize,
      source: chunk.name,
      marks: deps.data.store.redactions.columns(chunk.startPosition, chunk.endPosition, this.#run.point.position),
      target,
      chunkId: guidFromUuidBytes(deps.ports.ids.uuidBytes()),
    };
    let isDone = false;
    try {
      const result = await this.#run.job<ExecuteChunkResult>(
        EXECUTE_CHUNK_JOB,
        args,
        (told) => progress.ofPart(part, told, chunk.physicalBytes),
        this.#signal,
      );
      const replacement = await switchChunk(this.#run.switchParts(), target, chunk.startNumber, chunk.endNumber);
      isDone = true;
      const elapsedMs = deps.ports.clock.monotonicMs() - startedMs;
      const spaceSaved = result.bytesBefore - result.bytesAfter;
      history.chunkExecuted(chunk.startNumber, chunk.endNumber, elapsedMs, spaceSaved);
      progress.bytesReclaimed += spaceSaved;
      lines.chunkDone(chunk, replacement, elapsedMs, result);
      this.#estimate.learn(planned, replacement.physicalBytes);
      this.#finish(item, 1);
    } catch (error) {
      doubtIfDamaged(chunk, error);
      throw error;
    } finally {
      progress.endPart(part, isDone ? chunk.physicalBytes : 0, isDone ? 1 : 0);
      // The job removes what it can't finish; what is left when its thread died goes here, or at the next start.
      if (!isDone) await deps.ports.storage.remove(target).catch(() => {});
    }
  }

  /**
   * Writes the survivors of neighbours into one file, as many as do fit: they are executed and merged with one switch.
   */
  async #executeTogether(item: WorkItem): Promise<void> {
    const { members } = item;
    const { deps, lines, progress } = this.#run;
    const startedMs = deps.ports.clock.monotonicMs();
    const target = `${newId(deps.ports.ids)}.merge.scavenge.tmp`;
    for (const { chunk, weight, isExecuted } of members) if (isExecuted) lines.chunkStarted(chunk, weight, target);
    const bytes = executedBytes(members);
    const part = Symbol();
    const args: ExecuteNeighboursArgs = {
      settings: this.#run.settings(this.#run.threads),
      chunkSize: deps.data.table.chunkSize,
      sources: members.map(({ chunk, isExecuted }) => ({
        name: chunk.name,
        startNumber: chunk.startNumber,
        endNumber: chunk.endNumber,
        dataBytes: chunk.physicalBytes,
        isExecuted,
      })),
      marks: deps.data.store.redactions.columns(
        members[0]!.chunk.startPosition,
        members.at(-1)!.chunk.endPosition,
        this.#run.point.position,
      ),
      target,
      chunkId: guidFromUuidBytes(deps.ports.ids.uuidBytes()),
    };
    let done: readonly Planned[] = [];
    try {
      const result = await this.#run.job<ExecuteNeighboursResult>(
        EXECUTE_NEIGHBOURS_JOB,
        args,
        (told) => progress.ofPart(part, told, bytes),
        this.#signal,
      );
      this.#run.throttle.restedMs = result.restedMs;
      const written = members.slice(0, result.written.length);
      const replacement =
        result.bytesAfter === null
          ? null
          : await switchChunk(
              this.#run.switchParts(),
              target,
              written[0]!.chunk.startNumber,
              written.at(-1)!.chunk.endNumber,
            );
      done = written;
      if (replacement !== null)
        this.#tellTogether(done, replacement, result, deps.ports.clock.monotonicMs() - startedMs);
      this.#finish(item, done.length);
    } finally {
      progress.endPart(part, executedBytes(done), done.filter(({ isExecuted }) => isExecuted).length);
      if (done.length === 0) await deps.ports.storage.remove(target).catch(() => {});
    }
  }

  /** Called once, when no more chunks are executed. */
  tellMerges(): void {
    for (const merge of this.#merged.toSorted((a, b) => a.startNumber - b.startNumber)) this.#run.history.merged(merge);
  }

  /**
   * The same as of chunks that were executed one by one, and of their merge where there are several: what each would
   * have taken and saved by itself.
   */
  #tellTogether(
    done: readonly Planned[],
    replacement: Chunk,
    { written, bytesAfter }: ExecuteNeighboursResult,
    elapsedMs: number,
  ): void {
    const { lines, progress, history } = this.#run;
    let mergeMs = elapsedMs;
    let mergedBytes = 0;
    done.forEach((planned, i) => {
      const result = written[i]!;
      const { chunk } = planned;
      mergedBytes += result.bytesAfter;
      if (!planned.isExecuted) return;
      const spaceSaved = result.bytesBefore - result.bytesAfter;
      mergeMs -= result.elapsedMs;
      progress.bytesReclaimed += spaceSaved;
      history.chunkExecuted(chunk.startNumber, chunk.endNumber, result.elapsedMs, spaceSaved);
      lines.chunkDone(chunk, replacement, result.elapsedMs, result);
      this.#estimate.learn(planned, result.dataBytes);
    });
    if (done.length === 1) return;
    const spaceSaved = mergedBytes - bytesAfter!;
    progress.bytesReclaimed += spaceSaved;
    // The history reports merges behind all chunks, as it does where they come later.
    this.#merged.push({
      startNumber: replacement.startNumber,
      endNumber: replacement.endNumber,
      elapsedMs: Math.max(0, mergeMs),
      spaceSaved,
      error: null,
    });
    lines.merged(
      done.map(({ chunk }) => chunk),
      replacement,
      Math.max(0, mergeMs),
      spaceSaved,
    );
  }

  /**
   * The first chunks of a portion are done, or skipped. What is left is given back, to be taken with what lies behind
   * it, unless another thread has taken that.
   */
  #finish(item: WorkItem, count: number): void {
    const done = item.members.slice(0, count);
    for (const planned of done) if (!planned.isExecuted) this.#skip(planned);
    item.members = item.members.slice(count);
    const rest = item.members;
    if (rest.length > 0 && !item.isAlone && this.#next === item.end) {
      this.#next -= rest.length;
      item.ticket.endNumber = rest[0]!.chunk.startNumber - 1;
      item.members = [];
    }
    if (item.members.length === 0) this.#checkpoint.finish(item.ticket);
    const executed = done.filter(({ isExecuted }) => isExecuted);
    if (executed.length > 0)
      this.#store(() => {
        for (const { chunk } of executed) this.#state.resetWeights(chunk.startNumber, chunk.endNumber);
      });
  }

  #store(change?: () => void): void {
    const { done } = this.#checkpoint;
    commit(
      this.#state,
      { point: this.#run.point, stage: 'ExecutingChunks', ...(done !== undefined && { doneChunk: done }) },
      change,
    );
    this.#stored = done;
  }
}

function executedBytes(chunks: readonly Planned[]): number {
  return chunks.reduce((sum, { chunk, isExecuted }) => sum + (isExecuted ? chunk.physicalBytes : 0), 0);
}

/** Chunks that were taken together. */
interface Ticket {
  /** Of the last one. */
  endNumber: number;
  isDone: boolean;
}

/**
 * The checkpoint of work that several threads do at once: it may name a chunk only when that one and every chunk taken
 * before it are finished.
 */
export class TrailingCheckpoint {
  readonly #underWay: Ticket[] = [];
  /** Last logical chunk up to which everything is finished; undefined for none. */
  done: number | undefined;

  constructor(done: number | undefined) {
    this.done = done;
  }

  /** Chunks are taken in the order of the log. */
  take(endNumber: number): Ticket {
    const ticket = { endNumber, isDone: false };
    this.#underWay.push(ticket);
    return ticket;
  }

  /** True when the checkpoint moved. */
  finish(ticket: Ticket): boolean {
    ticket.isDone = true;
    const before = this.done;
    while (this.#underWay[0]?.isDone === true) this.done = this.#underWay.shift()!.endNumber;
    return this.done !== before;
  }
}

/** The job that rewrites one chunk. */
export const EXECUTE_CHUNK_JOB = 'scavenge.execute-chunk';

export interface ExecuteChunkArgs {
  readonly settings: RunSettings;
  readonly chunkSize: number;
  /** Name of the chunk file in force. */
  readonly source: string;
  /** Those of its records that lie before the point. */
  readonly marks?: MarkColumns;
  /** `<uuid>.scavenge.tmp` */
  readonly target: string;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

export interface ExecuteChunkResult {
  readonly recordsKept: number;
  readonly recordsDiscarded: number;
  /** Of those that were kept: they lost their data. */
  readonly recordsEmptied: number;
  /** Sizes of the old and the new file. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** End of the last kept record relative to the chunk's start; 0 when nothing was kept. */
  readonly logicalBytes: number;
}

/**
 * Copies what survives of one chunk into a new file, which is complete and durable under its temporary name when the
 * job ends, and gone when it throws. Throws `log_corrupt` for a file that is not as it was written.
 */
export async function executeChunk(args: ExecuteChunkArgs, context: JobContext): Promise<ExecuteChunkResult> {
  const source = await openSource(context.storage, args.source, args.chunkSize);
  try {
    const state = context.scavengeStates.open(args.settings.state);
    try {
      return await rewrite(source, new KeepRule(state, args.settings, context.hasher, args.marks), args, context);
    } finally {
      state.close();
    }
  } finally {
    await source.file.retire();
  }
}

async function rewrite(
  source: Chunk,
  keep: KeepRule,
  args: ExecuteChunkArgs,
  context: JobContext,
): Promise<ExecuteChunkResult> {
  const { startNumber, endNumber } = source;
  const writer = await ChunkWriter.create(context.storage, context.digests, {
    path: args.target,
    chunkSize: args.chunkSize,
    startNumber,
    endNumber,
    chunkId: args.chunkId,
  });
  try {
    let bytesDone = 0;
    const onPassed = (bytes: number): void => {
      bytesDone += bytes;
      context.progress({ done: bytesDone, total: source.physicalBytes, unit: 'bytes' });
    };
    const copy = new SurvivorCopy(
      { source, keep, writer, start: source.startPosition, roomBytes: Infinity, onPassed },
      context,
    );
    await copy.copy();
    const bytesAfter = await writer.finish();
    return {
      recordsKept: writer.records,
      recordsDiscarded: copy.records - writer.records,
      recordsEmptied: copy.emptied,
      bytesBefore: source.file.file.size,
      bytesAfter,
      logicalBytes: writer.logicalBytes,
    };
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

export const CHUNK_EXECUTION_JOBS: Readonly<Record<string, Job>> = {
  [EXECUTE_CHUNK_JOB]: executeChunk,
  [EXECUTE_NEIGHBOURS_JOB]: executeNeighbours,
};
