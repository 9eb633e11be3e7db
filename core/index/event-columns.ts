import { TOMBSTONE } from '../log/format/records.ts';
import type { Hash64 } from '../base/stream-hash.ts';

/** What takes entries in: the index of a node, or that of a view of a log on object storage. */
export interface EntrySink {
  add(hi: number, lo: number, number: number, position: number): void;
  addStream(hi: number, lo: number, position: number): void;
  endBulk(commitPosition: number, preparePosition: number): void;
}

/** Room at first, in events. */
const ROOM_FIRST = 1_024;
/** The event is not the last of its transaction. */
const GOES_ON = -1;

/**
 * Committed events, in the order of the log, as what they are to index and existence filter. Whoever wrote them notes them while
 * writing; all others read them from records. `applyTo` is the only place in which an event comes into an index.
 */
export class EventColumns {
  count = 0;
  #hi = new Uint32Array(ROOM_FIRST);
  #lo = new Uint32Array(ROOM_FIRST);
  #numbers = new Float64Array(ROOM_FIRST);
  #positions = new Float64Array(ROOM_FIRST);
  /** Position of the record that commits a transaction, at the last event of it. */
  #commits = new Float64Array(ROOM_FIRST);
  /** 1 where the existence filter may not know the stream yet. */
  #begins = new Uint8Array(ROOM_FIRST);

  clear(): void {
    this.count = 0;
  }

  position(i: number): number { return this.#positions[i]!; }
  number(i: number): number { return this.#numbers[i]!; }

  /** An event that its own record commits, as all are that this program writes. `isLast`: of its transaction. A stream begins with event 0 or its tombstone. */
  note(hash: Pick<Hash64, 'hi' | 'lo'>, number: number, position: number, isLast: boolean): void {
    this.noteAs(hash, number, position, number === 0 || number === TOMBSTONE);
    if (isLast) this.endTransaction(position);
  }

  /** An event of a transaction that goes on. `mayBegin`: the existence filter may not know its stream. */
  noteAs(hash: Pick<Hash64, 'hi' | 'lo'>, number: number, position: number, mayBegin: boolean): void {
    const i = this.count++;
    if (i === this.#numbers.length) this.#grow();
    this.#hi[i] = hash.hi;
    this.#lo[i] = hash.lo;
    this.#numbers[i] = number;
    this.#positions[i] = position;
    this.#commits[i] = GOES_ON;
    this.#begins[i] = mayBegin ? 1 : 0;
  }

  /** The event noted last is the last of the transaction that the record at `commitPosition` commits. */
  endTransaction(commitPosition: number): void {
    this.#commits[this.count - 1] = commitPosition;
  }

  #grow(): void {
    const room = this.#numbers.length * 2;
    this.#hi = grown(this.#hi, new Uint32Array(room));
    this.#lo = grown(this.#lo, new Uint32Array(room));
    this.#numbers = grown(this.#numbers, new Float64Array(room));
    this.#positions = grown(this.#positions, new Float64Array(room));
    this.#commits = grown(this.#commits, new Float64Array(room));
    this.#begins = grown(this.#begins, new Uint8Array(room));
  }

  applyTo(index: EntrySink): void {
    for (let i = 0; i < this.count; i++) {
      const hi = this.#hi[i]!;
      const lo = this.#lo[i]!;
      const position = this.#positions[i]!;
      index.add(hi, lo, this.#numbers[i]!, position);
      if (this.#begins[i] === 1) index.addStream(hi, lo, position);
      if (this.#commits[i] !== GOES_ON) index.endBulk(this.#commits[i]!, position);
    }
  }
}

function grown<T extends Uint32Array | Float64Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
