import { execFile } from 'node:child_process';
import { link, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOCK_OWNER_FILE } from '../../infra/fs/directory-lock.ts';
import { storageError, syncError } from '../../infra/fs/fs-errors.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-fs-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const MODULE = new URL('../../infra/fs/filesystem-storage.ts', import.meta.url).href;
const run = promisify(execFile);

/** Locks the directory in another process, which writes what came of it and then dies without releasing. */
async function lockElsewhere(root: string): Promise<{ stdout: string; stderr: string }> {
  const script = `
    const { FilesystemStorage } = await import(${JSON.stringify(MODULE)});
    try { await new FilesystemStorage({ root: ${JSON.stringify(root)} }).lock(); console.log('locked'); }
    catch (error) { console.log(error.code + ': ' + error.message); }
    process.kill(process.pid, 'SIGKILL');`;
  return run(process.execPath, ['--input-type=module', '-e', script]).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
}

describe('the lock', () => {
  test('keeps another process out, which is told what to do, without warnings', async () => {
    const storage = new FilesystemStorage({ root: folder });
    const lock = await storage.lock();
    const { stdout, stderr } = await lockElsewhere(folder);
    expect(stdout).toMatch(/^directory_locked: /);
    expect(stdout).toContain(folder);
    expect(stdout).toContain(`another process (${process.pid}, since 20`);
    expect(await storage.list('')).toEqual([]);
    expect(stderr).toBe('');
    await lock.release();
  });

  test('is freed when its process dies', async () => {
    expect((await lockElsewhere(folder)).stdout).toBe('locked\n');
    // What it noted of itself stays behind, and is no file of the log. Nobody is told of a process that is gone.
    expect(await readdir(folder)).toContain(LOCK_OWNER_FILE);
    const lock = await new FilesystemStorage({ root: folder }).lock();
    await writeFile(
      join(folder, LOCK_OWNER_FILE),
      JSON.stringify({ pid: 2_147_483_646, host: hostname(), since: new Date(0).toISOString() }),
    );
    expect((await lockElsewhere(folder)).stdout).toContain('in use by another process. Stop');
    for (const text of ['', '{"pid":', '{"pid":"1"}', 'x'.repeat(2_000), '[]', 'null']) {
      await writeFile(join(folder, LOCK_OWNER_FILE), text);
      expect((await lockElsewhere(folder)).stdout).toContain('in use by another process. Stop');
    }
    await writeFile(
      join(folder, LOCK_OWNER_FILE),
      JSON.stringify({ pid: 7, host: 'else\nwhere', since: new Date(0).toISOString() }),
    );
    expect((await lockElsewhere(folder)).stdout).toContain(
      'another process (7 on "else\\nwhere", since 1970-01-01T00:00:00.000Z',
    );
    await lock.release();
    expect(await readdir(folder)).not.toContain(LOCK_OWNER_FILE);
  });

  test.each([
    ['a symbolic', symlink],
    ['a hard', link],
  ])('notes its owner in no file that %s link leads to', async (_kind, linkTo) => {
    await writeFile(join(folder, 'theirs'), 'theirs');
    await mkdir(join(folder, 'data'));
    await linkTo(join(folder, 'theirs'), join(folder, 'data', LOCK_OWNER_FILE));
    const lock = await new FilesystemStorage({ root: join(folder, 'data') }).lock();
    expect(await readFile(join(folder, 'theirs'), 'utf8')).toBe('theirs');
    expect(await readFile(join(folder, 'data', LOCK_OWNER_FILE), 'utf8')).toContain(`"pid":${process.pid}`);
    await lock.release();
  });

  test('is that of an index elsewhere, too, and of the data directory whose index that is', async () => {
    const indexRoot = join(folder, 'theirs', 'index');
    await mkdir(indexRoot, { recursive: true });
    await writeFile(join(folder, 'theirs', 'writer.chk'), '');
    const [one, other, theirs] = [
      new FilesystemStorage({ root: join(folder, 'one'), indexRoot }),
      new FilesystemStorage({ root: join(folder, 'other'), indexRoot }),
      new FilesystemStorage({ root: join(folder, 'theirs') }),
    ];
    const lock = await one.lock();
    expect(await one.list('index')).toEqual([]);
    await expect(other.lock()).rejects.toMatchObject({ code: 'directory_locked', data: { path: indexRoot } });
    await expect(theirs.lock()).rejects.toMatchObject({ code: 'directory_locked' });
    await lock.release();
    const next = await theirs.lock();
    await expect(other.lock()).rejects.toMatchObject({
      code: 'directory_locked',
      data: { path: join(folder, 'theirs') },
    });
    await next.release();
    await (await other.lock()).release();
  });

  test('is held between two storages of one process, and creates the directory', async () => {
    const root = join(folder, 'fresh', 'data');
    const lock = await new FilesystemStorage({ root }).lock();
    await expect(new FilesystemStorage({ root }).lock()).rejects.toMatchObject({
      code: 'directory_locked',
      data: { path: root },
    });
    await lock.release();
  });

  test("its file is nobody else's", async () => {
    const storage = new FilesystemStorage({ root: folder });
    const lock = await storage.lock();
    await expect(storage.open('skua.lock', 'read')).rejects.toMatchObject({ code: 'io_error' });
    await expect(storage.remove('skua.lock')).rejects.toMatchObject({ code: 'io_error' });
    await lock.release();
  });
});

