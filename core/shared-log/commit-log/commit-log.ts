import { u32 } from '../../base/bytes.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { CommitLog, SharedLog } from '../../ports/commit-log.ts';
import { OBJECT_PUT_BYTES_MAX } from '../../ports/object-store.ts';
import { CommitAttempt, type Outcome } from './commit-attempt.ts';
import { sinceMs, stampOf } from '../../ports/stamp.ts';
import { type Commit, COMMIT_HEADER_BYTES, encodeCommit } from '../format/commit-object.ts';
import { CARRY_BYTES_MAX, LOST_WAIT_FIRST_MS, LOST_WAIT_MAX_MS } from '../api.ts';
import type { Head } from '../head/head.ts';
import type { Refresher } from '../refresh/refresh.ts';

interface CommitLimits {
  readonly attemptsMax: number;
  readonly deadlineMs: number;
}

/**
 * The end of a log on object storage, to which others write too. A group is one object under the next number; whoever
 * creates that first has it. Rules and reasons: core/shared-log/README.md, "Rules of the instance".
 */
export class ObjectCommitLog implements CommitLog, SharedLog {
  readonly #head: Head;
  readonly #refresher: Refresher;
  readonly #limits: CommitLimits;
  readonly #writer: Uint8Array;
  /**
   * Start of the next chunk, where this one was ended and nothing has been written since; applies at this commit
   * number.
   */
  #skip: { readonly number: number; readonly start: number } | null = null;
  /** A commit whose outcome is not known. Its number must not get other bytes. */
  #unresolved: CommitAttempt | null = null;
  /**
   * The last commit could not be made: one line says so when it begins, and one when it ends, however many requests
   * meet it.
   */
  #isFailing = false;
  /** Lost since the last commit. */
  #losses = 0;
  /** Has the number of the group that was lost, and is taken in when that has been withdrawn. */
  #winner: Commit | null = null;

  constructor(head: Head, refresher: Refresher, limits: CommitLimits) {
    this.#head = head;
    this.#refresher = refresher;
    this.#limits = limits;
    this.#writer = head.world.ids.uuidBytes();
  }

  get shared(): SharedLog {
    return this;
  }
  get isLettingIn(): boolean {
    return this.#head.isTaking;
  }

  get end(): number {
    const { nextStart, known } = this.#head;
    return this.#skip?.number === known + 1 ? this.#skip.start : nextStart;
  }

  get capacity(): number {
    return this.#head.chunkSizeBytes;
  }

  get remaining(): number {
    const { end, capacity } = this;
    return Math.floor(end / capacity) * capacity + capacity - end;
  }

  ready(): Promise<void> | null {
    const head = this.#head;
    if (this.#unresolved !== null && head.known >= this.#unresolved.commit.number) this.#unresolved = null;
    if (this.#unresolved !== null) return this.#resolve(this.#unresolved);
    const ready = head.ready();
    if (ready !== null) return ready;
    // A write on what may be out of date would need the manifest afterwards, and then its outcome could be lost.
    if (head.mustLook || sinceMs(head.since, head.world.clock) > head.freshMs / 2) return this.#freshen();
    return null;
  }

  async #freshen(): Promise<void> {
    await this.#refresher.freshen();
    this.#head.checkRoom();
  }

  async append(group: Uint8Array, endsChunk = false, hasMarks = false): Promise<void> {
    const head = this.#head;
    // From here to `settled` nothing else moves the log, so that a group that fails is withdrawn from the log that it
    // was made for.
    head.beginCommit();
    const { ids, digests, clock } = head.world;
    const number = head.known + 1;
    const start = this.end;
    const commit = {
      number,
      writer: this.#writer,
      nonce: ids.uuidBytes(),
      start,
      end: start + group.length,
      endsChunk,
      hasMarks,
      records: group,
    };
    const alone = encodeCommit(commit, [], digests);
    const carried = head.carry.before(number, head.manifest.boundary);
    if (alone.length > OBJECT_PUT_BYTES_MAX)
      throw new SkuaError(
        'batch_too_large',
        `A commit can have at most ${OBJECT_PUT_BYTES_MAX} bytes, but these events need ${alone.length}: split them.`,
        { size: alone.length, limit: OBJECT_PUT_BYTES_MAX },
      );
    const attempt = this.#attempt(
      { ...commit, records: alone.subarray(COMMIT_HEADER_BYTES) },
      carried.length === 0 || alone.length + CARRY_BYTES_MAX > OBJECT_PUT_BYTES_MAX
        ? alone
        : encodeCommit(commit, carried, digests),
    );
    const startedAt = stampOf(clock);
    let outcome: Outcome;
    try {
      outcome = await attempt.run(clock.monotonicMs() + this.#limits.deadlineMs);
    } catch (error) {
      if (error instanceof SkuaError && error.code === 'commit_outcome_unknown') this.#unresolved = attempt;
      this.#failed(error);
      throw error;
    }
    this.#worked();
    if (outcome.kind === 'committed') {
      head.since = outcome.since;
      head.provedAt = startedAt;
      this.#losses = 0;
      const taken = head.takeOwn(attempt.commit, alone);
      if (taken !== undefined) await taken;
      return;
    }
    if (outcome.kind === 'unknowable') {
      head.isOutdated = true;
      throw unknowable(number);
    }
    this.#winner = outcome.winner.commit;
    throw new SkuaError(
      'commit_lost',
      `Commit ${number} belongs to another writer: everything must be checked again.`,
      { number },
    );
  }

  #failed(error: unknown): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    const { log, objects } = this.#head.world;
    const cause = isSkuaError(error, 'commit_outcome_unknown') ? error.cause : error;
    log.error('nothing can be committed', {
      place: objects.place,
      code: isSkuaError(cause) ? cause.code : 'io_error',
      reason: cause instanceof Error ? cause.message : String(cause),
    });
  }

