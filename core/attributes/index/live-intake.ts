import type { ChunkTable } from '../../log/api.ts';
import type { ReadAhead } from '../api.ts';
import { type AttributeIndex, sinksOf } from './attribute-index.ts';
import { epochAt } from '../format/anchor.ts';
import { AttributeIntake } from '../intake/intake.ts';

/**
 * What is committed, as it is committed, into the indexes that have all before it. One that can't take it in is behind
 * from then on, and `onBehind` is called; also where one has much that is not durable.
 */
export class LiveIntake {
  readonly #log: ChunkTable;
  readonly #onBehind: () => void;
  readonly #intake = new AttributeIntake({ names: null, correlations: null, tags: null });
  #indexes: readonly AttributeIndex[] = [];

  constructor(log: ChunkTable, onBehind: () => void) {
    this.#log = log;
    this.#onBehind = onBehind;
  }

  /** These are live. */
  set(indexes: readonly AttributeIndex[]): void {
    this.#indexes = indexes;
    this.#intake.sinks = sinksOf(indexes);
  }

  /** Framed records that lie in the log from `start` to `end`, before readers see them. */
  take(records: Uint8Array, start: number, end: number, ahead: ReadAhead | null): void {
    if (this.#indexes.length === 0) return;
    const late = this.#indexes.filter((index) => index.isFull || !this.#isNext(index.coveredTo, start));
    if (late.length > 0) this.#leave(late);
    if (this.#indexes.length === 0) return;
    const given = ahead?.giveTo(this.#intake.sinks) ?? 0;
    const taken = this.#intake.take(records, start, given, records.length, (at) => {
      const epoch = epochAt(records, at - start, at);
      for (const index of this.#indexes) index.noteEpoch(epoch);
    });
    if (taken < records.length) this.#leave(this.#indexes);
    else for (const index of this.#indexes) index.cover(end);
    if (this.#indexes.some(({ isUnsaved }) => isUnsaved)) this.#onBehind();
  }

  /** Whether nothing that is committed can lie between: at most the rest of a chunk that has been completed. */
  #isNext(coveredTo: number, start: number): boolean {
    const { chunkSize } = this.#log;
    return coveredTo === start || (start % chunkSize === 0 && coveredTo < start && start - coveredTo < chunkSize);
  }

  #leave(late: readonly AttributeIndex[]): void {
    for (const index of late) index.isLive = false;
    this.set(this.#indexes.filter(({ isLive }) => isLive));
    this.#onBehind();
  }
}
