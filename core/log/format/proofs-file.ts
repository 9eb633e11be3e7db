import { SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage } from '../../ports/storage.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { replaceFile } from '../../ports/durability.ts';

/** In the data directory: the chunk files that were proved, each with its length, its modification time, and when. It only saves work. */
export const PROOFS_FILE = 'proven-chunks';
export const PROOFS_FORMAT = 'skua proven chunks 1';

/** Files that are named at most; what is proved beyond them is proved again after a start. */
const PROOFS_MAX = 100_000;
/** A longer file is none of ours. */
const FILE_BYTES_MAX = 16_777_216;

/** What tells one content of a file from another without reading it. */
export interface Stamp { readonly sizeBytes: number; readonly modifiedMs: number }

/** Which content of a file was found to fit its checksum, and when, in milliseconds since 1970. */
export interface Proof extends Stamp { readonly provenMs: number }

/** What a file is now; null where there is none. Throws what the storage throws. */
export async function stampOf(storage: Storage, path: string): Promise<Stamp | null> {
  const sizeBytes = await storage.size(path);
  const modifiedMs = await storage.modifiedMs(path);
  return sizeBytes === null || modifiedMs === null ? null : { sizeBytes, modifiedMs };
}

export function isSameStamp(a: Stamp, b: Stamp): boolean {
  return a.sizeBytes === b.sizeBytes && a.modifiedMs === b.modifiedMs;
}

/** Reads proofs by the name of the file that was proved; none where there is no file. Throws `io_error` for one that was changed or damaged. */
export async function readProofs(storage: Storage, digests: Digests, path: string, format: string): Promise<ReadonlyMap<string, Proof>> {
  if (await storage.size(path) === null) return new Map();
  const file = await storage.open(path, 'read');
  try {
    if (file.size > FILE_BYTES_MAX) throw notOurs(path);
    return decodeProofs(await file.read(0, file.size), digests, path, format);
  } finally {
    await file.close();
  }
}

/** As `readProofs`, of the bytes of the file. */
export function decodeProofs(bytes: Uint8Array, digests: Digests, path: string, format: string): ReadonlyMap<string, Proof> {
  const found = new Map<string, Proof>();
  const [head, ...lines] = decodeText(bytes).split('\n');
  if (head !== headOf(lines.join('\n'), digests, format)) throw notOurs(path);
  for (const line of lines) {
    const [name = '', sizeBytes, modifiedMs, provenMs] = line.split(' ');
    if (name !== '') found.set(name, { sizeBytes: Number(sizeBytes), modifiedMs: Number(modifiedMs), provenMs: Number(provenMs) });
  }
  return found;
}

/** Replaces the file as a whole, durably. Throws what the storage throws. */
export async function writeProofs(storage: Storage, digests: Digests, path: string, format: string, proofs: ReadonlyMap<string, Proof>): Promise<void> {
  const lines: string[] = [];
  for (const [name, { sizeBytes, modifiedMs, provenMs }] of proofs) if (lines.length < PROOFS_MAX) lines.push(`${name} ${sizeBytes} ${modifiedMs} ${provenMs}`);
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
