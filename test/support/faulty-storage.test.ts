import { describe, expect, test } from 'vitest';
import { FaultyStorage } from './faulty-storage.ts';
import type { CrashMoment } from './faulty-storage.ts';
import { Random } from './random.ts';

const SEEDS = Array.from({ length: 40 }, (_, i) => i + 1);
const filled = (length: number, value: number) => new Uint8Array(length).fill(value);

async function content(storage: FaultyStorage, path: string): Promise<Uint8Array> {
  const file = await storage.open(path, 'read');
  return await file.read(0, file.size);
}

/** A file of four sectors of ones, synced, then overwritten by twos without a sync. */
async function halfSynced(): Promise<FaultyStorage> {
  const storage = new FaultyStorage();
  const file = await storage.create('node-id');
  await file.writeAt(0, filled(2_048, 1));
  await file.sync();
  await file.writeAt(0, filled(2_048, 2));
  return storage;
}

describe('what a power loss leaves', () => {
  test('partial: whole sectors, each old or new, in different mixtures', async () => {
    const storage = await halfSynced();
    const seen = new Set<string>();
    for (const seed of SEEDS) {
      const bytes = await content(storage.restart('partial', seed), 'node-id');
      let mixture = '';
      for (let sector = 0; sector < 4; sector++) {
        const part = bytes.subarray(sector * 512, sector * 512 + 512);
        expect(part.every((byte) => byte === part[0])).toBe(true);
        mixture += part[0];
      }
      seen.add(mixture);
    }
    expect(seen).toContain('1111');
    expect(seen).toContain('2222');
    expect(
      [...seen].some(
        (mixture) => mixture.includes('1') && mixture.includes('2') && mixture.indexOf('2') < mixture.lastIndexOf('1'),
      ),
    ).toBe(true);
    expect(
      [...seen].some((mixture) => mixture.lastIndexOf('1') < mixture.lastIndexOf('2') && mixture.includes('1')),
    ).toBe(true);
  });

  test('partial: small writes to one sector arrive in their order', async () => {
    const storage = new FaultyStorage();
    const file = await storage.create('node-id');
    await file.truncate(512);
    await file.sync();
    for (let i = 0; i < 8; i++) await file.writeAt(i, Uint8Array.of(9));
    const lengths = new Set<number>();
    for (const seed of SEEDS) {
      const bytes = await content(storage.restart('partial', seed), 'node-id');
      const count = bytes.indexOf(0);
      expect(bytes.subarray(0, count)).toEqual(filled(count, 9));
      expect(bytes.subarray(count).every((byte) => byte === 0)).toBe(true);
      lengths.add(count);
    }
    expect(lengths.size).toBeGreaterThan(3);
  });

  test('partial: an unsynced length may survive or not, apart from the data', async () => {
    const storage = new FaultyStorage();
    const file = await storage.create('node-id');
    await file.writeAt(0, filled(512, 1));
    await file.sync();
    await file.writeAt(512, filled(512, 2));
    await file.truncate(4_096);
    const seen = new Set<string>();
    for (const seed of SEEDS) {
      const after = storage.restart('partial', seed);
      const bytes = await content(after, 'node-id');
      expect(bytes.subarray(0, 512)).toEqual(filled(512, 1));
      expect([512, 1_024, 4_096]).toContain(bytes.length);
      seen.add(`${bytes.length}:${bytes[512]}`);
    }
    for (const outcome of ['512:undefined', '1024:0', '1024:2', '4096:0', '4096:2']) expect(seen).toContain(outcome);
  });

  test('an unsynced cut may be undone', async () => {
    const storage = new FaultyStorage();
    const file = await storage.create('node-id');
    await file.writeAt(0, filled(1_000, 1));
    await file.sync();
    await file.truncate(10);
    expect(await storage.restart('drop').size('node-id')).toBe(1_000);
    const kept = storage.restart('keep');
    expect(await kept.size('node-id')).toBe(10);
    const again = await kept.open('node-id', 'write');
    await again.truncate(5);
    await again.sync();
    expect(await kept.restart('drop').size('node-id')).toBe(5);
  });

  test('names are durable, the unsynced content of a renamed file is not', async () => {
    const storage = new FaultyStorage();
    const old = await storage.create('node-id');
    await old.writeAt(0, filled(10, 1));
    await old.sync();
    const file = await storage.create('node-id.tmp');
    await file.writeAt(0, filled(10, 2));
    await storage.rename('node-id.tmp', 'node-id');
    const after = storage.restart('drop');
    expect(await after.list('')).toEqual(['node-id']);
    expect(await after.size('node-id')).toBe(0);
  });

  test('clean: a next process sees all, its syncs save nothing of it, and what it writes again is safe', async () => {
    const lost = new Set<string>();
    for (const seed of SEEDS) {
      const next = (await halfSynced()).restart('clean', seed);
      expect(await content(next, 'node-id')).toEqual(filled(2_048, 2));
      expect(next.hasUnsynced('node-id')).toBe(false);
      const file = await next.open('node-id', 'write');
      await file.writeAt(512, filled(512, 2));
      await file.sync();
      expect(next.violations).toEqual([]);
      const bytes = await content(next.restart('keep'), 'node-id');
      expect(bytes[512]).toBe(2);
      lost.add(`${bytes[0]}${bytes[1_024]}`);
    }
    expect(lost).toContain('11');
    expect(lost).toContain('22');
  });

  test('clean: a length that was not synced is seen, and lost unless it is set again or written to', async () => {
    const storage = new FaultyStorage();
    const file = await storage.create('node-id');
    await file.writeAt(0, filled(1_000, 1));
    await file.sync();
    await file.truncate(10);
    for (const seed of SEEDS) expect(await storage.restart('clean', seed).size('node-id')).toBe(10);
    const sizes = new Set<number | null>();
    for (const seed of SEEDS) {
      const synced = storage.restart('clean', seed);
      await (await synced.open('node-id', 'write')).sync();
      sizes.add(await synced.restart('keep').size('node-id'));
      const next = storage.restart('clean', seed);
      const again = await next.open('node-id', 'write');
      await again.truncate(10);
      await again.sync();
      expect(await next.restart('drop').size('node-id')).toBe(10);
    }
    expect(sizes).toEqual(new Set([10, 1_000]));
  });

  test('the same seed gives the same disk', async () => {
    const storage = await halfSynced();
    expect(await content(storage.restart('partial', 5), 'node-id')).toEqual(
      await content(storage.restart('partial', 5), 'node-id'),
    );
  });

  test('sync covers what was written before it was called, not what was written while it ran', async () => {
    const storage = new FaultyStorage();
    const file = await storage.create('node-id');
    await file.writeAt(0, filled(10, 1));
    const syncing = file.sync();
    await file.writeAt(0, filled(10, 2));
    await syncing;
    expect(storage.hasUnsynced('node-id')).toBe(true);
    expect(await content(storage.restart('drop'), 'node-id')).toEqual(filled(10, 1));
  });
});

