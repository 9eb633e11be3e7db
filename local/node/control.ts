import { isSkuaError } from '../../core/base/errors.ts';
import type { ChunkMapView } from '../../core/log/api.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import type { Store, StartProgress } from '../../core/store/store.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import type { AttributeIndexDocument } from '../../handlers/documents/attribute-indexes.ts';
import type {
  AuditView,
  ChunkProofView,
  LogLineLevel,
  LogView,
  NodeState,
  OptionView,
  OverviewView,
  ReloadResult,
  StartUpWork,
  WebhooksView,
} from '../../handlers/documents/node.ts';
import type { GossipMember, LogQuery, NodeControl, StatsTree } from '../../handlers/http/node-control.ts';
import type { NodeLog } from '../log/logger.ts';

export interface NodeControlParts {
  readonly version: string;
  readonly instanceId: string;
  readonly authenticationType: NodeControl['authenticationType'];
  /** Where others reach the node. */
  readonly host: string;
  readonly port: () => number;
  readonly isSecure: boolean;
  readonly priority: number;
  readonly options: () => readonly OptionView[];
  readonly startUpWork: () => StartUpWork | null;
  readonly stats: () => StatsTree;
  readonly metrics: NodeControl['metrics'];
  readonly reload: () => Promise<ReloadResult>;
  readonly audit: () => AuditView | null;
  readonly log: Pick<NodeLog, 'recent' | 'setLevel'>;
  readonly overview: () => Promise<OverviewView>;
  readonly history: NodeControl['history'];
  readonly webhooks: () => WebhooksView;
}

/** A single node, which leads from its start on. */
export class SingleNode implements NodeControl {
  readonly #parts: NodeControlParts;
  readonly #shutdown = Promise.withResolvers<string>();
  #open: Store | null = null;
  #epoch: LastEpoch | null = null;
  #priority: number;
  #isStopping = false;

  constructor(parts: NodeControlParts) {
    this.#parts = parts;
    this.#priority = parts.priority;
  }

