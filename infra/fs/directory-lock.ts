import * as path from 'node:path';
import { SkuaError } from '../../core/errors.ts';
import type { StorageLock } from '../../core/ports/storage.ts';
import { storageError } from './errors.ts';

/** The file that carries the lock. Nobody else opens it: closing any descriptor of it would let the lock go. */
export const LOCK_FILE = 'skua.lock';
const SQLITE_BUSY = 5;

type Sqlite = typeof import('node:sqlite');
type Database = InstanceType<Sqlite['DatabaseSync']>;

/** Held locks: a database that nothing refers to would be closed by the garbage collector. */
const held = new Set<Database>();

/**
 * Locks a directory by an exclusive SQLite transaction that stays open. Node.js offers no file lock of its own; this
 * one is a lock of the system underneath, freed when the process dies however it dies.
 */
export function lockDirectory(root: string): StorageLock {
  const file = path.join(root, LOCK_FILE);
  const database = openDatabase(file);
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if ((error as { errcode?: unknown }).errcode === SQLITE_BUSY) throw locked(root);
    throw storageError(error, file);
  }
  held.add(database);
  return {
    async release() {
      if (held.delete(database)) database.close();
    },
  };
}

function openDatabase(file: string): Database {
  const { DatabaseSync } = loadSqlite();
  try {
    return new DatabaseSync(file);
  } catch (error) {
    throw storageError(error, file);
  }
}

function locked(root: string): SkuaError {
  return new SkuaError('directory_locked', `The directory ${root} is in use by another process. Stop that one first, or name another directory with --db.`, { path: root });
}

/** Some releases of Node.js warn that SQLite is experimental when it is first loaded; only that warning is held back. */
function loadSqlite(): Sqlite {
  const emitWarning = process.emitWarning;
  process.emitWarning = () => {};
  try {
    return process.getBuiltinModule('node:sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
}
