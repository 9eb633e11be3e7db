import type { MemTableColumns } from './mem-table.ts';

/** Bits of a hash that divide the entries into parts, at most. */
const PART_BITS_MAX = 16;
/** Entries of a part, about: as few as make its sorting cheap, where there are enough parts. */
const PART_ENTRIES = 8;
/** Larger parts, which hashes that were chosen with care may make, are not sorted by insertion. */
const INSERTION_MAX = 256;
/** Parts sorted between two checkpoints. */
const PARTS_AT_ONCE = 8_192;

function partBits(hashes: number): number {
  return Math.min(PART_BITS_MAX, Math.max(1, Math.ceil(Math.log2(Math.max(1, hashes) / PART_ENTRIES))));
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
  const bits = partBits(columns.hashes);
  const parts = 2 ** bits;
  const shift = 32 - bits;
  // Ascending numbers of parts are descending hashes.
  const last = parts - 1;
  const { hashHi } = columns;
  const ends = new Int32Array(parts + 1);
  for (let slot = 0; slot < columns.heads.length; slot++) if (columns.heads[slot] !== 0) ends[last - (hashHi[columns.heads[slot]! - 1]! >>> shift) + 1]!++;
  for (let part = 1; part <= parts; part++) ends[part]! += ends[part - 1]!;
  await checkpoint();
  for (let slot = 0; slot < columns.heads.length; slot++) if (columns.heads[slot] !== 0) {
    const entry = columns.heads[slot]! - 1;
    heads[ends[last - (hashHi[entry]! >>> shift)]!++] = entry;
  }
  for (let part = 0; part < parts; part++) {
    sortPart(columns, heads, part === 0 ? 0 : ends[part - 1]!, ends[part]!);
    if (part % PARTS_AT_ONCE === 0) await checkpoint();
  }
  return heads;
}
