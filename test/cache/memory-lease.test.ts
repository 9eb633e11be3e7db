import { describe, expect, it } from 'vitest';
import { KEPT, LOOKED_AT, MemoryLease } from '../../core/base/memory-use.ts';
import type { MemoryUse } from '../../core/base/memory-use.ts';
import { BLOCK_BYTES, BlockCache } from '../../core/cache/cache.ts';
import type { CachedFile } from '../../core/cache/cache.ts';
import type { StorageFile } from '../../core/ports/storage.ts';
import { Random } from '../support/random.ts';

/** Eight reads of 16 blocks. */
const CAPACITY = 128 * BLOCK_BYTES;
const FILE_BLOCKS = 480;
/** Reads whose memory the cache holds, those on their way, and memory that waits for one. */
const MEMORIES_MAX = 8 + 2 + 4;
const PAGE_BYTES = 1_024;

/** A file whose bytes are known, which reads into what it is given, and notes into which memory it has read. */
class KnownFile {
  readonly path = 'known';
  readonly size = FILE_BLOCKS * BLOCK_BYTES - PAGE_BYTES;
  readonly isRemote = false;
  readonly memories = new Set<ArrayBufferLike>();
  /** What it has given of its own. */
  readonly own = new Set<Uint8Array>();
  readonly #seed: number;
  readonly #keepsOwn: boolean;

  constructor(seed: number, keepsOwn = false) {
    this.#seed = seed;
    this.#keepsOwn = keepsOwn;
  }

