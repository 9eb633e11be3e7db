import { SkuaError } from '../errors.ts';
import { Hash64, type StreamHasher } from '../index/stream-hash.ts';
import { streamOf, type PrepareFields, type RecordFrame } from '../log/records.ts';
import { STATUS_ACTIVE, type OriginalStreamData, type ScavengePoint, type ScavengeState } from '../ports/scavenge-state.ts';
import { parseMetadata } from '../streams/metadata.ts';
import { isMetastream, metastreamOf, originalOf } from '../streams/names.ts';
import { encodeText } from '../text.ts';
import { WEIGHT_DISCARD, type ChunkWeights } from './chunk-weights.ts';
import { MetadataOrder, NONE } from './metadata-order.ts';
import type { IndexKey } from './run-index.ts';
import type { RunSources } from './run-sources.ts';
import { SeenHashes } from './seen-names.ts';

/** Tombstones whose last metadata record is looked up together. */
const TOMBSTONES_TOGETHER = 32_768;

const NOTHING_KNOWN: OriginalStreamData = { isTombstoned: false, maxAge: null, maxCount: null, truncateBefore: null, discardPoint: 0, maybeDiscardPoint: 0, status: STATUS_ACTIVE };

export interface MetadataLearnerParts {
  readonly state: ScavengeState;
  readonly sources: RunSources;
  readonly weights: ChunkWeights;
  readonly hasher: StreamHasher;
  readonly chunkSize: number;
  /** The first logical chunk to read. */
  readonly fromChunk: number;
  readonly settings: { readonly point: ScavengePoint };
}

interface HashedName { readonly name: string; readonly hi: number; readonly lo: number }

/** Learns from metadata records and tombstones; scavenge.md sections 4.2 to 4.4. Works within the transaction of a logical chunk. */
export class MetadataLearner {
  readonly #parts: MetadataLearnerParts;
  readonly #order: MetadataOrder;
  readonly #hash = new Hash64();
  readonly #metastreams = new SeenHashes();
  /**
   * Every record of the log so far has been seen by this learner: what the index says of earlier records is known
   * without asking it.
   */
  #isComplete: boolean;
  #tombstoned: HashedName[] = [];
  metadata = 0;
  tombstones = 0;

  constructor(parts: MetadataLearnerParts) {
    this.#parts = parts;
    this.#order = new MetadataOrder(parts.sources.index);
    this.#isComplete = parts.fromChunk === 0;
  }

  /** From here on there may be index entries whose records are gone. */
  noteScavengedChunk(): void {
    this.#isComplete = false;
  }

  /** A record of a metastream. */
  async metadataRecord(frame: RecordFrame, fields: PrepareFields): Promise<void> {
    const { state, weights, chunkSize } = this.#parts;
    this.metadata++;
    const name = streamOf(frame, fields);
    const original = this.#register(originalOf(name));
    const metastream = this.#register(name);
    const number = fields.eventNumber;
    if (number < 0) throw new SkuaError('scavenge_failed', `Found metadata in transaction in stream ${name}`, { stream: name, position: frame.position });
    const isInOrder = await this.#isInOrder(metastream, number, frame.position);
    if (this.#order.replaced !== NONE) weights.add(Math.floor(this.#order.replaced / chunkSize), WEIGHT_DISCARD);
    if (!isInOrder) return;
    // The metadata of a metastream are fixed, whatever anyone wrote.
    if (!isMetastream(original.name)) this.#storeMetadata(original, frame, fields);
    if (number === 0) return;
    const known = state.metastream(name, metastream.hi, metastream.lo);
    state.setMetastream(name, metastream.hi, metastream.lo, { isTombstoned: known?.isTombstoned ?? false, discardPoint: number });
  }

  async #isInOrder(metastream: HashedName, number: number, position: number): Promise<boolean> {
    const wasSeen = !this.#isComplete || this.#metastreams.addAndTest(metastream.hi, metastream.lo);
    if (number === 0 && !wasSeen) {
      // The first record of its metastream in the log: the commonest case by far.
      this.#order.replaced = NONE;
      return true;
    }
    return await this.#order.check(this.#keyOf(metastream), number, position);
  }

  /** Age, count and truncation are replaced together. What is no metadata counts as empty. */
  #storeMetadata({ name, hi, lo }: HashedName, frame: RecordFrame, fields: PrepareFields): void {
    const { state } = this.#parts;
    const data = frame.bytes.subarray(fields.dataAt, fields.dataAt + fields.dataLength);
    const { maxAge = null, maxCount = null, truncateBefore = null } = parseMetadata(data, true, fields.version);
    state.setOriginal(name, hi, lo, { ...(state.original(name, hi, lo) ?? NOTHING_KNOWN), maxAge, maxCount, truncateBefore, status: STATUS_ACTIVE });
  }

  /** A record with the stream-delete flag. */
  tombstone(frame: RecordFrame, fields: PrepareFields): void | Promise<void> {
    const { state } = this.#parts;
    this.tombstones++;
    const stream = this.#register(streamOf(frame, fields));
    const { name, hi, lo } = stream;
    const data = { stream: name, position: frame.position };
    if (isMetastream(name)) throw new SkuaError('scavenge_failed', `Found Tombstone in metadata stream ${name}`, data);
    if (fields.eventNumber < 0) throw new SkuaError('scavenge_failed', `Found Tombstone in transaction in stream ${name}`, data);
    state.setOriginal(name, hi, lo, { ...(state.original(name, hi, lo) ?? NOTHING_KNOWN), isTombstoned: true, status: STATUS_ACTIVE });
    const metastream = this.#register(metastreamOf(name));
    const known = state.metastream(metastream.name, metastream.hi, metastream.lo);
    state.setMetastream(metastream.name, metastream.hi, metastream.lo, { isTombstoned: true, discardPoint: known?.discardPoint ?? 0 });
    this.#tombstoned.push(metastream);
    if (this.#tombstoned.length >= TOMBSTONES_TOGETHER) return this.#weighTombstoned();
    return undefined;
  }

  /** Does what is left to do before the chunk's transaction is committed. */
  async finishChunk(): Promise<void> {
    await this.#weighTombstoned();
  }

  /** The last metadata record of a tombstoned stream is garbage. They are looked up in order of the index, which reads each of its blocks once. */
  async #weighTombstoned(): Promise<void> {
    const { weights, chunkSize } = this.#parts;
    const metastreams = this.#tombstoned.sort((a, b) => a.hi - b.hi || a.lo - b.lo);
    this.#tombstoned = [];
    for (const metastream of metastreams) {
      const position = await this.#order.lastPosition(this.#keyOf(metastream));
      if (position !== NONE) weights.add(Math.floor(position / chunkSize), WEIGHT_DISCARD);
    }
  }

  #register(name: string): HashedName {
    const { hi, lo } = this.#hashOf(name);
    this.#parts.state.register(name, hi, lo);
    return { name, hi, lo };
  }

  #hashOf(name: string): Hash64 {
    this.#parts.hasher.hash(name, this.#hash);
    return this.#hash;
  }

  #keyOf({ name, hi, lo }: HashedName): IndexKey {
    return { hi, lo, name: this.#parts.state.isCollision(name) ? encodeText(name) : null };
  }
}
