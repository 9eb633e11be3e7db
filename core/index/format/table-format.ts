import { i32, i64, putI32, u32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { eventNumber64, putEventNumber64, TOMBSTONE } from '../../log/format/records.ts';

/**
 * Index tables on disk (core/index/FORMAT.md, "Tables"): header 128 | entries | midpoints and footer 128 (version 4
 * only) | MD5 16.
 */
export const HEADER_BYTES = 128;
export const FOOTER_BYTES = 128;
export const MD5_BYTES = 16;
/** The version that we write. */
export const TABLE_VERSION = 4;
/**
 * The version of tables whose entries are a hash and a position (core/attributes/FORMAT.md): their number is the
 * position. No version of the reference's.
 */
export const POSITION_TABLE_VERSION = 0x53;
/** Bytes of an entry of version 4, and of a midpoint. */
export const ENTRY_BYTES = 24;
const POSITION_ENTRY_BYTES = 16;
export const MIDPOINT_BYTES = 24;
/** From the greater half of its hash on to the end of an entry of any version. */
const HASH_HI_BYTES = 12;
export const FILE_TYPE_TABLE = 1;
/** Depths of the midpoints that the format allows. */
export const CACHE_DEPTH_MIN = 8;
export const CACHE_DEPTH_MAX = 28;
/** Event number that stands for a tombstone in tables of version 2. */
const TOMBSTONE_I32 = 2_147_483_647;

/** Bytes of an entry in a table of the given version; 0 for a version that can't be read. */
export function entryBytesOf(version: number): number {
  if (version === 2) return 20;
  if (version === POSITION_TABLE_VERSION) return POSITION_ENTRY_BYTES;
  return version === 3 || version === 4 ? ENTRY_BYTES : 0;
}

function depthOf(entries: number, cacheDepth: number): number {
  const bytes = entries * ENTRY_BYTES;
  if (bytes > 2 ** 29 * 4_096) return CACHE_DEPTH_MAX;
  for (let i = CACHE_DEPTH_MAX - 1; i >= cacheDepth; i--) if (bytes > 2 ** (i + 1) * 4_096) return i + 1;
  return cacheDepth;
}

/** How many midpoints a table of so many entries has. */
export function midpointCount(entries: number, cacheDepth: number): number {
  if (entries === 0) return 0;
  return Math.max(2, Math.min(2 ** depthOf(entries, cacheDepth), entries));
}

/**
 * Number of the entry that midpoint `k` of `count` stands for. Exact below 2^26 midpoints, which is a table of 25 TB.
 */
export function midpointIndex(k: number, count: number, entries: number): number {
  if (k === 0) return 0;
  if (k === count - 1) return entries - 1;
  const quotient = Math.floor((entries - 1) / (count - 1));
  const rest = (entries - 1) % (count - 1);
  return k * quotient + Math.floor((k * rest) / (count - 1));
}

/** An entry with its hash, as cursors over tables give it. */
export class TableEntry {
  hi = 0;
  lo = 0;
  version = 0;
  position = 0;
}

export function readEntry(b: Uint8Array, at: number, tableVersion: number, out: TableEntry): void {
  if (tableVersion === POSITION_TABLE_VERSION) {
    out.lo = u32(b, at);
    out.hi = u32(b, at + 4);
    out.version = out.position = i64(b, at + 8);
    return;
  }
  if (tableVersion === 2) {
    const number = i32(b, at);
    out.version = number === TOMBSTONE_I32 ? TOMBSTONE : number;
    at -= 4;
  } else out.version = eventNumber64(b, at);
  out.lo = u32(b, at + 8);
  out.hi = u32(b, at + 12);
  out.position = i64(b, at + 16);
}

/** The greater half of the hash of an entry: what entries are ordered by first. */
export function hashHiOf(b: Uint8Array, at: number, entryBytes: number): number {
  return u32(b, at + entryBytes - HASH_HI_BYTES);
}

/** Writes the 24 bytes of an entry; for a midpoint, `position` is the number of the entry. */
export function writeEntry(b: Uint8Array, at: number, hi: number, lo: number, version: number, position: number): void {
  putEventNumber64(b, at, version);
  writePositionEntry(b, at + 8, hi, lo, position);
}

/** Writes the 16 bytes of an entry that is a hash and a position. */
export function writePositionEntry(b: Uint8Array, at: number, hi: number, lo: number, position: number): void {
  putI32(b, at, lo | 0);
  putI32(b, at + 4, hi | 0);
  const high = Math.floor(position / 4_294_967_296);
  putI32(b, at + 8, (position - high * 4_294_967_296) | 0);
  putI32(b, at + 12, high | 0);
}

/** Order of entries by (hash, version, position): negative when a is less than b. Tables hold the greatest first. */
export function compareEntries(a: TableEntry, b: TableEntry): number {
  return a.hi - b.hi || a.lo - b.lo || a.version - b.version || a.position - b.position;
}

/** Where the parts of a table file lie. */
export interface TableShape {
  readonly version: number;
  readonly entryBytes: number;
  readonly entries: number;
  /** Midpoints stored in the file. */
  readonly midpoints: number;
}

export function tableCorrupt(path: string, what: string): SkuaError {
  return new SkuaError(
    'index_corrupt',
    `The index table ${path} ${what}. The index is rebuilt from the log; if this recurs, check the disk.`,
    { path },
  );
}

/** Reads the shape from the header and the last 144 bytes of a file. Throws `index_corrupt`. */
export function readShape(path: string, size: number, header: Uint8Array, tail: Uint8Array): TableShape {
  if (size < HEADER_BYTES + MD5_BYTES || header.length < 2) throw tableCorrupt(path, `has only ${size} bytes`);
  if (header[0] !== FILE_TYPE_TABLE)
    throw tableCorrupt(path, `starts with file type ${header[0]}, which is not an index table`);
  const version = header[1]!;
  if (version === 1) throw tableCorrupt(path, 'is of version 1, whose hashes are too short to be used');
  const entryBytes = entryBytesOf(version);
  if (entryBytes === 0) throw tableCorrupt(path, `is of version ${version}, which is not known`);
  let midpoints = 0;
  let rest = size - HEADER_BYTES - MD5_BYTES;
  if (version === TABLE_VERSION || version === POSITION_TABLE_VERSION) {
    rest -= FOOTER_BYTES;
    if (rest < 0) throw tableCorrupt(path, 'ends before its footer');
    const footer = tail.length - FOOTER_BYTES - MD5_BYTES;
    if (tail[footer] !== FILE_TYPE_TABLE || tail[footer + 1] !== version)
      throw tableCorrupt(path, 'has a footer that does not match its header');
    midpoints = u32(tail, footer + 2);
    rest -= midpoints * MIDPOINT_BYTES;
  }
  const entries = rest / entryBytes;
  if (rest < 0 || !Number.isInteger(entries)) throw tableCorrupt(path, 'has a length that does not match its entries');
  if (entries > 0 && midpoints === 1) throw tableCorrupt(path, 'has a single midpoint');
  if (entries >= 2 && midpoints > entries) throw tableCorrupt(path, 'has more midpoints than entries');
  return { version, entryBytes, entries, midpoints };
}

/** Where the bloom filter of a table stands. */
export function bloomPathOf(tablePath: string): string {
  return `${tablePath}.bloomfilter`;
}
