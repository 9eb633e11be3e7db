import { putI32 } from '../bytes.ts';
import { timestampMsAt, timestampTicksAt } from '../log/records.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';

/** The least and the greatest timestamp of a logical chunk, compared as the tick counts in two halves that records hold. */
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
    state.setChunkTimeRange(chunk, timestampMsAt(min, 0), timestampMsAt(max, 0), timestampTicksAt(min, 0), timestampTicksAt(max, 0));
    this.#isEmpty = true;
  }
}

function timestampBytes(high: number, low: number): Uint8Array {
  const bytes = new Uint8Array(8);
  putI32(bytes, 0, low | 0);
  putI32(bytes, 4, high | 0);
  return bytes;
}
