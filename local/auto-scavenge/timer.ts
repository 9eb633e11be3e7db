import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';

/** Time between two ticks: what a paused or finished node scavenge waits at most to be noticed. */
export const TICK_PERIOD_MS = 2_000;
/** How long a tick may take. What is left is done by the next one. */
export const TICK_MS_MAX = 10_000;
/** A failure that goes on is logged again after this many ticks. */
const TICKS_BETWEEN_LINES = 150;

export interface TickerParts {
  readonly autoScavenge: AutoScavenge;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the ticking. */
  readonly signal: AbortSignal;
}

/**
 * Calls the tick every few seconds, one after the other, until aborted; resolves when the last one has ended. A tick that
 * fails is logged, and the next one tries again.
 */
export async function runTicks({ autoScavenge, clock, log, signal }: TickerParts): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await autoScavenge.tick(clock.monotonicMs() + TICK_MS_MAX);
      if (failures > 0) log.info('AutoScavenge works again.', { failedTicks: failures });
      failures = 0;
    } catch (error) {
      if (failures % TICKS_BETWEEN_LINES === 0) log.error('AutoScavenge failed; it is tried again.', { error, failedTicks: failures + 1 });
      failures++;
    }
    await clock.sleep(TICK_PERIOD_MS, signal);
  }
}
