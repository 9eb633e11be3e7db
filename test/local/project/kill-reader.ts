import { DatabaseSync } from 'node:sqlite';
import { openStore } from '../../../local/embedded/index.ts';
import { type Model, project, type RecordedEvent } from '../../../local/project/index.ts';
import { postgres, type PostgresClient } from '../../../local/project-postgres/index.ts';
import { sqlite } from '../../../local/project-sqlite/index.ts';
import { Random } from '../../support/random.ts';
import { ALL, BATCH_EVENTS, CREATE, upsert } from './kills.ts';
import { loadPostgres } from './postgres.ts';

/**
 * A reader that comes to the end of a log and ends, unless it is killed before: `node kill-reader.ts BUCKET KIND PLACE
 * SEED STILL`, where it stands still within event STILL if that is not 0. It says `begin`, a point for each event that
 * it begins, and `done`. Batches are small, and handlers wait now and then, so that a kill meets all there is between
 * two statements.
 */

const [bucket, kind, place, seed, still] = process.argv.slice(2) as [string, string, string, string, string];
let begun = 0;
/** A timer keeps the process alive. */
const STILL_MS = 60_000;
const random = new Random(Number(seed));
const pause = async () => {
  for (let turns = random.chance(0.3) ? random.int(0, 200) : 0; turns > 0; turns--) await new Promise(setImmediate);
};

async function read<Tx>(model: Model<Tx>, run: (tx: Tx, sql: string, values?: readonly [string, number]) => unknown) {
  const store = await openStore({ bucket, upkeep: false, chunkBytes: 1_048_576 });
  const sql = kind === 'sqlite' ? upsert('?1', '?2') : upsert('$1', '$2::int');
  process.stdout.write('begin\n');
  await project(store, {
    name: 'totals',
    store: model,
    batch: { events: BATCH_EVENTS },
    init: async (tx) => void (await run(tx, CREATE)),
    on: {
      Counted: async (tx, { stream, version }: RecordedEvent) => {
        process.stdout.write('.');
        await run(tx, sql, [stream, version]);
        if (++begun === Number(still)) await new Promise(() => setInterval(() => {}, STILL_MS));
        await pause();
        await run(tx, sql, [ALL, version]);
      },
    },
  }).catchUp();
  process.stdout.write('done\n');
  await store.close();
}

if (kind === 'sqlite') {
  const db = new DatabaseSync(place, { timeout: 10_000 });
  await read(sqlite(db), (tx, sql, values = undefined) =>
    values === undefined ? tx.exec(sql) : tx.prepare(sql).run(...values),
  );
  db.close();
} else {
  const pool = (await loadPostgres()).poolOf(place);
  await read(postgres<PostgresClient>(pool), (client, sql, values) => client.query(sql, values?.map(String)));
  await pool.end();
}
