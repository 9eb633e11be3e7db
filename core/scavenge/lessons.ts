import { SkuaError } from '../errors.ts';
import { Hash64, type StreamHasher } from '../index/stream-hash.ts';
import { streamOf, type PrepareFields, type RecordFrame } from '../log/records.ts';
import { parseMetadata } from '../streams/metadata.ts';
import { isMetastream, metastreamOf, originalOf } from '../streams/names.ts';
import { shownData } from '../streams/retention.ts';
import { decodeText } from '../text.ts';
import { SeenHashes, SeenNames } from './seen-names.ts';

/** Names, and code units of them, that wait at most. */
const NAMES_MAX = 65_536;
const UNITS_MAX = 8_388_608;

export interface HashedName { readonly name: string; readonly hi: number; readonly lo: number }

/** What a metadata record or a tombstone teaches. */
export interface Lesson {
  readonly original: HashedName;
  readonly metastream: HashedName;
  readonly position: number;
  /** Of a metadata record; a tombstone has none. */
  readonly metadata: MetadataLesson | null;
}

export interface MetadataLesson {
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
 * Collects what records teach, scavenge.md section 4.2, in order of the log. Lessons are stored in order of their hashes:
 * the database and the index then touch each of their blocks once for many lessons instead of once for each.
 */
export class Lessons {
  readonly #hasher: StreamHasher;
  readonly #hash = new Hash64();
  readonly #seen = new SeenNames();
  readonly #metastreams = new SeenHashes();
  /** Every record of the log so far has come by: what the index says of earlier ones is known without asking it. */
  #isComplete: boolean;
  #units = 0;
  /** Streams to register, and what to learn then. */
  names: HashedName[] = [];
  lessons: Lesson[] = [];
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
  get isFull(): boolean { return this.names.length >= NAMES_MAX || this.#units >= UNITS_MAX; }

  clear(): void {
    this.names = [];
    this.lessons = [];
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
    if (number < 0) throw failure(`Found metadata in transaction in stream ${name}`, name, frame);
    const original = this.#register(originalOf(name));
    const metastream = this.#register(name);
    const { maxAge = null, maxCount = null, truncateBefore = null } = parseMetadata(shownData(frame, fields), true, fields.version);
    const isFirst = this.#isComplete && !this.#metastreams.addAndTest(metastream.hi, metastream.lo) && number === 0;
    this.lessons.push({ original, metastream, position: frame.position, metadata: { number, maxAge, maxCount, truncateBefore, isFirst, isInOrder: true } });
  }

  /** A record with the stream-delete flag. */
  tombstone(frame: RecordFrame, fields: PrepareFields): void {
    this.tombstones++;
    const name = streamOf(frame, fields);
    if (isMetastream(name)) throw failure(`Found Tombstone in metadata stream ${name}`, name, frame);
    if (fields.eventNumber < 0) throw failure(`Found Tombstone in transaction in stream ${name}`, name, frame);
    const original = this.#register(name);
    const metastream = this.#register(metastreamOf(name));
    this.lessons.push({ original, metastream, position: frame.position, metadata: null });
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
