import type { Manifest } from '../../../core/backup/format/snapshot-manifest.ts';
import type { Repository } from '../../../core/backup/repository/api.ts';
import { isSkuaError } from '../../../core/base/errors.ts';
import { MemoryObjects } from '../memory-objects.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { DirectoryStore } from '../../../core/store/store.ts';
import { type RawRecord, readRawLog } from '../../scavenge/raw-log.ts';
import { ManualClock } from '../manual-clock.ts';
import { Random } from '../random.ts';
import { SeededIds } from '../seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../test-store.ts';
import { newEvent } from '../workload.ts';
import { backUp } from './restore-kit.ts';
import { openTestRepository } from './test-repository.ts';

export const CHUNK_BYTES = 65_536;
const STREAMS = ['a', 'b', 'c', 'd', 'e'];
const MINUTE_MS = 60_000;

/** A backup, and what the log held when it was made. */
export interface Past {
  readonly manifest: Manifest;
  readonly records: readonly RawRecord[];
}

/** A random history: writes, scavenges, starts and stops, and a backup after each part. */
export interface History {
  readonly storage: Storage;
  readonly objects: MemoryObjects;
  readonly repository: Repository;
  /** Oldest first. */
  readonly pasts: readonly Past[];
  /** Every record that there ever was, by position. */
  readonly universe: ReadonlyMap<number, RawRecord>;
}

export interface HistoryOptions {
  readonly seed: number;
  readonly parts: number;
  readonly storage?: Storage;
  /** Of each part. Default: some dozens. */
  readonly writes?: number;
  /** Default true. */
  readonly scavenges?: boolean;
  /** Backups are made at the time of the clock, and not some seconds after the beginning. */
  readonly isTimed?: boolean;
  /** How many milliseconds the clock moves between two writes; may be negative. */
  readonly stepMs?: (random: Random) => number;
}

export async function playHistory({
  seed,
  parts,
  writes,
  scavenges = true,
  storage = new MemoryStorage(),
  isTimed = false,
  stepMs = (random) => random.int(0, 3) * MINUTE_MS,
}: HistoryOptions): Promise<History> {
  const random = new Random(seed);
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(seed);
  const scavengeStates = new MemoryScavengeStates();
  const objects = new MemoryObjects();
  const repository = await openTestRepository(objects);
  const pasts: Past[] = [];
  const universe = new Map<number, RawRecord>();
  const note = async (): Promise<readonly RawRecord[]> => {
    const records = await readRawLog(storage);
    for (const record of records) if (!universe.has(record.position)) universe.set(record.position, record);
    return records;
  };
  for (let part = 0; part < parts; part++) {
    const open = await openTestStore({
      storage,
      clock,
      ids,
      scavengeStates,
      chunkSizeBytes: CHUNK_BYTES,
      memTableEntriesMax: 40,
      verifyChunks: false,
    });
    await write(open, random, clock, stepMs, writes ?? random.int(15, 40));
    await note();
    if (part > 0 && scavenges && random.chance(0.6)) {
      await open.scavenger.start({ threads: 1, throttlePercent: 100, threshold: 0 });
      await open.scavenger.idle();
      await note();
      if (random.chance(0.5)) await write(open, random, clock, stepMs, random.int(1, 10));
    }
    await open.close();
    const manifest = await backUp(storage, repository, part + 1, isTimed ? clock.nowMs() : undefined);
    pasts.push({ manifest, records: await note() });
  }
  return { storage, objects, repository, pasts, universe };
}

async function write(
  { store }: DirectoryStore,
  random: Random,
  clock: ManualClock,
  stepMs: (random: Random) => number,
  count: number,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    clock.setNow(clock.nowMs() + stepMs(random));
    const stream = random.pick(STREAMS);
    try {
      const choice = random.int(0, 99);
      if (choice < 80)
        await store.append(
          stream,
          ANY,
          Array.from({ length: random.int(1, 6) }, () => newEvent(random, 'happened', null, 3_000)),
        );
      else if (choice < 95)
        await store.append(`$$${stream}`, ANY, [newEvent(random, '$metadata', `{"$maxCount":${random.int(1, 6)}}`)]);
      else await store.deleteStream(stream, ANY, 'soft');
    } catch (error) {
      if (!isSkuaError(error)) throw error;
    }
  }
}

/** Behind the record with its frame. */
export function endOf(record: RawRecord): number {
  return record.position + record.bytes.length + 8;
}

/** A record that ends its write, judged by its flags alone. */
export function endsWrite({ bytes }: RawRecord): boolean {
  const flags = bytes.charCodeAt(10);
  return bytes.charCodeAt(0) !== 0 || (flags & 0x20) === 0 || (flags & 0x04) !== 0;
}

/**
 * The newest backup in which the log can be cut at a position, by a plain reading of the rules; null where none can.
 */
export function servedBy({ pasts, universe }: History, position: number): Past | null {
  const isEnd = [...universe.values()].some((record) => endOf(record) === position && endsWrite(record));
  for (const past of [...pasts].reverse()) {
    const { chunks, checkpoints } = past.manifest;
    if (position > checkpoints.writer) continue;
    if (position === checkpoints.writer || chunks.some(({ endNumber }) => (endNumber + 1) * CHUNK_BYTES === position))
      return past;
    const chunk = chunks.find(
      ({ startNumber, endNumber }) => startNumber * CHUNK_BYTES < position && position < (endNumber + 1) * CHUNK_BYTES,
    );
    if (chunk?.isScavenged !== true && isEnd) return past;
  }
  return null;
}
