import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BlockCache } from '../../core/cache/cache.ts';
import { ongoingFileBytes } from '../../core/log/format/chunk-format.ts';
import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../../core/shared-log/api.ts';
import type { ObjectManifest } from '../../core/shared-log/format/manifest.ts';
import { openPrefix } from '../../core/shared-log/prefix/prefix.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { newestManifest } from '../../core/shared-log/format/manifest.ts';
import { ObjectStorage } from '../../core/shared-log/tick/tick-storage.ts';
import { tick } from '../../core/shared-log/tick/tick.ts';
import type { TickParts, TickReport, TickSettings } from '../../core/shared-log/tick/tick.ts';
import { TickLog } from '../../core/shared-log/tick/tick-log.ts';
import { listTail, readTail } from '../../core/shared-log/tail/tail.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { ANY, type EventStore, type NewEvent } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { copyTo, setCheckpoint } from '../log/kit.ts';

export const CHUNK_BYTES = 65_536;
export const NOW_MS = Date.UTC(2026, 10, 22);
const HOUR_MS = 3_600_000;

export function newClock(): ManualClock {
  return new ManualClock(NOW_MS, 'microtask');
}

export function worldOf(objects: ObjectStore, clock: Clock, seed: number): ObjectWorld {
  return { objects, clock, ids: new SeededIds(seed), digests: nodeDigests, log: silentLog, meter: silentMeter };
}

export type TickOptions = Partial<Omit<TickParts, 'settings'>> & { readonly settings?: Partial<TickSettings> };

/** What the first instance does. */
export async function beginLog(world: ObjectWorld): Promise<void> {
  await openPrefix(world, { chunkSizeBytes: CHUNK_BYTES });
}

/** One tick that needs no streams and no scavenge database, so that memory is scratch enough. */
export function compactionTick(world: ObjectWorld, settings: Partial<TickSettings> = {}): Promise<TickReport> {
  const scavengeStates = new MemoryScavengeStates();
  const open = () => Promise.reject(new Error('the streams are not needed'));
  return tick({
    world,
    open,
    scavengeStates,
    scratch: new MemoryStorage(),
    deadlineMs: world.clock.monotonicMs() + HOUR_MS,
    options: { chunkSizeBytes: CHUNK_BYTES },
    settings: { compactCommitsMin: 1, ...settings },
  });
}

/**
 * Files in memory, but the scavenge database, which SQLite must find in a folder: syncs would take most of the time of
 * a test.
 */
class HybridStorage extends MemoryStorage {
  readonly #disk: Storage;

  constructor(disk: Storage) {
    super();
    this.#disk = disk;
  }

  override size(path: string): Promise<number | null> {
    return isState(path) ? this.#disk.size(path) : super.size(path);
  }
  override modifiedMs(path: string): Promise<number | null> {
    return isState(path) ? this.#disk.modifiedMs(path) : super.modifiedMs(path);
  }
  override open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    return isState(path) ? this.#disk.open(path, access) : super.open(path, access);
  }
  override create(path: string): Promise<StorageFile> {
    return isState(path) ? this.#disk.create(path) : super.create(path);
  }
  override remove(path: string): Promise<void> {
    return isState(path) ? this.#disk.remove(path) : super.remove(path);
  }
}

function isState(path: string): boolean {
  return path.startsWith('index/scavenging/');
}

/** One tick with a scratch folder of its own, which takes over whatever there is. */
export async function runTick(world: ObjectWorld, given: TickOptions = {}): Promise<TickReport> {
  const folder = await mkdtemp(join(tmpdir(), 'skua-tick-'));
  try {
    const scratch = new HybridStorage(new FilesystemStorage({ root: folder }));
    return await tick({
      world,
      scratch,
      open: openObjectStore,
      scavengeStates: new SqliteScavengeStates({ indexRoot: join(folder, 'index') }),
      deadlineMs: world.clock.monotonicMs() + HOUR_MS,
      ...given,
      options: { chunkSizeBytes: CHUNK_BYTES, ...given.options },
      settings: { compactCommitsMin: 1, ...given.settings },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export async function manifestOf(objects: ObjectStore): Promise<ObjectManifest> {
  return (await newestManifest(objects, nodeDigests))!;
}

/**
 * What the objects amount to, as the data directory of a node: the files of the newest manifest and, unless told
 * otherwise, the commits behind them. Whatever can judge a node's directory can then judge the objects.
 */
export async function exportDirectory(objects: ObjectStore, withTail = true): Promise<MemoryStorage> {
  const manifest = await manifestOf(objects);
  const scratch = new MemoryStorage();
  const storage = ObjectStorage.of(manifest, objects, scratch);
  const log = TickLog.of(manifest, {
    storage,
    scratch,
    objects,
    digests: nodeDigests,
    ids: new SeededIds(5),
    cache: new BlockCache(0),
  });
  const tail = withTail ? await listTail(objects, log.boundary, 100_000) : null;
  if (tail !== null) for await (const commit of readTail(objects, nodeDigests, tail)) await log.take(commit);
  const out = new MemoryStorage();
  await copyTo(storage, out, ['', 'index', 'index/scavenging']);
  const { filling } = log;
  const end = log.endsChunk ? Math.ceil(log.logEnd / manifest.chunkSizeBytes) * manifest.chunkSizeBytes : log.logEnd;
  if (filling !== null) {
    const file = await out.create(filling.name);
    const source = filling.open();
    await file.truncate(ongoingFileBytes(manifest.chunkSizeBytes));
    await file.writeAt(0, await source.read(0, 128 + filling.dataBytes));
    await file.close();
  }
  await log.close();
  for (const [name, value] of [
    ['writer.chk', end],
    ['chaser.chk', end],
    ['epoch.chk', -1],
    ['proposal.chk', -1],
    ['truncate.chk', -1],
  ] as const)
    await setCheckpoint(out, name, value);
  return out;
}

export function eventsOf(ids: SeededIds, count: number, bytes: number): NewEvent[] {
  return Array.from({ length: count }, () => ({
    id: uuid(ids),
    type: 'T',
    isJson: false,
    data: new Uint8Array(bytes).fill(120),
    metadata: new Uint8Array(0),
  }));
}

export function uuid(ids: SeededIds): string {
  const hex = Buffer.from(ids.uuidBytes()).toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export async function setMetadata(store: EventStore, ids: SeededIds, stream: string, metadata: object): Promise<void> {
  await store.append(`$$${stream}`, ANY, [
    {
      id: uuid(ids),
      type: '$metadata',
      isJson: true,
      data: encodeText(JSON.stringify(metadata)),
      metadata: new Uint8Array(0),
    },
  ]);
}

export type { ObjectInstance, ObjectLogOptions };
