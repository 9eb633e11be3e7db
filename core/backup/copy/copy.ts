import { ATTRIBUTE_FOLDERS } from '../../attributes/format/attribute-folders.ts';
import { equalBytes, putI64 } from '../../base/bytes.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { EXISTENCE_DATA_PATH } from '../../index/format/existence-files.ts';
import { INDEX_FOLDER, mapPathOf } from '../../index/format/index-map.ts';
import { ongoingFileBytes, parseChunkFileNames } from '../../log/format/chunk-format.ts';
import { COPY_MARKER } from '../../log/format/markers.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import { isOwnName } from '../../ports/own-names.ts';
import { folderOf, type Storage, type StorageFile } from '../../ports/storage.ts';
import { PROOF_FOLDER, PROOF_HEAD_BYTES } from '../../integrity/format/chain-layout.ts';
import { DATABASE_FOLDER } from '../../scavenge/format/scavenge-files.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { MARKS_FILE } from '../../streams/format/marks-table.ts';
import { NODE_ID_FILE, readNodeId } from '../../store/format/node-id.ts';
import type { BackupSource, Snapshot, SnapshotFile, SnapshotKind } from '../../store/api.ts';
import { copyIndexPart, type CopySource } from './index-part.ts';
import { bytesOf, CopyTarget, UNFINISHED, type CopyProgress, type CopyStep } from './target.ts';

/** Every folder of a data directory. */
const FOLDERS = ['', INDEX_FOLDER, folderOf(EXISTENCE_DATA_PATH), DATABASE_FOLDER, PROOF_FOLDER];
/** In this order: index checkpoint files, other index files; the files of the log follow. */
const INDEX_ORDER: readonly SnapshotKind[] = [
  'existence-checkpoint',
  'index-map',
  'index-table',
  'bloom-filter',
  'existence-filter',
  'scavenge-database',
];
/** Written from the snapshot's own figures. */
const OWN_CHECKPOINTS: ReadonlySet<string> = new Set(
  (['chaser', 'epoch', 'writer', 'proposal'] as const).map(checkpointFile),
);

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
 * Copies the files of a node into a directory, in the order of its snapshot (core/store/snapshot/snapshot.ts). A node,
 * of the reference database too, starts on the result when `chaser.chk` has been copied over `truncate.chk`.
 *
 * What a crash leaves: before the marker, what was there; after it, a copy that says it is unfinished and that a repeat
 * completes. Chunks of the former copy go only when all that replaces them is durable, and the marker goes last.
 *
 * Rejects with `log_corrupt` for a completed chunk that is not as it was written; and with `other_node` when the
 * directory holds files of another node, `directory_not_empty` for a full copy into one that holds anything, and before
 * anything has changed.
 */
export async function copyFiles(options: CopyOptions): Promise<CopyReport> {
  const {
    target,
    source: {
      snapshot: { nodeId },
    },
    mode,
  } = options;
  // What is refused leaves no folder and no lock.
  await checkTarget(target, nodeId, mode);
  const lock = await target.lock();
  try {
    return await copyLocked(options);
  } finally {
    await lock.release();
  }
}

async function copyLocked(options: CopyOptions): Promise<CopyReport> {
  const { source, target: storage, mode, clock } = options;
  const { nodeId, checkpoints } = source.snapshot;
  const wasUnfinished = await checkTarget(storage, nodeId, mode);
  const target = new CopyTarget({ ...options, storage });
  await target.removeTemporaries(FOLDERS);
  await target.writeQuietly(COPY_MARKER, copyMarkerBytes({ nodeId, begunMs: Math.round(clock.nowMs()) }));
  await target.writeQuietly(NODE_ID_FILE, encodeText(`${nodeId}\n`));
  await removeAttributes(target);
  if (mode === 'full') await copyAll(options, target);
  else {
    await copyIndexPart(source, target, clock);
    await copyLogPart(source, target);
  }
  await copyProofs(source, target);
  await copyMarks(source, target);
  await storage.remove(COPY_MARKER);
  const { copied, kept, removed, bytesCopied } = target;
  return { mode, nodeId, logEnd: checkpoints.writer, wasUnfinished, copied, kept, removed, bytesCopied };
}

/**
 * Attribute indexes are not copied: a node that starts on the copy builds them in the background. What a start on an
 * older copy has left of them may be of another log by now; maps go first.
 */
async function removeAttributes(target: CopyTarget): Promise<void> {
  for (const folder of ATTRIBUTE_FOLDERS) {
    const map = mapPathOf(folder);
    const paths = (await target.storage.list(folder)).map((name) => `${folder}/${name}`).filter(isOwnName);
    for (const path of paths.toSorted((a, b) => Number(b === map) - Number(a === map))) await target.remove(path);
  }
}

