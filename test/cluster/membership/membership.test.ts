import { describe, expect, test } from 'vitest';
import { isSkuaError, type SkuaError } from '../../../core/base/errors.ts';
import { cluster, Net, otherThan, type Process } from './kit.ts';

const QUIET_MS = 30_000;

/** Three members that have had a leader for a while. */
async function settled(seed?: number) {
  const net = new Net(seed);
  const processes = await cluster(net, 3);
  await net.clock.advance(5_000);
  return { net, processes, leader: net.leaderOf()! };
}

/** Lets time pass until it has come to an end. */
async function ended<T>(net: Net, promise: Promise<T>, withinMs = 20_000): Promise<T> {
  let result: { readonly value: T } | { readonly error: unknown } | null = null;
  promise.then(
    (value) => {
      result = { value };
    },
    (error: unknown) => {
      result = { error };
    },
  );
  for (let ms = 0; result === null && ms < withinMs; ms += 5) await net.clock.advance(5);
  if (result === null) expect.fail(`It has not ended within ${withinMs} ms.`);
  if ('error' in result) throw (result as { readonly error: unknown }).error;
  return (result as { readonly value: T }).value;
}

async function refused(net: Net, promise: Promise<unknown>): Promise<SkuaError> {
  const error: unknown = await ended(net, promise).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!isSkuaError(error)) expect.fail(`It was not refused: ${String(error)}`);
  return error;
}

function states(processes: readonly Process[]): string[] {
  return processes.map(({ membership }) => membership.state);
}

