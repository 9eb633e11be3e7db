import type { OpenAttributeIndex } from '../attributes/attributes.ts';
import type { TableEntry } from '../index/format/table-format.ts';
import type { TableExecution } from '../index/api.ts';
import type { StreamIndex } from '../index/index.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { isMetastream } from '../streams/format/names.ts';
import type { StoredRetention } from '../streams/api.ts';
import { EXECUTE_POSITIONS_JOB, type ExecutePositionsArgs } from './positions-execution.ts';
import { type RunContext, withFiles } from './run-context.ts';
import { RecordNames } from './sources/run-chunks.ts';
import { type RunFiles, type RunSettings, storedRetention } from './sources/run-settings.ts';
import { copyTable, type EntryRule, type TableCopied } from './table-copy.ts';

/** Index execution: the entries of what was removed leave the tables there are now. */
export async function runIndexExecution(run: RunContext): Promise<void> {
  const { index } = run.deps.data;
  const attributes = await attributeIndexesOf(run);
  const sizes = new Map<string, number>();
  for (const { tables } of [{ tables: index }, ...attributes]) await addSizes(run, tables, sizes);
  run.progress.begin(
    'Index execution',
    0,
    [...sizes.values()].reduce((sum, size) => sum + size, 0),
  );
  await scavengeTables(run, sizes, null, index, EXECUTE_TABLE_JOB);
  for (const open of attributes)
    await whileThere(run, open, () => scavengeTables(run, sizes, open.name, open.tables, EXECUTE_POSITIONS_JOB));
}

/**
 * Those whose tables may name what was removed, with what they have in memory written as tables. Where that can't be,
 * it stays until a later run: no answer depends on it.
 */
async function attributeIndexesOf(run: RunContext): Promise<readonly OpenAttributeIndex[]> {
  const { table, attributes = null } = run.deps.data;
  if (attributes === null || ![...table.all()].some(({ isScavenged }) => isScavenged)) return [];
  const { open } = attributes;
  for (const index of open) {
    try {
      await run.orAborted(index.flush());
    } catch (error) {
      run.check();
      run.lines.indexUnwritten(index.name, error);
    }
  }
  return open;
}

/**
 * Works on an attribute index, which may be switched off at any time. One whose tables are damaged is given up, and
 * built anew; the run goes on.
 */
async function whileThere(run: RunContext, index: OpenAttributeIndex, work: () => Promise<void>): Promise<void> {
  const isThere = (): boolean => run.deps.data.attributes?.open.includes(index) === true;
  if (!isThere()) return;
  try {
    await work();
  } catch (error) {
    run.check();
    if (isThere() && !index.gaveUp(error)) throw error;
    run.lines.indexGone(index.name, error);
  }
}

type Tables = Pick<StreamIndex, 'tables' | 'holdMerges' | 'scavengeTables'>;

async function addSizes(run: RunContext, index: Pick<Tables, 'tables'>, sizes: Map<string, number>): Promise<void> {
  for (const { file } of index.tables()) sizes.set(file, (await run.deps.ports.storage.size(file)) ?? 0);
}

/** `name`: of the attribute index; null for the stream index. */
async function scavengeTables(
  run: RunContext,
  sizes: ReadonlyMap<string, number>,
  name: OpenAttributeIndex['name'] | null,
  index: Tables,
  job: string,
): Promise<void> {
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
    await index.scavengeTables({
      jobOptions: { signal: run.signal },
      execute: (execution) => executeOne(run, job, execution, sizes.get(execution.source) ?? 0),
      onTable: (report) => {
        run.history.tableDone(report, name);
        run.progress.bytesReclaimed += report.spaceSaved;
        run.lines.table(report, name);
      },
    });
  } finally {
    release();
  }
}

async function executeOne(
  run: RunContext,
  job: string,
  execution: TableExecution,
  bytes: number,
): Promise<TableCopied> {
  const part = Symbol();
  try {
    return await withFiles(run.deps.data, false, async (files) => {
      const args: ExecuteTableArgs & ExecutePositionsArgs = { ...execution, files, settings: run.settings() };
      const result = await run.job<TableCopied>(job, args, (told) => run.progress.ofPart(part, told, bytes));
      run.throttle.restedMs = result.restedMs;
      return result;
    });
  } finally {
    run.progress.endPart(part, bytes, 0);
  }
}

/** The job that copies what stays of one table. */
export const EXECUTE_TABLE_JOB = 'scavenge.execute-table';

export interface ExecuteTableArgs extends TableExecution {
  /** For the records of streams that share their hash. */
  readonly files: RunFiles;
  readonly settings: RunSettings;
}

export async function executeTable(args: ExecuteTableArgs, context: JobContext): Promise<TableCopied> {
  const { files, settings } = args;
  return copyTable(args, settings, context, async (work) => {
    const state = context.scavengeStates.open(settings.state);
    const names = new RecordNames(files, context.storage);
    try {
      return await work(new EntryJudge(state, settings, names));
    } finally {
      state.close();
      await names.close();
    }
  });
}

/** Streams of one shared hash that are remembered at a time. */
const NAMES_MAX = 1_024;

/**
 * Says which index entries stay. Entries come sorted by hash, so a stream's data are looked up once. Where streams
 * share a hash the record tells whose entry it is, and an entry without a record goes.
 */
class EntryJudge implements EntryRule {
  readonly #state: ScavengeState;
  readonly #pointPosition: number;
  readonly #rule: StoredRetention;
  readonly #names: RecordNames;
  readonly #keepFromByName = new Map<string, number>();
  #hi = -1;
  #lo = -1;
  #keepFrom = 0;
  /** Whether several streams have the hash of the last entry. */
  #isShared = false;
  #lastPosition = 0;
  outOfOrder = 0;

  constructor(state: ScavengeState, settings: RunSettings, names: RecordNames) {
    this.#state = state;
    this.#pointPosition = settings.point.position;
    this.#rule = storedRetention(settings);
    this.#names = names;
  }

  /** True when the entry stays. A promise only where its record has to be read. */
  keeps(entry: TableEntry): boolean | Promise<boolean> {
    if (entry.hi !== this.#hi || entry.lo !== this.#lo) this.#begin(entry.hi, entry.lo);
    // Entries of one stream descend by number, and so should their positions.
    else if (entry.position > this.#lastPosition && !this.#isShared) this.outOfOrder++;
    this.#lastPosition = entry.position;
    if (entry.position >= this.#pointPosition) return true;
    return this.#isShared ? this.#keepsShared(entry.version, entry.position) : entry.version >= this.#keepFrom;
  }

  again(): boolean {
    return false;
  }

  #begin(hi: number, lo: number): void {
    this.#hi = hi;
    this.#lo = lo;
    this.#keepFromByName.clear();
    this.#isShared = this.#state.isSharedHash(hi, lo);
    if (this.#isShared) return;
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