  #worked(): void {
    if (!this.#isFailing) return;
    this.#isFailing = false;
    this.#head.world.log.info('commits work again', { place: this.#head.world.objects.place });
  }

  #attempt(commit: Commit, bytes: Uint8Array): CommitAttempt {
    const head = this.#head;
    const { objects, clock, digests } = head.world;
    return new CommitAttempt(
      { objects, clock, digests, freshMs: head.freshMs, look: () => head.look() },
      commit,
      bytes,
      head.since,
    );
  }

  publish(): void {
    this.#head.show();
  }

  confirm(): Promise<void> {
    return this.#refresher.refresh();
  }

  settled(): Promise<void> | null {
    const head = this.#head;
    const winner = this.#winner;
    this.#winner = null;
    if (winner !== null) return this.#letIn(winner);
    head.endCommit();
    return null;
  }

  async #letIn(winner: Commit): Promise<void> {
    try {
      const taken = this.#head.takeWinner(winner);
      if (taken !== undefined) await taken;
    } finally {
      this.#head.endCommit();
    }
    await this.#giveWay();
  }

  /** A random wait that grows, so that no writer is always the last; then what the others have committed meanwhile. */
  async #giveWay(): Promise<void> {
    const { ids, clock, objects } = this.#head.world;
    this.#losses++;
    if (this.#losses >= this.#limits.attemptsMax) {
      const attempts = this.#losses;
      this.#losses = 0;
      throw new SkuaError(
        'commit_contended',
        `Other writers to ${objects.place} were faster ${attempts} times in a row: try again in a second, or spread the writes over more logs.`,
        { attempts, limit: this.#limits.attemptsMax, retryAfterMs: 1_000 },
      );
    }
    if (this.#losses > 1) {
      const mostMs = Math.min(LOST_WAIT_FIRST_MS * 2 ** (this.#losses - 1), LOST_WAIT_MAX_MS);
      await clock.sleep(mostMs * (u32(ids.uuidBytes(), 0) / 4_294_967_296));
    }
    // What stands in the way shows itself to the next attempt.
    await this.#refresher.refresh().catch(ignore);
  }

  /** Finds out what became of a commit, by putting it there again, and takes in what is there then. */
  async #resolve(attempt: CommitAttempt): Promise<void> {
    const head = this.#head;
    const { number } = attempt.commit;
    let outcome: Outcome;
    try {
      outcome = await attempt.run(head.world.clock.monotonicMs() + this.#limits.deadlineMs);
    } catch (error) {
      // Reads may have found it meanwhile.
      if (head.known >= number) return;
      throw new SkuaError(
        'storage_unreachable',
        `The outcome of the previous write is still unknown, so nothing more is written: ${head.world.objects.place} does not answer. Try again when it does.`,
        { number },
        error,
      );
    }
    this.#unresolved = null;
    if (outcome.kind === 'committed') {
      if (head.known === number - 1) head.since = outcome.since;
      await head.take([attempt.commit]);
    } else if (outcome.kind === 'lost') await head.take([outcome.winner.commit]);
    else {
      head.isOutdated = true;
      await this.#freshen();
    }
  }

  /** The next commit starts at the next chunk. Nothing is written for that: where it starts says it. */
  async completeChunk(): Promise<void> {
    const { nextStart, known, chunkSizeBytes: size } = this.#head;
    this.#skip = { number: known + 1, start: Math.ceil(nextStart / size) * size };
    await this.#head.settleChunk();
  }
}

function unknowable(number: number): SkuaError {
  return new SkuaError(
    'commit_outcome_unknown',
    'It can no longer be determined whether the write is in the log, because the process was suspended for too long: send the same request again with the same event ids.',
    { number },
  );
}

function ignore(): void {}
