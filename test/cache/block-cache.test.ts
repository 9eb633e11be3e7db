import { describe, expect, it } from 'vitest';
import { BLOCK_BYTES, BlockCache } from '../../core/cache/cache.ts';
import type { CachedFile } from '../../core/cache/cache.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { StorageFile } from '../../core/ports/storage.ts';

interface Read {
  readonly position: number;
  readonly length: number;
}

/** A file whose byte at any place is known, and which notes how it is read. */
function knownFile(size: number, reads: Read[], fails: (position: number) => boolean = () => false): StorageFile {
  return {
    path: 'known',
    size,
    read(position, length, into) {
      reads.push({ position, length });
      if (fails(position)) return Promise.reject(new SkuaError('io_error', 'The disk has a bad place.'));
      const count = Math.max(0, Math.min(length, size - position));
      const bytes = into?.subarray(0, count) ?? new Uint8Array(count);
      for (let i = 0; i < bytes.length; i++) bytes[i] = byteAt(position + i);
      return Promise.resolve(bytes);
    },
    writeAt() {},
    truncate: () => Promise.resolve(),
    sync: () => Promise.resolve(),
    seal: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

/** The same file, whose bytes are at hand. */
function withReadNow(file: StorageFile, reads: Read[]): StorageFile {
  return {
    ...file,
    readNow(position, length, into, at) {
      reads.push({ position, length });
      const count = Math.max(0, Math.min(length, file.size - position));
      for (let i = 0; i < count; i++) into[at + i] = byteAt(position + i);
      return count;
    },
  };
}

/** As `knownFile`, for tests that count reads of many blocks: all of its bytes are zeros. */
function longFile(blocks: number, reads: Read[]): StorageFile {
  return {
    ...knownFile(blocks * BLOCK_BYTES, reads),
    read(position, length) {
      reads.push({ position, length });
      return Promise.resolve(new Uint8Array(Math.min(length, blocks * BLOCK_BYTES - position)));
    },
  };
}

async function walk(file: CachedFile, from: number, to: number): Promise<void> {
  for (let block = from; block < to; block++) await bytesOf(file, block * BLOCK_BYTES, 1);
}

function bytesRead(reads: readonly Read[]): number {
  return reads.reduce((sum, { length }) => sum + length, 0);
}

function byteAt(position: number): number {
  return Math.imul(position ^ (position >>> 13), 2_654_435_761) >>> 24;
}

async function bytesOf(file: CachedFile, offset: number, length: number): Promise<Uint8Array> {
  for (let tries = 0; tries < 20; tries++) {
    const bytes = file.bytes(offset, length);
    if (bytes instanceof Uint8Array) return bytes;
    await bytes;
  }
  throw new Error(`The cache never gives ${length} bytes at ${offset}.`);
}

function isRight(bytes: Uint8Array, offset: number): boolean {
  return bytes.every((byte, i) => byte === byteAt(offset + i));
}

describe('block cache', () => {
  it('gives the right bytes wherever it is asked, within its capacity', async () => {
    const size = 200 * BLOCK_BYTES + 777;
    const cache = new BlockCache(64 * BLOCK_BYTES);
    const files = [false, true].map((isSearched) => cache.attach(knownFile(size, []), isSearched));
    let state = 42;
    const random = (below: number): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) % below;
    for (let i = 0; i < 400; i++) {
      const file = files[random(2)]!;
      let offset = random(size);
      // Some walks forward, so that runs are read ahead.
      for (let steps = random(10) === 0 ? 40 : 1; steps > 0 && offset < size; steps--) {
        const length = 1 + random(3 * BLOCK_BYTES);
        const bytes = await bytesOf(file, offset, length);
        expect(bytes.length).toBe(Math.min(length, size - offset));
        expect(isRight(bytes, offset)).toBe(true);
        offset += length;
      }
      expect(cache.usedBytes).toBeLessThanOrEqual(64 * BLOCK_BYTES);
    }
  });

  it('reads ahead of a sequential reader in large runs, and every block once', async () => {
    const reads: Read[] = [];
    const size = 100 * BLOCK_BYTES;
    const cache = new BlockCache(256 * BLOCK_BYTES);
    const file = cache.attach(knownFile(size, reads));
    for (let offset = 0; offset < size; offset += 1_000) await bytesOf(file, offset, Math.min(1_000, size - offset));
    expect(reads.reduce((sum, read) => sum + read.length, 0)).toBe(size);
    expect(reads.length).toBeLessThan(12);
    expect(reads.some((read) => read.length === 16 * BLOCK_BYTES)).toBe(true);
  });

  it('lets what a reader has passed go first, so that it pushes nothing out', async () => {
    const cache = new BlockCache(512 * BLOCK_BYTES);
    const hotReads: Read[] = [];
    const hot = cache.attach(longFile(20, hotReads));
    for (let times = 0; times < 2; times++) await walk(hot, 0, 20);
    const reads: Read[] = [];
    await walk(cache.attach(longFile(2_000, reads)), 0, 2_000);
    expect(bytesRead(reads)).toBe(2_000 * BLOCK_BYTES);
    // An eighth of the cache, the run that is read and the next one, and the first block, which was read alone.
    expect(cache.usedBytes).toBeLessThanOrEqual((20 + 64 + 16 + 16 + 1) * BLOCK_BYTES);
    hotReads.length = 0;
    await walk(hot, 0, 20);
    expect(hotReads).toEqual([]);
  });

  it('loads blocks that are searched into memory that others have left, one at a time', async () => {
    const size = 400 * BLOCK_BYTES;
    const reads: Read[] = [];
    const memory = new Set<ArrayBufferLike>();
    const known = knownFile(size, reads);
    const cache = new BlockCache(64 * BLOCK_BYTES);
    const searched = cache.attach(
      {
        ...known,
        read(position, length, into) {
          if (into !== undefined) memory.add(into.buffer);
          return known.read(position, length, into);
        },
      },
      true,
    );
    const other = cache.attach(knownFile(size, []));
    for (let i = 0; i < 800; i++) {
      const offset = ((i < 400 ? i : i * 7) % 400) * BLOCK_BYTES + (i % 1_000);
      expect(isRight(await bytesOf(searched, offset, 100), offset)).toBe(true);
      if (i % 10 === 0) expect(isRight(await bytesOf(other, offset, 100), offset)).toBe(true);
    }
    expect(reads.every(({ length }) => length === BLOCK_BYTES)).toBe(true);
    expect(reads.length).toBeGreaterThan(700);
    // Those in the cache, and the one that is loaded before another goes.
    expect(memory.size).toBeLessThanOrEqual(64 + 1);
  });

  it('keeps no more than four megabytes of it however large it is', async () => {
    const cache = new BlockCache(16_384 * BLOCK_BYTES);
    await walk(cache.attach(longFile(1_000, [])), 0, 1_000);
    expect(cache.usedBytes).toBeLessThanOrEqual((64 + 16 + 16 + 1) * BLOCK_BYTES);
  });

  it('keeps what comes back while it has room for it, and what a reader close behind asks for', async () => {
    const reads: Read[] = [];
    const cache = new BlockCache(512 * BLOCK_BYTES);
    const file = cache.attach(longFile(200, reads));
    for (const brings of [200, 200, 0]) {
      reads.length = 0;
      await walk(file, 0, 200);
      // What lay at the end was not passed by more than the cache keeps of that.
      expect(bytesRead(reads)).toBeLessThanOrEqual(brings * BLOCK_BYTES);
      expect(reads.length > 0).toBe(brings > 0);
    }
    const other = cache.attach(longFile(200, reads));
    for (let block = 0; block < 200; block++) {
      await walk(other, block, block + 1);
      if (block >= 24) await walk(other, block - 24, block - 23);
    }
    expect(bytesRead(reads)).toBe(200 * BLOCK_BYTES);
  });

  it('keeps nothing of a file that is longer than that, read again and again', async () => {
    const cache = new BlockCache(512 * BLOCK_BYTES);
    const file = cache.attach(longFile(400, []));
    for (let times = 0; times < 3; times++) await walk(file, 0, 400);
    // Nothing goes past the end of a file, so that its last run stays, too.
    expect(cache.usedBytes).toBeLessThanOrEqual((64 + 16 + 16 + 16 + 1) * BLOCK_BYTES);
  });

  it('reads ahead past a block that is there already', async () => {
    const reads: Read[] = [];
    const cache = new BlockCache(512 * BLOCK_BYTES);
    const file = cache.attach(longFile(200, reads));
    for (const block of [34, 40, 50, 100]) await bytesOf(file, block * BLOCK_BYTES, 1);
    reads.length = 0;
    let waits = 0;
    for (let block = 0; block < 200; block++) {
      const before = cache.misses;
      await walk(file, block, block + 1);
      if (cache.misses > before) waits++;
    }
    expect(bytesRead(reads)).toBe(196 * BLOCK_BYTES);
    // Only the first run is waited for: all else was begun one run before it is needed.
    expect(waits).toBe(2);
  });

  it('reads one block for a jump', async () => {
    const reads: Read[] = [];
    const cache = new BlockCache(256 * BLOCK_BYTES);
    const file = cache.attach(knownFile(100 * BLOCK_BYTES, reads));
    for (const block of [50, 3, 77, 20]) await bytesOf(file, block * BLOCK_BYTES + 5, 100);
    expect(reads.map((read) => read.length)).toEqual([BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES]);
  });

  it('shows a failed read to who needs the block, not to who was before it', async () => {
    const bad = 20 * BLOCK_BYTES;
    let isBad = true;
    const cache = new BlockCache(256 * BLOCK_BYTES);
    const file = cache.attach(
      knownFile(
        100 * BLOCK_BYTES,
        [],
        (position) => isBad && position <= bad && bad < position + 16 * BLOCK_BYTES && position > BLOCK_BYTES,
      ),
    );
    for (let block = 0; block < 2; block++) await bytesOf(file, block * BLOCK_BYTES, 10);
    await expect(bytesOf(file, bad, 10)).rejects.toMatchObject({ code: 'io_error' });
    isBad = false;
    expect(isRight(await bytesOf(file, bad, 10), bad)).toBe(true);
  });

  it('reads a record that is wanted alone past its blocks, until it is wanted again', async () => {
    const reads: Read[] = [];
    const cache = new BlockCache(256 * BLOCK_BYTES);
    const size = 200 * BLOCK_BYTES;
    const file = cache.attach(withReadNow(knownFile(size, reads), reads));
    const kept: { offset: number; bytes: Uint8Array }[] = [];
    for (let offset = 77; offset < size; offset += BLOCK_BYTES) {
      const bytes = file.alone(offset, 4_096)!;
      expect(bytes.length).toBe(4_096);
      file.keepAlone(1_000);
      kept.push({ offset, bytes: bytes.subarray(0, 1_000) });
    }
    for (const { offset, bytes } of kept) expect(isRight(bytes, offset)).toBe(true);
    expect(cache.usedBytes).toBe(0);
    expect(reads.every((read) => read.length === 4_096)).toBe(true);
    // Long ago by now, other than the last ones.
    expect(file.alone(77, 4_096)).not.toBeNull();
    expect(file.alone(kept.at(-1)!.offset, 4_096)).toBeNull();
    const miss = file.block(199, true);
    expect(miss).toBeInstanceOf(Promise);
    expect(file.alone(199 * BLOCK_BYTES, 4_096)).toBeNull();
    await miss;
    expect(file.alone(199 * BLOCK_BYTES + 5_000, 4_096)).toBeNull();
    expect(file.block(199, true)).toBeInstanceOf(Uint8Array);
    // The writer's last block is in memory.
    file.setTail(50, new Uint8Array(10));
    expect(file.alone(50 * BLOCK_BYTES, 4_096)).toBeNull();
    expect(file.aloneInto(50 * BLOCK_BYTES, 4_096, new Uint8Array(4_096))).toBe(-1);
    expect(file.aloneInto(51 * BLOCK_BYTES, 4_096, new Uint8Array(4_096))).toBe(4_096);
  });

  it('brings places that are read alone again and again into the cache', async () => {
    const cache = new BlockCache(256 * BLOCK_BYTES);
    const file = cache.attach(withReadNow(knownFile(200 * BLOCK_BYTES, []), []));
    let alone = 0;
    for (let pass = 0; pass < 6; pass++) {
      alone = 0;
      for (let block = 0; block < 100; block++) {
        const offset = block * 2 * BLOCK_BYTES + block * 37;
        if (file.alone(offset, 500) !== null) alone++;
        else await file.block(block * 2, true);
      }
    }
    expect(alone).toBeLessThan(5);
  });

  it('leaves records to the blocks where the storage would have to wait, and loads some of those at once', async () => {
    const reads: Read[] = [];
    const cache = new BlockCache(256 * BLOCK_BYTES);
    const slow = knownFile(100 * BLOCK_BYTES, reads);
    const file = cache.attach({ ...slow, readNow: () => -1 });
    expect(file.alone(10, 100)).toBeNull();
    const miss = file.block(0, true);
    expect(miss).toBeInstanceOf(Promise);
    for (const block of [3, 5, 5, 0, 99, 100]) file.prefetch(block);
    expect(reads.map((read) => read.position / BLOCK_BYTES)).toEqual([0, 3, 5, 99]);
    await miss;
    for (const block of [0, 3, 5, 99]) expect(file.block(block, true)).toBeInstanceOf(Uint8Array);
    expect(reads.length).toBe(4);
  });

  it('asks a remote file for the blocks around the one that is wanted, and for a run of them at once', async () => {
    const reads: Read[] = [];
    const file: StorageFile = { ...knownFile(40 * BLOCK_BYTES, reads), isRemote: true };
    const cache = new BlockCache(64 * BLOCK_BYTES);
    const cached = cache.attach(file);
    expect(isRight(await bytesOf(cached, 10 * BLOCK_BYTES + 7, 100), 10 * BLOCK_BYTES + 7)).toBe(true);
    expect(reads).toEqual([{ position: 8 * BLOCK_BYTES, length: 4 * BLOCK_BYTES }]);
    // What is there is not asked for again, before or behind.
    await bytesOf(cached, 13 * BLOCK_BYTES, 1);
    expect(reads[1]).toEqual({ position: 12 * BLOCK_BYTES, length: 3 * BLOCK_BYTES });
    await bytesOf(cached, 0, 1);
    expect(reads[2]).toEqual({ position: 0, length: 2 * BLOCK_BYTES });
    cached.prefetchRun(5, 22);
    expect(reads.slice(3)).toEqual([
      { position: 5 * BLOCK_BYTES, length: 3 * BLOCK_BYTES },
      { position: 15 * BLOCK_BYTES, length: 8 * BLOCK_BYTES },
    ]);
    for (const block of [5, 7, 15, 22])
      expect(isRight(await bytesOf(cached, block * BLOCK_BYTES, 9), block * BLOCK_BYTES)).toBe(true);
    expect(reads).toHaveLength(5);
    // A disk finds out by itself.
    const onDisk: Read[] = [];
    cache.attach(knownFile(40 * BLOCK_BYTES, onDisk)).prefetchRun(5, 22);
    expect(onDisk).toEqual([]);
  });

  it.each([
    ['downwards', -1],
    ['upwards', 1],
  ])('asks a remote file for longer and longer runs where a reader goes on %s', async (_, step) => {
    const reads: Read[] = [];
    const cache = new BlockCache(1_024 * BLOCK_BYTES);
    const blocks = 400;
    const cached = cache.attach({ ...knownFile(blocks * BLOCK_BYTES, reads), isRemote: true });
    for (let i = 0, at = step < 0 ? blocks - 1 : 0; i < blocks; i++, at += step)
      expect(isRight(await bytesOf(cached, at * BLOCK_BYTES + 5, 9), at * BLOCK_BYTES + 5)).toBe(true);
    const lengths = reads.map(({ length }) => length / BLOCK_BYTES);
    // Nothing is asked for twice.
    expect(lengths.reduce((sum, length) => sum + length)).toBe(blocks);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(65);
    expect(reads.length).toBeLessThan(13);
  });

  it('forgets a file that is detached, and what is still under way for it', async () => {
    const reads: Read[] = [];
    const cache = new BlockCache(256 * BLOCK_BYTES);
    const file = cache.attach(knownFile(100 * BLOCK_BYTES, reads));
    await bytesOf(file, 0, 10);
    const underWay = file.block(1);
    expect(underWay).toBeInstanceOf(Promise);
    file.detach();
    await underWay;
    expect(cache.usedBytes).toBe(0);
    const before = reads.length;
    const again = file.block(0);
    expect(again).toBeInstanceOf(Promise);
    expect(reads.length).toBe(before + 1);
    await again;
  });

  it('shows the growing last block of its writer, and reads it from the file once it is full', async () => {
    const cache = new BlockCache(64 * BLOCK_BYTES);
    const file = cache.attach(knownFile(10 * BLOCK_BYTES, []));
    const tail = new Uint8Array(BLOCK_BYTES).fill(1);
    file.setTail(3, tail);
    expect(file.block(3)).toBe(tail);
    const next = new Uint8Array(BLOCK_BYTES);
    file.setTail(4, next);
    expect(file.block(4)).toBe(next);
    await file.block(3);
    expect(file.block(3)).toBeInstanceOf(Uint8Array);
  });
});
