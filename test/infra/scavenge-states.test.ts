import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Hash64, streamHasher } from '../../core/base/stream-hash.ts';
import type { ScavengeCheckpoint, ScavengeStateOptions } from '../../core/ports/scavenge-state.ts';
import { SqliteScavengeState } from '../../infra/sqlite/sqlite-scavenge-state.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { ACTIVE, STATE_OPTIONS } from '../contract/scavenge-state.contract.ts';
import { installFolder, unpackSet } from '../support/fixtures.ts';

const DONE: ScavengeCheckpoint = {
  point: { position: 9, eventNumber: 0, effectiveNowMs: 1_795_000_000_000, threshold: 0 },
  stage: 'Done',
};

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-state-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const indexRoot = () => join(folder, 'index');
const path = (name = 'scavenging.db') => join(indexRoot(), 'scavenging', name);
const open = (options: Partial<ScavengeStateOptions> = {}) =>
  new SqliteScavengeStates({ indexRoot: indexRoot() }).open({ ...STATE_OPTIONS, ...options });
const filesLeft = () => readdir(join(indexRoot(), 'scavenging'));
const hashOf = (name: string): [number, number] => {
  const out = new Hash64();
  streamHasher.hash(name, out);
  return [out.hi, out.lo];
};

/** Asks the file itself. */
function ask(sql: string): Record<string, unknown>[] {
  const db = new DatabaseSync(path());
  const statement = db.prepare(sql);
  statement.setReadBigInts(true);
  const rows = statement.all();
  db.close();
  return rows.map((row) => ({ ...row }));
}

function recorded(set: string): void {
  installFolder(
    folder,
    unpackSet(set).filter((file) => file.path.startsWith('index/scavenging/')),
  );
}

describe('recorded databases', () => {
  test('one that was left in the middle of a run', async () => {
    recorded('mid-2-interrupted');
    const state = open();
    expect(state.checkpoint()).toEqual({
      point: {
        position: 11_197_364,
        eventNumber: 0,
        effectiveNowMs: Date.UTC(2026, 10, 21, 7, 23, 7, 541),
        effectiveNowTicks: 9_061,
        threshold: 0,
      },
      stage: 'ExecutingChunks',
      doneChunk: 51,
    });
    expect([state.weight(0, 51), state.weight(52, 52), state.weight(52, 53), state.allWeightsZero()]).toEqual([
      0,
      376,
      804,
      false,
    ]);
    expect(state.chunkTimeRange(0)).toEqual({
      minMs: 1_795_245_768_909,
      minTicks: 3_830,
      maxMs: 1_795_245_769_654,
      maxTicks: 5_191,
    });
    expect(state.chunkTimeRange(86)).toBeUndefined();
    expect(state.collisions()).toEqual([]);
    state.close();
    expect(await filesLeft()).toEqual(['scavenging.db']);
  });

  test('rows read, and written back without any change', () => {
    recorded('mid-2-interrupted');
    const before = ask('SELECT * FROM OriginalStreamDatas ORDER BY key');
    const state = open();
    state.begin();
    const active = state.activeOriginals(null, 1_000);
    for (const { handle, data } of active)
      if (handle.kind === 'hash') state.setOriginal('', handle.hi, handle.lo, data);
    state.commit(state.checkpoint()!);
    state.close();
    expect(active).toHaveLength(before.filter(({ status }) => status === 1n).length);
    expect(active[0]).toEqual({
      handle: {
        kind: 'hash',
        hi: Number((-9_151_679_289_444_144_569n >> 32n) & 0xffff_ffffn),
        lo: Number(-9_151_679_289_444_144_569n & 0xffff_ffffn),
      },
      data: {
        isTombstoned: false,
        maxAge: null,
        maxCount: 6,
        truncateBefore: null,
        discardPoint: 132,
        maybeDiscardPoint: 132,
        status: 1,
      },
    });
    expect(ask('SELECT * FROM OriginalStreamDatas ORDER BY key')).toEqual(before);
  });

  test('every hash user is known, and data are found by its hash', () => {
    recorded('mid-2-interrupted');
    const users = ask('SELECT key, value FROM HashUsers').map(({ value }) => value as string);
    const meta = new Set(ask('SELECT key FROM MetastreamDatas').map(({ key }) => key));
    const state = open();
    state.begin();
    let found = 0;
    for (const name of users) {
      expect(state.register(name, ...hashOf(name))).toBe(false);
      if (state.metastream(name, ...hashOf(name)) !== undefined) found++;
    }
    state.commit(state.checkpoint()!);
    state.close();
    expect(found).toBe(meta.size);
    expect(ask('SELECT count(*) AS users FROM HashUsers')).toEqual([{ users: BigInt(users.length) }]);
  });

  test('the schema and the settings are letter for letter those of a new one', async () => {
    recorded('orders-5-scavenged');
    const questions = [
      'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name',
      'SELECT * FROM SchemaVersion',
      'PRAGMA page_size',
      'PRAGMA journal_mode',
      'PRAGMA encoding',
      'PRAGMA auto_vacuum',
      'PRAGMA user_version',
    ];
    const theirs = questions.map(ask);
    await rm(path());
    open().close();
    expect(questions.map(ask)).toEqual(theirs);
  });
});

