import type { ChunkTimeRange, ScavengeState } from '../ports/scavenge-state.ts';

/** scavenge.md section 5.4. */
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

/** The timestamp ranges of chunks, each read from the state once. */
export class ChunkRanges {
  readonly #state: ScavengeState;
  readonly #ranges = new Map<number, ChunkTimeRange | undefined>();

  constructor(state: ScavengeState) {
    this.#state = state;
  }

  of(chunk: number): ChunkTimeRange | undefined {
    const known = this.#ranges.get(chunk);
    if (known !== undefined || this.#ranges.has(chunk)) return known;
    const range = this.#state.chunkTimeRange(chunk);
    this.#ranges.set(chunk, range);
    return range;
  }
}
