import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inParallel } from '../../../core/base/in-parallel.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { append, CHUNK_BYTES } from '../../backup/copy-kit.ts';
import { openTestStore } from '../../support/test-store.ts';
import { ran, ROOT, startedNode } from '../spawn.ts';

/** Commands that only read, in directories that can't be written to. */

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-read-only-'));
  const open = await openTestStore({
    storage: new FilesystemStorage({ root: at('data') }),
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: 60,
  });
  await append(open, 's', 100);
  await open.close();
  expect(await ran(['scavenge', 'offline', at('data')])).toMatchObject({ code: 0 });
  expect(await ran(['backup', 'create', '--db', at('data'), '--repository', at('repository')])).toMatchObject({
    code: 0,
  });
  expect(await ran(['backup', 'copy', '--full', '--db', at('data'), '--to', at('copy')])).toMatchObject({ code: 0 });
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** What a folder holds, to be compared. */
function contentOf(place: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of (readdirSync(place, { recursive: true }) as string[]).sort()) {
    const file = path.join(place, name);
    const { mtimeMs, mode } = statSync(file);
    found[name] = statSync(file).isFile()
      ? `${mode} ${mtimeMs} ${readFileSync(file).toString('base64')}`
      : `${mode} ${mtimeMs}`;
  }
  return found;
}

/** In a user namespace of its own, where such a mount concerns nobody else. */
function mountsReadOnly(): boolean {
  return (
    spawnSync('unshare', [
      '-rm',
      'sh',
      '-c',
      `mkdir -p '${at('probe')}' && mount --bind '${folder}' '${folder}' && mount -o remount,ro,bind '${folder}' && ! touch '${at('probe', 'x')}' 2>/dev/null`,
    ]).status === 0
  );
}

/** As a snapshot of a disk finds the database while a scavenge runs: SQLite opens that only where it can write. */
function leaveWriteAheadLog(file: string): void {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE more(a); DROP TABLE more');
  const left = ['', '-wal'].map((ending) => [file + ending, readFileSync(file + ending)] as const);
  database.close();
  for (const [name, bytes] of left) writeFileSync(name, bytes);
}

interface Done {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A command in a process that sees these folders read-only. */
function skuaReadingOnly(words: readonly string[]): Promise<Done> {
  const mounts = ['data', 'copy', 'repository', 'bare']
    .map((name) => `mount --bind '${at(name)}' '${at(name)}' && mount -o remount,ro,bind '${at(name)}'`)
    .join(' && ');
  const child = spawn(
    'unshare',
    ['-rm', 'sh', '-c', `${mounts} && exec "$0" "$@"`, process.execPath, path.join(ROOT, 'local/main.ts'), ...words],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let out = '';
  let err = '';
  child.stdout.on('data', (bytes: Buffer) => {
    out += String(bytes);
  });
  child.stderr.on('data', (bytes: Buffer) => {
    err += String(bytes);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code, out, err });
    });
  });
}

const NOTE =
  /can't be written to \(EROFS\), so it is read without changes; .* Make sure no node writes to it through another mount meanwhile\./;

/** The words, the code, a part of the output, and whether it is told that the directory is only read. */
const COMMANDS: readonly (readonly [words: () => string[], code: number, out: string, isTold: boolean])[] = [
  [() => ['explain', 's', '--db', at('data')], 0, 'last event 99', true],
  [() => ['scavenge', 'offline', at('data'), '--dry-run'], 0, 'Nothing was changed', true],
  [() => ['backup', 'create', '--db', at('data'), '--repository', at('repository-2')], 0, 'Done', true],
  [() => ['backup', 'copy', '--full', '--db', at('data'), '--to', at('copy-2')], 0, 'Done', true],
  [() => ['user', 'list', '--db', at('data')], 0, 'users', true],
  // A copy without a lock, and without the id of a node.
  [() => ['explain', 's', '--db', at('bare')], 0, 'last event 99', true],
  [() => ['verify', at('data')], 0, 'nothing wrong found', true],
  [() => ['verify', at('bare')], 0, 'nothing wrong found', true],
  [() => ['prove-erased', '--stream', 's', '--db', at('data')], 1, 'trace', false],
  [() => ['restore', '--from', at('copy'), '--db', at('restored-1')], 0, 'Done', false],
  [() => ['restore', '--from', at('repository'), '--db', at('restored-2')], 0, 'Done', false],
  [() => ['backup', 'list', '--repository', at('repository')], 0, 'manual', false],
  [() => ['backup', 'verify', '--repository', at('repository')], 0, 'nothing wrong', false],
  [() => ['backup', 'drill', '--repository', at('repository')], 0, 'could not be noted', false],
  [() => ['backup', 'prune', '--repository', at('repository'), '--keep-last', '1', '--dry-run'], 0, 'Dry run', false],
  [() => ['prove-erased', '--stream', 's', '--repository', at('repository')], 1, 'trace', false],
];
/** These write, and say so. */
const WRITE: readonly (() => string[])[] = [
  () => ['scavenge', 'offline', at('data')],
  () => ['proof', 'export', '--db', at('data')],
];