describe('crashes', () => {
  test('the n-th mutating call crashes, and every call after it', async () => {
    const storage = new FaultyStorage();
    storage.crashAt(3);
    const file = await storage.create('node-id');
    await file.writeAt(0, filled(10, 1));
    await expect(file.sync()).rejects.toMatchObject({ code: 'storage_crashed' });
    expect(storage.isCrashed).toBe(true);
    const crash = { code: 'storage_crashed' };
    expect(() => file.writeAt(0, filled(1, 1))).toThrow(expect.objectContaining(crash));
    expect(() => file.read(0, 1)).toThrow(expect.objectContaining(crash));
    for (const call of [
      file.truncate(0),
      file.sync(),
      file.seal(),
      storage.list(''),
      storage.size('node-id'),
      storage.open('node-id', 'read'),
      storage.create('log-id'),
      storage.rename('node-id', 'log-id'),
      storage.remove('node-id'),
      storage.freeBytes(),
      storage.lock(),
    ]) {
      await expect(call).rejects.toMatchObject(crash);
    }
    await file.close();
  });

  test.each<[CrashMoment, number]>([
    ['before', 1],
    ['after', 2],
  ])('a write that crashes %s its effect', async (moment, value) => {
    const storage = new FaultyStorage();
    const file = await storage.create('node-id');
    await file.writeAt(0, filled(2_048, 1));
    await file.sync();
    storage.crashAt(4, moment);
    expect(() => file.writeAt(0, filled(2_048, 2))).toThrow();
    expect(await content(storage.restart('keep'), 'node-id')).toEqual(filled(2_048, value));
  });

  test('a write that crashes in the middle leaves some of its sectors', async () => {
    const mixtures = new Set<number>();
    for (const seed of SEEDS) {
      const storage = new FaultyStorage({ seed });
      const file = await storage.create('node-id');
      await file.truncate(2_048);
      await file.sync();
      storage.crashAt(4, 'middle');
      expect(() => file.writeAt(0, filled(2_048, 2))).toThrow();
      mixtures.add((await content(storage.restart('keep'), 'node-id')).reduce((sum, byte) => sum + byte, 0));
    }
    expect(mixtures.size).toBeGreaterThan(2);
  });

  test('the moment is chosen by the seed: all of them come', async () => {
    const outcomes = new Set<number | null>();
    for (const seed of SEEDS) {
      const storage = new FaultyStorage({ seed });
      storage.crashAt(1);
      await expect(storage.create('node-id')).rejects.toMatchObject({ code: 'storage_crashed' });
      outcomes.add(await storage.restart('keep').size('node-id'));
    }
    expect(outcomes).toEqual(new Set([null, 0]));
  });

  test('the lock goes with the process, and a late release does not harm the next holder', async () => {
    const storage = new FaultyStorage();
    const lock = await storage.lock();
    const after = storage.restart('drop');
    await after.lock();
    await lock.release();
    await expect(after.lock()).rejects.toMatchObject({ code: 'directory_locked' });
  });
});

