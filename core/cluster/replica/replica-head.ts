import { brokenInvariant, isSkuaError, SkuaError } from '../../base/errors.ts';
import type { StreamIndex } from '../../index/index.ts';
import type { TransactionLog } from '../../log/api.ts';
import type { ObjectWorld } from '../../shared-log/api.ts';
import { type Commit, encodeCommit } from '../../shared-log/format/commit-object.ts';
import type { Stamp } from '../../ports/stamp.ts';
import type { LastCommit } from '../../shared-log/head/head.ts';
import { Head, whyNotInLog } from '../../shared-log/head/head.ts';
import { newestManifestNumber, type ObjectManifest } from '../../shared-log/format/manifest.ts';
import { ReadRecords } from '../../streams/committed/committed.ts';
import { RecentCommits } from './recent-commits.ts';

/** Records that are appended to the copy with one sync. */
const BATCH_BYTES_MAX = 4_194_304;
/** An answer waits this long for the copy to take in what is committed. */
const APPLY_WAIT_MS = 5_000;
const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 1_000;

/** What is kept of the log in the copy's directory. */
export interface ReplicaParts {
  readonly log: TransactionLog;
  readonly index: StreamIndex;
}

/** Where a copy stands in the log. */
export interface ReplicaLocation {
  /** Number of the commit with which it ends. */
  readonly known: number;
  /** Where the next one starts. */
  readonly nextStart: number;
  /** That commit, where it is not in files of the bucket yet. */
  readonly last: LastCommit | null;
}

/** Told of what happens to the copy. */
export interface ReplicaListener {
  /** A commit of this member is in the log, and is given to others while it enters the copy. */
  committed(): void;
  /** Readers see the commits up to this number. */
  applied(number: number): void;
  /** The copy has to be opened again: it can't take in what comes next, or its writer has stopped. */
  mustReopen(error: SkuaError): void;
  /** Why this member may commit nothing, whatever its copy could take; null where it may. */
  refusal(): SkuaError | null;
}

/**
 * The head of a member of a cluster: a copy of the log on its own disk. Every commit enters it in one way: at exactly
 * its position, by the code of a single node, one sync a batch; then, in one step, index, existence filter, states,
 * ids, and the end that readers see.
 */
export class ReplicaHead extends Head {
  readonly recent = new RecentCommits();
  readonly #copy: ReplicaParts;
  readonly #read: ReadRecords;
  readonly #on: ReplicaListener;
  #manifest: ObjectManifest;
  #known: number;
  #nextStart: number;
  /** The last commit in the copy, where it came through here. */
  #last: LastCommit | null;
  /** The last one that is known, on its way into the copy too. */
  protected last: LastCommit | null;
  /** Readers see the log up to this commit. */
  #applied: number;
  #seen: number;
  #seenEnd: number;
  #applying: Promise<void> | null = null;
  /** No commit is begun before it resolves. */
  #held: Promise<void> | null = null;
  #trouble: SkuaError | null = null;
  #isClosed = false;

  /** `known`: the number of the commit with which the copy ends; `nextStart`: where the one behind it starts. */
  constructor(
    world: ObjectWorld,
    freshMs: number,
    copy: ReplicaParts,
    at: { readonly manifest: ObjectManifest; readonly stamp: Stamp } & ReplicaLocation,
    on: ReplicaListener,
  ) {
    super(world, freshMs, at.stamp);
    this.#copy = copy;
    this.#read = new ReadRecords(copy.index.hasher);
    this.#on = on;
    this.#manifest = at.manifest;
    this.#last = this.last = at.last;
    this.#known = this.#applied = this.#seen = at.known;
    this.#nextStart = this.#seenEnd = at.nextStart;
  }

