import { describe, expect, test } from 'vitest';
import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { ScavengeOrders } from '../../core/auto-scavenge/orders.ts';
import { createSingleNode } from '../../core/auto-scavenge/single-node.ts';
import { CONFIGURATION_STREAM, CYCLES_STREAM } from '../../core/auto-scavenge/streams.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import type { Scavenger } from '../../core/scavenge/api.ts';
import type { OpenStore } from '../../core/store/open-store.ts';
import { ANY } from '../../core/streams/api.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { createSchedule } from '../../infra/schedule.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { HOUR, LOST_MS, MINUTE, T0 } from './kit.ts';

/** One node over its own store and scavenger, as `local` puts it together. */

function autoScavenge(store: EventStore, scavenger: Scavenger, clock: ManualClock, address = 'node'): AutoScavenge {
  const orders = new ScavengeOrders({ scavenger, store, clock, log: silentLog, leadsOthers: () => false, leaseMs: null });
  const nodes = createSingleNode({ orders, clock, self: () => ({ address, port: 2113 }), isLeader: () => true, leadsSinceMs: clock.nowMs(), writerCheckpoint: () => store.end });
  return createAutoScavenge({ store, nodes, schedule: createSchedule(), clock, ids: new SeededIds(3), log: silentLog, meter: silentMeter, orders }, { isOff: null, zone: 'UTC', nodeLostAfterMs: LOST_MS });
}

const tick = (driver: AutoScavenge, clock: ManualClock) => driver.tick(clock.monotonicMs() + 5_000);

async function typesOf(store: EventStore, stream: string): Promise<string[]> {
  return (await store.readStream(stream, { direction: 'forward', from: 0, count: 100 })).events.map((event) => event.type);
}

interface World { storage: MemoryStorage; clock: ManualClock; open: OpenStore; driver: AutoScavenge }

async function world(): Promise<World> {
  const storage = new MemoryStorage();
  const clock = new ManualClock(T0, 'microtask');
  const open = await openTestStore({ storage, clock });
  return { storage, clock, open, driver: autoScavenge(open.store, open.scavenger, clock) };
}

