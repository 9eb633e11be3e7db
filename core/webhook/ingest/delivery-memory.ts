/**
 * The deliveries noted in a stream, by a 64-bit hash of their ids: which note may be the one of an id. Whether it is,
 * the note itself tells. Twelve bytes a note and eight a slot of the hash table, in typed arrays, so that a million ids
 * are no work for the garbage collector.
 *
 * Notes are known by their event numbers, which have no gaps between `first` and `next`; what is no note of a delivery,
 * or was withdrawn by an earlier version, is a hole. The oldest make room for new ones.
 */

const CAPACITY_FIRST = 1_024;
const HOLE = 0;
const NOTE = 1;

export class DeliveryMemory {
  /** Number of the oldest note that is remembered, and the one after the newest. */
  first = 0;
  next = 0;
  readonly #max: number;
  /** A power of two; note n stands in cell n mod capacity. */
  #capacity = 0;
  #high = new Int32Array(0);
  #low = new Int32Array(0);
  /** Seconds since 1970. */
  #seconds = new Uint32Array(0);
  #states = new Uint8Array(0);
  /** Cell + 1, 0 for an empty slot; linear probing, at most half of the slots taken. */
  #slots = new Int32Array(0);

  constructor(max: number) {
    this.#max = max;
    this.#resize(CAPACITY_FIRST);
  }

  /** Remembers the next note. One that is known already stays as it is; numbers left out are holes. */
  add(number: number, high: number, low: number, seconds: number): void {
    if (number < this.next) return;
    this.#holesUpTo(number);
    const cell = this.#push();
    this.#high[cell] = high;
    this.#low[cell] = low;
    this.#seconds[cell] = seconds;
    this.#states[cell] = NOTE;
    this.#link(cell);
  }

  /** The newest note below `below` whose id has this hash, -1 when there is none. */
  find(high: number, low: number, below: number): number {
    const mask = this.#slots.length - 1;
    let newest = -1;
    for (let slot = low & mask; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const cell = this.#slots[slot]! - 1;
      if (this.#low[cell] !== low || this.#high[cell] !== high) continue;
      const number = this.#numberOf(cell);
      if (number < below && number > newest) newest = number;
    }
    return newest;
  }

  /** The note counts no more. */
  withdraw(number: number): void {
    if (number < this.first || number >= this.next || this.#states[number % this.#capacity] === HOLE) return;
    const cell = number % this.#capacity;
    this.#unlink(cell);
    this.#states[cell] = HOLE;
  }

  /** Forgets the notes made before this time. */
  expire(seconds: number): void {
    while (
      this.first < this.next &&
      (this.#states[this.first % this.#capacity] === HOLE || this.#seconds[this.first % this.#capacity]! < seconds)
    )
      this.#dropFirst();
  }

  #numberOf(cell: number): number {
    return this.first + ((cell - (this.first % this.#capacity) + this.#capacity) % this.#capacity);
  }

  #holesUpTo(number: number): void {
    if (number - this.next >= this.#max || this.first === this.next) {
      while (this.first < this.next) this.#dropFirst();
      this.first = number;
      this.next = number;
    }
    while (this.next < number) this.#states[this.#push()] = HOLE;
  }

  /** The cell of a new newest note. */
  #push(): number {
    if (this.next - this.first === this.#max) this.#dropFirst();
    if (this.next - this.first === this.#capacity) this.#resize(this.#capacity * 2);
    return this.next++ % this.#capacity;
  }

  #dropFirst(): void {
    const cell = this.first % this.#capacity;
    if (this.#states[cell] !== HOLE) this.#unlink(cell);
    this.first++;
  }

  #link(cell: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#low[cell]! & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = cell + 1;
  }

  /** Empties the slot of a cell, and moves up those behind it that would not be found any more. */
  #unlink(cell: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let hole = this.#low[cell]! & mask;
    while (slots[hole] !== cell + 1) hole = (hole + 1) & mask;
    for (let slot = (hole + 1) & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const home = this.#low[slots[slot]! - 1]! & mask;
      // The entry may move to the hole unless its home lies behind that hole.
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      slots[hole] = slots[slot]!;
      hole = slot;
    }
    slots[hole] = 0;
  }

  #resize(capacity: number): void {
    const high = new Int32Array(capacity),
      low = new Int32Array(capacity),
      seconds = new Uint32Array(capacity),
      states = new Uint8Array(capacity);
    for (let number = this.first; number < this.next; number++) {
      const from = number % this.#capacity;
      const to = number % capacity;
      high[to] = this.#high[from]!;
      low[to] = this.#low[from]!;
      seconds[to] = this.#seconds[from]!;
      states[to] = this.#states[from]!;
    }
    this.#capacity = capacity;
    this.#high = high;
    this.#low = low;
    this.#seconds = seconds;
    this.#states = states;
    this.#slots = new Int32Array(capacity * 2);
    for (let number = this.first; number < this.next; number++)
      if (states[number % capacity] !== HOLE) this.#link(number % capacity);
  }
}
