import { describe, expect, test } from 'vitest';
import { openPrefix } from '../../core/shared-log/prefix/prefix.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { manifestKey } from '../../core/shared-log/format/object-keys.ts';
import { createManifest } from '../../core/shared-log/format/manifest.ts';
import { scavengeStatus, startScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { readWholeStream } from '../support/oracle.ts';
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
import { readRawLog } from '../scavenge/raw-log.ts';

/** Ticks of a cluster's log: core/cluster/replica/README.md, rule 6. */

const OPTIONS = { chunkSizeBytes: CHUNK_BYTES };
const HOUR_MS = 3_600_000;

async function filled(isCluster = true) {
  const objects = new MemoryObjects();
  const clock = newClock();
  const world = worldOf(objects, clock, 1);
  await openPrefix(world, { ...OPTIONS, isCluster });
  const writer = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
  const ids = new SeededIds(3);
  await setMetadata(writer.store, ids, 'short', { $maxCount: 3 });
  for (let i = 0; i < 40; i++) await writer.store.append('short', ANY, eventsOf(ids, 2, 2_000));
  await writer.store.append('gone', ANY, eventsOf(ids, 1, 100));
  await writer.store.deleteStream('gone', ANY, 'hard');
  return { objects, clock, world, writer, ids };
}

/** What a member does when it begins a scavenge of its copy. */
async function point({ store }: ObjectInstance, ids: SeededIds): Promise<void> {
  const { id } = eventsOf(ids, 1, 1)[0]!;
  await store.append('$scavengePoints', ANY, [
    { id, type: '$scavengePoint', isJson: true, data: encodeText('{}'), metadata: new Uint8Array(0) },
  ]);
}

type Created = Awaited<ReturnType<MemoryObjects['create']>>;

/** Puts something around the next create. */
function aroundCreate(objects: MemoryObjects, meanwhile: (create: () => Promise<Created>) => Promise<Created>): void {
  const create = objects.create.bind(objects);
  objects.create = (key, bytes) => {
    objects.create = create;
    return meanwhile(() => create(key, bytes));
  };
}

async function recordsOf(objects: MemoryObjects): Promise<number> {
  return (await readRawLog(await exportDirectory(objects))).length;
}

describe('the mark', () => {
  test('stands in the first manifest of a new prefix, and in all that follow', async () => {
    const { objects, world } = await filled();
    expect(await manifestOf(objects)).toMatchObject({ number: 1, cluster: true });
    await compactionTick(world);
    expect(await manifestOf(objects)).toMatchObject({ number: 2, cluster: true, points: { seen: -1, reached: -1 } });
  });

  test('comes by a manifest of its own with the files of the one before, once', async () => {
    const { objects, world } = await filled(false);
    await compactionTick(world);
    const { number, writtenMs: _, ...before } = await manifestOf(objects);
    expect(before.cluster).toBeUndefined();
    await openPrefix(world, { isCluster: true });
    const { number: marked, writtenMs: __, ...after } = await manifestOf(objects);
    expect([marked, after]).toEqual([number + 1, { ...before, cluster: true }]);
    await openPrefix(world, { isCluster: true });
    await openPrefix(world, {});
    expect((await manifestOf(objects)).number).toBe(marked);
  });

  test.each([
    ['a manifest that was faster', [2], [], 3],
    ['the newest one, where it came to stand in the place of one that was swept', [2, 3], [2], 4],
  ])('is put behind %s', async (_, created, swept, number) => {
    const { objects, world } = await filled(false);
    const first = await manifestOf(objects);
    aroundCreate(objects, async (create) => {
      for (const other of created) await createManifest(world, { ...first, number: other, writtenMs: 7 });
      await objects.remove(swept.map(manifestKey));
      return create();
    });
    expect(await openPrefix(world, { isCluster: true })).toMatchObject({ number, cluster: true });
    expect(await manifestOf(objects)).toMatchObject({ number, cluster: true });
  });

  test('is not put into a place that was emptied meanwhile', async () => {
    const { objects, world } = await filled(false);
    aroundCreate(objects, async (create) => {
      const outcome = await create();
      await objects.remove((await objects.list('')).objects.map(({ key }) => key));
      return outcome;
    });
    await expect(openPrefix(world, { isCluster: true })).rejects.toMatchObject({ code: 'storage_unreachable' });
    expect(objects.size).toBe(0);
  });
});

describe('scavenges of the shared files', () => {
  test('nobody asks for them and no schedule begins them', async () => {
    const { objects, world, writer } = await filled(false);
    const { scavengeId } = await startScavenge(world);
    await openPrefix(world, { isCluster: true });
    await expect(startScavenge(world)).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringMatching(/cluster/),
    });
    let asked = 0;
    expect(
      await runTick(world, {
        autoScavenge: async () => {
          asked++;
        },
      }),
    ).toMatchObject({ isCluster: true });
    expect(asked).toBe(0);
    expect(await manifestOf(objects)).toMatchObject({ scavenge: null });
    expect(await scavengeStatus(world)).toBeNull();
    expect(writer.isCluster).toBe(false);
    const later = await openObjectStore(world, OPTIONS);
    expect(later.isCluster).toBe(true);
    await later.close();
    expect(await readWholeStream(writer.store, `$scavenges-${scavengeId}`, 'forward', 10)).toHaveProperty('error');
  });

  test('follow each point, under an endpoint that no member has, and rest then', async () => {
    const { objects, world, writer, ids } = await filled();
    await runTick(world);
    const before = await recordsOf(objects);
    await point(writer, ids);
    expect(await runTick(world)).toMatchObject({
      outcome: 'published',
      scavenge: { state: 'ended', result: 'Success', syncOnly: true, reached: 0 },
    });
    const after = await manifestOf(objects);
    expect(after).toMatchObject({ cluster: true, points: { seen: 0, reached: 0 } });
    expect(await recordsOf(objects)).toBeLessThan(before - 60);
    const told = (await readWholeStream(
      writer.store,
      `$scavenges-${after.scavenge!.scavengeId}`,
      'forward',
      100,
    )) as readonly { readonly type: string; readonly data: Uint8Array }[];
    expect(told.map(({ type }) => type)).toContain('$scavengeCompleted');
    expect(new TextDecoder().decode(told[0]!.data)).toContain('"nodeEndpoint": "shared-files:1"');
    // Its own history is taken over, and begins nothing anew.
    await runTick(world);
    expect((await manifestOf(objects)).scavenge).toMatchObject({ scavengeId: after.scavenge!.scavengeId });
    await writer.store.append('short', ANY, eventsOf(ids, 30, 2_000));
    await point(writer, ids);
    expect(await runTick(world)).toMatchObject({ scavenge: { result: 'Success', reached: 1 } });
    expect(await manifestOf(objects)).toMatchObject({ points: { seen: 1, reached: 1 } });
    expect(((await readWholeStream(writer.store, '$scavengePoints', 'forward', 10)) as readonly unknown[]).length).toBe(
      2,
    );
  });

  test("a point from before the log was a cluster's counts as well", async () => {
    const { objects, world, writer, ids } = await filled(false);
    await point(writer, ids);
    await runTick(world);
    expect(await manifestOf(objects)).toMatchObject({ scavenge: null });
    await openPrefix(world, { isCluster: true });
    await writer.store.append('long', ANY, eventsOf(ids, 1, 10));
    expect(await runTick(world)).toMatchObject({ scavenge: { result: 'Success', reached: 0 } });
  });

  test('one that failed is begun again after an hour', async () => {
    const { objects, clock, world, writer, ids } = await filled();
    await point(writer, ids);
    expect(await runTick(world, { settings: { stateBytesMax: 1 } })).toMatchObject({ scavenge: { result: 'Errored' } });
    const failed = (await manifestOf(objects)).scavenge!.scavengeId;
    await runTick(world);
    expect((await manifestOf(objects)).scavenge!.scavengeId).toBe(failed);
    await clock.advance(HOUR_MS);
    expect(await runTick(world)).toMatchObject({ scavenge: { result: 'Success', reached: 0 } });
    expect(await manifestOf(objects)).toMatchObject({ points: { seen: 0, reached: 0 } });
  });

  test('never remove tombstones', async () => {
    const { world, writer, ids } = await filled();
    await point(writer, ids);
    expect(await runTick(world, { settings: { scavenge: { unsafeIgnoreHardDelete: true } } })).toMatchObject({
      scavenge: { result: 'Success' },
    });
    const fresh = await openObjectStore(world, OPTIONS);
    await expect(fresh.store.readStream('gone', { direction: 'forward', from: 0, count: 1 })).rejects.toMatchObject({
      code: 'stream_deleted',
    });
    await fresh.close();
  });
});
