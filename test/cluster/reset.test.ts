import { SkuaError } from '../../core/base/errors.ts';
import { MARKS_STREAM } from '../../core/streams/format/marks.ts';
import { MARKS_FILE } from '../../core/streams/format/marks-table.ts';
import { ALL_MARKS, NO_MARKS } from '../../core/streams/format/mark-columns.ts';
import { Redactions } from '../../core/streams/redactions/redactions.ts';
import { openMember } from './replica/kit.ts';
import { beforeAll, describe, expect, test } from 'vitest';
import { beginLog } from '../../core/cluster/reset/reset.ts';
import type { ResetOptions } from '../../core/cluster/reset/reset.ts';
import { INDEX_MAP_PATH } from '../../core/index/format/index-map.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { createManifest, newestManifest } from '../../core/shared-log/format/manifest.ts';
import { manifestKey } from '../../core/shared-log/format/object-keys.ts';
import { openPrefix } from '../../core/shared-log/prefix/prefix.ts';
import { verifyObjects } from '../../core/shared-log/verify/verify.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { ANY } from '../../core/streams/api.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { append, CHUNK_BYTES, openSource, stopped } from '../backup/copy-kit.ts';
import { eventsOf, newClock, runTick, setMetadata, worldOf } from '../shared-log/tick-kit.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { copyTo, flip } from '../log/kit.ts';

/** `skua cluster reset`: a new log begins at the end of a copy. */

/** A copy with scavenged chunks, completed ones, one that is being written, and index tables. */
let copy: MemoryStorage;
let lastCommitPosition: number;
let expected: readonly unknown[];
let end: number;

beforeAll(async () => {
  copy = new MemoryStorage();
  const open = await openSource(copy);
  await setMetadata(open.store, new SeededIds(3), 'a', { $maxCount: 5 });
  await append(open, 'a', 130);
  await append(open, 'b', 70);
  await open.scavenger.start();
  await open.scavenger.idle();
  expect(open.scavenger.last()!.result).toBe('Success');
  await append(open, 'c', 3);
  expected = await allOf(open.store);
  end = open.status().checkpoints.writer;
  lastCommitPosition = open.status().lastCommitPosition;
  await open.close();
  expect(end % CHUNK_BYTES).toBeGreaterThan(0);
});

async function allOf(store: EventStore): Promise<readonly { readonly stream: string }[]> {
  const { events } = await store.readAll({ direction: 'forward', from: 'start', count: 4_096, resolveLinks: false });
  return events.map(({ stream, number, id, type, position }) => ({ stream, number, id, type, position }));
}

let seeds = 100;

async function reset(objects: ObjectStore, more: Partial<ResetOptions> = {}, storage = copy) {
  const source = await stopped(storage);
  try {
    return await beginLog({
      world: worldOf(objects, newClock(), seeds++),
      source,
      lastCommitPosition,
      marks: NO_MARKS,
      ...more,
    });
  } finally {
    await source.release();
  }
}

async function verified(objects: ObjectStore) {
  const run = verifyObjects({ world: worldOf(objects, newClock(), 900), scratch: new MemoryStorage() });
  const found: unknown[] = [];
  for (let next = await run.next(); ; next = await run.next()) {
    if (next.done === true) return { found, summary: next.value };
    if (next.value.kind !== 'progress') found.push(next.value);
  }
}

describe('a log that begins at the end of a copy', () => {
  test('holds what the copy holds, at the same positions, and goes on behind it', async () => {
    const objects = new MemoryObjects();
    const manifest = await reset(objects);
    expect(manifest).toMatchObject({ number: 1, boundary: 1, logEnd: end, chunkSizeBytes: CHUNK_BYTES, cluster: true });
    expect(manifest.chunks.some(({ isScavenged }) => isScavenged)).toBe(true);
    expect(manifest.files.length).toBeGreaterThan(1);
    expect(await verified(objects)).toMatchObject({ found: [], summary: { errors: 0, warnings: 0, notes: 0 } });

    const instance = await openObjectStore(worldOf(objects, newClock(), 41), {});
    expect(instance.internals.end).toBe(end);
    expect(await allOf(instance.store)).toEqual(expected);
    await expect(instance.store.append('c', 1, eventsOf(new SeededIds(50), 1, 100))).rejects.toMatchObject({
      code: 'wrong_expected_version',
    });
    const { position } = await instance.store.append('c', 2, eventsOf(new SeededIds(51), 1, 100));
    expect(position).toBe(end);
    for (let i = 0; i < 80; i++) await instance.store.append('d', ANY, eventsOf(new SeededIds(60 + i), 1, 1_000));
    await instance.close();
    await runTick(worldOf(objects, newClock(), 42));
    expect(await verified(objects)).toMatchObject({ found: [], summary: { errors: 0 } });
    const after = await openObjectStore(worldOf(objects, newClock(), 43), {});
    const all = await allOf(after.store);
    expect(all.slice(0, expected.length)).toEqual(expected);
    // Ticks of a cluster's log scavenge what they hold to its points, and tell of that.
    expect(all.filter(({ stream }, i) => i < expected.length || !stream.includes('$scavenges'))).toHaveLength(
      expected.length + 81,
    );
    await after.close();
  });

  test('of an empty directory, and of one whose log ends with a chunk', async () => {
    const storage = new MemoryStorage();
    const open = await openSource(storage);
    const { store, scavenger } = open;
    await append(open, 'a', 3);
    // Ends its chunk, and begins at the next.
    await scavenger.start();
    await scavenger.idle();
    const all = await allOf(store);
    const last = open.status().lastCommitPosition;
    await open.close();
    const objects = new MemoryObjects();
    await reset(objects, { lastCommitPosition: last }, storage);
    const instance = await openObjectStore(worldOf(objects, newClock(), 44), {});
    expect(await allOf(instance.store)).toEqual(all);
    await instance.close();
  });
});