describe('an election', () => {
  test('three members that start at the same time have a leader within a second, and one epoch', async () => {
    const net = new Net();
    for (const port of [1, 2, 3]) net.add({ port });
    expect(await net.untilLeader(1_000)).toBeLessThan(1_000);
    await net.clock.advance(QUIET_MS);
    expect(net.epochs()).toEqual([0]);
    expect(states(net.alive).sort()).toEqual(['Follower', 'Follower', 'Leader']);
    const leader = net.leaderOf()!;
    expect(leader.membership.isLeader).toBe(true);
    expect(leader.membership.members().map(({ isAlive }) => isAlive)).toEqual([true, true, true]);
  });

  test('a cluster of one leads at once', async () => {
    const net = new Net();
    const process = net.add({ port: 1, clusterSize: 1 });
    expect(await net.untilLeader(200)).toBeLessThan(100);
    expect(process.membership.leadsSinceMs).toBeGreaterThan(0);
    expect(await ended(net, process.membership.resign())).toContain('is still the leader');
    expect(process.membership.isLeader).toBe(true);
  });

  test.each([1, 2, 3, 4, 5])(
    'a killed leader is followed in well under half a second, and does not lead when it comes back (%d)',
    async (seed) => {
      const net = new Net(seed);
      const processes = await cluster(net, 3);
      await net.clock.advance(10_000);
      const old = net.leaderOf()!;
      net.kill(old);
      expect(await net.untilLeader(500, otherThan(processes, old))).toBeLessThan(250);
      expect(net.epochs()).toEqual([0, 1]);
      net.add({ port: old.node.port });
      await net.clock.advance(3_000);
      expect(states(net.alive).sort()).toEqual(['Follower', 'Follower', 'Leader']);
      await net.clock.advance(QUIET_MS);
      expect(net.epochs()).toEqual([0, 1]);
    },
  );

  test('a leader that was restarted at once does not lead: its instance is gone', async () => {
    const net = new Net();
    await cluster(net, 3);
    await net.clock.advance(5_000);
    const old = net.leaderOf()!;
    net.kill(old);
    const again = net.add({ port: old.node.port });
    await net.clock.advance(50);
    expect(await net.untilLeader(1_500)).toBeLessThan(1_200);
    expect(again.membership.refusal).toBeNull();
    expect(net.epochs()).toEqual([0, 1]);
  });

  test('a leader that stands still is followed when it was silent for a second, and follows when it goes on', async () => {
    const { net, processes, leader: old } = await settled();
    old.pause();
    await net.clock.advance(450);
    expect(net.epochs()).toEqual([0]);
    await net.clock.advance(1_400);
    const next = net.leaderOf(otherThan(processes, old))!;
    expect(next).not.toBe(old);
    await net.clock.advance(60_000);
    old.resume();
    await net.clock.advance(1_500);
    expect(net.leaderOf()).toBe(next);
    expect(old.membership.leadsSinceMs).toBeNull();
    expect(net.epochs()).toEqual([0, 1]);
  });

  test('where all stood still at the same time, as a machine that slept, nobody is elected', async () => {
    const net = new Net();
    const processes = await cluster(net, 3);
    await net.clock.advance(5_000);
    for (const process of processes) process.pause();
    await net.clock.advance(60_000);
    for (const process of processes) process.resume();
    await net.clock.advance(QUIET_MS);
    expect(net.leaderOf()).not.toBeNull();
    expect(net.epochs()).toEqual([0]);
  });

  test('two members that are cut off from each other keep the leader that both hear; who does not hear it is no majority', async () => {
    const { net, processes, leader } = await settled();
    const [a, b] = otherThan(processes, leader) as [Process, Process];
    net.cut(a, b);
    await net.clock.advance(QUIET_MS);
    expect(net.leaderOf()).toBe(leader);
    net.heal();
    net.cut(a, leader);
    await net.clock.advance(QUIET_MS);
    expect(a.membership.leader()).toBeNull();
    expect(net.leaderOf([b, leader])).toBe(leader);
    // What only its own calls do not reach is no leader for it either, though it is spoken to.
    net.heal();
    net.cuts.add(`${a.node.port} ${leader.node.port}`);
    await net.clock.advance(QUIET_MS);
    expect(net.epochs()).toEqual([0]);
    net.heal();
    await net.clock.advance(5_000);
    expect(net.leaderOf()).toBe(leader);
  });

  test('a leader that has no commits at hand for its followers is heard all the same', async () => {
    const { net, processes, leader } = await settled();
    leader.copy.recent = () => null;
    for (let ms = 0; ms < QUIET_MS; ms += 100) {
      await net.clock.advance(100);
      expect(net.leaderOf()).toBe(leader);
    }
    expect(net.epochs()).toEqual([0]);
    expect(states(otherThan(processes, leader))).toEqual(['Follower', 'Follower']);
  });

  test('who hears of an epoch that its copy lacks asks the bucket at once', async () => {
    const { net, processes, leader } = await settled();
    const [other] = otherThan(processes, leader) as [Process];
    const { self } = other.membership;
    // Not while it asks for its own reasons.
    await net.clock.advance(300);
    const before = leader.copy.asked;
    void leader.membership.onGossip({
      logId: leader.copy.logId,
      sender: other.node,
      entries: [{ ...self, sentMs: self.sentMs + 1, epoch: { ...self.epoch!, number: 1 } }],
    });
    await net.clock.advance(1);
    expect(leader.copy.asked).toBe(before + 1);
  });

  test('connections to the leader that break elect nobody while it answers', async () => {
    const { net, processes, leader } = await settled();
    for (const { membership } of otherThan(processes, leader)) membership.lost(leader.instanceId);
    for (const { membership } of otherThan(processes, leader)) expect(membership.leader()).toBeNull();
    await net.clock.advance(100);
    expect(net.leaderOf()).toBe(leader);
    await net.clock.advance(QUIET_MS);
    expect(net.epochs()).toEqual([0]);
  });

  test('a leader whose bucket is silent for 5 s is not heard, and another one leads', async () => {
    const { net, processes, leader: old } = await settled();
    old.bucket.isCut = true;
    await net.clock.advance(4_000);
    expect(net.epochs()).toEqual([0]);
    await net.clock.advance(6_000);
    expect(net.leaderOf(otherThan(processes, old))).not.toBe(old);
    old.bucket.isCut = false;
    await net.clock.advance(5_000);
    expect(net.leaderOf()).not.toBeNull();
    expect(net.epochs()).toEqual([0, 1]);
  });

  test('without a majority nobody leads, and the bucket is asked once a second', async () => {
    const net = new Net();
    const processes = await cluster(net, 3);
    const leader = net.leaderOf()!;
    const [second, last] = otherThan(processes, leader) as [Process, Process];
    net.kill(second);
    net.kill(leader);
    await net.clock.advance(10_000);
    expect(last.membership.state).toBe('Unknown');
    expect(last.membership.leader()).toBeNull();
    expect(net.epochs()).toEqual([0]);
    const asked = last.copy.asked;
    await net.clock.advance(10_000);
    expect(last.copy.asked - asked).toBeGreaterThanOrEqual(9);
    expect(last.copy.asked - asked).toBeLessThanOrEqual(12);
  });

  test('the bucket that is silent for all elects nobody, and the leader goes on when it is back', async () => {
    const { net, processes, leader } = await settled();
    for (const { bucket } of processes) bucket.isCut = true;
    await net.clock.advance(20_000);
    expect(net.leaderOf()).toBeNull();
    expect(net.epochs()).toEqual([0]);
    for (const { bucket } of processes) bucket.isCut = false;
    await net.clock.advance(10_000);
    expect(net.leaderOf()).not.toBeNull();
    expect(net.epochs().length).toBeLessThanOrEqual(2);
    expect(leader.membership.refusal).toBeNull();
  });

  test('priority decides between members that are equally far, and is heard of by all', async () => {
    const { net, processes, leader: old } = await settled();
    const [low, high] = otherThan(processes, old) as [Process, Process];
    await high.membership.setPriority(7);
    await net.clock.advance(1_000);
    expect(low.membership.members().find(({ node }) => node.port === high.node.port)!.priority).toBe(7);
    net.kill(old);
    await net.untilLeader(500, [low, high]);
    expect(net.leaderOf([low, high])).toBe(high);
    await expect(high.membership.setPriority(1.5)).rejects.toMatchObject({ code: 'bad_option' });
  });

  test('a read-only replica hears the leader, never stands, and says when there is none', async () => {
    const net = new Net();
    const voting = [net.add({ port: 1, clusterSize: 2 }), net.add({ port: 2, clusterSize: 2 })];
    const replica = net.add({ port: 3, clusterSize: 2, isReadOnlyReplica: true });
    await net.untilLeader(2_000);
    await net.clock.advance(3_000);
    expect(replica.membership.state).toBe('ReadOnlyReplica');
    for (const process of voting) net.kill(process);
    await net.clock.advance(10_000);
    expect(replica.membership.state).toBe('ReadOnlyLeaderless');
    expect(net.epochs()).toEqual([0]);
    await expect(replica.membership.onLead({ logId: replica.copy.logId, epochNumber: 0 })).rejects.toMatchObject({
      code: 'not_ready',
    });
  });

  test('a leader whose copy takes no commits any more is followed by another', async () => {
    const { net, processes, leader: old } = await settled();
    old.copy.trouble = { code: 'disk_full', message: 'The disk is full.' } as SkuaError;
    await net.clock.advance(1_500);
    expect(old.membership.state).toBe('CatchingUp');
    expect(net.leaderOf(otherThan(processes, old))).not.toBe(old);
    expect(net.leaderOf(otherThan(processes, old))).not.toBeNull();
    old.copy.trouble = null;
    await net.clock.advance(QUIET_MS);
    expect(old.membership.state).toBe('Follower');
    expect(net.epochs()).toEqual([0, 1]);
  });
});

