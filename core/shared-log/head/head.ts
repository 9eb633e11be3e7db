import { equalBytes } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { sinceMs, type Stamp, stampOf } from '../../ports/stamp.ts';
import type { MarkColumns } from '../../streams/api.ts';
import type { CommittedRecords } from '../../streams/streams.ts';
import { LOADS_MAX, type ObjectWorld } from '../api.ts';
import { Carry, type Commit, decodeCommitObject } from '../format/commit-object.ts';
import { commitKey } from '../format/object-keys.ts';
import { newestManifest, newestManifestNumber, type ObjectManifest, readManifest } from '../format/manifest.ts';

export type LastCommit = Pick<Commit, 'number' | 'end' | 'nonce'>;

/**
 * What a process knows of a log: its newest manifest and its last commit, null where that has only been seen in files.
 */
export interface IdentifiedLog {
  readonly manifest: Pick<ObjectManifest, 'storeId' | 'number'>;
  readonly last: LastCommit | null;
}

/** What the newest manifest said, and when it was asked. */
export interface Look {
  readonly boundary: number;
  readonly at: Stamp;
}

/** What the store over a log to which others write has to be told. */
export interface HeadListener {
  /** The end of the log is about to be moved by others. */
  overtake(): void;
  follow(records: CommittedRecords): void;
  forgetStreams(end: number): void;
  forgetTombstones(): void;
  addMarks(marks: MarkColumns): void;
}

/**
 * What a process knows of the log in a bucket: up to which commit, and since when no later one can have been dropped
 * (rule 4). Where what it knows is kept, in memory over files of the bucket (`ViewHead`) or in a copy on a disk
 * (`ReplicaHead`), is up to the two classes that extend this.
 */
export abstract class Head {
  listener: HeadListener | null = null;
  readonly world: ObjectWorld;
  readonly freshMs: number;
  readonly carry = new Carry();
  /** At this time no commit behind the last one known had been dropped (rule 4). */
  since: Stamp;
  /** What is known is certainly out of date. */
  isOutdated = false;
  /** At this time nothing had been committed beyond what is known by now; null before that was ever found. */
  provedAt: Stamp | null = null;
  protected lookedAt: Stamp;
  /** A manifest that was seen and is not in force here yet. */
  protected newer: ObjectManifest | null = null;
  #committing: PromiseWithResolvers<void> | null = null;

  constructor(world: ObjectWorld, freshMs: number, at: Stamp) {
    this.world = world;
    this.freshMs = freshMs;
    this.since = at;
    this.lookedAt = at;
  }

