import { describe, expect, test } from 'vitest';
import { DryRuns } from '../../core/shared-log/dry-runs/dry-runs.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import type { TemporaryStorage } from '../../core/shared-log/overlay/overlay.ts';
import { scavengeStatus, startScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { listAll } from '../../core/ports/object-store.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import type { DryRunReport } from '../../core/scavenge/api.ts';
import { ANY } from '../../core/streams/api.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { OPTIONS } from './scavenge-kit.ts';
import { compactionTick, eventsOf, exportDirectory, runTick, setMetadata, worldOf } from './tick-kit.ts';

/** TemporaryStorage in memory, and how much of it is in use. */
function scratches() {
  let open = 0;
  const newScratch = async (): Promise<TemporaryStorage> => {
    open++;
    return {
      storage: new MemoryStorage(),
      states: new MemoryScavengeStates(),
      remove: async () => {
        open--;
      },
    };
  };
  return { newScratch, open: () => open };
}

/** Events in files, in the chunk that is being filled, and in the tail. */
async function filled() {
  const clock = new AutoClock();
  const objects = new MemoryObjects({ clock });
  await compactionTick(worldOf(objects, clock, 1));
  const instance = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
  const ids = new SeededIds(3);
  await setMetadata(instance.store, ids, 'short', { $maxCount: 3 });
  const fill = async (rounds: number) => {
    for (let i = 0; i < rounds; i++) {
      await instance.store.append('short', ANY, eventsOf(ids, 2, 2_000));
      await instance.store.append('long', ANY, eventsOf(ids, 1, 2_000));
    }
  };
  await fill(30);
  await compactionTick(worldOf(objects, clock, 4));
  await fill(20);
  await instance.store.append('gone', ANY, eventsOf(ids, 3, 100));
  await instance.store.deleteStream('gone', ANY, 'hard');
  const { newScratch, open } = scratches();
  const foresightOn = (over: ObjectStore) =>
    new DryRuns({
      world: worldOf(over, clock, 5),
      options: OPTIONS,
      config: {},
      instance,
      newTemporaryStorage: newScratch,
    });
  return { clock, objects, instance, ids, foresightOn, open };
}

async function keysIn(objects: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(objects, '')) keys.push(key);
  return keys;
}

async function report(foresight: DryRuns, scavengeId: string): Promise<DryRunReport> {
  for (let looks = 0; looks < 10_000; looks++) {
    const found = foresight.dryRun(scavengeId);
    if (found !== null) return found;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  throw new Error('the dry run does not end');
}

describe('what a scavenge on object storage would do', () => {
  test('is told for a stream, its latest events included, and nothing is published', async () => {
    const { objects, instance, foresightOn, open } = await filled();
    const foresight = foresightOn(objects);
    const before = await keysIn(objects);
    const short = await foresight.explain('short');
    expect(short).toMatchObject({ stream: 'short', lastEventNumber: 99, rules: [{ rule: '$maxCount', value: 3 }] });
    expect(short.removed).toMatchObject([{ from: 0, to: 96, count: 97, rule: '$maxCount' }]);
    expect(short.kept.at(-1)).toMatchObject({ to: 99 });
    expect((await foresight.explain('long')).removed).toEqual([]);
    expect((await foresight.explain('gone')).removed).toMatchObject([{ from: 0, to: 2, count: 3, rule: 'tombstone' }]);
    await expect(foresight.explain('none')).rejects.toMatchObject({ code: 'stream_not_found' });
    expect(await keysIn(objects)).toEqual(before);
    expect(open()).toBe(0);
    await foresight.close();
    await instance.close();
  });

  test('is counted chunk by chunk, and is what a scavenge then does', async () => {
    const { objects, clock, instance, foresightOn, open } = await filled();
    const foresight = foresightOn(objects);
    const before = await keysIn(objects);
    const { scavengeId } = foresight.startDryRun();
    expect(foresight.current()).toBe(scavengeId);
    expect(foresight.progress()).toMatchObject({ scavengeId });
    expect(() => foresight.startDryRun()).toThrowError(expect.objectContaining({ code: 'scavenge_in_progress' }));
    const told = await report(foresight, scavengeId);
    expect(foresight.current()).toBe(null);
    expect(await keysIn(objects)).toEqual(before);
    expect(open()).toBe(0);
    expect(told.chunks.map(({ start }) => start)).toEqual([0, 1, 2, 3, 4]);
    const records = (await readRawLog(await exportDirectory(objects))).filter(
      ({ position }) => position < told.point.position,
    );
    expect(told.totals.records).toBe(records.length);
    await startScavenge(worldOf(objects, clock, 6));
    expect(await runTick(worldOf(objects, clock, 7))).toMatchObject({ scavenge: { result: 'Success' } });
    const left = (await readRawLog(await exportDirectory(objects))).filter(
      ({ position }) => position < told.point.position,
    );
    expect(told.totals.discardable).toBe(records.length - left.length);
    expect(told.totals.discardable).toBeGreaterThan(90);
    await foresight.close();
    await instance.close();
  });

  test('is ended with the process, which leaves nothing behind', async () => {
    const { objects, instance, foresightOn, open } = await filled();
    const foresight = foresightOn(objects);
    const { scavengeId } = foresight.startDryRun();
    await foresight.close();
    expect(() => foresight.dryRun(scavengeId)).toThrowError(expect.objectContaining({ code: 'aborted' }));
    expect(() => foresight.dryRun('another')).toThrowError(expect.objectContaining({ code: 'scavenge_not_found' }));
    expect(() => foresight.startDryRun()).toThrowError(expect.objectContaining({ code: 'store_closed' }));
    expect(open()).toBe(0);
    await instance.close();
  });

  test('begins anew where a tick takes the tail in meanwhile', async () => {
    const { objects, clock, instance, foresightOn } = await filled();
    const hasty = worldOf(objects, clock, 8);
    // Between the manifest and the tail behind it a tick comes, and its sweep takes the commits away.
    const over = new Proxy(objects, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== 'list' || typeof value !== 'function')
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        return async (prefix: string, options: object): Promise<unknown> => {
          if (prefix === 'log/' && !isDone) {
            isDone = true;
            await compactionTick(hasty);
            await target.remove((await keysIn(target)).filter((key) => key.startsWith('log/')));
          }
          return target.list(prefix, options);
        };
      },
    });
    let isDone = false;
    const foresight = foresightOn(over);
    expect(await foresight.explain('short')).toMatchObject({ lastEventNumber: 99, removed: [{ from: 0, to: 96 }] });
    await foresight.close();
    await instance.close();
  });
});

test('how far a scavenge has come is told between its parts, and no more when it has ended', async () => {
  const { objects, clock, instance } = await filled();
  await startScavenge(worldOf(objects, clock, 6));
  const phases: string[] = [];
  for (let i = 0; ; i++) {
    const { scavenge } = await runTick(worldOf(objects, clock, 7 + i), { settings: { ownBytesMax: 1 } });
    const { state, progress } = (await scavengeStatus(worldOf(objects, clock, 50 + i)))!;
    if (scavenge!.state === 'ended') {
      expect({ state, progress }).toEqual({ state: 'ended', progress: null });
      break;
    }
    phases.push(progress!.phase);
    expect(progress!.chunksDone).toBeLessThanOrEqual(progress!.chunksTotal);
    expect(i).toBeLessThan(40);
  }
  expect(phases.length).toBeGreaterThan(3);
  expect(phases).toContain('Chunk execution');
  await instance.close();
});
