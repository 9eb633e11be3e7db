import { SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage } from '../../ports/storage.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { replaceFile } from '../../ports/durability.ts';

/**
 * In the data directory: the chunk files that were compared with their checksums, each with its length, its
 * modification time, and when. It only saves work.
 */
export const SCRUBBED_CHUNKS_FILE = 'proven-chunks';
export const SCRUBBED_CHUNKS_FORMAT = 'skua proven chunks 1';

/** Files that are named at most; what was compared beyond them is compared again after a start. */
const FILES_MAX = 100_000;
/** A longer file is not one that Skua wrote. */
const FILE_BYTES_MAX = 16_777_216;

/** What distinguishes one content of a file from another without reading it. */
export interface Stamp {
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** Which content of a file was found to fit its checksum, and when, in milliseconds since 1970. */
export interface Scrubbed extends Stamp {
  readonly scrubbedMs: number;
}

/** What a file is now; null where there is none. Throws what the storage throws. */
export async function stampOf(storage: Storage, path: string): Promise<Stamp | null> {
  const sizeBytes = await storage.size(path);
  const modifiedMs = await storage.modifiedMs(path);
  return sizeBytes === null || modifiedMs === null ? null : { sizeBytes, modifiedMs };
}

export function isSameStamp(a: Stamp, b: Stamp): boolean {
  return a.sizeBytes === b.sizeBytes && a.modifiedMs === b.modifiedMs;
}

/**
 * Reads what is known of files, by their names; nothing where there is no file. Throws `io_error` for one that is not
 * as it was written.
 */
export async function readScrubbed(
  storage: Storage,
  digests: Digests,
  path: string,
  format: string,
): Promise<ReadonlyMap<string, Scrubbed>> {
  if ((await storage.size(path)) === null) return new Map();
  const file = await storage.open(path, 'read');
  try {
    if (file.size > FILE_BYTES_MAX) throw notOurs(path);
    return decodeScrubbed(await file.read(0, file.size), digests, path, format);
  } finally {
    await file.close();
  }
}

/** As `readScrubbed`, of the bytes of the file. */
export function decodeScrubbed(
  bytes: Uint8Array,
  digests: Digests,
  path: string,
  format: string,
): ReadonlyMap<string, Scrubbed> {
  const found = new Map<string, Scrubbed>();
  const [head, ...lines] = decodeText(bytes).split('\n');
  if (head !== headOf(lines.join('\n'), digests, format)) throw notOurs(path);
  for (const line of lines) {
    const [name = '', sizeBytes, modifiedMs, scrubbedMs] = line.split(' ');
    if (name !== '')
      found.set(name, { sizeBytes: Number(sizeBytes), modifiedMs: Number(modifiedMs), scrubbedMs: Number(scrubbedMs) });
  }
  return found;
}

/** Replaces the file as a whole, durably. Throws what the storage throws. */
export async function writeScrubbed(
  storage: Storage,
  digests: Digests,
  path: string,
  format: string,
  files: ReadonlyMap<string, Scrubbed>,
): Promise<void> {
  const lines: string[] = [];
  for (const [name, { sizeBytes, modifiedMs, scrubbedMs }] of files)
    if (lines.length < FILES_MAX) lines.push(`${name} ${sizeBytes} ${modifiedMs} ${scrubbedMs}`);
  const text = `${lines.join('\n')}\n`;
  await replaceFile(storage, path, encodeText(`${headOf(text, digests, format)}\n${text}`));
}

function headOf(text: string, digests: Digests, format: string): string {
  const sha = digests.sha256();
  sha.update(encodeText(text));
  return `${format} ${[...sha.finish()].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

function notOurs(path: string): SkuaError {
  return new SkuaError('io_error', `${path} was changed or damaged.`, { path });
}
