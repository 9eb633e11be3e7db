import { CARRY_BYTES_MAX, CARRY_SPAN_COMMITS } from './limits.ts';

interface Carried { readonly number: number; readonly bytes: Uint8Array }

/** The last commits, as bytes, for the commit objects to come: so that whoever reads the tail needs few requests. */
export class Carry {
  #commits: Carried[] = [];

  /** `bytes` is the commit as `encodeCommit` gives it, without others. A large one is kept too, as the end of what can be carried. */
  add(number: number, bytes: Uint8Array): void {
    if (this.#commits.at(-1)?.number !== number - 1) this.#commits = [];
    if (bytes.length > CARRY_BYTES_MAX) {
      this.#commits = [];
      return;
    }
    this.#commits.push({ number, bytes });
    if (this.#commits.length > 2 * CARRY_SPAN_COMMITS) this.#commits = this.#commits.slice(-CARRY_SPAN_COMMITS);
  }

  /** What commit `number` carries, newest first: back to the last multiple of the span, as far as it fits. */
  before(number: number): readonly Uint8Array[] {
    const from = Math.floor((number - 1) / CARRY_SPAN_COMMITS) * CARRY_SPAN_COMMITS;
    const out: Uint8Array[] = [];
    let left = CARRY_BYTES_MAX;
    for (let i = this.#commits.length - 1, expected = number - 1; i >= 0; i--, expected--) {
      const one = this.#commits[i]!;
      left -= one.bytes.length;
      if (one.number !== expected || one.number < from || left < 0) break;
      out.push(one.bytes);
    }
    return out;
  }
}
