import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ANY } from '../../../core/streams/api.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { append, CHUNK_BYTES } from '../../backup/copy-kit.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestStore, TEST_NOW_MS } from '../../support/test-store.ts';
import { run } from '../run.ts';

/** Copies, repositories and restores from the command line, of directories that no node uses. */

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-backup-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function json(...words: string[]): Promise<Record<string, unknown>> {
  const { code, out, err } = await run(...words, '--json');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out) as Record<string, unknown>;
}

/** Appends to a data directory, which is made if it is absent. */
async function fill(db: string, stream: string, count: number): Promise<string[]> {
  const open = await openTestStore({
    storage: new FilesystemStorage({ root: db }),
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: 60,
  });
  const ids = await append(open, stream, count);
  await open.close();
  return ids;
}

async function idsIn(db: string, stream: string): Promise<string[]> {
  const open = await openTestStore({ storage: new FilesystemStorage({ root: db }), writeEpoch: false });
  const page = await open.store.readStream(stream, {
    direction: 'forward',
    from: 0,
    count: 4_000,
    resolveLinks: false,
  });
  await open.close();
  return page.events.map(({ id }) => id);
}

describe('copies of files', () => {
  test('full, differential, restored: the events are there, and nothing is wrong', async () => {
    const ids = await fill(at('data'), 's', 100);
    const full = await json('backup', 'copy', '--full', '--db', at('data'), '--to', at('copy'));
    expect(full).toMatchObject({ mode: 'full', copied: expect.any(Number), removed: 0, to: at('copy') });
    ids.push(...(await fill(at('data'), 's', 60)));
    const again = await run('backup', 'copy', '--differential', '--db', at('data'), '--to', at('copy'));
    expect(again).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringMatching(
        /^Done after .*: differential copy of node .*\n.*old ones? removed.*\nCopied every time/,
      ),
    });
    expect(statSync(at('copy', 'chunk-000000.000000')).mode & 0o222).toBe(0);
    const restored = await run('restore', '--from', at('copy'), '--db', at('restored'));
    expect(restored).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringMatching(/^Done after .*: the copy is restored/),
    });
    expect(await idsIn(at('restored'), 's')).toEqual(ids);
    expect((await run('verify', at('restored'))).code).toBe(0);
    // The restored directory is another node now.
    const mixed = await run('backup', 'copy', '--differential', '--db', at('restored'), '--to', at('copy'));
    expect(mixed).toMatchObject({ code: 4, err: expect.stringContaining('other_node') });
    expect(await json('backup', 'copy', '--full', '--db', at('restored'), '--to', at('copy-2'))).toMatchObject({
      kept: 0,
    });
  });

  test('an index of its own folder lies in index/ of the copy', async () => {
    const open = await openTestStore({
      storage: new FilesystemStorage({ root: at('data'), indexRoot: at('elsewhere') }),
      chunkSizeBytes: CHUNK_BYTES,
      memTableEntriesMax: 60,
    });
    await append(open, 's', 100);
    await open.close();
    await json('backup', 'copy', '--full', '--db', at('data'), '--index', at('elsewhere'), '--to', at('copy'));
    expect(existsSync(at('copy', 'index', 'indexmap'))).toBe(true);
    await json('restore', '--from', at('copy'), '--db', at('restored'), '--index', at('index-2'));
    expect(existsSync(at('index-2', 'indexmap'))).toBe(true);
    expect(existsSync(at('restored', 'index'))).toBe(false);
  });

  test('refusals: wrong words, places that overlap, a directory in use, one that is not empty', async () => {
    await fill(at('data'), 's', 5);
    for (const words of [
      [],
      ['--full'],
      ['--full', '--differential', '--to', at('c')],
      ['--snapshot', '--to', at('c')],
      ['--full', '--to', at('c'), '--db', at('data'), '--node', 'http://127.0.0.1:1'],
      ['--full', '--to', at('c'), '--db', at('data'), '--pause-scavenge'],
      ['--full', '--to', at('c'), '--index', at('i')],
    ]) {
      expect((await run('backup', 'copy', ...words)).code, words.join(' ')).toBe(2);
    }
    const copy = ['backup', 'copy', '--full', '--db', at('data'), '--to'];
    for (const to of [at('data'), at('data', 'inside'), folder])
      expect(await run(...copy, to)).toMatchObject({ code: 4, err: expect.stringContaining('--to') });
    expect(await run('backup', 'copy', '--full', '--db', at('nothing'), '--to', at('c'))).toMatchObject({ code: 3 });
    mkdirSync(at('empty'));
    expect(await run('backup', 'copy', '--full', '--db', at('empty'), '--to', at('c'))).toMatchObject({
      code: 3,
      err: expect.stringContaining('not_a_data_directory'),
    });
    writeFileSync(at('file'), '');
    expect((await run(...copy, at('file'))).code).toBe(3);
    expect(await run('backup', 'copy', '--full', '--node', 'http://127.0.0.1:1', '--to', at('c'))).toMatchObject({
      code: 3,
      err: expect.stringContaining('node_unreachable'),
    });
    expect(readdirSync(folder).sort()).toEqual(['data', 'empty', 'file']);
    const lock = await new FilesystemStorage({ root: at('data') }).lock();
    expect(await run(...copy, at('c'))).toMatchObject({ code: 3, err: expect.stringContaining('--node URL') });
    await lock.release();
    await json(...copy, at('c'));
    expect(await run(...copy, at('c'))).toMatchObject({ code: 4, err: expect.stringContaining('directory_not_empty') });
    const inUse = await new FilesystemStorage({ root: at('c') }).lock();
    expect((await run('backup', 'copy', '--differential', '--db', at('data'), '--to', at('c'))).code).toBe(3);
    await inUse.release();
  });

  test('a copy is not restored to where it lies, or over its own index, also by way of a link', async () => {
    await fill(at('data'), 's', 5);
    await json('backup', 'copy', '--full', '--db', at('data'), '--to', at('c'));
    symlinkSync(at('c'), at('link'));
    const before = readdirSync(at('c'), { recursive: true }).sort();
    for (const words of [
      ['--db', at('c')],
      ['--db', at('c', 'inside')],
      ['--db', at('link')],
      ['--db', at('r'), '--index', at('c', 'index')],
      ['--db', at('r'), '--index', at('link', 'index')],
    ]) {
      expect(await run('restore', '--from', at('c'), ...words, '--force'), words.join(' ')).toMatchObject({
        code: 4,
        err: expect.stringContaining('contains or is inside'),
      });
    }
    expect(readdirSync(at('c'), { recursive: true }).sort()).toEqual(before);
    await fill(at('another'), 's', 5);
    rmSync(at('c', 'skua.lock'), { force: true });
    expect(await run('backup', 'copy', '--full', '--db', at('another'), '--to', at('c'))).toMatchObject({ code: 4 });
    expect(existsSync(at('c', 'skua.lock'))).toBe(false);
    mkdirSync(at('linked'));
    symlinkSync(at('data', 'index'), at('linked', 'index'));
    expect(await run('backup', 'copy', '--full', '--db', at('data'), '--to', at('linked'))).toMatchObject({
      code: 4,
      err: expect.stringContaining('contains or is inside'),
    });
  });

  test('--snapshot says in which order to go, and ends with 1 where it can not', async () => {
    await fill(at('data'), 's', 5);
    expect(await json('backup', 'copy', '--snapshot', '--db', at('data'))).toEqual({
      db: at('data'),
      index: at('data', 'index'),
      isOneVolume: true,
      order: [at('data')],
    });
    expect(await run('backup', 'copy', '--snapshot', '--db', at('data'))).toMatchObject({
      code: 0,
      out: expect.stringContaining('one snapshot'),
    });
    expect(await run('backup', 'copy', '--snapshot', '--db', at('nothing'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('volume_unknown'),
    });
    if (!existsSync('/dev/shm')) return;
    const other = mkdtempSync('/dev/shm/skua-volume-');
    try {
      if (statSync(other).dev === statSync(folder).dev) return;
      const answer = await run('backup', 'copy', '--snapshot', '--db', at('data'), '--index', other);
      expect(answer).toMatchObject({ code: 0, out: expect.stringContaining('index volume first') });
      expect(await json('backup', 'copy', '--snapshot', '--db', at('data'), '--index', other)).toMatchObject({
        isOneVolume: false,
        order: [other, at('data')],
      });
    } finally {
      rmSync(other, { recursive: true });
    }
  });
});

