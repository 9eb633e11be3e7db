import { describe, expect, test } from 'vitest';
import { formatFact } from '../../core/auto-scavenge/facts.ts';
import type { Fact } from '../../core/auto-scavenge/facts.ts';
import { ScavengeOrders } from '../../core/auto-scavenge/orders/orders.ts';
import { CYCLES_STREAM } from '../../core/auto-scavenge/auto-scavenge-streams.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { silentLog } from '../../core/ports/log.ts';
import { ANY } from '../../core/streams/api.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { nodeOf, T0, TestClock } from './kit.ts';
import { LightLog, LightStore } from './light-store.ts';

const LEASE_MS = 60_000;
const K = 'K';
const NO_BYTES = new Uint8Array(0);

function node({ leadsOthers = false, leaseMs = LEASE_MS as number | null } = {}) {
  const scavenger = new FakeScavenger();
  const clock = new TestClock();
  const log = new LightLog();
  const parts = {
    scavenger,
    store: new LightStore(log),
    clock,
    log: silentLog,
    leadsOthers: () => leadsOthers,
    leaseMs,
  };
  const stored = (...facts: Fact[]) => {
    for (const fact of facts)
      log.append(
        CYCLES_STREAM,
        ANY,
        [{ id: '', type: fact.type, isJson: true, data: formatFact(fact), metadata: NO_BYTES }],
        0,
      );
  };
  return {
    scavenger,
    clock,
    stored,
    orders: new ScavengeOrders(parts),
    restarted: () => new ScavengeOrders({ ...parts, scavenger: new FakeScavenger() }),
  };
}

async function codeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    if (isSkuaError(error)) return error.code;
    throw error;
  }
}

const order = (attempt: number, clusterScavengeId = K) => ({ clusterScavengeId, attempt });
const idOf = async (call: Promise<{ readonly scavengeId: string }>) => (await call).scavengeId;
const designated: Fact = { type: '$node-designated', node: nodeOf('B'), atMs: T0 };
const started = (scavengeId: string): Fact => ({
  type: '$node-scavenge-started',
  node: nodeOf('B'),
  scavengeId,
  atMs: T0,
});
const completed: Fact = { type: '$node-scavenge-completed', node: nodeOf('B'), result: 'Success', atMs: T0 };
const begun: Fact = { type: '$cluster-scavenge-started', clusterScavengeId: K, members: [nodeOf('B')], atMs: T0 };
const joined: Fact = { type: '$cluster-members-changed', added: [nodeOf('X')], removed: [] };

describe('orders to start', () => {
  test('a repeat has the same answer, during the run, after it, and at the same moment', async () => {
    const { orders, scavenger } = node();
    const ids = await Promise.all([idOf(orders.start(order(3))), idOf(orders.start(order(3)))]);
    expect(ids[0]).toBe(ids[1]);
    scavenger.end('Success');
    expect(await idOf(orders.start(order(3)))).toBe(ids[0]);
    expect(scavenger.started).toHaveLength(1);
  });

  test('a lower attempt is late, a higher one begins anew, another cycle has its own count', async () => {
    const { orders, scavenger } = node();
    const first = await idOf(orders.start(order(3)));
    expect(await codeOf(orders.start(order(2)))).toBe('late_order');
    expect(await codeOf(orders.start(order(4)))).toBe('scavenge_in_progress');
    scavenger.end('Stopped');
    expect(await idOf(orders.start(order(4)))).not.toBe(first);
    expect(await codeOf(orders.start(order(3)))).toBe('late_order');
    scavenger.end('Success');
    expect(await codeOf(orders.start(order(1, 'L')))).toMatchObject({ scavengeId: expect.any(String) });
  });

  test('a failed start can be repeated', async () => {
    const { orders, scavenger } = node();
    await scavenger.start();
    expect(await codeOf(orders.start(order(3)))).toBe('scavenge_in_progress');
    scavenger.end('Success');
    expect(await codeOf(orders.start(order(3)))).toMatchObject({ scavengeId: expect.any(String) });
  });

  test('a node that leads others takes none; options are passed on; nonsense is refused', async () => {
    expect(await codeOf(node({ leadsOthers: true }).orders.start(order(1)))).toBe('late_order');
    const { orders, scavenger } = node();
    await orders.start(order(1), { threads: 2 });
    expect(scavenger.started[0]!.options).toEqual({ threads: 2 });
    for (const bad of [order(-1), order(1.5), order(Number.NaN), order(1, ''), order(1, 'x'.repeat(65))])
      expect(await codeOf(orders.start(bad))).toBe('bad_option');
  });

  test('old cycles are forgotten one by one', async () => {
    const { orders, scavenger } = node();
    for (let i = 0; i < 40; i++) {
      await orders.start(order(i, `cycle ${i}`));
      scavenger.end('Success');
    }
    expect(await codeOf(orders.start(order(38, 'cycle 39')))).toBe('late_order');
  });
});

