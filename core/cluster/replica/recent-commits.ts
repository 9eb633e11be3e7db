/** Bytes of commits that a member keeps at hand for its followers, and their number. */
export const RECENT_BYTES_MAX = 16_777_216;
export const RECENT_COMMITS_MAX = 16_384;

/** The last commits of the log, encoded alone, so that followers need not ask the bucket for each of them. */
export class RecentCommits {
  #commits: Uint8Array[] = [];
  /** Number of the first one. */
  #first = 1;
  #bytes = 0;

  /** Number of the last one; 0 for none. */
  get last(): number {
    return this.#first + this.#commits.length - 1;
  }

  /** Commits come in order; a gap forgets those before it. */
  add(number: number, bytes: Uint8Array): void {
    if (number !== this.#first + this.#commits.length) {
      if (number < this.#first + this.#commits.length) return;
      this.#commits = [];
      this.#first = number;
      this.#bytes = 0;
    }
    this.#commits.push(bytes);
    this.#bytes += bytes.length;
    let drop = 0;
    while (
      this.#commits.length - drop > 1 &&
      (this.#bytes > RECENT_BYTES_MAX || this.#commits.length - drop > RECENT_COMMITS_MAX)
    )
      this.#bytes -= this.#commits[drop++]!.length;
    if (drop > 0) {
      this.#commits = this.#commits.slice(drop);
      this.#first += drop;
    }
  }

  /**
   * Those from `from` to `last`, one behind the other, up to `bytesMax` but at least one; empty when `from` is the
   * number behind `last`, null when they are not here.
   */
  read(from: number, last: number, bytesMax: number): Uint8Array | null {
    if (from === last + 1) return new Uint8Array(0);
    const start = from - this.#first;
    if (start < 0 || start >= this.#commits.length || from > last) return null;
    let length = 0;
    let to = start;
    for (; to < this.#commits.length && this.#first + to <= last; to++) {
      const { length: more } = this.#commits[to]!;
      if (to > start && length + more > bytesMax) break;
      length += more;
    }
    const out = new Uint8Array(length);
    let at = 0;
    for (let i = start; i < to; i++) {
      out.set(this.#commits[i]!, at);
      at += this.#commits[i]!.length;
    }
    return out;
  }
}
