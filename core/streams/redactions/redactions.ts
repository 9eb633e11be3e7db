import { equalBytes } from '../../base/bytes.ts';
import { guidFromText, guidToText } from '../../base/guid.ts';
import { isRedactable, keptMetadata } from '../../log/format/redaction.ts';
import { type PrepareFields, type RecordFrame, TOMBSTONE } from '../../log/format/records.ts';
import type { Mark } from '../format/marks.ts';

/** Marks that are accepted; the memory of each is for ever. */
export const MARKS_MAX = 1_000_000;

const ID_BYTES = 16;
const MARKS_MIN = 64;
const NO_NAMES: readonly string[] = [];
const NO_KEYS: MarkedKeys = { keys: NO_NAMES };
const NO_BYTES = new Uint8Array(0);

/** What a mark says of its event beside that it has one. */
export interface MarkedKeys {
  /** Metadata whose names begin with `$` and that are not shown. */
  readonly keys: readonly string[];
}

/** Marks in a form that goes to another thread, in order of the positions of what they mark. */
export interface MarkColumns {
  /** Of the marked records, and of the marks themselves. */
  readonly positions: Float64Array;
  readonly markedAt: Float64Array;
  /** On-disk ids, 16 bytes each. */
  readonly ids: Uint8Array;
  /** By position alone, whichever id a mark there has: so names hide too much rather than too little. */
  readonly keys: readonly (readonly [position: number, keys: readonly string[]])[];
}

export const NO_MARKS: MarkColumns = {
  positions: new Float64Array(0),
  markedAt: new Float64Array(0),
  ids: new Uint8Array(0),
  keys: [],
};

/** For `columns`: of all records, wherever they lie. */
export const ALL_MARKS = [0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER] as const;

/** What of an event decides whether a mark is for it, and what a mark hides. */
export interface ReadEvent<E> {
  readonly stream: string;
  readonly number: number;
  readonly id: string;
  readonly metadata: Uint8Array;
  readonly position: number;
  readonly preparePosition: number;
  readonly link: E | null;
}

/** What others may know of the marks. */
export interface RedactionView {
  /** How many there are. It only grows: an answer that was made with another count may show what is hidden now. */
  readonly count: number;
  /** Whether the event at this position of the log, with this id (UUID text), has a mark. */
  has(position: number, id: string): boolean;
  /**
   * An event that was read earlier as it reads now: what was marked since is hidden. What holds events for as long as
   * its reader likes passes them through this as it lets them go.
   */
  shown<E extends ReadEvent<E>>(event: E): E;
  /** The marks of records from `from` to before `to` that themselves lie before `before`, for a job. */
  columns(from: number, to: number, before: number): MarkColumns;
}

/**
 * The marks of the log, by position and id of the events that they name: a position alone would hit another event where
 * a log was put back to an older state and grew differently since. 40 bytes a mark.
 *
 * Positions lie in order beside the numbers of their marks, which are in order of arrival. Marks that come one behind
 * the other, as at a start, are put in order when the first question comes.
 */
export class Redactions implements RedactionView {
  count = 0;
  /** Number of the first event of the stream of marks that has not been read from the log. */
  loadedTo = 0;
  /** By number. */
  #positions = new Float64Array(MARKS_MIN);
  #ids = new Uint8Array(MARKS_MIN * ID_BYTES);
  /** Where each mark itself lies in the log; -1 for those that are not in it yet. */
  #markedAt = new Float64Array(MARKS_MIN);
  #lastMarkedAt = -1;
  /** In order of the positions: these, and the numbers. */
  #ordered = new Float64Array(MARKS_MIN);
  #numbers = new Int32Array(MARKS_MIN);
  /** Marks that are in order; those behind them have come since. */
  #inOrder = 0;
  /** No mark lies between the positions `#below` and `#above`; the latter is at `#place` of the order. */
  #below = -1;
  #above = Infinity;
  #place = 0;
  readonly #keys = new Map<number, readonly string[]>();
  readonly #id = new Uint8Array(ID_BYTES);

  /** What `columns` gave. */
  static of(columns: MarkColumns): Redactions {
    const marks = new Redactions();
    marks.addAll(columns);
    return marks;
  }

  addAll({ positions, markedAt, ids, keys }: MarkColumns, behind = -1): void {
    const named = new Map(keys);
    for (const [i, position] of positions.entries())
      if (markedAt[i]! < 0 || markedAt[i]! > behind)
        this.add({ position, id: guidToText(ids, i * ID_BYTES), keys: named.get(position) ?? NO_NAMES }, markedAt[i]!);
  }

