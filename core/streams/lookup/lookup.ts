import { equalBytes } from '../../base/bytes.ts';
import { END, HIT, type Outcome, untilHit } from '../../base/step.ts';
import { GuidTexts } from '../../base/guid.ts';
import { EntryList, IndexEntry } from '../../index/format/entries.ts';
import type { StreamIndex } from '../../index/index.ts';
import type { LogReader, ReadFor } from '../../log/api.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../../log/format/records.ts';
import { Hash64, type StreamHasher } from '../../base/stream-hash.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { Redactions } from '../redactions/redactions.ts';

/**
 * Filled and read within the constructor of one key, and never across an await: no key sees what another one left in
 * it.
 */
const scratch = new Hash64();
/** Lists that are kept, and entries of the largest one. */
const SPARE_LISTS_MAX = 16;
const SPARE_LIST_ENTRIES_MAX = 65_536;
const POSITION_MAX = Number.MAX_SAFE_INTEGER;

/** A stream's name in the forms in which lookups need it. */
export class StreamKey {
  readonly name: string;
  readonly hi: number;
  readonly lo: number;
  #bytes: Uint8Array | null = null;
  #salt = 0;

  constructor(name: string, hasher: StreamHasher) {
    hasher.hash(name, scratch);
    this.name = name;
    this.hi = scratch.hi;
    this.lo = scratch.lo;
  }

  /**
   * The name in UTF-8. Not made before it is needed: most names asked for that do not exist end at the existence
   * filter.
   */
  get bytes(): Uint8Array {
    return (this.#bytes ??= encodeText(this.name));
  }

  /** Another hash of the name, independent of the index's. */
  get salt(): number {
    return this.#salt === 0 ? (this.#salt = saltOf(this.name)) : this.#salt;
  }
}

const SALT_SEED = 0x811c9dc5 | 0;
const SALT_PRIME = 0x01000193;

function saltOf(name: string): number {
  let hash = SALT_SEED;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), SALT_PRIME);
  return hash === 0 ? 1 : hash;
}

/** The salt of the name in the bytes [at, at + length), whose text is made only where it is not plain ASCII. */
export function saltAt(bytes: Uint8Array, at: number, length: number): number {
  let hash = SALT_SEED;
  for (let i = at; i < at + length; i++) {
    if (bytes[i]! > 0x7f) return saltOf(decodeText(bytes.subarray(at, at + length)));
    hash = Math.imul(hash ^ bytes[i]!, SALT_PRIME);
  }
  return hash === 0 ? 1 : hash;
}

/** What the streams need of the index. */
export type EventIndex = Pick<
  StreamIndex,
  | 'hasher'
  | 'add'
  | 'endBulk'
  | 'ready'
  | 'floor'
  | 'ceiling'
  | 'range'
  | 'mightContain'
  | 'addStream'
  | 'noteExistenceCheckpoint'
>;

/** Lists of index entries that pages give back, so that the next one does not allocate columns. */
class SpareLists {
  readonly #lists: EntryList[] = [];

  take(): EntryList {
    return this.#lists.pop() ?? new EntryList();
  }

  give(list: EntryList): void {
    if (this.#lists.length < SPARE_LISTS_MAX && list.length <= SPARE_LIST_ENTRIES_MAX) this.#lists.push(list);
  }
}

/**
 * Index and log together: every entry found in the index is confirmed by the record it points to, so that streams whose
 * hashes collide are told apart exactly, and entries of records that a scavenge removed are passed over.
 *
 * All methods are steps (core/base/step.ts); after a HIT `frame` and `fields` hold the record until the next step.
 */
export class Lookup {
  readonly reader: LogReader;
  readonly index: EventIndex;
  readonly spareLists = new SpareLists();
  readonly frame = new RecordFrame();
  readonly fields = new PrepareFields();
  /** Ids of events that a step is making; settled when it ends. */
  readonly ids = new GuidTexts();
  /** Which events are shown without their content. */
  readonly redactions = new Redactions();

  constructor(reader: LogReader, index: EventIndex) {
    this.reader = reader;
    this.index = index;
  }

  /**
   * HIT when the record at `position` belongs to the stream; END when it is gone or another stream's. `what` as in
   * LogReader.
   */
  confirm(position: number, key: StreamKey, what: ReadFor = 'run'): Outcome {
    const outcome = this.reader.readAt(position, this.frame, what);
    if (outcome !== HIT) return outcome;
    if (this.frame.type !== PREPARE) return END;
    const f = this.fields;
    parsePrepare(this.frame, f);
    const name = key.bytes;
    return f.streamLength === name.length && equalBytes(this.frame.bytes, f.streamAt, name, 0, name.length) ? HIT : END;
  }
}

/** Finds the highest event number of a stream at or below a bound. After a HIT it is in `entry.version`. */
export class FloorSearch {
  readonly entry = new IndexEntry();
  readonly #key: StreamKey;
  #version: number;
  #position = POSITION_MAX;
  #isFound = false;

  constructor(key: StreamKey, version: number) {
    this.#key = key;
    this.#version = version;
  }

  step(lookup: Lookup): Outcome {
    for (;;) {
      if (!this.#isFound) {
        const outcome = lookup.index.floor(this.#key.hi, this.#key.lo, this.#version, this.#position, this.entry);
        if (outcome !== HIT) return outcome;
        this.#isFound = true;
      }
      const outcome = lookup.confirm(this.entry.position, this.#key, 'single');
      if (outcome !== END) return outcome;
      this.#isFound = false;
      this.#version = this.entry.position > 0 ? this.entry.version : this.entry.version - 1;
      this.#position = this.entry.position > 0 ? this.entry.position - 1 : POSITION_MAX;
      if (this.#version < 0) return END;
    }
  }
}

/**
 * Finds the lowest event number of a stream within [from, to], and of several records with that number the one with
 * the lowest position. After a HIT the lookup's frame holds the record.
 */
export class CeilingSearch {
  readonly entry = new IndexEntry();
  readonly #key: StreamKey;
  readonly #to: number;
  #version: number;
  #position = 0;
  #isFound = false;

  constructor(key: StreamKey, from: number, to: number) {
    this.#key = key;
    this.#version = from;
    this.#to = to;
  }

  /**
   * Begins to load what `step` will need, no more than a block of each file: a miss after which it is to be called
   * again, else there is nothing more to begin.
   */
  prepare(lookup: Lookup): Outcome {
    if (!this.#isFound) {
      const outcome = lookup.index.ceiling(this.#key.hi, this.#key.lo, this.#version, this.#position, this.entry);
      if (outcome !== HIT) return outcome;
      if (this.entry.version > this.#to) return END;
      this.#isFound = true;
    }
    lookup.reader.prefetch(this.entry.position);
    return HIT;
  }

  step(lookup: Lookup): Outcome {
    for (;;) {
      if (!this.#isFound) {
        const outcome = lookup.index.ceiling(this.#key.hi, this.#key.lo, this.#version, this.#position, this.entry);
        if (outcome !== HIT) return outcome;
        if (this.entry.version > this.#to) return END;
        this.#isFound = true;
      }
      const outcome = lookup.confirm(this.entry.position, this.#key, 'single');
      if (outcome !== END) return outcome;
      this.#isFound = false;
      this.#version = this.entry.version;
      this.#position = this.entry.position + 1;
    }
  }
}

/**
 * Takes a search's step until it misses no more. Its `entry` is then valid; the lookup's frame is not, as others may
 * have read since.
 */
export function runSearch(search: { step(lookup: Lookup): Outcome }, lookup: Lookup): Promise<typeof HIT | typeof END> {
  return untilHit(() => search.step(lookup));
}
