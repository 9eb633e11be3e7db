import { keptEnd, type Kept } from './choose-places.ts';
import type { ManifestSummary } from './manifest.ts';

/** Backups among which a restore of the latest looks for the one that reaches furthest: more are never made while one is. */
export const RECENT_MAX = 16;

/**
 * Of the backups of one node, newest first, the one whose log reaches furthest. That is the newest but for a short while: while it was made,
 * and until shipping goes on behind it, log was shipped behind one before it. Log that was shipped before the newest was made is passed
 * over, for the newest holds it; where it does not, the log was cut in between, and the newest holds what came instead.
 */
export async function furthest(summaries: readonly ManifestSummary[], keptOf: (summary: ManifestSummary) => Promise<Kept>): Promise<Kept> {
  const newest = summaries[0]!;
  const candidates = summaries.filter((summary) => summary === newest || (summary.shippedEnd > summary.logEnd && summary.shippedMs >= newest.createdMs));
  let best: Kept | null = null;
  // Damage may have taken the end of what a summary promises.
  for (const summary of candidates.toSorted((a, b) => b.shippedEnd - a.shippedEnd)) {
    if (best !== null && keptEnd(best) >= summary.shippedEnd) break;
    const kept = await keptOf(summary);
    if (best === null || keptEnd(kept) > keptEnd(best)) best = kept;
  }
  return best!;
}
