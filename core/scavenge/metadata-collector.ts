import { SkuaError } from '../base/errors.ts';
import { EntryList } from '../index/format/entries.ts';
import { type PrepareFields, type RecordFrame, streamOf } from '../log/format/records.ts';
import { type OriginalStreamData, type ScavengeState, STATUS_ACTIVE } from '../ports/scavenge-state.ts';
import { Hash64, type StreamHasher } from '../base/stream-hash.ts';
import { parseMetadata } from '../streams/format/metadata.ts';
import { MARKS_STREAM } from '../streams/format/marks.ts';
import { isMetastream, metastreamOf, originalOf } from '../streams/format/names.ts';
import { shownData } from '../streams/format/retention.ts';
import { decodeText, encodeText } from '../base/text.ts';
import { type ChunkWeights, WEIGHT_DISCARD } from './logical-chunks.ts';
import { SeenHashes, SeenNames } from './seen-names.ts';
import type { IndexKey, RunIndex } from './sources/run-index.ts';

/** Names, and code units of them, that wait at most. */
const NAMES_MAX = 65_536;
const UNITS_MAX = 8_388_608;

interface HashedName {
  readonly name: string;
  readonly hi: number;
  readonly lo: number;
}

/** What a metadata record or a tombstone teaches. */
interface StreamFact {
  readonly original: HashedName;
  readonly metastream: HashedName;
  readonly position: number;
  /** Of a metadata record; a tombstone has none. */
  readonly metadata: MetadataFact | null;
}

interface MetadataFact {
  readonly number: number;
  readonly maxAge: number | null;
  readonly maxCount: number | null;
  readonly truncateBefore: number | null;
  /** It is known to be the first record of its metastream in the log. */
  readonly isFirst: boolean;
  /** Set when it was found to be so; a record that is out of order does not count. */
  isInOrder: boolean;
}

/**
 * Collects what records teach, in order of the log. StreamFacts are stored in order of their hashes: the database and
 * the index then touch each of their blocks once for many lessons instead of once for each.
 */
export class StreamFacts {
  readonly #hasher: StreamHasher;
  readonly #hash = new Hash64();
  readonly #seen = new SeenNames();
  readonly #metastreams = new SeenHashes();
  /** Every record of the log so far has come by: what the index says of earlier ones is known without asking it. */
  #isComplete: boolean;
  #units = 0;
  /** Streams to register, and what to learn then. */
  names: HashedName[] = [];
  facts: StreamFact[] = [];
  metadata = 0;
  tombstones = 0;

  constructor(hasher: StreamHasher, isComplete: boolean) {
    this.#hasher = hasher;
    this.#isComplete = isComplete;
  }

  /** From here on there may be index entries whose records are gone. */
  noteScavengedChunk(): void {
    this.#isComplete = false;
  }

  /** It is time to store what has been collected. */
  get isFull(): boolean {
    return this.names.length >= NAMES_MAX || this.#units >= UNITS_MAX;
  }

  clear(): void {
    this.names = [];
    this.facts = [];
    this.#units = 0;
  }

