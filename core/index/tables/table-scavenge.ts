import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { JobOptions } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import type { TableReader } from './tables.ts';
import type { TableExecuted, TableExecution, TableStore } from './table-store.ts';

/** What the scavenging of index tables and the run that directs it pass to each other. */

/** What became of one table. */
export interface TableReport {
  /** Its place in the index map; both -1 when its scavenging failed or was stopped. */
  readonly level: number;
  readonly index: number;
  readonly elapsedMs: number;
  /** All of them when nothing was changed. */
  readonly entriesKept: number;
  readonly entriesDeleted: number;
  readonly wasScavenged: boolean;
  /** Negative when the new file is longer. */
  readonly spaceSaved: number;
  /** Empty when all went well. */
  readonly error: string;
}

/** A run over the tables. */
export interface TableScavenge {
  /** Its signal ends the run between two tables too. */
  readonly jobOptions: JobOptions;
  /** Writes the new table, or finds that there is no need to. Leaves nothing behind when it rejects. */
  execute(execution: TableExecution): Promise<TableExecuted>;
  /** Called once a table, in the order in which they are gone through. */
  onTable(report: TableReport): void;
}

/** Text of the report on a table whose scavenging was stopped. */
const CANCELLED_TEXT = 'Scavenge cancelled';

/**
 * Goes through the tables there are now, newest level first and in each the newest first. Tables that are written
 * meanwhile are left alone. Ends with the first failure, which leaves that table and those behind it as they were; the
 * caller sees to it that no tables are merged meanwhile.
 */
export async function scavengeTables(
  tables: TableStore,
  run: TableScavenge,
  monotonicMs: () => number,
  log: Log,
): Promise<void> {
  for (const table of tables.newestFirst) {
    const startedMs = monotonicMs();
    const place = tables.placeOf(table);
    let done: TableExecuted;
    try {
      if (run.jobOptions.signal?.aborted === true)
        throw new SkuaError('aborted', 'The scavenge of the index was stopped between two tables.');
      done = await tables.rewrite(table, (execution) => run.execute(execution));
    } catch (error) {
      run.onTable(failed(table, error, monotonicMs() - startedMs));
      throw error;
    }
    if (done.entriesOutOfOrder > 0)
      log.warn('An index table has entries out of position order.', {
        path: table.path,
        entries: done.entriesOutOfOrder,
      });
    run.onTable({
      ...place,
      elapsedMs: monotonicMs() - startedMs,
      entriesKept: done.entriesKept,
      entriesDeleted: done.entriesDeleted,
      wasScavenged: done.wasWritten,
      spaceSaved: done.bytesBefore - done.bytesAfter,
      error: '',
    });
  }
}

function failed(table: TableReader, error: unknown, elapsedMs: number): TableReport {
  const text = isSkuaError(error, 'aborted') ? CANCELLED_TEXT : error instanceof Error ? error.message : String(error);
  return {
    level: -1,
    index: -1,
    elapsedMs,
    entriesKept: table.shape.entries,
    entriesDeleted: 0,
    wasScavenged: false,
    spaceSaved: 0,
    error: text,
  };
}
