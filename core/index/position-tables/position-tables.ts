import { HIT, isMiss, type Outcome } from '../../base/step.ts';
import type { TableReader } from '../tables/tables.ts';

/**
 * Tables whose entries are positions, each of a part of the log of its own. So an entry that is known of one says where
 * all newer and older ones lie, and a search looks at the tables from where it begins on until it has enough: mostly
 * at one.
 */
export class PositionTables {
  readonly #newestFirst: readonly TableReader[];

  constructor(tables: readonly TableReader[]) {
    this.#newestFirst = tables
      .filter(({ shape }) => shape.entries > 0)
      .toSorted((a, b) => b.known.least - a.known.least);
  }

  /** Appends positions of the hash to `out` as `TableReader.run` does; HIT, also with none. */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome {
    const tables = this.#newestFirst;
    let i = isUpwards ? 0 : tables.length - 1;
    if (isUpwards) while (i < tables.length - 1 && tables[i]!.known.least >= from) i++;
    else while (i > 0 && tables[i]!.known.greatest <= from) i--;
    for (; i >= 0 && i < tables.length && out.length < count; i += isUpwards ? -1 : 1) {
      const outcome = tables[i]!.run(hi, lo, from, isUpwards, count, out);
      if (isMiss(outcome)) return outcome;
    }
    return HIT;
  }
}
