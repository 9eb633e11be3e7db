/** `skua/project-sqlite`: models in SQLite, each batch in a transaction with where the projection is. */
import type { Model } from '../project/api.ts';
import { quotedTable } from '../project/table-name.ts';

/** What is needed of a database: `DatabaseSync` of `node:sqlite` has it. */
export interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): {
    get(...values: string[]): unknown;
    run(...values: string[]): { readonly changes: number | bigint };
  };
  /** Where it is known: whether a transaction is open. */
  readonly isTransaction?: boolean;
}

/** What `sqlite` takes. */
export interface SqliteOptions {
  /** Of where projections are, each in a row. It is made where it is absent. Default `skua_projections`. */
  readonly table?: string;
}

/** Another connection has the file for itself. */
const BUSY = 5;
const BUSY_TRIES_MAX = 200;
const BUSY_WAIT_MS = 25;

/** One batch at a time for each connection, however many projections use it. */
const turns = new WeakMap<SqliteDatabase, Promise<unknown>>();

/**
 * Models in a SQLite database: handlers get the database, in a transaction. Handlers that answer at once, as all of
 * `node:sqlite` does, let nothing come in between; where they wait for something, give the projection a connection of
 * its own, since what else is written through this one would be part of the transaction.
 *
 * @throws `bad_option` for a name that no table can have.
 *
 * @example
 * const db = new DatabaseSync('./models.db');
 * const orders = project(store, { name: 'orders', store: sqlite(db), init: (db) => db.exec('CREATE TABLE …'), on });
 */
export function sqlite<Database extends SqliteDatabase>(
  database: Database,
  { table = 'skua_projections' }: SqliteOptions = {},
): Model<Database> {
  const quoted = quotedTable(table);
  const textOf = (name: string): string | null => {
    const row = database.prepare(`SELECT checkpoint FROM ${quoted} WHERE name = ?`).get(name);
    return (row as { readonly checkpoint: string } | undefined)?.checkpoint ?? null;
  };
  return {
    load: (name) =>
      inTurn(database, async () => {
        await whenFree(() =>
          database.exec(
            `CREATE TABLE IF NOT EXISTS ${quoted} (name TEXT NOT NULL PRIMARY KEY, checkpoint TEXT NOT NULL) STRICT`,
          ),
        );
        return textOf(name);
      }),
    commit: (name, previous, work) =>
      inTurn(database, async () => {
        // The file is this connection's from here on, so that what is compared stays so.
        await whenFree(() => database.exec('BEGIN IMMEDIATE'));
        let isOpen = true;
        try {
          if (textOf(name) !== previous) return false;
          const working = work(database);
          const text = typeof working === 'string' ? working : await working;
          if (database.isTransaction === false) {
            isOpen = false;
            throw new Error('A handler has ended the transaction of its batch: leave BEGIN, COMMIT and ROLLBACK out.');
          }
          database
            .prepare(
              `INSERT INTO ${quoted} (name, checkpoint) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET checkpoint = excluded.checkpoint`,
            )
            .run(name, text);
          // In the default journal it waits for those who read.
          await whenFree(() => database.exec('COMMIT'));
          isOpen = false;
          return true;
        } finally {
          // After some errors, as of a full disk, SQLite has done so already.
          if (isOpen && database.isTransaction !== false) database.exec('ROLLBACK');
        }
      }),
  };
}

async function inTurn<T>(database: SqliteDatabase, work: () => Promise<T>): Promise<T> {
  const before = turns.get(database) ?? Promise.resolve();
  const turn = before.then(work);
  turns.set(
    database,
    turn.catch(() => {}),
  );
  return turn;
}

async function whenFree(begin: () => void): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return begin();
    } catch (error) {
      if ((error as { readonly errcode?: number }).errcode !== BUSY || tries === BUSY_TRIES_MAX) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, BUSY_WAIT_MS);
      });
    }
  }
}
