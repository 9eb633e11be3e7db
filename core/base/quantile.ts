/**
 * The value below which the given share of what a histogram counted lies: it is taken to lie evenly within its bucket,
 * the first of which begins at 0, as Prometheus' `histogram_quantile` does. `countOf` gives the count of one bucket,
 * not of all up to it; the last bucket is that beyond all bounds. Null where nothing was counted, or the value lies
 * beyond all bounds.
 */
export function quantile(bounds: readonly number[], countOf: (bucket: number) => number, share: number): number | null {
  let total = 0;
  for (let i = 0; i <= bounds.length; i++) total += countOf(i);
  if (total <= 0) return null;
  const wanted = total * share;
  let seen = 0;
  for (let i = 0; i < bounds.length; i++) {
    const count = countOf(i);
    if (count > 0 && seen + count >= wanted) {
      const from = i === 0 ? Math.min(0, bounds[0]!) : bounds[i - 1]!;
      return from + ((bounds[i]! - from) * (wanted - seen)) / count;
    }
    seen += count;
  }
  return null;
}
