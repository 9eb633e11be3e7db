import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CommitsReply, CommitsRequest, Peers } from '../../ports/peers.ts';
import type { MemberLog } from '../api.ts';
import { WakeableSleep } from './wakeable-sleep.ts';
import { FEED_BYTES_MAX, FEED_SILENCE_MS, FEED_WAIT_MAX_MS, MEMBERS_MAX } from './api.ts';
import type { MemberRecord } from './member-table.ts';
import { background } from '../../base/background.ts';

/**
 * How long a request for commits waits at the leader: so its answer is a sign of life well before it counts as silent.
 */
const FEED_WAIT_MS = 400;
/** An empty answer that comes sooner is waited out: no member is asked in a circle. */
const EMPTY_LEAST_MS = 20;
const FAILURE_WAIT_FIRST_MS = 50;
/**
 * How often the bucket is asked where no leader sends anything, and how old the proof of a leader may grow that nobody
 * else commits.
 */
const POLL_MS = 1_000;

export interface FeedParts {
  readonly copy: MemberLog;
  readonly peers: Peers;
  readonly clock: Clock;
  readonly selfId: string;
  /** The member to be fed by; null when no member leads. */
  readonly source: () => MemberRecord | null;
  readonly isLeading: () => boolean;
  readonly onHeard: (instanceId: string) => void;
  /** The connection to the leader was refused or broke. */
  readonly onLost: (instanceId: string) => void;
}

/**
 * Brings what others commit into the copy: from the leader by long polls, from the bucket where none answers (rule 11).
 */
export class Feed {
  readonly #parts: FeedParts;
  readonly #alarm: WakeableSleep;
  /** The question to the bucket that is under way, and whether another is to follow it. */
  #asking: { again: boolean } | null = null;
  #from: { readonly instanceId: string; readonly ending: AbortController } | null = null;
  #polledMs = -Infinity;

  constructor(parts: FeedParts) {
    this.#parts = parts;
    this.#alarm = new WakeableSleep(parts.clock);
  }

  /** The leader may be another one: what is waited for at the old one is not any more. */
  wake(): void {
    if (this.#from !== null && this.#parts.source()?.entry.instanceId !== this.#from.instanceId)
      this.#from.ending.abort();
    this.#alarm.ring();
  }

  /** Something is known to be in the bucket: it is asked at once, or once more. */
  poll(): void {
    this.#ask(async () => this.#parts.copy.refresh());
  }

  async run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      const { isLeading, source, clock } = this.#parts;
      const from = isLeading() ? null : source();
      if (from === null) {
        // A leader hears of what functions, and members without it, have committed from no other member.
        const { copy } = this.#parts;
        this.#ask(async () => (isLeading() ? copy.confirmFresh(POLL_MS) : copy.refresh()));
        await this.#alarm.sleep(POLL_MS, signal);
        failures = 0;
        continue;
      }
      const startMs = clock.monotonicMs();
      this.#askWhetherItAnswers();
      const outcome = await this.#fetch(from, signal);
      if (signal.aborted) return;
      if (outcome === 'fed') failures = 0;
      else if (outcome === 'nothing') await this.#alarm.sleep(EMPTY_LEAST_MS - (clock.monotonicMs() - startMs), signal);
      else {
        this.poll();
        await this.#alarm.sleep(Math.min(FAILURE_WAIT_FIRST_MS * 2 ** failures++, POLL_MS), signal);
      }
    }
  }

  /** A follower has no other reason to ask a bucket that was silent, and would think it silent for ever. */
  #askWhetherItAnswers(): void {
    const { copy, clock } = this.#parts;
    if (copy.bucketSilentMs === 0 || clock.monotonicMs() - this.#polledMs < POLL_MS) return;
    if (this.#asking === null) this.poll();
  }

  /**
   * Asks the bucket, once at a time. It is not waited for: a bucket that hangs does not keep commits of a leader away
   * that comes back.
   */
  #ask(ask: () => Promise<void>): void {
    if (this.#asking !== null) {
      this.#asking.again = true;
      return;
    }
    const asking = { again: false };
    this.#asking = asking;
    background(
      (async () => {
        do {
          asking.again = false;
          this.#polledMs = this.#parts.clock.monotonicMs();
          // What fails shows in `bucketSilentMs` and `trouble` of the copy, and is tried again in a second.
          await ask().catch(() => {
            asking.again = false;
          });
        } while (asking.again);
        this.#asking = null;
      })(),
    );
  }

  async #fetch({ entry }: MemberRecord, signal: AbortSignal): Promise<'fed' | 'nothing' | 'failed'> {
    const { copy, peers, clock, selfId, onHeard, onLost } = this.#parts;
    const ending = new AbortController();
    const over = AbortSignal.any([ending.signal, signal]);
    // With a reason of its own, none has to be made up with its stack.
    const limit = clock.sleep(FEED_SILENCE_MS, over).then(() => {
      ending.abort(null);
    });
    this.#from = { instanceId: entry.instanceId, ending };
    const wanted = copy.applied + 1;
    try {
      const reply = await peers.commits(
        entry.node,
        { logId: copy.logId, from: wanted, instanceId: selfId, waitMs: FEED_WAIT_MS },
        over,
      );
      if (reply.kind === 'gone') return 'failed';
      // Only the member that leads answers so: an instance that took the place of a leader which is gone does not have
      // this answer.
      onHeard(entry.instanceId);
      if (reply.bytes.length === 0) return 'nothing';
      if ((await copy.takePushed(reply.bytes)) < wanted) return 'failed';
      return 'fed';
    } catch (error) {
      // An end that was called for here says nothing about the connection.
      if (!over.aborted && (isSkuaError(error, 'member_unreachable') || isSkuaError(error, 'member_silent')))
        onLost(entry.instanceId);
      return 'failed';
    } finally {
      this.#from = null;
      ending.abort(null);
      await limit;
    }
  }
}

