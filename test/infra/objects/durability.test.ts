import type * as Callbacks from 'node:fs';
import type * as Promises from 'node:fs/promises';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';

/** What was done to the disk, in order, by path; and what is made to fail. */
const disk = vi.hoisted(() => ({
  steps: [] as string[],
  made: 0,
  fail: (_step: string): string | undefined => undefined,
  name: (path: string) => path,
}));
const step = vi.hoisted(() => (text: string) => {
  disk.steps.push(text);
  const code = disk.fail(text);
  if (code !== undefined) throw Object.assign(new Error(`${code} by the test`), { code });
});

vi.mock('node:fs', async (original) => {
  const real = await original<typeof Callbacks>();
  const paths = new Map<number, string>();
  return {
    ...real,
    openSync: (path: string, flags: string) => {
      const fd = real.openSync(path, flags);
      paths.set(fd, path);
      return fd;
    },
    fsync: (fd: number, done: (error: Error | null) => void) => {
      try {
        step(`sync ${disk.name(paths.get(fd)!)}`);
      } catch (error) {
        done(error as Error);
        return;
      }
      real.fsync(fd, done);
    },
  };
});
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof Promises>();
  return {
    ...real,
    rename: async (from: string, to: string) => {
      await real.rename(from, to);
      step(`rename ${disk.name(to)}`);
    },
    link: async (from: string, to: string) => {
      step(`link ${disk.name(to)}`);
      await real.link(from, to);
    },
    unlink: async (path: string) => {
      await real.unlink(path);
      step(`unlink ${disk.name(path)}`);
    },
    open: async (path: string, ...rest: [string?, number?]) => {
      const handle = await real.open(path, ...rest);
      if (rest[0] === 'wx') disk.made++;
      const sync = handle.sync.bind(handle);
      handle.sync = async () => {
        step(`sync ${disk.name(path)}`);
        await sync();
      };
      return handle;
    },
  };
});

let folder: string;
let objects: DirectoryObjects;
const text = (value: string) => new TextEncoder().encode(value);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-durable-'));
  disk.name = (path) => relative(folder, path).replace(/\.tmp\/.+/, 'temporary') || '(above)';
  disk.fail = () => undefined;
  objects = new DirectoryObjects({ root: join(folder, 'root') });
  await objects.begin();
  await objects.put('warm/up', text('x'));
  disk.steps.length = 0;
});
afterEach(async () => {
  disk.fail = () => undefined;
  await objects.close();
  await rm(folder, { recursive: true, force: true });
});

test('an object is synced before it gets its key, and its folder before the call ends', async () => {
  await objects.put('warm/k', text('x'));
  expect(disk.steps).toEqual(['sync root/temporary', 'rename root/warm/k', 'sync root/warm']);
  disk.steps.length = 0;
  await objects.upload(
    'warm/u',
    2,
    (async function* () {
      yield text('xy');
    })(),
  );
  expect(disk.steps).toEqual(['sync root/temporary', 'rename root/warm/u', 'sync root/warm']);
  disk.steps.length = 0;
  await objects.create('warm/c', text('x'));
  await objects.close();
  expect(disk.steps).toEqual(['sync root/temporary', 'link root/warm/c', 'sync root/warm', 'unlink root/temporary']);
});

test('new folders are durable down from the root, once', async () => {
  await objects.put('new/er/k', text('x'));
  expect(disk.steps).toEqual([
    'sync root/temporary',
    'sync root',
    'sync root/new',
    'rename root/new/er/k',
    'sync root/new/er',
  ]);
  disk.steps.length = 0;
  await objects.put('new/er/l', text('x'));
  expect(disk.steps).toEqual(['sync root/temporary', 'rename root/new/er/l', 'sync root/new/er']);
});

test('a directory that was begun is durable in the folder above it', async () => {
  await new DirectoryObjects({ root: join(folder, 'other', 'root') }).begin();
  expect(disk.steps).toContain('sync other');
  expect(disk.steps).toContain('sync (above)');
});

