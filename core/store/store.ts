import type { AttributeIndexStatus } from '../attributes/api.ts';
import type { Attributes } from '../attributes/attributes.ts';
import { StoreAttributes } from './attribute-indexes/attribute-indexes.ts';
import { type StoreHold, takeHold } from './hold/hold.ts';
import { shippableLog, type ShippableLog } from './shippable-log/shippable-log.ts';
import { ensureNodeId } from './format/node-id.ts';
import {
  allMarks,
  appendRestored,
  findRestored,
  hideRestored,
  type RestoredMark,
  restoredColumns,
} from './restored-marks/restored-marks.ts';
import { BlockCache } from '../cache/cache.ts';
import { SkuaError } from '../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import { replayLog } from '../index/intake/intake.ts';
import { type StreamHasher, streamHasher } from '../base/stream-hash.ts';
import { LogOfEntries } from '../index/format/of-log.ts';
import { StreamIndex } from '../index/index.ts';
import { findLastEpoch } from '../log/format/epochs.ts';
import { ChunkMap, type ChunkMapView } from '../log/chunk-table/chunk-table.ts';
import { openLog } from '../log/log.ts';
import { scrubChunks, scrubFigures, type ScrubFigures } from '../log/scrub/scrub.ts';
import type { TransactionLog } from '../log/api.ts';
import type { Clock } from '../ports/clock.ts';
import type { CommitLog } from '../ports/commit-log.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { Log } from '../ports/log.ts';
import { MemoryScavengeStates } from '../memory/memory-scavenge-state.ts';
import type { Meter } from '../ports/meter.ts';
import type { ScavengeStates } from '../ports/scavenge-state.ts';
import type { Storage } from '../ports/storage.ts';
import { openHashChain, type HashChain } from '../integrity/chain/chain.ts';
import {
  DEFAULT_CONFIG,
  type ScavengeConfig,
  type ScavengeControl,
  type Scavenger,
  type ScavengeStore,
  type ScavengeView,
} from '../scavenge/api.ts';
import { createScavenger } from '../scavenge/scavenge.ts';
import type { EventStore, MarkColumns } from '../streams/api.ts';
import type { EpochRecord } from '../log/format/records.ts';
import {
  createEventStore,
  type EventStoreInternals,
  type StreamFigures,
  type EventStoreOptions,
} from '../streams/streams.ts';

/** What a store is opened with, by part; what is left out of a part has its default. */
export interface OpenStoreOptions {
  readonly world: StoreWorld;
  readonly log?: StoreLogOptions;
  readonly index?: StoreIndexOptions;
  readonly attributes?: StoreAttributeOptions;
  readonly scavenge?: StoreScavengeOptions;
  /**
   * Begin a hash chain over the log where there is none (`core/integrity/chain/`). One that is there goes on in any
   * case. Default false.
   */
  readonly beginsProofs?: boolean;
  /** Bytes of the block cache. Default 64 MiB. */
  readonly cacheBytes?: number;
  readonly onProgress?: (progress: StartProgress) => void;
  /** The directory is a replica of a log that others write to as well. */
  readonly shared?: SharedOpening;
}

/** How a store is opened whose directory is a replica of a shared log. The steps come in this order. */
export interface SharedOpening {
  /** Of the shared log. */
  readonly logId: string;
  /** The directory is locked, and nothing of it is open. */
  prepare(): Promise<void>;
  /** What takes the place of the directory's own end of the log. */
  commitLog(log: TransactionLog, index: StreamIndex): Promise<CommitLog>;
  readonly streams: Partial<EventStoreOptions>;
  onEpoch(epoch: EpochRecord): void;
  /** The store is there and knows the ids of the last events; no reader and no writer is there yet. */
  opened(store: EventStoreInternals): Promise<void>;
  /** The store as the scavenger writes to it: its points and its history are commits like any others. */
  scavengeStore(store: EventStoreInternals): ScavengeStore;
}

/** What the store needs of the world. */
export interface StoreWorld {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly jobs: Jobs;
  readonly log: Log;
  readonly meter: Meter;
}

