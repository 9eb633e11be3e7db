import { expect, test } from 'vitest';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { keysOf } from '../../core/shared-log/format/manifest.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { STATE_PATH } from '../../core/shared-log/tick/scavenge-slice.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { readWholeStream } from '../support/oracle.ts';
import { AutoClock } from './auto-clock.ts';
import { expectScavenged, held, OPTIONS, scavengeable } from './scavenge-kit.ts';
import { manifestOf, runTick, worldOf } from './tick-kit.ts';

const DELAY_MS_MAX = 400;
/** Requests in a row by which a tick publishes what it did. */
const PUBLISHING = 7;
/** Of which a quarter is kept for publishing, whatever the order of requests gets of the delays. */
const DEADLINE_MS = 4 * PUBLISHING * DELAY_MS_MAX;

test('a tick ends before its deadline, however slow the store is, and each comes further', async () => {
  const seeds = [4, 5, 6, 7, 8];
  let ticks = 0;
  for (const seed of seeds) ticks += await ticksUntilScavenged(seed);
  // The order in which files are read decides whether one is enough.
  expect(ticks).toBeGreaterThan(seeds.length);
});

async function ticksUntilScavenged(seed: number): Promise<number> {
  const clock = new AutoClock();
  const { base: objects, scavengeId, universe } = await scavengeable(clock, false, 18);
  const slow = new FaultyObjects(objects, { seed, clock, chances: { delay: 1 }, delayMsMax: DELAY_MS_MAX });
  let ticks = 0;
  for (let isRunning = true; isRunning; ticks++) {
    const deadlineMs = clock.monotonicMs() + DEADLINE_MS;
    const report = await runTick(worldOf(slow, clock, 50 + ticks), { deadlineMs });
    expect(clock.monotonicMs()).toBeLessThanOrEqual(deadlineMs);
    expect(report.outcome).toBe('published');
    isRunning = report.scavenge?.state !== 'ended';
    expect(ticks).toBeLessThan(20);
  }
  await expectScavenged(objects, clock, scavengeId, universe, 900);
  return ticks;
}

test('a scavenge database that is too large ends the run with an error that says so, and the next one begins without it', async () => {
  const clock = new AutoClock();
  const { base: objects, scavengeId, universe } = await scavengeable(clock);
  const ended = await runTick(worldOf(objects, clock, 5), { settings: { stateBytesMax: 1 } });
  expect(ended.scavenge).toMatchObject({ scavengeId, state: 'ended', result: 'Errored' });
  expect(ended.scavenge!.error).toContain('the limit on object storage is 1');
  expect((await manifestOf(objects)).files.some(({ name }) => name === STATE_PATH)).toBe(false);
  const reader = await openObjectStore(worldOf(objects, clock, 6), OPTIONS);
  const history = await readWholeStream(reader.store, `$scavenges-${scavengeId}`, 'forward', 100);
  expect('error' in history ? history : history.at(-1)!.type).toBe('$scavengeCompleted');
  await reader.close();
  const next = await startScavenge(worldOf(objects, clock, 7));
  await expectScavenged(objects, clock, next.scavengeId, universe, 800);
});

test('a tick that is overtaken while it works ends early and leaves nothing', async () => {
  const clock = new AutoClock();
  const { base: objects, scavengeId, universe } = await scavengeable(clock);
  const before = (await manifestOf(objects)).number;
  // The first thing that it looks for is the note to stop, before the run begins.
  const overtaken = held(objects, 'head', () => runTick(worldOf(objects, clock, 5)));
  expect(await runTick(worldOf(overtaken, clock, 6))).toMatchObject({ outcome: 'superseded' });
  const manifest = await manifestOf(objects);
  const { number, scavenge } = manifest;
  expect(number).toBe(before + 1);
  expect(scavenge).toMatchObject({ scavengeId, state: 'ended', result: 'Success' });
  expect((await objects.list('files/')).objects.map(({ key }) => key)).toEqual([...keysOf(manifest)].sort());
  await expectScavenged(objects, clock, scavengeId, universe, 700);
});
