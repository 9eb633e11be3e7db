import { chunksUpTo, takeSnapshot } from '../../store/snapshot/snapshot.ts';
import { type BackupSource, type Snapshot, StorageSource } from '../../store/source/source.ts';
import { BlockCache } from '../../cache/cache.ts';
import { SkuaError } from '../../base/errors.ts';
import { HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { ScavengeStates } from '../../ports/scavenge-state.ts';
import type { Storage } from '../../ports/storage.ts';
import {
  CACHE_DEFAULT_BYTES,
  LOADS_MAX,
  type ObjectLogOptions,
  type ObjectWorld,
  TAIL_BYTES_MAX,
  TAIL_COMMITS_MAX,
} from '../api.ts';
import { newestManifest, newestManifestNumber, type ObjectManifest } from '../format/manifest.ts';
import { listTail, readTail } from '../tail/tail.ts';
import { ObjectStorage } from '../tick/tick-storage.ts';
import { TickLog } from '../tick/tick-log.ts';
import { TickMarks } from '../tick/tick-marks.ts';

/** Bytes copied at once of the chunk that is being filled. */
const COPY_BYTES = 1_048_576;

/**
 * What the objects amount to at one moment, as the files of a node: those of the newest manifest, the commits behind
 * them taken over into the scratch storage, and the chunk that is being filled as a file up to its end. For work that
 * changes nothing: no other process ever sees what is written here.
 */
interface Overlay {
  readonly manifest: ObjectManifest;
  readonly storage: ObjectStorage;
  readonly log: TickLog;
  readonly cache: BlockCache;
  /** When the tail was listed: everything acknowledged before is in it. Milliseconds since 1970. */
  readonly takenMs: number;
  readonly marks: TickMarks;
  /** Position at which the log goes on: behind the last record, or at the next chunk where this one was ended. */
  readonly end: number;
  /** Closes the files. What is in the scratch storage is the business of the caller. */
  close(): Promise<void>;
}

/**
 * Opens it on an empty scratch storage. What it reads may be dropped by a newer manifest, and is removed an hour or
 * more after that: longer work must be ready to begin anew. Throws `manifest_invalid` where there is no store, and
 * `too_busy` for a tail that no tick takes over.
 */
export async function openOverlay(world: ObjectWorld, options: ObjectLogOptions, temporary: Storage): Promise<Overlay> {
  const { objects, digests } = world;
  for (let loads = 1; ; loads++) {
    const manifest = await newestManifest(objects, digests);
    if (manifest === null)
      throw new SkuaError(
        'manifest_invalid',
        `There is no store under ${objects.place}: open it first, which creates it.`,
        { place: objects.place },
      );
    const cache = new BlockCache(options.cacheBytes ?? CACHE_DEFAULT_BYTES);
    const storage = ObjectStorage.of(manifest, objects, temporary);
    const log = TickLog.of(manifest, { storage, scratch: temporary, objects, digests, ids: world.ids, cache });
    const marks = new TickMarks(storage, digests);
    const takenMs = Math.floor(world.clock.nowMs());
    try {
      if (await takeTail(world, options, log, marks, manifest)) {
        await copyFilling(log, storage);
        const end = log.endsChunk
          ? Math.ceil(log.logEnd / manifest.chunkSizeBytes) * manifest.chunkSizeBytes
          : log.logEnd;
        return { manifest, storage, log, cache, takenMs, marks, end, close: () => log.close() };
      }
    } catch (error) {
      await discard(log, storage);
      if (loads === LOADS_MAX || (await newestManifestNumber(objects)) === manifest.number) throw error;
      continue;
    }
    await discard(log, storage);
    if (loads === LOADS_MAX)
      throw new SkuaError(
        'too_busy',
        `The manifests of ${objects.place} change faster than the tail after them can be read: try again later.`,
        { place: objects.place },
      );
  }
}

/** False when a newer manifest has taken the tail in meanwhile. */
async function takeTail(
  { objects, digests }: ObjectWorld,
  options: ObjectLogOptions,
  log: TickLog,
  marks: TickMarks,
  manifest: ObjectManifest,
): Promise<boolean> {
  const { tailCommitsMax = TAIL_COMMITS_MAX, tailBytesMax = TAIL_BYTES_MAX } = options;
  const tail = await listTail(objects, log.boundary, tailCommitsMax + 1);
  if (tail === null) return false;
  // A tail that a newer manifest took in may have been removed since, and then there is nothing to tell it by but that
  // manifest.
  if (tail.sizes.length === 0 && (await newestManifestNumber(objects)) !== manifest.number) return false;
  if (tail.sizes.length > tailCommitsMax || tail.bytes > tailBytesMax) {
    throw new SkuaError(
      'too_busy',
      `More than ${tailCommitsMax} commits or ${tailBytesMax} bytes have not been compacted into files yet: the tick, which does that, is not running or is behind. Check its log and alarms.`,
      { commits: tail.sizes.length, commitsMax: tailCommitsMax, bytes: tail.bytes, bytesMax: tailBytesMax },
    );
  }
  for await (const commit of readTail(objects, digests, tail)) {
    await log.take(commit);
    if (commit.hasMarks) marks.take(commit);
  }
  // A chunk that is full to its last byte is complete, and its file has a footer.
  if (log.filling?.dataBytes === log.table.chunkSize)
    await log.take({
      number: log.boundary,
      start: log.logEnd,
      end: log.logEnd,
      endsChunk: true,
      records: new Uint8Array(0),
    });
  log.show();
  return true;
}

/** Makes a file of the chunk that is being filled, where jobs and backups find it by its name. */
async function copyFilling({ filling }: TickLog, storage: ObjectStorage): Promise<void> {
  if (filling === null) return;
  const source = filling.open();
  const end = HEADER_BYTES + filling.dataBytes;
  const file = await storage.create(filling.name);
  try {
    for (let at = 0; at < end; at += COPY_BYTES)
      await file.writeAt(at, await source.read(at, Math.min(COPY_BYTES, end - at)));
  } finally {
    await file.close();
    await source.close();
  }
}

/** Leaves the scratch storage as it was. */
async function discard(log: TickLog, storage: ObjectStorage): Promise<void> {
  await log.close();
  for (const path of storage.changes().added) await storage.remove(path);
}

/** A place for files of one piece of work. */
export interface TemporaryStorage {
  readonly storage: Storage;
  /** Of a scavenge database that has its place in it, and of temporary ones. */
  readonly states: ScavengeStates;
  /** Removes it with all that is in it. */
  remove(): Promise<void>;
}

/** The files of a store on object storage at one moment, as a backup takes them. */
export interface ObjectSource extends BackupSource {
  /** The manifest that names them. */
  readonly manifest: ObjectManifest;
  /** In which the listed files have their names. */
  readonly storage: Storage;
}

/**
 * The newest manifest and the tail behind it as the data directory of a node whose id is that of the store. Costs what
 * opening an instance costs, and the bytes of the chunk that is being filled; the files themselves are read by large
 * ranges when they are asked for. No scavenge has to wait: what a manifest names belongs together, also in the middle
 * of a run. The database of a run that has not ended is left out, since a restored node begins anew. `scratch` is
 * empty, and cleared by its owner after `release`.
 */
export async function objectSource(
  world: ObjectWorld,
  options: ObjectLogOptions,
  temporary: Storage,
): Promise<ObjectSource> {
  const overlay = await openOverlay(world, options, temporary);
  try {
    const snapshot = await snapshotOf(overlay, world);
    const { manifest, storage } = overlay;
    const source = new StorageSource(storage, snapshot, { release: () => overlay.close() });
    return {
      manifest,
      storage,
      snapshot,
      read: (path, position, length) => source.read(path, position, length),
      release: () => source.release(),
    };
  } catch (error) {
    await overlay.close();
    throw error;
  }
}

async function snapshotOf(
  { manifest, storage, log, marks, end, takenMs }: Overlay,
  { digests }: ObjectWorld,
): Promise<Snapshot> {
  const { storeId, chunkSizeBytes, scavenge } = manifest;
  const snapshot = await takeSnapshot({
    storage,
    digests,
    chunkSizeBytes,
    nodeId: storeId,
    // There are no epochs on object storage.
    log: async () => ({
      takenMs,
      checkpoints: { writer: end, chaser: end, epoch: -1, proposal: -1 },
      chunks: chunksUpTo(log.table, end),
      marks: await marks.all(),
    }),
  });
  return scavenge?.state === 'running'
    ? { ...snapshot, files: snapshot.files.filter(({ kind }) => kind !== 'scavenge-database') }
    : snapshot;
}
