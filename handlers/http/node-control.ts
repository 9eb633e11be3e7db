/** What the handlers need of the node that they run in, beyond its store. */

import type { AttributeIndexDocument } from '../documents/attribute-indexes.ts';
import type { ChunkMapView } from '../../core/log/api.ts';
import type {
  ActivityHistoryView,
  AuditView,
  ChunkProofView,
  GroupHistoryView,
  HistoryView,
  InfoDocument,
  LogLineLevel,
  LogView,
  MemberDocument,
  MemberOnlyMembers,
  NodeState,
  OptionView,
  OverviewView,
  ReloadResult,
  StartUpWork,
  WebhookHistoryView,
  WebhooksView,
} from '../documents/node.ts';

/** The node as `/gossip` shows it. */
export interface GossipMember extends Pick<
  MemberDocument,
  | 'instanceId'
  | 'state'
  | 'lastCommitPosition'
  | 'writerCheckpoint'
  | 'chaserCheckpoint'
  | 'epochPosition'
  | 'epochNumber'
  | 'epochId'
  | 'nodePriority'
> {
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  /**
   * What only members of a cluster differ in; left out of a single node, which is alive, votes, and tells of itself
   * now.
   */
  readonly asMember?: MemberOnlyMembers & {
    readonly isAlive: boolean;
    readonly isReadOnlyReplica: boolean;
    readonly version: string;
    /** When it was last heard of. */
    readonly heardMs: number;
  };
}

/** Levels of lines, the least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLineLevel[];

/** Which lines of the log are wanted. */
export interface LogQuery {
  readonly count: number;
  /** Of this level, and more severe ones. */
  readonly level: LogLineLevel;
  /** Those behind the line of this number, oldest first; null for the newest ones. */
  readonly since: number | null;
}

/** A tree of statistics, as deep as its keys have dashes. */
export type StatsTree = { readonly [key: string]: string | number | StatsTree };

/** The last 24 hours, as the node has kept them in memory. */
export interface NodeHistory {
  activity(): ActivityHistoryView;
  /** Of the metrics that the page shows at first: rates of counters and quantiles of histograms, by `name{labels}`. */
  metrics(): HistoryView;
  /** Null throughout for a connector, or a group, of which nothing is kept. */
  connector(id: string): WebhookHistoryView;
  group(stream: string, group: string): GroupHistoryView;
}

export interface NodeControl {
  readonly version: string;
  /** UUID of this run of the node. */
  readonly instanceId: string;
  readonly state: NodeState;
  /** `internal`, or `insecure` while security is off. */
  readonly authenticationType: InfoDocument['authentication']['type'];
  readonly options: readonly OptionView[];
  member(): GossipMember;
  /** All that this node knows, itself included. */
  members(): readonly GossipMember[];
  /** Until it has served for the first time. */
  readonly isStarting: boolean;
  /** Null while the node serves. */
  startUpWork(): StartUpWork | null;
  /** Null where there is nothing to prove, or not yet. */
  chunkProofs(): ChunkProofView | null;
  /** None where the node keeps no attribute indexes of its own. */
  attributeIndexes(): readonly AttributeIndexDocument[];
  /** Null where there is no audit. */
  audit(): AuditView | null;
  /** The files of the log; without the files where `since` is their version. */
  chunkMap(since: string | null): ChunkMapView;
  overview(): Promise<OverviewView>;
  readonly history: NodeHistory;
  webhooks(): WebhooksView;
  /** The last lines of the log. */
  log(query: LogQuery): LogView;
  /** Until the node is restarted, or its configuration loaded with another level. */
  setLogLevel(level: LogLineLevel): void;
  /** The statistics collected last. */
  stats(): StatsTree;
  /** The metrics in the format that suits `accept`. */
  metrics(accept: string | null): Promise<{ readonly contentType: string; readonly body: string }>;
  /** Begins to stop the process in good order. */
  shutdown(): void;
  /** Errors: `reload_failed` (data: file, reason): nothing was changed. */
  reload(): Promise<ReloadResult>;
  /** Merges index tables in the background, up to any level. Returns the id of the work. */
  mergeIndexes(): string;
  setPriority(priority: number): void | Promise<void>;
  /** What came of it, in words. */
  resign(): string | Promise<string>;
}
