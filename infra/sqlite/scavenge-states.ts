import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { streamHasher } from '../../core/stream-hash.ts';
import type { StreamHasher } from '../../core/stream-hash.ts';
import type { ScavengeState, ScavengeStateOptions, ScavengeStates } from '../../core/ports/scavenge-state.ts';
import { guarded, invalidState } from './errors.ts';
import { SCHEMA, SCHEMA_VERSION } from './scavenge-tables.ts';
import { SqliteScavengeState } from './scavenge-state.ts';

/** Time in milliseconds that a connection waits for the one that is writing. */
const BUSY_MS_MAX = 10_000;

interface SqliteScavengeStatesOptions {
  /** Folder of the index. */
  readonly indexRoot: string;
  /** Of stream names: tells which hashes the names stored as collisions share. */
  readonly hasher?: StreamHasher;
}

/**
 * The scavenge database of a node: a file of SQLite, in the format of the reference (disk-format.md section 8).
 *
 * Its connections are all of one process, on any of its threads, and no other process may open it while there is one. So
 * SQLite keeps the index of the write-ahead log in the memory of the process and makes no `-shm` file: mapped to a file
 * that the disk then has no room for, it would kill the process with SIGBUS. The files stay those that the reference
 * reads: whoever opens them next rebuilds that index from the write-ahead log.
 */
export class SqliteScavengeStates implements ScavengeStates {
  readonly #folder: string;
  readonly #hasher: StreamHasher;

  constructor(options: SqliteScavengeStatesOptions) {
    this.#folder = join(options.indexRoot, 'scavenging');
    this.#hasher = options.hasher ?? streamHasher;
  }

  open(options: ScavengeStateOptions): ScavengeState {
    const file = join(this.#folder, 'scavenging.db');
    return guarded(() => {
      mkdirSync(this.#folder, { recursive: true });
      const state = this.#open(ofThisProcess(file), options);
      // One that a killed process of the reference has left, which nobody reads now that the database is ours.
      rmSync(`${file}-shm`, { force: true });
      return state;
    });
  }

  /** A database without a name: SQLite keeps it in memory, or in a temporary file when it outgrows the cache. */
  openTemporary(options: ScavengeStateOptions): ScavengeState {
    return this.#open('', options);
  }

  #open(place: string | URL, options: ScavengeStateOptions): ScavengeState {
    return guarded(() => {
      const db = new DatabaseSync(place, { timeout: BUSY_MS_MAX });
      try {
        configure(db, options);
        createOrCheck(db);
        return new SqliteScavengeState(db, this.#hasher, options.hashUsersCacheEntries);
      } catch (error) {
        db.close();
        throw error;
      }
    });
  }
}

/** Where SQLite opens a file for the connections of this process alone. On Windows, where a full disk kills no process, there is no such way. */
function ofThisProcess(file: string): string | URL {
  if (process.platform === 'win32') return file;
  const url = pathToFileURL(file);
  url.searchParams.set('vfs', 'unix-excl');
  return url;
}

/** The page size must come first: it can't be changed once anything has been written. */
function configure(db: DatabaseSync, { pageSizeBytes, cacheBytes }: ScavengeStateOptions): void {
  db.exec(`PRAGMA page_size = ${Math.trunc(pageSizeBytes)}`);
  db.exec('PRAGMA journal_mode = wal');
  db.exec('PRAGMA synchronous = 1');
  db.exec(`PRAGMA cache_size = ${-Math.max(1, Math.floor(cacheBytes / 1024))}`);
  const { page_size: pageSize } = db.prepare('PRAGMA page_size').get() as { page_size: number };
  if (pageSize !== pageSizeBytes) {
    throw invalidState(`has pages of ${pageSize} bytes where ${pageSizeBytes} are set. Set ScavengeBackendPageSize as it was, or begin anew`);
  }
}

function createOrCheck(db: DatabaseSync): void {
  if (versionOf(db) === null) create(db);
  const version = versionOf(db);
  if (version !== SCHEMA_VERSION) throw invalidState(`has schema version ${version ?? 'none'} where ${SCHEMA_VERSION} is known`);
}

/** Another connection may create it at the same time; the one that comes second finds it there. */
function create(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number };
    if (tables === 0) db.exec(SCHEMA);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** Null when there is no version table, as in a new file. */
function versionOf(db: DatabaseSync): number | null {
  const { found } = db.prepare("SELECT count(*) AS found FROM sqlite_schema WHERE name = 'SchemaVersion'").get() as { found: number };
  if (found === 0) return null;
  const row = db.prepare('SELECT max(version) AS version FROM SchemaVersion').get() as { version: number | null };
  return row.version ?? 0;
}
