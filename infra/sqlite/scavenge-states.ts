import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { isSkuaError } from '../../core/base/errors.ts';
import { streamHasher } from '../../core/base/stream-hash.ts';
import type { StreamHasher } from '../../core/base/stream-hash.ts';
import type {
  ScavengeCheckpoint,
  ScavengeState,
  ScavengeStateOptions,
  ScavengeStates,
} from '../../core/ports/scavenge-state.ts';
import { isOwnName } from '../../core/ports/own-names.ts';
import { removeFileNow } from '../fs/file-removal.ts';
import { loadSqlite } from '../load-sqlite.ts';
import { guarded, invalidState } from './sqlite-errors.ts';
import { SCHEMA, SCHEMA_VERSION } from './scavenge-tables.ts';
import { SqliteScavengeState } from './sqlite-scavenge-state.ts';

/** Time in milliseconds that a connection waits for the one that is writing. */
const BUSY_MS_MAX = 10_000;
/** Findings of a check of the database. */
const CHECK_FINDINGS_MAX = 5;

/** Several threads may open the database at the same time. */
function makeOne(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

const isOwnFile = (name: string): boolean => isOwnName(`index/scavenging/${name}`);

interface SqliteScavengeStatesOptions {
  /** Folder of the index. */
  readonly indexRoot: string;
  /** Of stream names: tells which hashes the names stored as collisions share. */
  readonly hasher?: StreamHasher;
}

/**
 * The scavenge database of a node: a file of SQLite, in the format of the reference.
 *
 * Its connections are all of one process, on any of its threads, and no other process may open it while there is one.
 * So SQLite keeps the index of the write-ahead log in the memory of the process and makes no `-shm` file: mapped to a
 * file that the disk then has no room for, it would kill the process with SIGBUS. The files stay those that the
 * reference reads: the process that opens them next rebuilds that index from the write-ahead log.
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
      // Not those above: a data directory that is gone must not become an empty one.
      for (const folder of [dirname(this.#folder), this.#folder]) makeOne(folder);
      const state = this.#open(ofThisProcess(file), options);
      // A file that a killed process of the reference has left, which no process reads now that the database is ours.
      removeFileNow(`${file}-shm`, isOwnFile);
      return state;
    });
  }

  storedCheckpoint(options: ScavengeStateOptions): ScavengeCheckpoint | null {
    if (!existsSync(join(this.#folder, 'scavenging.db'))) return null;
    const state = this.open(options);
    try {
      return state.checkpoint();
    } finally {
      state.close();
    }
  }

  /** A database without a name: SQLite keeps it in memory, or in a temporary file when it outgrows the cache. */
  openTemporary(options: ScavengeStateOptions): ScavengeState {
    return this.#open('', options);
  }

  isOnDisk(): boolean {
    return existsSync(join(this.#folder, 'scavenging.db'));
  }

  check(depth: 'quick' | 'thorough'): readonly string[] | null {
    const file = join(this.#folder, 'scavenging.db');
    if (!this.isOnDisk()) return null;
    try {
      return guarded(() => {
        const hasLog = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
        const hadIndex = existsSync(`${file}-shm`);
        const db = openToCheck(file, hasLog, depth);
        try {
          const rows = db
            .prepare(`PRAGMA ${depth === 'quick' ? 'quick_check' : 'integrity_check'}(${CHECK_FINDINGS_MAX})`)
            .all();
          return rows.map((row) => String(Object.values(row)[0])).filter((text) => text !== 'ok');
        } finally {
          db.close();
          if (!hadIndex) removeFileNow(`${file}-shm`, isOwnFile);
        }
      });
    } catch (error) {
      if (isSkuaError(error, 'scavenge_state_invalid'))
        return [(error.cause as Error | undefined)?.message ?? error.message];
      throw error;
    }
  }

  remove(): void {
    // In an order in which no crash leaves a log of changes without what they change.
    for (const name of ['scavenging.db-wal', 'scavenging.db-shm', 'scavenging.db'])
      guarded(() => removeFileNow(join(this.#folder, name), isOwnFile));
  }

  #open(location: string | URL, options: ScavengeStateOptions): ScavengeState {
    return guarded(() => {
      const db = new (loadSqlite().DatabaseSync)(location, { timeout: BUSY_MS_MAX });
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

/**
 * Without a write-ahead log the file is read as it is. With one it is read with it: by a run as the run will open it,
 * and by a caller that only looks without taking it into the file, for which SQLite makes a `-shm` file that goes
 * again.
 */
function openToCheck(file: string, hasLog: boolean, depth: 'quick' | 'thorough'): DatabaseSync {
  const Database = loadSqlite().DatabaseSync;
  if (hasLog) return new Database(ofThisProcess(file), { timeout: BUSY_MS_MAX, readOnly: depth === 'thorough' });
  const url = pathToFileURL(file);
  url.searchParams.set('immutable', '1');
  return new Database(url, { readOnly: true });
}

/**
 * Where SQLite opens a file for the connections of this process alone. On Windows, where a full disk kills no process,
 * there is no such way.
 */
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
    throw invalidState(
      `has pages of ${pageSize} bytes where ${pageSizeBytes} are set. Set ScavengeBackendPageSize as it was, or start over`,
    );
  }
}

function createOrCheck(db: DatabaseSync): void {
  if (versionOf(db) === null) create(db);
  const version = versionOf(db);
  if (version !== SCHEMA_VERSION)
    throw invalidState(`has schema version ${version ?? 'none'} where ${SCHEMA_VERSION} is known`);
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
  const { found } = db.prepare("SELECT count(*) AS found FROM sqlite_schema WHERE name = 'SchemaVersion'").get() as {
    found: number;
  };
  if (found === 0) return null;
  const row = db.prepare('SELECT max(version) AS version FROM SchemaVersion').get() as { version: number | null };
  return row.version ?? 0;
}
