import { isSkuaError } from '../errors.ts';
import { guidFromUuidBytes } from '../guid.ts';
import type { Chunk } from '../log/chunk.ts';
import { MERGE_CHUNKS_JOB, mergeGroups, type MergeChunksArgs, type MergeChunksResult } from './chunk-merging.ts';
import { switchChunk } from './chunk-switch.ts';
import { doubtIfDamaged } from './phase-chunks.ts';
import { newId, type RunContext } from './run-context.ts';

const CANCELLED_TEXT = 'Scavenge cancelled';

/** Merging, scavenge.md section 7: passes over the whole log until one merges nothing. */
export async function mergeChunks(run: RunContext): Promise<void> {
  const { table } = run.deps.data;
  for (let pass = 1, merges = -1; merges !== 0; pass++) {
    const completed = [...table.all()].filter((chunk) => chunk.isCompleted);
    const candidates = completed.map((chunk) => ({ chunk, startNumber: chunk.startNumber, endNumber: chunk.endNumber, dataBytes: chunk.physicalBytes }));
    const groups = mergeGroups(candidates, table.chunkSize).map((group) => group.map(({ chunk }) => chunk));
    run.progress.begin('Chunk merging', groups.reduce((sum, group) => sum + group.length, 0), groups.reduce((sum, group) => sum + bytesOf(group), 0));
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
    const args: MergeChunksArgs = { chunkSize: deps.data.table.chunkSize, sources: group.map((chunk) => chunk.name), target, chunkId: guidFromUuidBytes(deps.ports.ids.uuidBytes()) };
    const { bytesBefore, bytesAfter } = await run.job<MergeChunksResult>(MERGE_CHUNKS_JOB, args, (told) => progress.ofPart(part, told, bytes));
    const replacement = await switchChunk(run.switchParts(), target, startNumber, endNumber);
    isMerged = true;
    const elapsedMs = deps.ports.clock.monotonicMs() - startedMs;
    const spaceSaved = bytesBefore - bytesAfter;
    progress.bytesReclaimed += spaceSaved;
    history.merged({ startNumber, endNumber, elapsedMs, spaceSaved, error: null });
    lines.merged(group, replacement, elapsedMs, spaceSaved);
  } catch (error) {
    await deps.ports.storage.remove(target).catch(() => {});
    const text = isSkuaError(error, 'aborted') ? CANCELLED_TEXT : error instanceof Error ? error.message : String(error);
    history.merged({ startNumber, endNumber, elapsedMs: deps.ports.clock.monotonicMs() - startedMs, spaceSaved: 0, error: text });
    lines.mergeFailed(group, error);
    for (const chunk of group) doubtIfDamaged(chunk, error);
  } finally {
    progress.endPart(part, isMerged ? bytes : 0, isMerged ? group.length : 0);
  }
  return isMerged;
}
