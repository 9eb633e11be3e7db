import { describe, expect, test } from 'vitest';
import { BaseFile, READ_AHEAD_BYTES_MAX } from '../../core/shared-log/tick/storage-base.ts';
import { ObjectStorage } from '../../core/shared-log/tick/tick-storage.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { GetOptions } from '../../core/ports/object-store.ts';
import { Random } from '../support/random.ts';

const MIB = 1_048_576;

/** Counts what is asked for. */
class Watched extends MemoryObjects {
  readonly gets: { key: string; from: number; length: number }[] = [];
  override get(key: string, options: GetOptions = {}): Promise<Uint8Array | null> {
    this.gets.push({ key, from: options.from ?? 0, length: options.length ?? -1 });
    return super.get(key, options);
  }
}

async function world() {
  const objects = new Watched();
  const bytes = new Random(5).bytes(10 * MIB);
  await objects.put('files/a', bytes);
  await objects.put('files/b', Uint8Array.of(1, 2, 3));
  const base = new Map([
    ['chunk-000000.000000', BaseFile.ofObject(objects, 'files/a', bytes.length)],
    ['index/.forceverify', BaseFile.ofObject(objects, 'files/b', 3)],
    ['index/indexmap', BaseFile.ofBytes(objects, Uint8Array.of(9, 8))],
  ]);
  return { objects, bytes, storage: new ObjectStorage(base, new MemoryStorage()) };
}

async function content(storage: ObjectStorage, path: string): Promise<number[]> {
  const file = await storage.open(path, 'read');
  const bytes = [...(await file.read(0, file.size))];
  await file.close();
  return bytes;
}

describe('files of a manifest', () => {
  test('are listed, sized and read; listing and inline files cost no request', async () => {
    const { objects, storage } = await world();
    expect(await storage.list('')).toEqual(['chunk-000000.000000']);
    expect(await storage.list('index')).toEqual(['.forceverify', 'indexmap']);
    expect(await storage.size('index/.forceverify')).toBe(3);
    expect(await content(storage, 'index/indexmap')).toEqual([9, 8]);
    expect(objects.gets).toEqual([]);
    expect(await content(storage, 'index/.forceverify')).toEqual([1, 2, 3]);
    expect(objects.gets).toEqual([{ key: 'files/b', from: 0, length: 3 }]);
    expect(storage.changes()).toEqual({ added: [], removed: [] });
  });

  test('a scan asks for at least a mebibyte at a time, at most once for each byte, and never for more ahead than allowed', async () => {
    const { objects, bytes, storage } = await world();
    const file = await storage.open('chunk-000000.000000', 'read');
    for (let at = 0; at < bytes.length; at += MIB)
      expect(Buffer.compare(await file.read(at, MIB), bytes.subarray(at, at + MIB))).toBe(0);
    expect(objects.gets.length).toBeLessThanOrEqual(5);
    expect(objects.gets.reduce((sum, { length }) => sum + length, 0)).toBe(bytes.length);
    for (const { length } of objects.gets) {
      expect(length).toBeGreaterThanOrEqual(MIB);
      expect(length).toBeLessThanOrEqual(READ_AHEAD_BYTES_MAX);
    }
  });

  test('reads that overlap in time share what is on its way; single reads bring what was asked for', async () => {
    const { objects, bytes, storage } = await world();
    const file = await storage.open('chunk-000000.000000', 'read');
    await file.read(0, MIB);
    const both = await Promise.all([file.read(MIB, MIB), file.read(2 * MIB, MIB)]);
    expect(Buffer.compare(both[1], bytes.subarray(2 * MIB, 3 * MIB))).toBe(0);
    expect(objects.gets).toHaveLength(2);
    const other = await storage.open('chunk-000000.000000', 'read');
    for (const at of [5_000_000, 70_000, 9_000_000])
      expect(Buffer.compare(await other.read(at, 65_536), bytes.subarray(at, at + 65_536))).toBe(0);
    expect(objects.gets.slice(2).map(({ length }) => length)).toEqual([65_536, 65_536, 65_536]);
  });

  test('headers and footers are asked for once, whoever opens the file', async () => {
    const { objects, storage } = await world();
    for (let i = 0; i < 3; i++) {
      const file = await storage.open('chunk-000000.000000', 'read');
      await file.read(0, 128);
      await file.read(file.size - 128, 128);
      await file.close();
    }
    expect(objects.gets).toHaveLength(2);
  });

  test('a file of several objects and memory reads as one', async () => {
    const { objects, bytes } = await world();
    const file = new BaseFile(objects, [
      { from: 0, length: 4, source: Uint8Array.of(1, 2, 3, 4) },
      { from: 4, length: 10, source: { key: 'files/a', offset: 0 } },
      { from: 14, length: 3, source: { key: 'files/b', offset: 0 } },
    ]);
    const storage = new ObjectStorage(new Map([['x', file]]), new MemoryStorage());
    expect(await content(storage, 'x')).toEqual([1, 2, 3, 4, ...bytes.subarray(0, 10), 1, 2, 3]);
    const handle = await storage.open('x', 'read');
    expect([...(await handle.read(3, 3))]).toEqual([4, bytes[0], bytes[1]]);
  });

  test('an object that is gone or cut short is an error that names it, never fewer bytes', async () => {
    const { objects, storage } = await world();
    const file = await storage.open('chunk-000000.000000', 'read');
    await objects.put('files/a', new Uint8Array(100));
    await expect((async () => file.read(50, 1_000))()).rejects.toMatchObject({
      code: 'io_error',
      data: { key: 'files/a' },
    });
    await objects.remove(['files/a']);
    await expect((async () => file.read(0, 10))()).rejects.toMatchObject({
      code: 'io_error',
      data: { path: 'chunk-000000.000000', key: 'files/a' },
    });
  });
});

