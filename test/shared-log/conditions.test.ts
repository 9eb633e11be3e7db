import { expect, test } from 'vitest';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { ANY } from '../../core/streams/api.ts';
import { newEvent } from '../attributes/world.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';
import { simulateObjectConditions } from './conditions-run.ts';
import { worldOf } from './tick-kit.ts';
import { JumpingClock, SMALL } from './setup.ts';

test('conditions are never wrong, whichever writer decides them', { timeout: 240_000 }, async () => {
  const sums: Record<string, number> = {};
  for (const seed of seedsFrom(1, bySize(20, 200))) {
    const { problems, counts } = await simulateObjectConditions(seed);
    expect(problems, `seed ${seed}`).toEqual([]);
    for (const [what, times] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + times;
  }
  for (const what of ['written', 'refused', 'repeats']) expect(sums[what], what).toBeGreaterThan(0);
});

test('a warm append on a condition costs one create, and no read', async () => {
  const clock = new JumpingClock();
  const counting = new CountingObjects(new MemoryObjects({ clock }));
  const instance = await openObjectStore(worldOf(counting, clock, 1), SMALL);
  const { store } = instance;
  const condition = { failIfEventsMatch: { items: [{ types: ['never'] }] } };
  const append = (): Promise<unknown> =>
    store.appendToStreams([{ stream: 's', expectedVersion: ANY, events: [newEvent('made')] }], { condition });
  await append();
  const before = counting.counts();
  await append();
  const now = counting.counts();
  expect(now.puts - before.puts).toBe(1);
  expect(now.gets - before.gets).toBeLessThanOrEqual(2);
  await instance.close();
});
