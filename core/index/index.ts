import type { BlockCache } from '../cache/cache.ts';
import { background } from '../base/background.ts';
import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import { isSkuaError, SkuaError } from '../base/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { JobProgress, Jobs } from '../ports/jobs.ts';
import type { Log } from '../ports/log.ts';
import type { Storage } from '../ports/storage.ts';
import { Background } from './background-work/background-work.ts';
import { type EntryList, IndexEntry } from './format/entries.ts';
import { ExistenceFilter, buildExistence } from './existence-filter.ts';
import {
  checkSettings,
  DEFAULT_INDEX_SETTINGS,
  type IndexHome,
  type IndexSettings,
  STREAM_INDEX_HOME,
} from './index-settings.ts';
import type { MemTableColumns } from './mem-table/mem-table.ts';
import { MemTables } from './mem-table/mem-tables.ts';
import { Merging } from './tables/merging.ts';
import { type StreamHasher, streamHasher } from '../base/stream-hash.ts';
import { type EntryBatch, readBatches } from './format/table-scan.ts';
import { scavengeTables, type TableScavenge } from './tables/table-scavenge.ts';
import { scrubTables } from './tables/table-scrub.ts';
import { type Anchoring, TableStore } from './tables/table-store.ts';

/** Memtables that may wait to be written before writers are held back. */
const FROZEN_MAX = 1;
/**
 * Tables that may wait to be merged before no more are written, and so writers refused with `too_busy`: each takes 1
 * MiB of memory, and every search asks it. Merges that run don't fall so far behind; those that fail or are held for
 * days do.
 */
const UNMERGED_TABLES_MAX = 512;
/** How long hardly any entries come before no memory is kept for the next memtable, in milliseconds. */
const ROOM_KEPT_MS = 5_000;
/** What an index needs of the world. */
export interface IndexPorts {
  readonly storage: Storage;
  readonly cache: BlockCache;
  readonly digests: Digests;
  readonly ids: Ids;
  readonly jobs: Jobs;
  readonly log: Log;
  readonly clock: Clock;
}

export interface StreamIndexOptions {
  readonly ports: IndexPorts;
  /** What is left out is as in `DEFAULT_INDEX_SETTINGS`. */
  readonly settings?: Partial<IndexSettings>;
  /** End of the log: an index that reaches to it or beyond is of another log and discarded. */
  readonly logEnd: number;
  /** As `TableStore` has it. */
  readonly whyAnother?: (path: string) => Promise<string | null>;
  readonly hasher?: StreamHasher;
  /** Default: the stream index's. */
  readonly home?: IndexHome;
  readonly anchoring?: Anchoring;
  readonly onProgress?: (progress: JobProgress) => void;
}

export interface IndexTableInfo {
  /** Path of the file under the data directory. */
  readonly file: string;
  readonly level: number;
  readonly entries: number;
}

interface StreamIndexParts {
  readonly options: StreamIndexOptions;
  readonly settings: IndexSettings;
  readonly tables: TableStore;
  readonly existence: ExistenceFilter | null;
}

/**
 * The index: (stream hash, event number) -> log position. New entries go to a memtable; full ones are written as
 * tables and tables merged in the background. It is a cache of the log and can always be rebuilt from it.
 *
 * Searches are steps that never wait (core/base/step.ts). They see every entry that was added. Streams whose hashes
 * collide share entries; the caller compares names in the log.
 */
export class StreamIndex {
  readonly hasher: StreamHasher;
  /** Why the index on disk was discarded at open; null when it was not. */
  readonly wasReset: string | null;
  readonly #ports: IndexPorts;
  readonly #verifies: boolean;
  readonly #logEnd: number;
  readonly #onProgress: ((progress: JobProgress) => void) | undefined;
  readonly #memory: MemTables;
  readonly #tables: TableStore;
  readonly #existence: ExistenceFilter | null;
  /** Ends the writing of tables behind the one that is being written. */
  readonly #endingWrites = new AbortController();
  /** Ends the table that is being written too. */
  readonly #ending = new AbortController();
  readonly #writing: Background;
  readonly #merging: Merging;
  readonly #candidate = new IndexEntry();
  #room: PromiseWithResolvers<void> | null = null;
  /** The memory of a memtable that was written is kept for the next one. */
  #keepsRoom = false;
  /** While above 0, the files of the existence filter are left as they are. */
  #existenceHolds = 0;

