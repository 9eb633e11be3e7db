import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOCK_FILE } from '../../infra/fs/directory-lock.ts';
import { DISCARD_STEP_BYTES } from '../../infra/fs/discard.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';

let folder: string;
let root: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-strangers-'));
  root = path.join(folder, 'data');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Makes a file, or with `/` behind its name a folder, and the folders above it. */
function put(name: string, at = root): void {
  const place = path.join(at, name);
  mkdirSync(name.endsWith('/') ? place : path.dirname(place), { recursive: true });
  if (!name.endsWith('/')) writeFileSync(place, name.startsWith(LOCK_FILE) ? '' : name);
}

/** All names, with sizes and times. */
function treeOf(at: string): string[] {
  return readdirSync(at, { recursive: true, encoding: 'utf8' })
    .map((name) => {
      const found = statSync(path.join(at, name));
      return `${name} ${found.isDirectory() ? 'folder' : found.size} ${found.mtimeMs} ${found.mode}`;
    })
    .sort();
}

const GUID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';
const opened = async (more: Partial<ConstructorParameters<typeof FilesystemStorage>[0]> = {}): Promise<void> =>
  (await new FilesystemStorage({ root, ...more }).lock()).release();

describe('a folder that is no data directory yet', () => {
  test.each([
    'README.md',
    'src/',
    'src/index.ts',
    'index/notes.ts',
    'index/src/',
    'index/indexmap.old',
    `index/${GUID}.old`,
    `index/${GUID.toUpperCase()}`,
    'index/scavenging/notes',
    'proofs/chain.bak',
    'x.tmp',
    'chunk-000000.000000.bak',
    'chunk-000000.000000/',
    'writer.chk/',
    'writer.chk~',
    'chunk-0.0',
    'skua.lock.old',
    '.git/',
    'data.tar.gz',
    'manifest/',
    'log/',
  ])('is refused with %s in it, and nothing is changed', async (name) => {
    put(name);
    const before = treeOf(folder);
    await expect(opened()).rejects.toMatchObject({
      code: 'not_a_data_directory',
      message: expect.stringContaining(root),
      data: { path: root, found: [expect.stringContaining(name.split('/')[0]!)] },
    });
    expect(treeOf(folder)).toEqual(before);
  });

  test('names some of what it found', async () => {
    for (let i = 0; i < 1_000; i++) put(`file-${String(i).padStart(3, '0')}`);
    await expect(opened()).rejects.toMatchObject({
      message: expect.stringMatching(/: file-000, file-001, file-002, file-003, file-004 and 95 more\. /),
    });
  });

  test.each([
    ['nothing', []],
    [
      'what systems put there',
      [
        'lost+found/',
        'lost+found/x',
        '.snapshot/',
        '.DS_Store',
        '.gitkeep',
        '.nfs0000000012',
        '.Trash-1000/',
        'index/.DS_Store',
        'index/lost+found/',
        'Thumbs.db',
      ],
    ],
    [
      'what a first start leaves that was cut off',
      [
        LOCK_FILE,
        `${LOCK_FILE}.owner`,
        `${LOCK_FILE}-journal`,
        'chaser.chk.tmp',
        'index/',
        'index/scavenging/',
        `chunk-000000.000000.${GUID}.tmp`,
        'session.key',
        `session.key.${GUID}.tmp`,
      ],
    ],
    [
      'what a member leaves, and a restore or a copy',
      [
        'log-id',
        'log-id.tmp',
        'node-id',
        'restoring',
        'copy-unfinished',
        'scavenge-due',
        `index/${GUID}.copy.tmp`,
        'proofs/chain',
      ],
    ],
    [
      'what the reference leaves',
      [
        `${GUID}.tmp`,
        `${GUID}.scavenge.tmp.${GUID}.tmp`,
        'index-backup-2024-01-02_03-04-05.678/',
        'index-backup-2024-01-02_03-04-05.678/indexmap',
        'eventstore.sock',
        'index/.forceverify',
        `index/indexmap.${GUID}.indexmap.tmp`,
      ],
    ],
  ])('is taken with %s', async (_what, names) => {
    mkdirSync(root);
    for (const name of names) put(name);
    await opened();
  });

  test('is taken with what the options of the start name, and no more', async () => {
    for (const name of ['logs/node.log', 'audit20310402.json', 'tls/node.key', 'skua.conf']) put(name);
    const beside = ['logs', 'audit.json', 'tls/node.key', 'skua.conf'].map((name) => path.join(root, name));
    await opened({ beside });
    put('logs2');
    await expect(opened({ beside })).rejects.toMatchObject({ data: { found: ['logs2'] } });
  });

  test('has its index elsewhere, which is looked at, too', async () => {
    const indexRoot = path.join(folder, 'elsewhere');
    put('notes.ts', indexRoot);
    await expect(opened({ indexRoot })).rejects.toMatchObject({ data: { found: ['index/notes.ts'] } });
    expect(treeOf(folder)).toHaveLength(2);
    rmSync(path.join(indexRoot, 'notes.ts'));
    await opened({ indexRoot });
  });

  test('has its index in a folder of another name in it', async () => {
    const indexRoot = path.join(root, 'fast');
    put('fast/indexmap');
    await opened({ indexRoot });
    put('fast/notes.ts');
    await expect(opened({ indexRoot })).rejects.toMatchObject({ data: { found: ['index/notes.ts'] } });
  });

  test('may have its index behind a link', async () => {
    put('disk/');
    mkdirSync(path.join(folder, 'disk'));
    rmSync(path.join(root, 'disk'), { recursive: true });
    symlinkSync(path.join(folder, 'disk'), path.join(root, 'index'));
    await opened();
    put('notes', path.join(folder, 'disk'));
    await expect(opened()).rejects.toMatchObject({ data: { found: ['index/notes'] } });
  });
});