describe('orders to stop', () => {
  test('end the run, and make late what came before', async () => {
    const { orders, scavenger } = node();
    const id = await idOf(orders.start(order(3)));
    expect(await codeOf(orders.stop(order(5), null))).toBe(id);
    expect(scavenger.last()?.result).toBe('Stopped');
    expect(await codeOf(orders.start(order(3)))).toBe('late_order');
    expect(await codeOf(orders.start(order(4)))).toBe('late_order');
    expect(await codeOf(orders.stop(order(4), null))).toBe('late_order');
    expect(await codeOf(orders.stop(order(5), null))).toBe('scavenge_not_found');
  });

  test('before the start arrives, and while it is being made', async () => {
    const { orders, scavenger } = node();
    expect(await codeOf(orders.stop(order(5), null))).toBe('scavenge_not_found');
    expect(await codeOf(orders.start(order(3)))).toBe('late_order');
    const starting = codeOf(orders.start(order(6)));
    expect(await codeOf(orders.stop(order(7), null))).toBe('scavenge_not_found');
    expect(await starting).toBe('late_order');
    expect(scavenger.started).toHaveLength(0);
  });

  test('do not touch the run of a user, unless it is named', async () => {
    const { orders, scavenger } = node();
    const { scavengeId } = await scavenger.start();
    expect(await codeOf(orders.stop(order(5), null))).toBe('scavenge_not_found');
    expect(await codeOf(orders.stop(order(5), 'another'))).toBe('scavenge_not_found');
    expect(scavenger.current()).toBe(scavengeId);
    expect(await codeOf(orders.stop(order(5), scavengeId))).toBe(scavengeId);
  });
});

describe('after a restart the copy of the log tells', () => {
  test.each<[string, Fact[], unknown]>([
    ['nothing stored yet', [], 'started'],
    ['the order itself', [begun, designated], 'started'],
    ['new members since', [begun, designated, joined], 'started'],
    ['carried out', [begun, designated, joined, started('#9')], '#9'],
    ['over', [begun, designated, started('#9'), completed], 'late_order'],
    ['designated again', [begun, designated, started('#9'), designated], 'late_order'],
    ['a pause was asked for', [begun, designated, { type: '$pause-requested', atMs: T0 }], 'late_order'],
  ])('%s', async (_, facts, expected) => {
    const world = node();
    world.stored(...facts);
    const answer = await codeOf(world.restarted().start(order(1)));
    expect(answer).toEqual(
      expected === 'started'
        ? { scavengeId: expect.stringMatching(/^0000/) }
        : expected === '#9'
          ? { scavengeId: '#9' }
          : expected,
    );
  });
});

describe('runs that nobody asks for', () => {
  test('end, and count as interrupted; being asked keeps them', async () => {
    const { orders, scavenger, clock } = node();
    await orders.start(order(3));
    clock.advance(LEASE_MS - 1);
    orders.endAbandoned();
    orders.asked(order(3));
    clock.advance(LEASE_MS - 1);
    orders.endAbandoned();
    expect(scavenger.current()).not.toBe(null);
    // Not by older orders, nor by those of other cycles.
    orders.asked(order(2));
    orders.asked(order(3, 'L'));
    clock.advance(1);
    orders.endAbandoned();
    orders.endAbandoned();
    expect(scavenger.current()).toBe(null);
    expect(orders.last()?.result).toBe('Interrupted');
  });

  test('runs of users go on, and so do ordered ones where there is no limit', async () => {
    const users = node();
    await users.scavenger.start();
    users.clock.advance(10 * LEASE_MS);
    users.orders.endAbandoned();
    expect(users.scavenger.current()).not.toBe(null);
    const unlimited = node({ leaseMs: null });
    await unlimited.orders.start(order(1));
    unlimited.clock.advance(10 * LEASE_MS);
    unlimited.orders.endAbandoned();
    expect(unlimited.scavenger.current()).not.toBe(null);
  });
});
