import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IndexEntry } from '../../core/index/format/entries.ts';
import { HIT } from '../../core/base/step.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { keyOf, openIndex, rangeOf } from './world.ts';
import { step } from '../log/kit.ts';
import { bySize } from '../support/run-size.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-index-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const STREAMS = 500;
const ROUNDS = bySize(8, 24);

describe('an index on the file system, written and merged by worker threads', () => {
  it('finds every entry while tables are replaced below it, and after it was opened again', async () => {
    const storage = new FilesystemStorage({ root: folder });
    const jobs = new WorkerJobs({ root: folder, indexRoot: join(folder, 'index'), isOffline: true });
    const keys = Array.from({ length: STREAMS }, (_, i) => keyOf(`stream-${i}`));
    const out = new IndexEntry();
    try {
      const index = await openIndex(storage, { jobs, memTableEntriesMax: 1_000 });
      for (let round = 0; round < ROUNDS; round++) {
        for (let i = 0; i < STREAMS; i++) {
          const position = (round * STREAMS + i) * 100;
          index.add(...keys[i]!, round, position);
          index.endBulk(position, position);
        }
        await index.ready();
        for (let i = 0; i < STREAMS; i += 5) {
          const version = (round * i) % (round + 1);
          expect(await step(() => index.floor(...keys[i]!, version, Number.MAX_SAFE_INTEGER, out))).toBe(HIT);
          expect(out).toEqual({ version, position: (version * STREAMS + i) * 100 });
        }
      }
      await index.flush();
      await index.close();
      const again = await openIndex(storage, { jobs });
      expect(again.wasReset).toBeNull();
      expect(again.commitCheckpoint).toBe((ROUNDS * STREAMS - 1) * 100);
      expect(again.tables().reduce((sum, table) => sum + table.entries, 0)).toBe(ROUNDS * STREAMS);
      expect(await storage.list('index')).toHaveLength(again.tables().length * 2 + 1);
      for (let i = 0; i < STREAMS; i += 25) {
        expect(await rangeOf(again, keys[i]!, 0, ROUNDS)).toEqual(
          Array.from({ length: ROUNDS }, (_, round) => [round, (round * STREAMS + i) * 100]),
        );
      }
      await again.close();
    } finally {
      await jobs.close();
    }
  });
});
