import { isSkuaError, SkuaError } from '../errors.ts';
import { sinceMs, type Stamp, stampOf } from '../object-log/instance/commit-attempt.ts';
import type { Clock } from '../ports/clock.ts';
import type { ScavengeStore } from '../scavenge/run-context.ts';
import type { AppendResult, EventStore, NewEvent } from '../streams/api.ts';
import type { ClusterMember, MemberLog, Membership } from './api.ts';
import { isCarried, type MemberAppend } from './member-append.ts';
import { afterDelay } from '../background.ts';

/** Appends at another member. */
export interface MemberAppends {
  /**
   * Appends as the system user, and resolves as `EventStore.append`. Rejects with the errors of an append, with `not_leader` where the other one does not
   * lead, with `member_unreachable` where the request did not arrive, and with `member_silent` where that is not known.
   */
  append(leader: ClusterMember, request: MemberAppend, timeoutMs: number): Promise<AppendResult>;
}

export interface MemberWritesParts {
  /** This member's own copy. */
  readonly store: Pick<EventStore, 'append'>;
  readonly membership: Pick<Membership, 'isLeader' | 'leader' | 'self' | 'lost' | 'newerEpoch'>;
  readonly log: Pick<MemberLog, 'epoch' | 'refresh' | 'waitForEnd'>;
  readonly appends: MemberAppends;
  readonly clock: Clock;
}

/** The leader gives up a commit whose outcome it can't find out after 20 s. */
const ANSWER_MS = 25_000;
/** For so long a leader is looked for that takes the write, and so old may one be at most that is decided anew: behind that the first may be forgotten. */
const DEADLINE_MS = 30_000;
/** Between two questions to a member that says that it does not lead. */
const ASK_AGAIN_MS = 200;
/** What is committed is answered when this member has it, or after this long. */
const APPLIED_MS = 5_000;
/** Reasons of failed calls that say that the process there is gone. */
const GONE: ReadonlySet<unknown> = new Set(['refused', 'broken']);
/** The leader has not written it, and somebody may soon. */
const NOT_TAKEN: ReadonlySet<string> = new Set(['member_unreachable', 'not_leader', 'not_ready', 'store_closed', 'write_expired']);

/**
 * What a member writes for itself: scavenge points, the history of its scavenges, its part of the audit. It goes to whoever leads, so that members do not fight
 * the leader for the numbers of commits (ARCHITECTURE.md, "The cluster", rule 13). Where nobody leads the member commits by itself. A write whose answer is
 * lost is repeated with the same event ids once a newer epoch is in the copy, and is in the log once.
 */
export class MemberWrites {
  readonly #parts: MemberWritesParts;

  constructor(parts: MemberWritesParts) {
    this.#parts = parts;
  }

  /** Errors: as `EventStore.append`, and `commit_outcome_unknown` where no leader answers and none follows. */
  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<AppendResult> {
    const { store, log, clock } = this.#parts;
    if (!isCarried(events)) return store.append(stream, expectedVersion, events);
    const begunAt = stampOf(clock);
    for (const untilMs = clock.monotonicMs() + DEADLINE_MS; ;) {
      const leader = this.#leader();
      // Nobody took it, or nobody is there to take it: this member may write as well as any.
      if (leader === null || clock.monotonicMs() >= untilMs) return store.append(stream, expectedVersion, events);
      const epoch = log.epoch?.number ?? -1;
      const atMs = leader.aheadMs == null ? null : clock.nowMs() + leader.aheadMs;
      const result = await this.#at(leader, { stream, expectedVersion, events, atMs }, epoch, begunAt, untilMs);
      if (result !== null) return result;
    }
  }

  #leader(): ClusterMember | null {
    const { membership } = this.#parts;
    const leader = membership.isLeader ? null : membership.leader();
    return leader?.instanceId === membership.self.instanceId ? null : leader;
  }

  /** Null where the leader has not taken it, and where what it did is settled by a newer epoch. */
  async #at(leader: ClusterMember, request: MemberAppend, epoch: number, begunAt: Stamp, untilMs: number): Promise<AppendResult | null> {
    const { membership, appends, clock, log } = this.#parts;
    try {
      const result = await appends.append(leader, request, ANSWER_MS);
      await this.#within(APPLIED_MS, (signal) => log.waitForEnd(result.position + 1, signal));
      return result;
    } catch (error) {
      if (isSkuaError(error) && NOT_TAKEN.has(error.code)) {
        if (GONE.has(error.data['reason'])) membership.lost(leader.instanceId);
        if (this.#leader()?.instanceId === leader.instanceId) await clock.sleep(ASK_AGAIN_MS);
        return null;
      }
      if (isSkuaError(error, 'member_silent')) {
        if (GONE.has(error.data['reason'])) membership.lost(leader.instanceId);
        const isSettled = await this.#within(Math.max(0, untilMs - clock.monotonicMs()), (signal) => membership.newerEpoch(epoch, signal));
        if (isSettled && sinceMs(begunAt, clock) <= DEADLINE_MS) return null;
        throw new SkuaError('commit_outcome_unknown', 'The leader of the cluster did not answer, so that it is not known whether this was written: it may be repeated with the same event ids.', { stream: request.stream }, error);
      }
      // Whoever lost to another writer looks at what that one wrote.
      if (isSkuaError(error, 'wrong_expected_version')) await log.refresh().catch(() => {});
      throw error;
    }
  }

  /** False when the time was over first. */
  async #within(ms: number, wait: (signal: AbortSignal) => Promise<boolean>): Promise<boolean> {
    const ending = new AbortController();
    const done = new AbortController();
    afterDelay(this.#parts.clock, ms, done.signal, () => ending.abort());
    try {
      return await wait(ending.signal);
    } finally {
      done.abort();
    }
  }
}

/**
 * What the scavenger of a member's copy works with: its points and its history are written as `MemberWrites` does, all else is its copy's. The chunk behind a
 * point ends by the flag of the commit that carries it, whoever wrote that.
 */
export function scavengeStoreOf(copy: ScavengeStore, writes: Pick<MemberWrites, 'append'>): ScavengeStore {
  return {
    append: (stream, expectedVersion, events, authorize) => (authorize === undefined ? writes.append(stream, expectedVersion, events) : copy.append(stream, expectedVersion, events, authorize)),
    appendInternal: (stream, expectedVersion, events, options) => (events.length > 0 && options === undefined ? writes.append(stream, expectedVersion, events) : copy.appendInternal(stream, expectedVersion, events, options)),
    completeChunk: (position) => copy.completeChunk(position),
    forgetTombstones: () => copy.forgetTombstones(),
    readStream: (stream, options) => copy.readStream(stream, options),
    streamInfo: (stream) => copy.streamInfo(stream),
  };
}
