import type { SkuaError } from '../base/errors.ts';
import type { NodeAddress } from '../ports/nodes.ts';
import type { Epoch, GossipEntry, MemberState } from '../ports/peers.ts';

export type { HeldWrite, Patience } from './patience/patience.ts';
export type { CarriedWrite, WriteOutcome, Writer } from './format/carried-writes.ts';

/**
 * The log as a member of a cluster has it: a copy on its own disk, fed by the bucket and by the leader. All that leads,
 * gossips or forwards knows the copy through this. Protocol: core/cluster/README.md.
 */
export interface MemberLog {
  /** UUID text of the store in the bucket. */
  readonly logId: string;
  /** Number of the last commit that is in the copy and visible to readers. */
  readonly applied: number;
  /** Position behind it: what readers see ends there. */
  readonly end: number;
  /** The newest epoch in the copy; null for none. */
  readonly epoch: Epoch | null;
  /** False until the copy has reached the end that the log had at its opening, and while it is opened again. */
  readonly isCaughtUp: boolean;
  /** Why commits can't get into the copy at the moment (full disk, failed sync); null while they can. */
  readonly trouble: SkuaError | null;
  /** For how long the bucket has not answered, in milliseconds; 0 while it does. */
  readonly bucketSilentMs: number;
  /** Bytes and commits that are known to be in the log and are not in the copy yet. */
  readonly lag: { readonly commits: number; readonly bytes: number };
  /** Called behind every epoch that enters the copy, in order, in the same step. */
  onEpoch(listener: (epoch: Epoch) => void): void;
  /** Called when something is applied; for progress that others wait for. */
  onApplied(listener: () => void): void;
  /**
   * Commits an epoch record that names this instance, if the newest one still has the number `after` (-1 for none) when
   * its turn comes. Rejects with `epoch_lost` otherwise, and as appends do.
   */
  lead(instanceId: string, after: number): Promise<Epoch>;
  /**
   * Until the signal ends it no commit of this member is begun: what it is to append waits, and what others commit is
   * taken in. Resolves when the commit under way has its outcome.
   */
  hold(signal: AbortSignal): Promise<void>;
  /** Takes in what others have committed: asks the bucket once. */
  refresh(): Promise<void>;
  /**
   * Resolves when it was proved, at most `ageMs` ago, that nothing had been committed beyond `applied`; asks the bucket
   * where the last proof is older.
   */
  confirmFresh(ageMs: number): Promise<void>;
  /**
   * Takes in commits as `CommitsReply` has them. What is not the next one, or is known, is passed over. Resolves with
   * `applied`.
   */
  takePushed(bytes: Uint8Array): Promise<number>;
  /**
   * The commits of the log from this number on as `CommitsReply` has them, up to `bytesMax` but at least one; empty
   * when there is none yet, null when they are not at hand.
   */
  recent(from: number, bytesMax: number): Uint8Array | null;
  /**
   * True when the commit with this number is in the log, as far as this member knows, and `recent` has it if anything
   * has; false when the signal came first.
   */
  waitForCommit(number: number, signal: AbortSignal): Promise<boolean>;
}

/** Which members are in the cluster and which one leads, as this member knows it. */
export interface Membership {
  readonly self: GossipEntry;
  /** That of `self`, which is made anew whenever it is asked for. */
  readonly instanceId: string;
  readonly state: MemberState;
  /** Members with a vote that the cluster is meant to have. */
  readonly clusterSize: number;
  /** All known members, this one included, ordered by address. */
  members(): readonly ClusterMember[];
  /**
   * The member that wrote the newest epoch, where it is heard and says that it leads, or wrote that epoch a moment ago;
   * null otherwise.
   */
  leader(): ClusterMember | null;
  /** This member leads: it wrote the newest epoch in its copy, and has not begun to resign. */
  readonly isLeader: boolean;
  /** Wall-clock time since which this member leads without a break; null while it does not. */
  readonly leadsSinceMs: number | null;
  /** Tells that the connection to this leader was refused or broken, which counts at once as not hearing it. */
  lost(instanceId: string): void;
  /** Resolves true when an epoch with a higher number is in the copy, false when the signal came first. */
  newerEpoch(than: number, signal: AbortSignal): Promise<boolean>;
  /** Called when state, leader or members change. */
  onChange(listener: () => void): void;
  setPriority(priority: number): Promise<void>;
  /** Gives the lead away (rule 10); resolves with what came of it, in words. A member that does not lead says so. */
  resign(): Promise<string>;
}

export interface ClusterMember extends GossipEntry {
  readonly isAlive: boolean;
  /** When it was last heard of, by this member's clock. */
  readonly heardMs: number;
  /**
   * How far its wall clock is ahead of this member's, as its last own word said, or less by what that took to come;
   * null before there was one.
   */
  readonly aheadMs?: number | null;
}

export function sameNode(a: NodeAddress, b: NodeAddress): boolean {
  return a.address === b.address && a.port === b.port;
}
