import { msOf } from '../../lib/format.ts';
import { membersOf, numberOf, spanMsOf, textOf } from './scavenge-feed.ts';
import type { FeedEntry } from './scavenge-feed.ts';

/** A run as its first and its last event tell it. */
export interface PastRun {
  readonly scavengeId: string;
  readonly node: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** Null while it goes on, or where its end was never written. */
  readonly result: string | null;
  readonly error: string | null;
  readonly spaceSaved: number | null;
  readonly elapsedMs: number | null;
}

/** Runs of entries that stand newest first, as they do in the feed. */
export function runsOf(entries: readonly FeedEntry[]): readonly PastRun[] {
  const runs = new Map<string, PastRun>();
  for (const entry of entries) {
    const members = membersOf(entry);
    const scavengeId = textOf(members['scavengeId']);
    if (scavengeId === null) continue;
    const known = runs.get(scavengeId) ?? {
      scavengeId,
      node: textOf(members['nodeEndpoint']),
      startedAt: null,
      endedAt: null,
      result: null,
      error: null,
      spaceSaved: null,
      elapsedMs: null,
    };
    if (entry.eventType === '$scavengeStarted') runs.set(scavengeId, { ...known, startedAt: entry.updated });
    else if (entry.eventType === '$scavengeCompleted') {
      // Of one that was cut off no more is known than what its chunks took: where it came to none, nothing.
      const elapsedMs = spanMsOf(members['timeTaken']) || null;
      const ended = msOf(entry.updated);
      runs.set(scavengeId, {
        ...known,
        endedAt: entry.updated,
        result: textOf(members['result']),
        error: textOf(members['error']),
        spaceSaved: numberOf(members['spaceSaved']),
        elapsedMs,
        startedAt:
          known.startedAt ?? (ended === null || elapsedMs === null ? null : new Date(ended - elapsedMs).toISOString()),
      });
    }
  }
  return [...runs.values()];
}
