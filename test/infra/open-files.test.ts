import { mkdtemp, readdir, readlink, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StorageFile } from '../../core/ports/storage.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { OpenFiles, type ReadOnlyFile } from '../../infra/fs/open-files.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-open-files-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Descriptors of this process that lead into the folder. */
async function descriptors(): Promise<string[]> {
  const targets = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return targets.filter((target) => target.startsWith(folder));
}

/** Ten files, each of one byte, its number. */
async function ten(openFiles: OpenFiles): Promise<{ storage: FilesystemStorage; files: StorageFile[] }> {
  const storage = new FilesystemStorage({ root: folder, openFiles });
  const files: StorageFile[] = [];
  for (let i = 0; i < 10; i++) {
    await writeFile(join(folder, `file-${i}`), Uint8Array.of(i));
    files.push(await storage.open(`file-${i}`, 'read'));
  }
  return { storage, files };
}

const byteOf = async (file: StorageFile) => (await file.read(0, 1))[0];

describe.skipIf(process.platform !== 'linux')('files that are only read', () => {
  test('hold no more descriptors than there may be, and are all read, one by one and at once', async () => {
    const openFiles = new OpenFiles(3);
    const { files } = await ten(openFiles);
    expect(await descriptors()).toHaveLength(3);
    for (const round of [files, [...files].reverse()])
      for (const file of round) expect(await byteOf(file)).toBe(files.indexOf(file));
    expect(await descriptors()).toHaveLength(3);
    // Those in use stay open.
    expect(await Promise.all(files.map(byteOf))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const into = new Uint8Array(1);
    for (const [i, file] of files.entries()) expect([file.readNow!(0, 1, into, 0), into[0]]).toEqual([1, i]);
    expect(await descriptors()).toHaveLength(3);
    for (const file of files) await file.close();
    expect([await descriptors(), openFiles.count]).toEqual([[], 0]);
  });

  test('are parked once they are sealed, and never while they are written', async () => {
    const openFiles = new OpenFiles(1);
    const { storage, files } = await ten(openFiles);
    const written = await storage.create('new');
    await written.writeAt(0, Uint8Array.of(42));
    for (const file of files) await byteOf(file);
    await written.writeAt(1, Uint8Array.of(43));
    await written.sync();
    expect((await descriptors()).includes(join(folder, 'new'))).toBe(true);
    await written.seal();
    await byteOf(files[0]!);
    expect(await descriptors()).toEqual([join(folder, 'file-0')]);
    expect(await written.read(0, 2)).toEqual(Uint8Array.of(42, 43));
    await written.sync();
    await written.seal();
    expect([await descriptors(), openFiles.count]).toEqual([[join(folder, 'new')], 1]);
    await written.close();
  });

  test('may grow while they are parked', async () => {
    const { storage, files } = await ten(new OpenFiles(1));
    const written = await storage.create('grows');
    await written.writeAt(0, Uint8Array.of(1));
    const read = await storage.open('grows', 'read');
    for (const file of files) await byteOf(file);
    await written.writeAt(1, Uint8Array.of(2, 3));
    expect(await descriptors()).not.toContain(join(folder, 'file-0'));
    expect(await read.read(0, 3)).toEqual(Uint8Array.of(1, 2, 3));
    await written.truncate(1);
    for (const file of files) await byteOf(file);
    expect(await read.read(0, 1)).toEqual(Uint8Array.of(1));
    await Promise.all([written.close(), read.close()]);
  });

  test('are gone where their name is, or leads to another file, and come back with it', async () => {
    const { files } = await ten(new OpenFiles(1));
    await rename(join(folder, 'file-0'), join(folder, 'away'));
    await expect(byteOf(files[0]!)).rejects.toMatchObject({ code: 'file_not_found', data: { path: 'file-0' } });
    await writeFile(join(folder, 'file-0'), Uint8Array.of(99));
    await expect(byteOf(files[0]!)).rejects.toMatchObject({ code: 'file_not_found' });
    expect(() => files[0]!.readNow!(0, 1, new Uint8Array(1), 0)).toThrow('does not exist');
    expect(await descriptors()).toHaveLength(1);
    await unlink(join(folder, 'file-0'));
    await rename(join(folder, 'away'), join(folder, 'file-0'));
    expect(await byteOf(files[0]!)).toBe(0);
    await Promise.all(files.map((file) => file.close()));
    await expect(byteOf(files[0]!)).rejects.toMatchObject({ code: 'io_error' });
    expect(await descriptors()).toEqual([]);
  });
});

describe('the hand', () => {
  const file = (name: string, parked: string[]): ReadOnlyFile & { isIdle: boolean } => ({
    isIdle: true,
    wasUsed: false,
    park: () => parked.push(name),
  });

  test('passes over what was used since it came by, and over what is in use', () => {
    const parked: string[] = [];
    const open = new OpenFiles(3);
    const [a, b, c] = ['a', 'b', 'c'].map((name) => file(name, parked)) as [
      ReturnType<typeof file>,
      ReturnType<typeof file>,
      ReturnType<typeof file>,
    ];
    for (const each of [a, b, c]) open.add(each);
    a.wasUsed = true;
    b.isIdle = false;
    open.add(file('d', parked));
    expect([parked, a.wasUsed, open.count]).toEqual([['c'], false, 3]);
    open.add(file('e', parked));
    expect(parked).toEqual(['c', 'a']);
  });

  test('lets more be open where all are in use', () => {
    const parked: string[] = [];
    const open = new OpenFiles(2);
    for (const name of ['a', 'b', 'c']) open.add({ ...file(name, parked), isIdle: false });
    expect([parked, open.count]).toEqual([[], 3]);
  });

  test('makes room where the system has none, and says so where that is not enough', () => {
    const parked: string[] = [];
    const open = new OpenFiles(10);
    for (const name of ['a', 'b', 'c', 'd']) open.add(file(name, parked));
    const full = () => Object.assign(new Error('too many'), { code: 'EMFILE' });
    let tries = 0;
    expect(
      open.open(() => {
        if (tries++ === 0) throw full();
        return 7;
      }),
    ).toBe(7);
    expect(parked).toEqual(['a', 'b']);
    expect(() =>
      open.open(() => {
        throw full();
      }),
    ).toThrow('too many');
    expect(() =>
      new OpenFiles().open(() => {
        throw full();
      }),
    ).toThrow('too many');
  });
});