/** Whether there is a copy of this node that was not finished. */
async function checkTarget(storage: Storage, nodeId: string, mode: CopyOptions['mode']): Promise<boolean> {
  const paths = await Promise.all(
    FOLDERS.map(async (folder) =>
      (await storage.list(folder)).map((name) => (folder === '' ? name : `${folder}/${name}`)),
    ),
  );
  const names = paths.flat().filter((path) => isOwnName(path) && !path.endsWith(UNFINISHED));
  if (names.length === 0) return false;
  const isUnfinished = (await readCopyMarker(storage)) !== null;
  const holds = await nodeIdOfCopy(storage);
  if (holds !== nodeId) {
    const whose = holds === null ? 'files of an unknown node' : `files of node ${holds}`;
    throw new SkuaError(
      'other_node',
      `The directory holds ${whose}, which must not be mixed with those of node ${nodeId}. A restored node has a new id and needs a full copy. Name an empty directory.`,
      { holds, nodeId },
    );
  }
  if (mode === 'full' && !isUnfinished)
    throw new SkuaError(
      'directory_not_empty',
      'The directory already holds a copy of this node. Make a full copy into an empty directory, or bring this one up to date with a differential copy.',
      { files: names.length },
    );
  return isUnfinished;
}

/**
 * Index first, then the log. Into a directory that an unfinished copy left, it copies what is not there whole, and
 * removes what it has not copied.
 */
async function copyAll({ source }: CopyOptions, target: CopyTarget): Promise<void> {
  const { snapshot } = source;
  const chunks = chunksOf(snapshot);
  const before = (await target.storage.list(INDEX_FOLDER)).map((name) => `${INDEX_FOLDER}/${name}`).filter(isOwnName);
  for (const kind of INDEX_ORDER) {
    for (const file of snapshot.files)
      if (file.kind === kind) await target.copy(file, { isSealed: kind === 'index-table' });
  }
  const indexFiles = new Set(snapshot.files.map(({ path }) => path));
  for (const path of before) if (!indexFiles.has(path)) await target.remove(path);
  await copyCheckpoints(snapshot, target);
  for (const file of snapshot.files)
    if (file.kind === 'checkpoint' && !OWN_CHECKPOINTS.has(file.path)) await target.copy(file);
  await copyChunks(snapshot, chunks, target);
  await removeOthers(chunks, target);
}

/**
 * The chain of hashes over the log: what the copy lacks, and none that the node has no more. The marker still says that
 * the copy is unfinished.
 */
async function copyProofs(source: BackupSource, target: CopyTarget): Promise<void> {
  const files = source.snapshot.files.filter(({ kind }) => kind === 'proof');
  const listed = new Set(files.map(({ path }) => path));
  for (const path of (await target.storage.list(PROOF_FOLDER)).map((name) => `${PROOF_FOLDER}/${name}`))
    if (isOwnName(path) && !listed.has(path)) await target.remove(path);
  for (const file of files) {
    if (await hasProof(source, target.storage, file)) target.keep(file);
    else await target.copy(file);
  }
}

/** The log of a directory that was restored, and not started since, lacks some of them. */
async function copyMarks(source: BackupSource, target: CopyTarget): Promise<void> {
  const file = source.snapshot.files.find(({ kind }) => kind === 'redactions');
  if (file !== undefined) await target.copy(file);
  else if ((await target.storage.size(MARKS_FILE)) !== null) await target.remove(MARKS_FILE);
}

async function hasProof(source: BackupSource, storage: Storage, { path, sizeBytes }: SnapshotFile): Promise<boolean> {
  if ((await storage.size(path)) !== sizeBytes) return false;
  const length = Math.min(PROOF_HEAD_BYTES, sizeBytes);
  const file = await storage.open(path, 'read');
  try {
    return equalBytes(await file.read(0, length), 0, await bytesOf(source, path, length), 0, length);
  } finally {
    await file.close();
  }
}

/** What the last chunk of a copy is called while a newer one takes its place. */
const REPLACED = '.old';
const REPLACED_CHUNK = /^chunk-\d{6}\.\d{6}\.old$/;
/** Chunk files that are copied at once: while one waits for its sync, the other one is read. */
const PARALLEL = 2;

/** Checkpoint files in this order: what the reader has done, then the writer's. */
const CHECKPOINT_ORDER = ['chaser', 'epoch', 'writer', 'proposal'] as const;

