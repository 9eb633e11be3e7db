import { i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { Digests } from '../../ports/digests.ts';
import { isMarkKeys } from './marks.ts';
import { replaceFile } from '../../ports/durability.ts';
import type { Storage } from '../../ports/storage.ts';
import type { MarkColumns } from './mark-columns.ts';

/**
 * All marks of a log in one file, so that they are there by one read: for logs in a bucket, whose manifests name it, in
 * backups, and in a directory that was restored from one that knows less of them. Integers little-endian:
 *
 * | Offset | Size | Field |
 * |---|---|---|
 * | 0 | 8 | `SkuaMark` |
 * | 8 | 4 | version: 1, or 2 where marks name metadata |
 * | 12 | 4 | number of marks, n |
 * | 16 | 32 n | of each, ascending: position of the marked record, position of the mark, on-disk id |
 * | 16 + 32 n | k | JSON: for each name of metadata that goes, too, the mark's index, the name, and the position of the mark that names it |
 * | 16 + 32 n + k | 4 | CRC-32 of all before |
 */
export const MARKS_FILE = 'redactions';
const MAGIC = Uint8Array.from('SkuaMark', (letter) => letter.charCodeAt(0));
const VERSION = 2;
const VERSION_WITHOUT_NAMES = 1;
const HEADER_BYTES = 16;
const MARK_BYTES = 32;
const ID_BYTES = 16;

export function encodeMarks({ positions, markedAt, ids, keys }: MarkColumns, digests: Digests): Uint8Array {
  const named = encodeText(JSON.stringify(keys));
  const end = HEADER_BYTES + positions.length * MARK_BYTES + named.length;
  const out = new Uint8Array(end + 4);
  out.set(MAGIC);
  putI32(out, 8, keys.length === 0 ? VERSION_WITHOUT_NAMES : VERSION);
  putI32(out, 12, positions.length);
  for (let i = 0; i < positions.length; i++) {
    const at = HEADER_BYTES + i * MARK_BYTES;
    putI64(out, at, positions[i]!);
    putI64(out, at + 8, markedAt[i]!);
    for (let byte = 0; byte < ID_BYTES; byte++) out[at + 16 + byte] = ids[i * ID_BYTES + byte]!;
  }
  out.set(named, end - named.length);
  putI32(out, end, digests.crc32(out.subarray(0, end)) | 0);
  return out;
}

/** Throws `log_corrupt`: what was redacted must not be shown because a table can't be read. */
export function decodeMarks(name: string, bytes: Uint8Array, digests: Digests): MarkColumns {
  const fail = (what: string) =>
    new SkuaError(
      'log_corrupt',
      `The table of redactions ${name} ${what}. It is never changed, so something else wrote it: restore it from a version or a backup.`,
      { file: name, offset: 0 },
    );
  const end = bytes.length - 4;
  if (end < HEADER_BYTES || MAGIC.some((byte, i) => bytes[i] !== byte)) throw fail('is none, or cut short');
  if (u32(bytes, end) !== digests.crc32(bytes.subarray(0, end))) throw fail('has a checksum that does not match');
  const version = u32(bytes, 8);
  if (version < VERSION_WITHOUT_NAMES || version > VERSION)
    throw new SkuaError(
      'format_too_new',
      `The table of redactions ${name} is in format ${version}, but this version supports formats up to ${VERSION}: install the version that wrote it. Nothing was changed.`,
      { file: name, format: version, formatMax: VERSION },
    );
  const count = u32(bytes, 12);
  const keysAt = HEADER_BYTES + count * MARK_BYTES;
  if (keysAt > end) throw fail('is cut short');
  const positions = new Float64Array(count);
  const markedAt = new Float64Array(count);
  const ids = new Uint8Array(count * ID_BYTES);
  for (let i = 0; i < count; i++) {
    const at = HEADER_BYTES + i * MARK_BYTES;
    positions[i] = i64(bytes, at);
    markedAt[i] = i64(bytes, at + 8);
    for (let byte = 0; byte < ID_BYTES; byte++) ids[i * ID_BYTES + byte] = bytes[at + 16 + byte]!;
  }
  const named: unknown = parsed(bytes.subarray(keysAt, end));
  const keys = version === VERSION ? named : namesByPosition(named, { positions, markedAt });
  if (!isNames(keys, count)) throw fail('has names of metadata that are none');
  return { positions, markedAt, ids, keys };
}

/** Whether a file that begins with these bytes is a table, and has the id of a marked event at `offset`. */
export function isInMarksTable(head: Uint8Array, offset: number): boolean {
  return MAGIC.every((byte, i) => head[i] === byte) && (offset - HEADER_BYTES) % MARK_BYTES === MARK_BYTES - ID_BYTES;
}

/** Null where there is no such file. */
export async function readMarksTable(storage: Storage, path: string, digests: Digests): Promise<MarkColumns | null> {
  if ((await storage.size(path)) === null) return null;
  const file = await storage.open(path, 'read');
  try {
    return decodeMarks(path, await file.read(0, file.size), digests);
  } finally {
    await file.close();
  }
}

/** Puts a table in the place of the one that is there, at once and durably. */
export function writeMarksTable(storage: Storage, path: string, marks: MarkColumns, digests: Digests): Promise<void> {
  return replaceFile(storage, path, encodeMarks(marks, digests));
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeText(bytes));
  } catch {
    return null;
  }
}

function isNames(value: unknown, count: number): value is MarkColumns['keys'] {
  return (
    Array.isArray(value) &&
    value.every(
      (one: unknown) =>
        Array.isArray(one) &&
        one.length === 3 &&
        Number.isSafeInteger(one[0]) &&
        one[0] >= 0 &&
        one[0] < count &&
        isMarkKeys([one[1]]) &&
        Number.isSafeInteger(one[2]),
    )
  );
}

/**
 * Of version 1, which has pairs of a position and names: whichever mark is there, so that names hide too much rather
 * than too little.
 */
function namesByPosition(
  value: unknown,
  { positions, markedAt }: Pick<MarkColumns, 'positions' | 'markedAt'>,
): unknown {
  if (!Array.isArray(value)) return null;
  const names = new Map<unknown, unknown>(value.filter(Array.isArray).map(([position, those]) => [position, those]));
  return [...positions].flatMap((position, i) => {
    const those = names.size === 0 ? undefined : names.get(position);
    return Array.isArray(those) ? those.map((name) => [i, name, markedAt[i]]) : [];
  });
}
