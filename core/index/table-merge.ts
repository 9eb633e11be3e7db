import type { JobContext } from '../ports/jobs.ts';
import { compareEntries } from './format/table-format.ts';
import { TableSource } from './table-scan.ts';
import { type TableWriter, withWriter } from './table-write.ts';

export const MERGE_TABLES_JOB = 'index.merge-tables';

export interface MergeTablesArgs {
  /** The tables, newest first. */
  readonly sources: readonly string[];
  readonly path: string;
  readonly bloomPath: string | null;
  readonly cacheDepth: number;
}

/** Entries between two checkpoints: a thread of the lowest priority takes its time, and a stop waits for this many. */
const SLICE_ENTRIES = 4_096;

/** Takes the greatest entries of the sources until one has to be filled, which is returned, the writer is full, or the slice over. */
function mergeSome(live: TableSource[], writer: TableWriter): TableSource | null {
  for (let left = Math.min(SLICE_ENTRIES, writer.room); left > 0; left--) {
    let greatest = live[0]!;
    for (let i = 1; i < live.length; i++) if (compareEntries(live[i]!.entry, greatest.entry) > 0) greatest = live[i]!;
    const { hi, lo, version, position } = greatest.entry;
    writer.add(hi, lo, version, position);
    if (!greatest.next()) return greatest;
  }
  return null;
}

/** Merges tables into one. Nothing is dropped. */
export async function mergeTables(args: MergeTablesArgs, context: JobContext): Promise<void> {
  const sources: TableSource[] = [];
  try {
    for (const path of args.sources) sources.push(await TableSource.open(context.storage, path));
    const total = sources.reduce((sum, source) => sum + source.shape.entries, 0);
    const live: TableSource[] = [];
    for (const source of sources) if (await source.fill() && source.next()) live.push(source);
    let done = 0;
    await withWriter(args, total, context, async (writer) => {
      while (live.length > 0) {
        const before = writer.room;
        const empty = mergeSome(live, writer);
        done += before - writer.room;
        if (writer.room === 0) await writer.drain();
        if (empty !== null && !(await empty.fill() && empty.next())) live.splice(live.indexOf(empty), 1);
        context.progress({ done, total, unit: 'entries' });
        await context.checkpoint();
      }
    });
  } finally {
    for (const source of sources) await source.close();
  }
}
