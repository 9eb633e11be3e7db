import { putI64 } from '../bytes.ts';
import { ongoingFileBytes, parseChunkFileNames } from '../log/chunk-format.ts';
import type { CopyTarget } from './copy-target.ts';
import { inParallel } from './in-parallel.ts';
import type { BackupSource, Snapshot, SnapshotFile } from './source.ts';

/** What the last chunk of a copy is called while a newer one takes its place. */
export const REPLACED = '.old';
const REPLACED_CHUNK = /^chunk-\d{6}\.\d{6}\.old$/;
/** Chunk files that are copied at once: while one waits for its sync, the other one is read. */
const PARALLEL = 2;

/** Checkpoint files in the order of rule 8: what the reader has done, then the writer's. */
const CHECKPOINT_ORDER = ['chaser', 'epoch', 'writer', 'proposal'] as const;

/**
 * The log part of a differential copy. The last chunk of the copy may have been incomplete, so it gets another name and is
 * copied anew; old chunks go last, when everything that takes their place is there.
 */
export async function copyLogPart(source: BackupSource, target: CopyTarget): Promise<void> {
  const last = parseChunkFileNames(await target.storage.list('')).at(-1);
  if (last !== undefined) await target.rename(last.name, `${last.name}${REPLACED}`);
  await copyCheckpoints(source.snapshot, target);
  const chunks = chunksOf(source.snapshot);
  await copyChunks(source.snapshot, chunks, target);
  await removeOthers(chunks, target);
}

/** As the snapshot has them: in the files of a running node they go on. */
export async function copyCheckpoints({ checkpoints }: Snapshot, target: CopyTarget): Promise<void> {
  for (const name of CHECKPOINT_ORDER) {
    const bytes = new Uint8Array(8);
    putI64(bytes, 0, checkpoints[name]);
    await target.write(checkpointFile(name), bytes);
  }
}

export function checkpointFile(name: (typeof CHECKPOINT_ORDER)[number]): string {
  return `${name}.chk`;
}

/** Chunk files that the log needs up to its end: a node refuses to start with one beyond. Ascending. */
export function chunksOf({ files, checkpoints, chunkSizeBytes }: Snapshot): readonly SnapshotFile[] {
  const lastNumber = Math.floor(checkpoints.writer / chunkSizeBytes);
  const byPath = new Map(files.filter(({ kind }) => kind === 'chunk' || kind === 'ongoing-chunk').map((file) => [file.path, file]));
  return parseChunkFileNames([...byPath.keys()]).filter(({ number }) => number <= lastNumber).map(({ name }) => byPath.get(name)!);
}

/** Copies the chunks that the copy lacks; all have to succeed. */
export async function copyChunks({ chunkSizeBytes }: Snapshot, chunks: readonly SnapshotFile[], target: CopyTarget): Promise<void> {
  await inParallel(chunks.length, PARALLEL, async (i) => {
    const chunk = chunks[i]!;
    if (chunk.kind === 'ongoing-chunk') await target.copy(chunk, { fileBytes: ongoingFileBytes(chunkSizeBytes) });
    else if (await target.hasChunk(chunk)) target.keep(chunk);
    else await target.copy(chunk, { isSealed: true });
  });
}

/** Removes chunk files that are not in the list, and those that were renamed. */
export async function removeOthers(chunks: readonly SnapshotFile[], target: CopyTarget): Promise<void> {
  const listed = new Set(chunks.map(({ path }) => path));
  const names = await target.storage.list('');
  for (const { name } of parseChunkFileNames(names)) if (!listed.has(name)) await target.remove(name);
  for (const name of names) if (REPLACED_CHUNK.test(name)) await target.remove(name);
}
