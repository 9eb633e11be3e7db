import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ANY } from '../../core/streams/api.ts';
import type { AllPosition, EventStore, NewEvent } from '../../core/streams/api.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';

/**
 * Chunks of many blocks: workers read into two buffers in turns while earlier ones are still being written, so every
 * byte that survives must be compared. Small chunks, as elsewhere, never get that far.
 */

const CHUNK_BYTES = 8_388_608;
const BATCH = 20;

async function contentOf(store: EventStore): Promise<Map<number, string>> {
  const content = new Map<number, string>();
  for (let from: AllPosition | 'start' = 'start'; ;) {
    const page = await store.readAll({ direction: 'forward', from, count: 200 });
    for (const event of page.events) {
      const md5 = nodeDigests.md5();
      md5.update(event.data);
      content.set(event.position, `${event.number}@${event.stream} ${Buffer.from(md5.finish()).toString('hex')}`);
    }
    if (page.isEnd) return content;
    from = page.next;
  }
}

it('what survives of chunks of many blocks is what was written, byte for byte', async () => {
  const root = mkdtempSync(join(tmpdir(), 'skua-large-'));
  const storage = new FilesystemStorage({ root });
  const jobs = new WorkerJobs({ root, indexRoot: storage.indexRoot });
  const random = new Random(11);
  const scavengeStates = new SqliteScavengeStates({ indexRoot: storage.indexRoot });
  const open = await openTestStore({
    storage,
    jobs,
    clock: systemClock,
    ids: systemIds,
    chunkSizeBytes: CHUNK_BYTES,
    scavengeStates,
  });
  const { store, scavenger } = open;
  try {
    const event = (bytes: number): NewEvent => ({
      id: crypto.randomUUID(),
      type: 'noted',
      isJson: false,
      data: Uint8Array.from({ length: bytes }, () => random.int(0, 255)),
      metadata: new Uint8Array(0),
    });
    // Runs that go and runs that stay, each from a few records to more than two blocks, and records larger than a write
    // buffer.
    while (store.end < 4 * CHUNK_BYTES) {
      const stream = random.pick(['kept', 'gone']);
      const batches = random.pick([1, 3, 60]);
      const bytes = random.pick([300, 2_000, 2_000, 40_000]);
      for (let i = 0; i < batches; i++)
        await store.append(
          stream,
          ANY,
          Array.from({ length: BATCH }, () => event(bytes)),
        );
    }
    const before = await contentOf(store);
    await store.deleteStream('gone', ANY, 'hard');
    for (const threshold of [0, -1]) {
      await scavenger.start({ threshold });
      await scavenger.idle();
      expect(scavenger.last()).toMatchObject({ result: 'Success' });
    }
    const after = await contentOf(store);
    const kept = [...before].filter(([, row]) => row.includes('@kept '));
    expect(kept.length).toBeGreaterThan(100);
    expect([...after].filter(([, row]) => row.includes('@kept '))).toEqual(kept);
    expect([...after].filter(([, row]) => row.includes('@gone ')).length).toBe(1);
  } finally {
    await open.close();
    await jobs.close();
  }
  const run = verifyDirectory({ storage, digests: nodeDigests, clock: systemClock });
  for (let next = await run.next(); next.done !== true; next = await run.next())
    if (next.value.kind === 'finding') expect.fail(next.value.message);
  rmSync(root, { recursive: true, force: true });
});
