import { isSkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import { Background } from '../background-work/background-work.ts';
import { newGuid } from '../format/index-map.ts';
import type { FullLevel, TableStore } from './table-store.ts';

/** Most tables that a merge takes, where levels are full with fewer: each is read through a buffer of 1 MiB. */
const SOURCES_MAX = 16;

export interface MergingPorts {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

export interface MergingSettings {
  /**
   * Merges of up to this many entries never wait for a larger one, which may last for hours: so few tables come into
   * being meanwhile, one for this many entries.
   */
  readonly smallMergeEntriesMax: number;
  /** Tables with which a level is full. */
  readonly tablesPerLevelMax: number;
}

/**
 * When tables are merged: whenever a level is full, in the background, one small and one large merge at a time, of
 * different levels; the merge of all tables alone. What becomes of the tables then is the matter of the `TableStore`.
 */
export class Merging {
  readonly #tables: TableStore;
  readonly #ports: MergingPorts;
  readonly #settings: MergingSettings;
  readonly #ending = new AbortController();
  readonly #small: Background;
  readonly #large: Background;
  /** While above 0, no merge begins. */
  #holds = 0;
  /** Id of the merge of all tables that was asked for and has not ended. */
  #allId: string | null = null;

  constructor(tables: TableStore, ports: MergingPorts, settings: MergingSettings) {
    this.#tables = tables;
    this.#ports = ports;
    this.#settings = settings;
    const line = { ...ports, signal: this.#ending.signal };
    this.#small = new Background('Merging index tables', () => this.#mergeSmall(), line);
    this.#large = new Background('Merging large index tables', () => this.#mergeLarge(), line);
  }

  /** Merges end for good. */
  get hasEnded(): boolean {
    return this.#ending.signal.aborted;
  }

  /** There may be a full level. */
  kick(): void {
    this.#small.kick();
    this.#large.kick();
  }

  /**
   * Resolves when nothing is left to be merged, or merges are held. Rejects with the next failure, or `store_closed`.
   */
  async idle(): Promise<void> {
    do {
      await this.#small.idle();
      await this.#large.idle();
    } while (this.#holds === 0 && (this.#allId !== null || this.#tables.fullLevels().length > 0));
  }

  /**
   * Merges all tables into one, whatever their levels, in the background; after the merges and the hold there are now.
   * Returns the id of the work, which is the same until it has ended. One that fails is logged and not tried again.
   */
  all(): string {
    this.#allId ??= newGuid(this.#ports.ids);
    this.#large.kick();
    return this.#allId;
  }

  async #mergeSmall(): Promise<boolean> {
    // The merge of all tables begins when this line rests, which goes on after it.
    if (this.#holds > 0 || this.#allId !== null) return false;
    try {
      return await this.#mergeOne((level) => this.#smallMergeOf(level));
    } finally {
      // The small merge may have filled a level whose merge is large, or have been waited for.
      this.#large.kick();
    }
  }

  async #mergeLarge(): Promise<boolean> {
    if (this.#holds > 0) return false;
    if (this.#allId === null) return this.#mergeOne((level) => this.#largeMergeOf(level));
    if (this.#tables.isMerging) return false;
    await this.#mergeAll(this.#allId);
    this.#small.kick();
    return true;
  }

  /** Merges the lowest level that is full and of which `mergeOf` takes some tables. */
  async #mergeOne(mergeOf: (level: FullLevel) => FullLevel | null): Promise<boolean> {
    for (const level of this.#tables.fullLevels()) {
      const merge = mergeOf(level);
      if (merge === null) continue;
      await this.#tables.mergeLevel(merge, { signal: this.#ending.signal });
      return true;
    }
    return false;
  }

  /**
   * The oldest tables, as long as they are no more than a level that is full of its largest: were they more, a table
   * could come about that is too large for the next level to be merged again without a large merge.
   */
  #smallMergeOf(full: FullLevel): FullLevel | null {
    const { tables } = full;
    const { tablesPerLevelMax, smallMergeEntriesMax } = this.#settings;
    if (entriesOf(tables.slice(0, tablesPerLevelMax)) > smallMergeEntriesMax) return null;
    const entriesMax = Math.min(
      smallMergeEntriesMax,
      tablesPerLevelMax * Math.max(...tables.map(({ shape }) => shape.entries)),
    );
    let count = tablesPerLevelMax;
    while (count < Math.min(tables.length, this.#sourcesMax) && entriesOf(tables.slice(0, count + 1)) <= entriesMax)
      count++;
    return { ...full, tables: tables.slice(0, count) };
  }

  #largeMergeOf(full: FullLevel): FullLevel | null {
    if (this.#smallMergeOf(full) !== null) return null;
    return { ...full, tables: full.tables.slice(0, this.#sourcesMax) };
  }

  get #sourcesMax(): number {
    return Math.max(SOURCES_MAX, this.#settings.tablesPerLevelMax);
  }

  async #mergeAll(mergeIndexesId: string): Promise<void> {
    const { log, clock } = this.#ports;
    const startedMs = clock.monotonicMs();
    try {
      const tables = this.#tables.newestFirst.length;
      const wasMerged = await this.#tables.mergeAll({ signal: this.#ending.signal });
      log.info('The merge of all index tables has finished.', {
        mergeIndexesId,
        tables,
        wasMerged,
        elapsedMs: clock.monotonicMs() - startedMs,
      });
    } catch (error) {
      if (!this.hasEnded)
        log.error(
          'The merge of all index tables failed; the tables are unchanged. Start it again when the cause is fixed.',
          { mergeIndexesId, error },
        );
    } finally {
      this.#allId = null;
    }
  }

  /**
   * Waits for the merges under way and lets none begin until the returned function is called: the files of the tables
   * there are then stay. Tables are still written. Rejects with `store_closed`.
   */
  async hold(): Promise<() => void> {
    this.#holds++;
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      if (--this.#holds === 0 && !this.hasEnded) this.kick();
    };
    try {
      for (const line of [this.#small, this.#large]) {
        // A merge that fails has ended too.
        await line.idle().catch((error: unknown) => {
          if (isSkuaError(error, 'store_closed')) throw error;
        });
      }
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  /** Ends the merges under way at once; their tables are as they were, and are merged after the next start. */
  end(): void {
    this.#ending.abort();
  }

  /** Resolves when the merges that `end` ended have let go of their files. */
  async ended(): Promise<void> {
    await Promise.all([this.#small.ended(), this.#large.ended()]);
  }
}

function entriesOf(tables: FullLevel['tables']): number {
  return tables.reduce((sum, { shape }) => sum + shape.entries, 0);
}
