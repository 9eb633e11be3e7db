import { isSkuaError } from '../../base/errors.ts';
import type { GossipEntry } from '../../ports/peers.ts';
import { type MembershipParts, RESIGNED_MS } from './api.ts';
import { bucketAnswers, type Candidate, Election } from './election.ts';
import type { LeaderView } from './leader-view.ts';
import type { MemberView } from './view.ts';
import { background } from '../../base/background.ts';

/** What another says of the leader it hears counts for at least so long. */
const VOTE_LEAST_MS = 1_000;
const WAIT_FIRST_MS = 250;
const WAIT_MAX_MS = 5_000;

export interface CandidacyParts extends Pick<MembershipParts, 'copy' | 'clock' | 'log' | 'meter'> {
  readonly view: MemberView;
  /** An attempt has ended, however it did. */
  readonly onEnd: () => void;
  /** Another epoch was the next one: it is in the bucket. */
  readonly onLost: () => void;
}

/** Stands for leader when it is this member's turn: one attempt at a time. */
export class Candidacy {
  readonly #parts: CandidacyParts;
  readonly #election = new Election();
  #isCandidate = false;
  #notBeforeMs = -Infinity;
  #resignedUntilMs = -Infinity;
  #waitMs = WAIT_FIRST_MS;

  constructor(parts: CandidacyParts) {
    this.#parts = parts;
  }

  /** It gave the lead away, and leaves it to others for a while. */
  resigned(): void {
    this.#resignedUntilMs = this.#parts.clock.monotonicMs() + RESIGNED_MS;
  }

  /** There is a newer epoch: what failed before it says nothing about the next. */
  renew(): void {
    this.#waitMs = WAIT_FIRST_MS;
  }

  /** Stands where it is time to. Returns when to ask again; Infinity for not by time. */
  decide({ kind }: LeaderView, nowMs: number): number {
    const { view } = this.#parts;
    const { clusterSize, leaderElectionTimeoutMs } = view.options;
    const self = {
      ...candidate(view.entry()),
      hearsNone: kind === 'none' && view.stage === 'running',
      canLead: view.canLead,
    };
    const others = view.table.records().map(({ entry, heardFromMs }) => ({ ...candidate(entry), heardFromMs }));
    const decision = this.#election.decide(
      {
        clusterSize,
        self,
        others,
        epochSinceMs: view.epochSinceMs,
        notBeforeMs: this.#notBeforeMs,
        resignedUntilMs: this.#resignedUntilMs,
        voteMs: Math.max(VOTE_LEAST_MS, leaderElectionTimeoutMs),
      },
      nowMs,
    );
    if (decision.kind === 'none' || this.#isCandidate) return Infinity;
    if (decision.atMs > nowMs) return decision.atMs;
    background(this.#becomeLeader(view.epochNumber));
    return Infinity;
  }

  async #becomeLeader(after: number): Promise<void> {
    const { copy, clock, log, meter, view, onEnd, onLost } = this.#parts;
    this.#isCandidate = true;
    meter.count('eventstore_elections_count_total');
    try {
      await copy.lead(view.instanceId, after);
    } catch (error) {
      // Another member's epoch was the next one, mostly. Where none of that comes into the copy it is not tried in a
      // circle.
      this.#notBeforeMs = clock.monotonicMs() + this.#waitMs;
      this.#waitMs = Math.min(2 * this.#waitMs, WAIT_MAX_MS);
      if (isSkuaError(error, 'epoch_lost')) onLost();
      else log.warn('this member stood for leader and could not commit an epoch', { error: String(error) });
    } finally {
      this.#isCandidate = false;
      onEnd();
    }
  }
}

/** What an entry says that elections ask about. */
function candidate(entry: GossipEntry): Candidate {
  const { node, applied, priority, isReadOnlyReplica, state, hears, epoch, bucketSilentMs } = entry;
  return {
    node,
    applied,
    priority,
    isReadOnlyReplica,
    epochNumber: epoch?.number ?? -1,
    // One that starts has not heard any member yet, and one that stops takes no interest.
    hearsNone: hears === null && state !== 'Initializing' && state !== 'ShuttingDown' && state !== 'Shutdown',
    canLead: (state === 'Unknown' || state === 'Follower') && bucketAnswers(bucketSilentMs),
  };
}
