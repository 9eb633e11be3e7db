import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { HOUR, HOURLY, LOST_MS, MINUTE } from './kit.ts';
import { ClusterKit } from './cluster-kit.ts';

/**
 * Auto-scavenge over a cluster: rule 15 of core/cluster/README.md. Each member has its own driver, orders and handlers.
 */

/** A cycle is due, and the first member was started. */
async function begun(names = 'A B C', stopsAtOnce = true): Promise<ClusterKit> {
  const kit = new ClusterKit(names);
  for (const member of kit.members.values()) member.scavenger.stopsAtOnce = stopsAtOnce;
  await kit.of('A').driver.configure(HOURLY);
  await kit.clock.advance(HOUR);
  await kit.tick();
  return kit;
}

function end(kit: ClusterKit, name: string): Promise<void> {
  kit.of(name).scavenger.end('Success');
  return kit.tick();
}

describe('a cycle', () => {
  test('goes over the non-leaders, then the leader resigns, then the old leader', async () => {
    const kit = await begun();
    expect(kit.stored()).toBe('started{A,B,C} des(C) nstart(C,#1)');
    expect(kit.of('B').scavenger.current()).toBeNull();
    await end(kit, 'C');
    expect(kit.stored()).toBe('ndone(C) des(B) nstart(B,#2)');
    kit.of('A').successor = null;
    await end(kit, 'B');
    expect(kit.stored()).toBe('ndone(B) des(A)');
    expect(kit.of('A').resigns).toBeGreaterThan(0);
    expect(kit.of('A').scavenger.started).toEqual([]);
    kit.of('A').successor = 'B';
    await kit.tick(2);
    expect(kit.stored()).toBe('nstart(A,#3)');
    await end(kit, 'A');
    expect(kit.stored()).toBe('ndone(A) done{A,B,C}');
    expect([...kit.members.values()].map(({ scavenger }) => scavenger.started.length)).toEqual([1, 1, 1]);
  });

  test('a read-only replica is one of them', async () => {
    const kit = await begun('A B C r1');
    expect(kit.stored()).toBe('started{A,B,C,r1} des(r1) nstart(r1,#1)');
    await end(kit, 'r1');
    expect(kit.stored()).toBe('ndone(r1) des(C) nstart(C,#2)');
  });

  test('one that is catching up comes last of the others', async () => {
    const kit = new ClusterKit();
    kit.of('C').state = 'CatchingUp';
    await kit.of('A').driver.configure(HOURLY);
    await kit.clock.advance(HOUR);
    await kit.tick();
    expect(kit.stored()).toBe('started{A,B,C} des(B) nstart(B,#1)');
  });
});

