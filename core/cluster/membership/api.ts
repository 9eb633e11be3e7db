import type { SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Log } from '../../ports/log.ts';
import type { Meter } from '../../ports/meter.ts';
import type { NodeAddress } from '../../ports/nodes.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { CommitsReply, CommitsRequest, Epoch, Gossip, LeadRequest, Peers } from '../../ports/peers.ts';
import type { MemberLog, Membership } from '../api.ts';

/** What the membership of a cluster is made of (core/cluster/membership/README.md, rules 7 to 11). */
export interface MembershipParts {
  readonly copy: MemberLog;
  readonly peers: Peers;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  /** Id of the scavenge that goes on in the copy; asked for each gossip. */
  readonly scavengeId?: () => string | null;
  /** Positions for the gossip, where they are not the end of the copy. */
  readonly positions?: () => {
    readonly lastCommitPosition: number;
    readonly writerCheckpoint: number;
    readonly chaserCheckpoint: number;
  };
}

export interface MembershipOptions {
  /** Where the others reach this member. */
  readonly self: NodeAddress;
  /** UUID text of this run; drawn where it is left out. */
  readonly instanceId?: string;
  readonly clusterSize: number;
  readonly priority: number;
  readonly isReadOnlyReplica: boolean;
  /** Of the program. */
  readonly version: string;
  readonly gossipIntervalMs: number;
  readonly gossipTimeoutMs: number;
  readonly gossipAllowedDifferenceMs: number;
  readonly leaderElectionTimeoutMs: number;
  /** The longer of DeadMemberRemovalPeriodSec and AutoScavenge:NodeLostAfter. */
  readonly deadMemberRemovalMs: number;
  /** How often the objects are looked at by which members find each other; LOOK_MS where it is left out. */
  readonly lookMs?: number;
}

/** A member that takes part: what the others call, and its start and end. */
export interface RunningMembership extends Membership {
  /**
   * Makes the member known and meets the others; then it takes part by itself. Rejects with `address_in_use`,
   * and as the object store does; nothing goes on then.
   */
  start(): Promise<void>;
  /**
   * The begin of a stop: gives the lead away where another can take it within 2 s, and does not stand any more. It
   * still hears and forwards. Never rejects.
   */
  leave(): Promise<void>;
  /** `leave`, and then the end: the others hear of it. Never rejects. */
  close(): Promise<void>;
  /** The answer to `Peers.gossip`. Rejects with `other_log`, `address_in_use`, `bad_request`. */
  onGossip(gossip: Gossip): Promise<Gossip>;
  /**
   * The answer to `Peers.lead`: commits an epoch. Rejects with `other_log`, `not_ready`, `epoch_lost`, `bad_request`,
   * and as appends do.
   */
  onLead(request: LeadRequest): Promise<Epoch>;
  /**
   * The answer to `Peers.commits`: waits as long as is asked for, at most FEED_WAIT_MAX_MS. Rejects with `other_log`,
   * `bad_request`.
   */
  onCommits(request: CommitsRequest, signal: AbortSignal): Promise<CommitsReply>;
  /**
   * Why this member does not take part as it should (`address_in_use`): it is not ready then. Null when all is well.
   */
  readonly refusal: SkuaError | null;
}

/** Members that are in touch learn of others by gossip, so their objects are looked at seldom. */
export const LOOK_MS = 300_000;
/** Members that are kept in mind, this one included. */
export const MEMBERS_MAX = 64;
/** A leader whose bucket has not answered it for so long is not heard any more. */
export const BUCKET_SILENT_MAX_MS = 5_000;
/** For so long a member that gave the lead away leaves it to others. */
export const RESIGNED_MS = 60_000;
/** How long a leader that resigns waits for a successor, and one that stops. */
export const RESIGN_WAIT_MS = 5_000;
export const STOP_WAIT_MS = 2_000;
/** How long a request for commits may wait at the leader, and how long one that is not answered is waited for. */
export const FEED_WAIT_MAX_MS = 5_000;
export const FEED_SILENCE_MS = 1_000;
/** Bytes of commits in one answer, but for one commit that is longer. */
export const FEED_BYTES_MAX = 4_194_304;