/** The log, and what is appended to it. */
export interface StoreLogOptions {
  /** Bytes of a chunk's data; for a new directory only, an existing one keeps its own. Default 256 MiB. */
  readonly chunkSizeBytes?: number;
  /** Data and metadata of one append together, in bytes. Default: what fits a chunk. */
  readonly appendBytesMax?: number;
  /** Ids of the last events that are remembered to recognise repeats. Default 131 072. */
  readonly recentIds?: number;
  /** Largest truncation that `truncate.chk` may order, in bytes; -1 for any. Default 256 MiB. */
  readonly truncationBytesMax?: number;
  /**
   * Bytes that are zero-filled ahead of the writer. Default 4 MiB: a sync of large appends then finds its blocks
   * allocated.
   */
  readonly zeroAheadBytes?: number;
  /** Write the epoch records of a starting leader. Default true; off for tools that must not change the log. */
  readonly writeEpoch?: boolean;
  /** Append the marks of redaction that a restore left beside the log. Default: where epochs are written. */
  readonly appendRestored?: boolean;
  /** The dry start that ends a restore, which alone may open a directory that is being restored. Default false. */
  readonly isRestoring?: boolean;
  /** The directory may be a replica of a cluster's log (`openLog`). Default false. */
  readonly isReplica?: boolean;
  /**
   * Compare the checksums of completed chunks in the background, after the start and again when that is long ago.
   * Default true.
   */
  readonly verifyChunks?: boolean;
  /** Compare the chunk being written with the checksums of its blocks at the start. Default true. */
  readonly verifyOngoing?: boolean;
}

export interface StoreIndexOptions {
  /** Entries at which a memtable is written out. Default 1 000 000. */
  readonly memTableEntriesMax?: number;
  /** Index tables with which a level is full, and merged. Default 2. */
  readonly tablesPerLevelMax?: number;
  /** Compare the checksums of index tables at a start. Default true. */
  readonly verify?: boolean;
  /** Midpoints of an index table kept in memory, as a power of two. Default 16. */
  readonly cacheDepth?: number;
  /** Write and use bloom filters of index tables. Default true. */
  readonly bloomFilters?: boolean;
  /** Stream existence filter, in bytes. Default 32 MiB; 0 switches it off. */
  readonly existenceFilterBytes?: number;
  /** Tests inject a hash with collisions. */
  readonly hasher?: StreamHasher;
}

/** Of each attribute index; defaults: `ATTRIBUTE_INDEX_SETTINGS`. */
export interface StoreAttributeOptions {
  readonly memTableEntriesMax?: number;
  readonly tablesPerLevelMax?: number;
  readonly mergedEntriesMax?: number;
}

export interface StoreScavengeOptions {
  /** The scavenge database, which the jobs must find too. Default: the one in memory that belongs to the storage. */
  readonly states?: ScavengeStates;
  /** How this node scavenges. */
  readonly config?: Partial<ScavengeConfig>;
}

