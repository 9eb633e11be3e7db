import { EventEmitter } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { openStore } from '../../../local/embedded/index.ts';
import { elsewhere, memory, type MemoryModel, project } from '../../../local/project/index.ts';
import { postgres } from '../../../local/project-postgres/index.ts';
import { sqlite } from '../../../local/project-sqlite/index.ts';
import { modelTests } from './contract.ts';

interface Lines {
  made: number;
  readonly lines: string[];
}

let inMemory: MemoryModel<Lines>;
modelTests<Lines>(
  'memory',
  {
    open: async () => inMemory,
    init: (state) => {
      if (state.made++ > 0) throw new Error('It was made before.');
    },
    add: ({ lines }, line) => {
      if (lines.includes(line)) throw new Error(`${line} is there.`);
      lines.push(line);
    },
    lines: async () => inMemory.state.lines,
    reset: async () => {
      inMemory = memory(() => ({ made: 0, lines: [] as string[] }));
    },
  },
  { isShared: false },
);

const folder = await mkdtemp(path.join(tmpdir(), 'skua-sqlite-'));
let databases: DatabaseSync[] = [];
let file = 0;
const connection = () => {
  const database = new DatabaseSync(path.join(folder, `${file}.db`));
  databases.push(database);
  return database;
};
const closeAll = () => {
  for (const database of databases) database.close();
  databases = [];
};
afterAll(async () => {
  closeAll();
  await rm(folder, { recursive: true, force: true });
});
modelTests<DatabaseSync>(
  'SQLite',
  {
    open: async () => sqlite(connection()),
    init: (db) => db.exec('CREATE TABLE lines (number INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT UNIQUE) STRICT'),
    add: (db, line) => db.prepare('INSERT INTO lines (line) VALUES (?)').run(line),
    lines: async () =>
      connection()
        .prepare('SELECT line FROM lines ORDER BY number')
        .all()
        .map(({ line }) => String(line)),
    reset: async () => {
      closeAll();
      file++;
    },
  },
  { isShared: true },
);

describe('SQLite', () => {
  test('two projections share a connection, and one that ends the transaction is told so', async () => {
    const store = await openStore({ memory: true });
    const db = new DatabaseSync(':memory:');
    for (let i = 0; i < 20; i++) await store.append('a', { type: 'Counted' });
    const one = (name: string) =>
      project(store, {
        name,
        store: sqlite(db, { table: 'places' }),
        init: () => db.exec(`CREATE TABLE "${name}" (version INTEGER)`),
        batch: { events: 3 },
        on: {
          Counted: async (tx, { version }) => {
            await Promise.resolve();
            tx.prepare(`INSERT INTO "${name}" VALUES (?)`).run(version);
          },
        },
      });
    await Promise.all([one('one').catchUp(), one('two').catchUp()]);
    for (const name of ['one', 'two'])
      expect(db.prepare(`SELECT count(*) AS count FROM "${name}"`).get()).toEqual({ count: 20 });
    expect(db.prepare('SELECT name FROM places ORDER BY name').all()).toEqual([{ name: 'one' }, { name: 'two' }]);
    const rude = project(store, { name: 'rude', store: sqlite(db), on: { Counted: (tx) => tx.exec('COMMIT') } });
    await expect(rude.catchUp()).rejects.toThrow('A handler has ended the transaction');
    await store.close();
    db.close();
  });

  test('a commit waits for another connection that reads', async () => {
    closeAll();
    file++;
    const store = await openStore({ memory: true });
    await store.append('a', { type: 'Counted' });
    const [db, other] = [connection(), connection()];
    const projection = project(store, {
      name: 'one',
      store: sqlite(db),
      init: (tx) => tx.exec('CREATE TABLE seen (version INTEGER)'),
      on: { Counted: (tx, { version }) => void tx.prepare('INSERT INTO seen VALUES (?)').run(version) },
    });
    await projection.catchUp();
    await store.append('a', { type: 'Counted' });
    const reading = other.prepare('SELECT version FROM seen').iterate();
    expect(reading.next().value).toEqual({ version: 0 });
    let isEnded = false;
    const running = projection.catchUp().finally(() => {
      isEnded = true;
    });
    running.catch(() => {});
    while (!db.isTransaction && !isEnded) await new Promise((resolve) => setImmediate(resolve));
    reading.return?.();
    expect(await running).toMatchObject({ isCaughtUp: true, events: 2 });
    expect(other.prepare('SELECT count(*) AS count FROM seen').get()).toEqual({ count: 2 });
    await store.close();
  });
});

