import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isSkuaError } from '../../../core/base/errors.ts';
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';
import { directoryError } from '../../../infra/objects/file-content.ts';

let folder: string;
let root: string;
let objects: DirectoryObjects;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-directory-'));
  root = join(folder, 'far', 'below');
  objects = new DirectoryObjects({ root });
  await objects.begin();
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const text = (value: string) => new TextEncoder().encode(value);
const temporaries = () => readdir(join(root, '.tmp'));

test('an absent directory is empty, and is made by whoever begins something in it alone', async () => {
  root = join(folder, 'as', 'far');
  objects = new DirectoryObjects({ root });
  expect(await objects.get('k')).toBeNull();
  expect(await objects.list('')).toEqual({ objects: [], isMore: false });
  await objects.remove(['k']);
  await expect(objects.put('a/k', text('x'))).rejects.toMatchObject({
    code: 'storage_unreachable',
    data: { reason: 'missing' },
  });
  await expect(objects.create('a/k', text('x'))).rejects.toMatchObject({
    code: 'storage_unreachable',
    data: { reason: 'missing' },
  });
  expect(await readdir(folder)).toEqual(['far']);
  await objects.begin();
  await objects.put('a/k', text('x'));
  expect(await readFile(join(root, 'a', 'k'), 'utf8')).toBe('x');
});

test('nothing begins in the data directory of a node', async () => {
  const node = join(folder, 'node');
  await mkdir(node);
  await writeFile(join(node, 'writer.chk'), new Uint8Array(8));
  await expect(new DirectoryObjects({ root: node }).begin()).rejects.toMatchObject({
    code: 'directory_not_empty',
    message: `${node} is the data directory of a node (it holds writer.chk). Name another directory. Nothing was changed.`,
  });
  expect(await readdir(node)).toEqual(['writer.chk']);
});

test('nothing temporary stays behind a write, whether it succeeded or not', async () => {
  await objects.put('a', text('1'));
  await objects.create('b', text('2'));
  await objects.create('b', text('3'));
  await objects.upload(
    'c',
    3,
    (async function* () {
      yield text('123');
    })(),
  );
  await objects
    .upload(
      'd',
      3,
      (async function* () {
        yield text('12');
      })(),
    )
    .catch(() => {});
  // A file that got its key by a link loses its other name behind the call.
  await objects.close();
  expect(await temporaries()).toEqual([]);
});

test('a large object is created whole', async () => {
  const bytes = Uint8Array.from({ length: 3_000_000 }, (_, i) => i % 251);
  expect(await objects.create('k', bytes)).toBe('created');
  expect(Buffer.compare((await objects.get('k'))!, bytes)).toBe(0);
});

test('the key has its old content until the new one is complete', async () => {
  await objects.put('k', text('old'));
  let seen: Uint8Array | null = null;
  await objects.upload(
    'k',
    2_097_152,
    (async function* () {
      yield new Uint8Array(1_500_000);
      seen = await objects.get('k');
      yield new Uint8Array(2_097_152 - 1_500_000);
    })(),
  );
  expect(seen).toEqual(text('old'));
  expect((await objects.head('k'))!.sizeBytes).toBe(2_097_152);
});

test('leftovers of a crash go after a day, and neither those that may still be written nor what has no name of ours', async () => {
  await mkdir(join(root, '.tmp'), { recursive: true });
  const now = Date.UTC(2024, 5, 1);
  const hour = 3_600_000;
  const [old, young, ofAClockAhead] = [0, 1, 2].map((digit) => `${digit}0000000-0000-4000-8000-000000000000`) as [
    string,
    string,
    string,
  ];
  const strangers = ['notes', `${old}.bak`, `x${young}`, '.DS_Store'];
  for (const [name, ageMs] of [
    [old, 25 * hour],
    [young, 23 * hour],
    [ofAClockAhead, -25 * hour],
    ...strangers.map((name) => [name, 99 * hour] as const),
  ] as const) {
    await writeFile(join(root, '.tmp', name), name);
    await utimes(join(root, '.tmp', name), new Date(now - ageMs), new Date(now - ageMs));
  }
  const later = new DirectoryObjects({ root, nowMs: () => now });
  expect((await later.list('')).objects).toEqual([]);
  expect(await later.get('k')).toBeNull();
  expect((await temporaries()).sort(), 'what only looks removes nothing').toEqual(
    [old, young, ofAClockAhead, ...strangers].sort(),
  );
  await later.put('k', text('x'));
  await later.close();
  expect((await temporaries()).sort()).toEqual([young, ofAClockAhead, ...strangers].sort());
});

