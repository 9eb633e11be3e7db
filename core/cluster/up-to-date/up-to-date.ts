import type { Clock } from '../../ports/clock.ts';
import type { MemberLog } from '../api.ts';

/**
 * So long a refusal waits at most for what others have written; and what this member has seen counts as up to date for
 * so long, so that a caller that is refused again and again asks the bucket once a second.
 */
export const UP_TO_DATE_MS = 1_000;

/**
 * What a member asks before it refuses a login, a role or a connector, which may have been made elsewhere a moment ago:
 * takes in the log up to its end. One question for all that ask at once. Null where nothing is asked, since that was
 * done within the last second. Never rejects: where the log can't be asked, what this member knows decides.
 */
export function upToDateOf(log: Pick<MemberLog, 'refresh'>, clock: Clock): () => Promise<void> | null {
  let askedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | null = null;
  return () => {
    const nowMs = clock.monotonicMs();
    if (asking !== null || nowMs - askedMs < UP_TO_DATE_MS) return asking;
    askedMs = nowMs;
    return (asking = ask(log, clock).finally(() => {
      asking = null;
    }));
  };
}

async function ask(log: Pick<MemberLog, 'refresh'>, clock: Clock): Promise<void> {
  const came = new AbortController();
  const late = clock.sleep(UP_TO_DATE_MS, came.signal);
  // With a reason of its own, none has to be made up with its stack.
  await Promise.race([late, log.refresh().catch(() => {})]).finally(() => came.abort(null));
}
