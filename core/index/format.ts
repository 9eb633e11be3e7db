import { i64 } from '../base/bytes.ts';
import { isSkuaError, SkuaError } from '../base/errors.ts';
import { scrubbedParts } from '../log/format.ts';
import {
  damageOf,
  DOCUMENT_BYTES_MAX,
  type FileFormat,
  lineParts,
  type Inspected,
  type Part,
  section,
  wholeOf,
} from '../ports/file-format.ts';
import { decodeText } from '../base/text.ts';
import { isLineSound, isTooCorrupt, LINE_BYTES, readBloomHeader } from './format/bloom.ts';
import { parseIndexMap } from './format/index-map.ts';
import {
  compareEntries,
  entryBytesOf,
  FILE_TYPE_TABLE,
  HEADER_BYTES,
  TableEntry,
  tableCorrupt,
  type TableShape,
} from './format/table-format.ts';
import { SCRUBBED_TABLES_FORMAT } from './tables/table-scrub.ts';
import { shapeOf, TableSource, checkMd5 } from './format/table-scan.ts';

/** The files of the index, for programs that look into them. */

/** Bytes read at once. */
const READ_BYTES = 1_048_576;

const TABLE: FileFormat = {
  kind: 'index-table',
  title: 'index table',
  names: [/(?<=^|\/)(?:index|attributes\/(?:names|correlations|tags))\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  lastNames: [/(?<=^|\/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  begins: (head) =>
    head.length >= HEADER_BYTES &&
    head[0] === FILE_TYPE_TABLE &&
    entryBytesOf(head[1]!) > 0 &&
    head.subarray(2, HEADER_BYTES).every((byte) => byte === 0),
  parts: tableParts,
};

async function* tableParts({ file, key, world: { digests } }: Inspected): AsyncGenerator<Part, void, undefined> {
  const { shape, wrong } = await shapeOrGuess(key, file);
  if (shape === null) throw wrong;
  yield section('table', {
    version: shape.version,
    entries: shape.entries,
    midpoints: shape.midpoints,
    entryBytes: shape.entryBytes,
  });
  const source = new TableSource(key, file, shape);
  const last = new TableEntry();
  let number = 0;
  while (await source.fill()) {
    while (source.next()) {
      const { entry } = source;
      const offset = HEADER_BYTES + number * shape.entryBytes;
      if (number > 0 && compareEntries(last, entry) < 0) {
        yield { kind: 'damage', offset, error: tableCorrupt(key, `is out of order at entry ${number}`) };
        // Without a footer that says where they end, this is what lies behind them.
        if (wrong !== null) return;
      }
      Object.assign(last, entry);
      const { hi, lo, version, position } = entry;
      yield {
        kind: 'record',
        group: 'entries',
        offset,
        position,
        describe: () => ({ fields: { hash: hex32(hi) + hex32(lo), number: version, position } }),
      };
      number++;
    }
  }
  if (wrong !== null) yield damageOf(wrong, Math.max(0, file.size - 144));
  else if (await checkMd5(file, digests, async () => {})) yield section('checksum', { fits: true });
  else yield { kind: 'damage', offset: 0, error: tableCorrupt(key, 'has an MD5 that does not match its bytes') };
}

/** The shape of a table; where its end is damaged, as many entries as there may be. */
async function shapeOrGuess(
  path: string,
  file: Inspected['file'],
): Promise<{ readonly shape: TableShape | null; readonly wrong: unknown }> {
  try {
    return { shape: await shapeOf(path, file), wrong: null };
  } catch (error) {
    if (!isSkuaError(error, 'index_corrupt')) throw error;
    const head = await file.read(0, HEADER_BYTES);
    const entryBytes = head.length < HEADER_BYTES || head[0] !== FILE_TYPE_TABLE ? 0 : entryBytesOf(head[1]!);
    return {
      shape:
        entryBytes === 0
          ? null
          : {
              version: head[1]!,
              entryBytes,
              entries: Math.floor((file.size - HEADER_BYTES) / entryBytes),
              midpoints: 0,
            },
      wrong: error,
    };
  }
}

const BLOOM: FileFormat = {
  kind: 'bloom-filter',
  title: 'bloom filter of an index table',
  names: [/(?<=^|\/)(?:index\/)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.bloomfilter$/],
  begins: (head, sizeBytes) => readBloomHeader(head, sizeBytes) !== null,
  parts: filterParts,
};

const EXISTENCE: FileFormat = {
  kind: 'existence-filter',
  title: 'stream existence filter',
  names: [/(?<=^|\/)streamExistenceFilter\.dat$/],
  parts: filterParts,
};

async function* filterParts({ file }: Inspected): AsyncGenerator<Part, void, undefined> {
  const head = await file.read(0, LINE_BYTES);
  const header = readBloomHeader(head, file.size);
  if (header === null)
    throw filterCorrupt(file.path, `has an invalid header, or one that does not match its ${file.size} bytes`, 0);
  yield section('header', {
    filterBytes: header.logicalBytes,
    rebuilds: header.rebuilds,
    lines: file.size / LINE_BYTES,
  });
  let used = 0;
  let damaged = 0;
  const buffer = new Uint8Array(READ_BYTES);
  for (let at = LINE_BYTES; at < file.size;) {
    const bytes = await file.read(at, Math.min(READ_BYTES, file.size - at), buffer);
    if (bytes.length === 0) throw filterCorrupt(file.path, 'ends in the middle of a line', at);
    for (let line = 0; line + LINE_BYTES <= bytes.length; line += LINE_BYTES) {
      // Most of a large filter is.
      if (isUnused(bytes, line)) continue;
      used++;
      if (isLineSound(bytes, line)) continue;
      damaged++;
      if (damaged === 1)
        yield {
          kind: 'damage',
          offset: at + line,
          error: filterCorrupt(file.path, 'has a line that does not match its hash', at + line),
        };
    }
    at += bytes.length;
  }
  yield section('lines', { used, damaged, isUsable: !isTooCorrupt(damaged, file.size) });
}

/** Whether nothing was ever written to a line. */
function isUnused(bytes: Uint8Array, line: number): boolean {
  for (let i = line; i < line + LINE_BYTES; i++) if (bytes[i] !== 0) return false;
  return true;
}

function filterCorrupt(path: string, what: string, offset: number): SkuaError {
  return new SkuaError(
    'index_corrupt',
    `The filter ${path} ${what}. The node repairs or rebuilds it; if this recurs, check the disk.`,
    { path, offset },
  );
}

const EXISTENCE_CHECKPOINT: FileFormat = {
  kind: 'checkpoint',
  title: 'checkpoint of the stream existence filter',
  names: [/(?<=^|\/)streamExistenceFilter\.chk$/],
  async *parts({ file }) {
    const bytes = await file.read(0, 8);
    if (bytes.length < 8)
      throw new SkuaError(
        'checkpoint_corrupt',
        `${file.path} has ${bytes.length} bytes instead of 8: the filter is rebuilt.`,
        { file: file.path, offset: bytes.length },
      );
    yield section('checkpoint', {
      position: i64(bytes, 0),
      meaning: i64(bytes, 0) < 0 ? 'the filter is not complete' : 'the filter covers the streams of all records below',
    });
  },
};

const MAP: FileFormat = {
  kind: 'index-map',
  title: 'index map',
  names: [/(?<=^|\/)(?:index\/)?indexmap$/],
  async *parts({ file, world: { digests } }) {
    const bytes = await wholeOf(file);
    try {
      const { commitCheckpoint, prepareCheckpoint, levels, anchor } = parseIndexMap(bytes, digests);
      yield section('index map', {
        commitPosition: commitCheckpoint,
        preparePosition: prepareCheckpoint,
        levels: levels.length,
        tables: levels.flat().length,
        ...(anchor !== undefined && { anchor }),
      });
      for (const [level, tables] of levels.entries())
        for (const [place, table] of tables.entries())
          yield {
            kind: 'record',
            group: 'tables',
            offset: null,
            describe: () => ({ fields: { level, place, table } }),
          };
    } catch (error) {
      yield damageOf(error, 0);
      yield* lineParts(bytes.subarray(0, DOCUMENT_BYTES_MAX));
    }
  },
};

const PROVEN: FileFormat = {
  kind: 'proven-tables',
  title: 'index tables that were compared with their checksums',
  names: [/(?<=^|\/)(?:index\/)?proven-tables$/],
  begins: (head) => decodeText(head).startsWith(SCRUBBED_TABLES_FORMAT),
  parts: (looked) => scrubbedParts(looked, SCRUBBED_TABLES_FORMAT),
};

const FORCE_VERIFY: FileFormat = {
  kind: 'marker',
  title: 'marker',
  names: [/(?<=^|\/)(?:index\/)?\.forceverify$/],
  async *parts() {
    yield section('marker', { meaning: 'The next start verifies the index.' });
  },
};

function hex32(value: number): string {
  return value.toString(16).padStart(8, '0');
}

export const INDEX_FORMATS: readonly FileFormat[] = [
  TABLE,
  BLOOM,
  EXISTENCE,
  EXISTENCE_CHECKPOINT,
  MAP,
  PROVEN,
  FORCE_VERIFY,
];