describe('the file', () => {
  test('holds numbers as the reference stores them', () => {
    const state = open();
    state.begin();
    state.setOriginal('order-1', ...hashOf('order-1'), {
      ...ACTIVE,
      truncateBefore: Number.MAX_SAFE_INTEGER,
      maxAge: 60,
    });
    state.setMetastream('$$order-1', ...hashOf('$$order-1'), { isTombstoned: true, discardPoint: 0 });
    state.setChunkTimeRange(0, 1_795_245_768_909, 1_795_245_769_654, 3_830, 5_191);
    state.addWeight(0, 2);
    state.register('order-1', ...hashOf('order-1'));
    state.commit(DONE);
    state.close();
    expect(ask('SELECT * FROM OriginalStreamDatas')).toEqual([
      {
        key: -329_453_077_303_574_564n,
        isTombstoned: 0n,
        maxAge: 60n,
        maxCount: 3n,
        truncateBefore: 9_223_372_036_854_775_807n,
        discardPoint: 0n,
        maybeDiscardPoint: 0n,
        status: 1n,
      },
    ]);
    expect(ask('SELECT isTombstoned, discardPoint FROM MetastreamDatas')).toEqual([
      { isTombstoned: 1n, discardPoint: null },
    ]);
    expect(ask('SELECT * FROM ChunkTimeStampRanges')).toEqual([
      { key: 0n, min: 639_308_425_689_093_830n, max: 639_308_425_696_545_191n },
    ]);
    expect(ask('SELECT *, typeof(value) AS type FROM ChunkWeights')).toEqual([{ key: 0n, value: 2, type: 'real' }]);
    expect(ask('SELECT *, typeof(key) AS type FROM HashUsers')).toEqual([
      { key: -329_453_077_303_574_564n, value: 'order-1', type: 'integer' },
    ]);
    expect(ask('SELECT * FROM Checkpoint')).toEqual([
      {
        key: 0n,
        value:
          '{"scavengePoint":{"position":9,"effectiveNow":"2026-11-18T11:06:40"},"schemaVersion":"V0","checkpointStage":"Done"}',
      },
    ]);
  });

  test('is alone when the last connection is closed, in the folder of the index', async () => {
    const first = open();
    const second = open();
    first.begin();
    first.addWeight(0, 1);
    first.commit(DONE);
    second.begin();
    second.addWeight(0, 1);
    first.close();
    second.close();
    expect(await filesLeft()).toEqual(['scavenging.db']);
    const third = open();
    expect(third.weight(0, 0)).toBe(1);
    third.close();
    third.close();
  });

  test('nothing is mapped to a file that a full disk has no room for', async () => {
    const state = open();
    state.begin();
    state.addWeight(0, 1);
    state.commit(DONE);
    expect(await filesLeft()).toEqual(['scavenging.db', 'scavenging.db-wal']);
    state.close();
  });

  test.each([
    [
      'a killed process of the reference leaves is taken over',
      ['scavenging.db', 'scavenging.db-wal', 'scavenging.db-shm'],
      'theirs',
      'ours',
    ],
    [
      'a killed process of ours leaves is taken over by the reference',
      ['scavenging.db', 'scavenging.db-wal'],
      'ours',
      'theirs',
    ],
  ])('what %s', async (_, names, left, next) => {
    open().close();
    const copy = join(folder, 'copy');
    mkdirSync(join(copy, 'scavenging'), { recursive: true });
    const theirs = (file: string): DatabaseSync => {
      const db = new DatabaseSync(file);
      db.exec('PRAGMA journal_mode = wal; PRAGMA synchronous = 1');
      return db;
    };
    const killed = left === 'ours' ? open() : theirs(path());
    if (killed instanceof DatabaseSync) killed.exec('INSERT INTO ChunkWeights VALUES (7, 3.0)');
    else {
      killed.begin();
      killed.addWeight(7, 3);
      killed.commit(DONE);
    }
    for (const name of names) copyFileSync(path(name), join(copy, 'scavenging', name));
    killed.close();
    if (next === 'ours') {
      const state = new SqliteScavengeStates({ indexRoot: copy }).open(STATE_OPTIONS);
      expect(state.weight(0, 9)).toBe(3);
      state.close();
    } else {
      const db = theirs(join(copy, 'scavenging', 'scavenging.db'));
      expect(db.prepare('SELECT value FROM ChunkWeights WHERE key = 7').get()).toEqual({ value: 3 });
      db.close();
    }
    expect(await readdir(join(copy, 'scavenging'))).toEqual(['scavenging.db']);
  });

  test('a temporary state leaves no file', async () => {
    const states = new SqliteScavengeStates({ indexRoot: indexRoot() });
    const state = states.openTemporary(STATE_OPTIONS);
    state.begin();
    state.addWeight(0, 1);
    state.commit(DONE);
    expect(await readdir(folder)).toEqual([]);
    state.close();
    expect(await readdir(folder)).toEqual([]);
  });

  test.each([512, 4_096, 65_536])('has pages of %i bytes when that is set', (pageSizeBytes) => {
    open({ pageSizeBytes }).close();
    expect(ask('PRAGMA page_size')).toEqual([{ page_size: BigInt(pageSizeBytes) }]);
    open({ pageSizeBytes }).close();
  });
});