describe('failures without a crash', () => {
  test('failWhen fails what it names until it is lifted, reads too', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const file = await storage.create('db/node-id');
    storage.failWhen((op, path) => (path === 'db/node-id' && op === 'read' ? 'io_error' : undefined));
    await expect(file.read(0, 1)).rejects.toMatchObject({ code: 'io_error' });
    await file.writeAt(0, filled(1, 7));
    storage.failWhen((op) => (op === 'create' ? 'disk_full' : undefined));
    await expect(storage.create('db/b')).rejects.toMatchObject({ code: 'disk_full' });
    expect(await storage.list('db')).toEqual(['node-id']);
    storage.failWhen(undefined);
    expect(await file.read(0, 1)).toEqual(filled(1, 7));
  });

  test('after a failed sync a second one seems to succeed, saves nothing, and is noted', async () => {
    const outcomes = new Set<string>();
    for (const seed of SEEDS) {
      const storage = new FaultyStorage({ seed });
      const file = await storage.create('node-id');
      await file.truncate(1_024);
      await file.sync();
      await file.writeAt(0, filled(1_024, 1));
      storage.failAt(5, 'sync_failed');
      await expect(file.sync()).rejects.toMatchObject({ code: 'sync_failed' });
      expect(await content(storage, 'node-id')).toEqual(filled(1_024, 1));
      expect(storage.violations).toEqual([]);
      await file.sync();
      expect(storage.violations).toHaveLength(1);
      const bytes = await content(storage.restart('keep'), 'node-id');
      outcomes.add(`${bytes[0]}${bytes[512]}`);
    }
    expect(outcomes).toContain('00');
    expect(outcomes).toContain('11');
  });

  test('beyond the capacity writes fail with disk_full and change nothing; holes are free; space comes back', async () => {
    const storage = new FaultyStorage({ capacityBytes: 8_192 });
    const file = await storage.create('node-id');
    await file.truncate(1_000_000);
    await file.writeAt(0, filled(4_096, 1));
    expect(await storage.freeBytes()).toBe(4_096);
    const other = await storage.create('log-id');
    expect(() => other.writeAt(0, filled(4_097, 2))).toThrow(expect.objectContaining({ code: 'disk_full' }));
    expect(await storage.size('log-id')).toBe(0);
    await other.writeAt(0, filled(4_096, 2));
    expect(await storage.freeBytes()).toBe(0);
    await file.writeAt(0, filled(4_096, 3));
    expect(() => file.writeAt(4_096, filled(1, 3))).toThrow(expect.objectContaining({ code: 'disk_full' }));
    await storage.remove('log-id');
    expect(await storage.freeBytes()).toBe(0);
    await other.close();
    expect(await storage.freeBytes()).toBe(4_096);
    storage.setCapacity(16_384);
    await file.writeAt(8_192, filled(8_192, 4));
    expect(await storage.freeBytes()).toBe(4_096);
  });
});

