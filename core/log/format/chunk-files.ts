import { SkuaError } from '../../base/errors.ts';
import type { Storage } from '../../ports/storage.ts';
import {
  type ChunkFooter,
  type ChunkHeader,
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
} from './chunk-format.ts';

/** What the name, the header and the footer of a chunk file must say of one another. */

export async function readHeader(storage: Storage, name: string): Promise<ChunkHeader> {
  const file = await storage.open(name, 'read');
  try {
    return decodeHeader(name, await file.read(0, HEADER_BYTES));
  } finally {
    await file.close();
  }
}

/** Chunks that a file must cover, and the log's chunk size. */
export interface ChunkRange {
  readonly number: number;
  readonly endNumber: number;
  readonly chunkSize: number;
}

/** Throws `log_corrupt` when a header does not belong in its place. */
export function checkHeaderRange(
  name: string,
  header: ChunkHeader,
  { number, endNumber, chunkSize }: ChunkRange,
): void {
  const fail = (what: string, offset: number) =>
    new SkuaError(
      'log_corrupt',
      `The header of ${name} ${what} (offset ${offset}). The file is damaged or belongs to another log: restore it from a backup.`,
      { file: name, offset },
    );
  if (header.chunkSize !== chunkSize)
    throw fail(`names a chunk size of ${header.chunkSize}, the first chunk one of ${chunkSize}`, 2);
  if (header.startNumber !== number) throw fail(`says that it is chunk ${header.startNumber}`, 6);
  if (header.endNumber !== endNumber) throw fail(`says that it ends with chunk ${header.endNumber}`, 10);
}

/** A completed file of version 2 is not padded, so its length must be what the footer adds up to. */
export function checkOldLength(name: string, header: ChunkHeader, footer: ChunkFooter, fileBytes: number): void {
  const expected = HEADER_BYTES + footer.physicalBytes + footer.mapBytes + FOOTER_BYTES;
  if (header.version !== 2 || fileBytes === expected) return;
  throw new SkuaError(
    'log_corrupt',
    `${name} has ${fileBytes} bytes, but its footer adds up to ${expected} (offset ${fileBytes - FOOTER_BYTES}). Restore the file from a backup.`,
    { file: name, offset: fileBytes - FOOTER_BYTES },
  );
}

/** True when the file ends in the footer of a completed chunk. */
export async function hasFooter(storage: Storage, name: string): Promise<boolean> {
  const file = await storage.open(name, 'read');
  try {
    decodeHeader(name, await file.read(0, HEADER_BYTES));
    decodeFooter(name, await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES), file.size);
    return true;
  } catch (error) {
    if (error instanceof SkuaError && error.code === 'log_corrupt') return false;
    throw error;
  } finally {
    await file.close();
  }
}

/** A chunk file without any data: what a crash between two steps of a chunk's creation leaves. */
export async function isEmptyChunk(storage: Storage, name: string): Promise<boolean> {
  const file = await storage.open(name, 'read');
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    if (header.isScavenged || header.startNumber !== header.endNumber) return false;
    const start = await file.read(HEADER_BYTES, 4096);
    return start.every((byte) => byte === 0);
  } finally {
    await file.close();
  }
}