test('what another instance has done meanwhile is no failure: it is looked at again', async () => {
  const store = await openStore({ memory: true });
  for (let i = 0; i < 5; i++) await store.append('a', { type: 'Counted' });
  const model = memory(() => [] as number[]);
  let commits = 0;
  const overtaken = {
    ...model,
    // The first makes the row, the second fails, and the third would keep what came before.
    commit: async (...options: Parameters<typeof model.commit>) => ++commits !== 3 && model.commit(...options),
  };
  const projection = project(store, {
    name: 'counts',
    store: overtaken,
    on: {
      Counted: (state, { version }) => {
        if (version === 3) throw new Error('no connection');
        state.push(version);
      },
    },
  });
  await expect(projection.catchUp()).rejects.toMatchObject({ code: 'projection_failed', data: { version: 3 } });
  expect(model.state).toEqual([0, 1, 2]);
  await store.close();
});

describe('PostgreSQL', () => {
  test('a connection that is lost while a handler works rejects, and does not end the process', async () => {
    const store = await openStore({ memory: true });
    await store.append('a', { type: 'Counted' });
    const client = Object.assign(new EventEmitter(), {
      query: async () => {
        if (isLost) throw new Error('The connection was lost before.');
        return { rows: [{ checkpoint: JSON.stringify({ checkpoint: null }) }], rowCount: 1 };
      },
      release: (destroy?: boolean) => void released.push(destroy),
    });
    const released: (boolean | undefined)[] = [];
    let isLost = false;
    const projection = project(store, {
      name: 'counts',
      store: postgres({ connect: async () => client }),
      on: {
        Counted: (tx) => {
          isLost = true;
          // Throws where nobody listens.
          tx.emit('error', new Error('Connection terminated unexpectedly'));
        },
      },
    });
    await expect(projection.run()).rejects.toThrow('The connection was lost before.');
    expect(released).toEqual([false, true]);
    expect(client.listenerCount('error')).toBe(0);
    await store.close();
  });
});

test('what a handler returns is awaited, a query of a library too that begins when somebody waits for it', async () => {
  const store = await openStore({ memory: true });
  for (let i = 0; i < 3; i++) await store.append('a', { type: 'Counted' });
  const db = new DatabaseSync(':memory:');
  const query = (sql: string) => ({
    // oxlint-disable-next-line unicorn/no-thenable -- Such a query is what this is about.
    then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
      try {
        resolve(db.exec(sql));
      } catch (error) {
        reject(error);
      }
    },
  });
  const projection = (name: string, value: string) =>
    project(store, {
      name,
      store: sqlite(db),
      init: () => query(`CREATE TABLE ${name} (version INTEGER)`),
      on: { Counted: () => query(`INSERT INTO ${name} VALUES (${value})`) },
    });
  await projection('good', '1').catchUp();
  expect(db.prepare('SELECT count(*) AS count FROM good').get()).toEqual({ count: 3 });
  await expect(projection('bad', 'no such column').catchUp()).rejects.toMatchObject({ code: 'projection_failed' });
  await store.close();
  db.close();
});

