import { equalBytes } from '../../base/bytes.ts';
import { type ErrorCode, isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { sinceMs, type Stamp, stampOf } from '../../ports/stamp.ts';
import { UNDECIDED_WAIT_FIRST_MS, UNDECIDED_WAIT_MAX_MS } from '../api.ts';
import { type Commit, type CommitObject, decodeCommitObject } from '../format/commit-object.ts';
import { commitKey } from '../format/object-keys.ts';
import type { Look } from '../head/head.ts';

interface AttemptWorld {
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly digests: Digests;
  readonly freshMs: number;
  /** Asks for the newest manifest. */
  look(): Promise<Look>;
}

export type Outcome =
  /** It is in the log. No commit behind it had been dropped at `since`. */
  | { readonly kind: 'committed'; readonly since: Stamp }
  /** Another one has the number. */
  | { readonly kind: 'lost'; readonly winner: CommitObject; readonly since: Stamp }
  /** The log has gone on so far that the number says nothing any more. */
  | { readonly kind: 'unknowable' };

type Reply =
  | { readonly kind: 'created'; readonly startedAt: Stamp }
  | { readonly kind: 'ours' }
  | { readonly kind: 'other'; readonly object: CommitObject }
  | { readonly kind: 'gone' };

/**
 * Errors that leave open whether the request had its effect, as one does that is no error of the store's. All others
 * mean that it had none.
 */
const UNDECIDED: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['outcome_unknown', 'aborted']);

/**
 * One commit on its way into the log: the same bytes at the same number until its outcome is known (rules 1, 2 and 4).
 * A request whose reply was lost may still take effect later, so no other bytes may be put at the number meanwhile.
 */
export class CommitAttempt {
  readonly commit: Commit;
  readonly #world: AttemptWorld;
  readonly #key: string;
  readonly #bytes: Uint8Array;
  /** At this time no number from this one on had been dropped. */
  #since: Stamp;
  /** Start of the first request. */
  #firstAt: Stamp | null = null;
  #isUndecided = false;

  constructor(world: AttemptWorld, commit: Commit, bytes: Uint8Array, since: Stamp) {
    this.#world = world;
    this.commit = commit;
    this.#key = commitKey(commit.number);
    this.#bytes = bytes;
    this.#since = since;
  }

  /**
   * Rejects with `commit_outcome_unknown` when that is not known by the monotonic time `untilMs`, and may then be run
   * again; with another error when nothing was written.
   */
  async run(untilMs: number): Promise<Outcome> {
    const { clock, objects } = this.#world;
    for (let waitMs = UNDECIDED_WAIT_FIRST_MS; ; waitMs = Math.min(2 * waitMs, UNDECIDED_WAIT_MAX_MS)) {
      let cause: unknown;
      try {
        return await this.#judge(await this.#ask());
      } catch (error) {
        if (!this.#isUndecided && isSkuaError(error) && !UNDECIDED.has(error.code)) throw error;
        this.#isUndecided = true;
        cause = error;
      }
      if (clock.monotonicMs() >= untilMs) {
        throw new SkuaError(
          'commit_outcome_unknown',
          `It is not known whether the write is in the log: ${objects.place} did not answer. Send the same request again with the same event ids.`,
          { key: this.#key, number: this.commit.number },
          cause,
        );
      }
      await clock.sleep(waitMs);
    }
  }

  async #ask(): Promise<Reply> {
    const { objects, clock, digests } = this.#world;
    const startedAt = stampOf(clock);
    this.#firstAt ??= startedAt;
    const outcome = await objects.create(this.#key, this.#bytes);
    // From here on an error must not look as if nothing had been written: a caller that is told that the number is
    // taken may have taken it, where the reply was lost below the store.
    this.#isUndecided = true;
    if (outcome === 'created') return { kind: 'created', startedAt };
    const there = await objects.get(this.#key);
    if (there === null) return { kind: 'gone' };
    const object = decodeCommitObject(this.#key, this.commit.number, there, digests);
    return equalBytes(object.commit.nonce, 0, this.commit.nonce, 0, 16) ? { kind: 'ours' } : { kind: 'other', object };
  }

  /**
   * A reply counts while no object can have been removed since its number was proved free; after that the newest
   * manifest decides.
   */
  async #judge(reply: Reply): Promise<Outcome> {
    const { clock, freshMs } = this.#world;
    const isFresh = sinceMs(this.#since, clock) <= freshMs;
    if (isFresh && reply.kind !== 'gone')
      return this.#outcomeOf(reply, reply.kind === 'created' ? reply.startedAt : this.#firstAt!);
    const { boundary, at } = await this.#world.look();
    // It may have won long ago, and have been removed since; the same holds for one that was refused.
    if (boundary > this.commit.number) return { kind: 'unknowable' };
    this.#since = at;
    if (reply.kind === 'gone')
      throw new SkuaError(
        'log_corrupt',
        `The commit object ${this.#key} existed and is gone, but no manifest includes it. Restore it from a version or a backup of the bucket.`,
        { key: this.#key, offset: 0 },
      );
    return this.#outcomeOf(reply, at);
  }

  #outcomeOf(reply: Exclude<Reply, { readonly kind: 'gone' }>, provenAt: Stamp): Outcome {
    if (reply.kind !== 'other') return { kind: 'committed', since: provenAt };
    return { kind: 'lost', winner: reply.object, since: this.#since };
  }
}
