import type { DatabaseSync } from 'node:sqlite';

/**
 * Tables of the scavenge database, written letter for letter as the reference does (core/scavenge/FORMAT.md, "Tables"),
 * and what is asked of them.
 */

export const SCHEMA_VERSION = 1;

const column = (text: string): string => `\n\t\t\t\t\t${text}`;
const metastreamColumns = `${column('isTombstoned INTEGER DEFAULT 0,')}${column('discardPoint INTEGER NULL')}`;
const originalColumns = [
  'isTombstoned      INTEGER DEFAULT 0,',
  'maxAge            INTEGER NULL,',
  'maxCount          INTEGER NULL,',
  'truncateBefore    INTEGER NULL,',
  'discardPoint      INTEGER DEFAULT 0,',
  'maybeDiscardPoint INTEGER DEFAULT 0,',
  'status            INTEGER DEFAULT 0',
]
  .map(column)
  .join('');

export const SCHEMA = [
  'CREATE TABLE SchemaVersion (version Integer PRIMARY KEY)',
  `INSERT INTO SchemaVersion VALUES (${SCHEMA_VERSION})`,
  `CREATE TABLE HashCollisions (${column('key TEXT PRIMARY KEY')})`,
  // INT and not INTEGER: the key is then not the row's own number, and has an index of its own.
  `CREATE TABLE HashUsers (${column('key INT PRIMARY KEY,')}${column('value TEXT NOT NULL')})`,
  `CREATE TABLE MetastreamDatas (${column('key INTEGER PRIMARY KEY,')}${metastreamColumns})`,
  `CREATE TABLE MetastreamDataCollisions (${column('key TEXT PRIMARY KEY,')}${metastreamColumns})`,
  `CREATE TABLE OriginalStreamDatas (${column('key INTEGER PRIMARY KEY,')}${originalColumns})`,
  'CREATE INDEX OriginalStreamDatasKeyStatus ON OriginalStreamDatas (status, key)',
  `CREATE TABLE OriginalStreamDataCollisions (${column('key TEXT PRIMARY KEY,')}${originalColumns})`,
  'CREATE INDEX OriginalStreamDataCollisionsKeyStatus ON OriginalStreamDataCollisions (status, key)',
  `CREATE TABLE Checkpoint (${column('key Integer PRIMARY KEY,')}${column('value Text NOT NULL')})`,
  `CREATE TABLE ChunkTimeStampRanges (${column('key INTEGER PRIMARY KEY,')}${column('min INTEGER,')}${column('max INTEGER')})`,
  `CREATE TABLE ChunkWeights (${column('key INTEGER PRIMARY KEY,')}${column('value REAL NOT NULL')})`,
].join(';\n');

/**
 * The 64-bit key of a hash whose halves are two parameters. Shifting makes an integer of what is bound as a
 * floating-point number.
 */
const HASH = '((? << 32) | ?)';
/** Columns of a key, as two numbers that a double holds. */
const HASH_HALVES = 'key >> 32 AS hi, key & 4294967295 AS lo';
/** 2^63-1 comes back as TOMBSTONE, and nothing that a double can't hold comes back. */
const number = (name: string): string => `min(${name}, 9007199254740991) AS ${name}`;
const originalNumbers = [
  'isTombstoned',
  'status',
  ...['maxAge', 'maxCount', 'truncateBefore', 'discardPoint', 'maybeDiscardPoint'].map(number),
].join(', ');
const metastreamNumbers = `isTombstoned, ${number('discardPoint')}`;
const originalNames = 'key, isTombstoned, maxAge, maxCount, truncateBefore, discardPoint, maybeDiscardPoint, status';
/** Ticks exceed 2^53, so they come and go as milliseconds since year 1 and a remainder. */
const ticks = (ms: string, rest: string): string => `CAST(${ms} AS INTEGER) * 10000 + CAST(${rest} AS INTEGER)`;

export type Statements = ReturnType<typeof prepareStatements>;

/**
 * Everything that is ever asked of a scavenge database, prepared once a connection. Parameters have no numbers, with
 * which Node.js before 24 takes them for named ones, and come in the order of the text.
 */
