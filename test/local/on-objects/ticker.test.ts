import { expect, test } from 'vitest';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { createScheduler } from '../../../core/shared-log/scheduler/scheduler.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { createSchedule } from '../../../infra/cron-schedule.ts';
import { SELF } from '../../../infra/runtime/scavengers.ts';
import { Ticker } from '../../../local/on-objects/ticker.ts';
import { AutoClock } from '../../shared-log/auto-clock.ts';
import { worldOf } from '../../shared-log/tick-kit.ts';

const TICKS = 6;

test('ticks that find the schedule as it was say nothing of it', async () => {
  const clock = new AutoClock(Number.MAX_SAFE_INTEGER);
  const lines: string[] = [];
  const write = (text: string): void => {
    lines.push(text);
  };
  const world = {
    ...worldOf(new MemoryObjects({ clock }), clock, 1),
    log: { debug: write, info: write, warn: write, error: write },
  };
  const ending = new AbortController();
  let ticks = 0;
  const onTick = async (): Promise<void> => {
    if (++ticks === TICKS) ending.abort();
  };
  const instance = await openObjectStore(world);
  const autoScavenge = createScheduler({
    world,
    schedule: createSchedule(),
    self: SELF,
    config: { isOff: null, zone: 'UTC', nodeLostAfterMs: 1_000 },
    open: () => Promise.resolve(instance),
  });
  const ticker = new Ticker({ world, options: {}, settings: {}, onTick, autoScavenge });
  await ticker.run(ending.signal);
  await instance.close();
  expect(ticks).toBe(TICKS);
  expect(lines.filter((line) => line.includes('the state was loaded'))).toHaveLength(1);
});

test('a tick that is under way at the end is not waited for, and its folder is removed', async () => {
  const clock = new AutoClock(Number.MAX_SAFE_INTEGER);
  const objects = new MemoryObjects({ clock });
  const asked = Promise.withResolvers<void>();
  const world = {
    ...worldOf(objects, clock, 1),
    objects: Object.assign(Object.create(objects) as typeof objects, {
      list: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    }),
  };
  const ending = new AbortController();
  let removals = 0;
  const storage = new MemoryStorage();
  const newScratch = async () => ({
    storage,
    states: MemoryScavengeStates.of(storage),
    remove: async () => {
      removals++;
    },
  });
  const running = new Ticker({ world, options: {}, settings: {}, newTemporaryStorage: newScratch }).run(ending.signal);
  await asked.promise;
  ending.abort();
  await running;
  expect(removals).toBe(1);
});
