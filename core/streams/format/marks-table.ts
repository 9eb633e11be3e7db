import { i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { Digests } from '../../ports/digests.ts';
import { isMarkKeys } from './marks.ts';
import { replaceFile } from '../../ports/durability.ts';
import type { Storage } from '../../ports/storage.ts';
import type { MarkColumns } from '../redactions/redactions.ts';

/**
 * All marks of a log in one file, so that they are there by one read: for logs in a bucket, whose manifests name it, in
 * backups, and in a directory that was restored from one that knows less of them. Integers little-endian:
 *
 * | Offset | Size | Field |
 * |---|---|---|
 * | 0 | 8 | `SkuaMark` |
 * | 8 | 4 | version, 1 |
 * | 12 | 4 | number of marks, n |
 * | 16 | 32 n | of each, ascending: position of the marked record, position of the mark, on-disk id |
 * | 16 + 32 n | k | JSON: pairs of a position and names of metadata, for marks that name some |
 * | 16 + 32 n + k | 4 | CRC-32 of all before |
 */
export const MARKS_FILE = 'redactions';
const MAGIC = Uint8Array.from('SkuaMark', (letter) => letter.charCodeAt(0));
const VERSION = 1;
const HEADER_BYTES = 16;
const MARK_BYTES = 32;
const ID_BYTES = 16;

export function encodeMarks({ positions, markedAt, ids, keys }: MarkColumns, digests: Digests): Uint8Array {
  const named = encodeText(JSON.stringify(keys));
  const end = HEADER_BYTES + positions.length * MARK_BYTES + named.length;
  const out = new Uint8Array(end + 4);
  out.set(MAGIC);
  putI32(out, 8, VERSION);
  putI32(out, 12, positions.length);
  for (let i = 0; i < positions.length; i++) {
    const at = HEADER_BYTES + i * MARK_BYTES;
    putI64(out, at, positions[i]!);
    putI64(out, at + 8, markedAt[i]!);
    out.set(ids.subarray(i * ID_BYTES, (i + 1) * ID_BYTES), at + 16);
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
  if (u32(bytes, 8) !== VERSION)
    throw new SkuaError(
      'format_too_new',
      `The table of redactions ${name} is in format ${u32(bytes, 8)}, but this version supports formats up to ${VERSION}: install the version that wrote it. Nothing was changed.`,
      { file: name, format: u32(bytes, 8), formatMax: VERSION },
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
    ids.set(bytes.subarray(at + 16, at + MARK_BYTES), i * ID_BYTES);
  }
  const keys: unknown = parsed(bytes.subarray(keysAt, end));
  if (!isKeyList(keys)) throw fail('has names of metadata that are none');
  return { positions, markedAt, ids, keys };
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

function isKeyList(value: unknown): value is MarkColumns['keys'] {
  return (
    Array.isArray(value) &&
    value.every(
      (pair: unknown) =>
        Array.isArray(pair) && pair.length === 2 && Number.isSafeInteger(pair[0]) && isMarkKeys(pair[1]),
    )
  );
}
