import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import type { StorageLock } from '../../core/ports/storage.ts';
import { loadSqlite } from '../load-sqlite.ts';
import type { Sqlite } from '../load-sqlite.ts';
import { storageError, systemCode } from './fs-errors.ts';
import { removeFileNow } from './file-removal.ts';

/** The file that carries the lock. Nothing else opens the file: closing any descriptor of it would let the lock go. */
export const LOCK_FILE = 'skua.lock';
/**
 * Says which process has the lock, for people: a line of JSON, written once the lock is held. The lock itself is that
 * of the system.
 */
export const LOCK_OWNER_FILE = `${LOCK_FILE}.owner`;
/** A longer file is none of ours. */
const OWNER_BYTES_MAX = 1_024;
const SQLITE_BUSY = 5;

type Database = InstanceType<Sqlite['DatabaseSync']>;

/** Held locks: a database that nothing refers to would be closed by the garbage collector. */
const held = new Set<Database>();

/**
 * Locks a directory by an exclusive SQLite transaction that stays open. Node.js offers no file lock of its own; this
 * one is a lock of the system underneath, freed when the process dies however it dies.
 */
export function lockDirectory(root: string): StorageLock {
  const file = path.join(root, LOCK_FILE);
  const database = openDatabase(root, file);
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if ((error as { errcode?: unknown }).errcode === SQLITE_BUSY) throw locked(root);
    throw notLocked(error, root, file);
  }
  held.add(database);
  noteOwner(root);
  return {
    async release() {
      if (!held.delete(database)) return;
      // Before the lock goes: afterwards the file may be another's.
      try {
        removeFileNow(path.join(root, LOCK_OWNER_FILE), (name) => name === LOCK_OWNER_FILE);
      } finally {
        database.close();
      }
    },
  };
}

interface Owner {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

/** Only a help for people, so a full disk or a directory that takes no new files is no hindrance. */
function noteOwner(root: string): void {
  const owner: Owner = { pid: process.pid, host: os.hostname(), since: new Date().toISOString() };
  try {
    const file = path.join(root, LOCK_OWNER_FILE);
    // A file of that name may be a link: what it leads to, or shares its bytes with, is not ours.
    removeFileNow(file, (name) => name === LOCK_OWNER_FILE);
    fs.writeFileSync(file, `${JSON.stringify(owner)}\n`, { flag: 'wx' });
  } catch {
    // Without the note, the error of a refused process has less to say.
  }
}

/**
 * Which process has the lock, in words; null where no process noted it, or the one that did is gone and another has the
 * lock since.
 */
function ownerText(root: string): string | null {
  try {
    const file = path.join(root, LOCK_OWNER_FILE);
    if (fs.statSync(file).size > OWNER_BYTES_MAX) return null;
    const { pid, host, since } = JSON.parse(fs.readFileSync(file, 'utf8')) as Partial<Owner>;
    if (
      !Number.isSafeInteger(pid) ||
      pid! <= 0 ||
      typeof host !== 'string' ||
      typeof since !== 'string' ||
      Number.isNaN(Date.parse(since))
    )
      return null;
    // The number is one of that machine, or container.
    if (host !== os.hostname())
      return `another process (${pid} on ${JSON.stringify(host)}, since ${new Date(since).toISOString()}, as ${LOCK_OWNER_FILE} says)`;
    if (!isAlive(pid!)) return null;
    return pid === process.pid
      ? 'this process'
      : `another process (${pid}, since ${new Date(since).toISOString()}, as ${LOCK_OWNER_FILE} says)`;
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code === 'EPERM';
  }
}

function openDatabase(root: string, file: string): Database {
  const { DatabaseSync } = loadSqlite();
  try {
    return new DatabaseSync(file);
  } catch (error) {
    throw notLocked(error, root, file);
  }
}

/** SQLite says that it can't, and not why: the system does. */
function notLocked(error: unknown, root: string, file: string): SkuaError {
  for (const location of [root, file]) {
    try {
      fs.accessSync(location, fs.constants.R_OK | fs.constants.W_OK);
    } catch (cause) {
      if (systemCode(cause) !== 'ENOENT') return storageError(cause, location);
    }
  }
  return storageError(error, file);
}

function locked(root: string): SkuaError {
  const owner = ownerText(root);
  return new SkuaError(
    'directory_locked',
    `The directory ${root} is in use by ${owner ?? 'another process'}. Stop that one first, or name another directory with --db (of an index, with --index).`,
    { path: root, ...(owner !== null && { owner }) },
  );
}