describe('refused, with the way out, and left as it is', () => {
  const invalid = expect.objectContaining({
    code: 'scavenge_state_invalid',
    message: expect.stringContaining('delete index/scavenging'),
  });

  test('other pages than are set', async () => {
    open().close();
    expect(() => open({ pageSizeBytes: 4_096 })).toThrow(invalid);
    open().close();
    expect(await filesLeft()).toEqual(['scavenging.db']);
  });

  test('pages that SQLite does not have', () => {
    expect(() => open({ pageSizeBytes: 16 })).toThrow(invalid);
  });

  test.each([
    'DELETE FROM SchemaVersion',
    'UPDATE SchemaVersion SET version = 2',
    'DROP TABLE SchemaVersion',
    'DROP TABLE ChunkWeights',
  ])('another schema: %s', (sql) => {
    open().close();
    const db = new DatabaseSync(path());
    db.exec(sql);
    db.close();
    expect(() => open()).toThrow(invalid);
  });

  test('a file that is no database', () => {
    mkdirSync(join(indexRoot(), 'scavenging'), { recursive: true });
    writeFileSync(path(), 'not a database, whatever its name says'.repeat(100));
    expect(() => open()).toThrow(invalid);
  });

  test('a damaged database', () => {
    recorded('mid-2-interrupted');
    const page = new Uint8Array(16_384).fill(0x5a);
    const db = new DatabaseSync(path());
    const { rootpage } = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'HashUsers'").get() as {
      rootpage: number;
    };
    db.close();
    const files = unpackSet('mid-2-interrupted').filter((file) => file.path.endsWith('.db'));
    const bytes = new Uint8Array(files[0]!.size);
    for (const extent of files[0]!.extents) bytes.set(extent.bytes, extent.at);
    bytes.set(page, (rootpage - 1) * 16_384);
    writeFileSync(path(), bytes);
    const state = open();
    state.begin();
    expect(() => state.register('a', 1, 2)).toThrow(invalid);
    state.rollback();
    state.close();
  });

  test('a folder that can not be made is an I/O error', () => {
    writeFileSync(indexRoot(), 'a file');
    expect(() => open()).toThrow(expect.objectContaining({ code: 'io_error' }));
  });
});

