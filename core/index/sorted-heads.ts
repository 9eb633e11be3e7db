import type { MemTableColumns } from './mem-table.ts';

/** Parts into which the upper half of a hash divides the entries. */
const PARTS = 65_536;
/** Larger parts, which hashes that were chosen with care may make, are not sorted by insertion. */
const INSERTION_MAX = 256;
/** Parts sorted between two checkpoints. */
const PARTS_AT_ONCE = 8_192;

/** Number of the part of an entry: ascending numbers are descending hashes. */
function partOf(columns: MemTableColumns, entry: number): number {
  return PARTS - 1 - (columns.hashHi[entry]! >>> 16);
}

/** Sorts heads[from, to) by hash, greatest first. */
function sortPart(columns: MemTableColumns, heads: Int32Array, from: number, to: number): void {
  const { hashHi, hashLo } = columns;
  if (to - from > INSERTION_MAX) {
    heads.subarray(from, to).sort((a, b) => hashHi[b]! - hashHi[a]! || hashLo[b]! - hashLo[a]!);
    return;
  }
  for (let i = from + 1; i < to; i++) {
    const entry = heads[i]!;
    const hi = hashHi[entry]!;
    const lo = hashLo[entry]!;
    let at = i - 1;
    for (; at >= from; at--) {
      const other = heads[at]!;
      const otherHi = hashHi[other]!;
      if (otherHi > hi || (otherHi === hi && hashLo[other]! > lo)) break;
      heads[at + 1] = other;
    }
    heads[at + 1] = entry;
  }
}

/** Numbers of the greatest entries of all hashes, sorted by hash, greatest first: put into their parts, a dozen each, which are sorted. */
export async function sortedHeads(columns: MemTableColumns, checkpoint: () => Promise<void>): Promise<Int32Array> {
  const heads = new Int32Array(columns.hashes);
  const ends = new Int32Array(PARTS + 1);
  for (let slot = 0; slot < columns.heads.length; slot++) if (columns.heads[slot] !== 0) ends[partOf(columns, columns.heads[slot]! - 1) + 1]!++;
  for (let part = 1; part <= PARTS; part++) ends[part]! += ends[part - 1]!;
  await checkpoint();
  for (let slot = 0; slot < columns.heads.length; slot++) if (columns.heads[slot] !== 0) {
    const entry = columns.heads[slot]! - 1;
    heads[ends[partOf(columns, entry)]!++] = entry;
  }
  for (let part = 0; part < PARTS; part++) {
    sortPart(columns, heads, part === 0 ? 0 : ends[part - 1]!, ends[part]!);
    if (part % PARTS_AT_ONCE === 0) await checkpoint();
  }
  return heads;
}
