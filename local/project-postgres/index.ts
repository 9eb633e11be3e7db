/** `skua/project-postgres`: models in PostgreSQL, each batch in a transaction with where the projection is. */
import type { Model } from '../project/api.ts';
import { quotedTable } from '../project/table-name.ts';

/** What is needed of a connection: a `PoolClient` of `pg` has it. */
export interface PostgresClient {
  query(
    text: string,
    values?: readonly string[],
  ): Promise<{ readonly rows: readonly unknown[]; readonly rowCount: number | null; readonly command?: string }>;
  /** True: it is not used again. */
  release(destroy?: boolean): void;
  /** Tells of a connection that is lost while no query is under way. */
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
}

/** What is needed of a pool: a `Pool` of `pg` has it. */
export interface PostgresPool<Client extends PostgresClient> {
  connect(): Promise<Client>;
}

/** What `postgres` takes. */
export interface PostgresOptions {
  /**
   * Of where projections are, each in a row; with a schema before a point, if you like. It is made where it is absent.
   * Default `skua_projections`.
   */
  readonly table?: string;
}

/** A setting that lasts as long as the transaction of the batch: a handler that ends that is found out. */
const MARK = 'skua.projection';
const UNDEFINED_TABLE = '42P01';
/** Another process makes the table in the same moment. */
const MADE_ELSEWHERE = ['23505', '42P07'];

/**
 * Models in PostgreSQL: handlers get a connection, in the transaction of the batch. Its row is locked until that ends,
 * so that instances of one name take turns.
 *
 * @throws `bad_option` for a name that no table can have.
 *
 * @example
 * const pool = new Pool({ connectionString });
 * const projection = project(store, {
 *   name: 'orders',
 *   store: postgres(pool),
 *   init: async (client) => void (await client.query('CREATE TABLE …')),
 *   on,
 * });
 */
export function postgres<Client extends PostgresClient>(
  pool: PostgresPool<Client>,
  { table = 'skua_projections' }: PostgresOptions = {},
): Model<Client> {
  const quoted = quotedTable(table);
  const select = `SELECT checkpoint FROM ${quoted} WHERE name = $1`;
  const mark = `set_config('${MARK}', $1, true)`;
  return {
    load: (name) =>
      withClient(pool, async (client) => {
        try {
          return textOf((await client.query(select, [name])).rows);
        } catch (error) {
          if (codeOf(error) !== UNDEFINED_TABLE) throw error;
        }
        try {
          await client.query(`CREATE TABLE IF NOT EXISTS ${quoted} (name text PRIMARY KEY, checkpoint text NOT NULL)`);
        } catch (error) {
          if (!MADE_ELSEWHERE.includes(codeOf(error))) throw error;
        }
        return textOf((await client.query(select, [name])).rows);
      }),
    commit: (name, previous, work) =>
      withClient(pool, (client) =>
        inTransaction(client, async () => {
          if (previous === null) {
            // Whoever is first has the name; another one waits here until that has ended.
            const { rowCount } = await client.query(
              `INSERT INTO ${quoted} (name, checkpoint) VALUES ($1, '') ON CONFLICT (name) DO NOTHING RETURNING ${mark}`,
              [name],
            );
            if (rowCount !== 1) return false;
          } else {
            const locked = `SELECT checkpoint, ${mark} FROM ${quoted} WHERE name = $1 FOR UPDATE`;
            if (textOf((await client.query(locked, [name])).rows) !== previous) return false;
          }
          const text = await work(client);
          const { rowCount } = await client.query(
            `UPDATE ${quoted} SET checkpoint = $2 WHERE name = $1 AND checkpoint = $3 AND current_setting('${MARK}', true) = $1`,
            [name, text, previous ?? ''],
          );
          if (rowCount !== 1)
            throw new Error(
              `A handler of the projection ${name} has ended the transaction of its batch, or has changed its row: leave BEGIN, COMMIT and ROLLBACK out.`,
            );
          return true;
        }),
      ),
  };
}

async function withClient<Client extends PostgresClient, T>(
  pool: PostgresPool<Client>,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  // A pool listens only while nobody has the client, and an error without a listener ends the process.
  client.on('error', ignored);
  let isUsable = false;
  try {
    const result = await work(client);
    isUsable = true;
    return result;
  } finally {
    // A connection on which something failed may be in any state.
    client.release(!isUsable);
    client.off('error', ignored);
  }
}

/** A connection that was lost rejects the next query. */
function ignored(): void {}

/** What gives false is rolled back, and what throws. */
async function inTransaction(client: PostgresClient, work: () => Promise<boolean>): Promise<boolean> {
  // Whatever is the default: the row that is locked is read as it is then.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  let isDone: boolean;
  try {
    isDone = await work();
  } catch (error) {
    // The connection is closed next, by which the server rolls back, where this does not reach it.
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
  const { command } = await client.query(isDone ? 'COMMIT' : 'ROLLBACK');
  // To the end of a transaction that has failed the server answers so, and without an error.
  if (isDone && command === 'ROLLBACK')
    throw new Error('The transaction of a batch has failed: a handler must not pass over an error of the database.');
  return isDone;
}

function textOf(rows: readonly unknown[]): string | null {
  return (rows[0] as { readonly checkpoint: string } | undefined)?.checkpoint ?? null;
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown }).code);
}
