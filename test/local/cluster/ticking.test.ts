import { afterEach, expect, test } from 'vitest';
import { newestManifest } from '../../../core/shared-log/format/manifest.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { ANY } from '../../../core/streams/api.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { runMemberTicks } from '../../../local/cluster/ticking.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { Cluster, event } from '../../cluster/replica/kit.ts';

/** Who ticks in a cluster, and that a tick needs no store of its own. */

async function newScratch() {
  const storage = new MemoryStorage();
  return { storage, states: MemoryScavengeStates.of(storage), remove: async () => {} };
}

const stop: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of stop.splice(0)) await end();
});

async function world(isLeader: boolean) {
  const kit = new Cluster();
  const member = await kit.open();
  const membership = { isLeader };
  const stopping = new AbortController();
  const running = runMemberTicks(
    {
      world: {
        objects: kit.objects,
        clock: kit.clock,
        ids: new SeededIds(99),
        digests: nodeDigests,
        log: silentLog,
        meter: silentMeter,
      },
      membership,
      log: member.log,
      store: member.store,
      writes: member.store,
      scavenge: {},
      newTemporaryStorage: newScratch,
    },
    stopping.signal,
  );
  stop.push(async () => {
    stopping.abort();
    await running;
    await member.close();
  });
  for (let i = 0; i < 70; i++) await member.store.append('s', ANY, [event('t', JSON.stringify({ i }))]);
  const manifest = () => newestManifest(kit.objects, nodeDigests);
  /** Time goes on in small steps, in which work goes on, until it is so. */
  const until = async (isSo: () => Promise<boolean>) => {
    for (let i = 0; i < 400 && !(await isSo()); i++) for (let step = 0; step < 100; step++) await kit.clock.advance(20);
    expect(await isSo()).toBe(true);
  };
  return { kit, member, membership, manifest, until };
}

test('the leader ticks; the shared files follow the points of the members, and their history is written to the log', async () => {
  const { member, manifest, until } = await world(true);
  await until(async () => (await manifest())!.boundary > 70);
  await member.store.append('$$s', ANY, [event('$metadata', '{"$maxCount":2}')]);
  await member.scavenger.start();
  await member.scavenger.idle();
  await until(async () => (await manifest())!.points?.reached === 0);
  const { scavenge } = (await manifest())!;
  expect(scavenge).toMatchObject({ result: 'Success', syncOnly: true });
  await until(
    async () =>
      (await member.store.readStream('$scavenges', { direction: 'backward', from: 'end', count: 10 })).events.length >=
      4,
  );
});

test('another member leaves it to the leader, until nobody has ticked for half an hour', async () => {
  const { kit, manifest, until } = await world(false);
  await kit.clock.advance(1_500_000);
  expect(await manifest()).toMatchObject({ number: 1, cluster: true });
  await until(async () => (await manifest())!.boundary > 70);
  expect(kit.clock.monotonicMs()).toBeGreaterThanOrEqual(1_800_000);
});
