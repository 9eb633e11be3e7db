import { background } from '../../base/background.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { ErrorCode } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Meter } from '../../ports/meter.ts';
import type { ClusterMember, MemberLog, Membership } from '../api.ts';
import type { Patience } from '../patience/patience.ts';
import { changesOf, EndWaits, within } from './waits.ts';
import type { Changes } from './waits.ts';

/**
 * For so long a member looks for the leader that decides something, half of its patience at most, and for the epoch
 * that settles what became of it, in milliseconds.
 */
export const DEADLINE_MS = 5_000;
/**
 * What is repeatable, and was sent in an epoch that has been succeeded, gets so long to be answered by the old leader,
 * before it is decided anew.
 */
export const SUCCEEDED_MS = 250;
/**
 * A leader that is not heard any more, or that no longer leads, gets so long to answer what it was sent: it may only be
 * slow, and its connection be made anew.
 */
export const UNHEARD_MS = 4_000;
/** Where it has not, and no member has followed it in all that time, an epoch is waited for only so much longer. */
export const UNFOLLOWED_MS = 2_000;
/**
 * While the leader that is heard of and the newest epoch don't agree here, it is waited so long for the next word of
 * either; then this member decides.
 */
const UNSETTLED_MS = 1_000;
/** Between two questions to a member that says that it does not lead, where nothing changes meanwhile. */
const ASK_AGAIN_MS = 200;
/** An answer waits so long until this member has what the leader had written. */
export const OWN_WRITES_MS = 5_000;
/** What is for the leader alone waits so long for one, while there is none. */
export const LEADER_WAIT_MS = 2_000;
/** What a leader has proved at most so long ago counts as the newest state (rule 12). */
const FRESH_MS = 1_000;
/**
 * Why nothing was done by a member for another one, which may ask again, or decide by itself: another member leads, or
 * the copy of that member takes no writes.
 */
export const FOR_OTHERS: ReadonlySet<unknown> = new Set<ErrorCode>(['not_leader', 'no_leader', 'not_ready']);
/** Why a member was not reached where that says nothing of it: others were before this one. */
const WAITED: ReadonlySet<unknown> = new Set(['time', 'given-up']);

const REQUESTS = 'eventstore_forwarded_requests_total';
const DURATION = 'eventstore_forwarded_request_duration_seconds';

/** How an attempt ended, as the metric names it. */
type Outcome = 'answered' | 'not-leader' | 'unreachable' | 'silent' | 'here' | 'unknown';

export interface AskLeaderParts {
  readonly membership: Pick<Membership, 'instanceId' | 'isLeader' | 'leader' | 'lost' | 'newerEpoch' | 'onChange'>;
  readonly log: Pick<MemberLog, 'epoch' | 'end' | 'onEpoch' | 'onApplied' | 'confirmFresh'>;
  readonly patience: Patience;
  readonly clock: Clock;
  readonly meter: Meter;
}

/** What is to be decided elsewhere. */
export interface Question<T> {
  /** It names ids of events, so that where no answer comes it may be decided anew. */
  readonly isRepeatable: boolean;
  /**
   * Gives up what has waited for too long. `asked`: what it fails with, where a leader was given it and has not
   * answered. Throws where nothing is left to ask.
   */
  expire(asked: ((cause: unknown) => SkuaError) | null): void;
  /**
   * The answer, with the end of the leader's log; null where nothing was decided. Rejects with `member_unreachable` and
   * `member_silent` as the calls of members do.
   */
  send(leader: ClusterMember, epoch: number, signal: AbortSignal): Promise<Answered<T> | null>;
}

export interface Answered<T> {
  readonly answer: T;
  readonly logEnd: number;
}

/** What was sent to a leader in one epoch of its, and what ends the waiting for the answers. */
interface Sent {
  readonly instanceId: string;
  readonly repeatable: AbortController;
  readonly others: AbortController;
  isUnheard: boolean;
}

/** How a member has decided what another one is to decide (core/cluster/README.md, rules 12 and 13). */
export class AskLeader {
  readonly #parts: AskLeaderParts;
  readonly #changes: Changes;
  readonly #ends: EndWaits;
  /** By the epoch in which it was sent. */
  readonly #sent = new Map<number, Sent>();

