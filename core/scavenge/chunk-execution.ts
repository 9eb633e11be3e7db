import { SkuaError } from '../errors.ts';
import { guidFromUuidBytes } from '../guid.ts';
import type { Chunk } from '../log/chunk.ts';
import { HEADER_BYTES } from '../log/chunk-format.ts';
import { ChunkProof } from '../log/chunk-proof.ts';
import { FRAME_BYTES, parsePrepare, PREPARE, PrepareFields, type RecordFrame } from '../log/records.ts';
import { scanChunk } from '../log/scan.ts';
import type { Job, JobContext } from '../ports/jobs.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { doubtIfDamaged, switchChunk } from './chunk-switch.ts';
import { ChunkWriter, openSource } from './chunk-writer.ts';
import { KeepRule } from './keep-rule.ts';
import { commit, newId, type RunContext } from './run-context.ts';
import { chunkName } from './run-log.ts';
import type { RunSettings } from './sources/run-settings.ts';

/** Chunks whose weights are asked for between two chances for other work. */
const WEIGHTS_SLICE = 128;

interface Planned {
  readonly chunk: Chunk;
  readonly weight: number;
  readonly isExecuted: boolean;
}

/** Chunk execution, scavenge.md section 6: rewrites the chunks that weigh enough, several at a time, and skips the others. */
export async function runChunkExecution(run: RunContext, state: ScavengeState, done: number | undefined): Promise<void> {
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

/** A chunk that was taken. */
interface Taken {
  readonly endNumber: number;
  isDone: boolean;
}

/**
 * The checkpoint of work that several threads do at once: it may name a chunk only when that one and every chunk taken
 * before it are finished; scavenge.md section 6.5.
 */
export class TrailingCheckpoint {
  readonly #underWay: Taken[] = [];
  /** Last logical chunk up to which everything is finished; undefined for none. */
  done: number | undefined;

  constructor(done: number | undefined) {
    this.done = done;
  }

  /** Chunks are taken in the order of the log. */
  take(endNumber: number): Taken {
    const taken = { endNumber, isDone: false };
    this.#underWay.push(taken);
    return taken;
  }

  /** True when the checkpoint moved. */
  finish(taken: Taken): boolean {
    taken.isDone = true;
    const before = this.done;
    while (this.#underWay[0]?.isDone === true) this.done = this.#underWay.shift()!.endNumber;
    return this.done !== before;
  }
}

/** The job that rewrites one chunk. */
export const EXECUTE_CHUNK_JOB = 'scavenge.execute-chunk';
/** Records between two looks at whether the run is to stop. */
const CHECK_EVERY_RECORDS = 1_024;

export interface ExecuteChunkArgs {
  readonly settings: RunSettings;
  readonly chunkSize: number;
  /** Name of the chunk file in force. */
  readonly source: string;
  /** `<uuid>.scavenge.tmp` */
  readonly target: string;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

export interface ExecuteChunkResult {
  readonly recordsKept: number;
  readonly recordsDiscarded: number;
  /** Sizes of the old and the new file. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** End of the last kept record relative to the chunk's start; 0 when nothing was kept. */
  readonly logicalBytes: number;
}

/**
 * Copies what survives of one chunk into a new file, which is complete and durable under its temporary name when the
 * job ends, and gone when it throws; scavenge.md 6.2 and 6.3. Throws `log_corrupt` for a file that is not as it was written.
 */
export async function executeChunk(args: ExecuteChunkArgs, context: JobContext): Promise<ExecuteChunkResult> {
  const source = await openSource(context.storage, args.source, args.chunkSize);
  try {
    const state = context.scavengeStates.open(args.settings.state);
    try {
      return await rewrite(source, new KeepRule(state, args.settings, context.hasher), args, context);
    } finally {
      state.close();
    }
  } finally {
    await source.file.retire();
  }
}

async function rewrite(source: Chunk, keep: KeepRule, args: ExecuteChunkArgs, context: JobContext): Promise<ExecuteChunkResult> {
  const { startNumber, endNumber } = source;
  const writer = await ChunkWriter.create(context.storage, context.digests, { path: args.target, chunkSize: args.chunkSize, startNumber, endNumber, chunkId: args.chunkId });
  try {
    const { file } = source.file;
    const proof = new ChunkProof(context.digests, source.name, file.size);
    await proof.addRange(file, HEADER_BYTES);
    const copy = new SurvivorCopy(source, keep, writer, proof, context);
    await scanChunk(source, source.startPosition, (frame) => copy.visit(frame), (bytes, block) => copy.passed(bytes, block), true);
    await proof.addRange(file, file.size, () => context.checkpoint());
    proof.check();
    const bytesAfter = await writer.finish();
    return { recordsKept: writer.records, recordsDiscarded: copy.records - writer.records, bytesBefore: file.size, bytesAfter, logicalBytes: writer.logicalBytes };
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

class SurvivorCopy {
  readonly #source: Chunk;
  readonly #keep: KeepRule;
  readonly #writer: ChunkWriter;
  readonly #proof: ChunkProof;
  readonly #context: JobContext;
  readonly #fields = new PrepareFields();
  #bytesDone = 0;
  records = 0;

  constructor(source: Chunk, keep: KeepRule, writer: ChunkWriter, proof: ChunkProof, context: JobContext) {
    this.#source = source;
    this.#keep = keep;
    this.#writer = writer;
    this.#proof = proof;
    this.#context = context;
  }

  visit(frame: RecordFrame): void | Promise<void> {
    let waiting: void | Promise<void> = undefined;
    if (this.#survives(frame)) waiting = this.#writer.addRecord(frame.position - this.#source.startPosition, frame.bytes, frame.at - FRAME_BYTES / 2, frame.length + FRAME_BYTES);
    this.records++;
    if (this.records % CHECK_EVERY_RECORDS !== 0) return waiting;
    return waiting === undefined ? this.#context.checkpoint() : waiting.then(() => this.#context.checkpoint());
  }

  /** Commits and system records always stay. */
  #survives(frame: RecordFrame): boolean {
    if (frame.type !== PREPARE) return true;
    parsePrepare(frame, this.#fields);
    return this.#keep.keeps(frame, this.#fields);
  }

  async passed(bytes: number, block: Uint8Array): Promise<void> {
    this.#proof.add(block);
    await this.#writer.settle();
    this.#bytesDone += bytes;
    this.#context.progress({ done: this.#bytesDone, total: this.#source.physicalBytes, unit: 'bytes' });
    await this.#context.checkpoint();
  }
}

export const CHUNK_EXECUTION_JOBS: Readonly<Record<string, Job>> = { [EXECUTE_CHUNK_JOB]: executeChunk };
