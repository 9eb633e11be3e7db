import type { NodeAddress } from '../../ports/nodes.ts';
import { nodeKey } from '../../ports/nodes.ts';
import { BUCKET_SILENT_MAX_MS } from './api.ts';

/**
 * Whether and when a member stands for leader (rule 9). No safety hangs on it: of several that stand one commits the
 * next epoch. It keeps a leader that is there in its place, and lets the best member be the first. Times are monotonic,
 * in milliseconds.
 */
export interface Candidate {
  readonly node: NodeAddress;
  /** Number of the last commit in its copy. */
  readonly applied: number;
  readonly priority: number;
  readonly isReadOnlyReplica: boolean;
  /** It hears no leader. Of this member: for certain, since a connection that merely broke was tried again. */
  readonly hearsNone: boolean;
  /** Its copy has caught up and takes commits, it is not stopping, and the bucket answers it. */
  readonly canLead: boolean;
  /** Number of the newest epoch that it knows; -1 for none. */
  readonly epochNumber: number;
}

export interface OtherCandidate extends Candidate {
  /** When it said so itself. What is passed on by others may be of any age, and is no vote. */
  readonly heardFromMs: number;
}

export interface ElectionKnowledge {
  readonly clusterSize: number;
  readonly self: Candidate;
  readonly others: readonly OtherCandidate[];
  /** When the newest epoch came into the copy of this member; -Infinity when it was there at its start. */
  readonly epochSinceMs: number;
  /** Before this time it does not stand: it failed a moment ago. */
  readonly notBeforeMs: number;
  /** Until then it leaves the lead to others, for it has given it away; -Infinity when it has not. */
  readonly resignedUntilMs: number;
  /** What another said counts for so long. */
  readonly voteMs: number;
}

export type ElectionDecision =
  | { readonly kind: 'none'; readonly why: 'replica' | 'leader' | 'copy' | 'minority' }
  /** At a time that may have come. */
  | { readonly kind: 'stand'; readonly atMs: number };

/** What each place behind the best member waits longer: the best one's create is done by then, mostly. */
export const RANK_STEP_MS = 75;
/** No member waits longer than this for better ones. */
export const RANK_WAIT_MAX_MS = 600;
/** A member that has resigned waits so much longer: then no other member can lead, and it is better than none. */
export const RESIGNED_WAIT_MS = 5_000;

/** Half of the cluster and one more. */
export function majorityOf(clusterSize: number): number {
  return Math.floor(clusterSize / 2) + 1;
}

/** Those of whom it is known that they hear no leader, this member left out. */
function voters({ self, others, epochSinceMs, voteMs }: ElectionKnowledge, nowMs: number): OtherCandidate[] {
  return others.filter((other) => {
    if (other.isReadOnlyReplica || !other.hearsNone || nowMs - other.heardFromMs > voteMs) return false;
    // A member that has not met the newest epoch yet does not hear its leader therefore: that counts only when there
    // was time enough to meet it.
    return (
      other.epochNumber === self.epochNumber ||
      (other.epochNumber < self.epochNumber && nowMs - epochSinceMs > 2 * voteMs)
    );
  });
}

/** Remembers only since when a majority has heard no leader; everything else follows from what it is asked with. */
export class Election {
  #sinceMs: number | null = null;

  decide(knowledge: ElectionKnowledge, nowMs: number): ElectionDecision {
    const { self, clusterSize, notBeforeMs, resignedUntilMs } = knowledge;
    if (self.isReadOnlyReplica) return this.#none('replica');
    if (!self.hearsNone) return this.#none('leader');
    const others = voters(knowledge, nowMs);
    if (others.length + 1 < majorityOf(clusterSize)) return this.#none('minority');
    this.#sinceMs ??= nowMs;
    if (!self.canLead) return { kind: 'none', why: 'copy' };
    const better = others.filter((other) => other.canLead && isBetter(other, self)).length;
    const turnMs = this.#sinceMs + Math.min(better * RANK_STEP_MS, RANK_WAIT_MAX_MS);
    return { kind: 'stand', atMs: Math.max(turnMs, Math.min(resignedUntilMs, turnMs + RESIGNED_WAIT_MS), notBeforeMs) };
  }

  #none(why: 'replica' | 'leader' | 'minority'): ElectionDecision {
    this.#sinceMs = null;
    return { kind: 'none', why };
  }
}

/**
 * The order in which members take over: which has more of the log, then which is preferred, then by address, so that no
 * two are alike.
 */
export function isBetter(
  a: Pick<Candidate, 'applied' | 'priority' | 'node'>,
  b: Pick<Candidate, 'applied' | 'priority' | 'node'>,
): boolean {
  if (a.applied !== b.applied) return a.applied > b.applied;
  if (a.priority !== b.priority) return a.priority > b.priority;
  return nodeKey(a.node) < nodeKey(b.node);
}

/** A member whose bucket has not answered for long can't commit an epoch, and one that leads can't commit anything. */
export function bucketAnswers(bucketSilentMs: number): boolean {
  return bucketSilentMs < BUCKET_SILENT_MAX_MS;
}