  /** A record that teaches no more than that its stream exists. */
  ordinary(b: Uint8Array, at: number, length: number): void {
    if (this.#seen.has(b, at, length)) return;
    this.#hasher.hashUtf8(b, at, length, this.#hash);
    this.#add(decodeText(b.subarray(at, at + length)));
  }

  /** A record of a metastream. What is no metadata counts as empty. */
  metadataRecord(frame: RecordFrame, fields: PrepareFields): void {
    this.metadata++;
    const name = streamOf(frame, fields);
    const number = fields.eventNumber;
    // Marks of redaction stay, whatever another program says of their stream.
    if (originalOf(name) === MARKS_STREAM) return;
    if (number < 0) throw failure(`Found metadata in transaction in stream ${name}`, name, frame);
    const original = this.#register(originalOf(name));
    const metastream = this.#register(name);
    const {
      maxAge = null,
      maxCount = null,
      truncateBefore = null,
    } = parseMetadata(shownData(frame, fields), true, fields.version);
    const isFirst = this.#isComplete && !this.#metastreams.addAndTest(metastream.hi, metastream.lo) && number === 0;
    this.facts.push({
      original,
      metastream,
      position: frame.position,
      metadata: { number, maxAge, maxCount, truncateBefore, isFirst, isInOrder: true },
    });
  }

  /** A record with the stream-delete flag. */
  tombstone(frame: RecordFrame, fields: PrepareFields): void {
    this.tombstones++;
    const name = streamOf(frame, fields);
    if (name === MARKS_STREAM) return;
    if (isMetastream(name)) throw failure(`Found Tombstone in metadata stream ${name}`, name, frame);
    if (fields.eventNumber < 0) throw failure(`Found Tombstone in transaction in stream ${name}`, name, frame);
    const original = this.#register(name);
    const metastream = this.#register(metastreamOf(name));
    this.facts.push({ original, metastream, position: frame.position, metadata: null });
  }

  #register(name: string): HashedName {
    this.#hasher.hash(name, this.#hash);
    return this.#add(name);
  }

  /** Adds a name whose hash is in `#hash`. */
  #add(name: string): HashedName {
    const hashed = { name, hi: this.#hash.hi, lo: this.#hash.lo };
    this.names.push(hashed);
    this.#units += name.length;
    return hashed;
  }
}

function failure(message: string, stream: string, frame: RecordFrame): SkuaError {
  return new SkuaError('scavenge_failed', message, { stream, position: frame.position });
}

const NOTHING_KNOWN: OriginalStreamData = {
  isTombstoned: false,
  maxAge: null,
  maxCount: null,
  truncateBefore: null,
  discardPoint: 0,
  maybeDiscardPoint: 0,
  status: STATUS_ACTIVE,
};
/** Names or lessons after which it is asked whether to stop. */
const PAUSE_FACTS = 1_024;
/** More than there are names or lessons at a time; with 32 bits of a hash they stay below 2^53. */
const PLACES = 2_097_152;

interface MetadataCollectorParts {
  readonly state: ScavengeState;
  readonly index: RunIndex;
  readonly weights: ChunkWeights;
  readonly chunkSize: number;
  /** Asks whether to stop, or to rest. */
  pause(): Promise<void>;
}

/**
 * Stores lessons, within the transaction of their logical chunk. StreamFacts about different streams do not depend on
 * each other once all streams are registered, and those about one stay in order of the log.
 */
export class MetadataCollector {
  readonly #parts: MetadataCollectorParts;
  readonly #order: MetadataOrder;

  constructor(parts: MetadataCollectorParts) {
    this.#parts = parts;
    this.#order = new MetadataOrder(parts.index);
  }

