import type { NodeAddress } from './nodes.ts';

/** States as `/gossip` writes them. Those of the reference that a member of ours is never in are left out. */
export type MemberState =
  | 'Initializing'
  | 'CatchingUp'
  | 'Unknown'
  | 'Follower'
  | 'Leader'
  | 'ResigningLeader'
  | 'ReadOnlyReplica'
  | 'ReadOnlyLeaderless'
  | 'ShuttingDown'
  | 'Shutdown';

/** The newest epoch record of a log. */
export interface Epoch {
  readonly number: number;
  /** Of the record, in the log. */
  readonly position: number;
  /** UUID texts. */
  readonly id: string;
  readonly leaderInstanceId: string;
}

/**
 * What a member reports of itself. Others hear that entry from the member itself or from one another; the later
 * `sentMs` of one instance counts.
 */
export interface GossipEntry {
  readonly node: NodeAddress;
  /** UUID text of this run of the member. */
  readonly instanceId: string;
  /** By the member's own clock; only compared with other entries of the same instance. */
  readonly sentMs: number;
  readonly state: MemberState;
  readonly priority: number;
  readonly isReadOnlyReplica: boolean;
  /** Of the program. */
  readonly version: string;
  /** Number of the last commit in its replica, and the positions that go with it. */
  readonly applied: number;
  readonly lastCommitPosition: number;
  readonly writerCheckpoint: number;
  readonly chaserCheckpoint: number;
  /** The newest epoch in its replica; null for none. */
  readonly epoch: Epoch | null;
  /** Instance of the leader that it hears; null when it hears none. */
  readonly hears: string | null;
  /** For how long the bucket has not answered it; 0 while it answers. */
  readonly bucketSilentMs: number;
  /** Id of the scavenge that goes on there, or null. */
  readonly scavengeId: string | null;
}

/** What one member sends another about all that it knows. */
export interface Gossip {
  readonly logId: string;
  readonly sender: NodeAddress;
  /** The sender's own entry is the first. */
  readonly entries: readonly GossipEntry[];
}

export interface CommitsRequest {
  readonly logId: string;
  /** Number of the first commit that is wanted: the one behind the last that the asking member has applied. */
  readonly from: number;
  /** The member that asks. */
  readonly instanceId: string;
  /** How long the answer may take while there is none, in milliseconds. */
  readonly waitMs: number;
}

export type CommitsReply =
  /**
   * Commits from `from` on, one behind the other, each with its header (`core/shared-log/format/commit-object.ts`) and
   * carrying none. Empty when none came in time.
   */
  | { readonly kind: 'commits'; readonly bytes: Uint8Array }
  /** The answering member does not have them at hand any more (or does not lead): the bucket has them. */
  | { readonly kind: 'gone' };

/** Asks a member to take over the lead. */
export interface LeadRequest {
  readonly logId: string;
  /** The epoch that is to be succeeded. */
  readonly epochNumber: number;
}

/**
 * Calls from one member of a cluster to another. Every call rejects with `member_unreachable` where it is certain that
 * it did not arrive (refused, name unknown), with `member_silent` where that is not known (time over, connection
 * broken), and with `member_refused` (data: status, code) where the other one answered with an error.
 */
export interface Peers {
  gossip(to: NodeAddress, gossip: Gossip, timeoutMs: number): Promise<Gossip>;
  commits(to: NodeAddress, request: CommitsRequest, signal: AbortSignal): Promise<CommitsReply>;
  /** Resolves with the epoch under which the member leads now. */
  lead(to: NodeAddress, request: LeadRequest, timeoutMs: number): Promise<Epoch>;
}
