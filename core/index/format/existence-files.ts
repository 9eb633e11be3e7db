import type { Storage } from '../../ports/storage.ts';
import { LINE_BYTES, readBloomHeader } from './bloom.ts';

/** The files of the stream existence filter. */

const FOLDER = 'index/stream-existence';
export const EXISTENCE_DATA_PATH = `${FOLDER}/streamExistenceFilter.dat`;
export const EXISTENCE_CHECKPOINT_PATH = `${FOLDER}/streamExistenceFilter.chk`;
/**
 * Unit in which changes are written. Pages that were never used are zeros, and take no room on a disk that knows holes.
 */
export const PAGE_BYTES = 8_192;

/**
 * Bytes of bits of the existence filter that is there, so that a start does not take it for one of another size; null
 * without one.
 */
export async function existenceBytesOf(storage: Storage): Promise<number | null> {
  const size = await storage.size(EXISTENCE_DATA_PATH);
  if (size === null) return null;
  const file = await storage.open(EXISTENCE_DATA_PATH, 'read');
  try {
    return readBloomHeader(await file.read(0, LINE_BYTES), size)?.logicalBytes ?? null;
  } finally {
    await file.close();
  }
}
