import {
  ATTRIBUTE_INDEXES,
  type AttributeIndexName,
  type AttributeSink,
  type AttributeSinks,
  type ReadAhead,
} from '../api.ts';
import { AttributeIntake } from '../intake/intake.ts';

/** Entries for which room is kept from one group of records to the next. */
const ENTRIES_KEPT_MAX = 65_536;

/** Bits, of which each hash sets one: a power of two. Where many are set, hashes that nobody has seem to be there. */
const BITS = 65_536;

/** Number of the bit of a hash. */
function bitOf(hi: number, lo: number): number {
  return (hi ^ lo) & (BITS - 1);
}

/** The entries of one index, held back. */
class HeldEntries implements AttributeSink {
  count = 0;
  readonly #bits = new Int32Array(BITS / 32);
  #hi: number[] = [];
  #lo: number[] = [];
  #positions: number[] = [];
  /** Of the last event, also of one without entries; -1 for none. */
  #last = -1;

  clear(): void {
    if (this.#hi.length > ENTRIES_KEPT_MAX) {
      this.#hi = [];
      this.#lo = [];
      this.#positions = [];
    }
    if (this.count > 0) this.#bits.fill(0);
    this.count = 0;
    this.#last = -1;
  }

  add(hi: number, lo: number, position: number): void {
    const i = this.count++;
    this.#hi[i] = hi;
    this.#lo[i] = lo;
    this.#positions[i] = position;
    const bit = bitOf(hi, lo);
    this.#bits[bit >>> 5]! |= 1 << bit;
  }

  end(position: number): void {
    this.#last = position;
  }

  mayHave(hi: number, lo: number): boolean {
    const bit = bitOf(hi, lo);
    return (this.#bits[bit >>> 5]! & (1 << bit)) !== 0;
  }

  giveTo(sink: AttributeSink): void {
    for (let i = 0; i < this.count; i++) {
      const position = this.#positions[i]!;
      if (i > 0 && position !== this.#positions[i - 1]) sink.end(this.#positions[i - 1]!);
      sink.add(this.#hi[i]!, this.#lo[i]!, position);
    }
    if (this.#last >= 0) sink.end(this.#last);
  }
}

/**
 * The entries of records that are not committed yet, read once: for who has to know them before, and for the indexes,
 * which get them only then.
 */
export class EntriesAhead implements ReadAhead {
  /** Bytes of the records that have been read, from the first on. */
  #taken = 0;
  readonly #held: { readonly [Name in AttributeIndexName]: HeldEntries } = {
    names: new HeldEntries(),
    correlations: new HeldEntries(),
    tags: new HeldEntries(),
  };
  readonly #intake = new AttributeIntake(this.#held);

  clear(): void {
    this.#taken = 0;
    for (const name of ATTRIBUTE_INDEXES) this.#held[name].clear();
  }

  /**
   * Reads what has been added to the records, which begin at the position `start`, are so many bytes by now, and hold
   * no commit.
   */
  read(records: Uint8Array, start: number, length: number): void {
    this.#taken = this.#intake.take(records, start, this.#taken, length);
  }

  /** Whether a record that has been read may have an entry of the hash in an index; false only where none has. */
  mayHave(index: AttributeIndexName, hi: number, lo: number): boolean {
    return this.#held[index].mayHave(hi, lo);
  }

  /** As `AttributeIntake.take` would. */
  giveTo(sinks: AttributeSinks): number {
    for (const name of ATTRIBUTE_INDEXES) {
      const sink = sinks[name];
      if (sink !== null) this.#held[name].giveTo(sink);
    }
    return this.#taken;
  }
}
