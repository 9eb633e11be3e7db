import type { Clock } from '../../core/ports/clock.ts';
import { COMPLETED_TYPE, historyStreamOf } from '../../core/scavenge/history/history.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import { parseTimeSpan } from '../../core/base/time.ts';
import { systemClock } from '../../infra/system-clock.ts';

/**
 * Events are written in the background: the last one may come a little after the run has ended, and not as the last.
 */
const EVENTS_READ = 5;
const TRY_EVERY_MS = 100;
const WAIT_MS = 2_000;

/** What the history says of a run: bytes given back, seconds taken, how it ended. Null for what the history lacks. */
export interface Completion {
  readonly bytesReclaimed: number | null;
  readonly seconds: number | null;
  readonly result: string | null;
  readonly error: string | null;
}

interface HistoryEvent {
  readonly type: string;
  readonly data: string;
}

interface CompletionOptions {
  /** How long it is waited for, in milliseconds. Default: 2 000. */
  readonly waitMs?: number;
  readonly clock?: Clock;
  /** Ends the waiting. */
  readonly signal?: AbortSignal;
}

/** Takes the completion out of a run's newest events, as soon as they hold it; nulls where it never comes. */
export async function readCompletion(
  newest: (count: number) => Promise<readonly HistoryEvent[]>,
  { waitMs = WAIT_MS, clock = systemClock, signal }: CompletionOptions = {},
): Promise<Completion> {
  for (let waitedMs = 0; waitedMs < waitMs && (waitedMs === 0 || signal?.aborted !== true); waitedMs += TRY_EVERY_MS) {
    if (waitedMs > 0) await clock.sleep(TRY_EVERY_MS, signal);
    const found = (await newest(EVENTS_READ)).find((event) => event.type === COMPLETED_TYPE);
    if (found === undefined) continue;
    const { spaceSaved, timeTaken, result, error } = JSON.parse(found.data) as {
      spaceSaved: number;
      timeTaken: string;
      result: string;
      error: string | null;
    };
    const ms = parseTimeSpan(timeTaken);
    return { bytesReclaimed: spaceSaved, seconds: ms === null ? null : ms / 1_000, result, error };
  }
  return { bytesReclaimed: null, seconds: null, result: null, error: null };
}

/** The history of a run in a store that is open here. What can't be read counts as lacking. */
export function completionIn(
  store: Pick<EventStore, 'readStream'>,
  scavengeId: string,
  options?: CompletionOptions,
): Promise<Completion> {
  return readCompletion(async (count) => {
    const page = await store
      .readStream(historyStreamOf(scavengeId), { direction: 'backward', from: 'end', count, resolveLinks: false })
      .catch(() => null);
    return (page?.events ?? []).map(({ type, data }) => ({ type, data: decodeText(data) }));
  }, options);
}
