import type { TableExecuted, TableExecution } from '../index/api.ts';
import type { TableEntry } from '../index/format/table-format.ts';
import { TableSource } from '../index/format/table-scan.ts';
import { type TableWriter, withWriter } from '../index/format/table-writer.ts';
import type { JobContext } from '../ports/jobs.ts';
import type { RunSettings } from './sources/run-settings.ts';
import { Throttle } from './sources/run-settings.ts';

/** Says which entries of a table stay. */
export interface EntryRule {
  /** True when the entry stays; asked in the order of the table. A promise only where something has to be read. */
  keeps(entry: TableEntry): boolean | Promise<boolean>;
  /** All entries have been asked for. Whether they are to be once more, as some could not be judged by then. */
  again(): boolean;
  /** Entries of one stream that stand against the order of their positions. */
  readonly outOfOrder: number;
}

export interface TableCopied extends TableExecuted {
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
export async function copyTable(
  execution: TableExecution,
  settings: RunSettings,
  context: JobContext,
  withRule: (work: (rule: EntryRule) => Promise<TableCopied>) => Promise<TableCopied>,
): Promise<TableCopied> {
  const source = await TableSource.open(context.storage, execution.source);
  try {
    return await withRule((rule) => new TableCopy(execution, settings, context, source, rule).run());
  } finally {
    await source.close();
  }
}

class TableCopy {
  readonly #execution: TableExecution;
  readonly #context: JobContext;
  readonly #source: TableSource;
  readonly #rule: EntryRule;
  readonly #throttle: Throttle;
  /** One bit an entry, set for those that go. */
  readonly #dropped: Uint8Array;
  #sinceThrottle = 0;
  /** Entries that were decided about, and copied. */
  #passed = 0;

  constructor(
    execution: TableExecution,
    settings: RunSettings,
    context: JobContext,
    source: TableSource,
    rule: EntryRule,
  ) {
    this.#execution = execution;
    this.#context = context;
    this.#source = source;
    this.#rule = rule;
    this.#throttle = new Throttle(settings.throttle, context);
    this.#dropped = new Uint8Array(Math.ceil(source.shape.entries / 8));
  }

  async run(): Promise<TableCopied> {
    const { entries, version } = this.#source.shape;
    const bytesBefore = this.#source.fileBytes;
    await this.#context.checkpoint();
    let deleted = await this.#decide();
    while (this.#rule.again()) {
      this.#source.rewind();
      this.#passed = 0;
      deleted += await this.#decide();
    }
    const wasWritten = deleted > 0 || version !== this.#execution.version;
    if (wasWritten)
      await withWriter(
        { ...this.#execution, path: this.#execution.target },
        entries - deleted,
        this.#context,
        (writer) => this.#copy(writer),
      );
    const bytesAfter = wasWritten ? (await this.#context.storage.size(this.#execution.target))! : bytesBefore;
    return {
      entriesKept: entries - deleted,
      entriesDeleted: deleted,
      wasWritten,
      bytesBefore,
      bytesAfter,
      entriesOutOfOrder: this.#rule.outOfOrder,
      restedMs: this.#throttle.restedMs,
    };
  }

  /** First pass. Returns how many entries go that stayed so far. */
  async #decide(): Promise<number> {
    const source = this.#source;
    const { entry } = source;
    let number = 0;
    let deleted = 0;
    while (await source.fill()) {
      while (source.next()) {
        const verdict = this.#rule.keeps(entry);
        if (!(typeof verdict === 'boolean' ? verdict : await verdict)) {
          this.#dropped[number >>> 3]! |= 1 << (number & 7);
          deleted++;
        }
        if (++number % CHECK_ENTRIES === 0) await this.#pause(CHECK_ENTRIES);
      }
    }
    return deleted;
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
