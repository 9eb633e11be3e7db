import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidFromUuidBytes } from '../base/guid.ts';
import type { Chunk } from '../log/api.ts';
import { newId } from '../ports/ids.ts';
import type { Job, JobContext } from '../ports/jobs.ts';
import { doubtIfDamaged, switchChunk } from './chunk-switch.ts';
import { ChunkWriter, openSource } from './chunk-writer.ts';
import { mergeGroups } from './merge-policy.ts';
import type { RunContext } from './run-context.ts';
import { WholeCopy } from './whole-copy.ts';

const CANCELLED_TEXT = 'Scavenge cancelled';

/** Merging: passes over the whole log until one merges nothing. */
export async function runChunkMerging(run: RunContext): Promise<void> {
  const { table } = run.deps.data;
  for (let pass = 1, merges = -1; merges !== 0; pass++) {
    const completed = [...table.all()].filter((chunk) => chunk.isCompleted);
    const candidates = completed.map((chunk) => ({
      chunk,
      startNumber: chunk.startNumber,
      endNumber: chunk.endNumber,
      dataBytes: chunk.physicalBytes,
    }));
    const policy = { chunkSize: table.chunkSize, always: run.deps.config.mergesAlways };
    const groups = mergeGroups(candidates, policy).map((group) => group.map(({ chunk }) => chunk));
    run.progress.begin(
      'Chunk merging',
      groups.reduce((sum, group) => sum + group.length, 0),
      groups.reduce((sum, group) => sum + bytesOf(group), 0),
    );
    merges = 0;
    for (const group of groups) {
      run.check();
      if (await mergeGroup(run, group)) merges++;
      await run.throttle.rest();
    }
    run.check();
    run.lines.mergePass(pass, merges);
  }
}

function bytesOf(group: readonly Chunk[]): number {
  return group.reduce((sum, chunk) => sum + chunk.physicalBytes, 0);
}

/** Merges one group. A failure leaves its chunks as they are and is only told; the next pass or run tries again. */
async function mergeGroup(run: RunContext, group: readonly Chunk[]): Promise<boolean> {
  const { deps, progress, history, lines } = run;
  const startedMs = deps.ports.clock.monotonicMs();
  const startNumber = group[0]!.startNumber;
  const endNumber = group.at(-1)!.endNumber;
  const target = `${newId(deps.ports.ids)}.merge.scavenge.tmp`;
  const part = Symbol();
  const bytes = bytesOf(group);
  let isMerged = false;
  try {
    const args: MergeChunksArgs = {
      chunkSize: deps.data.table.chunkSize,
      sources: group.map((chunk) => chunk.name),
      target,
      chunkId: guidFromUuidBytes(deps.ports.ids.uuidBytes()),
    };
    const { bytesBefore, bytesAfter } = await run.job<MergeChunksResult>(MERGE_CHUNKS_JOB, args, (told) =>
      progress.ofPart(part, told, bytes),
    );
    const replacement = await switchChunk(run.switchParts(), target, startNumber, endNumber);
    isMerged = true;
    const elapsedMs = deps.ports.clock.monotonicMs() - startedMs;
    const spaceSaved = bytesBefore - bytesAfter;
    progress.bytesReclaimed += spaceSaved;
    history.merged({ startNumber, endNumber, elapsedMs, spaceSaved, error: null });
    lines.merged(group, replacement, elapsedMs, spaceSaved);
  } catch (error) {
    await deps.ports.storage.remove(target).catch(() => {});
    const text = isSkuaError(error, 'aborted')
      ? CANCELLED_TEXT
      : error instanceof Error
        ? error.message
        : String(error);
    history.merged({
      startNumber,
      endNumber,
      elapsedMs: deps.ports.clock.monotonicMs() - startedMs,
      spaceSaved: 0,
      error: text,
    });
    lines.mergeFailed(group, error);
    for (const chunk of group) doubtIfDamaged(chunk, error);
  } finally {
    progress.endPart(part, isMerged ? bytes : 0, isMerged ? group.length : 0);
  }
  return isMerged;
}

/** The job that merges neighbours into one file. */
export const MERGE_CHUNKS_JOB = 'scavenge.merge-chunks';

interface MergeChunksArgs {
  readonly chunkSize: number;
  /** Names of the chunk files in force, neighbours in the order of the log. */
  readonly sources: readonly string[];
  /** `<uuid>.merge.scavenge.tmp` */
  readonly target: string;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

interface MergeChunksResult {
  /** Sizes of all old files and of the new one. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/**
 * Copies the records of neighbouring chunks into one new file, which is complete and durable under its temporary name
 * when the job ends, and gone when it throws. Throws `log_corrupt` for a file that is not as it was written.
 */
export async function mergeChunks(args: MergeChunksArgs, context: JobContext): Promise<MergeChunksResult> {
  const sources: Chunk[] = [];
  try {
    for (const name of args.sources) sources.push(await openSource(context.storage, name, args.chunkSize));
    checkNeighbours(sources);
    return await merge(sources, args, context);
  } finally {
    for (const source of sources) await source.file.retire();
  }
}

function checkNeighbours(sources: readonly Chunk[]): void {
  for (let i = 1; i < sources.length; i++) {
    if (sources[i - 1]!.endNumber + 1 === sources[i]!.startNumber) continue;
    throw new SkuaError(
      'scavenge_failed',
      `${sources[i - 1]!.name} and ${sources[i]!.name} are no neighbours and can't be merged: this is a defect.`,
      { file: sources[i]!.name },
    );
  }
}

async function merge(
  sources: readonly Chunk[],
  args: MergeChunksArgs,
  context: JobContext,
): Promise<MergeChunksResult> {
  const first = sources[0]!;
  const last = sources[sources.length - 1]!;
  const target = {
    path: args.target,
    chunkSize: args.chunkSize,
    startNumber: first.startNumber,
    endNumber: last.endNumber,
    chunkId: args.chunkId,
  };
  const writer = await ChunkWriter.create(context.storage, context.digests, target);
  try {
    const total = sources.reduce((sum, source) => sum + source.physicalBytes, 0);
    let done = 0;
    const copy = new WholeCopy(first.startPosition, writer, context, (bytes) => {
      done += bytes;
      context.progress({ done, total, unit: 'bytes' });
    });
    for (const source of sources) await copy.take(source);
    const bytesAfter = await writer.finish();
    return { bytesBefore: sources.reduce((sum, source) => sum + source.file.file.size, 0), bytesAfter };
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

export const CHUNK_MERGING_JOBS: Readonly<Record<string, Job>> = { [MERGE_CHUNKS_JOB]: mergeChunks };