  async read(position: number, length: number, into?: Uint8Array): Promise<Uint8Array> {
    const count = Math.max(0, Math.min(length, this.size - position));
    const bytes = (this.#keepsOwn ? undefined : into)?.subarray(0, count) ?? new Uint8Array(count);
    await Promise.resolve();
    this.#fill(bytes, position);
    this.memories.add(bytes.buffer);
    if (this.#keepsOwn) this.own.add(bytes);
    return bytes;
  }

  #fill(bytes: Uint8Array, position: number): void {
    for (let at = 0; at < bytes.length; at += PAGE_BYTES)
      bytes.fill(
        Math.imul((position + at) / PAGE_BYTES + 1_000 * this.#seed, 2_654_435_761) >>> 24,
        at,
        at + PAGE_BYTES,
      );
  }

  isRight(block: Uint8Array, index: number): boolean {
    const wanted = new Uint8Array(Math.min(BLOCK_BYTES, this.size - index * BLOCK_BYTES));
    this.#fill(wanted, index * BLOCK_BYTES);
    return Buffer.compare(block, wanted) === 0;
  }
}

const attached = (file: KnownFile, cache = new BlockCache(CAPACITY)): CachedFile =>
  cache.attach(file as unknown as StorageFile);

async function blockOf(file: CachedFile, index: number, use: MemoryUse): Promise<Uint8Array> {
  for (;;) {
    const block = file.block(index, false, 1, use);
    if (block instanceof Uint8Array) return block;
    await block;
  }
}

describe('memory of blocks', () => {
  it('is read into again once its leases are over', async () => {
    const known = new KnownFile(1);
    const file = attached(known);
    for (let round = 0; round < 3; round++)
      for (let index = 0; index < FILE_BLOCKS; index++) {
        const lease = new MemoryLease();
        expect(known.isRight(await blockOf(file, index, lease), index)).toBe(true);
        lease.release();
      }
    // With the first block of a file, and its last ones, which are no whole reads.
    expect(known.memories.size).toBeLessThanOrEqual(MEMORIES_MAX + 2 * 3);
  });

  it('is read into again where it was but looked at, also for what two blocks share', async () => {
    const known = new KnownFile(1);
    const file = attached(known);
    const shared: Uint8Array[] = [];
    for (let index = 0; index < FILE_BLOCKS - 1; index++) {
      await blockOf(file, index, LOOKED_AT);
      await blockOf(file, index + 1, LOOKED_AT);
      shared.push(file.bytes((index + 1) * BLOCK_BYTES - 100, 200) as Uint8Array);
    }
    expect(known.memories.size).toBeLessThanOrEqual(MEMORIES_MAX + 2);
    for (const [index, bytes] of shared.entries())
      expect(bytes[199]).toBe(((await blockOf(file, index + 1, LOOKED_AT)) as Uint8Array)[99]);
  });

  it.each<[string, () => MemoryUse]>([
    ['says nothing', () => KEPT],
    ['has a lease, and never says that it is over', () => new MemoryLease()],
    [
      'goes on with a lease that is over',
      () => {
        const lease = new MemoryLease();
        lease.release();
        return lease;
      },
    ],
  ])('stays that of a reader who %s', async (_, use) => {
    const known = new KnownFile(1);
    const file = attached(known);
    const seen: Uint8Array[] = [];
    for (let index = 0; index < FILE_BLOCKS; index++) {
      seen.push(await blockOf(file, index, use()));
      // Others who let go of it change nothing.
      const lease = new MemoryLease();
      file.block(index, false, 1, lease);
      file.block(index, false, 1, LOOKED_AT);
      lease.release();
      lease.release();
    }
    expect(seen.every((block, index) => known.isRight(block, index))).toBe(true);
    expect(known.memories.size).toBeGreaterThan(FILE_BLOCKS / 16);
  });

  it('stays as it is until the last of its leases is over', async () => {
    const known = new KnownFile(1);
    const file = attached(known);
    const [one, other] = [new MemoryLease(), new MemoryLease()];
    for (let index = 0; index < 22; index++) await blockOf(file, index, LOOKED_AT);
    const block = await blockOf(file, 20, one);
    // Twice the same memory is one lease of it.
    for (const index of [20, 0, 20]) await blockOf(file, index, one);
    await blockOf(file, 20, other);
    one.release();
    for (let index = 0; index < FILE_BLOCKS; index++) await blockOf(file, index, LOOKED_AT);
    expect(known.isRight(block, 20)).toBe(true);
    other.release();
  });

  it('is not read into again by a reader without a lease of what the one before had', async () => {
    const known = new KnownFile(1);
    const file = attached(known);
    for (let index = 0; index < 22; index++) await blockOf(file, index, LOOKED_AT);
    const lease = new MemoryLease();
    await blockOf(file, 20, lease);
    // The block that was asked for last needs no search, and is kept all the same.
    const kept = await blockOf(file, 20, KEPT);
    lease.release();
    for (let index = 0; index < FILE_BLOCKS; index++) await blockOf(file, index, LOOKED_AT);
    expect(known.isRight(kept, 20)).toBe(true);
  });

  it('of the storage is never written to', async () => {
    const [known, other] = [new KnownFile(1, true), new KnownFile(2)];
    const cache = new BlockCache(CAPACITY);
    const [file, second] = [attached(known, cache), attached(other, cache)];
    const before = new Map<Uint8Array, Uint8Array>();
    for (let index = 0; index < FILE_BLOCKS; index++) {
      await blockOf(file, index, LOOKED_AT);
      for (const bytes of known.own) if (!before.has(bytes)) before.set(bytes, bytes.slice());
      await blockOf(second, index, LOOKED_AT);
    }
    for (const [bytes, copy] of before) expect(Buffer.compare(bytes, copy)).toBe(0);
  });

  it.each([1, 2])('shows readers of all kinds at once what they read, seed %i', async (seed) => {
    const random = new Random(seed);
    const cache = new BlockCache(CAPACITY);
    const known = [1, 2, 3].map((number) => new KnownFile(number));
    const files = known.map((file) => attached(file, cache));
    let looks = 0;
    const reader = async (): Promise<void> => {
      for (let round = 0; round < 5; round++) {
        const at = random.int(0, files.length - 1);
        const kind = random.pick(['lease', 'lease', 'lease', 'kept', 'looked']);
        const end = random.int(60, FILE_BLOCKS);
        for (let index = random.int(0, end - 50); index < end;) {
          const lease = new MemoryLease();
          const use = kind === 'lease' ? lease : kind === 'kept' ? KEPT : LOOKED_AT;
          const seen = new Map<number, Uint8Array>();
          for (const stop = Math.min(end, index + random.int(1, 6)); index < stop; index++)
            seen.set(index, await blockOf(files[at]!, index, use));
          if (kind === 'looked') continue;
          for (let turns = random.int(0, 6); turns > 0; turns--) await new Promise<void>((go) => void setImmediate(go));
          for (const [number, block] of seen) {
            if (!known[at]!.isRight(block, number)) throw new Error(`Block ${number} was read into.`);
            looks++;
          }
          if (random.chance(0.9)) lease.release();
        }
      }
    };
    await Promise.all(Array.from({ length: 10 }, reader));
    expect(looks).toBeGreaterThan(500);
  });
});
