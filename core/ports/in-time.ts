import type { Clock } from './clock.ts';

/** What the call gives within `ms` milliseconds, else `otherwise`; the call goes on then. */
export async function inTime<T>(clock: Clock, ms: number, call: () => Promise<T>, otherwise: T): Promise<T> {
  const answered = new AbortController();
  const timeout = clock.sleep(ms, answered.signal).then(() => otherwise);
  try {
    return await Promise.race([call(), timeout]);
  } finally {
    answered.abort();
  }
}
