import type { DryRunChunk } from '../../../../../core/scavenge/api.ts';
import type { DryRunDocument } from '../../../../../handlers/documents/scavenging.ts';

/** What a scavenge would do at one threshold, of what a dry run has counted. */
export interface Outcome {
  readonly threshold: number;
  readonly chunks: number;
  /** Bytes that are read and written anew: the work. */
  readonly bytes: number;
  /** Bytes that are won by it; below 0 where files would grow. */
  readonly won: number;
  readonly records: number;
  /** Last events of deleted streams, which lose their data. */
  readonly emptied: number;
}

/** Below 0 every chunk is written anew, at 0 each from which anything can go. */
const EVERY = -1;
const ANY = 0;
/** More positions than this a slider can't be set to. */
const OUTCOMES_MAX = 200;

/** As chunk execution decides. */
export function isExecuted({ weight }: DryRunChunk, threshold: number): boolean {
  return threshold < 0 || (weight > 0 && weight >= threshold);
}

/**
 * One outcome for each threshold that makes a difference, ascending: the higher it is, the fewer chunks are written
 * anew.
 */
export function outcomesOf({ chunks }: Pick<DryRunDocument, 'chunks'>): readonly Outcome[] {
  const weights = [...new Set(chunks.map(({ weight }) => weight).filter((weight) => weight > 0))].sort(
    (one, other) => one - other,
  );
  const step = Math.max(1, weights.length / OUTCOMES_MAX);
  const chosen = Array.from(
    { length: Math.min(weights.length, OUTCOMES_MAX) },
    (_, i) => weights[Math.floor(i * step)]!,
  );
  // The lowest weight decides as 0 does.
  const thresholds = [EVERY, ANY, ...chosen.slice(1)];
  // From the heaviest chunk down, so that each is looked at once.
  const sorted = [...chunks].sort((one, other) => other.weight - one.weight);
  const outcomes: Outcome[] = [];
  let [at, count, bytes, won, records, emptied] = [0, 0, 0, 0, 0, 0];
  for (const threshold of thresholds.toReversed()) {
    for (; at < sorted.length && isExecuted(sorted[at]!, threshold); at++) {
      const chunk = sorted[at]!;
      count++;
      bytes += chunk.bytes;
      won += chunk.bytesReclaimable;
      records += chunk.discardable;
      emptied += chunk.redactable;
    }
    outcomes.push({ threshold, chunks: count, bytes, won, records, emptied });
  }
  return outcomes.reverse();
}

/**
 * The outcome that decides as this threshold does: that of the next higher one, since between two weights nothing
 * changes.
 */
export function outcomeAt(outcomes: readonly Outcome[], threshold: number): number {
  const at = outcomes.findIndex((outcome) => outcome.threshold >= threshold);
  return at < 0 ? outcomes.length - 1 : at;
}
