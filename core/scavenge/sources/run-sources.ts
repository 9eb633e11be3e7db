import { BlockCache } from '../../cache/cache.ts';
import { BloomBudget } from '../../index/format/table-bloom.ts';
import { TableReader } from '../../index/tables/tables.ts';
import type { JobContext } from '../../ports/jobs.ts';
import { silentLog } from '../../ports/log.ts';
import type { ScavengeState } from '../../ports/scavenge-state.ts';
import { RunChunks } from './run-chunks.ts';
import { FrozenMemTable, RunIndex } from './run-index.ts';
import { type RunFiles, type RunSettings, Throttle } from './run-settings.ts';

/** Bytes that a job caches of chunks and tables together. */
const RUN_CACHE_BYTES = 16_777_216;
/** Midpoints of a table kept in memory, as a power of two. */
const CACHE_DEPTH = 16;

/**
 * The chunks and the index of a run, opened within a job for itself. Scans go past the cache; single records and
 * entries through it.
 */
export class RunSources {
  readonly chunks: RunChunks;
  readonly index: RunIndex;
  readonly #tables: readonly TableReader[];

  private constructor(chunks: RunChunks, tables: readonly TableReader[], index: RunIndex) {
    this.chunks = chunks;
    this.#tables = tables;
    this.index = index;
  }

  /**
   * Opens the index, which then shows entries of records before `before` only. Throws `file_not_found`, now or when a
   * chunk is read, where a file has been replaced meanwhile (tables are merged at any time): list the files anew and
   * try again.
   */
  static async open(
    files: RunFiles,
    before: number,
    context: Pick<JobContext, 'storage' | 'checkpoint'>,
    cacheBytes = RUN_CACHE_BYTES,
  ): Promise<RunSources> {
    const cache = new BlockCache(cacheBytes);
    const chunks = new RunChunks(files, context.storage, cache);
    const tables: TableReader[] = [];
    try {
      // Bloom filters would take as much memory as they save reads: streams are looked up in order of their hashes.
      const parts = {
        storage: context.storage,
        cache,
        log: silentLog,
        budget: new BloomBudget(0),
        cacheDepth: CACHE_DEPTH,
        bloomFilters: false,
      };
      for (const path of files.tables) tables.push(await TableReader.open(path, parts));
      const memTables: FrozenMemTable[] = [];
      for (const columns of files.memTables)
        memTables.push(await FrozenMemTable.of(columns, () => context.checkpoint()));
      return new RunSources(chunks, tables, new RunIndex({ tables, memTables, chunks, cache, before }));
    } catch (error) {
      for (const table of tables) await table.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const table of this.#tables) await table.close();
    await this.chunks.close();
  }
}

/** What the jobs that learn from the log work with. */
export interface CollectingParts {
  readonly state: ScavengeState;
  readonly sources: RunSources;
  readonly settings: RunSettings;
  readonly throttle: Throttle;
  readonly chunkSize: number;
}

/** Opens the scavenge database and the files of the run for `work`, and closes them after it, whatever it came to. */
export async function withCollectingParts<T>(
  { files, settings }: { readonly files: RunFiles; readonly settings: RunSettings },
  context: JobContext,
  work: (parts: CollectingParts) => Promise<T>,
): Promise<T> {
  const state = context.scavengeStates.open(settings.state);
  try {
    const sources = await RunSources.open(files, settings.point.position, context);
    try {
      return await work({
        state,
        sources,
        settings,
        throttle: new Throttle(settings.throttle, context),
        chunkSize: files.chunkSize,
      });
    } finally {
      await sources.close();
    }
  } finally {
    state.close();
  }
}
