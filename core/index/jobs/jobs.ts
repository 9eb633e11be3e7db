import { isSkuaError } from '../../base/errors.ts';
import { type Job, type JobContext, paced } from '../../ports/jobs.ts';
import {
  compareEntries,
  HEADER_BYTES,
  MIDPOINT_BYTES,
  midpointIndex,
  readEntry,
  TableEntry,
  tableCorrupt,
} from '../format/table-format.ts';
import { checkMd5, openTable, TableSource } from '../format/table-scan.ts';
import { type TableWriter, withWriter } from '../format/table-writer.ts';
import { type MemTableColumns, sortedHeads } from '../mem-table/mem-table.ts';

export const WRITE_TABLE_JOB = 'index.write-table';

export interface WriteTableArgs {
  readonly path: string;
  readonly bloomPath: string | null;
  readonly cacheDepth: number;
  readonly version?: number;
  readonly columns: MemTableColumns;
}

/** Writes a memtable as a table. The hashes are sorted; the entries of each are in order already. */
export async function writeTable(args: WriteTableArgs, context: JobContext): Promise<void> {
  const { hashHi, hashLo, versions, positions, prev, count } = args.columns;
  const heads = await sortedHeads(args.columns, () => context.checkpoint());
  let next = 0;
  let entry = -1;
  let hi = 0;
  let lo = 0;
  const fill = (writer: TableWriter): void => {
    for (let room = writer.room; room > 0; room--) {
      if (entry < 0) {
        if (next === heads.length) return;
        entry = heads[next++]!;
        hi = hashHi[entry]!;
        lo = hashLo[entry]!;
      }
      writer.add(hi, lo, versions[entry]!, positions[entry]!);
      entry = prev[entry]!;
    }
  };
  await withWriter(args, count, context, async (writer) => {
    while (entry >= 0 || next < heads.length) {
      fill(writer);
      await writer.drain();
      await context.checkpoint();
    }
  });
}

export const MERGE_TABLES_JOB = 'index.merge-tables';

export interface MergeTablesArgs {
  /** The tables, newest first. */
  readonly sources: readonly string[];
  readonly path: string;
  readonly bloomPath: string | null;
  readonly cacheDepth: number;
  readonly version?: number;
}

/** Entries between two checkpoints: a thread of the lowest priority takes its time, and a stop waits for this many. */
const SLICE_ENTRIES = 4_096;

/**
 * Takes the greatest entries of the sources until one has to be filled, which is returned, the writer is full, or the
 * slice over. Tables of one log follow one another in time, so that the entries of a hash come in runs.
 */
function mergeSome(live: TableSource[], writer: TableWriter): TableSource | null {
  for (let left = Math.min(SLICE_ENTRIES, writer.room); left > 0;) {
    let greatest = live[0]!;
    let second: TableSource | null = null;
    for (let i = 1; i < live.length; i++) {
      const source = live[i]!;
      if (compareEntries(source.entry, greatest.entry) > 0) {
        second = greatest;
        greatest = source;
      } else if (second === null || compareEntries(source.entry, second.entry) > 0) second = source;
    }
    const { hi, lo, version, position } = greatest.entry;
    if (greatest.shape.version === writer.version) {
      const count = greatest.run(second?.entry ?? null, left);
      writer.addRun(hi, lo, greatest.takeRun(count));
      left -= count;
    } else {
      writer.add(hi, lo, version, position);
      left--;
    }
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
    for (const source of sources) if ((await source.fill()) && source.next()) live.push(source);
    let done = 0;
    await withWriter(args, total, context, async (writer) => {
      while (live.length > 0) {
        const before = writer.room;
        const empty = mergeSome(live, writer);
        done += before - writer.room;
        if (writer.room === 0) await writer.drain();
        if (empty !== null && !((await empty.fill()) && empty.next())) live.splice(live.indexOf(empty), 1);
        context.progress({ done, total, unit: 'entries' });
        await context.checkpoint();
      }
    });
  } finally {
    for (const source of sources) await source.close();
  }
}

