import { BlockCache } from '../../core/cache/cache.ts';
import { StreamIndex } from '../../core/index/index.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { openLog } from '../../core/log/log.ts';
import type { TransactionLog } from '../../core/log/transaction-log.ts';
import { encodeCommit } from '../../core/shared-log/format/commit-object.ts';
import { commitKey } from '../../core/shared-log/format/object-keys.ts';
import type { CommitLog } from '../../core/ports/commit-log.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { createEventStore, type EventStoreInternals } from '../../core/streams/streams.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { CHUNK_BYTES, newClock, worldOf } from './tick-kit.ts';

/**
 * A node in memory whose every group commit also becomes a commit object: what ticks make of the objects can be
 * compared with its files.
 */
export class Mirror {
  readonly storage: MemoryStorage;
  readonly store: EventStoreInternals;
  readonly #log: TransactionLog;
  readonly #index: StreamIndex;

  private constructor(storage: MemoryStorage, store: EventStoreInternals, log: TransactionLog, index: StreamIndex) {
    this.storage = storage;
    this.store = store;
    this.#log = log;
    this.#index = index;
  }

  static async open(objects: ObjectStore): Promise<Mirror> {
    const storage = new MemoryStorage();
    const clock = newClock();
    const ids = new SeededIds(77);
    const cache = new BlockCache(4_194_304);
    const world = worldOf(objects, clock, 78);
    const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock });
    const log = await openLog({ ...world, storage, cache, ids, chunkSizeBytes: CHUNK_BYTES });
    const index = await StreamIndex.open({
      ports: { ...world, storage, cache, ids, jobs },
      settings: { existenceFilterBytes: 0 },
      logEnd: 0,
    });
    const store = createEventStore({ ...world, ids, reader: log.table, commitLog: mirrored(log, objects), index });
    return new Mirror(storage, store, log, index);
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.#index.close();
    await this.#log.close();
  }
}

function mirrored(log: TransactionLog, objects: ObjectStore): CommitLog {
  let number = 0;
  const put = async (start: number, records: Uint8Array, endsChunk: boolean): Promise<void> => {
    const commit = {
      number: ++number,
      writer: new Uint8Array(16),
      nonce: new Uint8Array(16).fill(number),
      start,
      end: start + records.length,
      endsChunk,
      hasMarks: false,
      records,
    };
    await objects.create(commitKey(number), encodeCommit(commit, [], nodeDigests));
  };
  return {
    get end() {
      return log.end;
    },
    get remaining() {
      return log.remaining;
    },
    get capacity() {
      return log.capacity;
    },
    async append(group) {
      const start = log.end;
      await log.append(group);
      await put(start, group.slice(), false);
    },
    publish: () => log.publish(),
    async completeChunk() {
      const { end } = log;
      await log.completeChunk();
      await put(end, new Uint8Array(0), true);
    },
  };
}
