import { STATUS_ACTIVE, type OriginalStreamData, type ScavengeState } from '../ports/scavenge-state.ts';
import { isMetastream } from '../streams/names.ts';
import { encodeText } from '../text.ts';
import { WEIGHT_DISCARD, type ChunkWeights } from './chunk-weights.ts';
import type { HashedName, Lesson, Lessons, MetadataLesson } from './lessons.ts';
import { MetadataOrder, NONE } from './metadata-order.ts';
import type { IndexKey, RunIndex } from './run-index.ts';

const NOTHING_KNOWN: OriginalStreamData = { isTombstoned: false, maxAge: null, maxCount: null, truncateBefore: null, discardPoint: 0, maybeDiscardPoint: 0, status: STATUS_ACTIVE };
/** Names or lessons after which it is asked whether to stop. */
const PAUSE_LESSONS = 1_024;
/** More than there are names or lessons at a time; with 32 bits of a hash they stay below 2^53. */
const PLACES = 2_097_152;

export interface LearnerParts {
  readonly state: ScavengeState;
  readonly index: RunIndex;
  readonly weights: ChunkWeights;
  readonly chunkSize: number;
  /** Asks whether to stop, or to rest. */
  pause(): Promise<void>;
}

/**
 * Stores lessons, within the transaction of their logical chunk; scavenge.md sections 4.2 to 4.4. Lessons about different
 * streams do not depend on each other once all streams are registered, and those about one stay in order of the log.
 */
export class Learner {
  readonly #parts: LearnerParts;
  readonly #order: MetadataOrder;

  constructor(parts: LearnerParts) {
    this.#parts = parts;
    this.#order = new MetadataOrder(parts.index);
  }

  async learn(collected: Lessons): Promise<void> {
    const { state } = this.#parts;
    const { names, lessons } = collected;
    await this.#each(names, (name) => name, (name) => {
      state.register(name.name, name.hi, name.lo);
    });
    await this.#each(lessons, (lesson) => lesson.metastream, (lesson) => this.#ofMetastream(lesson));
    await this.#each(lessons, (lesson) => lesson.original, (lesson) => this.#ofOriginal(lesson));
    collected.clear();
  }

  /** Goes through the items in the order in which the database has their hashes, and those of one stream in order of the log. */
  async #each<T>(items: readonly T[], hashedBy: (item: T) => HashedName, take: (item: T) => void | Promise<void>): Promise<void> {
    const order = orderByHash(items, hashedBy);
    for (let i = 0; i < order.length; i++) {
      const waiting = take(items[order[i]! % PLACES]!);
      if (waiting !== undefined) await waiting;
      if (i % PAUSE_LESSONS === PAUSE_LESSONS - 1 || i === order.length - 1) await this.#parts.pause();
    }
  }

  #ofMetastream(lesson: Lesson): void | Promise<void> {
    const { metadata } = lesson;
    if (metadata === null) return this.#tombstoneMetastream(lesson);
    if (metadata.isFirst) return undefined;
    return this.#supersede(lesson, metadata);
  }

  /** The metadata record before this one is garbage, or this one is where it is out of order. */
  async #supersede({ metastream, position }: Lesson, metadata: MetadataLesson): Promise<void> {
    const { state } = this.#parts;
    const { name, hi, lo } = metastream;
    metadata.isInOrder = await this.#order.check(this.#keyOf(metastream), metadata.number, position);
    this.#weigh(this.#order.replaced);
    if (!metadata.isInOrder || metadata.number === 0) return;
    state.setMetastream(name, hi, lo, { isTombstoned: state.metastream(name, hi, lo)?.isTombstoned ?? false, discardPoint: metadata.number });
  }

  /** The last metadata record of a tombstoned stream is garbage. */
  async #tombstoneMetastream({ metastream }: Lesson): Promise<void> {
    const { state } = this.#parts;
    const { name, hi, lo } = metastream;
    state.setMetastream(name, hi, lo, { isTombstoned: true, discardPoint: state.metastream(name, hi, lo)?.discardPoint ?? 0 });
    this.#weigh(await this.#order.lastPosition(this.#keyOf(metastream)));
  }

  /** Age, count and truncation are replaced together; the metadata of a metastream are fixed, whatever anyone wrote. */
  #ofOriginal({ original: { name, hi, lo }, metadata }: Lesson): void {
    const { state } = this.#parts;
    if (metadata !== null && (!metadata.isInOrder || isMetastream(name))) return;
    const known = state.original(name, hi, lo) ?? NOTHING_KNOWN;
    if (metadata === null) state.setOriginal(name, hi, lo, { ...known, isTombstoned: true, status: STATUS_ACTIVE });
    else {
      const { maxAge, maxCount, truncateBefore } = metadata;
      state.setOriginal(name, hi, lo, { ...known, maxAge, maxCount, truncateBefore, status: STATUS_ACTIVE });
    }
  }

  #weigh(position: number): void {
    if (position !== NONE) this.#parts.weights.add(Math.floor(position / this.#parts.chunkSize), WEIGHT_DISCARD);
  }

  #keyOf({ name, hi, lo }: HashedName): IndexKey {
    return { hi, lo, name: this.#parts.state.isCollision(name) ? encodeText(name) : null };
  }
}

/**
 * Keys that ascend with the upper half of the items' hashes as signed numbers, then with their places: a key modulo PLACES
 * is a place. Sorted as plain numbers, which takes a tenth of the time of comparing objects.
 */
function orderByHash<T>(items: readonly T[], hashedBy: (item: T) => HashedName): Float64Array {
  const keys = new Float64Array(items.length);
  for (let i = 0; i < items.length; i++) keys[i] = ((hashedBy(items[i]!).hi ^ 0x8000_0000) >>> 0) * PLACES + i;
  return keys.sort();
}
