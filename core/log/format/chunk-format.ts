import { i32, i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import type { Digest } from '../../ports/digests.ts';
import type { StorageFile } from '../../ports/storage.ts';

/** Names, headers and footers of chunk files (core/log/FORMAT.md, "Chunk files"), and what completes one. */

export const HEADER_BYTES = 128;
export const FOOTER_BYTES = 128;
/** Bytes of the file's end that the MD5 does not cover: the MD5 itself. */
export const MD5_BYTES = 16;
export const CHUNK_SIZE_DEFAULT_BYTES = 268_435_456;
/** Smallest chunk size that we create. */
export const CHUNK_SIZE_MIN_BYTES = 65_536;
export const CHUNK_SIZE_MAX_BYTES = 1_073_741_824;
/** Chunk numbers end before this one. */
export const CHUNK_COUNT_MAX = 400_000;

const NAME = /^chunk-(\d{6})\.(\d{6})$/;

export interface ChunkFileName {
  readonly name: string;
  readonly number: number;
  readonly version: number;
}

export function chunkFileName(number: number, version: number): string {
  return `chunk-${String(number).padStart(6, '0')}.${String(version).padStart(6, '0')}`;
}

/** The chunk files among `names`, ascending by number, then version. */
export function parseChunkFileNames(names: readonly string[]): ChunkFileName[] {
  const out: ChunkFileName[] = [];
  for (const name of names) {
    const match = NAME.exec(name);
    if (match) out.push({ name, number: Number(match[1]), version: Number(match[2]) });
  }
  return out.sort((a, b) => a.number - b.number || a.version - b.version);
}

/**
 * Number of the chunk that holds `position`. Throws `checkpoint_corrupt` when no log can have it; `advice` names what
 * to do.
 */
export function chunkNumberAt(position: number, chunkSize: number, file: string, advice: string): number {
  const number = Math.floor(position / chunkSize);
  if (number >= 0 && number <= CHUNK_COUNT_MAX) return number;
  throw new SkuaError('checkpoint_corrupt', `${file} holds ${position}, which is not a log position. ${advice}`, {
    file,
    offset: 0,
  });
}

export function align4096(bytes: number): number {
  return Math.ceil(bytes / 4096) * 4096;
}

/** Length of the file of a chunk that is being written. */
export function ongoingFileBytes(chunkSize: number): number {
  return align4096(chunkSize + HEADER_BYTES + FOOTER_BYTES);
}

export interface ChunkHeader {
  readonly version: number;
  readonly chunkSize: number;
  readonly startNumber: number;
  readonly endNumber: number;
  readonly isScavenged: boolean;
  readonly chunkId: Uint8Array;
}

export function encodeHeader(h: ChunkHeader): Uint8Array {
  const out = new Uint8Array(HEADER_BYTES);
  out[0] = 2;
  out[1] = h.version;
  putI32(out, 2, h.chunkSize);
  putI32(out, 6, h.startNumber);
  putI32(out, 10, h.endNumber);
  putI32(out, 14, h.isScavenged ? 1 : 0);
  out.set(h.chunkId, 18);
  return out;
}

/** Throws `log_corrupt` when the bytes are no chunk header, `log_unsupported` for a version we can't read. */
export function decodeHeader(file: string, b: Uint8Array): ChunkHeader {
  const fail = (what: string, offset: number) =>
    new SkuaError(
      'log_corrupt',
      `The header of ${file} ${what} (offset ${offset}). The file is damaged or not a chunk: restore it from a backup.`,
      { file, offset },
    );
  if (b.length < HEADER_BYTES) throw fail(`is cut short: the file has ${b.length} bytes`, b.length);
  if (b[0] !== 2) throw fail(`has file type ${b[0]} instead of 2`, 0);
  const version = b[1]!;
  if (version !== 2 && version !== 3)
    throw new SkuaError('log_unsupported', `${file} is a chunk of version ${version}; versions 2 and 3 can be read.`, {
      file,
      offset: 1,
      version,
    });
  if (b[35] !== 0)
    throw new SkuaError(
      'log_unsupported',
      `${file} is stored transformed (type ${b[35]}, encrypted perhaps); only plain chunks can be read.`,
      { file, offset: 35 },
    );
  const chunkSize = i32(b, 2);
  const startNumber = i32(b, 6);
  const endNumber = i32(b, 10);
  if (chunkSize <= 0) throw fail(`names a chunk size of ${chunkSize}`, 2);
  if (startNumber < 0 || endNumber < startNumber || endNumber >= CHUNK_COUNT_MAX)
    throw fail(`names the chunks ${startNumber} to ${endNumber}`, 6);
  return { version, chunkSize, startNumber, endNumber, isScavenged: i32(b, 14) > 0, chunkId: b.slice(18, 34) };
}

export interface ChunkFooter {
  readonly isCompleted: boolean;
  /** Bytes of one entry of the position map: 12, or 8 in old files. */
  readonly mapEntryBytes: number;
  readonly physicalBytes: number;
  readonly logicalBytes: number;
  readonly mapBytes: number;
  readonly md5: Uint8Array;
}

/** The footer without its MD5, which is computed over everything before it. */
export function encodeFooter(physicalBytes: number, logicalBytes: number, mapBytes: number): Uint8Array {
  const out = new Uint8Array(FOOTER_BYTES);
  out[0] = 3;
  putI32(out, 1, physicalBytes);
  putI64(out, 5, logicalBytes);
  putI32(out, 13, mapBytes);
  return out;
}

/** Bytes of a chunk's data and of its position map, and its local logical end, as its footer names them. */
export interface ChunkSizes {
  readonly physicalBytes: number;
  readonly logicalBytes: number;
  readonly mapBytes: number;
}

/**
 * Completes a chunk file behind its data and map, in the order in which a crash leaves either an ongoing chunk or a
 * completed one: what lies behind them is cut off, durably; padding, footer and MD5 follow, durably. `md5` has seen
 * every byte before. The caller seals the file. Returns the footer. Rejects with what the storage throws; the log
 * itself, for which a failed sync is the end whatever its cause, gives a `sync` that says so.
 */
export async function completeChunkFile(
  file: StorageFile,
  md5: Digest,
  { physicalBytes, logicalBytes, mapBytes }: ChunkSizes,
  sync: (file: StorageFile) => Promise<void> = (made) => made.sync(),
): Promise<Uint8Array> {
  const end = HEADER_BYTES + physicalBytes + mapBytes;
  if (file.size > end) {
    // Nothing of the tail, least of all a commit slot, may stand where the footer is looked for.
    await file.truncate(end);
    await sync(file);
  }
  const rest = new Uint8Array(align4096(end + FOOTER_BYTES) - end);
  const footer = rest.subarray(rest.length - FOOTER_BYTES);
  footer.set(encodeFooter(physicalBytes, logicalBytes, mapBytes));
  md5.update(rest.subarray(0, rest.length - MD5_BYTES));
  footer.set(md5.finish(), FOOTER_BYTES - MD5_BYTES);
  await file.writeAt(end, rest);
  await sync(file);
  return footer;
}

/** Throws `log_corrupt` when the footer does not describe a completed file of `fileBytes`. */
export function decodeFooter(file: string, b: Uint8Array, fileBytes: number): ChunkFooter {
  const offset = Math.max(0, fileBytes - FOOTER_BYTES);
  const fail = (what: string) =>
    new SkuaError(
      'log_corrupt',
      `The footer of ${file} ${what} (offset ${offset}). The chunk should be complete: restore the file from a backup.`,
      { file, offset },
    );
  if (b.length < FOOTER_BYTES) throw fail('is cut short');
  const flags = b[0]!;
  const wide = (flags & 2) !== 0;
  const mapEntryBytes = wide ? 12 : 8;
  const physicalBytes = i32(b, 1);
  const logicalBytes = wide ? i64(b, 5) : i32(b, 5);
  const mapBytes = wide ? i32(b, 13) : i32(b, 9);
  if ((flags & 1) === 0) throw fail('is not marked as completed');
  if (physicalBytes < 0 || mapBytes < 0 || logicalBytes < physicalBytes || mapBytes % mapEntryBytes !== 0)
    throw fail(`holds impossible sizes (data ${physicalBytes}, logical ${logicalBytes}, map ${mapBytes})`);
  if (HEADER_BYTES + physicalBytes + mapBytes + FOOTER_BYTES > fileBytes)
    throw fail(
      `describes ${physicalBytes} bytes of data and ${mapBytes} of map, more than the file's ${fileBytes} bytes`,
    );
  return {
    isCompleted: true,
    mapEntryBytes,
    physicalBytes,
    logicalBytes,
    mapBytes,
    md5: b.slice(FOOTER_BYTES - MD5_BYTES, FOOTER_BYTES),
  };
}

/** Entry `at` of a position map: data offset of the record. */
export function mapActual(b: Uint8Array, at: number): number {
  return u32(b, at);
}

/** Entry `at` of a position map: logical offset of the record in its chunk. */
export function mapLogical(b: Uint8Array, at: number, entryBytes: number): number {
  return entryBytes === 12 ? i64(b, at + 4) : u32(b, at + 4);
}

/** What the directory's chunk files amount to. */
export interface ChunkInventory {
  readonly latest: readonly { readonly file: ChunkFileName; readonly endNumber: number }[];
  /** Superseded by a higher version or covered by a merged chunk. */
  readonly old: readonly ChunkFileName[];
  readonly missing: readonly number[];
}

/**
 * Sorts chunk files into those that count, old ones and gaps. `endNumberOf` reads the header of a file whose version
 * is above 0; such a file may cover several chunks.
 */
export async function takeInventory(
  files: readonly ChunkFileName[],
  lastNumber: number,
  endNumberOf: (file: ChunkFileName) => Promise<number>,
): Promise<ChunkInventory> {
  const latest: { file: ChunkFileName; endNumber: number }[] = [];
  const old: ChunkFileName[] = [];
  const missing: number[] = [];
  let expected = 0;
  for (let i = 0; i < files.length; i++) {
    const file = files[i]!;
    if (file.number < expected || file.number === files[i + 1]?.number) {
      old.push(file);
      continue;
    }
    for (; expected < file.number; expected++) missing.push(expected);
    const endNumber = file.version === 0 ? file.number : await endNumberOf(file);
    latest.push({ file, endNumber });
    expected = endNumber + 1;
  }
  for (; expected <= lastNumber; expected++) missing.push(expected);
  return { latest, old, missing };
}
