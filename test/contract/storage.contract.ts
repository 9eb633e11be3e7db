import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { Random } from '../support/random.ts';

export interface StorageUnderTest {
  readonly storage: Storage;
  dispose(): Promise<void>;
}

const text = (value: string) => new TextEncoder().encode(value);

/** The bytes as they are now, whatever happens to the file later. */
async function content(storage: Storage, path: string): Promise<Uint8Array> {
  const file = await storage.open(path, 'read');
  const bytes = (await file.read(0, file.size)).slice();
  await file.close();
  return bytes;
}

async function write(storage: Storage, path: string, bytes: Uint8Array): Promise<void> {
  const file = await storage.create(path);
  await file.writeAt(0, bytes);
  await file.sync();
  await file.close();
}

/**
 * What every implementation of Storage must do: one suite for all. With `losesReaders` what is only read may be gone
 * with its name.
 */
export function describeStorage(name: string, make: () => Promise<StorageUnderTest>, losesReaders = false): void {
  describe(`Storage: ${name}`, () => {
    let under: StorageUnderTest;
    let storage: Storage;
    const opened: StorageFile[] = [];
    const create = async (path: string) => {
      const file = await storage.create(path);
      opened.push(file);
      return file;
    };
    const open = async (path: string, access: 'read' | 'write') => {
      const file = await storage.open(path, access);
      opened.push(file);
      return file;
    };

    beforeEach(async () => {
      under = await make();
      storage = under.storage;
    });
    afterEach(async () => {
      for (const file of opened.splice(0)) await file.close();
      await under.dispose();
    });

    namesOfFiles(() => ({ storage, create, open }));
    bytesOfFiles(() => ({ storage, create, open }));
    renameAndRemove(() => ({ storage, create, open }), losesReaders);
    strangers(() => ({ storage, create, open }));
    sealAndLock(() => ({ storage, create, open }));
  });
}

type Tools = () => {
  storage: Storage;
  create(path: string): Promise<StorageFile>;
  open(path: string, access: 'read' | 'write'): Promise<StorageFile>;
};

function namesOfFiles(tools: Tools): void {
  test('list gives the files of one folder, ascending by code unit, and no folders', async () => {
    const { storage } = tools();
    for (const path of ['b', 'a', 'Z', 'é', 'db/x', 'db/deep/y', 'index/map', 'index/scavenge/s'])
      await write(storage, path, text(path));
    expect(await storage.list('')).toEqual(['Z', 'a', 'b', 'é']);
    expect(await storage.list('db')).toEqual(['x']);
    expect(await storage.list('db/deep')).toEqual(['y']);
    expect(await storage.list('index')).toEqual(['map']);
    expect(await storage.list('index/scavenge')).toEqual(['s']);
  });

  test('list of a folder that does not exist is empty', async () => {
    expect(await tools().storage.list('none')).toEqual([]);
    expect(await tools().storage.list('none/below')).toEqual([]);
  });

  test('size is the length in bytes, or null', async () => {
    const { storage } = tools();
    await write(storage, 'a', text('hello'));
    expect(await storage.size('a')).toBe(5);
    expect(await storage.size('b')).toBe(null);
    expect(await storage.size('a/b')).toBe(null);
  });

  test('modifiedMs tells contents apart, and is the same while nothing changes, whatever the file is called', async () => {
    const { storage, create, open } = tools();
    expect([await storage.modifiedMs('node-id.tmp'), await storage.modifiedMs('a/b')]).toEqual([null, null]);
    const file = await create('node-id.tmp');
    await file.writeAt(0, text('hello'));
    await file.sync();
    /** A disk may not tell changes apart that come within some milliseconds. */
    const changed = async (change: () => unknown): Promise<void> => {
      const before = await storage.modifiedMs('node-id.tmp');
      let now = before;
      for (let tries = 0; now === before && tries < 10_000; tries++) {
        await change();
        now = await storage.modifiedMs('node-id.tmp');
      }
      expect(now).not.toBe(before);
    };
    await changed(() => file.writeAt(0, text('jello')));
    await changed(() => file.truncate(file.size === 3 ? 4 : 3));
    await file.seal();
    const last = await storage.modifiedMs('node-id.tmp');
    expect(typeof last).toBe('number');
    await storage.rename('node-id.tmp', 'node-id');
    await (await open('node-id', 'read')).read(0, 3);
    await open('node-id', 'write');
    expect([await storage.modifiedMs('node-id.tmp'), await storage.modifiedMs('node-id')]).toEqual([null, last]);
  });

  test('create gives an empty writable file, with the folders above it', async () => {
    const { storage, create } = tools();
    const file = await create('one/two/three');
    expect(file.path).toBe('one/two/three');
    expect(file.size).toBe(0);
    await file.writeAt(0, text('x'));
    expect(await storage.size('one/two/three')).toBe(1);
  });

  test('create refuses a name that is taken and leaves that file alone', async () => {
    const { storage } = tools();
    await write(storage, 'a', text('kept'));
    await expect(storage.create('a')).rejects.toMatchObject({ code: 'file_exists', data: { path: 'a' } });
    expect(await content(storage, 'a')).toEqual(text('kept'));
  });

  test('open refuses a file that does not exist, for reading and for writing', async () => {
    const { storage } = tools();
    await expect(storage.open('a', 'read')).rejects.toMatchObject({ code: 'file_not_found', data: { path: 'a' } });
    await expect(storage.open('a', 'write')).rejects.toMatchObject({ code: 'file_not_found', data: { path: 'a' } });
    expect(await storage.size('a')).toBe(null);
  });

  test.each(['', '..', '../x', 'a/../../x', './a', 'a//b', '/etc/x', 'a/'])('the path %j is refused', async (path) => {
    const { storage } = tools();
    await expect(storage.create(path)).rejects.toMatchObject({ code: 'io_error' });
    await expect(storage.open(path, 'read')).rejects.toMatchObject({ code: 'io_error' });
    await expect(storage.remove(path)).rejects.toMatchObject({ code: 'io_error' });
  });

  test('freeBytes says that something can be written', async () => {
    await write(tools().storage, 'a', text('x'));
    expect(await tools().storage.freeBytes()).toBeGreaterThan(0);
  });
}

