import type { Figure } from './figure.ts';
import { appendAuth } from './figures/append-auth.ts';
import { appendBatch } from './figures/append-batch.ts';
import { appendIndexed } from './figures/append-indexed.ts';
import { appendLatency } from './figures/append-latency.ts';
import { appendSingle } from './figures/append-single.ts';
import { appendHttp } from './figures/append-http.ts';
import { backup } from './figures/backup.ts';
import { backupS3 } from './figures/backup-s3.ts';
import { categories } from './figures/categories.ts';
import { clusterAppend } from './figures/cluster-append.ts';
import { clusterCatchUp } from './figures/cluster-catch-up.ts';
import { clusterFailover } from './figures/cluster-failover.ts';
import { clusterLag } from './figures/cluster-lag.ts';
import { clusterStart } from './figures/cluster-start.ts';
import { conditions } from './figures/conditions.ts';
import { getEvent } from './figures/get-event.ts';
import { grpcAppend } from './figures/grpc-append.ts';
import { grpcPersistent } from './figures/grpc-persistent.ts';
import { grpcRead } from './figures/grpc-read.ts';
import { grpcSubscriptions } from './figures/grpc-subscriptions.ts';
import { hostileInput } from './figures/hostile-input.ts';
import { bytesInFlight } from './figures/bytes-in-flight.ts';
import { edgeAttacks } from './figures/edge-attacks.ts';
import { hostileRequests } from './figures/hostile-requests.ts';
import { functionBundle } from './figures/function-bundle.ts';
import { indexMerge } from './figures/index-merge.ts';
import { indexRebuild } from './figures/index-rebuild.ts';
import { memory } from './figures/memory.ts';
import { objectContention } from './figures/object-contention.ts';
import { objectRequests } from './figures/object-requests.ts';
import { proof } from './figures/proof.ts';
import { readForward } from './figures/read-forward.ts';
import { readHttp } from './figures/read-http.ts';
import { slowSubscribers } from './figures/slow-subscribers.ts';
import { scaleGrowth } from './figures/scale-growth.ts';
import { scaleMemory } from './figures/scale-memory.ts';
import { scaleStart } from './figures/scale-start.ts';
import { scavengeAccumulation } from './figures/scavenge-accumulation.ts';
import { scavengeBeside } from './figures/scavenge-beside.ts';
import { scavengeChunk } from './figures/scavenge-chunk.ts';
import { scavengeLatency } from './figures/scavenge-latency.ts';
import { scavengeMemory } from './figures/scavenge-memory.ts';
import { scavengeRun } from './figures/scavenge-run.ts';
import { scavengeSmall } from './figures/scavenge-small.ts';
import { start } from './figures/start.ts';
import { strangersProject } from './figures/strangers-project.ts';
import { testNode } from './figures/test-node.ts';
import { ui } from './figures/ui.ts';
import { webhook } from './figures/webhook.ts';
import { webhookLatency } from './figures/webhook-latency.ts';

/** All figures, in the order of the issue that asks for them. */
export const FIGURES: readonly Figure[] = [
  appendSingle,
  appendBatch,
  appendHttp,
  appendIndexed,
  appendLatency,
  appendAuth,
  proof,
  readForward,
  readHttp,
  getEvent,
  indexRebuild,
  categories,
  conditions,
  indexMerge,
  start,
  testNode,
  strangersProject,
  scaleStart,
  memory,
  scaleMemory,
  scaleGrowth,
  scavengeChunk,
  scavengeRun,
  scavengeSmall,
  scavengeAccumulation,
  scavengeLatency,
  scavengeBeside,
  scavengeMemory,
  webhook,
  webhookLatency,
  backup,
  backupS3,
  objectRequests,
  objectContention,
  functionBundle,
  hostileRequests,
  hostileInput,
  bytesInFlight,
  slowSubscribers,
  edgeAttacks,
  clusterStart,
  clusterAppend,
  clusterLag,
  clusterCatchUp,
  clusterFailover,
  grpcAppend,
  grpcRead,
  grpcSubscriptions,
  grpcPersistent,
  ui,
];
