/** Tables of the scavenge database; disk-format.md section 8. Written letter for letter as the reference does. */

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
].map(column).join('');

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
