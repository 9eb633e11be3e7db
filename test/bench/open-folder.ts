import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../../infra/system-clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { openStore } from '../../core/store/store.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { type FlatStoreOptions, storeOptions } from '../support/test-store.ts';

/** Opens a directory as a node does, with the defaults of a node. */
export async function openFolder(folder: string, options: Partial<FlatStoreOptions> = {}): Promise<DirectoryStore> {
  const storage = new FilesystemStorage({ root: folder });
  const jobs = new WorkerJobs({ root: storage.root, indexRoot: storage.indexRoot });
  const scavengeStates = new SqliteScavengeStates({ indexRoot: storage.indexRoot });
  const open = await openStore(
    storeOptions({
      storage,
      clock: systemClock,
      ids: systemIds,
      digests: jobs.digests,
      jobs,
      log: silentLog,
      meter: silentMeter,
      scavengeStates,
      ...options,
    }),
  );
  return {
    ...open,
    // A method of a class, which is not copied.
    status: () => open.status(),
    async close() {
      await open.close();
      await jobs.close();
    },
  };
}

/** Longest that an index of names may take to be there, in milliseconds. */
const REST_MS_MAX = 30_000;

/** Waits for what a store does behind its start, which is to look through the index of names. */
export async function comeToRest(open: DirectoryStore): Promise<void> {
  const begin = performance.now();
  while (open.status().attributes.some(({ state }) => state === 'building')) {
    if (performance.now() - begin > REST_MS_MAX) throw new Error('The index of names is not built.');
    await setTimeout(1);
  }
}

/** A meter that keeps count and sum of what it is shown. */
export class SumMeter implements Meter {
  readonly #seen = new Map<string, { count: number; sum: number }>();

  count(): void {}
  gauge(): void {}
  observe(name: string, value: number): void {
    const seen = this.#seen.get(name);
    if (seen === undefined) this.#seen.set(name, { count: 1, sum: value });
    else {
      seen.count++;
      seen.sum += value;
    }
  }

  /** Mean of all observations of a name, NaN when there were none. */
  mean(name: string): number {
    const seen = this.#seen.get(name);
    return seen === undefined ? Number.NaN : seen.sum / seen.count;
  }

  reset(): void {
    this.#seen.clear();
  }
}