  private constructor({ options, settings, tables, existence }: StreamIndexParts) {
    const { ports } = options;
    this.#ports = ports;
    this.#verifies = settings.verify;
    this.#logEnd = options.logEnd;
    this.#onProgress = options.onProgress;
    this.#memory = new MemTables({
      entriesMax: settings.memTableEntriesMax,
      // The worker's start is over by the time that it is needed, and costs no append its time.
      onNearlyFull: () => ports.jobs.prepare?.(),
      onFull: () => this.#writing.kick(),
    });
    this.#tables = tables;
    this.#existence = existence;
    this.hasher = options.hasher ?? streamHasher;
    this.wasReset = tables.wasReset;
    this.#writing = new Background('Writing an index table', () => this.#writeOldest(), {
      clock: ports.clock,
      log: ports.log,
      signal: this.#endingWrites.signal,
    });
    this.#merging = new Merging(tables, ports, settings);
    // A merge that a stop ended begins again.
    this.#merging.kick();
  }

  /**
   * Opens the index on disk; where it is damaged or reaches beyond the log it is discarded, and `wasReset` says why.
   * What is missing up to the end of the log has to be added by a replay from `commitCheckpoint`. Full levels are
   * merged from now on. Throws `bad_option`.
   */
  static async open(options: StreamIndexOptions): Promise<StreamIndex> {
    const { ports, logEnd, whyAnother, anchoring, onProgress, home = STREAM_INDEX_HOME } = options;
    const settings: IndexSettings = { ...DEFAULT_INDEX_SETTINGS, ...options.settings };
    checkSettings(settings);
    const tables = await TableStore.open(
      {
        ports,
        settings,
        home,
        logEnd,
        ...(whyAnother !== undefined && { whyAnother }),
        ...(anchoring !== undefined && { anchoring }),
      },
      onProgress === undefined ? {} : { onProgress },
    );
    const logicalBytes = settings.existenceFilterBytes;
    try {
      const existence =
        logicalBytes === 0
          ? null
          : await ExistenceFilter.open({ ...ports, logicalBytes, logEnd, isAnew: tables.wasAnothers });
      return new StreamIndex({ options, settings, tables, existence });
    } catch (error) {
      await tables.close();
      throw error;
    }
  }

  /** Commit position up to which the tables reach; -1 when there are none. */
  get commitCheckpoint(): number {
    return this.#tables.commitCheckpoint;
  }
  /** Commit position of the last transaction in the index, be it in a table or in memory; -1 when it is empty. */
  get lastCommitPosition(): number {
    return Math.max(this.#memory.commitPosition, this.commitCheckpoint);
  }
  /** Merges of tables that have ended, and whether one is under way. */
  get merges(): number {
    return this.#tables.merges;
  }
  get isMerging(): boolean {
    return this.#tables.isMerging;
  }
  /** Entries that are in no table yet. */
  get entriesInMemory(): number {
    return this.#memory.count;
  }
  /** Bytes of the tables' files. */
  get tableBytes(): number {
    return this.#tables.newestFirst.reduce((sum, { fileBytes }) => sum + fileBytes, 0);
  }
  /** Memtables wait to be written, and `ready` has writers wait. */
  get isFull(): boolean {
    return this.#memory.waiting > FROZEN_MAX;
  }
  /** Position of the last prepare that is in the tables; -1 when there are none. */
  get prepareCheckpoint(): number {
    return this.#tables.prepareCheckpoint;
  }

  /** Adds an entry, unless it is in the memtable already. Part of a bulk that `endBulk` ends. */
  add(hi: number, lo: number, version: number, position: number): void {
    this.#memory.add(hi, lo, version, position);
  }

  /**
   * Ends the entries of one transaction: positions of its commit and of its last prepare. A full memtable is switched
   * out here.
   */
  endBulk(commitPosition: number, preparePosition: number): void {
    this.#memory.endBulk(commitPosition, preparePosition);
  }

  /**
   * Null while writers may go on; else a promise to await before more is added, since memtables wait to be written. It
   * rejects with `disk_full` or `io_error` when they can't be, and with `too_busy` when too many tables wait to be
   * merged; asking again tries again: no writer waits for ever.
   */
  ready(): Promise<void> | null {
    if (this.#memory.waiting <= FROZEN_MAX) return null;
    this.#room ??= Promise.withResolvers();
    return Promise.race([this.#room.promise, this.#writing.idle().catch(refuse)]);
  }

  async #writeOldest(): Promise<boolean> {
    const { oldest } = this.#memory;
    if (oldest === undefined) return false;
    if (this.#tables.unmerged >= UNMERGED_TABLES_MAX && !this.#merging.hasEnded) {
      throw new SkuaError(
        'too_busy',
        `${UNMERGED_TABLES_MAX} index tables are waiting to be merged, so no more are written. Check the log for failed merges, and stop the backup that holds the files if there is one; writes are accepted again after a merge.`,
        { limit: UNMERGED_TABLES_MAX },
      );
    }
    await this.#tables.write(oldest.table.columns(), oldest, { signal: this.#ending.signal }, () => {
      this.#memory.written(oldest);
      if (this.#memory.waiting <= FROZEN_MAX) this.#giveRoom();
    });
    if (!this.#keepsRoom) background(this.#keepRoom());
    this.#merging.kick();
    // Its failure only delays the checkpoint; the next flush tries again.
    await this.flushExistence().catch((error: unknown) =>
      this.#ports.log.error('Writing the stream existence filter failed.', { error }),
    );
    return true;
  }

  async #keepRoom(): Promise<void> {
    this.#keepsRoom = true;
    const { signal } = this.#ending;
    do await this.#ports.clock.sleep(ROOM_KEPT_MS, signal);
    while (!signal.aborted && !this.#memory.rest());
    this.#keepsRoom = false;
    if (!signal.aborted) this.#ports.jobs.rest?.();
  }

  #giveRoom(): void {
    this.#room?.resolve();
    this.#room = null;
  }

  /** The greatest entry of the hash that is at most (version, position): HIT with `out`, or END when there is none. */
  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#nearest(hi, lo, version, position, out, true);
  }

  /** The least entry of the hash that is at least (version, position): HIT with `out`, or END when there is none. */
  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#nearest(hi, lo, version, position, out, false);
  }

  /** Asks all parts: with colliding hashes the nearest entry can be in any of them. */
  #nearest(hi: number, lo: number, version: number, position: number, out: IndexEntry, isFloor: boolean): Outcome {
    const c = this.#candidate;
    let isFound = this.#memory.nearest(hi, lo, version, position, out, isFloor);
    for (const table of this.#tables.newestFirst) {
      const outcome = isFloor ? table.floor(hi, lo, version, position, c) : table.ceiling(hi, lo, version, position, c);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) isFound = out.takeNearer(c, isFound, isFloor);
    }
    return isFound ? HIT : END;
  }

  /**
   * All entries of the hash with fromVersion <= version <= toVersion, ascending by (version, position); HIT (also
   * with none). A miss starts the search anew, so ask for pages, not for whole streams.
   */
  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): Outcome {
    out.clear();
    this.#memory.range(hi, lo, fromVersion, toVersion, out);
    for (const table of this.#tables.newestFirst) {
      const outcome = table.range(hi, lo, fromVersion, toVersion, out);
      if (isMiss(outcome)) return outcome;
    }
    out.sortAscending();
    return HIT;
  }

  /**
   * Of an index of positions: those of the hash from `from` on upwards, or downwards, nearest first, `count` of them or
   * all that there are; HIT, also with none.
   */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome {
    out.length = 0;
    if (!isUpwards) this.#memory.run(hi, lo, from, isUpwards, count, out);
    // What lies beyond the tables' end is in none of them.
    if (!isUpwards || from <= this.commitCheckpoint) {
      const outcome = this.#tables.ofPositions.run(hi, lo, from, isUpwards, count, out);
      if (isMiss(outcome)) return outcome;
    }
    if (isUpwards) this.#memory.run(hi, lo, from, isUpwards, count, out);
    return HIT;
  }

  /** False only when the stream has no events. True for all streams without a filter, or while it is incomplete. */
  mightContain(hi: number, lo: number): boolean {
    return this.#existence === null || this.#existence.mightContain(hi, lo);
  }

  /** A stream begins with the event at `position`, to which `noteExistenceCheckpoint` moves the checkpoint. */
  addStream(hi: number, lo: number, _position: number): void {
    this.#existence?.add(hi, lo);
  }

  /** Every stream with a record below `position`, a boundary of the log, has been added. */
  noteExistenceCheckpoint(position: number): void {
    this.#existence?.note(position);
  }

  /**
   * Where the replay of prepares into the existence filter begins; -1 before `initExistence` where it has to be built
   * anew.
   */
  get existenceCheckpoint(): number {
    return this.#existence === null ? this.#logEnd : this.#existence.checkpoint;
  }

  /**
   * Where the existence filter has to be built anew, adds the streams of all entries and moves its checkpoint to the
   * last of them. To be called before the replay, which then adds the stream of every prepare from
   * `existenceCheckpoint` on.
   */
  async initExistence(): Promise<void> {
    if (this.#existence === null || this.#existence.checkpoint >= 0) return;
    const { storage, clock } = this.#ports;
    for (;;) {
      const memTables = this.#memory.filled();
      for (const table of memTables) table.lend();
      const tables = this.#tables.newestFirst;
      try {
        await buildExistence({
          filter: this.#existence,
          memTables,
          tables,
          storage,
          clock,
          onProgress: this.#onProgress,
        });
        return;
      } catch (error) {
        // A merge has replaced a table meanwhile; what has been added may be added again.
        if (!isSkuaError(error, 'file_not_found') || tables === this.#tables.newestFirst) throw error;
      }
    }
  }

  /**
   * Writes all entries as tables and merges them. Rejects with the first failure, after which the work is still tried
   * again.
   */
  async flush(): Promise<void> {
    this.#memory.freeze();
    await this.#writing.idle();
    await this.#merging.idle();
  }

  /**
   * Writes all entries as tables, and has the map name the last transaction that was added, if it had entries or none.
   */
  async saveAll(): Promise<void> {
    this.#memory.freeze();
    await this.#writing.idle();
    await this.saveEnd();
  }

  /** Has the map name the last transaction that was added, where no entry waits to be written. */
  async saveEnd(): Promise<void> {
    const { commitPosition, preparePosition, count } = this.#memory;
    if (count === 0 && commitPosition > this.commitCheckpoint)
      await this.#tables.advance({ commit: commitPosition, prepare: preparePosition });
  }

  /** Merges all tables into one, in the background; see `Merging.all`. Returns the id of the work. */
  mergeAll(): string {
    return this.#merging.all();
  }

  /** Waits for the merges under way and lets none begin until the returned function is called; see `Merging.hold`. */
  holdMerges(): Promise<() => void> {
    return this.#merging.hold();
  }

  /** Begins a stop: merges under way end at once, and begin again after the next start. */
  endMerges(): void {
    this.#merging.end();
  }

  /**
   * Before a close, when no more is added: writes the memtable as a table, so that the next start has nothing to
   * replay. Where one is being written already, that one is the last, and what came behind it is left to the replay: a
   * stop takes at most one table. Rejects when it can't be written.
   */
  async writeLast(): Promise<void> {
    if (this.#memory.waiting === 0) {
      this.#memory.freeze();
      await this.#writing.idle();
    }
    this.#endingWrites.abort();
    await this.#writing.ended();
  }

  /**
   * Scavenges the tables there are now, one after the other. Merges wait meanwhile, tables are written and readers go
   * on. Rejects with what ended it, after `run.onTable` has reported it.
   */
  async scavengeTables(run: TableScavenge): Promise<void> {
    const release = await this.holdMerges();
    try {
      await scavengeTables(this.#tables, run, () => this.#ports.clock.monotonicMs(), this.#ports.log);
    } finally {
      release();
    }
  }

  /**
   * Makes the existence filter durable, and then its checkpoint. Does nothing during a hold: the checkpoint only stays
   * behind.
   */
  async flushExistence(): Promise<void> {
    if (this.#existenceHolds === 0) await this.#existence?.flush();
  }

  /**
   * As `holdMerges`; the files of the existence filter, made up to date where that can be, stay as they are too. The
   * index map still changes when a table is written.
   */
  async holdFiles(): Promise<() => void> {
    const releaseMerges = await this.holdMerges();
    this.#existenceHolds++;
    // Flushes follow one another, so that none is under way behind this one.
    await this.#existence
      ?.flush()
      .catch((error: unknown) =>
        this.#ports.log.warn(
          'The stream existence filter could not be written before a backup; the backup includes it as it is on disk.',
          { error },
        ),
      );
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#existenceHolds--;
      releaseMerges();
    };
  }

  /** The tables, in the order of the index map. */
  tables(): readonly IndexTableInfo[] {
    return this.#tables.levels.flatMap((tables, level) =>
      tables.map((table) => ({ file: table.path, level, entries: table.shape.entries })),
    );
  }

  /** The entries that are in no table yet, newest first, as they are now: memory shared with the caller. */
  memTables(): readonly MemTableColumns[] {
    return this.#memory.filled().map((table) => table.lend());
  }

  /**
   * The entries of one of `tables()`, in the order of the file (greatest hash first), in batches. The batch object is
   * reused.
   */
  readTable(file: string): AsyncIterableIterator<EntryBatch> {
    return readBatches(this.#ports.storage, file);
  }

  /**
   * Compares tables with their checksums in the background, unless they are not to be verified at all, until the signal
   * or the first damage ends it. `onDamage` gets that damage: the index can't be relied on, and the next start builds
   * it anew. Never rejects.
   */
  async scrub(signal: AbortSignal, onDamage: (error: SkuaError) => void): Promise<void> {
    if (this.#verifies) await scrubTables({ ...this.#ports, tables: () => this.#tables.newestFirst, onDamage }, signal);
  }

  /**
   * Part of a clean stop, before `close`: the next start need not verify again what fits its checksums. Never rejects.
   */
  saveScrubbed(): Promise<void> {
    return this.#tables.saveScrubbed();
  }

  /** Ends background work and closes the files. Entries that are in no table are left to the next start's replay. */
  async close(): Promise<void> {
    this.#merging.end();
    this.#endingWrites.abort();
    this.#ending.abort();
    this.#giveRoom();
    await Promise.all([this.#writing.ended(), this.#merging.ended()]);
    await this.#tables.close();
    await this.#existence?.close();
  }
}

/** The log itself is sound when a table can't be written, so no error may look as if it were not. */
function refuse(error: unknown): never {
  if (isSkuaError(error, 'disk_full') || isSkuaError(error, 'too_busy')) throw error;
  throw new SkuaError(
    'io_error',
    'The index could not be written, and no more entries fit into memory. Check the disk; writes are accepted again as soon as it works.',
    {},
    error,
  );
}