test.each(['writer.chk', 'truncate.chk', 'chunk-000000.000000'])(
  'a data directory, which %s tells, may hold anything',
  async (name) => {
    for (const each of [name, 'README.md', 'src/index.ts', 'index/notes.ts']) put(each);
    await opened();
  },
);

describe('what is made', () => {
  test('is for its owner only: the directory and an index elsewhere; what was there keeps its mode, and folders inside are as ever', async () => {
    const mode = (at: string) => (statSync(at).mode & 0o777).toString(8);
    const indexRoot = path.join(folder, 'fast', 'index');
    const storage = new FilesystemStorage({ root: path.join(folder, 'new', 'data'), indexRoot });
    await (await storage.lock()).release();
    await (await storage.create('index/indexmap')).close();
    await (await storage.create('proofs/chain')).close();
    expect([storage.root, indexRoot].map(mode)).toEqual(['700', '700']);
    expect([path.dirname(storage.root), path.dirname(indexRoot), path.join(storage.root, 'proofs')].map(mode)).toEqual(
      Array.from({ length: 3 }, () => (0o777 & ~process.umask()).toString(8)),
    );
    mkdirSync(root, { mode: 0o755 });
    await (await new FilesystemStorage({ root }).create('index/indexmap')).close();
    expect([root, path.join(root, 'index')].map(mode)).toEqual(['755', (0o777 & ~process.umask()).toString(8)]);
  });

  test('is made once by many calls at the same time', async () => {
    for (let round = 0; round < 20; round++) {
      const storage = new FilesystemStorage({ root: path.join(folder, String(round), 'data') });
      const lock = await storage.lock();
      await Promise.all(
        [
          'index/stream-existence/streamExistenceFilter.dat',
          'index/scavenging/scavenging.db',
          'index/indexmap',
          'proofs/chain',
          'writer.chk',
        ].map(async (name) => (await storage.create(name)).close()),
      );
      await lock.release();
    }
  });

  test.skipIf(process.platform !== 'linux')(
    'is nothing where the file system takes no folders: that is said at once',
    async () => {
      for (const at of ['/proc/x', '/proc/x/y']) {
        await expect(new FilesystemStorage({ root: at }).lock()).rejects.toMatchObject({
          code: 'io_error',
          message: expect.stringContaining("/proc/x can't be created in /proc"),
        });
      }
    },
  );
});

test('with the lock goes what is left of a discarded file', async () => {
  const storage = new FilesystemStorage({ root });
  const lock = await storage.lock();
  const file = await storage.create('chunk-000000.000000');
  await file.truncate(200 * DISCARD_STEP_BYTES);
  await file.close();
  await storage.discard('chunk-000000.000000');
  expect(await storage.list('')).toEqual(['chunk-000000.000000.gone.tmp']);
  await lock.release();
  expect(readdirSync(root)).toEqual([LOCK_FILE]);
});

/** Permissions don't bind root, who becomes nobody where the system has the command for that. */
const AS_NOBODY =
  process.getuid?.() !== 0
    ? []
    : spawnSync('setpriv', ['--version']).error === undefined
      ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
      : null;

test.skipIf(AS_NOBODY === null || process.platform === 'win32')(
  'a directory that may not be read, or written to, is said to be so, with its path',
  () => {
    const MODULE = new URL('../../infra/fs/filesystem-storage.ts', import.meta.url).href;
    chmodSync(folder, 0o755);
    for (const [name, mode] of [
      ['closed', 0o000],
      ['read-only', 0o555],
      ['no-list', 0o333],
    ] as const) {
      mkdirSync(path.join(folder, name));
      writeFileSync(path.join(folder, name, 'writer.chk'), '12345678');
      chmodSync(path.join(folder, name), mode);
    }
    const script = `
    const { FilesystemStorage } = await import(${JSON.stringify(MODULE)});
    const said = async (call) => { try { await call(); console.log('done'); } catch (error) { console.log(error.code + ': ' + error.message); } };
    for (const name of ['closed', 'closed/new', 'read-only', 'read-only/new', 'no-list']) await said(() => new FilesystemStorage({ root: ${JSON.stringify(folder)} + '/' + name }).lock());
    const storage = new FilesystemStorage({ root: ${JSON.stringify(folder)} + '/closed' });
    await said(() => storage.list(''));
    await said(() => storage.size('writer.chk'));
    await said(() => storage.open('writer.chk', 'read'));
    await said(() => storage.remove('writer.chk'));`;
    const [command, ...words] = [...AS_NOBODY!, process.execPath, '--input-type=module', '-e', script];
    const { stdout, stderr } = spawnSync(command!, words, { encoding: 'utf8' });
    const denied = (name: string) =>
      `io_error: Access to ${path.join(folder, name)} was denied (EACCES). Check the owner and the permissions of the data directory.`;
    expect(stdout.trim().split('\n'), stderr).toEqual([
      ...['closed', 'closed/new', 'read-only', 'read-only/new', 'no-list', 'closed'].map(denied),
      ...Array.from({ length: 3 }, () => denied('closed/writer.chk')),
    ]);
    for (const name of ['closed', 'read-only', 'no-list']) chmodSync(path.join(folder, name), 0o755);
  },
);
