import { SkuaError } from '../../errors.ts';
import type { StreamHasher } from '../../stream-hash.ts';
import type { BlockCache } from '../../cache/block-cache.ts';
import { LOADS_MAX, LOOK_TAIL_BYTES, type ObjectWorld } from '../api.ts';
import { Carry, type Commit, encodeCommit } from '../commit-object.ts';
import { type Look, sinceMs, type Stamp, stampOf } from './commit-attempt.ts';
import { type CurrentView, ObjectView, ViewIndex, type ViewParts } from './view.ts';
import { newestManifestNumber, type ObjectManifest, readManifest } from '../manifest.ts';
import { applyToIndex, type CommittedRecords, ReadRecords } from '../../streams/apply-committed.ts';

interface HeadOptions {
  readonly world: ObjectWorld;
  readonly cache: BlockCache;
  readonly hasher: StreamHasher;
  readonly cacheDepth: number;
  readonly freshMs: number;
  readonly tailCommitsMax: number;
  readonly tailBytesMax: number;
}

/** What the store over the log has to be told. */
interface HeadListener {
  follow(records: CommittedRecords): void;
  forgetStreams(end: number): void;
  forgetTombstones(): void;
}

/**
 * What an instance knows of the log: the view in force, up to which commit, and since when no later one can have been
 * dropped. Everything that moves it forward comes through here, one commit after the other.
 */
export class LogHead implements CurrentView {
  view: ObjectView;
  listener: HeadListener | null = null;
  readonly world: ObjectWorld;
  readonly freshMs: number;
  readonly carry = new Carry();
  /** At this time no commit behind the last one known had been dropped (rule 4). */
  since: Stamp;
  /** What is known is certainly out of date. */
  isOutdated = false;
  readonly #parts: ViewParts;
  readonly #read: ReadRecords;
  readonly #commitsMax: number;
  readonly #bytesMax: number;
  #lookedAt: Stamp;
  #lookedAtBytes = 0;
  /** A manifest that was seen and is not in force here yet. */
  #newer: ObjectManifest | null = null;
  #committing: PromiseWithResolvers<void> | null = null;

