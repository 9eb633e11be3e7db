/** One entry of the index, filled in by a search. */
export class IndexEntry {
  /** Event number; TOMBSTONE for the one that hard-deletes a stream. */
  version = 0;
  /** Log position of the event's prepare. */
  position = 0;

  /**
   * Takes over another one that is nearer to what is looked for: the greater one for a floor, else the less; any where
   * nothing has been found before.
   */
  takeNearer(other: IndexEntry, isFound: boolean, isFloor: boolean): true {
    const order = other.version - this.version || other.position - this.position;
    if (!isFound || (isFloor ? order > 0 : order < 0)) {
      this.version = other.version;
      this.position = other.position;
    }
    return true;
  }
}

/** Entries of one hash in growing columns, which a reader keeps and fills again and again. */
export class EntryList {
  #versions = new Float64Array(64);
  #positions = new Float64Array(64);
  length = 0;

  /** Column of event numbers; valid below `length` and until the next `push`. */
  get versions(): Float64Array {
    return this.#versions;
  }
  /** Column of log positions; valid below `length` and until the next `push`. */
  get positions(): Float64Array {
    return this.#positions;
  }

  clear(): void {
    this.length = 0;
  }

  push(version: number, position: number): void {
    if (this.length === this.#versions.length) this.#grow();
    this.#versions[this.length] = version;
    this.#positions[this.length++] = position;
  }

  #grow(): void {
    const versions = new Float64Array(this.length * 2);
    const positions = new Float64Array(this.length * 2);
    versions.set(this.#versions);
    positions.set(this.#positions);
    this.#versions = versions;
    this.#positions = positions;
  }

  /**
   * Turns what is sorted by (version, position) round, highest version first; entries of one version stay as they were.
   */
  reverseVersions(): void {
    const versions = this.#versions.subarray(0, this.length).reverse();
    const positions = this.#positions.subarray(0, this.length).reverse();
    for (let from = 0, to = 0; from < this.length; from = to) {
      while (to < this.length && versions[to] === versions[from]) to++;
      if (to - from > 1) positions.subarray(from, to).reverse();
    }
  }

  /**
   * Sorts by (version, position), lowest first, and drops entries that are equal in both (a replay may have written
   * one twice). Searches push newest first, so reversing is nearly always all there is to do.
   */
  sortAscending(): void {
    if (this.#isDescending()) {
      this.#versions.subarray(0, this.length).reverse();
      this.#positions.subarray(0, this.length).reverse();
    } else {
      this.#mergeSort();
      this.#dropEqual();
    }
  }

  /** Compares entry `i` of one pair of columns with entry `j` of it: negative when it comes first. */
  static #compare(v: Float64Array, p: Float64Array, i: number, j: number): number {
    return v[i]! - v[j]! || p[i]! - p[j]!;
  }

  #isDescending(): boolean {
    for (let i = 1; i < this.length; i++)
      if (EntryList.#compare(this.#versions, this.#positions, i - 1, i) <= 0) return false;
    return true;
  }

  #mergeSort(): void {
    const n = this.length;
    let v = this.#versions;
    let p = this.#positions;
    let v2 = new Float64Array(v.length);
    let p2 = new Float64Array(p.length);
    for (let width = 1; width < n; width *= 2) {
      for (let from = 0; from < n; from += 2 * width) {
        const mid = Math.min(from + width, n);
        const to = Math.min(mid + width, n);
        for (let out = from, a = from, b = mid; out < to; out++) {
          const takeA = b >= to || (a < mid && EntryList.#compare(v, p, a, b) <= 0);
          const at = takeA ? a++ : b++;
          v2[out] = v[at]!;
          p2[out] = p[at]!;
        }
      }
      [v, v2] = [v2, v];
      [p, p2] = [p2, p];
    }
    this.#versions = v;
    this.#positions = p;
  }

  #dropEqual(): void {
    let kept = 0;
    for (let i = 0; i < this.length; i++) {
      if (kept > 0 && EntryList.#compare(this.#versions, this.#positions, kept - 1, i) === 0) continue;
      this.#versions[kept] = this.#versions[i]!;
      this.#positions[kept++] = this.#positions[i]!;
      // Writing at `kept` never overtakes reading at `i`.
    }
    this.length = kept;
  }
}
