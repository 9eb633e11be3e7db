import { describe, expect, test } from 'vitest';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { scavengeStatus, startScavenge, stopScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { latestPoint } from '../scavenge/model.ts';
import { checkClosed, judge } from '../scavenge/random-check.ts';
import { type RawRecord, readRawLog } from '../scavenge/raw-log.ts';
import { readWholeStream } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import {
  CHUNK_BYTES,
  compactionTick,
  eventsOf,
  exportDirectory,
  manifestOf,
  newClock,
  type ObjectInstance,
  runTick,
  setMetadata,
  worldOf,
} from './tick-kit.ts';

const OPTIONS = { chunkSizeBytes: CHUNK_BYTES };

async function filled() {
  const objects = new MemoryObjects();
  const clock = newClock();
  const world = worldOf(objects, clock, 1);
  await compactionTick(world);
  const writer = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
  const ids = new SeededIds(3);
  await fill(writer, ids);
  await compactionTick(world);
  return { objects, clock, world, writer, ids };
}

async function fill({ store }: ObjectInstance, ids: SeededIds): Promise<void> {
  await setMetadata(store, ids, 'short', { $maxCount: 3 });
  for (let i = 0; i < 40; i++) {
    await store.append('short', ANY, eventsOf(ids, 2, 2_000));
    await store.append('long', ANY, eventsOf(ids, 1, 2_000));
    await store.append(`gone-${i % 4}`, ANY, eventsOf(ids, 1, 500));
  }
  await store.deleteStream('gone-1', ANY, 'hard');
  await store.deleteStream('gone-2', ANY, 'soft');
}

async function universeOf(objects: MemoryObjects): Promise<Map<number, RawRecord>> {
  return new Map((await readRawLog(await exportDirectory(objects))).map((record) => [record.position, record]));
}

async function judged(objects: MemoryObjects, universe: Map<number, RawRecord>) {
  const directory = await exportDirectory(objects);
  const after = await readRawLog(directory);
  for (const record of after) if (!universe.has(record.position)) universe.set(record.position, record);
  const records = [...universe.values()].sort((a, b) => a.position - b.position);
  const verdict = await judge(directory, {
    universe: records,
    after,
    point: latestPoint(records)!,
    carried: new Map(),
    sharing: 'none',
    keepsDeletedData: false,
  });
  return {
    wrong: [...verdict.wrong, ...(await checkClosed(directory, streamHasher))],
    removed: records.length - after.length,
  };
}

async function history(instance: ObjectInstance, scavengeId: string): Promise<string[]> {
  const events = await readWholeStream(instance.store, `$scavenges-${scavengeId}`, 'forward', 100);
  return 'error' in events ? [events.error] : events.map(({ type }) => type);
}

describe('scavenging by ticks', () => {
  test('a run that was asked for is begun and ended by one tick with time enough', async () => {
    const { objects, world, writer } = await filled();
    const universe = await universeOf(objects);
    expect(await scavengeStatus(world)).toBe(null);
    const { scavengeId } = await startScavenge(world);
    expect(await scavengeStatus(world)).toMatchObject({ scavengeId, state: 'requested' });
    expect(await startScavenge(world, {}, scavengeId)).toEqual({ scavengeId });
    await expect(startScavenge(world)).rejects.toMatchObject({ code: 'scavenge_in_progress', data: { scavengeId } });
    const report = await runTick(world);
    expect(report).toMatchObject({
      outcome: 'published',
      scavenge: { scavengeId, state: 'ended', result: 'Success', error: null },
    });
    expect(await scavengeStatus(world)).toMatchObject({ scavengeId, state: 'ended', result: 'Success' });
    const { wrong, removed } = await judged(objects, universe);
    expect(wrong).toEqual([]);
    expect(removed).toBeGreaterThan(80);
    const types = await history(writer, scavengeId);
    expect(types[0]).toBe('$scavengeStarted');
    expect(types.at(-1)).toBe('$scavengeCompleted');
    expect(types.filter((type) => type === '$scavengeCompleted')).toHaveLength(1);
    await writer.close();
  });

  test('a run goes on from tick to tick under its id, with one beginning and one end', async () => {
    const { objects, world, writer, ids } = await filled();
    const universe = await universeOf(objects);
    const { scavengeId } = await startScavenge(world, { threshold: -1 });
    let ticks = 0;
    for (let state = ''; state !== 'ended'; ticks++) {
      const report = await runTick(world, { settings: { ownBytesMax: 1 } });
      expect(report).toMatchObject({ outcome: 'published', scavenge: { scavengeId } });
      state = report.scavenge!.state;
      // Others go on writing.
      await writer.store.append('meanwhile', ANY, eventsOf(ids, 1, 100));
      expect(ticks).toBeLessThan(40);
    }
    expect(ticks).toBeGreaterThan(4);
    expect((await judged(objects, universe)).wrong).toEqual([]);
    const types = await history(writer, scavengeId);
    expect(types.filter((type) => type === '$scavengeStarted')).toHaveLength(1);
    expect(types.filter((type) => type === '$scavengeCompleted')).toHaveLength(1);
    expect(types.at(-1)).toBe('$scavengeCompleted');
    await writer.close();
  });

  test.each([{}, { ownBytesMax: 1 }])(
    'a deleted stream that runs have forgotten with its data loses them by the next run that empties, in one tick or in many (%j)',
    async (settings) => {
      const { objects, world, writer } = await filled();
      const isEmptied = async () =>
        (await readRawLog(await exportDirectory(objects)))
          .filter(({ prepare }) => prepare?.stream === 'gone-2')
          .map(({ prepare }) => prepare!.isEmptied);
      await startScavenge(world);
      expect(await runTick(world, { settings: { scavenge: { keepsDeletedData: true } } })).toMatchObject({
        scavenge: { result: 'Success' },
      });
      expect(await isEmptied()).toEqual([false]);
      const universe = await universeOf(objects);
      await startScavenge(world);
      for (let state = '', ticks = 0; state !== 'ended'; ticks++) {
        state = (await runTick(world, { settings })).scavenge!.state;
        expect(ticks).toBeLessThan(40);
      }
      expect(await scavengeStatus(world)).toMatchObject({ result: 'Success' });
      expect(await isEmptied()).toEqual([true]);
      expect((await judged(objects, universe)).wrong).toEqual([]);
      await writer.close();
    },
  );

  test('a run that is to stop ends with the next tick; what it has done stays', async () => {
    const { objects, world, clock, writer } = await filled();
    const { scavengeId } = await startScavenge(world);
    for (let i = 0; i < 3; i++) await runTick(world, { settings: { ownBytesMax: 1 } });
    const stopping = stopScavenge(world, scavengeId);
    const report = await runTick(world);
    expect(report.scavenge).toMatchObject({ scavengeId, state: 'ended', result: 'Stopped' });
    await clock.advance(2_000);
    expect(await stopping).toBe(scavengeId);
    await expect(stopScavenge(world, scavengeId)).rejects.toMatchObject({ code: 'scavenge_not_found' });
    expect((await history(writer, scavengeId)).at(-1)).toBe('$scavengeCompleted');
    // The next run goes on with what this one has learnt, under an id of its own.
    const universe = await universeOf(objects);
    const next = await startScavenge(world);
    expect(next.scavengeId).not.toBe(scavengeId);
    expect(await runTick(world)).toMatchObject({ scavenge: { scavengeId: next.scavengeId, result: 'Success' } });
    expect((await judged(objects, universe)).wrong).toEqual([]);
    await writer.close();
  });

  test.each([false, true])(
    'a run that did not end waits, and the next one goes on with it or starts afresh, once however many parts it has (%s)',
    async (startAfresh) => {
      const { objects, world, clock, writer, ids } = await filled();
      const { scavengeId } = await startScavenge(world);
      for (let i = 0; i < 3; i++) await runTick(world, { settings: { ownBytesMax: 1 } });
      const stopping = stopScavenge(world, scavengeId);
      await runTick(world);
      await clock.advance(2_000);
      await stopping;
      const waiting = (await scavengeStatus(world))!.waiting!;
      expect(waiting).toMatchObject({ why: 'unfinished', point: { eventNumber: 0 } });
      await setMetadata(writer.store, ids, 'long', { $maxCount: 2 });
      const next = await startScavenge(world, { startAfresh });
      const seen: unknown[] = [];
      for (let state = '', ticks = 0; state !== 'ended'; ticks++) {
        state = (await runTick(world, { settings: { ownBytesMax: 1 } })).scavenge!.state;
        seen.push((await scavengeStatus(world))!.olderPoint ?? null);
        expect(ticks).toBeLessThan(40);
      }
      expect(new Set(seen.map((each) => JSON.stringify(each)))).toEqual(
        new Set([JSON.stringify(startAfresh ? null : waiting)]),
      );
      expect(await scavengeStatus(world)).toMatchObject({
        scavengeId: next.scavengeId,
        result: 'Success',
        error: null,
      });
      expect((await scavengeStatus(world))!.waiting).toBeUndefined();
      expect(await readWholeStream(writer.store, '$scavengePoints', 'forward', 100)).toHaveLength(startAfresh ? 2 : 1);
      const longLeft = (await readRawLog(await exportDirectory(objects))).filter(
        ({ prepare }) => prepare?.stream === 'long',
      ).length;
      expect(longLeft).toBe(startAfresh ? 2 : 40);
      await writer.close();
    },
  );

  test('a request to stop that no tick hears in time says when to ask again', async () => {
    const { world, clock, writer } = await filled();
    const { scavengeId } = await startScavenge(world);
    const stopping = expect(stopScavenge(world, 'current')).rejects.toMatchObject({
      code: 'scavenge_stopping',
      data: { scavengeId, retryAfterSeconds: 60 },
    });
    await clock.advance(26_000);
    await stopping;
    expect(await runTick(world)).toMatchObject({ scavenge: { scavengeId, state: 'ended', result: 'Stopped' } });
    await writer.close();
  });

  test('instances that were open all the time, and those that open afterwards, read the same', async () => {
    const { objects, clock, world, writer } = await filled();
    const reader = await openObjectStore(worldOf(objects, clock, 9), OPTIONS);
    const before = await readWholeStream(reader.store, 'short', 'forward', 100);
    await startScavenge(world);
    await runTick(world);
    const fresh = await openObjectStore(worldOf(objects, clock, 10), OPTIONS);
    for (const { store } of [reader, writer, fresh]) {
      expect(await readWholeStream(store, 'short', 'forward', 100)).toEqual(before);
      expect(await readWholeStream(store, 'long', 'forward', 100)).toHaveLength(40);
      expect(await readWholeStream(store, 'gone-1', 'forward', 100)).toMatchObject({ error: 'stream-deleted' });
    }
    for (const instance of [reader, writer, fresh]) await instance.close();
  });
});

test('nothing that a manifest names, or has named lately, is removed; what is old goes', async () => {
  const { objects, world, clock, writer, ids } = await filled();
  await startScavenge(world);
  await runTick(world);
  const dropped = (await manifestOf(objects)).dropped.map(({ key }) => key);
  expect(dropped.length).toBeGreaterThan(0);
  for (const key of dropped) expect(await objects.head(key)).not.toBe(null);
  await writer.close();
  void clock;
  void ids;
});