describe('giving the lead away', () => {
  test('another one leads at once, and who resigned stands only where nobody else does', async () => {
    const { net, processes, leader: old } = await settled();
    const resigning = old.membership.resign();
    expect(old.membership.state).toBe('ResigningLeader');
    expect(old.membership.isLeader).toBe(false);
    const waiting = old.membership.onCommits(
      { logId: old.copy.logId, from: 100, instanceId: '00000000-0000-4000-8000-000000000007', waitMs: 5_000 },
      new AbortController().signal,
    );
    expect(await ended(net, resigning, 500)).toContain('epoch 1');
    // Who waits for commits there is sent away at once.
    expect(await ended(net, waiting, 20)).toEqual({ kind: 'gone' });
    await net.clock.advance(100);
    const next = net.leaderOf()!;
    expect(next).not.toBe(old);
    const [third] = otherThan(otherThan(processes, old), next) as [Process];
    expect(await ended(net, third.membership.resign())).toContain(`member:${next.node.port} is`);
    third.copy.isCaughtUp = false;
    net.kill(next);
    await net.clock.advance(4_500);
    expect(net.epochs()).toEqual([0, 1]);
    await net.clock.advance(2_000);
    expect(net.leaderOf([old])).toBe(old);
  });

  test.each([1, 2, 3, 4, 5])(
    'under load its own commits give way to the epoch of the next one, for a moment (%d)',
    async (seed) => {
      const { net, processes, leader: old } = await settled(seed);
      let lastMs = net.clock.monotonicMs();
      let pauseMs = 0;
      const load = new AbortController();
      void (async () => {
        while (!load.signal.aborted) {
          await old.copy.commit('client');
          pauseMs = Math.max(pauseMs, net.clock.monotonicMs() - lastMs);
          lastMs = net.clock.monotonicMs();
        }
      })();
      await net.clock.advance(500);
      const sentMs = net.clock.monotonicMs();
      expect(await ended(net, old.membership.resign())).toContain('epoch 1');
      expect(net.clock.monotonicMs() - sentMs).toBeLessThan(120);
      await net.clock.advance(100);
      const next = net.leaderOf()!;
      // Where nobody takes it, the load is held up no longer than that.
      load.abort();
      await net.clock.advance(100);
      for (const { bucket } of otherThan(processes, next)) bucket.isCut = true;
      pauseMs = 0;
      lastMs = net.clock.monotonicMs();
      let commits = 0;
      const keeping = next.membership.resign();
      const appending = (async () => {
        for (; next.membership.state === 'ResigningLeader'; commits++) {
          await next.copy.commit('client');
          pauseMs = Math.max(pauseMs, net.clock.monotonicMs() - lastMs);
          lastMs = net.clock.monotonicMs();
        }
      })();
      expect(await ended(net, keeping)).toMatch(/is still the leader/);
      await ended(net, appending);
      expect(pauseMs).toBeGreaterThan(150);
      expect(pauseMs).toBeLessThan(300);
      expect(commits).toBeGreaterThan(50);
    },
  );

  test('where nobody can take it the leader keeps it, and says why', async () => {
    const { net, processes, leader } = await settled();
    for (const { bucket } of otherThan(processes, leader)) bucket.isCut = true;
    expect(await ended(net, leader.membership.resign())).toMatch(/is still the leader/);
    expect(leader.membership.state).toBe('Leader');
    expect(leader.membership.leadsSinceMs).not.toBeNull();
  });

  test('a leader that stops as planned gives the lead away first, so nobody waits for an election', async () => {
    const { net, processes, leader: old } = await settled();
    const others = otherThan(processes, old);
    const closing = old.membership.close();
    const withoutLeader: number[] = [];
    for (let ms = 0; ms < 1_000; ms++) {
      if (old.membership.state === 'ShuttingDown') expect(net.epochs()).toEqual([0, 1]);
      if (others.some(({ membership }) => membership.leader() === null)) withoutLeader.push(ms);
      await net.clock.advance(1);
    }
    expect(withoutLeader.length).toBeLessThan(60);
    await ended(net, closing);
    expect(old.membership.state).toBe('Shutdown');
    net.kill(old);
    await net.clock.advance(10);
    expect(net.leaderOf(others)).not.toBeNull();
    expect(others[0]!.membership.members().find(({ node }) => node.port === old.node.port)).toMatchObject({
      state: 'Shutdown',
      isAlive: false,
    });
    await net.clock.advance(QUIET_MS);
    expect(net.epochs()).toEqual([0, 1]);
  });

  test('all can stop at the same time', async () => {
    const net = new Net();
    const processes = await cluster(net, 3);
    await net.clock.advance(2_000);
    await ended(net, Promise.all(processes.map(async ({ membership }) => membership.close())));
    expect(states(processes)).toEqual(['Shutdown', 'Shutdown', 'Shutdown']);
    const asleep = net.clock.sleeping;
    await net.clock.advance(20_000);
    expect(net.clock.sleeping).toBeLessThanOrEqual(asleep);
    expect(net.clock.sleeping).toBe(0);
  });
});

