import type { AttributeEntries, AttributeIndexes, AttributeIndexName } from '../attributes/api.ts';
import type { EntriesAhead } from '../attributes/entries-ahead/entries-ahead.ts';
import { hashKey, type KeyKind } from '../attributes/format/attribute-keys.ts';
import { Hash64 } from '../base/stream-hash.ts';
import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import type { EventQuery } from './api.ts';

/** Which index has the keys of a kind. */
const INDEX_OF: { readonly [Kind in KeyKind]: AttributeIndexName } = {
  ce: 'names',
  et: 'names',
  bc: 'correlations',
  tag: 'tags',
};

/** Entries that are read at once: at first, and at most. */
const RUN_ENTRIES_MIN = 4;
const RUN_ENTRIES_MAX = 2_048;
const RUN_GROWTH = 4;
/** Where about so many entries or more lie between two runs, looking for the second costs less than reading them. */
const GAP_ENTRIES_MAX = 256;

/** Leaps from one key's list to another's after which a record is looked at, so that a page of no events ends. */
const LEAPS_MAX = 512;

const NONE: readonly number[] = [];
const scratch = new Hash64();

/** How much has been looked at on behalf of one query. */
interface Looked {
  entries: number;
}

/** The positions of one key, of which a run is known. */
interface KeyList {
  /** Where the least candidate at or behind `from`, or the greatest at or before it, lies. */
  at: number;
  /** HIT with `at`; END where there is none in that direction. */
  find(from: number, isForward: boolean): Outcome;
  /** The next one after `from` as far as that is known already; -1 where it is not. */
  known(from: number, isForward: boolean): number;
  /** Whether records that are not in the log yet may be such, or several have together what makes one. */
  mayBeAmong(entries: EntriesAhead): boolean;
}

/**
 * The entries of one key, read in runs. At or behind `coveredTo` the index rules nothing out, so that any position
 * there is a candidate.
 */
class KeyEntries implements KeyList {
  at = 0;
  readonly #entries: AttributeEntries;
  readonly #index: AttributeIndexName;
  readonly #hi: number;
  readonly #lo: number;
  readonly #looked: Looked;
  /** All entries in [#from, #to), ascending. */
  #list: readonly number[] = NONE;
  #from = 0;
  #to = 0;
  #count = RUN_ENTRIES_MIN;

  constructor(entries: AttributeEntries, kind: KeyKind, text: string, looked: Looked) {
    this.#entries = entries;
    this.#index = INDEX_OF[kind];
    this.#looked = looked;
    hashKey(kind, text, scratch);
    this.#hi = scratch.hi;
    this.#lo = scratch.lo;
  }

  find(from: number, isForward: boolean): Outcome {
    const { coveredTo } = this.#entries;
    for (let at = from; at >= 0;) {
      if (at >= coveredTo) return this.#found(at);
      if (at < this.#from || at >= this.#to) {
        const outcome = this.#read(at, isForward, coveredTo);
        if (isMiss(outcome)) return outcome;
      }
      const next = this.known(at, isForward);
      if (next >= 0) return this.#found(next);
      at = isForward ? this.#to : this.#from - 1;
    }
    return END;
  }

