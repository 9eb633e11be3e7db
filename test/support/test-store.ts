import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { openStore } from '../../core/store/store.ts';
import type {
  DirectoryStore,
  OpenStoreOptions,
  Store,
  StoreIndexOptions,
  StoreLogOptions,
  StoreScavengeOptions,
  StoreWorld,
} from '../../core/store/store.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from './manual-clock.ts';
import { SeededIds } from './seeded-ids.ts';

/** 2026-11-22: after everything in the recorded directories. */
export const TEST_NOW_MS = Date.UTC(2026, 10, 22);
/** The recorded directories were made with this size; a small one also makes opening quick. */
const EXISTENCE_FILTER_BYTES = 10_000;

/** What a node has of these takes some megabytes to be made, for each opening. */
const RECENT_IDS = 8_192;
const ZERO_AHEAD_BYTES = 262_144;

/** What a store is opened with, without its parts: tests name the one thing that they are about. */
export interface FlatStoreOptions
  extends
    StoreWorld,
    StoreLogOptions,
    Omit<StoreIndexOptions, 'verify' | 'cacheDepth'>,
    Pick<OpenStoreOptions, 'cacheBytes' | 'onProgress' | 'beginsProofs' | 'attributes'> {
  readonly verifyIndex?: boolean;
  readonly indexCacheDepth?: number;
  readonly scavengeStates?: StoreScavengeOptions['states'];
  readonly scavenge?: StoreScavengeOptions['config'];
}

export function storeOptions(flat: FlatStoreOptions): OpenStoreOptions {
  const { storage, clock, ids, digests, jobs, log, meter } = flat;
  const {
    memTableEntriesMax,
    tablesPerLevelMax,
    verifyIndex: verify,
    indexCacheDepth: cacheDepth,
    bloomFilters,
    existenceFilterBytes,
    hasher,
  } = flat;
  const {
    chunkSizeBytes,
    appendBytesMax,
    truncationBytesMax,
    writeEpoch,
    isRestoring,
    verifyChunks,
    recentIds,
    zeroAheadBytes,
  } = flat;
  return given({
    world: { storage, clock, ids, digests, jobs, log, meter },
    log: given({
      chunkSizeBytes,
      appendBytesMax,
      truncationBytesMax,
      writeEpoch,
      isRestoring,
      verifyChunks,
      recentIds,
      zeroAheadBytes,
    }),
    index: given({
      memTableEntriesMax,
      tablesPerLevelMax,
      verify,
      cacheDepth,
      bloomFilters,
      existenceFilterBytes,
      hasher,
    }),
    scavenge: given({ states: flat.scavengeStates, config: flat.scavenge }),
    cacheBytes: flat.cacheBytes,
    onProgress: flat.onProgress,
    beginsProofs: flat.beginsProofs,
    attributes: flat.attributes,
  }) as OpenStoreOptions;
}

function given(parts: object): object {
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined));
}

export interface TestStoreOptions extends Partial<FlatStoreOptions> {
  readonly storage: Storage;
  readonly seed?: number;
}

/**
 * Opens stores elsewhere than on the storage, which then only tells which store is meant; null: there. Tests that run
 * there, too, use what every store has.
 */
export const elsewhere: { open: ((options: TestStoreOptions) => Promise<Store>) | null } = { open: null };

/**
 * Opens the store on a storage with everything else driven by the test. The history of scavenges is not repaired unless
 * the test asks for it, since that writes to the log.
 */
export function openTestStore(options: TestStoreOptions): Promise<DirectoryStore> {
  if (elsewhere.open !== null) return elsewhere.open(options) as Promise<DirectoryStore>;
  const { seed = 1, ...chosen } = options;
  const clock = chosen.clock ?? new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = chosen.ids ?? new SeededIds(seed);
  const scavengeStates = chosen.scavengeStates ?? MemoryScavengeStates.of(chosen.storage);
  const hasher = chosen.hasher === undefined ? {} : { hasher: chosen.hasher };
  const jobs =
    chosen.jobs ??
    new InlineJobs({
      jobs: JOBS,
      storage: chosen.storage,
      digests: nodeDigests,
      ids,
      clock,
      scavengeStates,
      ...hasher,
    });
  return openStore(
    storeOptions({
      clock,
      ids,
      jobs,
      scavengeStates,
      digests: nodeDigests,
      log: silentLog,
      meter: silentMeter,
      existenceFilterBytes: EXISTENCE_FILTER_BYTES,
      cacheBytes: 16 * 1024 * 1024,
      recentIds: RECENT_IDS,
      zeroAheadBytes: ZERO_AHEAD_BYTES,
      ...chosen,
      scavenge: { repairHistory: false, ...chosen.scavenge },
    }),
  );
}
