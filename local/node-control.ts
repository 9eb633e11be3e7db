import type { SkuaError } from '../core/errors.ts';
import type { OpenStore } from '../core/store.ts';
import type { GossipMember, NodeControl, NodeState, OptionView, ReloadResult, StartUpWork, StatsTree } from '../handlers/http/node-control.ts';
import type { LastEpoch } from './last-epoch.ts';

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
}

/** A single node, which leads from its start on. */
export class SingleNode implements NodeControl {
  readonly #parts: NodeControlParts;
  readonly #shutdown = Promise.withResolvers<string>();
  #open: OpenStore | null = null;
  #epoch: LastEpoch | null = null;
  #priority: number;
  #isStopping = false;

  constructor(parts: NodeControlParts) {
    this.#parts = parts;
    this.#priority = parts.priority;
  }

  /** From now on the node leads. */
  opened(open: OpenStore, epoch: LastEpoch): void {
    this.#open = open;
    this.#epoch = epoch;
  }

  stopping(): void {
    this.#isStopping = true;
  }

  /** Settles when somebody has asked for the end of the process over HTTP, with what to log. */
  get shutdownAsked(): Promise<string> { return this.#shutdown.promise; }
  /** Settles only when the store can't go on. */
  get failed(): Promise<SkuaError> { return this.#open!.failed; }
  get version(): string { return this.#parts.version; }
  get instanceId(): string { return this.#parts.instanceId; }
  get authenticationType(): NodeControl['authenticationType'] { return this.#parts.authenticationType; }
  get options(): readonly OptionView[] { return this.#parts.options(); }
  get state(): NodeState { return this.#isStopping ? 'ShuttingDown' : this.#open === null ? 'Initializing' : 'Leader'; }

  member(): GossipMember {
    const { instanceId, host, port, isSecure } = this.#parts;
    const { checkpoints, lastCommitPosition } = this.#open!.status();
    const epoch = this.#epoch!;
    return {
      instanceId, state: this.state, host, port: port(), isSecure, lastCommitPosition,
      writerCheckpoint: checkpoints.writer, chaserCheckpoint: checkpoints.chaser,
      epochPosition: epoch.position, epochNumber: epoch.number, epochId: epoch.id, nodePriority: this.#priority,
    };
  }

  startUpWork(): StartUpWork | null { return this.#parts.startUpWork(); }
  stats(): StatsTree { return this.#parts.stats(); }
  metrics(accept: string | null): ReturnType<NodeControl['metrics']> { return this.#parts.metrics(accept); }
  shutdown(): void { this.#shutdown.resolve('POST /admin/shutdown'); }
  reload(): Promise<ReloadResult> { return this.#parts.reload(); }
  mergeIndexes(): string { return this.#open!.mergeIndexes(); }
  setPriority(priority: number): void { this.#priority = priority; }
  resign(): string { return 'This is a single node: there is no other that could lead, so it goes on as it is.'; }
}
