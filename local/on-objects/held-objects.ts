import { holdEnded, holdOf } from '../../core/store/hold/hold.ts';
import type { StoreHold, Snapshot } from '../../core/store/api.ts';
import { BACKUP_JOB } from '../../core/backup/jobs/jobs.ts';
import type { BackupJobArgs } from '../../core/backup/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { ObjectLogOptions, ObjectWorld } from '../../core/shared-log/api.ts';
import { objectSource } from '../../core/shared-log/overlay/overlay.ts';
import type { ObjectSource } from '../../core/shared-log/overlay/overlay.ts';
import { InlineJobs, jobUnknown } from '../../core/memory/inline-jobs.ts';
import type { JobOptions, Jobs } from '../../core/ports/jobs.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { newTemporaryStorage } from '../../infra/runtime/temporary-storage.ts';

/**
 * Holds of a node on object storage: the files that the newest manifest names, and the tail behind it, under the names
 * of a data directory. Backups of such a node, by whatever command, work as those of any other.
 */
export class HeldObjects {
  readonly #world: ObjectWorld;
  readonly #options: ObjectLogOptions;
  readonly #held = new Map<Snapshot, { readonly hold: StoreHold; readonly source: ObjectSource }>();
  #isClosed = false;

  constructor(world: ObjectWorld, options: ObjectLogOptions) {
    this.#world = world;
    this.#options = options;
  }

  async take(): Promise<StoreHold> {
    this.#refuseClosed();
    const scratch = await newTemporaryStorage();
    try {
      const source = await objectSource(this.#world, this.#options, scratch.storage);
      const release = async (): Promise<void> => {
        this.#held.delete(source.snapshot);
        await source.release();
        await scratch.remove();
      };
      const hold = holdOf({ snapshot: source.snapshot, read: (...args) => source.read(...args), release });
      this.#held.set(source.snapshot, { hold, source });
      if (this.#isClosed) await hold.release();
      this.#refuseClosed();
      return hold;
    } catch (error) {
      await scratch.remove();
      throw error;
    }
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new SkuaError('store_closed', 'The store is closed: its files are no longer held.');
  }

  /** What a node asks of jobs here: to back up what is held. */
  readonly jobs: Jobs = {
    run: async (name: string, args: unknown, options?: JobOptions): Promise<unknown> => {
      if (name !== BACKUP_JOB) throw jobUnknown(name);
      const held = this.#held.get((args as BackupJobArgs).snapshot);
      if (held === undefined) throw holdEnded();
      const { digests, ids, clock } = this.#world;
      const jobs = new InlineJobs({
        jobs: JOBS,
        storage: held.source.storage,
        digests,
        ids,
        clock,
        backup: { keys: nodeKeys, compression: nodeCompression, openObjects: (place) => openObjects(place) },
      });
      return jobs.run(name, args, options);
    },
    close: async () => {},
  };

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { hold } of this.#held.values()) await hold.release();
  }
}
