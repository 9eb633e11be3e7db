import { expect, test } from 'vitest';
import { openObjectStore } from '../../../core/object-log/instance/instance.ts';
import { createDrive } from '../../../core/object-log/tick/drive.ts';
import { MemoryObjects } from '../../../core/ports/memory-objects.ts';
import { createSchedule } from '../../../infra/schedule.ts';
import { SELF } from '../../../local/on-objects/scavengers.ts';
import { Ticker } from '../../../local/on-objects/ticker.ts';
import { AutoClock } from '../../object-log/auto-clock.ts';
import { worldOf } from '../../object-log/tick-kit.ts';

const TICKS = 6;

test('ticks that find the schedule as it was say nothing of it', async () => {
  const clock = new AutoClock();
  const lines: string[] = [];
  const write = (text: string): void => { lines.push(text); };
  const world = { ...worldOf(new MemoryObjects({ clock }), clock, 1), log: { debug: write, info: write, warn: write, error: write } };
  const ending = new AbortController();
  let ticks = 0;
  const onTick = async (): Promise<void> => { if (++ticks === TICKS) ending.abort(); };
  const instance = await openObjectStore(world);
  const autoScavenge = createDrive({ world, schedule: createSchedule(), self: SELF, config: { isOff: null, zone: 'UTC', nodeLostAfterMs: 1_000 }, open: () => Promise.resolve(instance) });
  const ticker = new Ticker({ world, options: {}, settings: {}, onTick, autoScavenge });
  await ticker.run(ending.signal);
  await instance.close();
  expect(ticks).toBe(TICKS);
  expect(lines.filter((line) => line.includes('the state was loaded'))).toHaveLength(1);
});