  /** Number of the last commit that is known. */
  abstract readonly known: number;
  /** Position where the next commit starts, unless it does not fit the chunk. */
  abstract readonly nextStart: number;
  /** In force. */
  abstract readonly manifest: ObjectManifest;
  /** The last commit that came through here; null before the first. */
  protected abstract readonly last: LastCommit | null;
  get knownLog(): IdentifiedLog {
    return { manifest: this.#newest, last: this.last };
  }
  get chunkSizeBytes(): number {
    return this.manifest.chunkSizeBytes;
  }
  get isFresh(): boolean {
    return !this.isOutdated && sinceMs(this.since, this.world.clock) <= this.freshMs;
  }
  /** A newer manifest should be looked for. */
  get mustLook(): boolean {
    return this.isOutdated || sinceMs(this.lookedAt, this.world.clock) > this.freshMs;
  }

  /** Takes in a commit that the store over this log has made, and will publish. */
  abstract takeOwn(commit: Commit, bytes: Uint8Array): void | Promise<void>;
  /** Takes in the winner of a number that the commit of our own, which is still on its way, has lost. */
  abstract takeWinner(commit: Commit): void | Promise<void>;
  /**
   * Takes in commits that were read, which follow one another, as far as they are not known. One of our own that is on
   * its way has its outcome first.
   */
  abstract take(commits: readonly Commit[]): Promise<void>;
  /**
   * The last commit ended its chunk, or the next one will start at the next chunk: called when nothing is on its way.
   */
  settleChunk(): void | Promise<void> {}
  /** Null while a commit can be taken in; else what to await before one is begun. Rejects with why none can. */
  ready(): Promise<void> | null {
    return null;
  }
  /** Commits are being taken in at this moment. */
  get isTaking(): boolean {
    return false;
  }
  /** A commit with this number is in the log. */
  noteSeen(_number: number): void {}
  /** Shows readers all that is known. */
  abstract show(): void;
  /** Throws `too_busy` when no more commits can be held. */
  abstract checkRoom(): void;
  protected abstract putInForce(manifest: ObjectManifest): void | Promise<void>;
  /** Reads what has to be known when the manifest is put in force. False: what it names is gone, as it is old. */
  async prepare(_newer: ObjectManifest): Promise<boolean> {
    return true;
  }
  /** Rejects when the log with this newest manifest is not the one that is known here; it is asked at every look. */
  protected async checkLog(_newest: ObjectManifest): Promise<void> {}

  /** A commit of our own is on its way: a writer that finds an object at its number waits for its outcome first. */
  get committing(): Promise<void> | null {
    return this.#committing?.promise ?? null;
  }

  beginCommit(): void {
    this.#committing = Promise.withResolvers();
  }

  endCommit(): void {
    const committing = this.#committing;
    this.#committing = null;
    committing?.resolve();
  }

  /** Asks for the newest manifest: one LIST, and one GET where it is newer than the one in force. */
  async look(): Promise<Look> {
    const { objects, clock } = this.world;
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      const least = this.#newest.number;
      const at = stampOf(clock);
      const number = await newestManifestNumber(objects);
      if (number === null || number < least)
        throw new SkuaError(
          'manifest_invalid',
          `The manifest ${least} of ${objects.place} is gone: the store was removed or replaced while in use. Restore the bucket.`,
          { number },
        );
      // One that was swept away between the two requests has made place for an even newer one.
      if (number > this.#newest.number && !(await this.#readNewer(number))) continue;
      await this.checkLog(this.#newest);
      this.lookedAt = at;
      return { boundary: this.#newest.boundary, at };
    }
    throw new SkuaError(
      'manifest_invalid',
      `The newest manifest under ${objects.place} is listed but can't be read: check that the store lists what it holds.`,
      {},
    );
  }

  get #newest(): ObjectManifest {
    return this.newer ?? this.manifest;
  }

  async #readNewer(number: number): Promise<boolean> {
    const { objects, digests } = this.world;
    const { storeId, chunkSizeBytes } = this.manifest;
    const newer = await readManifest(objects, number, digests);
    if (newer === null) return false;
    if (newer.storeId !== storeId || newer.chunkSizeBytes !== chunkSizeBytes)
      throw new SkuaError(
        'manifest_invalid',
        `The manifest ${number} of ${objects.place} belongs to another store: the store was replaced while in use. Restart.`,
        { number },
      );
    if (!(await this.prepare(newer))) return false;
    if (newer.number > this.#newest.number) this.newer = newer;
    return true;
  }

  /**
   * Brings the newest manifest in force. Afterwards what is known is fresh, though commits may be missing at its end.
   */
  async freshen(): Promise<void> {
    const { at } = await this.look();
    // Our own commit decides first what becomes of it: moving on without it would leave its group on a log that is
    // gone.
    while (this.#committing !== null) await this.#committing.promise;
    const newer = this.newer;
    this.newer = null;
    if (newer !== null && newer.number > this.manifest.number) await this.putInForce(newer);
    // The manifest in force names the first number that can't have been dropped at `at`, and all known ones lie behind
    // it.
    if (this.manifest.boundary <= this.known + 1) {
      this.since = at;
      this.isOutdated = false;
    }
  }
}

/**
 * Why what lies in a store is not the log that is known, or is an older copy of it; null where it is that log. `known`
 * is asked last: what is committed while the store is read counts.
 */
export async function whyAnotherLog(
  there: ObjectStore,
  digests: Digests,
  known: () => IdentifiedLog,
): Promise<string | null> {
  const newest = await newestManifest(there, digests);
  const { manifest, last } = known();
  if (newest === null) return `it holds no log, but the log ${manifest.storeId} was in use`;
  if (newest.storeId !== manifest.storeId)
    return `it holds the log ${newest.storeId}, but the log ${manifest.storeId} was in use`;
  if (newest.number < manifest.number)
    return `it is an older copy: its newest manifest is ${newest.number}, but ${manifest.number} was seen`;
  const why = last === null ? null : await whyNotInLog(there, digests, newest, last);
  return why === null ? null : `it is an older copy, or has diverged: commit ${last!.number} was seen, but ${why}`;
}

/**
 * Why a commit that was in the log is not in it as far as this manifest reaches, or behind it: a store that was put
 * back to an older state would let numbers be won again. Null where it is.
 */
export async function whyNotInLog(
  objects: ObjectStore,
  digests: Digests,
  manifest: ObjectManifest,
  last: LastCommit,
): Promise<string | null> {
  if (manifest.boundary > last.number)
    return manifest.logEnd >= last.end
      ? null
      : `its files end at ${manifest.logEnd}, but this commit ends at ${last.end}`;
  const key = commitKey(last.number);
  const bytes = await objects.get(key);
  if (bytes === null) return 'it has no such commit';
  const { commit } = decodeCommitObject(key, last.number, bytes, digests);
  return equalBytes(commit.nonce, 0, last.nonce, 0, 16) ? null : 'it has another commit under that number';
}
