import type { AttributeIndexes } from '../attributes/api.ts';
import { hashKey } from '../attributes/format/attribute-keys.ts';
import { Hash64 } from '../base/stream-hash.ts';
import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import { IndexEntry } from '../index/format/entries.ts';
import { TOMBSTONE } from '../log/format/records.ts';
import { metastreamOf, TOMBSTONE_TYPE } from './format/names.ts';
import type { Lookup } from './lookup/lookup.ts';

/**
 * Tells by indexes alone that nothing hides what is in a stream: it has no metadata, and no stream of the log was ever
 * hard-deleted. Most streams of most logs are such, and their last events, which their states begin with, need not be
 * read: on object storage these are several requests for each stream of a page.
 */
export class PlainStreams {
  readonly #lookup: Lookup;
  readonly #attributes: AttributeIndexes;
  readonly #known = new Set<string>();
  readonly #hash = new Hash64();
  readonly #entry = new IndexEntry();
  /** Whether there are hard deletes, or that is not known; null before it was looked for. */
  #mayBeDeleted: boolean | null = null;

  /** For one page. */
  constructor(lookup: Lookup, attributes: AttributeIndexes) {
    this.#lookup = lookup;
    this.#attributes = attributes;
  }

  /** HIT where nothing hides events of the stream; END where its state has to be looked at. */
  step(stream: string): Outcome {
    if (this.#mayBeDeleted === null) {
      const outcome = this.#lookForDeletes();
      if (isMiss(outcome)) return outcome;
      this.#mayBeDeleted = outcome === HIT;
    }
    if (this.#mayBeDeleted) return END;
    if (this.#known.has(stream)) return HIT;
    const { index } = this.#lookup;
    const hash = this.#hash;
    index.hasher.hash(metastreamOf(stream), hash);
    const outcome = index.floor(hash.hi, hash.lo, TOMBSTONE, Number.MAX_SAFE_INTEGER, this.#entry);
    if (outcome !== END) return outcome === HIT ? END : outcome;
    this.#known.add(stream);
    return HIT;
  }

  /** END where there is none in the whole log. */
  #lookForDeletes(): Outcome {
    const names = this.#attributes.of('names');
    if (names === null || names.coveredTo < this.#lookup.reader.end) return HIT;
    hashKey('et', TOMBSTONE_TYPE, this.#hash);
    const found: number[] = [];
    const outcome = names.run(this.#hash.hi, this.#hash.lo, 0, true, 1, found);
    return outcome === HIT && found.length === 0 ? END : outcome;
  }
}