  get known(): number {
    return this.#known;
  }
  get nextStart(): number {
    return this.#nextStart;
  }
  get manifest(): ObjectManifest {
    return this.#manifest;
  }
  get applied(): number {
    return this.#applied;
  }
  get trouble(): SkuaError | null {
    return this.#trouble;
  }
  /** Commits and bytes that are known to be in the log, and are not in the copy. */
  get lag(): { readonly commits: number; readonly bytes: number } {
    return {
      commits: Math.max(0, this.#seen - this.#applied),
      bytes: Math.max(0, this.#seenEnd - this.#copy.log.table.end),
    };
  }

  /** The tail lies on the disk, whatever its length. */
  checkRoom(): void {}

  override noteSeen(number: number): void {
    this.#seen = Math.max(this.#seen, number);
  }

  /**
   * A commit that is being taken in is waited for; while the copy can take in nothing, nothing is committed for clients
   * either.
   */
  override ready(): Promise<void> | null {
    if (this.#held !== null) return this.#held.then(() => this.ready() ?? undefined);
    if (this.#applying !== null) return this.#applying.catch(() => {});
    const refusal = this.#on.refusal();
    if (refusal !== null) return Promise.reject(refusal);
    return this.#trouble === null ? null : Promise.reject(notReady(this.#trouble));
  }

  /** As in `MemberLog`. Of several at once the last one to end counts. */
  async hold(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const ended = new Promise<void>((resolve) => {
      signal.addEventListener(
        'abort',
        () => {
          resolve();
        },
        { once: true },
      );
    });
    const before = this.#held;
    const held: Promise<void> = ended
      .then(() => before ?? undefined)
      .then(() => {
        if (this.#held === held) this.#held = null;
      });
    this.#held = held;
    await this.committing;
  }

  override get isTaking(): boolean {
    return this.#applying !== null;
  }

  show(): void {
    this.#copy.log.publish();
    this.#applied = this.#known;
    this.#on.applied(this.#applied);
  }

  async takeOwn(commit: Commit, bytes: Uint8Array): Promise<void> {
    this.#note(commit, bytes);
    this.#on.committed();
    const { clock } = this.world;
    const untilMs = clock.monotonicMs() + APPLY_WAIT_MS;
    for (let waitMs = RETRY_FIRST_MS; ; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
      try {
        await this.#append(commit, commit.records);
        break;
      } catch (error) {
        this.#failed(error);
        if (isSkuaError(error, 'writer_stopped') || clock.monotonicMs() >= untilMs) {
          throw new SkuaError(
            'commit_not_applied',
            `Commit ${commit.number} is in the log, but not yet in the replica of this member.`,
            { number: commit.number },
            error,
          );
        }
        await clock.sleep(waitMs);
      }
    }
    this.#took(commit);
    this.#count(1, 'self');
  }

  async takeWinner(commit: Commit): Promise<void> {
    // It may be on its way into the copy already: others may have begun to take it in before the commit of our own was
    // begun.
    while (this.#applying !== null) await this.#applying.catch(() => {});
    this.#checkOpen();
    if (commit.number !== this.#known + 1) return;
    await this.#exclusively(() => this.#apply([commit]));
    this.#count(1, 'bucket');
  }

  async take(commits: readonly Commit[], from: 'bucket' | 'leader' = 'bucket'): Promise<void> {
    for (;;) {
      while (this.committing !== null || this.#applying !== null)
        await (this.committing ?? this.#applying!.catch(() => {}));
      const batch = this.#batchOf(commits);
      if (batch.length === 0) return;
      this.#checkOpen();
      await this.#exclusively(() => this.#apply(batch));
      this.#count(batch.length, from);
    }
  }

  /**
   * From now on nothing of others is taken in. Resolves when what was on its way is in the copy, or never will be: only
   * then may its files be closed, and opened by others.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#applying !== null) await this.#applying.catch(() => {});
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new SkuaError('store_closed', 'The replica is being closed.');
  }

  #count(commits: number, from: 'self' | 'bucket' | 'leader'): void {
    this.world.meter.count('eventstore_cluster_commits_total', commits, { from });
  }

  /** Those of the commits that come next, as many as make one append: they lie in one chunk. */
  #batchOf(commits: readonly Commit[]): Commit[] {
    const batch: Commit[] = [];
    let bytes = 0;
    for (const commit of commits) {
      if (commit.number !== this.#known + 1 + batch.length) {
        if (batch.length > 0) break;
        continue;
      }
      const last = batch.at(-1);
      bytes += commit.records.length;
      // A chunk that is full to its last byte ends there, though no commit says so.
      if (
        last !== undefined &&
        (bytes > BATCH_BYTES_MAX || last.endsChunk || commit.start !== last.end || last.end % this.chunkSizeBytes === 0)
      )
        break;
      batch.push(commit);
    }
    return batch;
  }

  /** Takes in commits that follow one another in one chunk. */
  async #apply(batch: readonly Commit[]): Promise<void> {
    const first = batch[0]!;
    const last = batch[batch.length - 1]!;
    this.listener?.overtake();
    const records = batch.length === 1 ? first.records : joined(batch);
    try {
      this.#checkLocation(first, last);
      // What is no record is found before anything is written.
      const read = this.#read.read(records, first.start);
      const room = this.#copy.index.ready();
      if (room !== null) await room;
      await this.#append({ start: first.start, end: last.end }, records);
      for (const commit of batch) this.#note(commit, encodeCommit(commit, [], this.world.digests));
      this.#took(last);
      this.listener?.follow(read);
    } catch (error) {
      this.#failed(error);
      throw error;
    }
    if (last.endsChunk) await this.#settle();
  }

  /**
   * Appends records that have this place in the log. Where that is in the next chunk, this one is completed before,
   * also where it is full to its last byte.
   */
  async #append({ start, end }: Pick<Commit, 'start' | 'end'>, records: Uint8Array): Promise<void> {
    const { log } = this.#copy;
    if (records.length !== end - start)
      throw brokenInvariant(`A commit has ${records.length} bytes of records for the log from ${start} to ${end}`, {
        start,
        end,
        size: records.length,
      });
    if (start > log.end || (records.length > 0 && log.remaining === 0)) await log.completeChunk();
    if (start !== log.end)
      throw new SkuaError(
        'log_diverged',
        `The replica ends at ${log.end}, but the next commit of ${this.world.objects.place} starts at ${start}.`,
        { end: log.end, start },
      );
    if (records.length > 0) await log.append(records);
    if (log.end !== end)
      throw brokenInvariant(`A commit that ends at ${end} was taken in, and the copy ends at ${log.end}`, {
        start,
        end,
      });
    this.#trouble = null;
  }

  #took(commit: Commit): void {
    this.#known = commit.number;
    this.#nextStart = this.#behind(commit);
    this.#last = commit;
  }

  #note(commit: Commit, bytes: Uint8Array): void {
    this.last = commit;
    this.carry.add(commit.number, bytes);
    this.recent.add(commit.number, bytes);
    this.noteSeen(commit.number);
    this.#seenEnd = Math.max(this.#seenEnd, this.#behind(commit));
  }

  #behind({ end, endsChunk }: Commit): number {
    return endsChunk ? Math.ceil(end / this.chunkSizeBytes) * this.chunkSizeBytes : end;
  }

  #checkLocation({ number, start }: Commit, { end }: Commit): void {
    const size = this.chunkSizeBytes;
    const isNextChunk = start === Math.ceil(this.#nextStart / size) * size && start > this.#nextStart;
    if (
      (start === this.#nextStart || isNextChunk) &&
      (end === start || Math.floor((end - 1) / size) === Math.floor(start / size))
    )
      return;
    throw new SkuaError(
      'log_diverged',
      `Commit ${number} of ${this.world.objects.place} starts at ${start} of the log, but the replica continues at ${this.#nextStart}: find out which of the two was restored or replaced.`,
      { number, start, expected: this.#nextStart },
    );
  }

  /** The chunk of the copy ends where the log's has ended. */
  override async settleChunk(): Promise<void> {
    while (this.#applying !== null) await this.#applying.catch(() => {});
    await this.#exclusively(() => this.#settle());
  }

  /** What stands in the way is met again by the commit that comes next. */
  async #settle(): Promise<void> {
    const { log } = this.#copy;
    if (this.#applied === this.#known && log.end < this.#nextStart)
      await log.completeChunk().catch((error: unknown) => this.#failed(error));
  }

  /** Nothing else is done to the copy meanwhile. The caller has seen that nothing is. */
  async #exclusively(work: () => Promise<void>): Promise<void> {
    const applying = work();
    this.#applying = applying;
    try {
      await applying;
    } finally {
      this.#applying = null;
    }
  }

  #failed(error: unknown): void {
    const trouble =
      error instanceof SkuaError
        ? error
        : new SkuaError('io_error', `A commit could not be applied to the replica: ${String(error)}.`, {}, error);
    if (this.#trouble?.code !== trouble.code)
      this.world.log.error("the replica can't apply what is committed", {
        code: trouble.code,
        reason: trouble.message,
      });
    this.#trouble = trouble;
    if (trouble.code === 'writer_stopped' || trouble.code === 'log_diverged') this.#on.mustReopen(trouble);
  }

  /**
   * Every look is also the moment to see whether this is still the log that the copy is one of (rule 3): the bucket may
   * have been put back to an older state.
   */
  protected override async checkLog(newest: ObjectManifest): Promise<void> {
    if (this.#last === null) return;
    try {
      await locateInLog(this.world, newest, this.#last);
    } catch (error) {
      if (!isSkuaError(error, 'log_diverged')) throw error;
      // The commit may have been taken into files and removed while this process stood still.
      if ((await newestManifestNumber(this.world.objects)) !== newest.number)
        throw new SkuaError(
          'too_busy',
          'The log advanced while it was being read: try again.',
          { manifest: newest.number },
          error,
        );
      this.#failed(error);
      throw error;
    }
  }

  protected async putInForce(manifest: ObjectManifest): Promise<void> {
    if (manifest.number <= this.#manifest.number) return;
    if (manifest.boundary > this.#known + 1) {
      const behind = new SkuaError(
        'copy_behind',
        `The replica ends with commit ${this.#known}, and the log already has commit ${manifest.boundary - 1} in files: it is reopened to fetch them.`,
        { known: this.#known, boundary: manifest.boundary },
      );
      this.#on.mustReopen(behind);
      throw behind;
    }
    this.#manifest = manifest;
  }
}

function joined(batch: readonly Commit[]): Uint8Array {
  const out = new Uint8Array(batch.reduce((sum, { records }) => sum + records.length, 0));
  let at = 0;
  for (const { records } of batch) {
    out.set(records, at);
    at += records.length;
  }
  return out;
}

function notReady(trouble: SkuaError): SkuaError {
  return new SkuaError(
    'not_ready',
    `The replica of this member can't apply what is committed (${trouble.message}), so it accepts no writes: send them to another member.`,
    { code: trouble.code },
    trouble,
  );
}

/**
 * Looks whether the last commit that a copy has taken in still is what the log has under its number, or lies below the
 * boundary of a log that reaches at least as far. Throws `log_diverged`.
 */
async function locateInLog(
  { objects, digests }: Pick<ObjectWorld, 'objects' | 'digests'>,
  manifest: ObjectManifest,
  last: LastCommit,
): Promise<void> {
  const why = await whyNotInLog(objects, digests, manifest, last);
  if (why !== null)
    throw new SkuaError(
      'log_diverged',
      `The replica and the log at ${objects.place} diverge at commit ${last.number}: ${why}. Find out which of the two was restored or replaced; \`skua cluster reset\` starts a new log from a replica.`,
      { number: last.number, place: objects.place },
    );
}
