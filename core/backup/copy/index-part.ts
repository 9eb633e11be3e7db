import { equalBytes } from '../../base/bytes.ts';
import { SkuaError, isSkuaError } from '../../base/errors.ts';
import { EXISTENCE_CHECKPOINT_PATH, EXISTENCE_DATA_PATH } from '../../index/format/existence-files.ts';
import { INDEX_FOLDER, INDEX_MAP_PATH } from '../../index/format/index-map.ts';
import type { Clock } from '../../ports/clock.ts';
import { isOwnName, isTableFile } from '../../ports/own-names.ts';
import { folderOf } from '../../ports/storage.ts';
import { DATABASE_FOLDER } from '../../scavenge/format/scavenge-files.ts';
import type { BackupSource, SnapshotFile, SnapshotKind } from '../../store/api.ts';
import { bytesOf, type CopyTarget } from './target.ts';

/** How often an index map that is not there yet is looked for again, and the time between two looks. */
const MAP_LOOKS_MAX = 100;
const MAP_LOOK_MS = 100;
/** An index that changes more often than this while it is copied can't be copied. */
const ROUNDS_MAX = 100;
const TABLE_KINDS: ReadonlySet<SnapshotKind> = new Set<SnapshotKind>(['index-table', 'bloom-filter']);

/** A source whose index may change while it is copied lists its files anew. */
export interface CopySource extends BackupSource {
  relist?(): Promise<readonly SnapshotFile[]>;
}

/**
 * The index part of a differential copy: the map, then the tables that it names, again while the map changes; then what
 * is not in the list goes. A crash leaves a map whose tables are incomplete, which the marker of the copy gives away.
 */
export async function copyIndexPart(source: CopySource, target: CopyTarget, clock: Clock): Promise<void> {
  const list = async () => (source.relist === undefined ? source.snapshot.files : source.relist());
  const hasIndex = (await list()).some(({ path }) => folderOf(path) === INDEX_FOLDER);
  if (hasIndex) await copyTables(source, target, clock, list);
  else await removeIndex(target);
  await copyExistenceFilter(source, target, await list());
  await copyScavengeDatabase(target, await list());
}

async function copyTables(
  source: CopySource,
  target: CopyTarget,
  clock: Clock,
  list: () => Promise<readonly SnapshotFile[]>,
): Promise<void> {
  let map = await readMap(source, clock, list);
  for (let round = 1; ; round++) {
    await target.write(INDEX_MAP_PATH, map);
    const tables = (await list()).filter(({ kind }) => TABLE_KINDS.has(kind));
    const isWhole = await copyMissing(tables, target);
    const now = await readMap(source, clock, list);
    if (isWhole && now.length === map.length && equalBytes(now, 0, map, 0, map.length))
      return removeTables(target, new Set(tables.map(({ path }) => path)));
    if (round === ROUNDS_MAX)
      throw new SkuaError(
        'backup_failed',
        `The index changed ${ROUNDS_MAX} times while it was being copied. Repeat the copy when there is less load.`,
        { limit: ROUNDS_MAX },
      );
    map = now;
  }
}

/** False when one of them was gone: the list is out of date. */
async function copyMissing(tables: readonly SnapshotFile[], target: CopyTarget): Promise<boolean> {
  for (const file of tables) {
    if (await target.hasSize(file)) {
      target.keep(file);
      continue;
    }
    try {
      await target.copy(file, { isSealed: file.kind === 'index-table' });
    } catch (error) {
      if (isSkuaError(error, 'file_not_found')) return false;
      throw error;
    }
  }
  return true;
}

/** A map is replaced all at once by most systems, but by some there is none for a moment. */
async function readMap(
  source: CopySource,
  clock: Clock,
  list: () => Promise<readonly SnapshotFile[]>,
): Promise<Uint8Array> {
  for (let look = 1; ; look++) {
    const found = (await list()).find(({ kind }) => kind === 'index-map');
    if (found !== undefined) {
      try {
        return await bytesOf(source, found.path, found.sizeBytes);
      } catch (error) {
        if (!isSkuaError(error, 'file_not_found')) throw error;
      }
    }
    if (look === MAP_LOOKS_MAX)
      throw new SkuaError(
        'backup_failed',
        `There are index files but no ${INDEX_MAP_PATH}, and none appeared in ${MAP_LOOKS_MAX * MAP_LOOK_MS} ms. Start the node once, which repairs its index, and repeat the copy.`,
        { path: INDEX_MAP_PATH },
      );
    await clock.sleep(MAP_LOOK_MS);
  }
}

/**
 * Without an index the source has a new one built; an old one in the copy could belong to a log that was truncated
 * since.
 */
async function removeIndex(target: CopyTarget): Promise<void> {
  if ((await target.storage.size(INDEX_MAP_PATH)) !== null) await target.remove(INDEX_MAP_PATH);
  await removeTables(target, new Set());
}

async function removeTables(target: CopyTarget, listed: ReadonlySet<string>): Promise<void> {
  for (const name of await target.storage.list(INDEX_FOLDER)) {
    const path = `${INDEX_FOLDER}/${name}`;
    if (isTableFile(name) && !listed.has(path)) await target.remove(path);
  }
}

/**
 * The filter may know more than its checkpoint says, never less: the checkpoint is read first, and no new one ever
 * stands beside an old filter.
 */
async function copyExistenceFilter(
  source: BackupSource,
  target: CopyTarget,
  files: readonly SnapshotFile[],
): Promise<void> {
  const checkpoint = files.find(({ kind }) => kind === 'existence-checkpoint');
  const filter = files.find(({ kind }) => kind === 'existence-filter');
  if (checkpoint === undefined || filter === undefined) {
    for (const path of [EXISTENCE_CHECKPOINT_PATH, EXISTENCE_DATA_PATH])
      if ((await target.storage.size(path)) !== null) await target.remove(path);
    return;
  }
  const position = await bytesOf(source, checkpoint.path, checkpoint.sizeBytes);
  await target.storage.remove(EXISTENCE_DATA_PATH);
  await target.write(checkpoint.path, position);
  await target.copy(filter);
}

/** SQLite must not find a new database beside the write-ahead log of an old one. */
async function copyScavengeDatabase(target: CopyTarget, files: readonly SnapshotFile[]): Promise<void> {
  const wanted = files.filter(({ kind }) => kind === 'scavenge-database');
  const paths = new Set(wanted.map(({ path }) => path));
  for (const name of await target.storage.list(DATABASE_FOLDER)) {
    const path = `${DATABASE_FOLDER}/${name}`;
    if (!isOwnName(path)) continue;
    if (paths.has(path)) await target.storage.remove(path);
    else await target.remove(path);
  }
  for (const file of wanted) await target.copy(file);
}