describe('a single node over the real store and scavenger', () => {
  test('configures, scavenges itself, and shows what came of it', async () => {
    const { clock, open, driver } = await world();
    await driver.configure('0 * * * *');
    await clock.advance(HOUR);
    await tick(driver, clock);
    expect((await driver.status()).cycle?.nodes).toEqual([{ node: 'node:2113', state: 'running', scavengeId: expect.any(String), result: null }]);
    await open.scavenger.idle();
    await tick(driver, clock);
    const { state, cycle, lastCycle, untilNextCycleMs } = await driver.status();
    expect([state, cycle, untilNextCycleMs]).toEqual(['Waiting', null, HOUR]);
    expect(lastCycle?.nodes).toEqual([{ node: 'node:2113', state: 'completed', scavengeId: open.scavenger.last()!.scavengeId, result: 'Success' }]);
    expect(await typesOf(open.store, CONFIGURATION_STREAM)).toEqual(['$configuration-updated']);
    expect(await typesOf(open.store, CYCLES_STREAM)).toEqual(['$cluster-scavenge-started', '$node-designated', '$node-scavenge-started', '$node-scavenge-completed', '$cluster-scavenge-completed']);
    expect((await open.store.streamInfo(CYCLES_STREAM)).metadataVersion).toBe(-1);
    await open.close();
  });

  test('tells when any expression comes round, in any zone, and saves nothing', async () => {
    const { open, driver } = await world();
    const { schedule, zone, timesMs } = driver.times(' 30  2 * * sun ', 3);
    expect([schedule, zone, timesMs.length]).toEqual(['30 2 * * sun', 'UTC', 3]);
    for (const [i, ms] of timesMs.entries()) {
      const time = new Date(ms).toISOString();
      expect([time.slice(11), new Date(ms).getUTCDay(), i === 0 || ms - timesMs[i - 1]! === 7 * 24 * HOUR]).toEqual(['02:30:00.000Z', 0, true]);
    }
    expect(driver.times('30 2 * * *', 1, 'Asia/Kolkata').timesMs.map((ms) => new Date(ms).toISOString().slice(11, 16))).toEqual(['21:00']);
    expect(() => driver.times('0 0 30 2 *', 5)).toThrow('Invalid CRON expression');
    expect(() => driver.times('* * * *', 5)).toThrow('Invalid CRON expression');
    expect((await driver.status()).schedule).toBeNull();
    await open.close();
  });

  test('waits for a backup that reads its files, as for any other work', async () => {
    const { clock, open, driver } = await world();
    await driver.configure('0 * * * *');
    const hold = await open.hold();
    await clock.advance(HOUR);
    for (let ticks = 0; ticks < 30; ticks++) {
      await tick(driver, clock);
      await clock.advance(MINUTE);
    }
    expect((await driver.status()).cycle?.nodes).toEqual([{ node: 'node:2113', state: 'waiting', scavengeId: null, result: null }]);
    await hold.release();
    await tick(driver, clock);
    await open.scavenger.idle();
    await tick(driver, clock);
    expect((await driver.status()).lastCycle?.nodes).toMatchObject([{ state: 'completed', result: 'Success' }]);
    await open.close();
  });

  test('goes on after a restart, with what it had reached', async () => {
    const { storage, clock, open, driver } = await world();
    await driver.configure('0 * * * *');
    await clock.advance(HOUR);
    await tick(driver, clock);
    const before = await driver.status();
    await open.close();

    const again = await openTestStore({ storage, clock, seed: 2 });
    const successor = autoScavenge(again.store, again.scavenger, clock);
    expect((await successor.status()).cycle?.clusterScavengeId).toBe(before.cycle!.clusterScavengeId);
    for (let i = 0; i < 3; i++) {
      await tick(successor, clock);
      await again.scavenger.idle();
    }
    const after = await successor.status();
    expect([after.state, after.lastCycle?.clusterScavengeId, after.lastCycle?.nodes[0]?.result]).toEqual(['Waiting', before.cycle!.clusterScavengeId, 'Success']);
    await again.close();

    // What was stored says the same as what was remembered.
    const third = await openTestStore({ storage, clock, seed: 3 });
    expect(await autoScavenge(third.store, third.scavenger, clock).status()).toEqual(after);
    await third.close();
  });

  test('both streams may be deleted by an administrator', async () => {
    const { clock, open, driver } = await world();
    await driver.configure('0 * * * *');
    await driver.pause();
    await open.store.deleteStream(CYCLES_STREAM, ANY, 'soft');
    await open.store.deleteStream(CONFIGURATION_STREAM, ANY, 'soft');
    expect(await driver.status()).toMatchObject({ state: 'NotConfigured', schedule: null });
    await driver.configure('*/5 * * * *');
    await driver.pause();
    await driver.resume();
    await clock.advance(5 * MINUTE);
    await tick(driver, clock);
    expect((await driver.status()).state).toBe('InProgress');
    await open.scavenger.idle();
    await open.close();
  });
});

describe('a single node whose scavenger does as it is told', () => {
  async function running(stopsAtOnce: boolean) {
    const { clock, open } = await world();
    const scavenger = new FakeScavenger();
    scavenger.stopsAtOnce = stopsAtOnce;
    const driver = autoScavenge(open.store, scavenger, clock);
    await driver.configure('0 * * * *');
    await clock.advance(HOUR);
    await tick(driver, clock);
    return { clock, open, scavenger, driver };
  }

  test('pause: 200 when it stops within a second', async () => {
    const { open, driver, scavenger } = await running(true);
    expect(await driver.pause()).toBe('paused');
    expect(scavenger.last()?.result).toBe('Stopped');
    await driver.resume();
    expect((await driver.status()).state).toBe('InProgress');
    await open.close();
  });

  test('pause: 202 when it takes longer, then Paused', async () => {
    const { clock, open, driver, scavenger } = await running(false);
    let answer: string | null = null;
    void driver.pause().then((text) => { answer = text; });
    await clock.advance(999);
    expect(answer).toBe(null);
    await clock.advance(1);
    expect(answer).toBe('pausing');
    expect((await driver.status()).state).toBe('Pausing');
    scavenger.end('Stopped');
    await tick(driver, clock);
    expect((await driver.status()).state).toBe('Paused');
    await open.close();
  });

  test('a tick returns before its deadline, and commands do not wait for more than a call', async () => {
    const { clock, open, driver } = await running(false);
    const paused = driver.pause();
    await clock.advance(1_000);
    expect(await paused).toBe('pausing');
    const ticked = driver.tick(clock.monotonicMs() + 200);
    const status = driver.status();
    await clock.advance(200);
    await ticked;
    expect((await status).state).toBe('Pausing');
    await open.close();
  });
});