test('a full disk: the transaction is lost, the state goes on when there is room', () => {
  open().close();
  const db = new DatabaseSync(path());
  const { pages } = db.prepare('SELECT page_count AS pages FROM pragma_page_count').get() as { pages: number };
  db.exec(`PRAGMA max_page_count = ${pages + 2}`);
  const state = new SqliteScavengeState(db, streamHasher, 10);
  const fill = (): void => {
    state.begin();
    for (let i = 0; i < 5_000; i++) state.register(`a long name of a stream to fill the disk with, number ${i}`, i, i);
    state.commit(DONE);
  };
  expect(fill).toThrow(
    expect.objectContaining({
      code: 'disk_full',
      data: expect.objectContaining({ path: 'index/scavenging/scavenging.db' }),
    }),
  );
  state.rollback();
  expect(state.checkpoint()).toBeNull();
  db.exec('PRAGMA max_page_count = 1000000');
  fill();
  expect(state.checkpoint()).toEqual(DONE);
  state.close();
});

describe('a check of the database', () => {
  const states = () => new SqliteScavengeStates({ indexRoot: indexRoot() });
  /** Some hundred rows, in a file of many pages. */
  function filled(): void {
    const state = open();
    state.begin();
    for (let i = 0; i < 4_000; i++) state.register(`a-stream-with-a-name-${i}`, ...hashOf(`a-stream-with-a-name-${i}`));
    state.commit(DONE);
    state.close();
  }
  const bytesLeft = async () =>
    Promise.all((await filesLeft()).map(async (name) => [name, (await readFile(path(name))).toString('latin1')]));

  test('finds none, or nothing wrong, and changes nothing', async () => {
    expect([states().isOnDisk(), states().check('quick')]).toEqual([false, null]);
    expect(await readdir(folder)).toEqual([]);
    filled();
    const before = await bytesLeft();
    for (const depth of ['quick', 'thorough'] as const) expect(states().check(depth)).toEqual([]);
    expect(await bytesLeft()).toEqual(before);
  });

  test('reads what a killed process has left in the write-ahead log, and leaves it there', async () => {
    const copy = join(folder, 'copy');
    const state = open();
    state.begin();
    state.register('a', ...hashOf('a'));
    state.commit(DONE);
    mkdirSync(join(copy, 'scavenging'), { recursive: true });
    for (const name of ['scavenging.db', 'scavenging.db-wal']) copyFileSync(path(name), join(copy, 'scavenging', name));
    state.close();
    expect(new SqliteScavengeStates({ indexRoot: copy }).check('thorough')).toEqual([]);
    expect((await readdir(join(copy, 'scavenging'))).sort()).toEqual(['scavenging.db', 'scavenging.db-wal']);
    const again = new SqliteScavengeStates({ indexRoot: copy }).open(STATE_OPTIONS);
    expect(again.checkpoint()).toEqual(DONE);
    again.close();
  });

  test.each([
    [
      'a page',
      (bytes: Buffer) => bytes.fill(0xa5, 2 * STATE_OPTIONS.pageSizeBytes, 2 * STATE_OPTIONS.pageSizeBytes + 200),
    ],
    ['the header', (bytes: Buffer) => bytes.fill(0x20, 0, 30)],
    ['the schema', (bytes: Buffer) => bytes.fill(0xff, 100, 140)],
    ['the last half', (bytes: Buffer) => bytes.fill(0, bytes.length / 2)],
  ] as const)('finds damage in %s, which `remove` takes away', async (_, damage) => {
    filled();
    const bytes = await readFile(path());
    damage(bytes);
    await writeFile(path(), bytes);
    const found = states().check('quick')!;
    expect(found.length).toBeGreaterThan(0);
    expect(found.length).toBeLessThanOrEqual(5);
    expect(states().check('thorough')!.length).toBeGreaterThan(0);
    expect((await readFile(path())).equals(bytes)).toBe(true);
    states().remove();
    expect(await filesLeft()).toEqual([]);
    const state = open();
    expect(state.checkpoint()).toBe(null);
    state.close();
  });
});
