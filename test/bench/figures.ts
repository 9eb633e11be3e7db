import type { Figure } from './figure.ts';
import { appendAuth } from './figures/append-auth.ts';
import { appendBatch } from './figures/append-batch.ts';
import { appendSingle } from './figures/append-single.ts';
import { appendHttp } from './figures/append-http.ts';
import { backup } from './figures/backup.ts';
import { backupS3 } from './figures/backup-s3.ts';
import { hostileInput } from './figures/hostile-input.ts';
import { bytesInFlight } from './figures/bytes-in-flight.ts';
import { hostileRequests } from './figures/hostile-requests.ts';
import { functionBundle } from './figures/function-bundle.ts';
import { indexMerge } from './figures/index-merge.ts';
import { indexRebuild } from './figures/index-rebuild.ts';
import { memory } from './figures/memory.ts';
import { objectContention } from './figures/object-contention.ts';
import { objectRequests } from './figures/object-requests.ts';
import { readForward } from './figures/read-forward.ts';
import { scavengeAccumulation } from './figures/scavenge-accumulation.ts';
import { scavengeChunk } from './figures/scavenge-chunk.ts';
import { scavengeLatency } from './figures/scavenge-latency.ts';
import { scavengeMemory } from './figures/scavenge-memory.ts';
import { scavengeRun } from './figures/scavenge-run.ts';
import { start } from './figures/start.ts';
import { webhook } from './figures/webhook.ts';
import { webhookLatency } from './figures/webhook-latency.ts';

/** All figures, in the order of the issue that asks for them. */
export const FIGURES: readonly Figure[] = [appendSingle, appendBatch, appendHttp, appendAuth, readForward, indexRebuild, indexMerge, start, memory, scavengeChunk, scavengeRun, scavengeAccumulation, scavengeLatency, scavengeMemory, webhook, webhookLatency, backup, backupS3, objectRequests, objectContention, functionBundle, hostileRequests, hostileInput, bytesInFlight];
