import { open } from 'node:fs/promises';
import * as path from 'node:path';
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { SkuaError } from '../../core/base/errors.ts';
import {
  type Fields,
  type FileFormat,
  type Inspected,
  note,
  type Part,
  section,
  type Value,
} from '../../core/ports/file-format.ts';
import type { StorageFile } from '../../core/ports/storage.ts';
import { decodeText } from '../../core/base/text.ts';
import { TemporaryFolder } from '../fs/file-removal.ts';
import { loadSqlite } from '../load-sqlite.ts';

/** Describes the scavenge database for `skua inspect`. */

const SQLITE_MAGIC = 'SQLite format 3\0';
/** Bytes copied at once. */
const COPY_BYTES = 1_048_576;
/** Of the header of a database: where the size of its pages stands. */
const PAGE_SIZE_AT = 16;

const DATABASE: FileFormat = {
  kind: 'scavenge-database',
  title: 'scavenge database',
  names: [/(?<=^|\/)(?:index\/)?(?:scavenging\/)?scavenging\.db$/],
  begins: (head) => decodeText(head.subarray(0, SQLITE_MAGIC.length)) === SQLITE_MAGIC,
  parts: databaseParts,
};

const LOG: FileFormat = {
  kind: 'scavenge-database-log',
  title: 'write-ahead log of the scavenge database',
  names: [/(?<=^|\/)(?:index\/)?(?:scavenging\/)?scavenging\.db-(?:wal|shm|journal)$/],
  async *parts({ file }) {
    yield note(
      file.size === 0
        ? 'It is empty: everything is in scavenging.db.'
        : 'Its contents are shown with scavenging.db, to which it belongs.',
    );
  },
};

async function* databaseParts(looked: Inspected): AsyncGenerator<Part, void, undefined> {
  const { file, localPath, key, world } = looked;
  const head = await file.read(0, 100);
  if (decodeText(head.subarray(0, SQLITE_MAGIC.length)) !== SQLITE_MAGIC)
    throw invalid(file.path, 'does not start like an SQLite database', 0);
  yield section('database', { pageBytes: pageSizeOf(head) });
  const wal = await world.open(`${key}-wal`);
  try {
    const hasLog = wal !== null && wal.size > 0;
    if (hasLog) yield note(`Includes the contents of its write-ahead log (${wal.size} bytes).`);
    // SQLite opens files, and beside a log of changes it would write.
    if (localPath !== null && !hasLog) yield* tablesOf(file.path, localPath);
    else {
      const folder = await TemporaryFolder.make('skua-inspect-');
      try {
        const copy = path.join(folder.path, 'scavenging.db');
        await copyFile(file, copy);
        if (hasLog) await copyFile(wal, `${copy}-wal`);
        yield* tablesOf(file.path, copy, hasLog);
      } finally {
        await folder.remove();
      }
    }
  } finally {
    await wal?.close();
  }
}

/** 1 stands for 65 536. */
function pageSizeOf(head: Uint8Array): number {
  const size = head[PAGE_SIZE_AT]! * 256 + head[PAGE_SIZE_AT + 1]!;
  return size === 1 ? 65_536 : size;
}

async function copyFile(from: StorageFile, to: string): Promise<void> {
  await using handle = await open(to, 'wx', 0o600);
  for (let at = 0; at < from.size;) {
    const bytes = await from.read(at, Math.min(COPY_BYTES, from.size - at));
    if (bytes.length === 0) return;
    await handle.writeFile(bytes);
    at += bytes.length;
  }
}

/** What the tables hold; `isOwn` says that the file is a copy, which SQLite may write beside. */
function* tablesOf(name: string, location: string, isOwn = false): Generator<Part> {
  let db: DatabaseSync | null = null;
  try {
    const url = pathToFileURL(location);
    if (!isOwn) url.searchParams.set('immutable', '1');
    db = new (loadSqlite().DatabaseSync)(isOwn ? location : url, { readOnly: !isOwn });
    for (const table of db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .all()
      .map((row) => String(row['name'])))
      yield* rowsOf(db, table);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'ERR_SQLITE_ERROR') throw error;
    yield {
      kind: 'damage',
      offset: null,
      error: invalid(name, `can't be read further: ${(error as Error).message}`, null, error),
    };
  } finally {
    db?.close();
  }
}

function* rowsOf(db: DatabaseSync, table: string): Generator<Part> {
  const quoted = `"${table.replaceAll('"', '""')}"`;
  const statement = db.prepare(`SELECT * FROM ${quoted}`);
  statement.setReadBigInts(true);
  for (const row of statement.iterate())
    yield { kind: 'record', group: table, offset: null, describe: () => ({ fields: fieldsOf(row) }) };
}

function fieldsOf(row: Record<string, SQLOutputValue>): Fields {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]): [string, Value] => [
      name,
      typeof value === 'bigint' ? (Number.isSafeInteger(Number(value)) ? Number(value) : String(value)) : value,
    ]),
  );
}

function invalid(name: string, what: string, offset: number | null, cause?: unknown): SkuaError {
  return new SkuaError(
    'scavenge_state_invalid',
    `The scavenge database ${name} ${what}. Delete it while the node is stopped: the next scavenge recreates it.`,
    { path: name, ...(offset !== null && { offset }) },
    cause,
  );
}

export const SQLITE_FORMATS: readonly FileFormat[] = [DATABASE, LOG];