test('a sealed file has no write bits; opening it for writing brings them back', async () => {
  const storage = new FilesystemStorage({ root: folder });
  const file = await storage.create('db/chunk');
  await file.writeAt(0, Uint8Array.of(1));
  await file.seal();
  await file.close();
  const path = join(folder, 'db/chunk');
  expect((await stat(path)).mode & 0o222).toBe(0);
  await (await storage.open('db/chunk', 'read')).close();
  expect((await stat(path)).mode & 0o222).toBe(0);
  const again = await storage.open('db/chunk', 'write');
  expect((await stat(path)).mode & 0o200).toBe(0o200);
  await again.writeAt(0, Uint8Array.of(2));
  await again.close();
});

test('the index may lie elsewhere', async () => {
  const storage = new FilesystemStorage({ root: join(folder, 'data'), indexRoot: join(folder, 'fast') });
  await (await storage.lock()).release();
  await (await storage.create('index/indexmap')).close();
  await (await storage.create('indexes')).close();
  expect((await stat(join(folder, 'fast/indexmap'))).isFile()).toBe(true);
  expect((await stat(join(folder, 'data/indexes'))).isFile()).toBe(true);
  expect(await storage.list('index')).toEqual(['indexmap']);
});

test('a data directory is made by its lock alone', async () => {
  const storage = new FilesystemStorage({ root: join(folder, 'data') });
  await expect(storage.create('a')).rejects.toMatchObject({ code: 'storage_unreachable' });
  expect(await storage.list('')).toEqual([]);
  await (await storage.lock()).release();
  await (await storage.create('a/b')).close();
});

test('names are looked up and changed only while the directory is the one that was opened; what is open stays what it is', async () => {
  const [root, away] = [join(folder, 'data'), join(folder, 'away')];
  const storage = new FilesystemStorage({ root });
  const lock = await storage.lock();
  const open = await storage.create('node-id');
  const refused = async (): Promise<void> => {
    const calls = [
      () => storage.create('block-sums'),
      () => storage.open('node-id', 'read'),
      () => storage.list(''),
      () => storage.size('node-id'),
      () => storage.rename('node-id', 'log-id'),
      () => storage.remove('node-id'),
      () => storage.lock(),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'storage_unreachable' });
  };
  await rename(root, away);
  await refused();
  expect(await readdir(folder)).toEqual(['away']);
  await mkdir(root);
  await writeFile(join(root, 'node-id'), 'of somebody else');
  await refused();
  expect(await readdir(root)).toEqual(['node-id']);
  await open.writeAt(0, new TextEncoder().encode('ours'));
  await open.close();
  await rm(root, { recursive: true });
  await rename(away, root);
  expect(await storage.size('node-id')).toBe(4);
  await (await storage.create('block-sums')).close();
  await lock.release();
});

test('a directory that must exist and does not is refused by name', () => {
  const root = join(folder, 'none');
  expect(() => new FilesystemStorage({ root, mustExist: true })).toThrow(
    expect.objectContaining({ code: 'file_not_found', message: expect.stringContaining(root) }),
  );
});

test('a folder is not a file', async () => {
  const storage = new FilesystemStorage({ root: folder });
  await (await storage.create('db/x')).close();
  expect(await storage.size('db')).toBe(null);
  await expect(storage.open('db', 'read')).rejects.toMatchObject({ code: 'io_error' });
});

test('reads of several handles under way end with their own bytes', async () => {
  await writeFile(
    join(folder, 'a'),
    new Uint8Array(200_000).map((_, i) => i),
  );
  const file = await new FilesystemStorage({ root: folder }).open('a', 'read');
  const reads = await Promise.all(Array.from({ length: 64 }, (_, i) => file.read(i * 3_000, 10)));
  for (const [i, bytes] of reads.entries()) expect(bytes[0]).toBe((i * 3_000) % 256);
  await file.close();
});

test.each([
  ['ENOSPC', 'disk_full'],
  ['EDQUOT', 'disk_full'],
  ['ENOENT', 'file_not_found'],
  ['EEXIST', 'file_exists'],
  ['EIO', 'io_error'],
  ['EACCES', 'io_error'],
  ['EMFILE', 'io_error'],
  ['EWHATEVER', 'io_error'],
])('%s becomes %s', (system, code) => {
  const cause = Object.assign(new Error('it failed'), { code: system });
  expect(storageError(cause, 'db/a')).toMatchObject({ code, data: { path: 'db/a' } });
});

test.each(['EIO', 'ENOSPC', 'EDQUOT'])('a sync that fails with %s is sync_failed', (system) => {
  expect(syncError(Object.assign(new Error('it failed'), { code: system }), 'db/a')).toMatchObject({
    code: 'sync_failed',
    data: { path: 'db/a', systemCode: system },
  });
});

test.skipIf(process.platform === 'win32')('a pipe with the name of a chunk is refused, not waited for', async () => {
  await run('mkfifo', [join(folder, 'chunk-000000.000000')]);
  const storage = new FilesystemStorage({ root: folder });
  await expect(storage.open('chunk-000000.000000', 'read')).rejects.toMatchObject({
    code: 'io_error',
    message: expect.stringContaining('is not a file') as string,
  });
});