describe('on a mount that can only be read', () => {
  test("commands that only read work, and those that write say why they can't; nothing of the directories changes", async ({
    skip,
  }) => {
    mkdirSync(at('bare'));
    for (const name of readdirSync(at('copy'), { recursive: true }) as string[]) {
      if (statSync(at('copy', name)).isDirectory()) mkdirSync(at('bare', name), { recursive: true });
      else if (!/^(skua\.lock|node-id)/.test(name)) {
        mkdirSync(path.dirname(at('bare', name)), { recursive: true });
        writeFileSync(at('bare', name), readFileSync(at('copy', name)));
      }
    }
    leaveWriteAheadLog(at('bare', 'index', 'scavenging', 'scavenging.db'));
    if (!mountsReadOnly()) skip('This machine lets no user mount a directory read-only (unshare -rm).');
    const before = ['data', 'copy', 'repository', 'bare'].map((name) => contentOf(at(name)));
    await inParallel(COMMANDS.length, 2, async (i) => {
      const [words, code, out, isTold] = COMMANDS[i]!;
      const done = await skuaReadingOnly(words());
      const what = `${words().join(' ')}\n${done.out}\n${done.err}`;
      expect(done.code, what).toBe(code);
      expect(done.out, what).toContain(out);
      if (isTold) expect(done.err, what).toMatch(NOTE);
      else expect(done.err, what).not.toContain('error');
    });
    for (const words of WRITE) {
      const done = await skuaReadingOnly(words());
      expect(done, words().join(' ')).toMatchObject({
        code: 3,
        err: expect.stringMatching(
          /can't be written to \(EROFS\): this command locks the directory against other users, and writes to it\./,
        ) as string,
      });
    }
    expect(['data', 'copy', 'repository', 'bare'].map((name) => contentOf(at(name)))).toEqual(before);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('skua-look-'))).toEqual([]);
  });

  test('a node that runs by another mount is seen, where there is one file system', async ({ skip }) => {
    if (!existsSync(at('bare'))) mkdirSync(at('bare'));
    if (!mountsReadOnly()) skip('This machine lets no user mount a directory read-only (unshare -rm).');
    const node = await startedNode(['--db', at('data')]);
    try {
      expect(await skuaReadingOnly(['explain', 's', '--db', at('data')])).toMatchObject({
        code: 3,
        err: expect.stringContaining('directory_locked') as string,
      });
    } finally {
      await node.stop();
    }
  });
});

test('a directory without permission to write is read, and stays as it is', async ({ skip }) => {
  const isRoot = process.getuid?.() === 0;
  if (
    isRoot &&
    spawnSync('setpriv', ['--reuid=65534', '--clear-groups', process.execPath, '-e', `process.chdir('${ROOT}')`])
      .status !== 0
  )
    skip('This user may write anywhere, and no other one can run this program here.');
  chmodSync(folder, 0o755);
  for (const name of ['', 'index', 'index/scavenging', 'index/stream-existence']) chmodSync(at('copy', name), 0o555);
  const before = contentOf(at('copy'));
  const words = [path.join(ROOT, 'local/main.ts'), 'explain', 's', '--db', at('copy')];
  const done = isRoot
    ? spawnSync('setpriv', ['--reuid=65534', '--clear-groups', process.execPath, ...words])
    : spawnSync(process.execPath, words);
  expect({ code: done.status, out: String(done.stdout), err: String(done.stderr) }).toMatchObject({
    code: 0,
    out: expect.stringContaining('last event 99') as string,
    err: expect.stringMatching(/can't be written to \(EACCES\)/) as string,
  });
  expect(contentOf(at('copy'))).toEqual(before);
  for (const name of ['', 'index', 'index/scavenging', 'index/stream-existence']) chmodSync(at('copy', name), 0o755);
});