  /** Where others reach the node. */
  get address(): NodeAddress {
    return { address: this.#parts.host, port: this.#parts.port() };
  }

  /** From now on the node leads. */
  opened(open: Store, epoch: LastEpoch): void {
    this.#open = open;
    this.#epoch = epoch;
  }

  stopping(): void {
    this.#isStopping = true;
  }

  /** Settles when a user has asked for the end of the process over HTTP, with what to log. */
  get shutdownAsked(): Promise<string> {
    return this.#shutdown.promise;
  }
  get version(): string {
    return this.#parts.version;
  }
  get instanceId(): string {
    return this.#parts.instanceId;
  }
  get authenticationType(): NodeControl['authenticationType'] {
    return this.#parts.authenticationType;
  }
  get options(): readonly OptionView[] {
    return this.#parts.options();
  }
  get state(): NodeState {
    return this.#isStopping ? 'ShuttingDown' : this.#open === null ? 'Initializing' : 'Leader';
  }

  member(): GossipMember {
    const { instanceId, host, port, isSecure } = this.#parts;
    const { checkpoints, lastCommitPosition } = this.#open!.status();
    const epoch = this.#epoch!;
    return {
      instanceId,
      state: this.state,
      host,
      port: port(),
      isSecure,
      lastCommitPosition,
      writerCheckpoint: checkpoints.writer,
      chaserCheckpoint: checkpoints.chaser,
      epochPosition: epoch.position,
      epochNumber: epoch.number,
      epochId: epoch.id,
      nodePriority: this.#priority,
    };
  }

  members(): readonly GossipMember[] {
    return [this.member()];
  }

  chunkProofs(): ChunkProofView | null {
    const proofs = this.#open?.status().proofs ?? null;
    return proofs === null
      ? null
      : {
          bytesUnproven: proofs.bytesUnproven,
          oldestProofSeconds: proofs.oldestProofAgeMs === null ? null : Math.floor(proofs.oldestProofAgeMs / 1_000),
        };
  }

  attributeIndexes(): readonly AttributeIndexDocument[] {
    return this.#open?.status().attributes ?? [];
  }

  get isStarting(): boolean {
    return this.#parts.startUpWork() !== null;
  }
  startUpWork(): StartUpWork | null {
    return this.#parts.startUpWork();
  }
  audit(): AuditView | null {
    return this.#parts.audit();
  }
  chunkMap(since: string | null): ChunkMapView {
    return this.#open!.chunkMap(since);
  }
  overview(): Promise<OverviewView> {
    return this.#parts.overview();
  }
  get history(): NodeControl['history'] {
    return this.#parts.history;
  }
  webhooks(): WebhooksView {
    return this.#parts.webhooks();
  }
  log(query: LogQuery): LogView {
    return this.#parts.log.recent(query);
  }
  setLogLevel(level: LogLineLevel): void {
    this.#parts.log.setLevel(level);
  }
  stats(): StatsTree {
    return this.#parts.stats();
  }
  metrics(accept: string | null): ReturnType<NodeControl['metrics']> {
    return this.#parts.metrics(accept);
  }
  shutdown(): void {
    this.#shutdown.resolve('POST /admin/shutdown');
  }
  reload(): Promise<ReloadResult> {
    return this.#parts.reload();
  }
  mergeIndexes(): string {
    return this.#open!.mergeIndexes();
  }
  setPriority(priority: number): void | Promise<void> {
    this.#priority = priority;
  }
  resign(): string | Promise<string> {
    return 'This is a single node: no other node could lead, so nothing changes.';
  }
}

/** Before this much of a phase has passed its rate says nothing. */
const RATE_AFTER_MS = 500;

/** How far the start of a node has come, for `/health/ready` and the metrics. */
export class Readiness {
  readonly #clock: Clock;
  readonly #startedMs: number;
  #phaseStartedMs: number;
  #firstBytes = 0;
  #progress: { readonly phase: string; readonly bytesDone: number; readonly bytesTotal: number } = {
    phase: 'opening',
    bytesDone: 0,
    bytesTotal: 0,
  };
  #isReady = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#phaseStartedMs = this.#startedMs;
  }

  /** What `openStore` tells as its `onProgress`. */
  update(progress: StartProgress): void {
    if (progress.phase !== this.#progress.phase) {
      this.#phaseStartedMs = this.#clock.monotonicMs();
      this.#firstBytes = progress.bytesDone;
    }
    this.#progress = progress;
  }

  /** The node serves from now on. */
  ready(): void {
    this.#isReady = true;
  }

  /** Null once the node serves. The time left is that of the present phase. */
  work(): StartUpWork | null {
    if (this.#isReady) return null;
    const now = this.#clock.monotonicMs();
    const { phase, bytesDone, bytesTotal } = this.#progress;
    const phaseMs = now - this.#phaseStartedMs;
    const done = bytesDone - this.#firstBytes;
    const canTell = phaseMs >= RATE_AFTER_MS && done > 0 && bytesTotal >= bytesDone;
    return {
      phase,
      bytesDone,
      bytesTotal,
      elapsedSeconds: (now - this.#startedMs) / 1_000,
      remainingSeconds: canTell ? ((bytesTotal - bytesDone) * phaseMs) / done / 1_000 : null,
    };
  }
}

/** The epoch in which the node leads, as `/gossip` shows it. */
export interface LastEpoch {
  /** Position of its record. */
  readonly position: number;
  readonly number: number;
  readonly id: string;
}

const STREAM = '$epoch-information';
export const NO_EPOCH: LastEpoch = { position: -1, number: -1, id: '00000000-0000-0000-0000-000000000000' };

/** The newest epoch of the log. Members that are zero are left out of its record. */
export async function lastEpoch(store: Pick<EventStore, 'readEvent'>): Promise<LastEpoch> {
  try {
    const { data } = await store.readEvent(STREAM, 'last');
    const {
      epochPosition = 0,
      epochNumber = 0,
      epochId = NO_EPOCH.id,
    } = JSON.parse(decodeText(data)) as { epochPosition?: number; epochNumber?: number; epochId?: string };
    return { position: epochPosition, number: epochNumber, id: epochId };
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'event_not_found')) return NO_EPOCH;
    throw error;
  }
}
