import type { BlockCache, CachedFile } from '../../cache/cache.ts';
import { mappedBytes } from '../../base/mapped-memory.ts';
import { END, HIT, type Outcome } from '../../base/step.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import {
  bloomBytePosition,
  BloomFilter,
  BloomProbe,
  isLineSound,
  isTooCorrupt,
  LINE_BYTES,
  PROBES,
  readBloomHeader,
  readLines,
} from './bloom.ts';

/** Filters of tables are kept in memory up to this many bytes in all; further ones are read through the cache. */
export const BLOOM_RESIDENT_BYTES_MAX = 67_108_864;
const READ_BYTES = 1_048_576;

/** What is left of the memory for filters. */
export class BloomBudget {
  #left: number;

  constructor(bytes = BLOOM_RESIDENT_BYTES_MAX) {
    this.#left = bytes;
  }

  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#left += bytes;
  }
}

/** The bloom filter of one table. */
export interface TableBloom {
  /** END: the table has no entry of the hash. HIT: it may have some. */
  mayContain(hi: number, lo: number): Outcome;
  close(): Promise<void>;
}

/**
 * Opens the filter of a table; null when there is none that can be used, and then the table is searched without one.
 */
export async function openTableBloom(
  storage: Storage,
  cache: BlockCache,
  budget: BloomBudget,
  path: string,
  log: Log,
): Promise<TableBloom | null> {
  const size = await storage.size(path);
  if (size === null) return null;
  const file = await storage.open(path, 'read');
  const isResident = budget.take(size);
  try {
    const bloom = isResident ? await loadResident(file, budget) : await checkCached(file, cache);
    if (bloom !== null) return bloom;
  } catch (error) {
    if (isResident) budget.giveBack(size);
    await file.close();
    throw error;
  }
  if (isResident) budget.giveBack(size);
  await file.close();
  log.warn('A bloom filter of the index is damaged; its table is searched without it until it is merged.', { path });
  return null;
}

async function loadResident(file: StorageFile, budget: BloomBudget): Promise<TableBloom | null> {
  const { size } = file;
  if (readBloomHeader(await file.read(0, LINE_BYTES), size) === null) return null;
  const bytes = mappedBytes(size);
  if (isTooCorrupt(await readLines(file, bytes, async () => {}), size)) return null;
  await file.close();
  const filter = new BloomFilter(bytes);
  return {
    mayContain: (hi, lo) => (filter.mayContain(hi, lo) ? HIT : END),
    async close() {
      budget.giveBack(size);
    },
  };
}

/** A filter that stays on disk is used only when every line of it is sound, since nothing could be repaired there. */
async function checkCached(file: StorageFile, cache: BlockCache): Promise<TableBloom | null> {
  const { size } = file;
  const header = readBloomHeader(await file.read(0, LINE_BYTES), size);
  if (header === null) return null;
  // One buffer: new ones would wait for the garbage collector by the dozen.
  const buffer = new Uint8Array(Math.min(READ_BYTES, size));
  for (let at = LINE_BYTES; at < size; at += READ_BYTES) {
    const bytes = await file.read(at, Math.min(READ_BYTES, size - at), buffer);
    for (let line = 0; line < bytes.length; line += LINE_BYTES) if (!isLineSound(bytes, line)) return null;
  }
  return new CachedBloom(file, cache, header.logicalBytes * 8);
}

class CachedBloom implements TableBloom {
  readonly #file: StorageFile;
  readonly #cached: CachedFile;
  readonly #probe: BloomProbe;

  constructor(file: StorageFile, cache: BlockCache, bits: number) {
    this.#file = file;
    this.#cached = cache.attach(file, true);
    this.#probe = new BloomProbe(bits);
  }

  mayContain(hi: number, lo: number): Outcome {
    const bits = this.#probe.of(hi, lo);
    for (let i = 0; i < PROBES; i++) {
      const byte = this.#cached.bytes(bloomBytePosition(bits[i]!), 1);
      if (byte instanceof Promise) return byte;
      if ((byte[0]! & (0x80 >> (bits[i]! % 8))) === 0) return END;
    }
    return HIT;
  }

  close(): Promise<void> {
    this.#cached.detach();
    return this.#file.close();
  }
}