describe('members that go away', () => {
  test('killed in the middle of its run and back: it is scavenged again', async () => {
    const kit = await begun();
    kit.stored();
    kit.of('C').kill();
    await kit.tick(3);
    expect(kit.stored()).toBe('');
    kit.of('C').boot();
    await kit.tick(2);
    expect(kit.stored()).toBe('des(C) nstart(C,#2)');
  });

  test('never back: its part ends when it counts as lost, and all others are scavenged', async () => {
    const kit = await begun();
    kit.stored();
    kit.of('C').kill();
    await kit.pass(LOST_MS - 3 * MINUTE);
    expect(kit.stored()).toBe('');
    await kit.pass(6 * MINUTE);
    expect(kit.stored()).toBe('ndone(C,Errored) des(B) nstart(B,#2)');
    await end(kit, 'B');
    kit.of('A').successor = 'B';
    await kit.tick(2);
    await end(kit, 'A');
    expect(kit.stored()).toMatch(/^ndone\(B\) des\(A\) nstart\(A,#\d\) ndone\(A\) done\{A,B,C\}$/);
  });

  test('the leader is killed in the middle: the next one goes on with the same run', async () => {
    const kit = await begun();
    kit.stored();
    kit.of('A').kill();
    kit.leadBy('B');
    await kit.tick(3);
    expect(kit.stored()).toBe('');
    await end(kit, 'C');
    kit.of('B').successor = null;
    await kit.tick();
    // B leads and A is away: B is the one that is left to be reached, and would have to resign; A is waited for first.
    expect(kit.stored()).toBe('ndone(C) des(A)');
    kit.of('A').boot();
    await kit.tick(2);
    expect(kit.stored()).toMatch(/^nstart\(A,#\d\)$/);
  });

  test('the leader is killed between an order and its note: a repeat has the same run', async () => {
    const kit = await begun();
    kit.of('C').scavenger.end('Success');
    await kit.tick();
    kit.stored();
    const order = { clusterScavengeId: '7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a001', attempt: 90 };
    const first = await kit.of('A').nodes.startScavenge(kit.of('C').node, order, 1_000);
    const second = await kit.of('B').nodes.startScavenge(kit.of('C').node, order, 1_000);
    expect(first).toEqual(second);
    expect(kit.of('C').scavenger.started).toHaveLength(2);
  });

  test('nobody asks for a run any more: it ends, and its part is begun again', async () => {
    const kit = await begun();
    kit.stored();
    kit.of('C').trouble = new SkuaError('member_unreachable', 'Cut off.', { node: 'a member', reason: 'refused' });
    await kit.pass(LOST_MS / 2);
    expect(kit.of('C').orders.last()).toMatchObject({ result: 'Interrupted' });
    kit.of('C').trouble = null;
    await kit.tick(2);
    expect(kit.stored()).toBe('des(C) nstart(C,#2)');
  });
});

describe('pauses and stops', () => {
  test('a pause stops the run of the member that has it; the cycle goes on with it after a resume', async () => {
    const kit = await begun();
    kit.stored();
    expect(await kit.of('A').driver.pause()).toBe('paused');
    expect(kit.stored()).toBe('preq paused');
    expect(kit.of('C').scavenger.current()).toBeNull();
    await kit.of('A').driver.resume();
    await kit.tick();
    expect(kit.stored()).toBe('resumed des(C) nstart(C,#2)');
    expect(kit.of('C').scavenger.started).toHaveLength(2);
  });

  test('a run that takes its time to stop: pausing, then paused', async () => {
    const kit = await begun('A B C', false);
    kit.stored();
    const paused = kit.of('A').driver.pause();
    await kit.clock.advance(1_000);
    expect(await paused).toBe('pausing');
    await kit.tick();
    expect(kit.stored()).toBe('preq');
    kit.of('C').scavenger.end('Stopped');
    await kit.tick();
    expect(kit.stored()).toBe('paused');
  });

  test('an operator stops the run at the member: its part is over', async () => {
    const kit = await begun();
    kit.stored();
    await kit.of('C').http.send('DELETE', '/admin/scavenge/current');
    await kit.tick();
    expect(kit.stored()).toBe('ndone(C,Stopped) des(B) nstart(B,#2)');
  });

  test("an operator's own run is waited for", async () => {
    const kit = new ClusterKit();
    await kit.of('C').http.send('POST', '/admin/scavenge');
    await kit.of('A').driver.configure(HOURLY);
    await kit.clock.advance(HOUR);
    await kit.tick(3);
    expect(kit.stored()).toBe('started{A,B,C} des(C)');
    await end(kit, 'C');
    expect(kit.stored()).toBe('nstart(C,#1)');
  });
});

describe('leads that are over', () => {
  test('a deposed leader that is cut off from the log does not keep a run going', async () => {
    const kit = await begun();
    const { scavenger } = kit.of('C');
    kit.of('A').believes = true;
    kit.leadBy('B');
    kit.of('A').hasBucket = false;
    kit.of('B').kill();
    await kit.pass(LOST_MS / 4 + MINUTE);
    expect(kit.of('C').calls.filter((call) => call === 'GET /admin/scavenge/last').length).toBeGreaterThan(10);
    expect(scavenger.current()).toBeNull();
  });

  test("a member that can't reach the log takes no orders", async () => {
    const kit = new ClusterKit();
    kit.of('C').hasBucket = false;
    expect(
      await kit
        .of('A')
        .nodes.startScavenge(
          kit.of('C').node,
          { clusterScavengeId: '7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a001', attempt: 0 },
          1_000,
        ),
    ).toMatchObject({ kind: 'failed', reason: expect.stringContaining('storage_unreachable') });
    expect(kit.of('C').scavenger.started).toEqual([]);
  });

  test('a member that stood still does not go on with a run for which it was given up, whoever had asked for it meanwhile', async () => {
    const kit = await begun();
    const { orders, scavenger } = kit.of('C');
    await kit.clock.advance(LOST_MS);
    orders.asked({ clusterScavengeId: cycleOf(kit), attempt: 1 });
    orders.endAbandoned();
    expect(scavenger.current()).toBeNull();
  });
});

function cycleOf(kit: ClusterKit): string {
  const [call] = kit.of('C').calls;
  return new URL(call!.split(' ')[1]!, 'http://x').searchParams.get('clusterScavengeId')!;
}
