import { putI32 } from '../base/bytes.ts';
import { timestampMsAt, timestampTicksAt } from '../log/format/records.ts';
import type { ChunkTimeRange, ScavengeState } from '../ports/scavenge-state.ts';
import type { Retention } from '../streams/api.ts';

/** What a record that goes, or may go, adds to the weight of its chunk. */
export const WEIGHT_DISCARD = 2;
export const WEIGHT_MAYBE = 1;

/** Weights found since the last transaction, summed in memory. */
export class ChunkWeights {
  readonly #weights = new Map<number, number>();

  add(chunk: number, weight: number): void {
    this.#weights.set(chunk, (this.#weights.get(chunk) ?? 0) + weight);
  }

  /** Adds them to the state, within its transaction, and begins anew. */
  moveTo(state: ScavengeState): void {
    for (const [chunk, weight] of this.#weights) state.addWeight(chunk, weight);
    this.#weights.clear();
  }
}

/**
 * The least and the greatest timestamp of a logical chunk, compared as the tick counts in two halves that records hold.
 */
export class TimeRange {
  #minHigh = 0;
  #minLow = 0;
  #maxHigh = 0;
  #maxLow = 0;
  #isEmpty = true;

  clear(): void {
    this.#isEmpty = true;
  }

  widen(high: number, low: number): void {
    if (this.#isEmpty) {
      this.#isEmpty = false;
      this.#minHigh = this.#maxHigh = high;
      this.#minLow = this.#maxLow = low;
    } else if (high > this.#maxHigh || (high === this.#maxHigh && low > this.#maxLow)) {
      this.#maxHigh = high;
      this.#maxLow = low;
    } else if (high < this.#minHigh || (high === this.#minHigh && low < this.#minLow)) {
      this.#minHigh = high;
      this.#minLow = low;
    }
  }

  /** Stores the range of the chunk. Without any timestamp nothing is stored. */
  moveTo(state: ScavengeState, chunk: number): void {
    if (this.#isEmpty) return;
    const min = timestampBytes(this.#minHigh, this.#minLow);
    const max = timestampBytes(this.#maxHigh, this.#maxLow);
    state.setChunkTimeRange(
      chunk,
      timestampMsAt(min, 0),
      timestampMsAt(max, 0),
      timestampTicksAt(min, 0),
      timestampTicksAt(max, 0),
    );
    this.#isEmpty = true;
  }
}

function timestampBytes(high: number, low: number): Uint8Array {
  const bytes = new Uint8Array(8);
  putI32(bytes, 0, low | 0);
  putI32(bytes, 4, high | 0);
  return bytes;
}

/** The timestamp ranges of chunks, each read from the state once. */
export class ChunkRanges {
  readonly #state: ScavengeState;
  readonly #ranges = new Map<number, ChunkTimeRange | undefined>();
  /**
   * By chunk: the range of the one at or behind it that has the oldest event. Filled from the last chunk down to
   * `#filledFrom`.
   */
  readonly #oldest = new Map<number, ChunkTimeRange>();
  #filledFrom: number;

  /** `lastChunk` is that of the scavenge point. */
  constructor(state: ScavengeState, lastChunk: number) {
    this.#state = state;
    this.#filledFrom = lastChunk + 1;
  }

  of(chunk: number): ChunkTimeRange | undefined {
    const known = this.#ranges.get(chunk);
    if (known !== undefined || this.#ranges.has(chunk)) return known;
    const range = this.#state.chunkTimeRange(chunk);
    this.#ranges.set(chunk, range);
    return range;
  }

  /** False when no event in this chunk or behind it has expired, as it is wherever no clock was set back. */
  mayHoldExpired(from: number, retention: Retention): boolean {
    while (this.#filledFrom > from) {
      const behind = this.#oldest.get(this.#filledFrom);
      const range = this.of(--this.#filledFrom) ?? behind;
      if (range === undefined) continue;
      const isOlder =
        behind === undefined ||
        range.minMs < behind.minMs ||
        (range.minMs === behind.minMs && range.minTicks < behind.minTicks);
      this.#oldest.set(this.#filledFrom, isOlder ? range : behind);
    }
    const oldest = this.#oldest.get(from);
    return oldest !== undefined && retention.isExpired(oldest.minMs, oldest.minTicks);
  }
}
