/** Names of one set, the most recently used first. */
const WAYS = 4;
/** More entries than this count as this many, within the heap of a worker. */
const ENTRIES_MAX = 1_000_000;
/** A cache that would hold more code units is emptied: names can be long, and a worker's heap is limited. */
const UNITS_MAX = 16_777_216;

/**
 * Names known to be the users of their hashes, a bounded number of them. A name may stand in the few places that its
 * hash selects, least recently used last, so that a look-up compares a few strings and allocates nothing.
 */
export class NameCache {
  /** Empty until the first name comes: most connections never register one. */
  #names: string[] = [];
  readonly #sets: number;
  #units = 0;

  constructor(entries: number) {
    this.#sets = Math.max(1, Math.floor(Math.min(entries, ENTRIES_MAX) / WAYS));
  }

  has(name: string, lo: number): boolean {
    const names = this.#names;
    const first = ((lo >>> 0) % this.#sets) * WAYS;
    if (names[first] === name) return true;
    for (let i = first + 1; i < first + WAYS; i++) {
      if (names[i] !== name) continue;
      this.#putFirst(first, i, name);
      return true;
    }
    return false;
  }

  /** Adds a name that is absent. */
  add(name: string, lo: number): void {
    if (this.#names.length === 0) this.#names = Array.from({ length: this.#sets * WAYS }, () => '');
    const names = this.#names;
    const first = ((lo >>> 0) % this.#sets) * WAYS;
    this.#units += name.length - names[first + WAYS - 1]!.length;
    if (this.#units > UNITS_MAX) {
      this.clear();
      this.#units = name.length;
    }
    this.#putFirst(first, first + WAYS - 1, name);
  }

  /** Moves what stands before place `at` of the set one place on. */
  #putFirst(first: number, at: number, name: string): void {
    const names = this.#names;
    for (let i = at; i > first; i--) names[i] = names[i - 1]!;
    names[first] = name;
  }

  clear(): void {
    this.#names.fill('');
    this.#units = 0;
  }
}
