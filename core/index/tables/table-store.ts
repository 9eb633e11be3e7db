import type { BlockCache } from '../../cache/cache.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Scrubbed } from '../../log/api.ts';
import { isSameStamp, stampOf } from '../../log/format/scrubbed-file.ts';
import { scrubbedSince } from '../../log/scrubber/scrubber.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Ids } from '../../ports/ids.ts';
import type { JobOptions, Jobs } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import { isExpectedName, isOwnName, listedNames } from '../../ports/own-names.ts';
import type { Storage } from '../../ports/storage.ts';
import { EMPTY_INDEX_MAP, type IndexMap, loadIndexMap, mapPathOf, newGuid, saveIndexMap } from '../format/index-map.ts';
import type { MemTableColumns } from '../mem-table/mem-table.ts';
import { BloomBudget } from '../format/table-bloom.ts';
import {
  type MergeTablesArgs,
  MERGE_TABLES_JOB,
  WRITE_TABLE_JOB,
  type WriteTableArgs,
  VERIFY_TABLE_JOB,
  type VerifyTableArgs,
  type VerifyTableResult,
  verifyTable,
} from '../jobs/jobs.ts';
import { loadScrubbedTables, saveScrubbedTables } from './table-scrub.ts';
import { removeTable } from '../format/table-writer.ts';
import { PositionTables } from '../position-tables/position-tables.ts';
import { TableReader } from './tables.ts';
import { bloomPathOf, POSITION_TABLE_VERSION, tableCorrupt } from '../format/table-format.ts';
import type { IndexHome } from '../index-settings.ts';

export interface TableStoreOptions {
  readonly ports: {
    readonly storage: Storage;
    readonly cache: BlockCache;
    readonly digests: Digests;
    readonly ids: Ids;
    readonly jobs: Jobs;
    readonly log: Log;
    readonly clock: Clock;
  };
  readonly settings: {
    readonly tablesPerLevelMax: number;
    readonly bloomFilters: boolean;
    readonly verify: boolean;
    readonly cacheDepth: number;
    readonly mergedEntriesMax: number;
  };
  readonly home: IndexHome;
  /** End of the log: an index that has entries at or beyond it belongs to another log. */
  readonly logEnd: number;
  /**
   * Why a table can't be of this log, by what some of its entries name; null where no entry shows that. Default: not
   * asked.
   */
  readonly whyAnother?: (path: string) => Promise<string | null>;
  readonly anchoring?: Anchoring;
}

/** How the log is known again at the end of the tables, beside the position. */
export interface Anchoring {
  /** What stands in the map for tables that end with the prepare at this position; one line. */
  make(prepare: number): Promise<string>;
  /** Why the log is another one than that of the map with this end and anchor; null where it isn't, or none shows. */
  whyAnother(prepare: number, anchor: string | undefined): Promise<string | null>;
}

type Levels = readonly (readonly TableReader[])[];

export interface FullLevel {
  readonly level: number;
  /** Oldest first. */
  readonly tables: readonly TableReader[];
  /** Older tables, too large to be merged, stand before them. */
  readonly isBehind: boolean;
}

/** Which table is to be copied, and where to. */
export interface TableExecution {
  /** Path of the table. */
  readonly source: string;
  /** Path of the new table, which does not exist yet. */
  readonly target: string;
  /** Where its bloom filter goes; null: none is written. */
  readonly bloomPath: string | null;
  readonly cacheDepth: number;
  /** Of the new table. */
  readonly version: number;
}

export interface TableExecuted {
  readonly entriesKept: number;
  readonly entriesDeleted: number;
  /** False when the new table would have been the same: then there is none. */
  readonly wasWritten: boolean;
  /** Bytes of the table's file. */
  readonly bytesBefore: number;
  /** Bytes of the file that now counts. */
  readonly bytesAfter: number;
  /** Entries of one stream that stand against the order of their positions: unusual, and nothing follows from it. */
  readonly entriesOutOfOrder: number;
}

/** A smaller table is verified on the spot: a worker takes longer to start. */
const VERIFY_HERE_BYTES_MAX = 1_048_576;
const NONE_SCRUBBED: ReadonlyMap<string, Scrubbed> = new Map();
/** Its presence asks for verification at the next start. */
const FORCE_VERIFY_NAME = '.forceverify';