  #found(at: number): typeof HIT {
    this.at = at;
    this.#looked.entries++;
    return HIT;
  }

  /** Reads the run that begins at the position, a longer one where it follows the last one closely. */
  #read(at: number, isForward: boolean, coveredTo: number): Outcome {
    const gap = isForward ? at - this.#to : this.#from - 1 - at;
    const isNear = gap >= 0 && gap * this.#list.length < (this.#to - this.#from) * GAP_ENTRIES_MAX;
    const count = isNear ? Math.min(this.#count * RUN_GROWTH, RUN_ENTRIES_MAX) : RUN_ENTRIES_MIN;
    const list: number[] = [];
    const outcome = this.#entries.run(this.#hi, this.#lo, at, isForward, count, list);
    if (isMiss(outcome)) return outcome;
    const isCut = list.length === count;
    if (!isForward) list.reverse();
    this.#from = isForward ? at : isCut ? list[0]! : 0;
    this.#to = !isForward ? at + 1 : isCut ? Math.min(list.at(-1)! + 1, coveredTo) : coveredTo;
    while (list.length > 0 && list.at(-1)! >= this.#to) list.pop();
    this.#list = list;
    this.#count = count;
    return HIT;
  }

  /** Number of the first entry of the run at or behind the position. */
  #firstFrom(position: number): number {
    const list = this.#list;
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (list[middle]! < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  known(from: number, isForward: boolean): number {
    if (from < this.#from || from >= this.#to) return -1;
    const i = isForward ? this.#firstFrom(from) : this.#firstFrom(from + 1) - 1;
    return i >= 0 && i < this.#list.length ? this.#list[i]! : -1;
  }

  mayBeAmong(entries: EntriesAhead): boolean {
    return entries.mayHave(this.#index, this.#hi, this.#lo);
  }
}

/** What is in any of several lists. */
class UnitedLists implements KeyList {
  at = 0;
  readonly #lists: readonly KeyList[];

  constructor(lists: readonly KeyList[]) {
    this.#lists = lists;
  }

  find(from: number, isForward: boolean): Outcome {
    let best = -1;
    for (const list of this.#lists) {
      const outcome = list.find(from, isForward);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT && (best < 0 || (isForward ? list.at < best : list.at > best))) best = list.at;
    }
    this.at = best;
    return best < 0 ? END : HIT;
  }

  known(from: number, isForward: boolean): number {
    let best = -1;
    for (const list of this.#lists) {
      const at = list.known(from, isForward);
      if (at < 0) return -1;
      if (best < 0 || (isForward ? at < best : at > best)) best = at;
    }
    return best;
  }

  mayBeAmong(entries: EntriesAhead): boolean {
    return this.#lists.some((list) => list.mayBeAmong(entries));
  }
}

/** What is in all of several lists, as far as they were compared: nothing between is. */
class MetLists implements KeyList {
  at = 0;
  readonly #lists: readonly KeyList[];
  /**
   * The last search: where it began, how far it came, and its direction. Nothing before that is in all, so one that
   * begins within, since it had to wait or other lists were nearer, goes on there.
   */
  #passedFrom = -1;
  #passedTo = -1;
  #isForward = true;

  constructor(lists: readonly KeyList[]) {
    this.#lists = lists;
  }

  find(from: number, isForward: boolean): Outcome {
    const lists = this.#lists;
    let at = from;
    if (isForward === this.#isForward && this.#hasPassed(from)) at = this.#passedTo;
    else {
      this.#passedFrom = this.#passedTo = from;
      this.#isForward = isForward;
    }
    for (let agreed = 0, i = 0, left = LEAPS_MAX; agreed < lists.length && left > 0; left--) {
      const list = lists[i]!;
      i = (i + 1) % lists.length;
      const outcome = list.find(at, isForward);
      if (outcome !== HIT) {
        this.#passedTo = at;
        return outcome;
      }
      agreed = list.at === at ? agreed + 1 : 1;
      at = list.at;
    }
    this.at = this.#passedTo = at;
    return HIT;
  }

  #hasPassed(from: number): boolean {
    return this.#isForward
      ? this.#passedFrom <= from && from <= this.#passedTo
      : this.#passedTo <= from && from <= this.#passedFrom;
  }

  known(from: number, isForward: boolean): number {
    const lists = this.#lists;
    let at = from;
    for (let agreed = 0, i = 0, left = LEAPS_MAX; agreed < lists.length && left > 0; left--) {
      const next = lists[i]!.known(at, isForward);
      if (next < 0) return -1;
      i = (i + 1) % lists.length;
      agreed = next === at ? agreed + 1 : 1;
      at = next;
    }
    return at;
  }

  mayBeAmong(entries: EntriesAhead): boolean {
    return this.#lists.every((list) => list.mayBeAmong(entries));
  }
}

/**
 * Where the records lie that can be what a query asks for, as far as attribute indexes know: what lies between is none.
 * It never says which are: those are judged by what is in them.
 */
export class Candidates {
  readonly #list: KeyList;
  readonly #looked: Looked;

  private constructor(list: KeyList, looked: Looked) {
    this.#list = list;
    this.#looked = looked;
  }

  /** What was found last. */
  get at(): number {
    return this.#list.at;
  }
  /** Entries that were looked at. */
  get examined(): number {
    return this.#looked.entries;
  }

  /** Null where no index knows anything of what is asked for. */
  static of(query: EventQuery, indexes: AttributeIndexes): Candidates | null {
    const looked: Looked = { entries: 0 };
    const { anyOf } = query;
    if (anyOf === undefined) {
      const list = listFor(query, indexes, looked);
      return list === null ? null : new Candidates(list, looked);
    }
    const lists = anyOf.map((item) => listFor(item, indexes, looked));
    return lists.every((list) => list !== null) ? new Candidates(united(lists), looked) : null;
  }

  /**
   * The least position at or behind `from` (forward), or the greatest at or before it, that can be one, as far as the
   * lists were compared: HIT with `at`, and nothing between is one; END where there is none in that direction.
   */
  find(from: number, isForward: boolean): Outcome {
    return this.#list.find(from, isForward);
  }

  /** Whether records that are not in the log yet may be such; false only where none is. */
  mayBeAmong(entries: EntriesAhead): boolean {
    return this.#list.mayBeAmong(entries);
  }

  /** Those behind `from`, up to `count`, as far as they are known already. */
  ahead(from: number, isForward: boolean, count: number): number[] {
    const found: number[] = [];
    const step = isForward ? 1 : -1;
    for (let at = from + step; found.length < count;) {
      const next = this.#list.known(at, isForward);
      if (next < 0) break;
      found.push(next);
      at = next + step;
    }
    return found;
  }
}

/** Null where no index knows anything of what is asked for. */
function listFor(
  { category, types, correlation, tags }: EventQuery,
  indexes: AttributeIndexes,
  looked: Looked,
): KeyList | null {
  const ofTypes = types === undefined ? null : listsOf('et', types, indexes, looked);
  let lists = tags === undefined ? null : listsOf('tag', tags, indexes, looked);
  if (correlation !== undefined) lists = joined(lists, listsOf('bc', [correlation], indexes, looked));
  if (category !== undefined) lists = joined(lists, listsOf('ce', [category], indexes, looked));
  if (ofTypes !== null) lists = joined(lists, [united(ofTypes)]);
  return lists === null ? null : lists.length === 1 ? lists[0]! : new MetLists(lists);
}

type Lists = readonly KeyList[] | null;

function joined(some: Lists, more: Lists): Lists {
  return some === null ? more : more === null ? some : [...some, ...more];
}

/** One list for each text; null where the index of the kind knows nothing. */
function listsOf(kind: KeyKind, texts: readonly string[], indexes: AttributeIndexes, looked: Looked): Lists {
  const entries = indexes.of(INDEX_OF[kind]);
  if (entries === null || entries.coveredTo === 0) return null;
  return texts.map((text) => new KeyEntries(entries, kind, text, looked));
}

function united(lists: readonly KeyList[]): KeyList {
  return lists.length === 1 ? lists[0]! : new UnitedLists(lists);
}
