import type { Storage } from '../ports/storage.ts';
import { TableSource } from './table-source.ts';

/** Entries handed over at once. */
const BATCH_ENTRIES = 4_096;

/** Entries of a table in columns; valid below `count`. */
export class EntryBatch {
  readonly hi = new Uint32Array(BATCH_ENTRIES);
  readonly lo = new Uint32Array(BATCH_ENTRIES);
  readonly versions = new Float64Array(BATCH_ENTRIES);
  readonly positions = new Float64Array(BATCH_ENTRIES);
  count = 0;
}

function takeBatch(source: TableSource, batch: EntryBatch): void {
  const { entry } = source;
  batch.count = 0;
  while (batch.count < BATCH_ENTRIES && source.next()) {
    batch.hi[batch.count] = entry.hi;
    batch.lo[batch.count] = entry.lo;
    batch.versions[batch.count] = entry.version;
    batch.positions[batch.count++] = entry.position;
  }
}

/** Reads a table's entries in the order of the file. The one batch object is filled again for each step. */
export async function* readBatches(storage: Storage, path: string): AsyncGenerator<EntryBatch, undefined, undefined> {
  const source = await TableSource.open(storage, path);
  const batch = new EntryBatch();
  try {
    while (await source.fill()) {
      for (takeBatch(source, batch); batch.count > 0; takeBatch(source, batch)) yield batch;
    }
  } finally {
    await source.close();
  }
}
