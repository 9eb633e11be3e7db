import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { OpenFiles } from '../../infra/fs/open-files.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { append, CHUNK_BYTES, setMetadata } from '../scavenge/control-kit.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

/** A log of many more chunk files than may be open. */
const CHUNKS = 24;
const EVENT_BYTES = 6_000;
const EVENTS = CHUNKS * Math.floor(CHUNK_BYTES / EVENT_BYTES);
const OPEN_MAX = 3;
/** Less than the cache takes at least, so that blocks are read again. */
const CACHE_BYTES = 1;

function opened(storage: Storage): Promise<DirectoryStore> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(5);
  const scavengeStates = MemoryScavengeStates.of(storage);
  const jobs = new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates });
  return openTestStore({
    storage,
    clock,
    ids,
    jobs,
    scavengeStates,
    chunkSizeBytes: CHUNK_BYTES,
    cacheBytes: CACHE_BYTES,
    memTableEntriesMax: 40,
  });
}

async function all(open: DirectoryStore): Promise<unknown[]> {
  const events: unknown[] = [];
  for (let from: 'start' | { commit: number; prepare: number } = 'start'; ;) {
    const page = await open.store.readAll({ direction: 'forward', from, count: 20 });
    for (const { stream, number, type, data } of page.events)
      if (type === 'made') events.push([stream, number, data.length, data[0]]);
    if (page.isEnd) return events;
    from = page.next;
  }
}

/** What is written, read, scavenged, and read again by many at once, behind a restart, too. */
async function history(storage: Storage, look: () => Promise<void>): Promise<unknown[]> {
  const seen: unknown[] = [];
  let open = await opened(storage);
  for (let i = 0; i < EVENTS; i++)
    await append(open, `stream-${i % 7}`, 'made', new Uint8Array(EVENT_BYTES).fill(i % 251));
  await setMetadata(open, 'stream-3', { $maxCount: 2 });
  seen.push(...(await Promise.all([all(open), all(open), all(open)])));
  await look();
  const reading = Promise.all([all(open), all(open)]);
  await open.scavenger.start({ threshold: -1 });
  await open.scavenger.idle();
  await reading;
  expect(open.scavenger.last()).toMatchObject({ result: 'Success' });
  seen.push(...(await Promise.all([all(open), all(open)])));
  await look();
  await open.close();
  open = await opened(storage);
  seen.push(await all(open));
  await look();
  await open.close();
  return seen;
}

test.skipIf(process.platform !== 'linux')('a log of many chunks is read with few descriptors', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skua-few-'));
  const names = async () =>
    (await Promise.all((await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''))))
      .filter((target) => target.startsWith(folder))
      .map((target) => target.slice(folder.length + 1));
  let chunks = 0;
  try {
    const expected = await history(new MemoryStorage(), async () => {});
    const openFiles = new OpenFiles(OPEN_MAX);
    const found = await history(new FilesystemStorage({ root: folder, openFiles }), async () => {
      chunks = Math.max(chunks, (await readdir(folder)).filter((name) => name.startsWith('chunk-')).length);
      expect((await names()).filter((name) => name.startsWith('chunk-')).length).toBeLessThanOrEqual(OPEN_MAX + 1);
      expect(openFiles.count).toBeLessThanOrEqual(OPEN_MAX);
    });
    expect(chunks).toBeGreaterThan(5 * OPEN_MAX);
    expect(found).toEqual(expected);
    expect(await names()).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
