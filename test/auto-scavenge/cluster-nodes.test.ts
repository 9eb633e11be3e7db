import { describe, expect, test } from 'vitest';
import type { ClusterMember, Membership } from '../../core/cluster/api.ts';
import { leadAuthority } from '../../core/cluster/authority/authority.ts';
import { createClusterNodes } from '../../core/cluster/nodes/nodes.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { EPOCH_STREAM } from '../../core/log/format/epochs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { leaderOf } from '../../core/ports/nodes.ts';
import { ANY } from '../../core/streams/api.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestStore } from '../support/test-store.ts';
import { ClusterKit } from './cluster-kit.ts';
import { HOUR, HOURLY, nodeOf } from './kit.ts';

/** The port over HTTP: what answers of members mean. */

const ORDER = { clusterScavengeId: '7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a001', attempt: 3 };
const ID = '00000002-0000-4000-8000-000000000001';
const C = nodeOf('C');

function world() {
  const kit = new ClusterKit();
  const { nodes } = kit.of('A');
  return { kit, nodes, c: kit.of('C') };
}

/** A member that answers with this. */
function answering(status: number, body: unknown) {
  const kit = new ClusterKit();
  const member = { node: C, isAlive: true } as ClusterMember;
  const membership = {
    self: { node: nodeOf('A') },
    clusterSize: 3,
    members: () => [member],
    leader: () => null,
    isLeader: true,
    leadsSinceMs: 0,
    resign: async () => '',
  } as unknown as Membership;
  const bytes = typeof body === 'string' ? body : JSON.stringify(body);
  const asked: string[] = [];
  const request = async (_: unknown, method: string, path: string) => {
    asked.push(`${method} ${path}`);
    return { status, body: new TextEncoder().encode(bytes) };
  };
  return {
    nodes: createClusterNodes({
      membership,
      log: { confirmFresh: async () => {} },
      orders: kit.of('A').orders,
      calls: { request },
      clock: kit.clock,
    }),
    asked,
  };
}

describe('starting', () => {
  test('started, and the same for a repeat; a lower attempt is late', async () => {
    const { nodes, c } = world();
    expect(await nodes.startScavenge(C, ORDER, 1_000)).toEqual({ kind: 'started', scavengeId: ID });
    expect(await nodes.startScavenge(C, ORDER, 1_000)).toEqual({ kind: 'started', scavengeId: ID });
    expect(await nodes.startScavenge(C, { ...ORDER, attempt: 2 }, 1_000)).toEqual({ kind: 'late' });
    expect(c.calls[0]).toBe(`POST /admin/scavenge?clusterScavengeId=${ORDER.clusterScavengeId}&attempt=3`);
  });

  test('busy with a run of a user, or a backup', async () => {
    const { nodes, c } = world();
    const release = c.scavenger.hold();
    expect(await nodes.startScavenge(C, ORDER, 1_000)).toEqual({ kind: 'busy' });
    release();
    await c.scavenger.start();
    expect(await nodes.startScavenge(C, ORDER, 1_000)).toEqual({ kind: 'busy' });
  });

  test('a member that leads is not late, it refuses', async () => {
    const { kit, nodes } = world();
    kit.leadBy('C');
    expect(await nodes.startScavenge(C, ORDER, 1_000)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('late_order'),
    });
  });

  test.each(['member_unreachable', 'member_silent'] as const)('%s', async (code) => {
    const { nodes, c } = world();
    c.trouble = new SkuaError(code, 'No.', { node: 'C', reason: 'refused' });
    expect(await nodes.startScavenge(C, ORDER, 1_000)).toMatchObject({ kind: 'unreachable' });
    expect(await nodes.lastScavenge(C, ORDER, 1_000)).toMatchObject({ kind: 'unreachable' });
    expect(await nodes.stopScavenge(C, ORDER, ID, 1_000)).toMatchObject({ kind: 'unreachable' });
  });

  test.each([
    [200, ''],
    [200, 'null'],
    [200, '[]'],
    [200, { scavengeId: 'x' }],
    [200, { scavengeId: { a: 1 } }],
    [200, '{'],
    [401, ''],
    [404, { code: 'not_found' }],
    [500, { code: 'internal', detail: 'x'.repeat(10_000) }],
    [503, { code: 7, detail: [] }],
    [409, { code: 'late_order', seen: '4' }],
  ])('%i %j is a failure, and no more of it is passed on than a line', async (status, body) => {
    const { nodes } = answering(status, body);
    for (const reply of [await nodes.startScavenge(C, ORDER, 1_000), await nodes.stopScavenge(C, ORDER, null, 1_000)]) {
      if (status === 200 && reply.kind === 'stopped') continue;
      expect(reply).toMatchObject({ kind: 'failed', reason: expect.stringContaining(`status ${status}`) });
      expect((reply as { reason: string }).reason.length).toBeLessThan(300);
    }
    expect(await nodes.lastScavenge(C, ORDER, 1_000)).toMatchObject({ kind: 'failed' });
  });

  test('nobody is called who is no member', async () => {
    const { nodes, asked } = answering(200, {});
    const stranger = { address: '169.254.169.254', port: 80 };
    for (const reply of [
      await nodes.startScavenge(stranger, ORDER, 1_000),
      await nodes.lastScavenge(stranger, ORDER, 1_000),
      await nodes.stopScavenge(stranger, ORDER, null, 1_000),
    ])
      expect(reply).toMatchObject({ kind: 'unreachable' });
    expect(asked).toEqual([]);
  });
});

