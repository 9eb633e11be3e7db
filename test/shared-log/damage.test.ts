import { expect, test } from 'vitest';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { findingsOf } from '../support/damage.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { backupsOf, openRepositoryOf } from './backup-kit.ts';
import {
  CHUNK_BYTES,
  compactionTick,
  eventsOf,
  exportDirectory,
  manifestOf,
  runTick,
  setMetadata,
  worldOf,
} from './tick-kit.ts';

/** A chunk on object storage with a flipped bit is neither scavenged nor backed up. */

const OPTIONS = { chunkSizeBytes: CHUNK_BYTES };

async function filled() {
  const objects = new MemoryObjects();
  const clock = new AutoClock();
  const world = worldOf(objects, clock, 1);
  await compactionTick(world);
  const writer = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
  const ids = new SeededIds(3);
  await setMetadata(writer.store, ids, 'short', { $maxCount: 3 });
  for (let i = 0; i < 40; i++) {
    await writer.store.append('short', ANY, eventsOf(ids, 2, 2_000));
    await writer.store.append('long', ANY, eventsOf(ids, 1, 2_000));
  }
  await writer.close();
  await compactionTick(world);
  return { objects, clock, world };
}

/** Flips a bit in the payload of an event of a completed chunk. */
async function flipChunk(
  objects: MemoryObjects,
): Promise<{ readonly name: string; readonly key: string; readonly mend: () => Promise<void> }> {
  const { name, key } = (await manifestOf(objects)).chunks[1]!;
  const sound = (await objects.get(key))!.slice();
  const bytes = sound.slice();
  const at = bytes.findIndex((byte, i) => byte === 120 && bytes[i + 500] === 120 && i > 5_000) + 250;
  bytes[at]! ^= 0x10;
  await objects.put(key, bytes);
  return { name, key, mend: () => objects.put(key, sound) };
}

test('a scavenge that meets it ends as Errored with its name, and its object stays in force', async () => {
  const { objects, world } = await filled();
  const { name, key } = await flipChunk(objects);
  const { scavengeId } = await startScavenge(world);
  for (let ticks = 0; ; ticks++) {
    const { scavenge } = await runTick(world);
    expect(ticks).toBeLessThan(20);
    if (scavenge?.state !== 'ended') continue;
    expect(scavenge).toMatchObject({ scavengeId, result: 'Errored', error: expect.stringContaining(name) as string });
    break;
  }
  expect((await manifestOf(objects)).chunks).toContainEqual(expect.objectContaining({ name, key }));
  expect(await findingsOf(await exportDirectory(objects))).toContain(`${name}: md5_mismatch`);
});

test('a backup of it is refused with its name, and made when it is whole again', async () => {
  const { objects, clock } = await filled();
  const { name, mend } = await flipChunk(objects);
  const repository = new MemoryObjects();
  const backups = backupsOf(objects, repository, clock, 6);
  await expect(backups.ship(clock.monotonicMs() + 60_000)).rejects.toMatchObject({
    code: 'log_corrupt',
    data: { file: name },
  });
  expect(await (await openRepositoryOf(repository, clock, 7)).backups()).toEqual([]);
  await mend();
  expect(await backups.ship(clock.monotonicMs() + 60_000)).toBe('made');
});
