import { END, HIT, isMiss } from '../../base/step.ts';
import type { Miss, Outcome } from '../../base/step.ts';
import { IndexEntry } from '../../index/format/entries.ts';
import type { EntryList } from '../../index/format/entries.ts';
import { MemTable } from '../../index/mem-table/mem-table.ts';
import { PositionTables } from '../../index/position-tables/position-tables.ts';
import type { ObjectTable } from '../files/files.ts';

/** The entries of one index in a view: those of the tail in memory, and the tables of the manifest. */
export class ViewEntries {
  readonly tables: readonly ObjectTable[];
  readonly mem = new MemTable(0);
  #ofPositions: PositionTables | null = null;
  readonly #candidate = new IndexEntry();

  constructor(tables: readonly ObjectTable[]) {
    this.tables = tables;
  }

  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#nearest(hi, lo, version, position, out, true);
  }

  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#nearest(hi, lo, version, position, out, false);
  }

  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): Outcome {
    const opening = this.#opening();
    if (opening !== null) return opening;
    out.clear();
    this.mem.range(hi, lo, fromVersion, toVersion, out);
    for (const { reader } of this.tables) {
      const outcome = reader!.range(hi, lo, fromVersion, toVersion, out);
      if (isMiss(outcome)) return outcome;
    }
    out.sortAscending();
    return HIT;
  }

  /** Of an index of positions: as `StreamIndex.run` does. */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome {
    const opening = this.#opening();
    if (opening !== null) return opening;
    out.length = 0;
    this.#ofPositions ??= new PositionTables(this.tables.map(({ reader }) => reader!));
    if (!isUpwards) this.mem.run(hi, lo, from, isUpwards, count, out);
    const outcome = this.#ofPositions.run(hi, lo, from, isUpwards, count, out);
    if (isMiss(outcome)) return outcome;
    if (isUpwards) this.mem.run(hi, lo, from, isUpwards, count, out);
    return HIT;
  }

  /** Null when all tables are open; else they are opened first, all at once. */
  #opening(): Miss | null {
    for (const { reader } of this.tables) if (reader === null) return this.#open();
    return null;
  }

  #open(): Miss {
    const opening = Promise.all(this.tables.map((table) => table.open())).then(() => {});
    // The reader that missed may have gone before he waited.
    opening.catch(() => {});
    return opening;
  }

  /** Asks all parts: with colliding hashes the nearest entry can be in any of them. */
  #nearest(hi: number, lo: number, version: number, position: number, out: IndexEntry, isFloor: boolean): Outcome {
    const opening = this.#opening();
    if (opening !== null) return opening;
    const { mem } = this;
    const c = this.#candidate;
    let isFound = isFloor ? mem.floor(hi, lo, version, position, out) : mem.ceiling(hi, lo, version, position, out);
    for (const { reader } of this.tables) {
      const outcome = isFloor
        ? reader!.floor(hi, lo, version, position, c)
        : reader!.ceiling(hi, lo, version, position, c);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) isFound = out.takeNearer(c, isFound, isFloor);
    }
    return isFound ? HIT : END;
  }
}
