import { TABLE_VERSION, type TableEntry } from '../index/format/table-format.ts';
import { TableSource } from '../index/format/table-scan.ts';
import type { TableExecuted, TableExecution } from '../index/api.ts';
import { type TableWriter, withWriter } from '../index/format/table-writer.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { isMetastream } from '../streams/format/names.ts';
import type { StoredRetention } from '../streams/api.ts';
import { type RunContext, withFiles } from './run-context.ts';
import { RecordNames } from './sources/run-chunks.ts';
import { type RunFiles, type RunSettings, storedRetention, Throttle } from './sources/run-settings.ts';

/** Index execution: the entries of what was removed leave the tables there are now. */
export async function runIndexExecution(run: RunContext): Promise<void> {
  const {
    data: { index },
    ports: { storage },
  } = run.deps;
  const sizes = new Map<string, number>();
  for (const { file } of index.tables()) sizes.set(file, (await storage.size(file)) ?? 0);
  run.progress.begin(
    'Index execution',
    0,
    [...sizes.values()].reduce((sum, size) => sum + size, 0),
  );
  // A large merge may be under way, for which a stop does not wait.
  const holding = index.holdMerges();
  let release: () => void;
  try {
    release = await run.orAborted(holding);
  } catch (error) {
    void holding.then(
      (letGo) => letGo(),
      () => {},
    );
    throw error;
  }
  try {
    await scavengeTables(run, sizes);
  } finally {
    release();
  }
}

async function scavengeTables(run: RunContext, sizes: ReadonlyMap<string, number>): Promise<void> {
  await run.deps.data.index.scavengeTables({
    jobOptions: { signal: run.signal },
    execute: (execution) => {
      const part = Symbol();
      const bytes = sizes.get(execution.source) ?? 0;
      return withFiles(run.deps.data, false, async (files) => {
        const args: ExecuteTableArgs = { ...execution, files, settings: run.settings() };
        const result = await run.job<ExecuteTableResult>(EXECUTE_TABLE_JOB, args, (told) =>
          run.progress.ofPart(part, told, bytes),
        );
        run.throttle.restedMs = result.restedMs;
        return result;
      }).finally(() => run.progress.endPart(part, bytes, 0));
    },
    onTable: (report) => {
      run.history.tableDone(report);
      run.progress.bytesReclaimed += report.spaceSaved;
      run.lines.table(report);
    },
  });
}

/** The job that copies what stays of one table. */
export const EXECUTE_TABLE_JOB = 'scavenge.execute-table';

export interface ExecuteTableArgs extends TableExecution {
  /** For the records of streams that share their hash. */
  readonly files: RunFiles;
  readonly settings: RunSettings;
}

interface ExecuteTableResult extends TableExecuted {
  /** Of the whole run. */
  readonly restedMs: number;
}

/** Entries after which it is asked whether the job is to end. */
const CHECK_ENTRIES = 1_024;
/** Entries after which the throttle is asked. */
const THROTTLE_ENTRIES = 32_768;

/**
 * Copies the entries of an index table that stay into a new table. The table is read twice: the first pass decides,
 * and only when something goes is a file begun, of which the number of entries is then known.
 */
export async function executeTable(args: ExecuteTableArgs, context: JobContext): Promise<ExecuteTableResult> {
  const source = await TableSource.open(context.storage, args.source);
  try {
    const state = context.scavengeStates.open(args.settings.state);
    const names = new RecordNames(args.files, context.storage);
    try {
      return await new TableExecutor(args, context, source, new EntryJudge(state, args.settings, names)).run();
    } finally {
      state.close();
      await names.close();
    }
  } finally {
    await source.close();
  }
}

class TableExecutor {
  readonly #args: ExecuteTableArgs;
  readonly #context: JobContext;
  readonly #source: TableSource;
  readonly #judge: EntryJudge;
  readonly #throttle: Throttle;
  /** One bit an entry, set for those that go. */
  readonly #dropped: Uint8Array;
  #sinceThrottle = 0;
  #passed = 0;
  #outOfOrder = 0;

  constructor(args: ExecuteTableArgs, context: JobContext, source: TableSource, judge: EntryJudge) {
    this.#args = args;
    this.#context = context;
    this.#source = source;
    this.#judge = judge;
    this.#throttle = new Throttle(args.settings.throttle, context);
    this.#dropped = new Uint8Array(Math.ceil(source.shape.entries / 8));
  }