  async collect(collected: StreamFacts): Promise<void> {
    const { state } = this.#parts;
    const { names, facts } = collected;
    await this.#each(
      names,
      (name) => name,
      (name) => {
        state.register(name.name, name.hi, name.lo);
      },
    );
    await this.#each(
      facts,
      (fact) => fact.metastream,
      (fact) => this.#ofMetastream(fact),
    );
    await this.#each(
      facts,
      (fact) => fact.original,
      (fact) => this.#ofOriginal(fact),
    );
    collected.clear();
  }

  /**
   * Goes through the items in the order in which the database has their hashes, and those of one stream in order of the
   * log.
   */
  async #each<T>(
    items: readonly T[],
    hashedBy: (item: T) => HashedName,
    take: (item: T) => void | Promise<void>,
  ): Promise<void> {
    const order = orderByHash(items, hashedBy);
    for (let i = 0; i < order.length; i++) {
      const waiting = take(items[order[i]! % PLACES]!);
      if (waiting !== undefined) await waiting;
      if (i % PAUSE_FACTS === PAUSE_FACTS - 1 || i === order.length - 1) await this.#parts.pause();
    }
  }

  #ofMetastream(fact: StreamFact): void | Promise<void> {
    const { metadata } = fact;
    if (metadata === null) return this.#tombstoneMetastream(fact);
    if (metadata.isFirst) return undefined;
    return this.#supersede(fact, metadata);
  }

  /** The metadata record before this one is garbage, or this one is where it is out of order. */
  async #supersede({ metastream, position }: StreamFact, metadata: MetadataFact): Promise<void> {
    const { state } = this.#parts;
    const { name, hi, lo } = metastream;
    metadata.isInOrder = await this.#order.check(this.#keyOf(metastream), metadata.number, position);
    this.#weigh(this.#order.replaced);
    if (!metadata.isInOrder || metadata.number === 0) return;
    state.setMetastream(name, hi, lo, {
      isTombstoned: state.metastream(name, hi, lo)?.isTombstoned ?? false,
      discardPoint: metadata.number,
    });
  }

  /** The last metadata record of a tombstoned stream is garbage. */
  async #tombstoneMetastream({ metastream }: StreamFact): Promise<void> {
    const { state } = this.#parts;
    const { name, hi, lo } = metastream;
    state.setMetastream(name, hi, lo, {
      isTombstoned: true,
      discardPoint: state.metastream(name, hi, lo)?.discardPoint ?? 0,
    });
    this.#weigh(await this.#order.lastPosition(this.#keyOf(metastream)));
  }

  /** Age, count and truncation are replaced together; the metadata of a metastream are fixed, whatever anyone wrote. */
  #ofOriginal({ original: { name, hi, lo }, metadata }: StreamFact): void {
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
 * Keys that ascend with the upper half of the items' hashes as signed numbers, then with their places: a key modulo
 * PLACES is a place. Sorted as plain numbers, which takes a tenth of the time of comparing objects.
 */
function orderByHash<T>(items: readonly T[], hashedBy: (item: T) => HashedName): Float64Array {
  const keys = new Float64Array(items.length);
  for (let i = 0; i < items.length; i++) keys[i] = ((hashedBy(items[i]!).hi ^ 0x8000_0000) >>> 0) * PLACES + i;
  return keys.sort();
}

/** Entries that are looked at for one metadata record. */
const ENTRIES_MAX = 100;
/** No record is garbage. */
const NONE = -1;

/**
 * Whether metadata records ascend in number with the log. Old defects could leave some that do not, and as readers
 * honour only what the index presents, a record that was overtaken by an earlier one must not count.
 */
class MetadataOrder {
  readonly #index: RunIndex;
  readonly #entries = new EntryList();
  /** After `check`: the position of the record that is garbage, or NONE. */
  replaced = NONE;

  constructor(index: RunIndex) {
    this.#index = index;
  }

  /** True when the record with this number and position of the metastream is in order. */
  async check(key: IndexKey, number: number, position: number): Promise<boolean> {
    const last = await this.#index.lastNumber(key);
    this.replaced = NONE;
    let isInOrder = true;
    let seen = 0;
    for (let from = Math.max(0, number - 1); from <= last && seen < ENTRIES_MAX;) {
      from = await this.#index.slice(key, from, last, ENTRIES_MAX, this.#entries);
      const { versions, positions, length } = this.#entries;
      for (let i = 0; i < length && seen < ENTRIES_MAX; i++, seen++) {
        if (positions[i]! >= position) continue;
        if (versions[i]! >= number) isInOrder = false;
        else if (seen === 0) this.replaced = positions[i]!;
      }
    }
    if (!isInOrder) this.replaced = position;
    return isInOrder;
  }

  /** Position of the last record of the metastream, or NONE. */
  async lastPosition(key: IndexKey): Promise<number> {
    const last = await this.#index.lastNumber(key);
    if (last < 0) return NONE;
    await this.#index.slice(key, last, last, 1, this.#entries);
    return this.#entries.length > 0 ? this.#entries.positions[0]! : NONE;
  }
}
