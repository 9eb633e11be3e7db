import { expect, test } from 'vitest';
import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { createObjectNodes, scavengeStatus } from '../../core/shared-log/control/control.ts';
import { createScheduler } from '../../core/shared-log/scheduler/scheduler.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { createSchedule } from '../../infra/cron-schedule.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { OPTIONS } from './scavenge-kit.ts';
import { compactionTick, eventsOf, runTick, setMetadata, worldOf } from './tick-kit.ts';

const SELF = { address: 'functions', port: 443 };
const CONFIG = { isOff: null, zone: 'UTC', nodeLostAfterMs: 1_800_000 };

async function opened() {
  const clock = new AutoClock();
  const objects = new MemoryObjects({ clock });
  await compactionTick(worldOf(objects, clock, 1));
  const world = worldOf(objects, clock, 2);
  const admin = await openObjectStore(world, OPTIONS);
  const schedule = createSchedule();
  const nodes = createObjectNodes({ world, store: admin.store, self: SELF });
  const auto = createAutoScavenge({ ...world, store: admin.store, nodes, schedule }, CONFIG);
  const ids = new SeededIds(3);
  await setMetadata(admin.store, ids, 'short', { $maxCount: 2 });
  for (let i = 0; i < 40; i++) await admin.store.append('short', ANY, eventsOf(ids, 2, 2_000));
  // Each in a process of its own.
  const tick = async (seed: number, ownBytesMax = 1_000_000_000) => {
    const own = worldOf(objects, clock, seed);
    const instance = await openObjectStore(worldOf(objects, clock, 1_000 + seed), OPTIONS);
    const autoScavenge = createScheduler({
      world: own,
      schedule,
      config: CONFIG,
      self: SELF,
      open: () => Promise.resolve(instance),
    });
    return runTick(own, { autoScavenge, settings: { ownBytesMax } }).finally(() => instance.close());
  };
  return { clock, world, admin, auto, tick };
}

test('a schedule begins a scavenge, ticks carry it on, and the cycle ends with it', async () => {
  const { clock, world, admin, auto, tick } = await opened();
  await auto.configure('0 * * * *');
  await tick(10);
  expect(await scavengeStatus(world)).toBe(null);
  clock.advance(3_600_000);
  const first = await tick(11, 1);
  expect(first.scavenge).toMatchObject({ state: 'running' });
  const { scavengeId } = first.scavenge!;
  expect(await auto.status()).toMatchObject({
    state: 'InProgress',
    cycle: { nodes: [{ node: 'functions:443', state: 'running', scavengeId }] },
  });
  for (let i = 0; (await scavengeStatus(world))!.state !== 'ended'; i++) await tick(20 + i);
  await tick(90);
  expect(await auto.status()).toMatchObject({
    state: 'Waiting',
    cycle: null,
    lastCycle: { nodes: [{ scavengeId, result: 'Success' }] },
  });
  await admin.close();
});

test('a pause ends the run that the cycle has begun; two ticks at once start one run', async () => {
  const { clock, world, admin, auto, tick } = await opened();
  await auto.configure('0 * * * *');
  clock.advance(3_600_000);
  await Promise.all([tick(10, 1), tick(11, 1)]);
  const { scavengeId } = (await scavengeStatus(world))!;
  expect(await auto.pause()).toBe('pausing');
  const stopped = await tick(12);
  expect(stopped.scavenge).toMatchObject({ scavengeId, state: 'ended', result: 'Stopped' });
  await tick(13);
  expect(await auto.status()).toMatchObject({ state: 'Paused' });
  await auto.resume();
  await tick(14);
  const again = await tick(15);
  expect(again.scavenge).toMatchObject({ state: 'ended', result: 'Success' });
  expect(again.scavenge!.scavengeId).not.toBe(scavengeId);
  await admin.close();
});
