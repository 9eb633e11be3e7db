import { parseTimeSpan } from '../../core/scavenge/time-span.ts';
import { systemClock } from '../../infra/clock.ts';
import type { NodeClient } from '../node-client.ts';

/** The last event of a run's history; scavenge.md section 10.2. */
const COMPLETED = '$scavengeCompleted';
/** Events are written in the background: the last one may come a little after the run has ended, and not as the last. */
const EVENTS_READ = 5;
const TRIES_MAX = 20;
const TRY_EVERY_MS = 100;

/** What the history says of a run: bytes given back and seconds taken. */
export interface Completion {
  readonly bytesReclaimed: number | null;
  readonly seconds: number | null;
}

/** Looks a run's completion up. */
export type CompletionReader = (scavengeId: string) => Promise<Completion>;

export interface HistoryEvent {
  readonly type: string;
  readonly data: string;
}

/** Takes the completion out of a run's newest events, as soon as they hold it; nulls where it never comes. */
export async function readCompletion(newest: (count: number) => Promise<readonly HistoryEvent[]>): Promise<Completion> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    if (tries > 0) await systemClock.sleep(TRY_EVERY_MS);
    const found = (await newest(EVENTS_READ)).find((event) => event.type === COMPLETED);
    if (found === undefined) continue;
    const { spaceSaved, timeTaken } = JSON.parse(found.data) as { spaceSaved: number; timeTaken: string };
    const ms = parseTimeSpan(timeTaken);
    return { bytesReclaimed: spaceSaved, seconds: ms === null ? null : ms / 1_000 };
  }
  return { bytesReclaimed: null, seconds: null };
}

/** Reads the history of a running node. Whoever may not read it learns nothing from it. */
export function completionOfNode(node: NodeClient): CompletionReader {
  return (scavengeId) => readCompletion(async (count) => {
    const response = await node.call('GET', `/streams/%24scavenges/${encodeURIComponent(scavengeId)}/head/${count}?embed=body`, { headers: { accept: 'application/json' } });
    if (!response.ok) return [];
    const { entries } = await response.json() as { entries: readonly { eventType: string; data: string }[] };
    return entries.map(({ eventType, data }) => ({ type: eventType, data }));
  });
}