/** The other side: hands commits to followers, and remembers how far each of them is. */
export class FeedServer {
  readonly #copy: MemberLog;
  readonly #clock: Clock;
  readonly #isLeading: () => boolean;
  readonly #waiting = new Map<string, AbortController>();
  /** Number of the last commit that each has applied. */
  readonly #progress = new Map<string, number>();

  constructor(copy: MemberLog, clock: Clock, isLeading: () => boolean) {
    this.#copy = copy;
    this.#clock = clock;
    this.#isLeading = isLeading;
  }

  /** Number of the last commit that the follower has applied, as it said itself; null when it has not asked. */
  progressOf(instanceId: string): number | null {
    return this.#progress.get(instanceId) ?? null;
  }

  /** No member leads here any more, or this member stops: what waits is sent to the bucket. */
  release(): void {
    for (const waiting of this.#waiting.values()) waiting.abort();
    this.#progress.clear();
  }

  async serve({ logId, from, instanceId, waitMs }: CommitsRequest, signal: AbortSignal): Promise<CommitsReply> {
    if (logId !== this.#copy.logId) throw otherLog(this.#copy.logId, logId);
    if (!this.#isLeading()) return { kind: 'gone' };
    this.#note(instanceId, from - 1);
    // A follower asks one thing at a time: what it asked before has lost its connection.
    this.#waiting.get(instanceId)?.abort();
    const present = this.#copy.recent(from, FEED_BYTES_MAX);
    if (present === null) return { kind: 'gone' };
    if (present.length > 0) return { kind: 'commits', bytes: present };
    if (this.#waiting.size >= MEMBERS_MAX) return { kind: 'gone' };
    const ending = new AbortController();
    this.#waiting.set(instanceId, ending);
    const over = AbortSignal.any([ending.signal, signal]);
    const limit = this.#clock.sleep(Math.min(waitMs, FEED_WAIT_MAX_MS), over).then(() => {
      ending.abort(null);
    });
    try {
      await this.#copy.waitForCommit(from, over);
      const bytes = this.#isLeading() ? this.#copy.recent(from, FEED_BYTES_MAX) : null;
      return bytes === null ? { kind: 'gone' } : { kind: 'commits', bytes };
    } finally {
      ending.abort(null);
      if (this.#waiting.get(instanceId) === ending) this.#waiting.delete(instanceId);
      await limit;
    }
  }

  #note(instanceId: string, applied: number): void {
    this.#progress.delete(instanceId);
    this.#progress.set(instanceId, applied);
    if (this.#progress.size > MEMBERS_MAX) this.#progress.delete(this.#progress.keys().next().value!);
  }
}

export function otherLog(here: string, there: string): SkuaError {
  return new SkuaError(
    'other_log',
    `A member asked about the log ${there}, but this member belongs to the log ${here}: two clusters share an address, or a member uses the storage of another cluster.`,
    { logId: here, other: there },
  );
}
