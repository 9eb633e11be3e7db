/**
 * Below which the given share lies, taken to lie evenly within its bucket, or at its end where whole numbers were
 * counted; the last bound where it lies beyond. `counts` are those up to each bound, the last of which is infinite.
 */
export function quantile(
  bounds: readonly number[],
  counts: readonly number[],
  share: number,
  isWhole: boolean,
): number | null {
  const wanted = (counts.at(-1) ?? 0) * share;
  if (wanted <= 0) return null;
  const at = counts.findIndex((count) => count >= wanted);
  const from = bounds[at - 1] ?? 0;
  const to = bounds[at]!;
  const before = counts[at - 1] ?? 0;
  if (to === Infinity) return from;
  return isWhole ? to : from + ((to - from) * (wanted - before)) / (counts[at]! - before);
}
