import { SkuaError } from '../../base/errors.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import type { BlockCache } from '../../cache/cache.ts';
import { LOOK_TAIL_BYTES, type ObjectWorld } from '../api.ts';
import { type Commit, encodeCommit } from '../format/commit-object.ts';
import type { Look, LastCommit } from '../head/head.ts';
import type { Stamp } from '../../ports/stamp.ts';
import { Head } from '../head/head.ts';
import { type CurrentView, ObjectView, ViewIndex, type ViewParts } from './view.ts';
import type { ObjectManifest } from '../format/manifest.ts';
import { decodeMarks, MARKS_FILE } from '../../streams/format/marks-table.ts';
import { applyToIndex, ReadRecords } from '../../streams/committed/committed.ts';
import { background } from '../../base/background.ts';

interface HeadOptions {
  readonly world: ObjectWorld;
  readonly cache: BlockCache;
  readonly hasher: StreamHasher;
  readonly cacheDepth: number;
  readonly freshMs: number;
  readonly tailCommitsMax: number;
  readonly tailBytesMax: number;
}

/**
 * The head of an instance: a view of the files of a manifest, and the commits behind them in memory. Everything that
 * moves it forward comes through here, one commit after the other.
 */
export class ViewHead extends Head implements CurrentView {
  view: ObjectView;
  readonly #parts: ViewParts;
  readonly #read: ReadRecords;
  readonly #commitsMax: number;
  readonly #bytesMax: number;
  #lookedAtBytes = 0;
  #knowsMarks = false;
  protected last: LastCommit | null = null;

  constructor(options: HeadOptions, manifest: ObjectManifest, at: Stamp) {
    const { world, cache, hasher, cacheDepth } = options;
    super(world, options.freshMs, at);
    this.#commitsMax = options.tailCommitsMax;
    this.#bytesMax = options.tailBytesMax;
    this.#parts = { objects: world.objects, cache, hasher, cacheDepth };
    this.#read = new ReadRecords(hasher);
    this.view = new ObjectView(manifest, this.#parts, null);
  }

  get known(): number {
    return this.view.known;
  }
  get nextStart(): number {
    return this.view.nextStart;
  }
  get manifest(): ObjectManifest {
    return this.view.manifest;
  }

  show(): void {
    this.view.show();
  }

  takeOwn(commit: Commit, bytes: Uint8Array): void {
    this.last = commit;
    this.view.add(commit);
    this.carry.add(commit.number, bytes);
  }

  takeWinner(commit: Commit): void {
    this.#take(commit);
  }

  async take(commits: readonly Commit[]): Promise<void> {
    for (const commit of commits) {
      while (this.committing !== null) await this.committing;
      // A manifest that was put in force meanwhile may have gone beyond.
      if (commit.number === this.known + 1) this.#take(commit);
    }
  }

  #take(commit: Commit): void {
    if (commit.number <= this.known) return;
    this.checkRoom();
    // What is no record is found before anything is changed.
    const records = this.#read.read(commit.records, commit.start);
    this.last = commit;
    this.view.add(commit);
    this.carry.add(commit.number, encodeCommit(commit, [], this.world.digests));
    this.listener?.follow(records);
  }

  checkRoom(): void {
    if (!this.#isFull) return;
    const { tailCommits, tailBytes } = this.view;
    throw new SkuaError(
      'too_busy',
      `${tailCommits} commits with ${tailBytes} bytes have not been compacted into files yet, which is the limit: the tick, which does that, is not running or can't keep up. Check its log and alarms.`,
      { commits: tailCommits, commitsMax: this.#commitsMax, bytes: tailBytes, bytesMax: this.#bytesMax },
    );
  }

  get #isFull(): boolean {
    return this.view.tailCommits >= this.#commitsMax || this.view.tailBytes >= this.#bytesMax;
  }

  /** Besides: when the tail has grown too much since the last look. */
  override get mustLook(): boolean {
    return super.mustLook || this.#isFull || this.view.tailBytes - this.#lookedAtBytes > LOOK_TAIL_BYTES;
  }

  /**
   * Reads the marks of redaction below the manifest's boundary, at first and where commits before that were not seen.
   * They are known before what they hide can be.
   */
  override async prepare(manifest: ObjectManifest): Promise<boolean> {
    const isSeen = this.#knowsMarks && manifest.boundary <= this.known + 1;
    const key = isSeen ? null : (manifest.files.find(({ name }) => name === MARKS_FILE)?.key ?? null);
    if (key !== null) {
      const bytes = await this.world.objects.get(key);
      if (bytes === null) return false;
      const marks = decodeMarks(key, bytes, this.world.digests);
      // There may be a million of them.
      await this.world.clock.yield();
      this.listener?.addMarks(marks);
    }
    this.#knowsMarks = true;
    return true;
  }

  /** Throws `log_corrupt` where the newest manifest names a table of marks that is gone. */
  mustKnowMarks(): void {
    if (this.#knowsMarks) return;
    throw new SkuaError(
      'log_corrupt',
      `The table of redactions that manifest ${this.manifest.number} of ${this.world.objects.place} names is gone. Restore it from a version or a backup of the bucket.`,
      { path: MARKS_FILE },
    );
  }

  override async look(): Promise<Look> {
    const look = await super.look();
    this.#lookedAtBytes = this.view.tailBytes;
    return look;
  }

  /** In one step: readers see the old view or the new one. */
  protected putInForce(manifest: ObjectManifest): void {
    const old = this.view;
    const next = new ObjectView(manifest, this.#parts, old);
    const isGap = manifest.boundary > old.known + 1;
    if (!isGap) {
      const index = new ViewIndex({ view: next }, this.#parts.hasher);
      for (const commit of old.commitsFrom(manifest.boundary)) {
        next.add(commit);
        const records = this.#read.read(commit.records, commit.start);
        applyToIndex(records, index);
        next.attributes.takeIn(commit.records, commit.start, commit.end);
        if (records.setting !== null) next.attributes.follow(records.setting);
      }
    }
    next.show();
    this.view = next;
    this.#lookedAtBytes = next.tailBytes;
    if (isGap) this.listener?.forgetStreams(next.table.end);
    // A scavenge may have removed tombstones, if it was told to.
    else this.listener?.forgetTombstones();
    background(old.retire(next));
  }
}