/**
 * The tables of the index and the map that names them. What readers see, `newestFirst`, changes in one step, after the
 * map on disk has; the files of replaced tables go after that. So a crash leaves the old index or the new one, and at
 * worst files that no map names, which the next start removes.
 */
export class TableStore {
  readonly #options: TableStoreOptions;
  readonly #budget = new BloomBudget();
  #levels: Levels = [];
  #commit = -1;
  #prepare = -1;
  #anchor: string | undefined;
  #isClosed = false;
  /** Changes of the map, one after the other. */
  #lastChange: Promise<void> = Promise.resolve();
  /** The tables in the order in which they are searched: levels upwards, in each from the last to the first. */
  newestFirst: readonly TableReader[] = [];
  /** The same where their entries are positions. */
  ofPositions = new PositionTables([]);
  wasReset: string | null = null;
  /** The index was discarded because another log was seen in it: what lies beside it may be of that log, too. */
  wasAnothers = false;
  /** Merges that have ended. */
  merges = 0;
  /** Tables that are being merged. */
  readonly #merging = new Set<TableReader>();
  /** Levels whose tables are being merged. */
  readonly #mergingLevels = new Set<number>();

  private constructor(options: TableStoreOptions) {
    this.#options = options;
  }

  get commitCheckpoint(): number {
    return this.#commit;
  }
  get prepareCheckpoint(): number {
    return this.#prepare;
  }
  get levels(): Levels {
    return this.#levels;
  }
  get isMerging(): boolean {
    return this.#merging.size > 0;
  }
  /** Tables beyond those that full levels leave standing: they wait to be merged. */
  get unmerged(): number {
    return this.#levels.reduce((sum, tables) => {
      const full = this.#fullOf(tables);
      return full === null ? sum : sum + tables.length - full.from - this.#options.settings.tablesPerLevelMax + 1;
    }, 0);
  }

  /**
   * The oldest tables of a level that are to be merged: the first, and the one behind the last; null where it is not
   * full. Those that would become too large stay as they are, and what came behind them is merged without them.
   */
  #fullOf(tables: readonly TableReader[]): { readonly from: number; readonly to: number } | null {
    const { tablesPerLevelMax, mergedEntriesMax } = this.#options.settings;
    let entries = 0;
    for (let i = 0; i < tables.length; i++) {
      entries += tables[i]!.shape.entries;
      const from = i + 1 - tablesPerLevelMax;
      if (from > 0) entries -= tables[from - 1]!.shape.entries;
      if (from < 0 || entries > mergedEntriesMax) continue;
      let to = i + 1;
      while (to < tables.length && entries + tables[to]!.shape.entries <= mergedEntriesMax)
        entries += tables[to++]!.shape.entries;
      return { from, to };
    }
    return null;
  }

  /** Opens the index on disk, or an empty one where there is none or it can't be used. */
  static async open(options: TableStoreOptions, jobOptions: JobOptions): Promise<TableStore> {
    const store = new TableStore(options);
    try {
      await store.#load(jobOptions);
    } catch (error) {
      await store.#closeTables();
      if (!isSkuaError(error, 'index_corrupt') && !isSkuaError(error, 'file_not_found')) throw error;
      await store.#reset(error);
    }
    await store.#removeUnnamed();
    return store;
  }

  async #load(jobOptions: JobOptions): Promise<void> {
    const {
      ports: { storage, digests },
      settings: { verify },
      home: { folder },
      logEnd,
    } = this.#options;
    const map = (await loadIndexMap(storage, digests, folder)) ?? EMPTY_INDEX_MAP;
    if (map.commitCheckpoint >= 0 && map.commitCheckpoint >= logEnd) {
      this.wasReset = `it reaches ${map.commitCheckpoint}, beyond the end of the log at ${logEnd}`;
      await this.#reset(null);
      return;
    }
    const isForced = (await storage.size(`${folder}/${FORCE_VERIFY_NAME}`)) !== null;
    const scrubbed = verify && !isForced ? await loadScrubbedTables(this.#options.ports, folder) : NONE_SCRUBBED;
    const levels: TableReader[][] = [];
    this.#levels = levels;
    for (const names of map.levels) {
      const tables: TableReader[] = [];
      levels.push(tables);
      for (const name of names) {
        const table = await this.#openTable(`${folder}/${name}`);
        tables.push(table);
        if (verify || isForced) await this.#verify(table, scrubbed.get(name), jobOptions);
      }
    }
    this.#anchor = map.anchor;
    this.#show(levels, map.commitCheckpoint, map.prepareCheckpoint);
    await this.#discardAnothers();
  }

  /**
   * A folder of the index that another node was given, too, has that one's tables: events of this log would be missing,
   * and numbers given twice.
   */
  async #discardAnothers(): Promise<void> {
    const why = await this.#whyAnother();
    if (why === null) return;
    await this.#closeTables();
    this.wasAnothers = true;
    this.wasReset = `it is of another log: ${why}`;
    return this.#reset(null);
  }

  async #whyAnother(): Promise<string | null> {
    const { whyAnother, anchoring } = this.#options;
    if (anchoring !== undefined && this.#prepare >= 0) {
      const why = await anchoring.whyAnother(this.#prepare, this.#anchor);
      if (why !== null) return why;
    }
    for (const table of new Set([this.newestFirst[0], this.newestFirst.at(-1)])) {
      const why = table === undefined ? null : ((await whyAnother?.(table.path)) ?? null);
      if (why !== null) return why;
    }
    return null;
  }

  async #openTable(path: string): Promise<TableReader> {
    const table = await TableReader.open(path, {
      ...this.#options.ports,
      ...this.#options.settings,
      budget: this.#budget,
      order: 'none',
    });
    const { tableVersion } = this.#options.home;
    const isOfPositions = table.shape.version === POSITION_TABLE_VERSION;
    if (isOfPositions === (tableVersion === POSITION_TABLE_VERSION)) return table;
    await table.close();
    throw tableCorrupt(path, `is of version ${table.shape.version}, which is that of another index`);
  }

  /**
   * Throws `index_corrupt` unless the table is as it was written; what the last clean stop says of it is believed while
   * its file has not changed.
   */
  async #verify(table: TableReader, known: Scrubbed | undefined, jobOptions: JobOptions): Promise<void> {
    const { ports } = this.#options;
    const { path, fileBytes } = table;
    const before = await stampOf(ports.storage, path);
    if (known !== undefined && before !== null && isSameStamp(before, known)) {
      table.scrubbed = known;
      return;
    }
    const args: VerifyTableArgs = { path };
    const wrong =
      fileBytes > VERIFY_HERE_BYTES_MAX
        ? ((await ports.jobs.run(VERIFY_TABLE_JOB, args, jobOptions)) as VerifyTableResult)
        : await verifyTable(args, {
            ...ports,
            progress() {},
            async checkpoint() {},
            monotonicMs: () => ports.clock.monotonicMs(),
            async sleep() {},
          });
    if (wrong !== null) throw new SkuaError('index_corrupt', wrong, { path });
    table.scrubbed = await scrubbedSince(ports, path, before);
  }

  get #mapPath(): string {
    return mapPathOf(this.#options.home.folder);
  }

  /** Starts with an empty index. The map goes first, so that a crash on the way leaves no map with missing tables. */
  async #reset(error: SkuaError | null): Promise<void> {
    this.wasReset ??= error?.message ?? null;
    this.#options.ports.log.warn('The index on disk is discarded and rebuilt from the log.', {
      reason: this.wasReset,
      path: error?.data['path'] ?? this.#mapPath,
    });
    await this.#options.ports.storage.remove(this.#mapPath);
    this.#show([], -1, -1);
  }

  /** Removes files of ours that the map does not name. What has another name, and folders, are left alone. */
  async #removeUnnamed(): Promise<void> {
    const { storage, log } = this.#options.ports;
    const { folder } = this.#options.home;
    const named = new Set([this.#mapPath]);
    for (const table of this.newestFirst) named.add(table.path).add(bloomPathOf(table.path));
    const strangers: string[] = [];
    for (const name of await storage.list(folder)) {
      const path = `${folder}/${name}`;
      if (!isExpectedName(path)) strangers.push(name);
      else if (isOwnName(path) && !named.has(path)) await storage.remove(path);
    }
    if (strangers.length > 0)
      log.info('unknown files in the index folder are left untouched', { folder, files: listedNames(strangers) });
  }

  #show(levels: Levels, commit: number, prepare: number): void {
    this.#levels = levels;
    this.#commit = commit;
    this.#prepare = prepare;
    this.newestFirst = levels.flatMap((tables) => tables.toReversed());
    this.ofPositions = new PositionTables(this.newestFirst);
  }

  /** Saves the changed map and then shows it to readers, together with what `shown` does. */
  #change(
    make: (levels: Levels) => Levels,
    checkpoints: { commit: number; prepare: number } | null,
    shown: () => void,
  ): Promise<void> {
    const change = this.#lastChange.then(async () => {
      if (this.#isClosed)
        throw new SkuaError('store_closed', 'The index was closed before its map could be changed; it is unchanged.');
      const levels = make(this.#levels);
      const commitCheckpoint = checkpoints?.commit ?? this.#commit;
      const prepareCheckpoint = checkpoints?.prepare ?? this.#prepare;
      const { ports, home, anchoring } = this.#options;
      if (anchoring !== undefined && checkpoints !== null) this.#anchor = await anchoring.make(prepareCheckpoint);
      const map: IndexMap = {
        commitCheckpoint,
        prepareCheckpoint,
        levels: levels.map((tables) => tables.map((table) => table.name)),
        ...(this.#anchor !== undefined && { anchor: this.#anchor }),
      };
      await saveIndexMap(map, ports.storage, ports.digests, ports.ids, home.folder);
      this.#show(levels, commitCheckpoint, prepareCheckpoint);
      shown();
    });
    this.#lastChange = change.catch(() => {});
    return change;
  }

  #newFiles(): { path: string; bloomPath: string | null; cacheDepth: number; version: number } {
    const { folder, tableVersion } = this.#options.home;
    const path = `${folder}/${newGuid(this.#options.ports.ids)}`;
    return {
      path,
      version: tableVersion,
      bloomPath: this.#options.settings.bloomFilters ? bloomPathOf(path) : null,
      cacheDepth: this.#options.settings.cacheDepth,
    };
  }

  /** Opens a table that was just written. One that can't be opened is removed. */
  async #openNew(path: string): Promise<TableReader> {
    try {
      return await this.#openTable(path);
    } catch (error) {
      await removeTable(this.#options.ports.storage, path).catch(() => {});
      throw error;
    }
  }

  /** Puts a new table into the map. */
  async #enter(
    table: TableReader,
    make: (levels: Levels) => Levels,
    checkpoints: { commit: number; prepare: number } | null = null,
    shown: () => void = () => {},
  ): Promise<void> {
    try {
      await this.#change(make, checkpoints, shown);
    } catch (error) {
      // Which of the two maps is on the disk is not known, so the files stay; the next start removes them if no map
      // names them.
      await table.close();
      throw error;
    }
  }

  /** Writes a memtable as the newest table. `shown` is called in the step in which readers begin to see the table. */
  async write(
    columns: MemTableColumns,
    checkpoints: { commit: number; prepare: number },
    jobOptions: JobOptions,
    shown: () => void,
  ): Promise<void> {
    const args: WriteTableArgs = { ...this.#newFiles(), columns };
    await this.#options.ports.jobs.run(WRITE_TABLE_JOB, args, jobOptions);
    const table = await this.#openNew(args.path);
    await this.#enter(table, (levels) => [[...(levels[0] ?? []), table], ...levels.slice(1)], checkpoints, shown);
  }

  /** The log has gone on up to these positions, and no entry has come from it. */
  advance(checkpoints: { commit: number; prepare: number }): Promise<void> {
    return this.#change(
      (levels) => levels,
      checkpoints,
      () => {},
    );
  }

  /** The levels that are full and are not being merged, upwards, and their tables, oldest first. */
  fullLevels(): readonly FullLevel[] {
    const full: FullLevel[] = [];
    this.#levels.forEach((all, level) => {
      const tables = all.filter((table) => !this.#merging.has(table));
      const merged = this.#fullOf(tables);
      if (merged !== null && !this.#mergingLevels.has(level))
        full.push({ level, tables: tables.slice(merged.from, merged.to), isBehind: merged.from > 0 });
    });
    return full;
  }

  /**
   * Merges the oldest tables of a full level into the newest table of the next level, or where older ones stand before
   * them into one that takes their place. Another level may be merged meanwhile, and all tables stay in the order of
   * their age: levels upwards, in each from the last to the first.
   */
  async mergeLevel({ level, tables, isBehind }: FullLevel, jobOptions: JobOptions): Promise<void> {
    const sources = tables.toReversed();
    this.#mergingLevels.add(level);
    try {
      if (!isBehind) await this.#merge(sources, level + 1, jobOptions, (there, merged) => [...there, merged]);
      else {
        // Nothing is put before them meanwhile.
        const at = this.#levels[level]!.indexOf(tables[0]!);
        await this.#merge(sources, level, jobOptions, (there, merged) => there.toSpliced(at, 0, merged));
      }
    } finally {
      this.#mergingLevels.delete(level);
    }
  }

  /**
   * Merges all tables there are now into one, which takes the highest level they had: merges to come find it where the
   * largest table was. False when there are fewer than two. No other merge may be under way, or begin before its end.
   */
  async mergeAll(jobOptions: JobOptions): Promise<boolean> {
    const sources = this.newestFirst;
    if (sources.length < 2) return false;
    // What has come into its level meanwhile is newer.
    await this.#merge(
      sources,
      this.#levels.findLastIndex((tables) => tables.length > 0),
      jobOptions,
      (there, merged) => [merged, ...there],
    );
    return true;
  }

  /**
   * Merges tables, given newest first, into one that `place` puts among those of `level`. Tables that are written
   * meanwhile stay beside it.
   */
  async #merge(
    sources: readonly TableReader[],
    level: number,
    jobOptions: JobOptions,
    place: (there: readonly TableReader[], merged: TableReader) => readonly TableReader[],
  ): Promise<void> {
    const args: MergeTablesArgs = { ...this.#newFiles(), sources: sources.map((table) => table.path) };
    for (const table of sources) this.#merging.add(table);
    try {
      await this.#options.ports.jobs.run(MERGE_TABLES_JOB, args, jobOptions);
      const merged = await this.#openNew(args.path);
      await this.#enter(merged, (levels) => {
        const next: (readonly TableReader[])[] = levels.map((tables) =>
          tables.filter((table) => !sources.includes(table)),
        );
        next[level] = place(next[level] ?? [], merged);
        return next;
      });
      this.merges++;
    } finally {
      for (const table of sources) this.#merging.delete(table);
    }
    for (const table of sources) await this.#retire(table);
  }

  /** Where the table stands in the index map. */
  placeOf(table: TableReader): { readonly level: number; readonly index: number } {
    const level = this.#levels.findIndex((tables) => tables.includes(table));
    return { level, index: level < 0 ? -1 : this.#levels[level]!.indexOf(table) };
  }

  /**
   * Lets `execute` copy a table, and puts what it wrote in the table's place. When it rejects, the map is as it was.
   */
  async rewrite(
    table: TableReader,
    execute: (execution: TableExecution) => Promise<TableExecuted>,
  ): Promise<TableExecuted> {
    const { path, ...target } = this.#newFiles();
    const done = await execute({ source: table.path, target: path, ...target });
    if (!done.wasWritten) return done;
    const next = await this.#openNew(path);
    await this.#enter(next, (levels) =>
      levels.map((tables) => tables.map((other) => (other === table ? next : other))),
    );
    await this.#retire(table);
    return done;
  }

  async #retire(table: TableReader): Promise<void> {
    try {
      await table.close();
      await removeTable(this.#options.ports.storage, table.path);
    } catch (error) {
      this.#options.ports.log.warn('A replaced index table could not be removed; the next start tries again.', {
        path: table.path,
        error,
      });
    }
  }

  /** For a clean stop, when no table is written any more; does nothing where tables are not verified. */
  async saveScrubbed(): Promise<void> {
    if (this.#options.settings.verify)
      await saveScrubbedTables(this.#options.ports, this.#options.home.folder, this.newestFirst);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lastChange;
    await this.#closeTables();
  }

  async #closeTables(): Promise<void> {
    const tables = this.#levels.flat();
    this.#levels = [];
    this.newestFirst = [];
    this.ofPositions = new PositionTables([]);
    for (const table of tables) await table.close();
  }
}