function bytesOfFiles(tools: Tools): void {
  test('bytes read back from any position; fewer at the end of the file, none beyond it', async () => {
    const { create } = tools();
    const file = await create('a');
    await file.writeAt(0, text('0123456789'));
    expect(text('345')).toEqual(new Uint8Array(await file.read(3, 3)));
    expect(new Uint8Array(await file.read(8, 100))).toEqual(text('89'));
    expect((await file.read(10, 5)).length).toBe(0);
    expect((await file.read(1_000_000, 5)).length).toBe(0);
    expect((await file.read(0, 0)).length).toBe(0);
  });

  test('a result is a plain Uint8Array whose slice copies', async () => {
    const file = await tools().create('a');
    await file.writeAt(0, text('abc'));
    const bytes = await file.read(0, 3);
    expect(Object.getPrototypeOf(bytes)).toBe(Uint8Array.prototype);
  });

  test('a write beyond the end leaves zeros in between', async () => {
    const { storage, create } = tools();
    const file = await create('a');
    await file.writeAt(5_000, text('end'));
    expect(file.size).toBe(5_003);
    const bytes = await content(storage, 'a');
    expect(bytes.subarray(0, 5_000).every((byte) => byte === 0)).toBe(true);
    expect(bytes.subarray(5_000)).toEqual(text('end'));
  });

  test('writing nothing changes nothing', async () => {
    const file = await tools().create('a');
    await file.writeAt(100, new Uint8Array(0));
    expect(file.size).toBe(0);
    expect(await tools().storage.size('a')).toBe(0);
  });

  test('large writes and reads go through whole, and the buffer may be used again afterwards', async () => {
    const { storage, create } = tools();
    const file = await create('a');
    const bytes = new Random(1).bytes(3_000_001);
    const buffer = bytes.slice();
    await file.writeAt(7, buffer);
    buffer.fill(0);
    expect(file.size).toBe(3_000_008);
    const back = await content(storage, 'a');
    expect(Buffer.compare(back.subarray(7), bytes)).toBe(0);
    expect(Buffer.compare(await file.read(1_048_000, 1_500_000), bytes.subarray(1_047_993, 2_547_993))).toBe(0);
  });

  test('bytes that are at hand go to their place in the given memory, fewer at the end of the file', async () => {
    const { open, storage } = tools();
    const bytes = new Random(9).bytes(10_000);
    await write(storage, 'a', bytes);
    const file = await open('a', 'read');
    const into = new Uint8Array(8_000).fill(7);
    for (const [position, length] of [
      [0, 4_096],
      [1_234, 1],
      [9_000, 4_096],
      [10_000, 5],
      [20_000, 5],
    ] as const) {
      const count = file.readNow?.(position, length, into, 100) ?? -1;
      const wanted = bytes.subarray(position, position + length);
      if (count >= 0)
        expect(into).toEqual(
          Uint8Array.from([...into.subarray(0, 100).fill(7), ...wanted, ...into.subarray(100 + wanted.length)]),
        );
      expect([wanted.length, -1]).toContain(count);
      into.fill(7);
    }
    await file.close();
    if (file.readNow !== undefined)
      expect(() => file.readNow?.(0, 1, into, 0)).toThrow(expect.objectContaining({ code: 'io_error' }));
  });

  test('random writes and truncations leave what a plain array would hold', async () => {
    const { storage, create } = tools();
    const random = new Random(7);
    const file = await create('a');
    let model = new Uint8Array(0);
    for (let i = 0; i < 150; i++) {
      if (random.chance(0.2)) {
        const size = random.int(0, 300_000);
        await file.truncate(size);
        const next = new Uint8Array(size);
        next.set(model.subarray(0, size));
        model = next;
      } else {
        const at = random.int(0, 300_000);
        const bytes = random.bytes(random.pick([1, 8, 500, 4_096, 70_000]));
        await file.writeAt(at, bytes);
        const next = new Uint8Array(Math.max(model.length, at + bytes.length));
        next.set(model);
        next.set(bytes, at);
        model = next;
      }
      expect(file.size).toBe(model.length);
    }
    expect(Buffer.compare(await content(storage, 'a'), model)).toBe(0);
  });

  test('truncate cuts, and grows with zeros where bytes had been', async () => {
    const { storage, create } = tools();
    const file = await create('a');
    await file.writeAt(0, text('0123456789'));
    await file.truncate(4);
    expect(file.size).toBe(4);
    expect(await content(storage, 'a')).toEqual(text('0123'));
    await file.truncate(8);
    expect(await content(storage, 'a')).toEqual(Uint8Array.of(48, 49, 50, 51, 0, 0, 0, 0));
  });

  test('several handles see one file', async () => {
    const { create, open } = tools();
    const writer = await create('a');
    await writer.writeAt(0, text('one'));
    const reader = await open('a', 'read');
    expect(reader.size).toBe(3);
    await writer.writeAt(3, text('two'));
    expect(new Uint8Array(await reader.read(0, 6))).toEqual(text('onetwo'));
  });

  test('a handle open for reading does not write', async () => {
    const { storage, open } = tools();
    await write(storage, 'a', text('kept'));
    const reader = await open('a', 'read');
    expect(() => reader.writeAt(0, text('x'))).toThrow(expect.objectContaining({ code: 'io_error' }));
    await expect(reader.truncate(0)).rejects.toMatchObject({ code: 'io_error' });
    expect(await content(storage, 'a')).toEqual(text('kept'));
  });

  test('a closed handle refuses everything but to be closed again', async () => {
    const file = await tools().create('a');
    await file.close();
    await file.close();
    await expect((async () => file.read(0, 1))()).rejects.toMatchObject({ code: 'io_error' });
    expect(() => file.writeAt(0, text('x'))).toThrow(expect.objectContaining({ code: 'io_error' }));
    await expect(file.truncate(1)).rejects.toMatchObject({ code: 'io_error' });
    await expect(file.sync()).rejects.toMatchObject({ code: 'io_error' });
    await expect(file.seal()).rejects.toMatchObject({ code: 'io_error' });
  });

  test('a file is closed only after the reads that were under way', async () => {
    const { storage, open } = tools();
    const bytes = new Random(3).bytes(500_000);
    await write(storage, 'a', bytes);
    const file = await open('a', 'read');
    const reads = Array.from({ length: 20 }, (_, i) => file.read(i * 1_000, 400_000));
    await file.close();
    await write(storage, 'b', new Uint8Array(500_000));
    for (const [i, read] of reads.entries())
      expect(Buffer.compare(await read, bytes.subarray(i * 1_000, i * 1_000 + 400_000))).toBe(0);
  });
}

