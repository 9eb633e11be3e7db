import type { Clock } from '../../core/ports/clock.ts';
import type { ClusterFeature } from './context.ts';

/** Waits at most `ms` milliseconds for what ends with its signal. */
export async function within<T>(clock: Clock, ms: number, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const came = new AbortController();
  void clock.sleep(ms, came.signal).then(() => over.abort());
  try {
    return await wait(over.signal);
  } finally {
    // With a reason of its own, none has to be made up with its stack.
    came.abort(null);
  }
}

/** Changes of who leads. */
export interface Changes {
  /** True at the next change, false when the monotonic time `untilMs` has come first. */
  next(untilMs: number): Promise<boolean>;
}

/** One listener for all that wait: listeners are never taken away. */
export function changesOf({ membership, log }: Pick<ClusterFeature, 'membership' | 'log'>, clock: Clock): Changes {
  const waiting = new Set<() => void>();
  const changed = () => {
    for (const wake of waiting) wake();
    waiting.clear();
  };
  membership.onChange(changed);
  log.onEpoch(changed);
  return {
    next: (untilMs) => within(clock, untilMs - clock.monotonicMs(), (signal) => new Promise((resolve) => {
      const wake = () => resolve(true);
      waiting.add(wake);
      if (signal.aborted) resolve(false);
      else signal.addEventListener('abort', () => {
        waiting.delete(wake);
        resolve(false);
      });
    })),
  };
}