describe('commits come to followers', () => {
  test('from the leader as they are made, and the bucket is left alone', async () => {
    const { net, processes, leader } = await settled();
    const followers = otherThan(processes, leader);
    const asked = followers.map(({ copy }) => copy.asked);
    for (let i = 0; i < 50; i++) {
      await ended(net, leader.copy.commit('client'));
      await net.clock.advance(20);
      for (const { copy } of followers) expect(copy.applied).toBe(leader.copy.applied);
    }
    expect(followers.map(({ copy }) => copy.asked)).toEqual(asked);
  });

  test('of others, such as functions, through the leader within about a second', async () => {
    const net = new Net();
    const processes = await cluster(net, 3);
    await net.clock.advance(5_000);
    net.shared.commits.push({ epoch: null, by: 'function' });
    await net.clock.advance(1_300);
    expect(processes.map(({ copy }) => copy.applied)).toEqual([2, 2, 2]);
  });

  test('from the bucket where the leader is out of reach or has them no more', async () => {
    const { net, processes, leader } = await settled();
    const [follower] = otherThan(processes, leader) as [Process];
    net.cut(follower, leader);
    for (let i = 0; i < 3; i++) await ended(net, leader.copy.commit('client'));
    await net.clock.advance(2_500);
    expect(follower.copy.applied).toBe(leader.copy.applied);
    expect(follower.membership.leader()).toBeNull();
    expect(net.epochs()).toEqual([0]);
  });

  test('and a follower that could not reach the bucket asks it again, though it is fed', async () => {
    const { net, processes, leader } = await settled();
    const [follower] = otherThan(processes, leader) as [Process];
    follower.bucket.isCut = true;
    void follower.copy.refresh().catch(() => {});
    await net.clock.advance(10_000);
    expect(follower.copy.bucketSilentMs).toBeGreaterThan(5_000);
    expect(follower.membership.state).toBe('Follower');
    follower.bucket.isCut = false;
    await net.clock.advance(5_000);
    expect(follower.copy.bucketSilentMs).toBe(0);
    expect(leader.membership.members().find(({ node }) => node.port === follower.node.port)!.bucketSilentMs).toBe(0);
  });

  test('nobody but the leader hands them out, and only of its log', async () => {
    const net = new Net();
    const processes = await cluster(net, 3);
    const leader = net.leaderOf()!;
    const [follower] = otherThan(processes, leader) as [Process];
    const { signal } = new AbortController();
    const request = { logId: leader.copy.logId, from: 1, instanceId: follower.instanceId, waitMs: 100 };
    expect(await follower.membership.onCommits(request, signal)).toEqual({ kind: 'gone' });
    expect(await leader.membership.onCommits(request, signal)).toMatchObject({ kind: 'commits' });
    await expect(
      leader.membership.onCommits({ ...request, logId: '00000000-0000-4000-8000-000000000009' }, signal),
    ).rejects.toMatchObject({ code: 'other_log' });
    await expect(leader.membership.onCommits({ ...request, from: 0 }, signal)).rejects.toMatchObject({
      code: 'bad_request',
    });
  });
});