describe('what is refused', () => {
  test('a prefix with a log, which stays as it is', async () => {
    const objects = new MemoryObjects();
    const { storeId } = await reset(objects);
    const before = objects.size;
    await expect(reset(objects)).rejects.toMatchObject({ code: 'directory_not_empty', data: { storeId } });
    expect(objects.size).toBe(before);
  });

  test('a prefix in which another log was begun meanwhile, whose first manifest has been swept', async () => {
    const objects = new MemoryObjects();
    let storeId = '';
    const begin = async (): Promise<void> => {
      const world = worldOf(objects, newClock(), 46);
      const first = await openPrefix(world, {});
      ({ storeId } = first);
      await createManifest(world, { ...first, number: 2 });
      await objects.remove([manifestKey(1)]);
    };
    const error: unknown = await reset(objects, { beforeManifest: begin }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'directory_not_empty', data: { storeId } });
    expect((await objects.list('files/')).objects).toEqual([]);
    await (await openObjectStore(worldOf(objects, newClock(), 47), {})).close();
  });

  test('an index that ends before the log', async () => {
    const objects = new MemoryObjects();
    await expect(reset(objects, { lastCommitPosition: end })).rejects.toMatchObject({ code: 'index_corrupt' });
    expect(await newestManifest(objects, nodeDigests)).toBe(null);
  });

  test('a chunk in which a byte has changed', async () => {
    const damaged = new MemoryStorage();
    const source = await stopped(copy);
    const file = source.snapshot.files.find(({ kind }) => kind === 'chunk')!.path;
    await source.release();
    await copyTo(copy, damaged);
    await flip(damaged, file, 1_000, 1);
    const objects = new MemoryObjects();
    await expect(reset(objects, {}, damaged)).rejects.toMatchObject({ code: 'log_corrupt', data: { file } });
    expect(await newestManifest(objects, nodeDigests)).toBe(null);
  });
});

describe('a crash', () => {
  test('at any call leaves no log, or a whole one; a repeat into what has none works', async () => {
    const counting = new FaultyObjects(new MemoryObjects());
    await reset(counting);
    const calls = counting.calls.length;
    let whole = 0;
    for (let at = 1; at <= calls; at++) {
      const base = new MemoryObjects();
      const faulty = new FaultyObjects(base, { seed: at });
      faulty.crashAfter(at);
      let isReady = false;
      await reset(faulty, {
        beforeManifest: async () => {
          isReady = true;
        },
      }).catch(() => {});
      const manifest = await newestManifest(base, nodeDigests);
      if (manifest === null) {
        await reset(base);
      } else {
        expect(isReady).toBe(true);
        whole++;
      }
      const instance = await openObjectStore(worldOf(base, newClock(), 45), {});
      expect(instance.internals.end).toBe(end);
      await instance.close();
    }
    expect(whole).toBeLessThan(calls);
  });

  test('what `beforeManifest` throws leaves no log', async () => {
    const objects = new MemoryObjects();
    await expect(reset(objects, { beforeManifest: () => Promise.reject(new Error('no')) })).rejects.toThrow('no');
    expect(await newestManifest(objects, nodeDigests)).toBe(null);
  });
});

test('the map of the index is among the files', async () => {
  const { files } = await reset(new MemoryObjects());
  expect(files.map(({ name }) => name)).toContain(INDEX_MAP_PATH);
  expect(files.some(({ name }) => name.includes('scavenging'))).toBe(false);
});

test('marks that waited beside the copy hide their events at a member with an empty directory, which appends them', async () => {
  const storage = new MemoryStorage();
  await copyTo(copy, storage);
  const opened = await openSource(storage);
  const { preparePosition: position, id, stream, number } = await opened.store.readEvent('c', 1);
  await opened.close();
  const marks = new Redactions();
  marks.add({ position, id, keys: [] }, 0);
  const objects = new MemoryObjects();
  const source = await stopped(storage);
  await beginLog({
    world: worldOf(objects, newClock(), seeds++),
    source,
    lastCommitPosition,
    marks: marks.columns(...ALL_MARKS),
  }).finally(() => source.release());
  const empty = new MemoryStorage();
  const clock = newClock();
  const refusal = new SkuaError('not_leader', 'No.');
  const member = (more: object = {}) => openMember({ storage: empty, objects, clock, seed: seeds++, ...more });
  // One that may write nothing yet, and goes: its directory alone shows as little.
  const first = await member({ refusal: () => refusal });
  expect(await first.store.readEvent(stream, number)).toMatchObject({ isRedacted: true });
  await first.close();
  expect(await empty.list('')).toContain(MARKS_FILE);
  const second = await member();
  await second.appendRestored();
  expect((await second.store.streamInfo(MARKS_STREAM)).lastEventNumber).toBe(0);
  expect(await empty.list('')).not.toContain(MARKS_FILE);
  expect(await second.store.readEvent(stream, number)).toMatchObject({ isRedacted: true });
  await second.close();
  const third = await member();
  await third.appendRestored();
  expect((await third.store.streamInfo(MARKS_STREAM)).lastEventNumber).toBe(0);
  await third.close();
});