export interface StartProgress {
  readonly phase: 'catching-up' | 'recovering-log' | 'rebuilding-index' | 'verifying-index';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** Where the store stands; positions in the log unless noted otherwise. */
export interface StoreStatus {
  /** Of the checkpoint files, as last written. `writer` is the end of what is durable. */
  readonly checkpoints: {
    readonly writer: number;
    readonly chaser: number;
    readonly epoch: number;
    readonly proposal: number;
    readonly truncate: number;
  };
  /** Up to here index tables on disk know the log; -1 for none. */
  readonly indexCheckpoint: number;
  readonly existenceCheckpoint: number;
  /** Commit position of the last event. */
  readonly lastCommitPosition: number;
  readonly indexTables: number;
  readonly indexTableEntries: number;
  /** Entries in memtables. */
  readonly indexEntriesInMemory: number;
  /** Merges of index tables since the start. */
  readonly indexMerges: number;
  readonly isIndexMerging: boolean;
  /** All of them, in one order; none where the store is open only to be looked at. */
  readonly attributes: readonly AttributeIndexStatus[];
  readonly chunks: number;
  /**
   * Up to here the log has checksums on disk: completed chunks, and of the one being written the blocks that
   * `block-sums` knows. Null as below.
   */
  readonly checksummedTo: number | null;
  /** Null where the files are objects, for whose content their store answers. */
  readonly proofs: ScrubFigures | null;
  readonly cache: {
    readonly hits: number;
    readonly misses: number;
    readonly usedBytes: number;
    readonly capacityBytes: number;
  };
  readonly streams: StreamFigures;
}

/** What every store has, wherever its files lie. */
export interface Store {
  readonly store: EventStore;
  readonly scavenger: ScavengeControl & ScavengeView;
  readonly chunkSizeBytes: number;
  status(): StoreStatus;
  /** The chunk files in force, from memory; `since` is the version that the caller knows. */
  chunkMap(since: string | null): ChunkMapView;
  /**
   * Merges all index tables into one in the background. Returns the id of the work, which is the same until it has
   * ended.
   */
  mergeIndexes(): string;
  /**
   * Keeps the files of the store as they are for a backup, until released: no scavenge starts, no merge begins. Rejects
   * with `scavenge_in_progress` (data: scavengeId), `store_closed`, and what the storage throws.
   */
  hold(): Promise<StoreHold>;
  /** Finishes what was accepted, ends all holds, flushes index and checkpoints, releases the lock. */
  close(): Promise<void>;
}

/** A store whose files are its own: in a directory, or in memory. */
export interface DirectoryStore extends Store {
  readonly scavenger: Scavenger;
  /** Settles only when the store can't go on (the writer stopped, a chunk proved damaged): the process should end. */
  readonly failed: Promise<SkuaError>;
  /** The log as it is written, for shipping its end to a repository of backups. */
  shippableLog(): ShippableLog;
  /** The hash chain over the log, by which is proved that nothing was changed; null without one. */
  readonly hashChain: HashChain | null;
  /** The attribute indexes; null in a store that is open only to be looked at. */
  readonly attributes: Attributes | null;
  /** Marks of redaction that a restore left beside the log, and that are not in it yet. They hide their events. */
  readonly restoredMarks: MarkColumns;
  /** Appends them, as the scavenger's points are, and removes what the restore left. Errors: those of appending. */
  appendRestored(): Promise<void>;
}

const CACHE_DEFAULT_BYTES = 67_108_864;
/** How often the existence filter is made durable. */
const EXISTENCE_FLUSH_MS = 30_000;

/**
 * Opens the store in a data directory: lock, recovery of the log, index brought up to the log, epoch. Errors are those
 * of `openLog`, `directory_locked`, and what the storage throws; the directory is unlocked again after an error.
 */
export async function openStore(options: OpenStoreOptions): Promise<DirectoryStore> {
  const { world } = options;
  const { clock, ids, meter } = world;
  const { appendBytesMax, recentIds } = options.log ?? {};
  const lock = await world.storage.lock();
  const undo: (() => Promise<unknown>)[] = [() => lock.release()];
  const { shared } = options;
  try {
    const cache = new BlockCache(options.cacheBytes ?? CACHE_DEFAULT_BYTES);
    await shared?.prepare();
    const log = await openLog({ ...world, ...options.log, cache });
    undo.push(() => log.close());
    const index = await openIndex(options, cache, log);
    undo.push(() => index.close());
    const { writeEpoch = true, appendRestored: appendsRestored = writeEpoch } = options.log ?? {};
    const attributes = new StoreAttributes({
      world,
      cache,
      log,
      isWritten: shared !== undefined || writeEpoch,
      settings: { ...options.attributes, verify: options.index?.verify ?? true },
    });
    undo.push(() => attributes.close(false));
    const store = createEventStore({
      reader: log.table,
      commitLog: (await shared?.commitLog(log, index)) ?? log,
      logId: shared?.logId,
      index,
      clock,
      ids,
      log: world.log,
      meter,
      attributes: attributes.follower,
      options: {
        ...(appendBytesMax !== undefined && { appendBytesMax }),
        ...(recentIds !== undefined && { recentIds }),
        ...shared?.streams,
      },
      ...(shared !== undefined && { onEpoch: (epoch) => shared.onEpoch(epoch) }),
    });
    undo.push(() => store.close());
    await store.primeRecentIds();
    await store.loadMarks();
    await attributes.begin(store);
    let restored = await findRestored({ ...world, reader: log.table, known: store.redactions });
    hideRestored(store, restoredColumns(restored ?? []));
    if (shared !== undefined) await shared.opened(store);
    else if (writeEpoch) await beginEpoch(ids, log, store);
    if (restored !== null && shared === undefined && appendsRestored) {
      if (await appendRestored(store, world, restored)) restored = null;
    }
    const hashChain = await openHashChain({ ...world, table: log.table }, options.beginsProofs ?? false);
    const states = options.scavenge?.states ?? MemoryScavengeStates.of(world.storage);
    const written = shared?.scavengeStore(store) ?? store;
    const scavenger = createScavenger({
      data: {
        store: written,
        index,
        attributes: attributes.attributes,
        table: log.table,
        cache,
        withNextChunk: (work) => log.withNextChunk(work),
        proofs: hashChain,
      },
      ports: { ...world, states },
      config: { ...DEFAULT_CONFIG, ...options.scavenge?.config },
    });
    undo.push(() => scavenger.close());
    return new RunningStore(
      options,
      { log, cache, index, attributes, store, written, scavenger, hashChain, restored },
      undo,
    );
  } catch (error) {
    for (const step of undo.reverse()) await step().catch(() => {});
    throw error;
  }
}

async function openIndex(options: OpenStoreOptions, cache: BlockCache, log: TransactionLog): Promise<StreamIndex> {
  const { world, onProgress } = options;
  const { hasher, ...settings } = options.index ?? {};
  const entries = new LogOfEntries(log.table, hasher ?? streamHasher);
  const index = await StreamIndex.open({
    ports: { ...world, cache },
    settings,
    ...(hasher !== undefined && { hasher }),
    logEnd: log.end,
    whyAnother: (path) => entries.whyAnother(world.storage, path),
    onProgress: (progress) =>
      onProgress?.({ phase: 'verifying-index', bytesDone: progress.done, bytesTotal: progress.total }),
  });
  try {
    if (index.wasReset !== null)
      world.log.warn('the index was discarded and is being rebuilt from the log', { reason: index.wasReset });
    const records = await replayLog(index, log.table, world.clock, (bytesDone, bytesTotal) =>
      onProgress?.({ phase: 'rebuilding-index', bytesDone, bytesTotal }),
    );
    world.log.info('the index is up to date with the log', { recordsReplayed: records, logEnd: log.end });
    return index;
  } catch (error) {
    await index.close();
    throw error;
  }
}

/** A single node leads from its start on, and says so in the log. */
async function beginEpoch(ids: Ids, log: TransactionLog, store: EventStoreInternals): Promise<void> {
  const last = await findLastEpoch(log.table, log.checkpoints);
  const { proposal, epoch } = log.checkpoints;
  const epochNumber = Math.max(last?.number ?? -1, proposal.value) + 1;
  // Before an epoch of that number can exist the proposal must be durable, so that no number is used twice.
  await proposal.flush(epochNumber);
  const position = await store.writeEpoch({
    epochNumber,
    prevEpochPosition: last?.position ?? -1,
    leaderInstanceId: guidToText(guidFromUuidBytes(ids.uuidBytes()), 0),
  });
  await log.flushCheckpoints();
  await epoch.flush(position);
}

interface StoreParts {
  readonly log: TransactionLog;
  readonly cache: BlockCache;
  readonly index: StreamIndex;
  readonly attributes: StoreAttributes;
  readonly store: EventStoreInternals;
  readonly scavenger: Scavenger;
  readonly hashChain: HashChain | null;
  /** By which the store writes for itself. */
  readonly written: ScavengeStore;
  /** What a restore left and is not in the log; null where it left nothing, or all is. */
  readonly restored: readonly RestoredMark[] | null;
}

class RunningStore implements DirectoryStore {
  readonly store: EventStore;
  readonly scavenger: Scavenger;
  readonly chunkSizeBytes: number;
  readonly hashChain: HashChain | null;
  readonly attributes: Attributes | null;
  readonly failed: Promise<SkuaError>;
  readonly #world: StoreWorld;
  readonly #log: TransactionLog;
  readonly #cache: BlockCache;
  readonly #index: StreamIndex;
  readonly #attributes: StoreAttributes;
  readonly #internals: EventStoreInternals;
  readonly #written: ScavengeStore;
  #restored: readonly RestoredMark[] | null;
  #appending: Promise<void> | null = null;
  readonly #undo: readonly (() => Promise<unknown>)[];
  readonly #stopping = new AbortController();
  readonly #background: Promise<unknown>;
  #fail: (error: SkuaError) => void = () => {};
  #hasFailed = false;
  #closing: Promise<void> | null = null;
  readonly #holds = new Set<StoreHold>();
  readonly #chunkMap: ChunkMap;