describe('a repository', () => {
  test('create, list, verify, drill, restore, by id, position and time', async () => {
    const first = await fill(at('data'), 's', 60);
    const made = await json('backup', 'create', '--repository', at('repo'), '--db', at('data'));
    const second = await fill(at('data'), 's', 60);
    const next = await json(
      'backup',
      'create',
      '--repository',
      at('repo'),
      '--db',
      at('data'),
      '--parallel',
      '2',
      '--throttle',
      '1GiB',
    );
    expect(next).toMatchObject({ nodeId: made['nodeId'] });
    const listed = await json('backup', 'list', '--repository', at('repo'));
    expect((listed['backups'] as { id: string }[]).map(({ id }) => id)).toEqual([next['backupId'], made['backupId']]);
    expect(await run('backup', 'list', '--repository', at('repo'))).toMatchObject({
      code: 0,
      out: expect.stringContaining('None of them has been tested yet'),
    });
    expect(await run('backup', 'verify', '--repository', at('repo'))).toMatchObject({ code: 0, err: '' });

    mkdirSync(at('scratch'));
    expect(await json('backup', 'drill', '--repository', at('repo'), '--scratch', at('scratch'))).toMatchObject({
      backupId: next['backupId'],
      isProven: true,
    });
    expect(readdirSync(at('scratch'))).toEqual([]);
    expect((await json('backup', 'list', '--repository', at('repo')))['proven']).toMatchObject({
      backupId: next['backupId'],
    });

    await json('restore', '--from', at('repo'), '--db', at('latest'));
    expect(await idsIn(at('latest'), 's')).toEqual([...first, ...second]);
    const id = String(made['backupId']);
    expect(await json('restore', '--from', at('repo'), '--db', at('by-id'), '--backup', id.slice(0, 12))).toMatchObject(
      { backupId: id, position: made['logEnd'] },
    );
    expect(await idsIn(at('by-id'), 's')).toEqual(first);
    expect(
      await json('restore', '--from', at('repo'), '--db', at('by-position'), '--to-position', String(made['logEnd'])),
    ).toMatchObject({ position: made['logEnd'] });
    expect(
      await run(
        'restore',
        '--from',
        at('repo'),
        '--db',
        at('inside'),
        '--to-position',
        String(Number(made['logEnd']) - 1),
      ),
    ).toMatchObject({ code: 1, err: expect.stringMatching(/not_restorable.*nearest/) });
    expect(
      await run('restore', '--from', at('repo'), '--db', at('early'), '--to-time', '2000-01-01T00:00:00Z'),
    ).toMatchObject({ code: 1, err: expect.stringContaining('not_restorable') });
    expect(existsSync(at('early', 'writer.chk'))).toBe(false);
    const late = ['restore', '--from', at('repo'), '--db', at('late'), '--to-time', '2999-01-01T00:00:00Z'];
    const refused = await run(...late);
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /not_restorable.*the last moment that can be had\. For the one before, run .* --at-or-before/,
      ),
    });
    expect(existsSync(at('late', 'writer.chk'))).toBe(false);
    expect(await run(...late, '--at-or-before')).toMatchObject({
      code: 0,
      out: expect.stringContaining('the nearest restore point before it is'),
    });
    expect(await idsIn(at('late'), 's')).toEqual([...first, ...second]);
  });

  test('encrypted: the key is made once, needed everywhere, and never shown', async () => {
    await fill(at('data'), 's', 10);
    expect(await run('backup', 'key', at('key'))).toMatchObject({ code: 0, err: '' });
    const key = readFileSync(at('key'), 'utf8').trim();
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(statSync(at('key')).mode & 0o777).toBe(0o600);
    expect(await run('backup', 'key', at('key'))).toMatchObject({
      code: 4,
      err: expect.stringContaining('file_exists'),
    });
    expect(readFileSync(at('key'), 'utf8').trim()).toBe(key);
    const repository = ['--repository', at('repo')];
    await json('backup', 'create', ...repository, '--db', at('data'), '--key-file', at('key'));
    for (const words of [
      ['backup', 'list', ...repository],
      ['backup', 'create', ...repository, '--db', at('data')],
      ['backup', 'verify', ...repository],
      ['restore', '--from', at('repo'), '--db', at('r')],
    ]) {
      expect(await run(...words), words.join(' ')).toMatchObject({
        code: 4,
        err: expect.stringContaining('repository_key'),
      });
    }
    writeFileSync(at('other'), 'not a key');
    const wrong = await run('backup', 'list', ...repository, '--key-file', at('other'));
    expect(wrong).toMatchObject({ code: 4, err: expect.not.stringContaining('not a key\n') });
    expect((await run('backup', 'list', ...repository, '--key-file', at('absent'))).code).toBe(3);
    await json('restore', '--from', at('repo'), '--db', at('r'), '--key-file', at('key'));
    expect((await idsIn(at('r'), 's')).length).toBe(10);
  });

  test('damage is named; a restore refuses it, or says what is lost', async () => {
    await fill(at('data'), 's', 200);
    await json('backup', 'create', '--repository', at('repo'), '--db', at('data'));
    const blobs = readdirSync(at('repo', 'blobs'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name));
    const chunk = blobs.find((file) => readFileSync(file).includes('s 100 '))!;
    const bytes = readFileSync(chunk);
    bytes[5_000] = bytes[5_000]! ^ 1;
    chmodSync(chunk, 0o600);
    writeFileSync(chunk, bytes);
    const key = path.relative(at('repo'), chunk);
    expect(await run('backup', 'verify', '--repository', at('repo'))).toMatchObject({
      code: 1,
      out: expect.stringContaining(key),
    });
    expect(await run('restore', '--from', at('repo'), '--db', at('r'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('repository_damaged'),
    });
    const part = await run('restore', '--from', at('repo'), '--db', at('r'), '--force', '--allow-damaged');
    expect(part).toMatchObject({ code: 0, out: expect.stringMatching(/^Partly done[^]*Lost: positions/) });
    expect((await run('verify', at('r'))).code).toBe(0);
  });

  test('prune keeps what it is told to, and a dry run changes nothing; erased events leave with the backups that hold them', async () => {
    const repository = ['--repository', at('repo')];
    const made: string[] = [];
    for (let i = 0; i < 3; i++) {
      await fill(at('data'), 's', 40);
      made.push(String((await json('backup', 'create', ...repository, '--db', at('data')))['backupId']));
    }
    const listed = async () =>
      ((await json('backup', 'list', ...repository))['backups'] as { id: string }[]).map(({ id }) => id).reverse();
    expect((await run('backup', 'prune', ...repository, '--keep-last', '0')).code).toBe(2);
    expect(await run('backup', 'prune', ...repository)).toMatchObject({
      code: 0,
      out: expect.stringContaining('0 backups removed, 3 kept'),
    });
    expect(await json('backup', 'prune', ...repository, '--keep-last', '2', '--dry-run')).toMatchObject({
      isDryRun: true,
      removed: [{ id: made[0], why: 'retention' }],
    });
    expect(await listed()).toEqual(made);
    expect(await run('backup', 'prune', ...repository, '--keep-last', '2')).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining(`backup ${made[0]}`),
    });
    expect(await listed()).toEqual(made.slice(1));

    const open = await openTestStore({
      storage: new FilesystemStorage({ root: at('data') }),
      chunkSizeBytes: CHUNK_BYTES,
    });
    const [victim] = await append(open, 'gone', 60);
    await open.close();
    const holding = String((await json('backup', 'create', ...repository, '--db', at('data')))['backupId']);
    const search = ['prove-erased', '--event', victim!, ...repository];
    expect(await run(...search)).toMatchObject({ code: 1, out: expect.stringContaining('trace') });
    const again = await openTestStore({
      storage: new FilesystemStorage({ root: at('data') }),
      chunkSizeBytes: CHUNK_BYTES,
    });
    await again.store.deleteStream('gone', ANY, 'hard');
    await again.scavenger.start({});
    await again.scavenger.idle();
    await again.close();
    const last = String((await json('backup', 'create', ...repository, '--db', at('data')))['backupId']);
    expect((await run(...search)).code).toBe(1);
    const pruned = await json('backup', 'prune', ...repository, '--erased');
    expect(pruned).toMatchObject({ isBackupRunning: false, kept: expect.arrayContaining([last]) });
    expect(pruned['removed']).toContainEqual({ id: holding, createdAt: expect.any(String), why: 'erased' });
    expect(await run(...search, '--allow-unknown')).toMatchObject({
      code: 0,
      out: expect.stringContaining('no trace'),
    });
    await json('restore', '--from', at('repo'), '--db', at('restored'));
    expect((await idsIn(at('restored'), 's')).length).toBe(120);
  });

  test('refusals: no repository, no directory, data that are there, a node that runs, wrong words', async () => {
    await fill(at('data'), 's', 5);
    await json('backup', 'create', '--repository', at('repo'), '--db', at('data'));
    for (const words of [
      ['list'],
      ['create'],
      ['verify'],
      ['drill'],
      ['prune'],
      ['list', '--repository', 'ftp://x'],
      ['verify', '--repository', at('repo'), '--read-data-subset', '0%'],
      ['create', '--repository', at('repo'), '--compression', 'best'],
    ]) {
      expect((await run('backup', ...words)).code, words.join(' ')).toBe(2);
    }
    expect((await run('prove-erased', '--stream', 's', '--repository', at('repo'), '--db', at('data'))).code).toBe(2);
    expect((await run('prove-erased', '--stream', 's', '--db', at('data'), '--key-file', at('key'))).code).toBe(2);
    expect((await run('backup', 'list', '--repository', at('nothing'))).code).toBe(3);
    expect(existsSync(at('nothing'))).toBe(false);
    for (const words of [
      [],
      ['--from', at('repo')],
      ['--from', at('repo'), '--db', at('r'), '--to-time', 'noon'],
      ['--from', at('repo'), '--db', at('r'), '--to-time', '2026-02-30'],
      ['--from', at('repo'), '--db', at('r'), '--to-position', '1', '--backup', 'x'],
    ])
      expect((await run('restore', ...words)).code, words.join(' ')).toBe(2);
    expect((await run('restore', '--from', at('nothing'), '--db', at('r'))).code).toBe(3);
    expect(await run('restore', '--from', at('repo'), '--db', at('r'), '--backup', '00')).toMatchObject({
      code: 1,
      err: expect.stringContaining('backup_not_found'),
    });
    expect(await run('restore', '--from', at('repo'), '--db', at('data'))).toMatchObject({
      code: 4,
      err: expect.stringMatching(/directory_not_empty.*indexmap.*--force/),
    });
    const lock = await new FilesystemStorage({ root: at('data') }).lock();
    expect(await run('restore', '--from', at('repo'), '--db', at('data'), '--force')).toMatchObject({
      code: 3,
      err: expect.stringContaining('directory_locked'),
    });
    await lock.release();
    expect((await idsIn(at('data'), 's')).length).toBe(5);
    expect(await run('restore', '--from', at('repo'), '--db', at('data'), '--force')).toMatchObject({ code: 0 });
  });

  test('what it tells to type next works as it stands: a place with a blank, encrypted', async () => {
    await fill(at('data'), 's', 60);
    await run('backup', 'key', at('my key'));
    const made = await run(
      'backup',
      'create',
      '--repository',
      at("the bird's nest"),
      '--key-file',
      at('my key'),
      '--db',
      at('data'),
    );
    const [restore, drill] = commandsIn(made.out);
    expect([restore!.slice(0, 1), drill!.slice(0, 2)]).toEqual([['restore'], ['backup', 'drill']]);
    expect(restore!.at(-1)).toBe('./restored');
    expect(await run(...restore!.slice(0, -1), at('restored'))).toMatchObject({ code: 0, err: '' });
    const listed = await run('backup', 'list', '--repository', at("the bird's nest"), '--key-file', at('my key'));
    expect(commandsIn(listed.out)).toEqual([drill]);
    expect(await run(...drill!)).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Proven') });
    const copied = await run('backup', 'copy', '--full', '--db', at('data'), '--to', at('a copy'));
    expect(await run(...commandsIn(copied.out)[0]!.slice(0, -1), at('restored-2'))).toMatchObject({ code: 0 });
  });

  test('a list names no backup that is gone', async () => {
    const repository = ['--repository', at('repo')];
    await fill(at('data'), 's', 10);
    const first = String((await json('backup', 'create', ...repository, '--db', at('data')))['backupId']);
    await run('backup', 'drill', ...repository);
    expect((await run('backup', 'list', ...repository)).out).toContain(`Last tested by a drill: ${first}`);
    await fill(at('data'), 's', 10);
    await json('backup', 'create', ...repository, '--db', at('data'));
    await json('backup', 'prune', ...repository, '--keep-last', '1');
    const listed = await run('backup', 'list', ...repository);
    expect(listed).toMatchObject({ code: 0, out: expect.not.stringContaining(first) });
    expect(listed.out).toContain('None of them has been tested yet');
    expect(await json('backup', 'list', ...repository)).toMatchObject({ proven: null });
  });

  test('a search for what was erased says what removes what it found, and it does', async () => {
    const repository = ['--repository', at('repo')];
    await run('backup', 'key', at('key'));
    const create = () => json('backup', 'create', ...repository, '--key-file', at('key'), '--db', at('data'));
    await fill(at('data'), 's', 60);
    const [victim] = await fill(at('data'), 'gone', 60);
    const { nodeId } = await create();
    const search = ['prove-erased', '--event', victim!, ...repository, '--key-file', at('key')];
    expect(await run(...search)).toMatchObject({
      code: 1,
      out: expect.stringMatching(
        new RegExp(
          `The newest backup of node ${String(nodeId)}, .* was made before they were removed. Delete or redact the events on the node if you have not yet .*, scavenge it, and back it up`,
        ),
      ),
    });
    const open = await openTestStore({
      storage: new FilesystemStorage({ root: at('data') }),
      chunkSizeBytes: CHUNK_BYTES,
    });
    await open.store.deleteStream('gone', ANY, 'hard');
    await open.scavenger.start({});
    await open.scavenger.idle();
    await open.close();
    await create();
    // By what an earlier prune has left, with a backup that was killed.
    await json('backup', 'prune', ...repository, '--key-file', at('key'), '--keep-last', '1');
    const found = await run(...search);
    expect(found).toMatchObject({ code: 1, out: expect.stringContaining('Only unused content holds them') });
    const prune = commandsIn(found.out).find((words) => words.includes('--erased'));
    mkdirSync(at('repo', 'active'), { recursive: true });
    writeFileSync(at('repo', 'active', 'bbbbbbbb-0000-4000-8000-000000000009'), 'cut off');
    expect((await run(...search)).out).toMatch(
      /A backup is being made \(bbbbbbbb-0000-4000-8000-000000000009, last heartbeat at .*\); nothing is removed meanwhile: run it when it has ended; one that was killed is ignored from /,
    );
    expect(await run(...prune!)).toMatchObject({
      code: 4,
      out: expect.stringMatching(
        /A backup is being made \(bbbbbbbb-0000-4000-8000-000000000009, .*so no objects were removed\. Repeat the command when it has ended; one that was killed is ignored from /,
      ),
    });
    rmSync(at('repo', 'active', 'bbbbbbbb-0000-4000-8000-000000000009'));
    expect(await run(...prune!)).toMatchObject({ code: 0 });
    expect(await run(...search, '--allow-unknown')).toMatchObject({
      code: 0,
      out: expect.stringContaining('no trace'),
    });

    // A node that was restored has another id, and the backups of the old one would stay.
    await json('restore', '--from', at('repo'), '--key-file', at('key'), '--db', at('restored'));
    const [later] = await fill(at('data'), 'later', 5);
    await create();
    await json('backup', 'create', ...repository, '--key-file', at('key'), '--db', at('restored'));
    const old = await run('prove-erased', '--event', later!, ...repository, '--key-file', at('key'));
    const forget = commandsIn(old.out).find((words) => words.includes('--forget-node'))!;
    expect(forget.at(-1)).toBe(nodeId);
    expect(await run(...forget)).toMatchObject({
      code: 0,
      out: expect.stringContaining('of a node that no longer exists'),
    });
    expect(await run('prove-erased', '--event', later!, ...repository, '--key-file', at('key'))).toMatchObject({
      code: 1,
      out: expect.stringContaining(`No sign that there ever was an event ${later}`),
    });
  });

  test('a moment that can not be had: the refusal names the nearest and what to type for them', async () => {
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    const open = await openTestStore({
      storage: new FilesystemStorage({ root: at('data') }),
      chunkSizeBytes: CHUNK_BYTES,
      clock,
    });
    for (let i = 0; i < 100; i++) {
      await append(open, i % 2 === 0 ? 's' : 'gone', 2);
      clock.setNow(clock.nowMs() + 1_000);
    }
    await open.store.deleteStream('gone', ANY, 'hard');
    await open.scavenger.start({});
    await open.scavenger.idle();
    await append(open, 's', 1);
    await open.close();
    await json('backup', 'create', '--repository', at('a repo'), '--db', at('data'));
    const chunkMs = TEST_NOW_MS + 95_500;
    const time = new Date(chunkMs).toISOString();
    const words = ['restore', '--from', at('a repo'), '--db', at('r'), '--to-time', time];
    const refused = await run(...words);
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /not_restorable.*The nearest restore points are \S+Z, before it, and \S+Z, after it\. For the one before, run/,
      ),
    });
    expect(refused.err).not.toContain('position');
    expect(existsSync(at('r', 'writer.chk'))).toBe(false);
    const [before, after] = commandsIn(refused.err);
    expect(before).toEqual([...words.slice(0, -1), time.replace('.500Z', '.5Z'), '--at-or-before']);
    const belowText = / are (\S+Z), before/.exec(refused.err)![1]!;
    expect(await run(...before!)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`the nearest restore point before it is ${belowText}.`),
    });
    expect(await json(...after!, '--force')).toMatchObject({ restoredTo: null });
    expect(await run('restore', '--from', at('a repo'), '--db', at('r'), '--at-or-before')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--at-or-before needs --to-time'),
    });
  });
});

/** The commands that a text shows in backticks, as the words that a shell makes of them. */
function commandsIn(text: string): string[][] {
  return [...text.matchAll(/`skua ([^`]+)`/g)].map(([, line]) =>
    [...line!.matchAll(/(?:'[^']*'|\\.|[^\s'\\])+/g)].map(([word]) => word.replaceAll(/'([^']*)'|\\(.)/g, '$1$2')),
  );
}
