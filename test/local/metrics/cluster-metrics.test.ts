import { expect, test } from 'vitest';
import type { Epoch, GossipEntry } from '../../../core/ports/peers.ts';
import type { ClusterMember } from '../../../core/cluster/api.ts';
import { clusterMetrics } from '../../../local/metrics/cluster-metrics.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { parseExposition } from './exposition.ts';

test('a member tells how far its copy is, who leads, and whom it hears', async () => {
  const metrics = createMetrics(new ManualClock(0));
  const told: ((epoch: Epoch) => void)[] = [];
  const log = {
    applied: 17,
    epoch: null as Epoch | null,
    isCaughtUp: true,
    lag: { commits: 3, bytes: 900 },
    bucketSilentMs: 1_500,
    onEpoch: (listener: (epoch: Epoch) => void) => {
      told.push(listener);
    },
  };
  const self = { instanceId: 'me' } as GossipEntry;
  const membership = {
    self,
    isLeader: false,
    members: () => [{ isAlive: true }, { isAlive: true }, { isAlive: false }] as ClusterMember[],
  };
  metrics.collect(clusterMetrics({ log, membership }));
  const values = async () => parseExposition((await metrics.render(null)).body).values;
  const before = await values();
  expect(before.get('eventstore_cluster_epoch')).toBe(-1);
  expect(before.get('eventstore_cluster_leader')).toBe(0);
  expect(before.get('eventstore_cluster_takeovers_total{by="self"}')).toBe(0);

  for (const [number, leaderInstanceId] of [
    [0, 'other'],
    [1, 'me'],
    [2, 'other'],
  ] as const) {
    log.epoch = { number, position: 0, id: '', leaderInstanceId };
    for (const tell of told) tell(log.epoch);
  }
  membership.isLeader = true;
  log.isCaughtUp = false;
  const after = await values();
  const expected = {
    eventstore_cluster_leader: 1,
    eventstore_cluster_epoch: 2,
    'eventstore_cluster_takeovers_total{by="self"}': 1,
    'eventstore_cluster_takeovers_total{by="other"}': 2,
    'eventstore_cluster_members{kind="alive"}': 2,
    'eventstore_cluster_members{kind="dead"}': 1,
    eventstore_cluster_caught_up: 0,
    eventstore_cluster_applied_commit: 17,
    eventstore_cluster_lag_commits: 3,
    eventstore_cluster_lag_bytes: 900,
    eventstore_cluster_bucket_silent_seconds: 1.5,
  };
  for (const [name, value] of Object.entries(expected)) expect(after.get(name), name).toBe(value);
});
