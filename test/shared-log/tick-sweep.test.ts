import { describe, expect, test } from 'vitest';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { commitKey, manifestNumberOf } from '../../core/shared-log/format/object-keys.ts';
import { keysOf, readManifest } from '../../core/shared-log/format/manifest.ts';
import { LEFTOVERS_EVERY, listManifests } from '../../core/shared-log/sweep/sweep.ts';
import { askToStop } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { listAll } from '../../core/ports/object-store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { readWholeStream } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { held, OPTIONS } from './scavenge-kit.ts';
import { compactionTick, eventsOf, manifestOf, worldOf } from './tick-kit.ts';

const REMOVE_AFTER_MS = 3_600_000;
const STEP_MS = 300_000;

async function keysUnder(objects: MemoryObjects, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(objects, prefix)) keys.push(key);
  return keys;
}

/**
 * Whoever has read a manifest less than the removal age before the newest one finds all that it names, and the commits
 * behind it.
 */
async function expectReadable(objects: MemoryObjects): Promise<void> {
  const manifests = await listManifests(objects);
  const newest = await manifestOf(objects);
  for (const [i, { key }] of manifests.entries()) {
    const replacedMs = manifests[i - 1]?.modifiedMs ?? Infinity;
    if (manifests[0]!.modifiedMs - replacedMs >= REMOVE_AFTER_MS) break;
    const manifest = (await readManifest(objects, manifestNumberOf(key)!, nodeDigests))!;
    for (const named of keysOf(manifest))
      expect(await objects.head(named), `${named} of manifest ${manifest.number}`).not.toBe(null);
    for (let number = manifest.boundary; number < newest.boundary; number++)
      expect(await objects.head(commitKey(number)), `commit ${number}`).not.toBe(null);
  }
}

describe('what nobody reads any more', () => {
  test('goes after its time and not before; the store stays small', async () => {
    const clock = new AutoClock();
    const objects = new MemoryObjects({ clock });
    await compactionTick(worldOf(objects, clock, 1));
    const writer = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
    const ids = new SeededIds(3);
    await objects.put('files/00000000-0000-4000-8000-000000000001', Uint8Array.of(1));
    await askToStop({ objects }, 'aaaaaaaa-0000-4000-8000-000000000001');
    const rounds = LEFTOVERS_EVERY + 20;
    for (let round = 0; round < rounds; round++) {
      clock.advance(STEP_MS);
      await writer.store.append('a', ANY, eventsOf(ids, 2, 2_000));
      if (round === LEFTOVERS_EVERY - 4)
        await objects.put('files/00000000-0000-4000-8000-000000000002', Uint8Array.of(2));
      await compactionTick(worldOf(objects, clock, 100 + round));
      if (round % 3 === 0) await expectReadable(objects);
    }
    const kept = REMOVE_AFTER_MS / STEP_MS;
    expect(await keysUnder(objects, 'manifest/')).toHaveLength(kept + 2);
    expect((await keysUnder(objects, 'log/')).length).toBeLessThanOrEqual(kept + 2);
    const manifest = await manifestOf(objects);
    const files = await keysUnder(objects, 'files/');
    expect(files).not.toContain('files/00000000-0000-4000-8000-000000000001');
    // It is too young: a tick that is still at work may have written it.
    expect(files).toContain('files/00000000-0000-4000-8000-000000000002');
    expect(files.length).toBeLessThanOrEqual(keysOf(manifest).size + manifest.dropped.length + 1);
    expect(await keysUnder(objects, 'control/')).toEqual([]);
    const events = await readWholeStream(writer.store, 'a', 'forward', 50);
    expect('error' in events ? events : events.length).toBe(rounds * 2);
    await writer.close();
  });

  test('a tick that stood still for longer than the removal age puts nothing in force and removes nothing', async () => {
    const clock = new AutoClock();
    const objects = new MemoryObjects({ clock });
    await compactionTick(worldOf(objects, clock, 1));
    const writer = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
    const ids = new SeededIds(3);
    await writer.store.append('a', ANY, eventsOf(ids, 2, 2_000));
    // It stands still where its manifest is written: by then others have gone on, and swept its number away.
    const slow = held(objects, 'create', async () => {
      for (let round = 0; round < 40; round++) {
        clock.advance(STEP_MS);
        await writer.store.append('a', ANY, eventsOf(ids, 1, 2_000));
        await compactionTick(worldOf(objects, clock, 100 + round));
      }
    });
    const before = (await manifestOf(objects)).number;
    expect(await compactionTick(worldOf(slow, clock, 50))).toMatchObject({
      outcome: 'published',
      manifest: before + 1,
      removed: 0,
    });
    expect((await manifestOf(objects)).number).toBe(before + 40);
    await expectReadable(objects);
    clock.advance(STEP_MS);
    await writer.store.append('a', ANY, eventsOf(ids, 1, 2_000));
    await compactionTick(worldOf(objects, clock, 200));
    await expectReadable(objects);
    const events = await readWholeStream(writer.store, 'a', 'forward', 50);
    expect('error' in events ? events : events.length).toBe(43);
    await writer.close();
  });
});
