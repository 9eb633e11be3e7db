import type { MemberLog, Membership } from '../../core/cluster/api.ts';
import type { Collector } from './metrics.ts';

interface ClusterFigures {
  readonly log: Pick<MemberLog, 'applied' | 'epoch' | 'isCaughtUp' | 'lag' | 'bucketSilentMs' | 'onEpoch'>;
  readonly membership: Pick<Membership, 'self' | 'isLeader' | 'members'>;
}

/**
 * Metrics of a member of a cluster: how far its replica is, which member leads, and which members it hears. Its state
 * is that of the node in `eventstore_statuses`; where commits came from is counted where they enter the replica.
 */
export function clusterMetrics({ log, membership }: ClusterFigures): Collector {
  let own = 0;
  let others = 0;
  log.onEpoch(({ leaderInstanceId }) => {
    if (leaderInstanceId === membership.self.instanceId) own++;
    else others++;
  });
  return (metrics) => {
    const { commits, bytes } = log.lag;
    const members = membership.members();
    const alive = members.filter(({ isAlive }) => isAlive).length;
    metrics.gauge('eventstore_cluster_leader', membership.isLeader ? 1 : 0);
    metrics.gauge('eventstore_cluster_epoch', log.epoch?.number ?? -1);
    metrics.total('eventstore_cluster_takeovers_total', own, { by: 'self' });
    metrics.total('eventstore_cluster_takeovers_total', others, { by: 'other' });
    metrics.gauge('eventstore_cluster_caught_up', log.isCaughtUp ? 1 : 0);
    metrics.gauge('eventstore_cluster_applied_commit', log.applied);
    metrics.gauge('eventstore_cluster_lag_commits', commits);
    metrics.gauge('eventstore_cluster_lag_bytes', bytes);
    metrics.gauge('eventstore_cluster_bucket_silent_seconds', log.bucketSilentMs / 1_000);
    metrics.gauge('eventstore_cluster_members', alive, { kind: 'alive' });
    metrics.gauge('eventstore_cluster_members', members.length - alive, { kind: 'dead' });
  };
}
