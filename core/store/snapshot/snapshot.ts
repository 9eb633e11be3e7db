import { putI64 } from '../../base/bytes.ts';
import { BlockCache } from '../../cache/cache.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { EXISTENCE_CHECKPOINT_PATH, EXISTENCE_DATA_PATH } from '../../index/format/existence-files.ts';
import { INDEX_FOLDER, INDEX_MAP_PATH, parseIndexMap, type IndexMap } from '../../index/format/index-map.ts';
import { bloomPathOf } from '../../index/format/table-format.ts';
import { HEADER_BYTES, parseChunkFileNames } from '../../log/format/chunk-format.ts';
import type { ChunkTable } from '../../log/api.ts';
import { openLog } from '../../log/log.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import { isProofName, PROOF_FOLDER } from '../../integrity/format/chain-layout.ts';
import { DATABASE_FOLDER } from '../../scavenge/format/scavenge-files.ts';
import type { MarkColumns } from '../../streams/api.ts';
import { encodeMarks, MARKS_FILE } from '../../streams/format/marks-table.ts';
import { ensureNodeId } from '../format/node-id.ts';
import {
  StorageSource,
  type BackupSource,
  type Snapshot,
  type SnapshotCheckpoints,
  type SnapshotFile,
  type SnapshotKind,
} from '../source/source.ts';
import { marksOfStopped } from '../stopped-marks/stopped-marks.ts';

/** How often the index map is read anew when it names files that have gone meanwhile. */
const MAP_READS_MAX = 16;
/** What SQLite keeps of the scavenge database: the file, and what was written and not yet taken into it. */
const DATABASE_PATHS = [`${DATABASE_FOLDER}/scavenging.db`, `${DATABASE_FOLDER}/scavenging.db-wal`] as const;

interface SnapshotParts {
  readonly storage: Storage;
  readonly digests: Digests;
  /** Text of a UUID. */
  readonly nodeId: string;
  readonly chunkSizeBytes: number;
  /** The log as it stands when the index has been listed. */
  readonly log: () => Promise<LogState>;
}

export interface LogState {
  readonly takenMs: number;
  readonly checkpoints: SnapshotCheckpoints;
  /** Chunk files in force up to the end of the log, ascending. */
  readonly chunks: readonly SnapshotFile[];
  /** The marks of redaction up to there, or more. */
  readonly marks: MarkColumns;
}

/**
 * Lists the files of a node in the order in which they are copied. The index comes before the log, so that it never
 * knows more than the log. The caller sees to it that no scavenge runs and that listed files stay.
 */
export async function takeSnapshot(parts: SnapshotParts): Promise<Snapshot> {
  const index = await listIndex(parts.storage, parts.digests);
  const proofs = await listProofs(parts.storage);
  const { takenMs, checkpoints, chunks, marks } = await parts.log();
  return {
    nodeId: parts.nodeId,
    takenMs,
    chunkSizeBytes: parts.chunkSizeBytes,
    checkpoints,
    files: [...index, ...proofs, ...marksFile(marks, parts.digests), ...checkpointFiles(checkpoints), ...chunks],
  };
}

/** So that a restore of an older state learns of them without the log. */
function marksFile(marks: MarkColumns, digests: Digests): SnapshotFile[] {
  if (marks.positions.length === 0) return [];
  const content = encodeMarks(marks, digests);
  return [{ path: MARKS_FILE, kind: 'redactions', sizeBytes: content.length, content }];
}

/** The chunk files that hold the log up to `end`; of the one that is being written, what lies before it. */
export function chunksUpTo(table: ChunkTable, end: number): SnapshotFile[] {
  const files: SnapshotFile[] = [];
  for (const chunk of table.all()) {
    if (chunk.startPosition > end) break;
    // A chunk that is just being completed still counts as the ongoing one: its data stay where they are.
    if (end >= chunk.endPosition) files.push({ path: chunk.name, kind: 'chunk', sizeBytes: chunk.file.file.size });
    else files.push({ path: chunk.name, kind: 'ongoing-chunk', sizeBytes: HEADER_BYTES + end - chunk.startPosition });
  }
  return files;
}

/** A node goes on writing these files, so they are given as they have to be with this log. */
function checkpointFiles({ chaser, epoch, writer, proposal }: SnapshotCheckpoints): SnapshotFile[] {
  // An order to truncate was carried out when the log was opened.
  const values = {
    'chaser.chk': chaser,
    'epoch.chk': epoch,
    'writer.chk': writer,
    'proposal.chk': proposal,
    'truncate.chk': -1,
  };
  return Object.entries(values).map(([path, value]) => {
    const content = new Uint8Array(8);
    putI64(content, 0, value);
    return { path, kind: 'checkpoint', sizeBytes: content.length, content };
  });
}

async function listIndex(storage: Storage, digests: Digests): Promise<SnapshotFile[]> {
  const { map, tables } = await listTables(storage, digests);
  const [checkpoint, filter] = await listExistence(storage);
  const others = [...tables, ...(filter === null ? [] : [filter]), ...(await listDatabase(storage))];
  return [...(map === null ? [] : [map]), ...(checkpoint === null ? [] : [checkpoint]), ...others];
}

interface IndexTables {
  readonly map: SnapshotFile | null;
  readonly tables: readonly SnapshotFile[];
}