  constructor(options: HeadOptions, manifest: ObjectManifest, at: Stamp) {
    const { world, cache, hasher, cacheDepth } = options;
    this.world = world;
    this.freshMs = options.freshMs;
    this.#commitsMax = options.tailCommitsMax;
    this.#bytesMax = options.tailBytesMax;
    this.#parts = { objects: world.objects, cache, hasher, cacheDepth };
    this.#read = new ReadRecords(hasher);
    this.view = new ObjectView(manifest, this.#parts, null);
    this.since = at;
    this.#lookedAt = at;
  }

  get known(): number { return this.view.known; }
  get isFresh(): boolean { return !this.isOutdated && sinceMs(this.since, this.world.clock) <= this.freshMs; }

  /** A commit of our own is on its way: whoever finds an object at its number waits for its outcome first. */
  get committing(): Promise<void> | null { return this.#committing?.promise ?? null; }

  beginCommit(): void {
    this.#committing = Promise.withResolvers();
  }

  endCommit(): void {
    const committing = this.#committing;
    this.#committing = null;
    committing?.resolve();
  }

  /** Takes in a commit that the store over this log has made, and will publish. */
  takeOwn(commit: Commit, bytes: Uint8Array): void {
    this.view.add(commit);
    this.carry.add(commit.number, bytes);
  }

  /** Takes in a commit that was read, unless it is known. Throws `too_busy` when the tail is full. */
  take(commit: Commit): void {
    if (commit.number <= this.known) return;
    this.checkRoom();
    // What is no record is found before anything is changed.
    const records = this.#read.read(commit.records, commit.start);
    this.view.add(commit);
    this.carry.add(commit.number, encodeCommit(commit, [], this.world.digests));
    this.listener?.follow(records);
  }

  /** Throws `too_busy` when no more commits can be held in memory. */
  checkRoom(): void {
    if (!this.#isFull) return;
    const { tailCommits, tailBytes } = this.view;
    throw new SkuaError('too_busy', `${tailCommits} commits with ${tailBytes} bytes have not been taken into files yet, which is the limit: the tick, which does that, does not run or does not keep up. Look at its log, and at its alarms.`, { commits: tailCommits, commitsMax: this.#commitsMax, bytes: tailBytes, bytesMax: this.#bytesMax });
  }

  get #isFull(): boolean { return this.view.tailCommits >= this.#commitsMax || this.view.tailBytes >= this.#bytesMax; }

  /** A newer manifest should be looked for: the last look is too long ago, or the tail has grown too much since. */
  get mustLook(): boolean {
    return this.isOutdated || this.#isFull || sinceMs(this.#lookedAt, this.world.clock) > this.freshMs || this.view.tailBytes - this.#lookedAtBytes > LOOK_TAIL_BYTES;
  }

  /** Asks for the newest manifest: one LIST, and one GET where it is newer than the one in force. */
  async look(): Promise<Look> {
    const { objects, clock } = this.world;
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      const least = this.#newest.number;
      const at = stampOf(clock);
      const number = await newestManifestNumber(objects);
      if (number === null || number < least) throw new SkuaError('manifest_invalid', `The manifest ${least} of ${objects.place} is gone: somebody removed or replaced the store while it was in use. Restore the bucket.`, { number });
      // One that was swept away between the two requests has made place for an even newer one.
      if (number > this.#newest.number && !await this.#readNewer(number)) continue;
      this.#lookedAt = at;
      this.#lookedAtBytes = this.view.tailBytes;
      return { boundary: this.#newest.boundary, at };
    }
    throw new SkuaError('manifest_invalid', `The newest manifest under ${objects.place} is listed and can't be read: check that the store lists what it holds.`, {});
  }

  get #newest(): ObjectManifest { return this.#newer ?? this.view.manifest; }

  async #readNewer(number: number): Promise<boolean> {
    const { objects, digests } = this.world;
    const { storeId, chunkSizeBytes } = this.view.manifest;
    const newer = await readManifest(objects, number, digests);
    if (newer === null) return false;
    if (newer.storeId !== storeId || newer.chunkSizeBytes !== chunkSizeBytes) throw new SkuaError('manifest_invalid', `The manifest ${number} of ${objects.place} is that of another store: somebody replaced the store while it was in use. Start anew.`, { number });
    if (newer.number > this.#newest.number) this.#newer = newer;
    return true;
  }

  /** Brings the newest manifest in force. Afterwards what is known is fresh, though commits may be missing at its end. */
  async freshen(): Promise<void> {
    const { at } = await this.look();
    // Our own commit decides first what becomes of it: moving on without it would leave its group on a log that is gone.
    while (this.#committing !== null) await this.#committing.promise;
    if (this.#newer !== null) this.#putInForce(this.#newer);
    // The manifest in force names the first number that can't have been dropped at `at`, and all known ones lie behind it.
    if (this.view.manifest.boundary <= this.known + 1) {
      this.since = at;
      this.isOutdated = false;
    }
  }

  /** In one step: readers see the old view or the new one. */
  #putInForce(manifest: ObjectManifest): void {
    const old = this.view;
    this.#newer = null;
    if (manifest.number <= old.manifest.number) return;
    const next = new ObjectView(manifest, this.#parts, old);
    const isGap = manifest.boundary > old.known + 1;
    if (!isGap) {
      const index = new ViewIndex({ view: next }, this.#parts.hasher);
      for (const commit of old.commitsFrom(manifest.boundary)) {
        next.add(commit);
        applyToIndex(this.#read.read(commit.records, commit.start), index);
      }
    }
    next.show();
    this.view = next;
    this.#lookedAtBytes = next.tailBytes;
    if (isGap) this.listener?.forgetStreams(next.table.end);
    // A scavenge may have removed tombstones, if it was told to.
    else this.listener?.forgetTombstones();
    void old.retire(next);
  }
}
