import { setImmediate } from 'node:timers/promises';
import { background } from '../../core/base/background.ts';
import { AskLeader } from '../../core/cluster/ask-leader/ask-leader.ts';
import { scavengeStoreOf, WritesElsewhere } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import { type MemberStore, openMemberStore } from '../../core/cluster/replica/replica.ts';
import { Patience } from '../../core/cluster/patience/patience.ts';
import { upToDateOf } from '../../core/cluster/up-to-date/up-to-date.ts';
import { createMembership } from '../../core/cluster/membership/membership.ts';
import type { RunningMembership } from '../../core/cluster/membership/api.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import type { EventStore, NewEvent } from '../../core/streams/api.ts';
import type { ClusterFeature } from '../../handlers/http/context.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import type { Disposables } from '../../infra/disposables.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { openObjects, parseLocation } from '../../infra/objects/open-objects.ts';
import { VERSION } from '../../infra/runtime/version.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import { clusterMetrics } from '../metrics/cluster-metrics.ts';
import type { Collector } from '../metrics/metrics.ts';
import { type LentNode, openNodeBy, type OpenNodeOptions } from '../store/open-node.ts';
import type { CertificateSet } from '../tls/certificate-set.ts';
import { EpochFence } from './fence.ts';
import { PeerForwarder } from './forwarder.ts';
import { adminCallsOf } from './member-calls.ts';
import { PeerClient } from './peer-client.ts';
import { HttpPeers } from './http-peers.ts';
import { secretCheck } from './secret.ts';
import { runMemberTicks } from './ticking.ts';
import { openClusterAutoScavenge } from '../auto-scavenge/open-cluster.ts';
import type { AutoScavengeWorld, OpenAutoScavenge } from '../auto-scavenge/open-auto-scavenge.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

interface OpenMemberOptions {
  readonly values: Values;
  /** The copy, as a single node opens its directory. */
  readonly node: OpenNodeOptions;
  readonly instanceId: string;
  /** Where the other members reach this one. */
  readonly self: NodeAddress;
  /** Null without TLS. */
  readonly certificates: CertificateSet | null;
  readonly log: Log;
  readonly meter: Meter;
  /** What is opened is closed with it. */
  readonly opened: Disposables;
}

