import { expect, test } from 'vitest';
import { cluster, Net, otherThan } from './kit.ts';

test('three members that start at the same time have a leader within a second, and one epoch', async () => {
  const net = new Net();
  for (const port of [1, 2, 3]) net.add({ port });
  expect(await net.untilLeader(1_000)).toBeLessThan(1_000);
  await net.clock.advance(60_000);
  expect(net.epochs()).toEqual([0]);
  expect(net.alive.map(({ membership }) => membership.state).sort()).toEqual(['Follower', 'Follower', 'Leader']);
});

test('a killed leader is followed by another in well under a second, and when it comes back it follows', async () => {
  const net = new Net();
  const processes = await cluster(net, 3);
  await net.clock.advance(10_000);
  const old = net.leaderOf()!;
  net.kill(old);
  expect(await net.untilLeader(500, otherThan(processes, old))).toBeLessThan(300);
  expect(net.epochs()).toEqual([0, 1]);
  net.add({ port: old.node.port });
  await net.clock.advance(1_000);
  await net.untilLeader(1_000);
  await net.clock.advance(30_000);
  expect(net.epochs()).toEqual([0, 1]);
});

test('a cluster of one leads at once', async () => {
  const net = new Net();
  const process = net.add({ port: 1, clusterSize: 1 });
  expect(await net.untilLeader(200)).toBeLessThan(100);
  expect(process.membership.isLeader).toBe(true);
  expect(process.membership.leadsSinceMs).toBeGreaterThan(0);
});
