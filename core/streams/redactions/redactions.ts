import { equalBytes } from '../../base/bytes.ts';
import { guidFromText, guidToText } from '../../base/guid.ts';
import { isRedactable, keptMetadata } from '../../log/format/redaction.ts';
import { FRAME_BYTES, type PrepareFields, type RecordFrame, TOMBSTONE } from '../../log/format/records.ts';
import type { Mark } from '../format/marks.ts';

/** Marks that are accepted; the memory of each is for ever. */
export const MARKS_MAX = 1_000_000;

const ID_BYTES = 16;
const MARKS_MIN = 64;
/** Slots of the table for each mark that there is room for. */
const SLOTS_PER_MARK = 2;
const NOTHING: readonly string[] = [];
const NO_KEYS: MarkedKeys = { keys: NOTHING };
const NO_BYTES = new Uint8Array(0);

/** What a mark says of its event beside that it has one. */
export interface MarkedKeys {
  /** Metadata whose names begin with `$` and that are not shown. */
  readonly keys: readonly string[];
}

/** Marks in a form that goes to another thread, in order of the log. */
export interface MarkColumns {
  /** Of the marked records, and of the marks themselves. */
  readonly positions: Float64Array;
  readonly markedAt: Float64Array;
  /** On-disk ids, 16 bytes each. */
  readonly ids: Uint8Array;
  /** By position. */
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
  /** How many there are. */
  readonly count: number;
  /**
   * How much is hidden: marks, and names of metadata in them. It only grows: an answer that was made at another
   * revision may show what is hidden now.
   */
  readonly revision: number;
  /**
   * An event that was read earlier as it reads now: what was marked since is hidden. What holds events for longer than
   * it takes to answer passes them through this as it lets them go.
   */
  shown<E extends ReadEvent<E>>(event: E): E;
  /** Whether the event at this position of the log, with this id (UUID text), has a mark. */
  has(position: number, id: string): boolean;
  /** The marks of records from `from` to before `to` that themselves lie before `before`, for a job. */
  columns(from: number, to: number, before: number): MarkColumns;
}

/**
 * The marks of the log, by position and id of the events that they name: a position alone would hit another event where
 * a log was put back to an older state and grew differently since. 36 bytes a mark.
 */
export class Redactions implements RedactionView {
  count = 0;
  /** Number of the first event of the stream of marks that has not been read from the log. */
  loadedTo = 0;
  #positions = new Float64Array(MARKS_MIN);
  #ids = new Uint8Array(MARKS_MIN * ID_BYTES);
  /** Where each mark itself lies in the log; -1 for those that are not in it yet. */
  #markedAt = new Float64Array(MARKS_MIN);
  /** Open addressing: number of the mark and 1; 0 for none. */
  #slots = new Int32Array(MARKS_MIN * SLOTS_PER_MARK);
  readonly #keys = new Map<number, readonly string[]>();
  #hiddenKeys = 0;
  readonly #id = new Uint8Array(ID_BYTES);

