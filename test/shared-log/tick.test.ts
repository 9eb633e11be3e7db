import { describe, expect, test } from 'vitest';
import { decodeFooter, decodeHeader, FOOTER_BYTES } from '../../core/log/format/chunk-format.ts';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { checkClosed, readEverything } from '../scavenge/random-check.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { Mirror } from './mirror.ts';
import { beginLog, compactionTick, eventsOf, exportDirectory, manifestOf, newClock, worldOf } from './tick-kit.ts';
import { contentOf } from '../log/kit.ts';

/** What the objects amount to is a sound directory whose log is that of the mirror. */
async function expectSame(objects: MemoryObjects, mirror: Mirror): Promise<void> {
  const directory = await exportDirectory(objects);
  expect(await readRawLog(directory)).toEqual(await readRawLog(mirror.storage));
  const streams = ['a', 'b', 'c'];
  const open = await openTestStore({ storage: directory, writeEpoch: false, verifyChunks: false });
  expect(await readEverything(open.store, streams)).toEqual(await readEverything(mirror.store, streams));
  await open.close();
  expect(await checkClosed(directory, streamHasher)).toEqual([]);
}

describe('compaction', () => {
  test('a tick begins no log: one that is gone must not become an empty one', async () => {
    const objects = new MemoryObjects();
    expect(await compactionTick(worldOf(objects, newClock(), 1))).toMatchObject({ outcome: 'idle', manifest: 0 });
    expect(objects.size).toBe(0);
  });

  test('the tail becomes chunks, segments and index tables, with the bytes that a node would have written', async () => {
    const objects = new MemoryObjects();
    const clock = newClock();
    const world = worldOf(objects, clock, 1);
    await beginLog(world);
    const mirror = await Mirror.open(objects);
    const ids = new SeededIds(3);
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 5; i++)
        await mirror.store.append(['a', 'b', 'c'][(round + i) % 3]!, ANY, eventsOf(ids, 3, 900));
      if (round === 6)
        await mirror.store.appendInternal('$scavengePoints', ANY, eventsOf(ids, 1, 10), { completeChunkAfter: true });
      const report = await compactionTick(world);
      expect(report).toMatchObject({ outcome: 'published', manifest: round + 2 });
      await expectSame(objects, mirror);
    }
    const manifest = await manifestOf(objects);
    expect(manifest.chunks.length).toBeGreaterThanOrEqual(3);
    for (const { name, key, sizeBytes } of manifest.chunks) {
      const ours = (await objects.get(key))!;
      const theirs = await contentOf(mirror.storage, name);
      expect(ours.length).toBe(sizeBytes);
      expect(decodeHeader(name, ours)).toEqual({ ...decodeHeader(name, theirs), chunkId: expect.anything() });
      // The id in the header is drawn, and with it the digest differs.
      expect(Buffer.compare(ours.subarray(128, ours.length - 16), theirs.subarray(128, theirs.length - 16))).toBe(0);
      decodeFooter(name, ours.subarray(ours.length - FOOTER_BYTES), ours.length);
    }
    await mirror.close();
  });

  test('segments and tables stay few however many ticks there are', async () => {
    const objects = new MemoryObjects();
    const world = worldOf(objects, newClock(), 1);
    await beginLog(world);
    const mirror = await Mirror.open(objects);
    const ids = new SeededIds(3);
    for (let round = 0; round < 40; round++) {
      await mirror.store.append('a', ANY, eventsOf(ids, 1, 100));
      await compactionTick(world);
      const { ongoing, files } = await manifestOf(objects);
      expect(ongoing!.segments.length).toBeLessThanOrEqual(Math.ceil(Math.log2(round + 2)));
      expect(files.filter(({ name }) => /^index\/[0-9a-f-]{36}$/.test(name)).length).toBeLessThanOrEqual(2);
    }
    await expectSame(objects, mirror);
    await mirror.close();
  });

  test('a small tail is left alone until it is old, and an idle tick writes nothing', async () => {
    const objects = new MemoryObjects();
    const clock = newClock();
    const world = worldOf(objects, clock, 1);
    const settings = { compactCommitsMin: 4, compactAfterMs: 60_000 };
    await beginLog(world);
    const mirror = await Mirror.open(objects);
    const ids = new SeededIds(3);
    await mirror.store.append('a', ANY, eventsOf(ids, 1, 100));
    const { size } = objects;
    expect(await compactionTick(world, settings)).toMatchObject({ outcome: 'idle', manifest: 1 });
    expect(objects.size).toBe(size);
    await clock.advance(60_000);
    expect(await compactionTick(world, settings)).toMatchObject({ outcome: 'published', manifest: 2, commits: 1 });
    await clock.advance(60_000);
    expect(await compactionTick(world, settings)).toMatchObject({ outcome: 'idle' });
    for (let i = 0; i < 4; i++) await mirror.store.append('a', ANY, eventsOf(ids, 1, 100));
    expect(await compactionTick(world, settings)).toMatchObject({ outcome: 'published', commits: 4 });
    await mirror.close();
  });
});
