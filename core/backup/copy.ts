import { SkuaError } from '../errors.ts';
import { EXISTENCE_DATA_PATH } from '../index/existence-filter.ts';
import { INDEX_FOLDER } from '../index/index-map.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import { folderOf } from '../ports/storage.ts';
import type { Storage } from '../ports/storage.ts';
import { DATABASE_FOLDER } from '../scavenge/erasure/files.ts';
import { encodeText } from '../text.ts';
import { copyIndexPart } from './copy-index.ts';
import type { CopySource } from './copy-index.ts';
import { checkpointFile, chunksOf, copyCheckpoints, copyChunks, copyLogPart, removeOthers } from './copy-log.ts';
import { COPY_MARKER, copyMarkerBytes, nodeIdOfCopy, readCopyMarker } from './copy-marker.ts';
import { NODE_ID_FILE } from './node-id.ts';
import { CopyTarget, UNFINISHED } from './copy-target.ts';
import type { CopyProgress, CopyStep } from './copy-target.ts';
import type { SnapshotKind } from './source.ts';

/** Every folder of a data directory. */
const FOLDERS = ['', INDEX_FOLDER, folderOf(EXISTENCE_DATA_PATH), DATABASE_FOLDER];
/** Rule 6: index checkpoint files, other index files; the files of the log follow. */
const INDEX_ORDER: readonly SnapshotKind[] = ['existence-checkpoint', 'index-map', 'index-table', 'bloom-filter', 'existence-filter', 'scavenge-database'];
/** Written from the snapshot's own figures. */
const OWN_CHECKPOINTS: ReadonlySet<string> = new Set((['chaser', 'epoch', 'writer', 'proposal'] as const).map(checkpointFile));

export interface CopyOptions {
  readonly source: CopySource;
  /** The directory of the copy: empty for a full one, any copy of the same node for a differential one. */
  readonly target: Storage;
  readonly mode: 'full' | 'differential';
  readonly clock: Clock;
  readonly digests: Digests;
  /** Told of each step before it is taken, in order. */
  readonly onStep?: (step: CopyStep) => void;
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Ends the copy; its reason is thrown. A repeat completes it. */
  readonly signal?: AbortSignal;
}

export interface CopyReport {
  readonly mode: CopyOptions['mode'];
  readonly nodeId: string;
  /** End of the log that the copy holds. */
  readonly logEnd: number;
  /** It completed a copy that had not been finished. */
  readonly wasUnfinished: boolean;
  /** Files that were copied, that the copy had already, and that were removed from it. */
  readonly copied: number;
  readonly kept: number;
  readonly removed: number;
  readonly bytesCopied: number;
}

/**
 * Copies the files of a node into a directory, in the orders of the interface document (section 8, rules 6 to 8). A node, of
 * the reference database too, starts on the result when `chaser.chk` has been copied over `truncate.chk`.
 *
 * What a crash leaves: before the marker, what was there; after it, a copy that says it is unfinished and that a repeat
 * completes. Chunks of the former copy go only when all that replaces them is durable, and the marker goes last.
 *
 * Rejects with `log_corrupt` for a completed chunk that is not as it was written; and with `other_node` when the directory holds files of another node, `directory_not_empty` for a full copy into
 * one that holds anything, and before anything has changed.
 */
export async function copyFiles(options: CopyOptions): Promise<CopyReport> {
  const { source, target: storage, mode, clock } = options;
  const { nodeId, checkpoints } = source.snapshot;
  const wasUnfinished = await checkTarget(storage, nodeId, mode);
  const target = new CopyTarget({ ...options, storage });
  await target.removeTemporaries(FOLDERS);
  await target.writeQuietly(COPY_MARKER, copyMarkerBytes({ nodeId, begunMs: Math.round(clock.nowMs()) }));
  await target.writeQuietly(NODE_ID_FILE, encodeText(`${nodeId}\n`));
  if (mode === 'full') await copyAll(options, target);
  else {
    await copyIndexPart(source, target, clock);
    await copyLogPart(source, target);
  }
  await storage.remove(COPY_MARKER);
  const { copied, kept, removed, bytesCopied } = target;
  return { mode, nodeId, logEnd: checkpoints.writer, wasUnfinished, copied, kept, removed, bytesCopied };
}

/** Whether there is a copy of this node that was not finished. */
async function checkTarget(storage: Storage, nodeId: string, mode: CopyOptions['mode']): Promise<boolean> {
  const names = (await Promise.all(FOLDERS.map((folder) => storage.list(folder)))).flat().filter((name) => !name.endsWith(UNFINISHED));
  if (names.length === 0) return false;
  const isUnfinished = await readCopyMarker(storage) !== null;
  const holds = await nodeIdOfCopy(storage);
  if (holds !== nodeId) {
    const whose = holds === null ? 'files that do not say of which node they are' : `files of node ${holds}`;
    throw new SkuaError('other_node', `The directory holds ${whose}, and those of node ${nodeId} must not mix with them. A node that was restored has a new id and needs a full copy. Name an empty directory.`, { holds, nodeId });
  }
  if (mode === 'full' && !isUnfinished) throw new SkuaError('directory_not_empty', 'The directory holds a copy of this node already. Make a full copy into an empty directory, or bring this one up to date with a differential copy.', { files: names.length });
  return isUnfinished;
}

/** Rule 6. Into a directory that an unfinished copy left, it copies what is not there whole, and removes what it has not copied. */
async function copyAll({ source }: CopyOptions, target: CopyTarget): Promise<void> {
  const { snapshot } = source;
  const chunks = chunksOf(snapshot);
  const before = (await target.storage.list(INDEX_FOLDER)).map((name) => `${INDEX_FOLDER}/${name}`);
  for (const kind of INDEX_ORDER) {
    for (const file of snapshot.files) if (file.kind === kind) await target.copy(file, { isSealed: kind === 'index-table' });
  }
  const indexFiles = new Set(snapshot.files.map(({ path }) => path));
  for (const path of before) if (!indexFiles.has(path)) await target.remove(path);
  await copyCheckpoints(snapshot, target);
  for (const file of snapshot.files) if (file.kind === 'checkpoint' && !OWN_CHECKPOINTS.has(file.path)) await target.copy(file);
  await copyChunks(snapshot, chunks, target);
  await removeOthers(chunks, target);
}