/** The index map and what it names. An index that is damaged is left out: it is built anew from the log. */
async function listTables(storage: Storage, digests: Digests): Promise<IndexTables> {
  for (let reads = 0; reads < MAP_READS_MAX; reads++) {
    const content = await readWhole(storage, INDEX_MAP_PATH);
    const map = content === null ? null : parsed(content, digests);
    if (content === null || map === null) break;
    const tables = await namedFiles(storage, map);
    if (tables !== null)
      return { map: { path: INDEX_MAP_PATH, kind: 'index-map', sizeBytes: content.length, content }, tables };
  }
  return { map: null, tables: [] };
}

function parsed(content: Uint8Array, digests: Digests): IndexMap | null {
  try {
    return parseIndexMap(content, digests);
  } catch (error) {
    if (isSkuaError(error, 'index_corrupt')) return null;
    throw error;
  }
}

/** Null when a table that the map names is gone. */
async function namedFiles(storage: Storage, map: IndexMap): Promise<SnapshotFile[] | null> {
  const files: SnapshotFile[] = [];
  for (const name of map.levels.flat()) {
    const path = `${INDEX_FOLDER}/${name}`;
    const table = await fileAt(storage, path, 'index-table');
    if (table === null) return null;
    const bloom = await fileAt(storage, bloomPathOf(path), 'bloom-filter');
    files.push(table, ...(bloom === null ? [] : [bloom]));
  }
  return files;
}

/** The filter may know more than its checkpoint says, and never less; one file without the other is of no use. */
async function listExistence(storage: Storage): Promise<readonly [SnapshotFile | null, SnapshotFile | null]> {
  const content = await readWhole(storage, EXISTENCE_CHECKPOINT_PATH);
  const filter = await fileAt(storage, EXISTENCE_DATA_PATH, 'existence-filter');
  if (content === null || content.length === 0 || filter === null) return [null, null];
  return [
    { path: EXISTENCE_CHECKPOINT_PATH, kind: 'existence-checkpoint', sizeBytes: content.length, content },
    filter,
  ];
}

async function listDatabase(storage: Storage): Promise<SnapshotFile[]> {
  const files: SnapshotFile[] = [];
  for (const path of DATABASE_PATHS) {
    const file = await fileAt(storage, path, 'scavenge-database');
    // What was not yet taken into a database is nothing without it.
    if (file === null) break;
    if (file.sizeBytes > 0) files.push(file);
  }
  return files;
}

/**
 * The hash chain over the log: before the log too, so that no leaves are of a chunk that the snapshot has not whole.
 */
async function listProofs(storage: Storage): Promise<SnapshotFile[]> {
  const files: SnapshotFile[] = [];
  for (const name of await storage.list(PROOF_FOLDER)) {
    const file = isProofName(name) ? await fileAt(storage, `${PROOF_FOLDER}/${name}`, 'proof') : null;
    if (file !== null) files.push(file);
  }
  return files;
}

async function fileAt(storage: Storage, path: string, kind: SnapshotKind): Promise<SnapshotFile | null> {
  const sizeBytes = await storage.size(path);
  return sizeBytes === null ? null : { path, kind, sizeBytes };
}

/**
 * All bytes of a small file; null when there is none. A name that is given to another file meanwhile does no harm: one
 * file is read.
 */
async function readWhole(storage: Storage, path: string): Promise<Uint8Array | null> {
  if ((await storage.size(path)) === null) return null;
  const file = await storage.open(path, 'read').catch((error: unknown) => {
    if (isSkuaError(error, 'file_not_found')) return null;
    throw error;
  });
  if (file === null) return null;
  try {
    return (await file.read(0, file.size)).slice();
  } finally {
    await file.close();
  }
}

interface DirectoryWorld {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly log: Log;
}

/**
 * The files of a data directory that no node has open. Its lock is held until `release`. The log is recovered first, as
 * a start does it, so that everything acknowledged lies before the end that the checkpoints name. Errors:
 * `directory_locked`, `file_not_found` where there is no log, and those of `openLog`.
 */
export async function snapshotOfDirectory(world: DirectoryWorld): Promise<BackupSource> {
  const { storage, digests, ids } = world;
  if (parseChunkFileNames(await storage.list('')).length === 0) {
    throw new SkuaError(
      'file_not_found',
      'There is no chunk file in this directory, so it is not a data directory. Check the path given with --db.',
      { path: '' },
    );
  }
  const lock = await storage.lock();
  try {
    const { chunkSizeBytes, ...state } = await recovered(world);
    const nodeId = await ensureNodeId(storage, ids);
    const snapshot = await takeSnapshot({
      storage,
      digests,
      nodeId,
      chunkSizeBytes,
      log: () => Promise.resolve(state),
    });
    return new StorageSource(storage, snapshot, { release: () => lock.release() });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Opens the log, which recovers it, and closes it again, which leaves the checkpoints at its end. */
async function recovered(world: DirectoryWorld): Promise<LogState & { readonly chunkSizeBytes: number }> {
  const { storage, clock, ids, digests, log } = world;
  const opened = await openLog({ storage, clock, ids, digests, log, cache: new BlockCache(0), isReplica: true });
  try {
    const { end, table, checkpoints, chunkSize } = opened;
    return {
      takenMs: clock.nowMs(),
      chunkSizeBytes: chunkSize,
      chunks: chunksUpTo(table, end),
      checkpoints: { writer: end, chaser: end, epoch: checkpoints.epoch.value, proposal: checkpoints.proposal.value },
      marks: await marksOfStopped(world, opened),
    };
  } finally {
    await opened.close();
  }
}
