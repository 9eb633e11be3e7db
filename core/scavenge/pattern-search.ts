/** Longest jump, which a byte holds. */
const JUMP_MAX = 255;
const PAIRS = 65_536;

/**
 * Finds all occurrences of several byte patterns in one pass (Wu and Manber's algorithm): the last two bytes of a window
 * as long as the shortest pattern say how far the next possible match is away, so that most bytes are never looked at.
 * Patterns have two bytes at least.
 */
export class PatternSearch {
  readonly #patterns: readonly Uint8Array[];
  readonly #window: number;
  readonly #jumps = new Uint8Array(PAIRS);
  /** For a pair that may end a window: one more than the first pattern, and for each pattern the next one. */
  readonly #first = new Int32Array(PAIRS);
  readonly #next: Int32Array;

  constructor(patterns: readonly Uint8Array[]) {
    this.#patterns = patterns;
    this.#window = Math.min(JUMP_MAX + 1, ...patterns.map((pattern) => pattern.length));
    this.#next = new Int32Array(patterns.length);
    this.#jumps.fill(Math.max(1, this.#window - 1));
    patterns.forEach((pattern, index) => this.#enter(pattern, index));
  }

  #enter(pattern: Uint8Array, index: number): void {
    const last = this.#window - 1;
    for (let end = 1; end <= last; end++) {
      const pair = pattern[end - 1]! | (pattern[end]! << 8);
      this.#jumps[pair] = Math.min(this.#jumps[pair]!, last - end);
    }
    const pair = pattern[last - 1]! | (pattern[last]! << 8);
    this.#next[index] = this.#first[pair]!;
    this.#first[pair] = index + 1;
  }

  /** Calls `found` for every pattern that lies whole in `bytes` and starts before `end`, by ascending offset. */
  each(bytes: Uint8Array, end: number, found: (pattern: number, offset: number) => void): void {
    if (this.#patterns.length === 0) return;
    const jumps = this.#jumps;
    const last = this.#window - 1;
    const stop = Math.min(bytes.length, end + last);
    for (let at = last; at < stop;) {
      const pair = bytes[at - 1]! | (bytes[at]! << 8);
      const jump = jumps[pair]!;
      if (jump > 0) {
        at += jump;
        continue;
      }
      for (let index = this.#first[pair]!; index > 0; index = this.#next[index - 1]!) {
        if (startsAt(bytes, at - last, this.#patterns[index - 1]!)) found(index - 1, at - last);
      }
      at++;
    }
  }
}

function startsAt(bytes: Uint8Array, offset: number, pattern: Uint8Array): boolean {
  if (offset + pattern.length > bytes.length) return false;
  for (let i = 0; i < pattern.length; i++) if (bytes[offset + i] !== pattern[i]) return false;
  return true;
}