function renameAndRemove(tools: Tools, losesReaders: boolean): void {
  /** Of a file that was opened to be read, and has lost its name. */
  const readsOn = async (file: StorageFile, expected: string) => {
    const found = await Promise.resolve(file.read(0, 100)).then(
      (bytes) => new Uint8Array(bytes),
      (error: { code: string }) => error.code,
    );
    if (!losesReaders || typeof found !== 'string') expect(found).toEqual(text(expected));
    else expect(found).toBe('file_not_found');
  };

  test('rename replaces what had the name, and open handles stay valid', async () => {
    const { storage, create, open } = tools();
    await write(storage, 'proofs/chain', text('old content'));
    const replaced = await open('proofs/chain', 'read');
    const file = await create('proofs/chain.tmp');
    await file.writeAt(0, text('fresh'));
    await storage.rename('proofs/chain.tmp', 'proofs/chain');
    expect(await storage.list('proofs')).toEqual(['chain']);
    expect(await content(storage, 'proofs/chain')).toEqual(text('fresh'));
    await readsOn(replaced, 'old content');
    await file.writeAt(5, text('er'));
    expect(await content(storage, 'proofs/chain')).toEqual(text('fresher'));
  });

  test('rename works within index/', async () => {
    const { storage } = tools();
    await write(storage, 'index/indexmap.copy.tmp', text('x'));
    await storage.rename('index/indexmap.copy.tmp', 'index/indexmap');
    expect(await storage.list('index')).toEqual(['indexmap']);
  });

  test('rename of a file that does not exist, or into another folder, is refused', async () => {
    const { storage } = tools();
    await expect(storage.rename('node-id.tmp', 'node-id')).rejects.toMatchObject({ code: 'file_not_found' });
    await write(storage, 'node-id', text('x'));
    await expect(storage.rename('node-id', 'index/indexmap')).rejects.toMatchObject({ code: 'io_error' });
    expect(await storage.list('')).toEqual(['node-id']);
  });

  test('remove takes the name at once, and open handles read on', async () => {
    const { storage, open } = tools();
    await write(storage, 'proofs/chain', text('still here'));
    const first = await open('proofs/chain', 'read');
    const second = await open('proofs/chain', 'read');
    await storage.remove('proofs/chain');
    expect(await storage.list('proofs')).toEqual([]);
    expect(await storage.size('proofs/chain')).toBe(null);
    await first.close();
    await readsOn(second, 'still here');
    await write(storage, 'proofs/chain', text('another'));
    await readsOn(second, 'still here');
  });

  test('remove of a file that does not exist is no error', async () => {
    await tools().storage.remove('node-id');
    await tools().storage.remove('proofs/chain');
  });
}