test('folders that another process made are synced too: it may not have come to that', async () => {
  await new DirectoryObjects({ root: join(folder, 'root') }).put('warm/k', text('x'));
  expect(disk.steps.filter((step) => step === 'sync root').length).toBeGreaterThan(0);
});

test('whoever hears that a key is taken hears it of a durable one', async () => {
  expect(await objects.create('warm/up', text('y'))).toBe('exists');
  expect(disk.steps).toEqual(['sync root/temporary', 'link root/warm/up', 'sync root/warm']);
  // Who was late looks before it writes.
  await objects.close();
  disk.steps.length = 0;
  expect(await objects.create('warm/up', text('y'))).toBe('exists');
  expect(disk.steps).toEqual(['sync root/warm']);
});

test('creates that follow one another find their file made, if it has not lain for long, and none stays', async () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
  for (const [key, made] of [
    ['a', 1],
    ['b', 2],
    ['c', 3],
    ['d', 4],
  ] as const) {
    disk.made = key === 'a' ? 0 : disk.made;
    await objects.create(`warm/${key}`, text('x'));
    // The file of the third was made behind the second, and that of the fourth behind the third.
    expect(disk.made).toBe(made);
  }
  clock.mockReturnValue(60_000);
  await objects.create('warm/e', text('x'));
  expect(disk.made).toBe(6);
  await objects.close();
  clock.mockRestore();
  expect(await readdir(join(folder, 'root', '.tmp'))).toEqual([]);
  expect((await objects.list('warm/')).objects.map(({ key }) => key)).toEqual([
    'warm/a',
    'warm/b',
    'warm/c',
    'warm/d',
    'warm/e',
    'warm/up',
  ]);
});

test('a removal is durable', async () => {
  await objects.remove(['warm/up', 'warm/not-there']);
  expect(disk.steps).toEqual(['unlink root/warm/up', 'sync root/warm']);
});

test("an object that can't be synced gets no key", async () => {
  for (const [system, code] of [
    ['ENOSPC', 'disk_full'],
    ['EIO', 'io_error'],
  ] as const) {
    disk.fail = (step) => (step === 'sync root/temporary' ? system : undefined);
    await expect(objects.put('warm/k', text('x'))).rejects.toMatchObject({ code });
    await expect(objects.create('warm/k', text('x'))).rejects.toMatchObject({ code });
    await expect(
      objects.upload(
        'warm/k',
        1,
        (async function* () {
          yield text('x');
        })(),
      ),
    ).rejects.toMatchObject({ code });
    disk.fail = () => undefined;
    expect(await objects.head('warm/k')).toBeNull();
  }
});

test("a creation whose name can't be made durable, or may have been, is undecided", async () => {
  disk.fail = (step) => (step === 'sync root/warm' ? 'EIO' : undefined);
  await expect(objects.create('warm/k', text('x'))).rejects.toMatchObject({ code: 'outcome_unknown' });
  disk.fail = (step) => (step.startsWith('link') ? 'EIO' : undefined);
  await expect(objects.create('warm/l', text('x'))).rejects.toMatchObject({ code: 'outcome_unknown' });
  disk.fail = (step) => (step.startsWith('link') ? 'ENOSPC' : undefined);
  await expect(objects.create('warm/l', text('x'))).rejects.toMatchObject({ code: 'disk_full' });
  disk.fail = (step) => (step.startsWith('link') ? 'EPERM' : undefined);
  await expect(objects.create('warm/l', text('x'))).rejects.toMatchObject({
    code: 'storage_denied',
    message: expect.stringContaining('hard links'),
  });
});

test('syncs of one folder that come together are shared', async () => {
  await Promise.all(Array.from({ length: 20 }, (_, n) => objects.put(`warm/${n}`, text('x'))));
  const syncs = disk.steps.filter((step) => step === 'sync root/warm').length;
  expect(syncs).toBeLessThan(20);
  // The last sync begins behind the last name.
  expect(disk.steps.lastIndexOf('sync root/warm')).toBeGreaterThan(
    disk.steps.findLastIndex((step) => step.startsWith('rename')),
  );
});
