import { cp, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identityOf } from '../../../infra/fs/root.ts';
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';

let folder: string;
let root: string;
let away: string;
let objects: DirectoryObjects;
/** On which the root lies. */
let device = '1';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-root-'));
  root = join(folder, 'root');
  away = join(folder, 'away');
  objects = new DirectoryObjects({ root, identityOf: (at) => identityOf(at)?.replace(/^\d+/, device) ?? null });
  device = '1';
  await objects.begin();
  await objects.create('a/1', text('1'));
});
afterEach(async () => {
  await objects.close();
  await rm(folder, { recursive: true, force: true });
});

const text = (value: string) => new TextEncoder().encode(value);
const bytes = async function* (value: string) {
  yield text(value);
};
/** Every call that there is, of keys that are there and of others. */
const CALLS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['get', () => objects.get('a/1')],
  ['get of what is not there', () => objects.get('a/0')],
  ['head', () => objects.head('a/1')],
  ['list', () => objects.list('')],
  ['list of what is not there', () => objects.list('b/')],
  ['put', () => objects.put('a/2', text('2'))],
  ['create', () => objects.create('b/2', text('2'))],
  ['create of what is there', () => objects.create('a/1', text('2'))],
  ['upload', () => objects.upload('a/2', 1, bytes('2'))],
  ['uploadNamed', () => objects.uploadNamed(1, bytes('2'), async () => 'a/2')],
  ['remove', () => objects.remove(['a/1'])],
  ['remove of what is not there', () => objects.remove(['c/1'])],
  ['begin', () => objects.begin()],
];

describe.each(CALLS)('%s', (_, call) => {
  test('is refused while the root is away, makes nothing in its place, and works when it is back', async () => {
    await rename(root, away);
    await expect(call()).rejects.toMatchObject({
      code: expect.stringMatching(/^(storage_unreachable|outcome_unknown)$/),
    });
    expect(await readdir(folder)).toEqual(['away']);
    await rename(away, root);
    await call();
    expect(await objects.get('a/0')).toBeNull();
  });

  test('is refused where another directory lies, and changes nothing there', async () => {
    await rename(root, away);
    await mkdir(join(root, 'a'), { recursive: true });
    await expect(call()).rejects.toMatchObject({ code: 'storage_unreachable', data: { reason: 'replaced' } });
    expect(await readdir(root, { recursive: true })).toEqual(['a']);
    await rm(root, { recursive: true });
    await rename(away, root);
    await call();
  });
});

test('a copy on another device is used where whoever knows what lies there says that it is the same, and refused with the reason where not', async () => {
  let why: string | null = 'it is an older copy';
  const forget = objects.recognise(async (there) => ((await there.get('a/1')) === null ? 'it is empty' : why));
  await cp(root, away, { recursive: true });
  await rm(root, { recursive: true });
  await rename(away, root);
  device = '2';
  await expect(objects.get('a/1')).rejects.toMatchObject({
    code: 'storage_unreachable',
    message: expect.stringContaining('it is an older copy'),
  });
  why = null;
  expect(await objects.get('a/1')).toEqual(text('1'));
  expect(await objects.create('a/2', text('2'))).toBe('created');
  forget();
  await rename(root, away);
  await mkdir(root);
  await expect(objects.get('a/1')).rejects.toMatchObject({ code: 'storage_unreachable' });
});

test("what can't be read to be recognised is refused, and asked again by the next call", async () => {
  let isBroken = true;
  objects.recognise(async () => {
    if (isBroken) throw new Error('broken');
    return null;
  });
  await cp(root, away, { recursive: true });
  await rm(root, { recursive: true });
  await rename(away, root);
  device = '2';
  await expect(objects.list('')).rejects.toMatchObject({
    code: 'storage_unreachable',
    message: expect.stringContaining('broken'),
  });
  isBroken = false;
  expect((await objects.list('')).objects).toHaveLength(1);
});

test('a copy on the same device is never used, whatever it holds: it may lack what others have committed', async () => {
  objects.recognise(async () => null);
  await cp(root, `${root}-copy`, { recursive: true });
  await rename(root, away);
  await rename(`${root}-copy`, root);
  await expect(objects.get('a/1')).rejects.toMatchObject({
    code: 'storage_unreachable',
    message: expect.stringContaining('its inode is another'),
  });
  await rm(root, { recursive: true });
  await rename(away, root);
  expect(await objects.get('a/1')).toEqual(text('1'));
});