  constructor(parts: AskLeaderParts) {
    this.#parts = parts;
    const { membership, log, clock } = parts;
    this.#changes = changesOf(membership, log, clock);
    this.#ends = new EndWaits(log, clock);
    log.onEpoch(({ number }) => background(this.#succeeded(number)));
    membership.onChange(() => this.#listen());
  }

  /**
   * The member that decides what is not decided here; null where this one leads, or none: then each member commits by
   * itself.
   */
  get leader(): ClusterMember | null {
    const { membership } = this.#parts;
    if (membership.isLeader) return null;
    const leader = membership.leader();
    return leader === null || leader.instanceId === membership.instanceId ? null : leader;
  }

  /**
   * The member that leads, for what is for the leader alone; null where that is this one. What it reads is then the
   * newest state (`isRead`); writes prove by themselves that they were decided by that. Errors: `no_leader`.
   */
  async leaderElsewhere(isRead: boolean): Promise<ClusterMember | null> {
    const { membership, log, clock } = this.#parts;
    for (const untilMs = clock.monotonicMs() + LEADER_WAIT_MS; ;) {
      if (membership.isLeader) {
        if (isRead) await log.confirmFresh(FRESH_MS);
        return null;
      }
      const { leader } = this;
      if (leader !== null) return leader;
      if (!(await this.#changes.next(untilMs)))
        throw new SkuaError(
          'no_leader',
          'The cluster has no leader at the moment. Try again in a few seconds, or leave out the header that requires the leader: then any member answers.',
        );
    }
  }

  /**
   * The answer of whichever member leads, once this member shows what that one had written; null where nobody has
   * decided anything and this member is to. Errors: `commit_outcome_unknown`.
   */
  async decided<T>(question: Question<T>): Promise<T | null> {
    const { log, clock, patience, meter } = this.#parts;
    const startMs = clock.monotonicMs();
    // A leader was given it and has not answered: it may be in the log.
    let isOpen = false;
    for (const untilMs = startMs + Math.min(DEADLINE_MS, patience.limitMs / 2); ;) {
      question.expire(isOpen ? (cause) => this.#unknown(cause) : null);
      const { leader } = this;
      const { epoch } = log;
      // It was refused by all that were asked, if any: nothing has happened, and members commit by themselves.
      if (leader === null || epoch === null || clock.monotonicMs() >= untilMs) break;
      // A member that does not hold the newest epoch here could only refuse: of one of the two this member hears in a
      // moment.
      if (epoch.leaderInstanceId !== leader.instanceId) {
        if (!(await this.#changes.next(Math.min(untilMs, clock.monotonicMs() + UNSETTLED_MS)))) break;
        continue;
      }
      const answered = await this.#asked(question, leader, epoch.number);
      if (typeof answered === 'object') {
        const { answer, logEnd } = answered;
        if (log.end < logEnd) await this.#ends.next(logEnd, OWN_WRITES_MS);
        this.#count('answered');
        meter.observe(DURATION, (clock.monotonicMs() - startMs) / 1_000);
        return answer;
      }
      isOpen ||= answered === 'settled';
      if (this.leader?.instanceId === leader.instanceId && log.epoch?.number === epoch.number)
        await this.#changes.next(Math.min(untilMs, clock.monotonicMs() + ASK_AGAIN_MS));
    }
    this.#count('here');
    return null;
  }

  /**
   * The answer of this leader; or that it has certainly decided nothing, or that a newer epoch has settled what it has.
   * Errors: `commit_outcome_unknown`.
   */
  async #asked<T>(
    { isRepeatable, send }: Question<T>,
    leader: ClusterMember,
    epoch: number,
  ): Promise<Answered<T> | 'undecided' | 'settled'> {
    const { membership } = this.#parts;
    try {
      const { repeatable, others } = this.#sentTo(leader, epoch);
      const answered = await send(leader, epoch, (isRepeatable ? repeatable : others).signal);
      if (answered !== null) return answered;
      this.#count('not-leader');
    } catch (error) {
      if (isSkuaError(error, 'member_unreachable')) {
        this.#count('unreachable');
        if (!WAITED.has(error.data.reason)) membership.lost(leader.instanceId);
      } else if (isSkuaError(error, 'member_silent')) {
        this.#count('silent');
        if (error.data.reason === 'broken') membership.lost(leader.instanceId);
        if (
          !isRepeatable ||
          !(await this.#isSettled(epoch, error.data.reason === 'given-up' ? UNFOLLOWED_MS : DEADLINE_MS))
        )
          throw this.#unknown(error);
        return 'settled';
      } else throw error;
    }
    return 'undecided';
  }

  #sentTo({ instanceId }: ClusterMember, epoch: number): Sent {
    let sent = this.#sent.get(epoch);
    if (sent === undefined) {
      sent = { instanceId, repeatable: new AbortController(), others: new AbortController(), isUnheard: false };
      this.#sent.set(epoch, sent);
    }
    return sent;
  }

  /** A newer epoch is in the log: what an older leader has not decided by now it will not decide any more. */
  async #succeeded(epoch: number): Promise<void> {
    if (this.#sent.size === 0) return;
    await this.#parts.clock.sleep(SUCCEEDED_MS);
    const { leader } = this;
    for (const [sentIn, sent] of this.#sent) {
      if (sentIn >= epoch) continue;
      sent.repeatable.abort();
      // The same member may lead on under a newer one.
      if (sent.instanceId === leader?.instanceId) this.#sent.delete(sentIn);
    }
    this.#listen();
  }

  /** The member that leads, as far as is heard, has changed. */
  #listen(): void {
    const { leader } = this;
    for (const [epoch, sent] of this.#sent)
      if (!sent.isUnheard && sent.instanceId !== leader?.instanceId) background(this.#unheard(epoch, sent));
  }

  /**
   * A leader that stands still answers nothing, and its connections do not break: no caller waits for it longer than it
   * takes to be sure of that.
   */
  async #unheard(epoch: number, sent: Sent): Promise<void> {
    sent.isUnheard = true;
    await this.#parts.clock.sleep(UNHEARD_MS);
    sent.isUnheard = false;
    if (this.leader?.instanceId === sent.instanceId) return;
    if (this.#sent.get(epoch) === sent) this.#sent.delete(epoch);
    sent.repeatable.abort();
    sent.others.abort();
  }

  /**
   * Whether it is settled what a leader of this epoch has decided: this member has a newer epoch, and with it all that
   * came before.
   */
  #isSettled(epoch: number, ms: number): Promise<boolean> {
    return within(this.#parts.clock, ms, (signal) => this.#parts.membership.newerEpoch(epoch, signal));
  }

  #unknown(cause: unknown): SkuaError {
    this.#count('unknown');
    return new SkuaError(
      'commit_outcome_unknown',
      'The leader did not answer, so it is not known whether the request was carried out: check, or send the same request again with the same event ids.',
      {},
      cause,
    );
  }

  #count(outcome: Outcome): void {
    this.#parts.meter.count(REQUESTS, 1, { outcome });
  }
}
