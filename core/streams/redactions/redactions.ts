import { equalBytes } from '../../base/bytes.ts';
import { guidFromText } from '../../base/guid.ts';
import { isRedactable, keptMetadata } from '../../log/format/redaction.ts';
import { type PrepareFields, type RecordFrame, TOMBSTONE } from '../../log/format/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Mark } from '../format/marks.ts';
import type { MarkColumns, MarkedName, MarkRange } from '../format/mark-columns.ts';
import type { ReadEvent, RedactionView } from './redaction-view.ts';

/** Marks that are accepted; the memory of each is for ever. */
export const MARKS_MAX = 1_000_000;

const ID_BYTES = 16;
const ID_WORDS = ID_BYTES / 4;
/** Rows that are copied before others have their turn. */
const SLICE_ROWS = 16_384;
const MARKS_MIN = 64;
const NO_NAMES: readonly string[] = [];
const NO_KEYS: MarkedKeys = { keys: NO_NAMES };
const NO_BYTES = new Uint8Array(0);

/** What a mark says of its event beside that it has one. */
export interface MarkedKeys {
  /** Metadata whose names begin with `$` and that are not shown. */
  readonly keys: readonly string[];
}

/**
 * The marks of the log, by position and id of the events that they name: a position alone would hit another event where
 * a log was put back to an older state and grew differently since. 42 bytes an event.
 *
 * Positions lie in order beside the rows of their events, which are in order of arrival. Marks that come one behind the
 * other, as at a start, are put in order when the first question comes; those of one event become one row then.
 */
export class Redactions implements RedactionView {
  /** Number of the first event of the stream of marks that has not been read from the log. */
  loadedTo = 0;
  /** Rows, in which those that are not in order yet may have an event again. */
  #rows = 0;
  #positions = new Float64Array(MARKS_MIN);
  #ids = new Uint8Array(MARKS_MIN * ID_BYTES);
  /** Where the first mark of each lies in the log; -1 where none is in it yet. */
  #markedAt = new Float64Array(MARKS_MIN);
  #lastMarkedAt = -1;
  /** In order of the positions: these, and the rows. */
  #ordered = new Float64Array(MARKS_MIN);
  #numbers = new Int32Array(MARKS_MIN);
  /** Rows that are in order; those behind them have come since. */
  #inOrder = 0;
  /** No mark lies between the positions `#below` and `#above`; the latter is at `#place` of the order. */
  #below = -1;
  #above = Infinity;
  #place = 0;
  /** Two bits in a word by a hash of the position: of a hundred that no mark is for, two or so look as if. */
  #filter = new Int32Array(MARKS_MIN / 2);
  /** Of a hash, for the place of its word. */
  #shift = 32 - Math.log2(MARKS_MIN / 2);
  /** By row: the metadata that go, too, and where the mark that names them lies. */
  readonly #names = new Map<number, Map<string, number>>();
  #namesCount = 0;
  readonly #id = new Uint8Array(ID_BYTES);

  get count(): number {
    this.putInOrder();
    return this.#rows;
  }

  get version(): number {
    return this.count + this.#namesCount;
  }

  /** What `columns` gave. */
  static of(columns: MarkColumns): Redactions {
    const marks = new Redactions();
    marks.addAll(columns);
    return marks;
  }

  /** Those, and names, whose marks lie behind a position, or are in no log yet. */
  addAll({ positions, markedAt, ids, keys }: MarkColumns, behind = -1): void {
    const isNew = (at: number): boolean => at < 0 || at > behind;
    for (let i = 0; i < positions.length; i++)
      if (isNew(markedAt[i]!)) this.#add(positions[i]!, ids, i * ID_BYTES, markedAt[i]!);
    if (keys.length > 0) this.putInOrder();
    for (const [i, name, at] of keys)
      if (isNew(at)) this.#addName(this.#add(positions[i]!, ids, i * ID_BYTES, markedAt[i]!), name, at);
  }

