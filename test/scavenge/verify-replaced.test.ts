import { expect, test } from 'vitest';
import { JOBS } from '../../core/jobs/jobs.ts';
import { VERIFY_CHUNK_JOB } from '../../core/log/scrub/scrub.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

/** A chunk whose checksum is compared while a scavenge replaces and discards it may be cut short under the reader. */
test.each([
  [true, 'going on'],
  [false, 'log_corrupt'],
])('a wrong checksum counts unless the chunk was replaced meanwhile: %s', async (isReplaced, expected) => {
  const storage = new MemoryStorage();
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(9);
  const scavengeStates = MemoryScavengeStates.of(storage);
  const inner = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates });
  const verified = Promise.withResolvers<void>();
  let wasReplaced = false;
  const jobs: Jobs = {
    close: () => inner.close(),
    run: async (name, args, options) => {
      if (name !== VERIFY_CHUNK_JOB) return inner.run(name, args, options);
      // What took its place is sound.
      if (wasReplaced) return true;
      if (isReplaced) {
        wasReplaced = true;
        await open.scavenger.start({ threshold: -1 });
        await open.scavenger.idle();
      }
      verified.resolve();
      return false;
    },
  };
  const open = await openTestStore({
    storage,
    clock,
    ids,
    jobs,
    scavengeStates,
    chunkSizeBytes: 131_072,
    verifyChunks: true,
  });
  let outcome = 'going on';
  void open.failed.then(({ code }) => {
    outcome = code;
  });
  const event = {
    id: '00000000-0000-4000-8000-000000000001',
    type: 'made',
    isJson: false,
    data: new Uint8Array(10),
    metadata: new Uint8Array(0),
  };
  await open.store.append('s', ANY, [event]);
  // Its point completes the first chunk.
  await open.scavenger.start({});
  await open.scavenger.idle();
  await clock.advance(10_000);
  await verified.promise;
  // What follows the job has been done when the log has taken another write.
  await open.store.append('s', ANY, [{ ...event, id: '00000000-0000-4000-8000-000000000002' }]);
  expect(outcome).toBe(expected);
  await open.close();
});