  /** `markedAt`: position of the mark in the log. A second mark of an event adds the metadata that it names. */
  add({ position, id, keys }: Pick<Mark, 'position' | 'id' | 'keys'>, markedAt: number): void {
    guidFromText(id, this.#id, 0);
    const known = this.#find(position, this.#id, 0);
    if (keys.length > 0) this.#hide(position, keys);
    if (known >= 0) {
      // One that came with the files of a restore, and is in the log now.
      if (this.#markedAt[known]! < 0) this.#markedAt[known] = markedAt;
      return;
    }
    if (this.count === this.#positions.length) this.#grow();
    this.#positions[this.count] = position;
    this.#ids.set(this.#id, this.count * ID_BYTES);
    this.#markedAt[this.count] = markedAt;
    this.#put(this.count++);
  }

  #hide(position: number, keys: readonly string[]): void {
    const before = this.#keys.get(position) ?? NOTHING;
    const hidden = [...new Set([...before, ...keys])];
    this.#keys.set(position, hidden);
    this.#hiddenKeys += hidden.length - before.length;
  }

  get revision(): number {
    return this.count + this.#hiddenKeys;
  }

  shown<E extends ReadEvent<E>>(event: E): E {
    if (this.count === 0) return event;
    const { link } = event;
    // A link that was marked leads nowhere.
    if (link !== null && this.#marks(link)) return this.shown(link);
    if (!this.#marks(event)) return event;
    const keys = this.#keys.get(event.preparePosition) ?? NOTHING;
    return {
      ...event,
      isRedacted: true,
      data: NO_BYTES,
      metadata: keptMetadata(event.metadata, keys),
    };
  }

  /** As `of` for an event that has been read: one of an explicit transaction has the position of its commit. */
  #marks({ stream, number, id, position, preparePosition }: ReadEvent<unknown>): boolean {
    return (
      this.has(preparePosition, id) && position === preparePosition && number !== TOMBSTONE && !stream.startsWith('$')
    );
  }

  has(position: number, id: string): boolean {
    return guidFromText(id, this.#id, 0) && this.#find(position, this.#id, 0) >= 0;
  }

  /** The mark of the event in `frame`, whose fields have been parsed; null where there is none, or it can have none. */
  of(frame: RecordFrame, fields: PrepareFields): MarkedKeys | null {
    if (this.#find(frame.position, frame.bytes, fields.eventIdAt) < 0 || !isRedactable(frame, fields)) return null;
    const keys = this.#keys.size === 0 ? undefined : this.#keys.get(frame.position);
    return keys === undefined ? NO_KEYS : { keys };
  }

  columns(from: number, to: number, before: number): MarkColumns {
    const chosen: number[] = [];
    for (let i = 0; i < this.count; i++) {
      const position = this.#positions[i]!;
      const markedAt = this.#markedAt[i]!;
      if (position >= from && position < to && markedAt >= 0 && markedAt < before) chosen.push(i);
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

  /** What `columns` gave. */
  static of(columns: MarkColumns): Redactions {
    const marks = new Redactions();
    marks.addAll(columns);
    return marks;
  }

  addAll({ positions, markedAt, ids, keys }: MarkColumns): void {
    const named = new Map(keys);
    for (const [i, position] of positions.entries())
      this.add({ position, id: guidToText(ids, i * ID_BYTES), keys: named.get(position) ?? NOTHING }, markedAt[i]!);
  }

  #find(position: number, ids: Uint8Array, at: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = slotOf(position, mask); ; slot = (slot + 1) & mask) {
      const mark = slots[slot]! - 1;
      if (mark < 0) return -1;
      if (this.#positions[mark] === position && equalBytes(this.#ids, mark * ID_BYTES, ids, at, ID_BYTES)) return mark;
    }
  }

  #put(mark: number): void {
    const mask = this.#slots.length - 1;
    let slot = slotOf(this.#positions[mark]!, mask);
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = mark + 1;
  }

  #grow(): void {
    const room = this.#positions.length * 2;
    const positions = new Float64Array(room);
    positions.set(this.#positions);
    const ids = new Uint8Array(room * ID_BYTES);
    ids.set(this.#ids);
    const markedAt = new Float64Array(room);
    markedAt.set(this.#markedAt);
    this.#positions = positions;
    this.#ids = ids;
    this.#markedAt = markedAt;
    this.#slots = new Int32Array(room * SLOTS_PER_MARK);
    for (let mark = 0; mark < this.count; mark++) this.#put(mark);
  }
}

const SPREAD = 0x9e3779b1;

/** Records lie `FRAME_BYTES` apart at least, and mostly at the same distance: multiplication spreads them. */
function slotOf(position: number, mask: number): number {
  const high = Math.floor(position / 4_294_967_296);
  const mixed = Math.imul((position >>> 0) ^ Math.imul(high, FRAME_BYTES + 1), SPREAD);
  return (mixed ^ (mixed >>> 15)) & mask;
}