export function prepareStatements(db: DatabaseSync) {
  const prepare = (sql: string) => {
    const statement = db.prepare(sql);
    // `run` gives the last row's id, which is a hash of 64 bits here: as a number it fails under Node.js 26.
    if (!sql.startsWith('SELECT')) statement.setReadBigInts(true);
    return statement;
  };
  return {
    begin: prepare('BEGIN IMMEDIATE'),
    commit: prepare('COMMIT'),
    rollback: prepare('ROLLBACK'),
    checkpoint: prepare('SELECT value FROM Checkpoint WHERE key = 0'),
    setCheckpoint: prepare('INSERT OR REPLACE INTO Checkpoint VALUES (0, ?)'),

    addUser: prepare(`INSERT OR IGNORE INTO HashUsers VALUES (${HASH}, ?)`),
    user: prepare(`SELECT value FROM HashUsers WHERE key = ${HASH}`),
    collisions: prepare('SELECT key FROM HashCollisions ORDER BY key'),
    addCollision: prepare('INSERT OR IGNORE INTO HashCollisions VALUES (?)'),
    moveOriginal: prepare(`INSERT OR REPLACE INTO OriginalStreamDataCollisions (${originalNames})
      SELECT ?, ${originalNames.slice('key, '.length)} FROM OriginalStreamDatas WHERE key = ${HASH}`),
    deleteOriginal: prepare(`DELETE FROM OriginalStreamDatas WHERE key = ${HASH}`),
    moveMetastream: prepare(`INSERT OR REPLACE INTO MetastreamDataCollisions (key, isTombstoned, discardPoint)
      SELECT ?, isTombstoned, discardPoint FROM MetastreamDatas WHERE key = ${HASH}`),
    deleteMetastream: prepare(`DELETE FROM MetastreamDatas WHERE key = ${HASH}`),

    original: prepare(`SELECT ${originalNumbers} FROM OriginalStreamDatas WHERE key = ${HASH}`),
    originalByName: prepare(`SELECT ${originalNumbers} FROM OriginalStreamDataCollisions WHERE key = ?`),
    setOriginal: prepare(
      `INSERT OR REPLACE INTO OriginalStreamDatas (${originalNames}) VALUES (${HASH}, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    setOriginalByName: prepare(
      `INSERT OR REPLACE INTO OriginalStreamDataCollisions (${originalNames}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    metastream: prepare(`SELECT ${metastreamNumbers} FROM MetastreamDatas WHERE key = ${HASH}`),
    metastreamByName: prepare(`SELECT ${metastreamNumbers} FROM MetastreamDataCollisions WHERE key = ?`),
    setMetastream: prepare(
      `INSERT OR REPLACE INTO MetastreamDatas (key, isTombstoned, discardPoint) VALUES (${HASH}, ?, ?)`,
    ),
    setMetastreamByName: prepare(
      'INSERT OR REPLACE INTO MetastreamDataCollisions (key, isTombstoned, discardPoint) VALUES (?, ?, ?)',
    ),

    // One more than the greatest key overflows to a floating-point number that no key reaches: the end, as it should
    // be.
    activeFrom: prepare(`SELECT ${HASH_HALVES}, ${originalNumbers} FROM OriginalStreamDatas
      WHERE status = 1 AND key >= ${HASH} + CAST(? AS INTEGER) ORDER BY key LIMIT ?`),
    activeBehindName: prepare(
      `SELECT key AS name, ${originalNumbers} FROM OriginalStreamDataCollisions WHERE status = 1 AND key > ? ORDER BY key LIMIT ?`,
    ),
    forgetDiscardPoints: prepare(
      'UPDATE OriginalStreamDatas SET discardPoint = 0, maybeDiscardPoint = 0, status = 1 WHERE isTombstoned = 0',
    ),
    forgetNamedDiscardPoints: prepare(
      'UPDATE OriginalStreamDataCollisions SET discardPoint = 0, maybeDiscardPoint = 0, status = 1 WHERE isTombstoned = 0',
    ),
    setCalculated: prepare(
      `UPDATE OriginalStreamDatas SET status = ?, discardPoint = ?, maybeDiscardPoint = ? WHERE key = ${HASH}`,
    ),
    setCalculatedByName: prepare(
      'UPDATE OriginalStreamDataCollisions SET status = ?, discardPoint = ?, maybeDiscardPoint = ? WHERE key = ?',
    ),

    widenTimeRange: prepare(`INSERT INTO ChunkTimeStampRanges VALUES (?, ${ticks('?', '?')}, ${ticks('?', '?')})
      ON CONFLICT (key) DO UPDATE SET min = min(min, excluded.min), max = max(max, excluded.max)`),
    timeRange: prepare(
      'SELECT min / 10000 AS minMs, min % 10000 AS minTicks, max / 10000 AS maxMs, max % 10000 AS maxTicks FROM ChunkTimeStampRanges WHERE key = ?',
    ),

    addWeight: prepare(
      'INSERT INTO ChunkWeights VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value',
    ),
    weight: prepare('SELECT total(value) AS sum FROM ChunkWeights WHERE key BETWEEN ? AND ?'),
    resetWeights: prepare('DELETE FROM ChunkWeights WHERE key BETWEEN ? AND ?'),
    anyWeight: prepare('SELECT 1 FROM ChunkWeights WHERE value <> 0 LIMIT 1'),

    deleteMetastreams: prepare('DELETE FROM MetastreamDatas'),
    deleteNamedMetastreams: prepare('DELETE FROM MetastreamDataCollisions'),
    deleteOriginals: prepare('DELETE FROM OriginalStreamDatas WHERE status = ?'),
    deleteNamedOriginals: prepare('DELETE FROM OriginalStreamDataCollisions WHERE status = ?'),
  };
}