  /** Of all marks of the log up to somewhere, adds those that are not known. They are learnt in order of the log. */
  addMissing(marks: MarkColumns): void {
    this.addAll(marks, this.#lastMarkedAt);
  }

  /** `markedAt`: position of the mark in the log. A second mark of an event adds the metadata that it names. */
  add({ position, id, keys }: Pick<Mark, 'position' | 'id' | 'keys'>, markedAt: number): void {
    if (keys.length > 0) this.#keys.set(position, [...new Set([...(this.#keys.get(position) ?? []), ...keys])]);
    if (this.count === this.#positions.length) this.#grow();
    const number = this.count++;
    this.#positions[number] = position;
    guidFromText(id, this.#ids, number * ID_BYTES);
    this.#markedAt[number] = markedAt;
    this.#lastMarkedAt = Math.max(this.#lastMarkedAt, markedAt);
    this.#below = this.#above = -1;
  }

  shown<E extends ReadEvent<E>>(event: E): E {
    if (this.count === 0) return event;
    const { link } = event;
    // A link that was marked leads nowhere.
    if (link !== null && this.#isFor(link)) return this.shown(link);
    if (!this.#isFor(event)) return event;
    const keys = this.#keys.get(event.preparePosition) ?? NO_NAMES;
    return { ...event, isRedacted: true, data: NO_BYTES, metadata: keptMetadata(event.metadata, keys) };
  }

  /** As `of` for an event that has been read: one of an explicit transaction has the position of its commit. */
  #isFor({ stream, number, id, position, preparePosition }: ReadEvent<unknown>): boolean {
    return (
      this.has(preparePosition, id) && position === preparePosition && number !== TOMBSTONE && !stream.startsWith('$')
    );
  }

  has(position: number, id: string): boolean {
    return guidFromText(id, this.#id, 0) && !this.isClear(position) && this.#isMarked(this.#id, 0);
  }

  /**
   * Whether no mark is for a record at this position. Readers go from record to record, so that most questions are
   * answered by the stretch of the one before.
   */
  isClear(position: number): boolean {
    if (position > this.#below && position < this.#above) return true;
    this.#moveTo(position);
    return position !== this.#above;
  }

  /** The mark of the event in `frame`, whose fields have been parsed; null where there is none, or it can have none. */
  of(frame: RecordFrame, fields: PrepareFields): MarkedKeys | null {
    if (this.isClear(frame.position)) return null;
    if (!this.#isMarked(frame.bytes, fields.eventIdAt) || !isRedactable(frame, fields)) return null;
    const keys = this.#keys.size === 0 ? undefined : this.#keys.get(frame.position);
    return keys === undefined ? NO_KEYS : { keys };
  }

  columns(from: number, to: number, before: number): MarkColumns {
    this.#putInOrder();
    const chosen: number[] = [];
    for (let place = this.#search(from); place < this.count && this.#ordered[place]! < to; place++) {
      const number = this.#numbers[place]!;
      if (this.#markedAt[number]! >= 0 && this.#markedAt[number]! < before) chosen.push(number);
    }
    const ids = new Uint8Array(chosen.length * ID_BYTES);
    chosen.forEach((mark, i) => ids.set(this.#ids.subarray(mark * ID_BYTES, (mark + 1) * ID_BYTES), i * ID_BYTES));
    const positions = Float64Array.from(chosen, (mark) => this.#positions[mark]!);
    const inRange = new Set(this.#keys.size === 0 ? [] : positions);
    return {
      positions,
      markedAt: Float64Array.from(chosen, (mark) => this.#markedAt[mark]!),
      ids,
      keys: [...this.#keys].filter(([position]) => inRange.has(position)),
    };
  }

  /** Whether one of the marks for the position `#above` has this id. */
  #isMarked(ids: Uint8Array, at: number): boolean {
    for (let place = this.#place; place < this.count && this.#ordered[place] === this.#above; place++)
      if (equalBytes(this.#ids, this.#numbers[place]! * ID_BYTES, ids, at, ID_BYTES)) return true;
    return false;
  }

  /** Finds the stretch without a mark that the position is in, or ends. */
  #moveTo(position: number): void {
    this.#putInOrder();
    const ordered = this.#ordered;
    const next = this.#place + 1;
    const isNext = this.#above >= 0 && position > this.#above && (next >= this.count || position <= ordered[next]!);
    this.#place = isNext ? Math.min(next, this.count) : this.#search(position);
    this.#below = this.#place === 0 ? -1 : ordered[this.#place - 1]!;
    this.#above = this.#place === this.count ? Infinity : ordered[this.#place]!;
  }

  /** Place in the order, of which `high` are there, of the first position that is not below this one. */
  #search(position: number, high = this.count): number {
    let low = 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ordered[middle]! < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Those that have come are sorted, and what is above each of them makes room: the greatest comes first. */
  #putInOrder(): void {
    const { count } = this;
    if (this.#inOrder === count) return;
    const ordered = this.#ordered;
    const numbers = this.#numbers;
    const added = new Int32Array(count - this.#inOrder);
    for (let i = 0; i < added.length; i++) added[i] = this.#inOrder + i;
    added.sort((a, b) => this.#positions[a]! - this.#positions[b]!);
    let left = this.#inOrder;
    for (let i = added.length - 1; i >= 0; i--) {
      const position = this.#positions[added[i]!]!;
      const place = this.#search(position, left);
      ordered.copyWithin(place + i + 1, place, left);
      numbers.copyWithin(place + i + 1, place, left);
      ordered[place + i] = position;
      numbers[place + i] = added[i]!;
      left = place;
    }
    this.#inOrder = count;
  }

  #grow(): void {
    const room = this.#positions.length * 2;
    const larger = <Column extends Float64Array | Int32Array | Uint8Array>(column: Column, out: Column): Column => {
      out.set(column);
      return out;
    };
    this.#positions = larger(this.#positions, new Float64Array(room));
    this.#ids = larger(this.#ids, new Uint8Array(room * ID_BYTES));
    this.#markedAt = larger(this.#markedAt, new Float64Array(room));
    this.#ordered = larger(this.#ordered, new Float64Array(room));
    this.#numbers = larger(this.#numbers, new Int32Array(room));
  }
}