test('names of tables are checked', () => {
  for (const table of ['', 'a b', 'a"b', 'a.b.c', '1a', 'a'.repeat(64), 'a.', 'ä', 7 as never]) {
    expect(() => sqlite(new DatabaseSync(':memory:'), { table })).toThrow(/can't be the name of a table/);
    expect(() => postgres({ connect: () => Promise.reject(new Error()) }, { table })).toThrow(/name of a table/);
  }
});

test('options that can not be meant are refused', async () => {
  const store = await openStore({ memory: true });
  const good = { name: 'a', store: memory(() => ({})), on: {} };
  for (const bad of [
    { name: '' },
    { name: 'a'.repeat(201) },
    { store: undefined },
    { on: null },
    { on: { A: 1 } },
    { batch: { events: 0 } },
    { batch: { events: 10_001 } },
    { batch: { bytes: 0 } },
    { batch: { milliseconds: Number.NaN } },
  ])
    expect(() => project(store, { ...good, ...bad } as never)).toThrow(/The projection can't be made/);
  await expect(project(store, good).catchUp({ deadline: new Date(Number.NaN) })).rejects.toMatchObject({
    code: 'bad_option',
  });
  await store.close();
});

test('elsewhere an event comes again where its place was not saved, and one alone', async () => {
  const store = await openStore({ memory: true });
  for (let i = 0; i < 5; i++) await store.append('a', { type: 'Counted' });
  const sent: number[] = [];
  const places = new Map<string, string>();
  let saves = 0;
  const mails = () =>
    project(store, {
      name: 'mails',
      store: elsewhere(sent, {
        load: async (name) => places.get(name) ?? null,
        save: async (name, text, previous) => {
          if (++saves === 4) throw new Error('The process has ended.');
          if ((places.get(name) ?? null) !== previous) return false;
          places.set(name, text);
          return true;
        },
      }),
      on: { Counted: (to, { version }) => void to.push(version) },
    });
  await expect(mails().catchUp()).rejects.toThrow('The process has ended.');
  await mails().catchUp();
  expect(sent).toEqual([0, 1, 2, 2, 3, 4]);
  places.set('mails', 'something else');
  await expect(mails().catchUp()).rejects.toMatchObject({ code: 'checkpoint_unknown' });
  await store.close();
});

test('elsewhere, in batches, what was handled before an event that failed is not handled again', async () => {
  const store = await openStore({ memory: true });
  for (let i = 0; i < 5; i++) await store.append('a', { type: 'Counted' });
  const sent: number[] = [];
  let place: string | null = null;
  let isBroken = true;
  const mails = project(store, {
    name: 'mails',
    store: elsewhere(sent, { load: async () => place, save: async (_, text) => ((place = text), true) }),
    batch: { events: 10 },
    on: {
      Counted: (to, { version }) => {
        if (isBroken && version === 3) throw new Error('no connection');
        to.push(version);
      },
    },
  });
  await expect(mails.catchUp()).rejects.toMatchObject({ code: 'projection_failed', data: { version: 3 } });
  isBroken = false;
  await mails.catchUp();
  expect(sent).toEqual([0, 1, 2, 3, 4]);
  await store.close();
});

test('begins where it says, once, and gives what has no handler to the one of all others', async () => {
  const store = await openStore({ memory: true });
  const { position } = await store.append('a', { type: 'Sent' });
  await store.append('a', [{ type: 'Sent' }, { type: 'Lost' }]);
  const behind = async (after: 'start' | 'end' | typeof position): Promise<string[]> => {
    const model = memory(() => [] as string[]);
    const one = project(store, {
      name: 'one',
      after,
      store: model,
      on: { Sent: (state, { version }) => void state.push(`sent ${version}`) },
      onOther: (state, { type }) => void state.push(type),
    });
    await one.catchUp();
    await store.append('b', { type: 'Found' });
    await one.catchUp();
    return model.state;
  };
  expect(await behind('end')).toEqual(['Found']);
  expect(await behind(position)).toEqual(['sent 1', 'Lost', 'Found', 'Found']);
  expect(await behind('start')).toEqual(['sent 0', 'sent 1', 'Lost', 'Found', 'Found', 'Found']);
  await expect(behind({ commit: position.commit + 1, prepare: position.prepare + 1 })).rejects.toMatchObject({
    code: 'checkpoint_unknown',
  });
  const made = { name: 'one', store: memory(() => 0), on: {} };
  expect(() => project(store, { ...made, after: 'end', filter: { stream: 'a' } })).toThrow(/after can be start only/);
  expect(() => project(store, { ...made, after: 7 as never })).toThrow(/after must be/);
  await store.close();
});

test('a batch is one transaction, and reads ahead no more than another one', async () => {
  const store = await openStore({ memory: true });
  await store.append(
    'a',
    Array.from({ length: 2_000 }, (_, i) => ({ type: 'Counted', data: { i } })),
  );
  let given = 0;
  let handled = 0;
  let ahead = 0;
  const source = {
    checkpoint: store.checkpoint.bind(store),
    async *subscribe(options?: Parameters<typeof store.subscribe>[0]) {
      for await (const event of store.subscribe(options)) {
        ahead = Math.max(ahead, ++given - handled);
        yield event;
      }
    },
  };
  const counts = memory(() => ({ count: 0 }));
  await project(source, {
    name: 'counts',
    store: counts,
    batch: { events: 50 },
    on: {
      Counted: async (state) => {
        await Promise.resolve();
        state.count++;
        handled++;
      },
    },
  }).catchUp();
  expect(counts.state.count).toBe(2_000);
  // One batch under way, one that waits, and the event that is handed over.
  expect(ahead).toBeLessThanOrEqual(101);
  await store.close();
});

test('a log that is exchanged while it is read stops a projection at its next batch', async () => {
  const [first, second] = await Promise.all([openStore({ memory: true }), openStore({ memory: true })]);
  await first.append('a', [{ type: 'Counted' }, { type: 'Counted' }]);
  for (let i = 0; i < 9; i++) await second.append('b', { type: 'Counted' });
  let store = first;
  const seen = memory(() => ({ lines: [] as string[] }));
  const source = {
    checkpoint: (options?: Parameters<typeof store.checkpoint>[0]) => store.checkpoint(options),
    // A subscription that was cut and found another log behind the address, which has grown beyond its place.
    async *subscribe() {
      for await (const event of first.read('a')) yield event;
      while (seen.state.lines.length < 2) await new Promise((resolve) => setImmediate(resolve));
      store = second;
      for await (const event of second.read('b', { from: 8 })) yield event;
    },
  };
  const on = { Counted: (state: typeof seen.state, event: { stream: string }) => void state.lines.push(event.stream) };
  const running = project(source, { name: 'seen', store: seen, on }).run();
  await expect(running).rejects.toMatchObject({ code: 'checkpoint_unknown' });
  expect(seen.state.lines).toEqual(['a', 'a']);
  await Promise.all([first.close(), second.close()]);
});