/** A node as a member of a cluster: its replica of the log, its way to the other members, and which member leads. */
export interface OpenMember extends LentNode {
  readonly open: MemberStore;
  readonly membership: RunningMembership;
  /** What handlers write through: requests that another member passed on are decided under their epoch only. */
  readonly store: EventStore;
  /** What the node writes for itself goes to the leader. */
  readonly written: Pick<EventStore, 'append' | 'streamInfo'>;
  readonly feature: ClusterFeature;
  readonly client: PeerClient;
  readonly metrics: Collector;
  openAutoScavenge(world: AutoScavengeWorld): Promise<OpenAutoScavenge>;
  /** Ticks while this member leads, until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Opens the replica of a member and catches it up; the leader is not looked for before `membership.start`, for which
 * the interface must be served. Errors: as `openMemberStore` and `openNode`.
 */
export async function openMember(options: OpenMemberOptions): Promise<OpenMember> {
  const { values, self, instanceId, certificates, log, meter, opened } = options;
  const objects = await openObjects(parseLocation(values.Storage!));
  opened.defer(() => objects.close());
  const world = { objects, clock: systemClock, ids: systemIds, digests: nodeDigests, log, meter };
  // Of a log that this member begins; another keeps its own.
  const logOptions = { chunkSizeBytes: values.ChunkSize };
  // Opening repairs the history of scavenges, before the member is in touch with others.
  let writes: Pick<EventStore, 'append'> | null = null;
  let membership: RunningMembership | null = null;
  const { close, ...node } = await openNodeBy(options.node, (store) =>
    openMemberStore({
      world,
      log: logOptions,
      store,
      refusal: () => membership?.refusal ?? null,
      scavengeStore: (copy) =>
        scavengeStoreOf(copy, {
          append: (stream, expected, events) => (writes ?? copy).append(stream, expected, events),
        }),
    }),
  );
  opened.defer(close);
  const { open } = node;
  const secret = values.Insecure ? null : values.ClusterSecret;
  const client = new PeerClient({ certificates, secret });
  opened.defer(() => client.close());
  const joined = (membership = createMembership(
    {
      copy: open.log,
      peers: new HttpPeers(client),
      objects,
      clock: systemClock,
      ids: systemIds,
      log,
      meter,
      scavengeId: () => open.scavenger.current(),
      positions: () => positionsOf(open),
    },
    {
      self,
      instanceId,
      clusterSize: values.ClusterSize,
      priority: values.NodePriority,
      isReadOnlyReplica: values.ReadOnlyReplica,
      version: VERSION,
      gossipIntervalMs: values.GossipIntervalMs,
      gossipTimeoutMs: values.GossipTimeoutMs,
      gossipAllowedDifferenceMs: values.GossipAllowedDifferenceMs,
      leaderElectionTimeoutMs: values.LeaderElectionTimeoutMs,
      deadMemberRemovalMs: Math.max(
        values.DeadMemberRemovalPeriodSec * SECOND_MS,
        values['AutoScavenge:NodeLostAfter'] * MINUTE_MS,
      ),
    },
  ));
  opened.defer(() => joined.close());
  const patience = new Patience(systemClock, values.ForwardPatienceMs);
  const closing = new AbortController();
  background(patience.watch(closing.signal));
  opened.defer(() => closing.abort());
  const fence = new EpochFence(open.log, instanceId, patience);
  const forward = new PeerForwarder(client, certificates === null ? 'http' : 'https');
  const ask = new AskLeader({ membership: joined, log: open.log, patience, clock: systemClock, meter });
  const elsewhere = new WritesElsewhere({ ask, carrier: forward, patience, breath: () => setImmediate() });
  const own = (writes = {
    append: (stream: string, expected: number, events: readonly NewEvent[]) =>
      elsewhere.append(open.store, stream, expected, events),
  });
  return {
    ...node,
    membership: joined,
    client,
    metrics: clusterMetrics({ log: open.log, membership: joined }),
    store: fence.storeOf(open.store, elsewhere),
    written: { ...own, streamInfo: (stream) => open.store.streamInfo(stream) },
    openAutoScavenge: (parts) =>
      openClusterAutoScavenge({ ...parts, membership: joined, memberLog: open.log, calls: adminCallsOf(client) }),
    feature: {
      membership: joined,
      log: open.log,
      upToDate: upToDateOf(open.log, systemClock),
      isSecret: secretCheck(secret),
      forward,
      fence,
      patience,
      ask,
      copy: open.store,
    },
    run: (signal) =>
      runMemberTicks(
        {
          world,
          options: logOptions,
          membership: joined,
          log: open.log,
          store: open.store,
          writes: own,
          scavenge: {
            disableMerging: values.DisableScavengeMerging,
            historyMaxAgeDays: values.ScavengeHistoryMaxAge,
            keepsDeletedData: values.KeepDataOfDeletedStreams,
          },
        },
        signal,
      ),
  };
}

function positionsOf(open: MemberStore): {
  readonly lastCommitPosition: number;
  readonly writerCheckpoint: number;
  readonly chaserCheckpoint: number;
} {
  try {
    const { checkpoints, lastCommitPosition } = open.status();
    return { lastCommitPosition, writerCheckpoint: checkpoints.writer, chaserCheckpoint: checkpoints.chaser };
  } catch {
    // The copy is being opened again: it ends where readers saw it end.
    const { end } = open.log;
    return { lastCommitPosition: end, writerCheckpoint: end, chaserCheckpoint: end };
  }
}