test('ops names every mutating call that ended, with its failure', async () => {
  const storage = new FaultyStorage();
  const file = await storage.create('node-id.tmp');
  await file.writeAt(3, filled(5, 1));
  await file.sync();
  await storage.rename('node-id.tmp', 'node-id');
  await expect(storage.rename('block-sums', 'log-id')).rejects.toThrow();
  await file.truncate(2);
  await file.seal();
  await storage.remove('node-id');
  expect(storage.ops).toEqual([
    { op: 'create', path: 'node-id.tmp', position: 0, length: 0 },
    { op: 'writeAt', path: 'node-id.tmp', position: 3, length: 5 },
    { op: 'sync', path: 'node-id.tmp', position: 0, length: 0 },
    { op: 'rename', path: 'node-id.tmp', position: 0, length: 0 },
    { op: 'rename', path: 'block-sums', position: 0, length: 0, error: 'file_not_found' },
    { op: 'truncate', path: 'node-id.tmp', position: 0, length: 2 },
    { op: 'seal', path: 'node-id.tmp', position: 0, length: 0 },
    { op: 'remove', path: 'node-id', position: 0, length: 0 },
  ]);
  expect(storage.operations).toBe(8);
});

test('corrupt damages one byte, durably', async () => {
  const storage = new FaultyStorage();
  const file = await storage.create('node-id');
  await file.writeAt(0, filled(10, 1));
  await file.sync();
  storage.corrupt('node-id', 4, 0x80);
  expect((await content(storage, 'node-id'))[4]).toBe(0x81);
  expect((await content(storage.restart('drop'), 'node-id'))[4]).toBe(0x81);
});

test('large writes take their bytes only when their promise ends', async () => {
  const storage = new FaultyStorage();
  const file = await storage.create('node-id');
  const bytes = filled(100_000, 1);
  const writing = file.writeAt(0, bytes);
  bytes.fill(2);
  await writing;
  expect((await content(storage, 'node-id'))[0]).toBe(2);
});

test('async reads answer with a promise, sync reads with bytes', async () => {
  const sync = await new FaultyStorage().create('node-id');
  const later = await new FaultyStorage({ reads: 'async' }).create('node-id');
  expect(sync.read(0, 1)).toBeInstanceOf(Uint8Array);
  expect(later.read(0, 1)).toBeInstanceOf(Promise);
});

test('random numbers are evenly spread, within their bounds and repeatable', () => {
  const random = new Random(42);
  const again = new Random(42);
  const counts = [0, 0, 0, 0, 0];
  for (let i = 0; i < 5_000; i++) {
    const value = random.int(0, 4);
    expect(again.int(0, 4)).toBe(value);
    counts[value]!++;
  }
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  expect(new Random(1).bytes(4)).not.toEqual(new Random(2).bytes(4));
  expect(new Random(3).shuffle([1, 2, 3, 4, 5]).sort()).toEqual([1, 2, 3, 4, 5]);
});