  async run(): Promise<ExecuteTableResult> {
    const { entries, version } = this.#source.shape;
    const bytesBefore = this.#source.fileBytes;
    await this.#context.checkpoint();
    const deleted = await this.#decide();
    const wasWritten = deleted > 0 || version !== TABLE_VERSION;
    if (wasWritten)
      await withWriter({ ...this.#args, path: this.#args.target }, entries - deleted, this.#context, (writer) =>
        this.#copy(writer),
      );
    const bytesAfter = wasWritten ? (await this.#context.storage.size(this.#args.target))! : bytesBefore;
    return {
      entriesKept: entries - deleted,
      entriesDeleted: deleted,
      wasWritten,
      bytesBefore,
      bytesAfter,
      entriesOutOfOrder: this.#outOfOrder,
      restedMs: this.#throttle.restedMs,
    };
  }

  /** First pass. Returns how many entries go. */
  async #decide(): Promise<number> {
    const source = this.#source;
    const { entry } = source;
    let number = 0;
    let deleted = 0;
    while (await source.fill()) {
      while (source.next()) {
        const verdict = this.#judge.keeps(entry);
        if (!(typeof verdict === 'boolean' ? verdict : await verdict)) {
          this.#dropped[number >>> 3]! |= 1 << (number & 7);
          deleted++;
        }
        this.#noteOrder(entry);
        if (++number % CHECK_ENTRIES === 0) await this.#pause(CHECK_ENTRIES);
      }
    }
    return deleted;
  }

  #lastHi = -1;
  #lastLo = -1;
  #lastPosition = 0;

  /** Entries of one stream descend by number, and so should their positions. */
  #noteOrder(entry: TableEntry): void {
    if (
      entry.hi === this.#lastHi &&
      entry.lo === this.#lastLo &&
      entry.position > this.#lastPosition &&
      !this.#judge.isShared
    )
      this.#outOfOrder++;
    this.#lastHi = entry.hi;
    this.#lastLo = entry.lo;
    this.#lastPosition = entry.position;
  }

  /** Second pass. */
  async #copy(writer: TableWriter): Promise<void> {
    const source = this.#source;
    let number = 0;
    source.rewind();
    while (await source.fill()) {
      for (;;) {
        const before = number;
        number = this.#copySome(writer, number);
        if (number === before && writer.room > 0) break;
        if (writer.room === 0) await writer.drain();
        await this.#pause(number - before);
      }
    }
  }

  /**
   * Copies until the block is used up, the writer is full, or others are to have a turn. Returns the number of the next
   * entry.
   */
  #copySome(writer: TableWriter, from: number): number {
    const { entry } = this.#source;
    const to = from + Math.min(CHECK_ENTRIES, writer.room);
    let number = from;
    for (; number < to && this.#source.next(); number++) {
      if ((this.#dropped[number >>> 3]! & (1 << (number & 7))) === 0)
        writer.add(entry.hi, entry.lo, entry.version, entry.position);
    }
    return number;
  }

  async #pause(passed: number): Promise<void> {
    this.#passed += passed;
    this.#sinceThrottle += passed;
    const total = this.#source.fileBytes;
    // Half of the work is deciding.
    this.#context.progress({
      done: Math.floor((total * this.#passed) / (2 * this.#source.shape.entries)),
      total,
      unit: 'bytes',
    });
    await this.#context.checkpoint();
    if (this.#sinceThrottle < THROTTLE_ENTRIES) return;
    this.#sinceThrottle = 0;
    await this.#throttle.rest();
  }
}

/** Streams of one shared hash that are remembered at a time. */
const NAMES_MAX = 1_024;

/**
 * Says which index entries stay. Entries come sorted by hash, so a stream's data are looked up once. Where streams
 * share a hash the record tells whose entry it is, and an entry without a record goes.
 */
class EntryJudge {
  readonly #state: ScavengeState;
  readonly #pointPosition: number;
  readonly #rule: StoredRetention;
  readonly #names: RecordNames;
  readonly #keepFromByName = new Map<string, number>();
  #hi = -1;
  #lo = -1;
  #keepFrom = 0;
  /** Whether several streams have the hash of the last entry. */
  isShared = false;

  constructor(state: ScavengeState, settings: RunSettings, names: RecordNames) {
    this.#state = state;
    this.#pointPosition = settings.point.position;
    this.#rule = storedRetention(settings);
    this.#names = names;
  }

  /** True when the entry stays. A promise only where its record has to be read. */
  keeps(entry: TableEntry): boolean | Promise<boolean> {
    if (entry.hi !== this.#hi || entry.lo !== this.#lo) this.#begin(entry.hi, entry.lo);
    if (entry.position >= this.#pointPosition) return true;
    return this.isShared ? this.#keepsShared(entry.version, entry.position) : entry.version >= this.#keepFrom;
  }

  #begin(hi: number, lo: number): void {
    this.#hi = hi;
    this.#lo = lo;
    this.#keepFromByName.clear();
    this.isShared = this.#state.isSharedHash(hi, lo);
    if (this.isShared) return;
    const original = this.#state.originalByHash(hi, lo);
    if (original === undefined) this.#rule.ofMetastream(this.#state.metastreamByHash(hi, lo));
    else this.#rule.ofOriginal(original);
    this.#keepFrom = this.#rule.firstEntry;
  }

  async #keepsShared(version: number, position: number): Promise<boolean> {
    const name = await this.#names.streamAt(position);
    return name !== null && version >= this.#keepFromOf(name);
  }

  #keepFromOf(name: string): number {
    const known = this.#keepFromByName.get(name);
    if (known !== undefined) return known;
    if (isMetastream(name)) this.#rule.ofMetastream(this.#state.metastream(name, this.#hi, this.#lo));
    else this.#rule.ofOriginal(this.#state.original(name, this.#hi, this.#lo));
    const keepFrom = this.#rule.firstEntry;
    if (this.#keepFromByName.size >= NAMES_MAX) this.#keepFromByName.clear();
    this.#keepFromByName.set(name, keepFrom);
    return keepFrom;
  }
}
