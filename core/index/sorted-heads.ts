import type { MemTableColumns } from './mem-table.ts';

const DIGITS = 65_536;

/** Digit `pass` (0 the lowest) of a hash, turned around so that ascending digits give descending hashes. */
function digitOf(columns: MemTableColumns, entry: number, pass: number): number {
  const half = pass < 2 ? columns.hashLo[entry]! : columns.hashHi[entry]!;
  return DIGITS - 1 - ((pass & 1) === 0 ? half & 0xffff : half >>> 16);
}

/** One pass of a radix sort by 16 bits, lowest digit first. */
function sortPass(columns: MemTableColumns, from: Int32Array, to: Int32Array, pass: number): void {
  const starts = new Int32Array(DIGITS + 1);
  for (let i = 0; i < from.length; i++) starts[digitOf(columns, from[i]!, pass) + 1]!++;
  for (let d = 1; d < DIGITS; d++) starts[d]! += starts[d - 1]!;
  for (let i = 0; i < from.length; i++) to[starts[digitOf(columns, from[i]!, pass)]!++] = from[i]!;
}

/** Numbers of the greatest entries of all hashes, sorted by hash, greatest first. `checkpoint` is awaited between passes. */
export async function sortedHeads(columns: MemTableColumns, checkpoint: () => Promise<void>): Promise<Int32Array> {
  let heads = new Int32Array(columns.hashes);
  let filled = 0;
  for (let slot = 0; slot < columns.heads.length; slot++) if (columns.heads[slot] !== 0) heads[filled++] = columns.heads[slot]! - 1;
  let other = new Int32Array(columns.hashes);
  for (let pass = 0; pass < 4; pass++) {
    sortPass(columns, heads, other, pass);
    [heads, other] = [other, heads];
    await checkpoint();
  }
  return heads;
}
