import { expect, test } from 'vitest';
import type { MemberLog, Membership } from '../../../core/cluster/api.ts';
import { EPOCH_STREAM } from '../../../core/log/format/epochs.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { ANY } from '../../../core/streams/api.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { TICK_PERIOD_MS } from '../../../local/auto-scavenge/open-auto-scavenge.ts';
import { openClusterAutoScavenge } from '../../../local/auto-scavenge/open-cluster.ts';
import { LogLines } from '../../handlers/secured.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore } from '../../support/test-store.ts';
import { load } from '../config/support.ts';

/** The auto-scavenge of a member as it is put together, over a real store. */

const SELF = { address: '10.0.0.1', port: 2113 };
const OTHER = { address: '10.0.0.2', port: 2113 };

async function member() {
  const clock = new ManualClock(Date.UTC(2026, 10, 22, 9, 59, 55));
  const ids = new SeededIds(4);
  const open = await openTestStore({ storage: new MemoryStorage(), clock, ids });
  const cluster = { isLeader: true, size: 1, resigns: 0, proofs: 0, requests: [] as string[] };
  const entry = (node: typeof SELF) => ({
    node,
    isAlive: true,
    state: 'Follower',
    isReadOnlyReplica: false,
    writerCheckpoint: 1,
  });
  const membership = {
    get isLeader() {
      return cluster.isLeader;
    },
    get clusterSize() {
      return cluster.size;
    },
    self: entry(SELF),
    get leadsSinceMs() {
      return cluster.isLeader ? 0 : null;
    },
    members: () => [SELF, OTHER].slice(0, cluster.size).map(entry),
    leader: () => entry(cluster.isLeader ? SELF : OTHER),
    resign: async () => {
      cluster.resigns++;
      return '';
    },
  } as unknown as Membership;
  const memberLog = {
    confirmFresh: async () => {
      cluster.proofs++;
    },
  } as unknown as MemberLog;
  const request = async (_: unknown, method: string, path: string) => {
    cluster.requests.push(`${method} ${path.replace(/=[^&]*/g, '=')}`);
    return {
      status: 200,
      body: new TextEncoder().encode(
        JSON.stringify({ scavengeId: '00000000-0000-4000-8000-000000000001', scavengeResult: 'InProgress' }),
      ),
    };
  };
  const made = await openClusterAutoScavenge({
    values: load([]).values,
    version: '9.9.9',
    open,
    membership,
    memberLog,
    calls: { request },
    clock,
    ids,
    keys: nodeKeys,
    log: new LogLines(),
    meter: silentMeter,
  });
  const stop = new AbortController();
  const running = made.run(stop.signal);
  const end = async () => {
    stop.abort();
    await clock.advance(TICK_PERIOD_MS);
    await running;
    await open.close();
  };
  return { ...made, open, clock, cluster, end };
}

test('a cluster of one scavenges itself; of the order it looks at the log first', async () => {
  const { autoScavenge, open, clock, cluster, end } = await member();
  await autoScavenge.configure('0 * * * *');
  await clock.advance(10_000);
  await open.scavenger.idle();
  expect(open.scavenger.last()).toMatchObject({ result: 'Success' });
  expect(cluster.proofs).toBeGreaterThan(0);
  await end();
});

test('a leader of two orders the other one first, and takes no orders; one that does not lead says who does', async () => {
  const { autoScavenge, orders, open, clock, cluster, end } = await member();
  cluster.size = 2;
  await autoScavenge.configure('0 * * * *');
  await clock.advance(10_000);
  expect(cluster.requests.slice(0, 2)).toEqual([
    'POST /admin/scavenge?clusterScavengeId=&attempt=',
    'GET /admin/scavenge/last?clusterScavengeId=&attempt=',
  ]);
  expect(open.scavenger.last()).toBeNull();
  await expect(orders.start({ clusterScavengeId: 'x', attempt: 1 })).rejects.toMatchObject({ code: 'late_order' });
  cluster.isLeader = false;
  await expect(autoScavenge.status()).rejects.toMatchObject({ code: 'not_leader', data: { leader: '10.0.0.2:2113' } });
  await orders.start({ clusterScavengeId: 'x', attempt: 100 });
  await open.scavenger.idle();
  await end();
});

test('a leader behind whose back another epoch was committed stores nothing', async () => {
  const { autoScavenge, open, end } = await member();
  const { store } = open;
  const append = store.append.bind(store);
  store.append = async (...args) => {
    store.append = append;
    await append(EPOCH_STREAM, ANY, [
      {
        id: '00000000-0000-4000-8000-000000000001',
        type: '$EpochInformation',
        isJson: true,
        data: new TextEncoder().encode('{}'),
        metadata: new Uint8Array(0),
      },
    ]);
    return append(...args);
  };
  await expect(autoScavenge.configure('0 * * * *')).rejects.toMatchObject({ code: 'not_leader' });
  await end();
});