/**
 * The log part of a differential copy. The last chunk of the copy may have been incomplete, so it gets another name and
 * is copied anew; old chunks go last, when everything that takes their place is there.
 */
async function copyLogPart(source: BackupSource, target: CopyTarget): Promise<void> {
  const last = parseChunkFileNames(await target.storage.list('')).at(-1);
  if (last !== undefined) await target.rename(last.name, `${last.name}${REPLACED}`);
  await copyCheckpoints(source.snapshot, target);
  const chunks = chunksOf(source.snapshot);
  await copyChunks(source.snapshot, chunks, target);
  await removeOthers(chunks, target);
}

/** As the snapshot has them: in the files of a running node they go on. */
async function copyCheckpoints({ checkpoints }: Snapshot, target: CopyTarget): Promise<void> {
  for (const name of CHECKPOINT_ORDER) {
    const bytes = new Uint8Array(8);
    putI64(bytes, 0, checkpoints[name]);
    await target.write(checkpointFile(name), bytes);
  }
}

function checkpointFile(name: (typeof CHECKPOINT_ORDER)[number]): string {
  return `${name}.chk`;
}

/** Chunk files that the log needs up to its end: a node refuses to start with one beyond. Ascending. */
function chunksOf({ files, checkpoints, chunkSizeBytes }: Snapshot): readonly SnapshotFile[] {
  const lastNumber = Math.floor(checkpoints.writer / chunkSizeBytes);
  const byPath = new Map(
    files.filter(({ kind }) => kind === 'chunk' || kind === 'ongoing-chunk').map((file) => [file.path, file]),
  );
  return parseChunkFileNames([...byPath.keys()])
    .filter(({ number }) => number <= lastNumber)
    .map(({ name }) => byPath.get(name)!);
}

/** Copies the chunks that the copy lacks; all have to succeed. */
async function copyChunks(
  { chunkSizeBytes }: Snapshot,
  chunks: readonly SnapshotFile[],
  target: CopyTarget,
): Promise<void> {
  await inParallel(chunks.length, PARALLEL, async (i) => {
    const chunk = chunks[i]!;
    if (chunk.kind === 'ongoing-chunk') await target.copy(chunk, { fileBytes: ongoingFileBytes(chunkSizeBytes) });
    else if (await target.hasChunk(chunk)) target.keep(chunk);
    else await target.copy(chunk, { isSealed: true });
  });
}

/** Removes chunk files that are not in the list, and those that were renamed. */
async function removeOthers(chunks: readonly SnapshotFile[], target: CopyTarget): Promise<void> {
  const listed = new Set(chunks.map(({ path }) => path));
  const names = await target.storage.list('');
  for (const { name } of parseChunkFileNames(names)) if (!listed.has(name)) await target.remove(name);
  for (const name of names) if (REPLACED_CHUNK.test(name)) await target.remove(name);
}

const MARKER_BYTES_MAX = 4_096;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

interface CopyMarker {
  readonly nodeId: string;
  /** When the copy that was not finished began: milliseconds since 1970. */
  readonly begunMs: number;
}

/** Null when the copy is finished, or none. Throws `checkpoint_corrupt` when it can't be read. */
async function readCopyMarker(target: Storage): Promise<CopyMarker | null> {
  if ((await target.size(COPY_MARKER)) === null) return null;
  const file = await target.open(COPY_MARKER, 'read');
  let marker: CopyMarker | null;
  try {
    marker = await parseOf(file);
  } finally {
    await file.close();
  }
  if (marker === null)
    throw new SkuaError(
      'checkpoint_corrupt',
      `The file ${COPY_MARKER} can't be read, so the owner of these files is unknown. Copy into an empty directory.`,
      { path: COPY_MARKER },
    );
  return marker;
}

async function parseOf(file: StorageFile): Promise<CopyMarker | null> {
  try {
    const { nodeId, begunMs } = JSON.parse(decodeText(await file.read(0, MARKER_BYTES_MAX))) as Partial<CopyMarker>;
    return typeof nodeId === 'string' && UUID.test(nodeId) && typeof begunMs === 'number' ? { nodeId, begunMs } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function copyMarkerBytes(marker: CopyMarker): Uint8Array {
  return encodeText(`${JSON.stringify(marker)}\n`);
}

/** The id of the node whose files a copy holds; null when it says nothing. */
async function nodeIdOfCopy(target: Storage): Promise<string | null> {
  const marker = await readCopyMarker(target);
  if (marker !== null) return marker.nodeId;
  try {
    return await readNodeId(target);
  } catch (error) {
    if (isSkuaError(error, 'checkpoint_corrupt')) return null;
    throw error;
  }
}
