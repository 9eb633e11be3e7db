import type { RetentionRule } from '../streams/retention.ts';
import type { Explanation } from './api.ts';

/** Ranges of either kind that are told apart; from there on the last range of its kind is extended over what lies between. */
const RANGES_MAX = 1_000;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Puts decisions about single events together to ranges of event numbers. Memory does not grow with the stream. */
export class ExplainRanges {
  readonly removed: Mutable<Explanation['removed'][number]>[] = [];
  readonly kept: Mutable<Explanation['kept'][number]>[] = [];
  #isLastRemoved = false;

  remove(number: number, bytes: number, rule: RetentionRule): void {
    const last = this.removed.at(-1);
    if (last !== undefined && last.rule === rule && (this.#isLastRemoved || this.removed.length >= RANGES_MAX)) {
      last.to = number;
      last.count++;
      last.bytes += bytes;
    } else this.removed.push({ from: number, to: number, count: 1, bytes, rule });
    this.#isLastRemoved = true;
  }

  keep(number: number, why: string): void {
    const last = this.kept.at(-1);
    if (last !== undefined && last.why === why && (!this.#isLastRemoved || this.kept.length >= RANGES_MAX)) {
      last.to = number;
      last.count++;
    } else this.kept.push({ from: number, to: number, count: 1, why });
    this.#isLastRemoved = false;
  }
}
