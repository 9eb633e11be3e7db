import type { Clock } from '../ports/clock.ts';
import type { JobProgress } from '../ports/jobs.ts';
import type { Storage } from '../ports/storage.ts';
import type { ExistenceFilter } from './existence-filter.ts';
import type { MemTable } from './mem-table.ts';
import { type EntryBatch, readBatches } from './table-batches.ts';
import type { TableReader } from './table-reader.ts';

export interface ExistenceBuild {
  readonly filter: ExistenceFilter;
  readonly memTables: readonly MemTable[];
  readonly tables: readonly TableReader[];
  readonly storage: Storage;
  readonly clock: Clock;
  readonly onProgress: ((progress: JobProgress) => void) | undefined;
}

/** Entries after which other work gets to run. */
const SLICE_ENTRIES = 16_384;

/** Adds the hashes of all entries to an existence filter and sets its checkpoint to the greatest position among them. */
export async function buildExistence(build: ExistenceBuild): Promise<void> {
  let last = 0;
  let done = 0;
  const total = build.tables.reduce((sum, table) => sum + table.shape.entries, 0);
  for (const table of build.tables) {
    for await (const batch of readBatches(build.storage, table.path)) {
      last = Math.max(last, addBatch(build.filter, batch));
      done += batch.count;
      build.onProgress?.({ done, total, unit: 'entries' });
      await build.clock.yield();
    }
  }
  for (const table of build.memTables) {
    for (let from = 0; from < table.count; from += SLICE_ENTRIES) {
      last = Math.max(last, addColumns(build.filter, table, from, Math.min(from + SLICE_ENTRIES, table.count)));
      await build.clock.yield();
    }
  }
  build.filter.complete(last);
}

function addBatch(filter: ExistenceFilter, batch: EntryBatch): number {
  let last = 0;
  for (let i = 0; i < batch.count; i++) {
    // Entries of one hash are neighbours.
    if (i === 0 || batch.lo[i] !== batch.lo[i - 1] || batch.hi[i] !== batch.hi[i - 1]) filter.add(batch.hi[i]!, batch.lo[i]!);
    last = Math.max(last, batch.positions[i]!);
  }
  return last;
}

function addColumns(filter: ExistenceFilter, table: MemTable, from: number, to: number): number {
  const { hashHi, hashLo, positions } = table.columns();
  let last = 0;
  for (let i = from; i < to; i++) {
    filter.add(hashHi[i]!, hashLo[i]!);
    last = Math.max(last, positions[i]!);
  }
  return last;
}
