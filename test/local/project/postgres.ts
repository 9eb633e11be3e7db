import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { PostgresClient } from '../../../local/project-postgres/index.ts';

/** The PostgreSQL of tests, where it is installed (`npm run install:tests`). */

export interface TestPool {
  connect(): Promise<PostgresClient>;
  query(text: string): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
  end(): Promise<void>;
}

export interface TestPostgres {
  startPostgres(): Promise<{ readonly host: string; stop(): Promise<void> }>;
  poolOf(host: string, database?: string): TestPool;
}

const FOLDER = new URL('../../postgres/', import.meta.url);

/** Why tests of PostgreSQL are skipped; null where they run. */
export const NO_POSTGRES = existsSync(fileURLToPath(new URL('node_modules/pg/package.json', FOLDER)))
  ? process.platform === 'linux' && process.arch === 'x64'
    ? null
    : 'there is a PostgreSQL for Linux on x64 alone'
  : 'npm run install:tests has not been run';

/** It is a package of its own, which need not be there. */
export async function loadPostgres(): Promise<TestPostgres> {
  return (await import(new URL('server.ts', FOLDER).href)) as TestPostgres;
}