  constructor(
    options: OpenStoreOptions,
    { log, cache, index, attributes, store, written, scavenger, hashChain, restored }: StoreParts,
    undo: readonly (() => Promise<unknown>)[],
  ) {
    this.store = store;
    this.scavenger = scavenger;
    this.hashChain = hashChain;
    this.#written = written;
    this.#restored = restored;
    this.attributes = attributes.attributes;
    this.chunkSizeBytes = log.chunkSize;
    this.#world = options.world;
    this.#log = log;
    this.#cache = cache;
    this.#index = index;
    this.#attributes = attributes;
    this.#internals = store;
    this.#undo = undo;
    this.#chunkMap = new ChunkMap({ table: () => log.table, isCold: false, ids: options.world.ids });
    this.failed = new Promise((resolve) => {
      this.#fail = (error) => {
        this.#hasFailed = true;
        resolve(error);
      };
    });
    log.onStop((error) => this.#fail(error));
    this.#background = Promise.all([
      this.#flushExistence(),
      (options.log?.verifyChunks ?? true) ? this.#scrub() : null,
      hashChain?.run(this.#stopping.signal),
    ]);
  }

  async #flushExistence(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await this.#world.clock.sleep(EXISTENCE_FLUSH_MS, signal);
      if (signal.aborted) return;
      await this.#index
        .flushExistence()
        .catch((error: unknown) =>
          this.#world.log.warn('the stream existence filter could not be written', { error: String(error) }),
        );
    }
  }

  get restoredMarks(): MarkColumns {
    return restoredColumns(this.#restored ?? []);
  }

  appendRestored(): Promise<void> {
    this.#appending ??= this.#appendRestored().finally(() => {
      this.#appending = null;
    });
    return this.#appending;
  }

  async #appendRestored(): Promise<void> {
    if (this.#restored === null) return;
    if (await appendRestored(this.#written, this.#world, this.#restored)) this.#restored = null;
  }

  chunkMap(since: string | null): ChunkMapView {
    return this.#chunkMap.view(since);
  }

  async #scrub(): Promise<void> {
    const { signal } = this.#stopping;
    const onDamage = (error: SkuaError): void => this.#fail(error);
    await Promise.all([
      scrubChunks({ ...this.#world, table: this.#log.table, onDamage }, signal),
      this.#index.scrub(signal, onDamage),
    ]);
  }

  status(): StoreStatus {
    const { checkpoints, table } = this.#log;
    const { chaser, epoch, proposal, truncate } = checkpoints;
    const tables = this.#index.tables();
    return {
      checkpoints: {
        writer: this.#log.end,
        chaser: chaser.value,
        epoch: epoch.value,
        proposal: proposal.value,
        truncate: truncate.value,
      },
      indexCheckpoint: this.#index.commitCheckpoint,
      existenceCheckpoint: this.#index.existenceCheckpoint,
      lastCommitPosition: this.#index.lastCommitPosition,
      indexTables: tables.length,
      indexTableEntries: tables.reduce((sum, { entries }) => sum + entries, 0),
      indexEntriesInMemory: this.#index.entriesInMemory,
      indexMerges: this.#index.merges,
      isIndexMerging: this.#index.isMerging,
      attributes: this.#attributes.status(),
      chunks: [...table.all()].length,
      checksummedTo: this.#log.checksummedTo,
      proofs: scrubFigures(table, this.#world.clock.nowMs()),
      cache: {
        hits: this.#cache.hits,
        misses: this.#cache.misses,
        usedBytes: this.#cache.usedBytes,
        capacityBytes: this.#cache.capacityBytes,
      },
      streams: this.#internals.figures(),
    };
  }

  mergeIndexes(): string {
    if (this.#closing !== null)
      throw new SkuaError('store_closed', 'The store is closing, so no merge of its index can start.');
    return this.#index.mergeAll();
  }

  shippableLog(): ShippableLog {
    return shippableLog(this.#log.table, this.#world.storage);
  }

  async hold(): Promise<StoreHold> {
    const { storage, digests, clock, ids } = this.#world;
    if (this.#closing !== null) throw holdRefused();
    const nodeId = await ensureNodeId(storage, ids);
    const hold = await takeHold({
      storage,
      digests,
      clock,
      nodeId,
      scavenger: this.scavenger,
      index: this.#index,
      log: this.#log,
      marks: () => allMarks(this.#internals.redactions, this.restoredMarks),
    });
    for (const held of this.#holds) if (held.isReleased) this.#holds.delete(held);
    this.#holds.add(hold);
    if (this.#closing === null) return hold;
    await hold.release();
    throw holdRefused();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    for (const hold of this.#holds) await hold.release();
    // A scavenge is ended while all that it works on is still there, and before the merge that it may be waiting for.
    const scavenged = this.scavenger.close();
    this.#index.endMerges();
    this.#attributes.end();
    await scavenged;
    await this.#background;
    await this.#internals.close();
    await this.#index.writeLast().catch((error: unknown) =>
      this.#world.log.warn('the index could not be written; the next start replays the log', {
        error: String(error),
      }),
    );
    await this.#index.flushExistence().catch(() => {});
    // After a failure nothing is believed that this process has seen.
    if (!this.#hasFailed) await this.#index.saveScrubbed();
    await this.#attributes.close(!this.#hasFailed);
    let failure: unknown = null;
    for (const step of [...this.#undo].reverse())
      await step().catch((error: unknown) => {
        failure ??= error;
      });
    if (failure !== null) throw failure;
  }
}

function holdRefused(): SkuaError {
  return new SkuaError('store_closed', "The store is closing, so its files can't be held for a backup.");
}