describe('changes', () => {
  test('removing, replacing, renaming and writing are told, and touch no object', async () => {
    const { objects, storage } = await world();
    const before = [...(await objects.list('')).objects];
    const held = await storage.open('index/.forceverify', 'read');
    await storage.remove('index/.forceverify');
    expect(await storage.size('index/.forceverify')).toBe(null);
    expect([...(await held.read(0, 3))]).toEqual([1, 2, 3]);
    const temporary = await storage.create('index/indexmap.copy.tmp');
    await temporary.writeAt(0, Uint8Array.of(4));
    await temporary.close();
    await storage.rename('index/indexmap.copy.tmp', 'index/indexmap');
    expect(await content(storage, 'index/indexmap')).toEqual([4]);
    await storage.rename('chunk-000000.000000', 'chunk-000000.000001');
    expect(storage.changes()).toEqual({
      added: ['chunk-000000.000001', 'index/indexmap'],
      removed: ['chunk-000000.000000', 'index/.forceverify', 'index/indexmap'],
    });
    expect(storage.base('chunk-000000.000001')?.key).toBe('files/a');
    expect(storage.base('index/indexmap')).toBe(undefined);
    expect(await storage.ownBytes()).toBe(1);
    expect([...(await objects.list('')).objects]).toEqual(before);
  });

  test('a file that is opened for writing is copied, whole', async () => {
    const { storage } = await world();
    const file = await storage.open('index/.forceverify', 'write');
    await file.writeAt(1, Uint8Array.of(7));
    await file.close();
    expect(await content(storage, 'index/.forceverify')).toEqual([1, 7, 3]);
    expect(storage.changes()).toEqual({ added: ['index/.forceverify'], removed: ['index/.forceverify'] });
  });

  test('a name of the manifest is taken, and free again when the file is gone', async () => {
    const { storage } = await world();
    await expect(storage.create('index/.forceverify')).rejects.toMatchObject({ code: 'file_exists' });
    await storage.remove('index/.forceverify');
    await (await storage.create('index/.forceverify')).close();
    expect(await storage.list('index')).toEqual(['.forceverify', 'indexmap']);
  });
});