test('what is no object is not listed and not read', async () => {
  await objects.put('a/k', text('x'));
  await writeFile(join(root, 'with space'), '');
  await writeFile(join(root, 'a', 'k~'), '');
  await symlink('k', join(root, 'a', 'link'));
  await mkdir(join(root, 'empty', 'folder'), { recursive: true });
  expect((await objects.list('')).objects.map(({ key }) => key)).toEqual(['a/k']);
  expect(await objects.get('a')).toBeNull();
  expect(await objects.head('a')).toBeNull();
  await objects.remove(['a', 'a/k']);
  expect((await objects.list('')).objects).toEqual([]);
});

test('a folder that somebody removed is made again', async () => {
  await objects.put('a/1', text('x'));
  await rm(join(root, 'a'), { recursive: true });
  await rm(join(root, '.tmp'), { recursive: true });
  await objects.put('a/2', text('y'));
  await rm(join(root, 'a'), { recursive: true });
  expect(await objects.create('a/b/3', text('z'))).toBe('created');
  expect(await objects.get('a/b/3')).toEqual(text('z'));
});

test('removals that come between the reading of names and of sizes leave no gap in a listing', async () => {
  for (let n = 0; n < 30; n++) await objects.put(`k${String(n).padStart(2, '0')}`, text('x'));
  const removing = Promise.all([1, 3, 4, 5, 29].map((n) => objects.remove([`k${String(n).padStart(2, '0')}`])));
  const found: string[] = [];
  for (let after = ''; ;) {
    const page = await objects.list('', { after, max: 2 });
    found.push(...page.objects.map(({ key }) => key));
    if (!page.isMore) break;
    after = found.at(-1)!;
  }
  await removing;
  expect(found).toEqual(expect.arrayContaining(['k00', 'k02', 'k06', 'k10', 'k28']));
  expect(found).toEqual(found.toSorted());
});

test('of many processes exactly one creates each object', async () => {
  const script = fileURLToPath(new URL('create-for-tests.ts', import.meta.url));
  const children: ChildProcess[] = [];
  try {
    for (let n = 0; n < 4; n++)
      children.push(fork(script, [root, String(n), '40'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }));
    await Promise.all(children.map((child) => once(child, 'message')));
    const results = children.map((child) => once(child, 'message'));
    for (const child of children) child.send('go');
    const won = (await Promise.all(results)).map(([keys]) => keys as string[]);
    const all = won.flat().sort();
    expect(all).toHaveLength(40);
    expect(new Set(all).size).toBe(40);
    for (const [n, keys] of won.entries())
      for (const key of keys) expect(await objects.get(key)).toEqual(text(`writer ${n}`));
    expect(await temporaries()).toEqual([]);
  } finally {
    for (const child of children) child.kill();
  }
});

test('a process killed in the middle of an upload leaves the old object', async () => {
  await objects.put('k', text('old'));
  const script = fileURLToPath(new URL('create-for-tests.ts', import.meta.url));
  const child = fork(script, [root, 'upload', 'k'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  await once(child, 'message');
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  expect(await objects.get('k')).toEqual(text('old'));
  expect((await objects.list('')).objects).toHaveLength(1);
  const [leftover] = await temporaries();
  expect((await stat(join(root, '.tmp', leftover!))).size).toBeGreaterThan(0);
});

test('errors of the system are told by what to do', () => {
  const failing = (code: string) => directoryError(Object.assign(new Error(code), { code }), 'k', '/backups');
  for (const [system, code] of [
    ['ENOSPC', 'disk_full'],
    ['EDQUOT', 'disk_full'],
    ['EACCES', 'storage_denied'],
    ['EROFS', 'storage_denied'],
    ['EMFILE', 'io_error'],
    ['EIO', 'io_error'],
  ] as const) {
    const error = failing(system);
    expect(error.code).toBe(code);
    expect(error.message).toContain('/backups');
    expect(error.data).toMatchObject({ key: 'k', path: '/backups', systemCode: system });
  }
});

test('a file where a folder is needed is an error that names the key', async () => {
  await objects.put('a', text('x'));
  const error = await objects.put('a/b', text('y')).then(
    () => null,
    (failure: unknown) => failure,
  );
  expect(isSkuaError(error, 'io_error')).toBe(true);
  expect((error as Error).message).toMatch(/a\/b/);
});

test.skipIf(process.platform !== 'linux')(
  'a thread of its own keeps no file open behind a read, whatever came of it',
  async () => {
    const blocking = new DirectoryObjects({ root, isBlocking: true });
    await blocking.put('a/k', text('content'));
    const into = new Uint8Array(100);
    const read = async (): Promise<void> => {
      expect(await blocking.get('a/k', { from: 2, length: 3, into })).toEqual(text('nte'));
      expect(await blocking.get('a', { from: 0, length: 3, into })).toBeNull();
      expect(await blocking.get('none', { from: 0, length: 3, into })).toBeNull();
    };
    await read();
    const before = (await readdir('/proc/self/fd')).length;
    for (let i = 0; i < 50; i++) await read();
    expect((await readdir('/proc/self/fd')).length).toBeLessThan(before + 20);
  },
);
