import type { Clock } from '../core/ports/clock.ts';
import { clearTimeout, setImmediate, setTimeout } from './timers.ts';

/** Longest delay a timer takes in milliseconds; longer sleeps are made of several. */
const TIMER_MS_MAX = 2_147_483_647;

/** The system's time. A pending sleep keeps the process alive; abort it to let the process end. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  async sleep(ms, signal) {
    for (let left = ms; left > 0 && signal?.aborted !== true; left -= TIMER_MS_MAX) {
      await sleepOnce(Math.min(left, TIMER_MS_MAX), signal);
    }
  },
  yield: () =>
    new Promise((resolve) => {
      setImmediate(resolve);
    }),
};

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}
