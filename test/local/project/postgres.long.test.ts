import type { EventEmitter } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../../local/embedded/index.ts';
import { project } from '../../../local/project/index.ts';
import { postgres, type PostgresClient } from '../../../local/project-postgres/index.ts';
import { modelTests } from './contract.ts';
import { loadPostgres, NO_POSTGRES, type TestPool, type TestPostgres } from './postgres.ts';

describe.skipIf(NO_POSTGRES !== null)(`a PostgreSQL server${NO_POSTGRES === null ? '' : ` (${NO_POSTGRES})`}`, () => {
  let module: TestPostgres;
  let server: Awaited<ReturnType<TestPostgres['startPostgres']>>;
  let admin: TestPool;
  let pools: TestPool[] = [];
  let database = 0;
  beforeAll(async () => {
    module = await loadPostgres();
    server = await module.startPostgres();
    admin = module.poolOf(server.host);
  });
  afterAll(async () => {
    await Promise.all([admin, ...pools].map((pool) => pool?.end()));
    await server?.stop();
  });
  const newPool = () => {
    const pool = module.poolOf(server.host, `test_${database}`);
    pools.push(pool);
    return pool;
  };
  const reset = async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    pools = [];
    await admin.query(`CREATE DATABASE test_${++database}`);
  };

  modelTests<PostgresClient>(
    'PostgreSQL',
    {
      open: async () => postgres(newPool()),
      init: async (client) =>
        void (await client.query('CREATE TABLE lines (number serial PRIMARY KEY, line text UNIQUE)')),
      add: async (client, line) => void (await client.query('INSERT INTO lines (line) VALUES ($1)', [line])),
      lines: async () => {
        const pool = pools[0] ?? newPool();
        const isThere = await pool.query("SELECT to_regclass('lines') IS NOT NULL AS yes");
        if (isThere.rows[0]!['yes'] !== true) return [];
        const { rows } = await pool.query('SELECT line FROM lines ORDER BY number');
        return rows.map(({ line }) => String(line));
      },
      reset,
    },
    { isShared: true },
  );

  test('a table lies in a schema; an error that a handler passes over, and an end of the transaction, are told', async () => {
    await reset();
    const pool = newPool();
    await pool.query('CREATE SCHEMA "Models"');
    const store = await openStore({ memory: true });
    await store.append('a', { type: 'Counted' });
    const model = postgres(pool, { table: 'Models.places' });
    const failing = (name: string, handler: (client: PostgresClient) => Promise<unknown>) =>
      project(store, { name, store: model, on: { Counted: async (client) => void (await handler(client)) } }).catchUp();
    await expect(failing('over', (client) => client.query('SELECT nothing').catch(() => {}))).rejects.toThrow(
      /transaction is aborted/,
    );
    await expect(failing('end', (client) => client.query('ROLLBACK'))).rejects.toThrow(/has ended the transaction/);
    await failing('well', (client) => client.query('SELECT 1'));
    const { rows } = await pool.query('SELECT name FROM "Models".places ORDER BY name');
    expect(rows).toEqual([{ name: 'end' }, { name: 'over' }, { name: 'well' }]);
    await store.close();
  });

  test('a connection that the server ends while a handler works ends the run, and not the process', async () => {
    await reset();
    const store = await openStore({ memory: true });
    await store.append('a', { type: 'Counted' });
    const projection = project(store, {
      name: 'ended',
      store: postgres(newPool()),
      on: {
        Counted: async (client) => {
          const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
          const isLost = new Promise((resolve) => (client as unknown as EventEmitter).once('end', resolve));
          await admin.query(`SELECT pg_terminate_backend(${(rows[0] as { pid: number }).pid})`);
          await isLost;
        },
      },
    });
    await expect(projection.run()).rejects.toThrow(/connection/);
    await store.close();
  });
});
