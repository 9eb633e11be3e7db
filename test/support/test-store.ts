import { JOBS } from '../../core/jobs.ts';
import { InlineJobs } from '../../core/ports/inline-jobs.ts';
import { MemoryScavengeStates } from '../../core/ports/memory-scavenge-state.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { openStore } from '../../core/store.ts';
import type { OpenStore, OpenStoreOptions } from '../../core/store.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { ManualClock } from './manual-clock.ts';
import { SeededIds } from './seeded-ids.ts';

/** 2026-11-22: after everything in the recorded directories. */
export const TEST_NOW_MS = Date.UTC(2026, 10, 22);
/** The recorded directories were made with this size; a small one also makes opening quick. */
const EXISTENCE_FILTER_BYTES = 10_000;

export interface TestStoreOptions extends Partial<OpenStoreOptions> {
  readonly storage: Storage;
  readonly seed?: number;
}

/** Opens stores elsewhere than on the storage, which then only tells which store is meant; null: there. */
export const elsewhere: { open: ((options: TestStoreOptions) => Promise<OpenStore>) | null } = { open: null };

/**
 * Opens the store on a storage with everything else driven by the test. The history of scavenges is not repaired unless the
 * test asks for it, since that writes to the log.
 */
export function openTestStore(options: TestStoreOptions): Promise<OpenStore> {
  if (elsewhere.open !== null) return elsewhere.open(options);
  const { seed = 1, ...given } = options;
  const clock = given.clock ?? new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = given.ids ?? new SeededIds(seed);
  const scavengeStates = given.scavengeStates ?? MemoryScavengeStates.of(given.storage);
  const hasher = given.hasher === undefined ? {} : { hasher: given.hasher };
  const jobs = given.jobs ?? new InlineJobs({ jobs: JOBS, storage: given.storage, digests: nodeDigests, ids, clock, scavengeStates, ...hasher });
  return openStore({
    clock, ids, jobs, scavengeStates, digests: nodeDigests, log: silentLog, meter: silentMeter, existenceFilterBytes: EXISTENCE_FILTER_BYTES, cacheBytes: 16 * 1024 * 1024, ...given,
    scavenge: { repairHistory: false, ...given.scavenge },
  });
}