describe('asking', () => {
  test('no run since the process began is Unknown; the present one is in progress', async () => {
    const { nodes } = world();
    expect(await nodes.lastScavenge(C, ORDER, 1_000)).toEqual({ kind: 'last', scavengeId: null, result: 'Unknown' });
    await nodes.startScavenge(C, ORDER, 1_000);
    expect(await nodes.lastScavenge(C, ORDER, 1_000)).toEqual({ kind: 'last', scavengeId: ID, result: 'InProgress' });
  });

  test('the run is only told that it is waited for by a leader that has just looked at the log', async () => {
    const { kit, nodes, c } = world();
    await nodes.lastScavenge(C, ORDER, 1_000);
    await nodes.lastScavenge(C, null, 1_000);
    kit.of('A').hasBucket = false;
    await nodes.lastScavenge(C, ORDER, 1_000);
    kit.of('A').hasBucket = true;
    kit.leadBy('B');
    await nodes.lastScavenge(C, ORDER, 1_000);
    expect(c.calls.map((call) => call.includes('attempt=3'))).toEqual([true, false, false, false]);
  });
});

describe('stopping', () => {
  test('stopped; and stopped where nothing goes on', async () => {
    const { nodes, c } = world();
    await nodes.startScavenge(C, ORDER, 1_000);
    expect(await nodes.stopScavenge(C, { ...ORDER, attempt: 4 }, ID, 1_000)).toEqual({ kind: 'stopped' });
    expect(await nodes.stopScavenge(C, { ...ORDER, attempt: 4 }, null, 1_000)).toEqual({ kind: 'stopped' });
    expect(c.calls.slice(1)).toEqual([
      `DELETE /admin/scavenge/${ID}?clusterScavengeId=${ORDER.clusterScavengeId}&attempt=4`,
      `DELETE /admin/scavenge/current?clusterScavengeId=${ORDER.clusterScavengeId}&attempt=4`,
    ]);
  });

  test('a run that takes longer is being stopped; one that nobody tells of is not', async () => {
    const { kit, nodes, c } = world();
    c.scavenger.stopsAtOnce = false;
    await nodes.startScavenge(C, ORDER, 1_000);
    const stopping = nodes.stopScavenge(C, { ...ORDER, attempt: 4 }, ID, 1_000);
    await kit.clock.advance(1_000);
    expect(await stopping).toEqual({ kind: 'stopping' });
    c.trouble = 'hangs';
    const silent = nodes.stopScavenge(C, { ...ORDER, attempt: 4 }, ID, 1_000);
    await kit.clock.advance(1_000);
    expect(await silent).toMatchObject({ kind: 'unreachable' });
  });
});

describe('the view', () => {
  test('of itself only the member knows whether it leads', () => {
    const { kit, nodes } = world();
    expect(leaderOf(nodes.view())).toEqual(nodeOf('A'));
    // It has begun to resign: others still tell that it leads.
    kit.of('A').believes = false;
    expect(leaderOf(nodes.view())).toBeNull();
    kit.of('A').believes = null;
    kit.leadBy('C');
    expect(leaderOf(nodes.view())).toEqual(C);
    expect(leaderOf(kit.of('C').nodes.view())).toEqual(C);
    expect(nodes.view()).toMatchObject({ self: nodeOf('A'), clusterSize: 3, leadsSinceMs: 0 });
  });

  test('a resign that takes its time does not hold up the tick', async () => {
    const { kit, nodes } = world();
    const membership = { resign: () => new Promise<string>(() => {}) };
    const slow = createClusterNodes({
      membership: membership as unknown as Membership,
      log: { confirmFresh: async () => {} },
      orders: kit.of('A').orders,
      calls: { request: () => Promise.reject(new Error()) },
      clock: kit.clock,
    });
    const resigned = slow.resign();
    await kit.clock.advance(1_000);
    await resigned;
    await nodes.resign();
    expect(kit.of('A').resigns).toBe(1);
  });
});

describe('authority', () => {
  test('what was decided under a lead that is over takes no place in the log', async () => {
    const clock = new ManualClock();
    const open = await openTestStore({ storage: new MemoryStorage(), clock, seed: 5 });
    const { store } = open;
    const membership = { isLeader: true };
    const event = {
      id: '00000000-0000-4000-8000-000000000009',
      type: 't',
      isJson: true,
      data: new TextEncoder().encode('{}'),
      metadata: new Uint8Array(0),
    };
    const authorize = await leadAuthority({ store, membership });
    await store.append('s', ANY, [event], authorize);
    await store.append(EPOCH_STREAM, ANY, [{ ...event, id: '00000000-0000-4000-8000-00000000000a' }]);
    await expect(
      store.append('s', ANY, [{ ...event, id: '00000000-0000-4000-8000-00000000000b' }], authorize),
    ).rejects.toMatchObject({ code: 'not_leader' });
    await store.append(
      's',
      ANY,
      [{ ...event, id: '00000000-0000-4000-8000-00000000000c' }],
      await leadAuthority({ store, membership }),
    );
    membership.isLeader = false;
    await expect(leadAuthority({ store, membership })).rejects.toMatchObject({ code: 'not_leader' });
    await open.close();
  });

  test('a leader that does not know yet that it is none stores nothing, and comes to know it', async () => {
    const kit = new ClusterKit();
    await kit.of('A').driver.configure(HOURLY);
    kit.of('A').believes = true;
    kit.leadBy('B');
    await expect(kit.of('A').driver.pause()).rejects.toMatchObject({ code: 'not_leader' });
    await kit.clock.advance(HOUR);
    await kit.of('A').driver.tick(kit.clock.monotonicMs() + 10_000);
    expect(kit.stored()).toBe('');
  });
});