function strangers(tools: Tools): void {
  test.each([
    'notes.txt',
    'chunk-000000.000000.bak',
    'writer.chk~',
    'x.tmp',
    'index/indexmap.old',
    'index/readme',
    'elsewhere/writer.chk',
    'proofs/chain.old',
  ])('a file that is not ours by its name, %s, is neither removed nor renamed nor replaced', async (path) => {
    const { storage } = tools();
    await write(storage, path, text("somebody else's"));
    const folder = path.includes('/') ? `${path.split('/')[0]}/` : '';
    const own = folder === 'index/' ? 'index/indexmap' : folder === 'proofs/' ? 'proofs/chain' : 'node-id';
    await write(storage, own, text('ours'));
    for (const refused of [
      () => storage.remove(path),
      () => storage.rename(path, own),
      () => storage.rename(own, path),
      () => storage.discard?.(path) ?? storage.remove(path),
    ]) {
      await expect(refused()).rejects.toMatchObject({ code: 'io_error' });
    }
    expect(await content(storage, path)).toEqual(text("somebody else's"));
    expect(await content(storage, own)).toEqual(text('ours'));
  });
}

function sealAndLock(tools: Tools): void {
  test('a sealed file stays open and readable, and is written only after it was opened for writing again', async () => {
    const { storage, create, open } = tools();
    const file = await create('a');
    await file.writeAt(0, text('done'));
    await file.sync();
    await file.seal();
    expect(new Uint8Array(await file.read(0, 4))).toEqual(text('done'));
    expect(() => file.writeAt(0, text('x'))).toThrow(expect.objectContaining({ code: 'io_error' }));
    const again = await open('a', 'write');
    await again.writeAt(4, text('!'));
    await again.sync();
    expect(await content(storage, 'a')).toEqual(text('done!'));
  });

  test('a sealed file can be renamed, replaced and removed', async () => {
    const { storage, create } = tools();
    for (const path of ['node-id.tmp', 'node-id']) {
      const file = await create(path);
      await file.writeAt(0, text(path));
      await file.seal();
    }
    await storage.rename('node-id.tmp', 'node-id');
    expect(await content(storage, 'node-id')).toEqual(text('node-id.tmp'));
    await storage.remove('node-id');
    expect(await storage.list('')).toEqual([]);
  });

  test('the lock is exclusive until it is released', async () => {
    const { storage } = tools();
    const lock = await storage.lock();
    await expect(storage.lock()).rejects.toMatchObject({ code: 'directory_locked' });
    await lock.release();
    await lock.release();
    const next = await storage.lock();
    await lock.release();
    await expect(storage.lock()).rejects.toMatchObject({ code: 'directory_locked' });
    await next.release();
  });

  test('the lock is not among the files', async () => {
    const { storage } = tools();
    const lock = await storage.lock();
    expect(await storage.list('')).toEqual([]);
    await lock.release();
  });
}