describe('one address', () => {
  test('a second member under the address of one that runs is refused at its start', async () => {
    const net = new Net();
    const processes = await cluster(net, 3);
    await net.clock.advance(5_000);
    const [first] = processes as [Process];
    const second = net.add({ port: first.node.port });
    // Calls to the address still reach the first one.
    net.processes.set(first.node.port, first);
    expect(await refused(net, second.started)).toMatchObject({ code: 'address_in_use' });
    expect(second.membership.state).toBe('Shutdown');
    expect(first.membership.refusal).toBeNull();
  });

  test('also where nobody else is there to say so', async () => {
    const net = new Net();
    const first = net.add({ port: 1, clusterSize: 1 });
    await net.untilLeader(500);
    const second = net.add({ port: 1, clusterSize: 1 });
    net.processes.set(1, first);
    expect(await refused(net, second.started)).toMatchObject({ code: 'address_in_use' });
    expect(net.epochs()).toEqual([0]);
  });

  test('one that is no longer reached under its address takes no part, as soon as others notice', async () => {
    const { net, processes, leader: old } = await settled();
    old.pause();
    await net.clock.advance(60_000);
    const next = net.add({ port: old.node.port });
    await net.clock.advance(3_000);
    expect(next.membership.state).toBe('Follower');
    old.resume();
    await net.clock.advance(6_000);
    expect(old.membership.refusal).toMatchObject({ code: 'address_in_use' });
    expect(old.membership.isLeader).toBe(false);
    expect(next.membership.refusal).toBeNull();
    expect(net.leaderOf([...otherThan(processes, old), next])).not.toBeNull();
    // When the other one is gone for good it is let in again.
    net.kill(next);
    net.processes.set(old.node.port, old);
    await net.clock.advance(15_000);
    expect(old.membership.refusal).toBeNull();
    expect(net.leaderOf([...otherThan(processes, old), old])).not.toBeNull();
  });

  test('who was refused by members that are gone is not refused any more', async () => {
    const net = new Net();
    const [old, ...others] = (await cluster(net, 3)) as [Process, Process, Process];
    old.pause();
    await net.clock.advance(60_000);
    const next = net.add({ port: old.node.port });
    await net.clock.advance(3_000);
    old.resume();
    await net.clock.advance(3_000);
    expect(old.membership.refusal).not.toBeNull();
    for (const process of [next, ...others]) net.kill(process);
    await net.clock.advance(5_000);
    expect(old.membership.refusal).toBeNull();
  });
});

describe('what is no gossip', () => {
  test('is refused by its name', async () => {
    const net = new Net();
    const [first, second] = (await cluster(net, 3)) as [Process, Process];
    const gossip = { logId: first.copy.logId, sender: second.node, entries: [second.membership.self] };
    await expect(
      first.membership.onGossip({ ...gossip, logId: '00000000-0000-4000-8000-000000000009' }),
    ).rejects.toMatchObject({ code: 'other_log' });
    await expect(first.membership.onGossip({ ...gossip, entries: [] })).rejects.toMatchObject({ code: 'bad_request' });
    await expect(first.membership.onLead({ logId: first.copy.logId, epochNumber: -2 })).rejects.toMatchObject({
      code: 'bad_request',
    });
    await expect(
      first.membership.onLead({ logId: '00000000-0000-4000-8000-000000000009', epochNumber: 0 }),
    ).rejects.toMatchObject({ code: 'other_log' });
  });
});