/** Before a start goes on, and in the background of a running store, where no caller waits for the result. */
export const VERIFY_TABLE_JOB = 'index.verify-table';
export const PROVE_TABLE_JOB = 'index.prove-table';

export interface VerifyTableArgs {
  readonly path: string;
  /** Read no faster; 0, the default, for no limit. */
  readonly bytesPerSecond?: number;
}

/** What of a job's world is used. */
export type VerifyContext = Pick<
  JobContext,
  'storage' | 'digests' | 'progress' | 'checkpoint' | 'monotonicMs' | 'sleep'
>;
/** Null when the table is sound, else what is wrong with it. */
export type VerifyTableResult = string | null;

/** Checks the digest, the order of the entries, and that every midpoint is the entry it stands for. */
export async function verifyTable(args: VerifyTableArgs, context: VerifyContext): Promise<VerifyTableResult> {
  try {
    await verify(args, context);
    return null;
  } catch (error) {
    if (isSkuaError(error, 'index_corrupt') || isSkuaError(error, 'file_not_found')) return error.message;
    throw error;
  }
}

async function verify({ path, bytesPerSecond = 0 }: VerifyTableArgs, context: VerifyContext): Promise<void> {
  const { file, shape } = await openTable(context.storage, path);
  const source = new TableSource(path, file, shape);
  try {
    const between = paced(context, file.size, bytesPerSecond);
    let passed = 0;
    const sound = await checkMd5(file, context.digests, async (done) => {
      await between(done - passed);
      passed = done;
    });
    if (!sound) throw tableCorrupt(path, 'has an MD5 that does not match its bytes');
    const stored = await file.read(HEADER_BYTES + shape.entries * shape.entryBytes, shape.midpoints * MIDPOINT_BYTES);
    // Storage may give a view; midpoints of the largest table are a few megabytes.
    const check = new OrderCheck(path, source, stored.slice());
    while (await source.fill()) {
      check.block();
      await context.checkpoint();
    }
  } finally {
    await source.close();
  }
}

class OrderCheck {
  readonly #path: string;
  readonly #source: TableSource;
  readonly #midpoints: Uint8Array;
  readonly #midpoint = new TableEntry();
  readonly #last = new TableEntry();
  #number = 0;
  #nextMidpoint = 0;

  constructor(path: string, source: TableSource, midpoints: Uint8Array) {
    this.#path = path;
    this.#source = source;
    this.#midpoints = midpoints;
  }

  block(): void {
    const { entry, shape } = this.#source;
    while (this.#source.next()) {
      if (this.#number > 0 && compareEntries(this.#last, entry) < 0)
        throw tableCorrupt(this.#path, `is out of order at entry ${this.#number}`);
      this.#last.hi = entry.hi;
      this.#last.lo = entry.lo;
      this.#last.version = entry.version;
      this.#last.position = entry.position;
      while (
        this.#nextMidpoint < shape.midpoints &&
        midpointIndex(this.#nextMidpoint, shape.midpoints, shape.entries) === this.#number
      )
        this.#checkMidpoint();
      this.#number++;
    }
  }

  #checkMidpoint(): void {
    const m = this.#midpoint;
    readEntry(this.#midpoints, this.#nextMidpoint * MIDPOINT_BYTES, 4, m);
    const e = this.#last;
    if (m.hi !== e.hi || m.lo !== e.lo || m.version !== e.version || m.position !== this.#number) {
      throw tableCorrupt(this.#path, `has a midpoint ${this.#nextMidpoint} that is not entry ${this.#number}`);
    }
    this.#nextMidpoint++;
  }
}

/** What workers do for the index. */
export const TABLE_JOBS: Readonly<Record<string, Job>> = {
  [WRITE_TABLE_JOB]: writeTable,
  [MERGE_TABLES_JOB]: mergeTables,
  [VERIFY_TABLE_JOB]: verifyTable,
  [PROVE_TABLE_JOB]: verifyTable,
};