  /** Of all marks of the log up to somewhere, adds those that are not known. They are learnt in order of the log. */
  addMissing(marks: MarkColumns): void {
    this.addAll(marks, this.#lastMarkedAt);
  }

  /** `markedAt`: position of the mark in the log. A second mark of an event adds the metadata that it names. */
  add({ position, id, keys }: Pick<Mark, 'position' | 'id' | 'keys'>, markedAt: number): void {
    guidFromText(id, this.#id, 0);
    const row = this.#add(position, this.#id, 0, markedAt);
    for (const name of keys) this.#addName(row, name, markedAt);
  }

  /** The row of the event. While others wait to be put in order it may be a second one. */
  #add(position: number, ids: Uint8Array, at: number, markedAt: number): number {
    this.#lastMarkedAt = Math.max(this.#lastMarkedAt, markedAt);
    const known = this.#inOrder === this.#rows ? this.#rowOf(position, ids, at) : -1;
    if (known >= 0) {
      this.#markedAt[known] = firstOf(this.#markedAt[known]!, markedAt);
      return known;
    }
    if (this.#rows === this.#positions.length) this.#grow();
    const row = this.#rows++;
    this.#positions[row] = position;
    for (let i = 0; i < ID_BYTES; i++) this.#ids[row * ID_BYTES + i] = ids[at + i]!;
    this.#markedAt[row] = markedAt;
    this.#below = this.#above = -1;
    this.#note(position);
    return row;
  }

  #addName(row: number, name: string, markedAt: number): void {
    let names = this.#names.get(row);
    if (names === undefined) this.#names.set(row, (names = new Map()));
    const known = names.get(name);
    if (known === undefined) this.#namesCount++;
    names.set(name, known === undefined ? markedAt : firstOf(known, markedAt));
  }

  shown<E extends ReadEvent<E>>(event: E): E {
    if (this.#rows === 0) return event;
    const { link } = event;
    // A link that was marked leads nowhere.
    if (link !== null && this.#rowFor(link) >= 0) return this.shown(link);
    const row = this.#rowFor(event);
    if (row < 0) return event;
    const metadata = keptMetadata(event.metadata, this.#namesOf(row));
    return { ...event, isRedacted: true, data: NO_BYTES, metadata };
  }

  /** As `of` for an event that has been read: one of an explicit transaction has the position of its commit. */
  #rowFor({ stream, number, id, position, preparePosition }: ReadEvent<unknown>): number {
    return position === preparePosition && number !== TOMBSTONE && !stream.startsWith('$')
      ? this.#find(preparePosition, id)
      : -1;
  }

  #find(position: number, id: string): number {
    return guidFromText(id, this.#id, 0) && !this.isClear(position) ? this.#marked(this.#id, 0) : -1;
  }

  has(position: number, id: string): boolean {
    return this.#find(position, id) >= 0;
  }

  /**
   * Whether no mark is for a record at this position. Readers go from record to record, so that most questions are
   * answered by the stretch of the one before; where marks lie close by the filter, without a search.
   */
  isClear(position: number): boolean {
    if (position > this.#below && position < this.#above) return true;
    if (this.#above >= 0 && !this.#isInNext(position) && !this.#mayHave(position)) return true;
    this.#moveTo(position);
    return position !== this.#above;
  }

  /** The mark of the event in `frame`, whose fields have been parsed; null where there is none, or it can have none. */
  of(frame: RecordFrame, fields: PrepareFields): MarkedKeys | null {
    if (this.isClear(frame.position)) return null;
    const row = this.#marked(frame.bytes, fields.eventIdAt);
    if (row < 0 || !isRedactable(frame, fields)) return null;
    return this.#names.has(row) ? { keys: this.#namesOf(row) } : NO_KEYS;
  }

  #namesOf(row: number): readonly string[] {
    const names = this.#names.get(row);
    return names === undefined ? NO_NAMES : [...names.keys()];
  }

  columns(from: number, to: number, before: number): MarkColumns {
    const copy = this.#copy(from, to, before);
    for (;;) {
      const step = copy.next();
      if (step.done === true) return step.value;
    }
  }

  async columnsInTurns(range: MarkRange, clock: Pick<Clock, 'yield'>): Promise<MarkColumns> {
    const copy = this.#copy(...range);
    for (;;) {
      const step = copy.next();
      if (step.done === true) return step.value;
      await clock.yield();
    }
  }

  /** Pauses where others may have their turn. What comes meanwhile is left out: rows in order stay where they are. */
  *#copy(from: number, to: number, before: number): Generator<void, MarkColumns, undefined> {
    this.putInOrder();
    const isIn = (markedAt: number): boolean => markedAt >= 0 && markedAt < before;
    const first = this.#search(from);
    const rows = this.#numbers.slice(first, Math.max(first, this.#search(to)));
    const positions = new Float64Array(rows.length);
    const markedAt = new Float64Array(rows.length);
    const ids = new Int32Array(rows.length * ID_WORDS);
    const keys: MarkedName[] = [];
    let count = 0;
    for (let begin = 0; begin < rows.length; begin += SLICE_ROWS) {
      if (begin > 0) yield;
      const words = new Int32Array(this.#ids.buffer);
      const hasNames = this.#names.size > 0;
      for (let i = begin; i < Math.min(begin + SLICE_ROWS, rows.length); i++) {
        const row = rows[i]!;
        const at = this.#markedAt[row]!;
        if (!isIn(at)) continue;
        positions[count] = this.#positions[row]!;
        markedAt[count] = at;
        for (let word = 0; word < ID_WORDS; word++) ids[count * ID_WORDS + word] = words[row * ID_WORDS + word]!;
        if (hasNames)
          for (const [name, namedAt] of this.#names.get(row) ?? [])
            if (isIn(namedAt)) keys.push([count, name, namedAt]);
        count++;
      }
    }
    if (count === rows.length) return { positions, markedAt, ids: new Uint8Array(ids.buffer), keys };
    return {
      positions: positions.slice(0, count),
      markedAt: markedAt.slice(0, count),
      ids: new Uint8Array(ids.buffer.slice(0, count * ID_BYTES)),
      keys,
    };
  }

  /** The row of the event with this id at the position `#above`; -1 where there is none. */
  #marked(ids: Uint8Array, at: number): number {
    return this.#rowFrom(this.#place, this.#above, ids, at);
  }

  #rowOf(position: number, ids: Uint8Array, at: number): number {
    return this.#rowFrom(this.#search(position, this.#inOrder), position, ids, at);
  }

  #rowFrom(place: number, position: number, ids: Uint8Array, at: number): number {
    for (; place < this.#inOrder && this.#ordered[place] === position; place++)
      if (this.#isId(this.#numbers[place]!, ids, at)) return this.#numbers[place]!;
    return -1;
  }

  #isId(row: number, ids: Uint8Array, at: number): boolean {
    return equalBytes(this.#ids, row * ID_BYTES, ids, at, ID_BYTES);
  }

  /** Whether the position is in the stretch behind this one, or ends it. */
  #isInNext(position: number): boolean {
    const next = this.#place + 1;
    return position > this.#above && (next >= this.#rows || position <= this.#ordered[next]!);
  }

  /** Finds the stretch without a mark that the position is in, or ends. */
  #moveTo(position: number): void {
    this.putInOrder();
    const ordered = this.#ordered;
    this.#place =
      this.#above >= 0 && this.#isInNext(position) ? Math.min(this.#place + 1, this.#rows) : this.#search(position);
    this.#below = this.#place === 0 ? -1 : ordered[this.#place - 1]!;
    this.#above = this.#place === this.#rows ? Infinity : ordered[this.#place]!;
  }

  /** Place in the order, of which `high` are there, of the first position that is not below this one. */
  #search(position: number, high = this.#rows): number {
    let low = 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ordered[middle]! < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Those that have come are sorted, and what is above each of them makes room: the greatest comes first. Who adds many
   * calls it now and then, so that no one call has much to do.
   */
  putInOrder(): void {
    if (this.#inOrder === this.#rows) return;
    const added = this.#withoutRepeats(this.#sorted());
    const ordered = this.#ordered;
    const numbers = this.#numbers;
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
    this.#inOrder = this.#rows;
  }

  /** The rows that have come, by position, those of one by age. */
  #sorted(): Int32Array {
    const added = new Int32Array(this.#rows - this.#inOrder);
    let isSorted = true;
    for (let i = 0; i < added.length; i++) {
      added[i] = this.#inOrder + i;
      if (i > 0 && this.#positions[added[i]!]! < this.#positions[added[i - 1]!]!) isSorted = false;
    }
    return isSorted ? added : added.sort((a, b) => this.#positions[a]! - this.#positions[b]! || a - b);
  }

  /** A row of an event that has one already goes into that; those behind it move up. */
  #withoutRepeats(added: Int32Array): Int32Array {
    const first = new Map<number, number>();
    for (let i = 0; i < added.length; i++) {
      const row = added[i]!;
      const twin = this.#twinOf(added, i);
      if (twin < 0) continue;
      first.set(row, twin);
      this.#markedAt[twin] = firstOf(this.#markedAt[twin]!, this.#markedAt[row]!);
      this.#moveNames(row, twin);
    }
    if (first.size === 0) return added;
    const moved = new Int32Array(added.length);
    let to = this.#inOrder;
    for (let row = this.#inOrder; row < this.#rows; row++) {
      if (first.has(row)) continue;
      moved[row - this.#inOrder] = to;
      if (to !== row) this.#moveRow(row, to);
      to++;
    }
    this.#rows = to;
    return added.filter((row) => !first.has(row)).map((row) => moved[row - this.#inOrder]!);
  }

  #twinOf(added: Int32Array, i: number): number {
    const row = added[i]!;
    const position = this.#positions[row]!;
    let twin = this.#rowOf(position, this.#ids, row * ID_BYTES);
    if (twin >= 0) return twin;
    // To the first one, into which all others go.
    for (let before = i - 1; before >= 0 && this.#positions[added[before]!] === position; before--)
      if (this.#isId(added[before]!, this.#ids, row * ID_BYTES)) twin = added[before]!;
    return twin;
  }

  #moveRow(from: number, to: number): void {
    this.#positions[to] = this.#positions[from]!;
    this.#markedAt[to] = this.#markedAt[from]!;
    this.#ids.copyWithin(to * ID_BYTES, from * ID_BYTES, (from + 1) * ID_BYTES);
    this.#moveNames(from, to);
  }

  #moveNames(from: number, to: number): void {
    const names = this.#names.get(from);
    if (names === undefined) return;
    this.#names.delete(from);
    this.#namesCount -= names.size;
    for (const [name, markedAt] of names) this.#addName(to, name, markedAt);
  }

  #note(position: number): void {
    const hash = hashOf(position);
    this.#filter[hash >>> this.#shift]! |= bitsOf(hash);
  }

  #mayHave(position: number): boolean {
    const hash = hashOf(position);
    const bits = bitsOf(hash);
    return (this.#filter[hash >>> this.#shift]! & bits) === bits;
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
    this.#filter = new Int32Array(room / 2);
    this.#shift--;
    for (let row = 0; row < this.#rows; row++) this.#note(this.#positions[row]!);
  }
}

/** The earlier one of two places of marks, of which those in no log yet come last. */
function firstOf(one: number, two: number): number {
  return one < 0 ? two : two < 0 ? one : Math.min(one, two);
}

function hashOf(position: number): number {
  const mixed = (position | 0) ^ Math.imul(Math.floor(position / 4_294_967_296), 0x85eb_ca6b);
  return Math.imul(mixed, 0x9e37_79b1);
}

/** The upper bits of the hash say which word. */
function bitsOf(hash: number): number {
  return (1 << (hash & 31)) | (1 << ((hash >>> 5) & 31));
}
