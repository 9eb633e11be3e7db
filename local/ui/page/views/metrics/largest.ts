interface Sized {
  /** What it is now; 0 where that is not known yet. */
  readonly size: number;
  /** What it was in all, which tells those of one size apart. */
  readonly total: number;
}

/** So many of them, those that say most, in the order in which they came. */
export function largestOf<One extends Sized>(all: readonly One[], count: number): readonly One[] {
  const most = new Set(all.toSorted((one, other) => other.size - one.size || other.total - one.total).slice(0, count));
  return all.filter((one) => most.has(one));
}
