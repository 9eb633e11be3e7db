import { keptEnd, type Kept } from './choose-places.ts';
import type { ManifestSummary } from './manifest.ts';

/** Backups among which a restore of the latest looks for the one that reaches furthest: more are never made while one is. */
export const RECENT_MAX = 16;

/**
 * Of the backups of one node, newest first, those whose log reaches further than the newest. There are none but for a short while: while the
 * newest was made, and until shipping goes on behind it, log was shipped behind one before it. Log that was shipped before the newest was
 * made is passed over, for the newest holds it; where it does not, the log was cut in between, and the newest holds what came instead.
 */
export function aheadOfNewest(summaries: readonly ManifestSummary[]): ManifestSummary[] {
  const newest = summaries[0];
  return newest === undefined ? [] : summaries.filter(({ shippedEnd, shippedMs }) => shippedEnd > newest.shippedEnd && shippedMs >= newest.createdMs);
}

/** Of the backups of one node, newest first and at least one, the one that gives most back. */
export async function furthest(summaries: readonly ManifestSummary[], keptOf: (summary: ManifestSummary) => Promise<Kept>): Promise<Kept> {
  let best: Kept | null = null;
  // Damage may have taken the end of what a summary promises.
  for (const summary of [...aheadOfNewest(summaries).toSorted((a, b) => b.shippedEnd - a.shippedEnd), summaries[0]!]) {
    if (best !== null && keptEnd(best) >= summary.shippedEnd) break;
    const kept = await keptOf(summary);
    if (best === null || keptEnd(kept) > keptEnd(best)) best = kept;
  }
  return best!;
}
