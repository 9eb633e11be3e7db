import { afterDelay, background } from '../../base/background.ts';
import type { Clock } from '../../ports/clock.ts';
import type { MemberLog, Membership } from '../api.ts';

/** Waits at most `ms` milliseconds for what ends with its signal. */
export async function within<T>(clock: Clock, ms: number, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const came = new AbortController();
  afterDelay(clock, ms, came.signal, () => over.abort());
  try {
    return await wait(over.signal);
  } finally {
    // With a reason of its own, none has to be made up with its stack.
    came.abort(null);
  }
}

/** Changes of the member that leads. */
export interface Changes {
  /** True at the next change, false when the monotonic time `untilMs` has come first. */
  next(untilMs: number): Promise<boolean>;
}

/** One listener for all that wait: listeners are never taken away. */
export function changesOf(
  membership: Pick<Membership, 'onChange'>,
  log: Pick<MemberLog, 'onEpoch'>,
  clock: Clock,
): Changes {
  const waiting = new Set<() => void>();
  const changed = () => {
    for (const wake of waiting) wake();
    waiting.clear();
  };
  membership.onChange(changed);
  log.onEpoch(changed);
  return {
    next: (untilMs) =>
      within(
        clock,
        untilMs - clock.monotonicMs(),
        (signal) =>
          new Promise((resolve) => {
            const wake = () => resolve(true);
            waiting.add(wake);
            if (signal.aborted) resolve(false);
            else
              signal.addEventListener('abort', () => {
                waiting.delete(wake);
                resolve(false);
              });
          }),
      ),
  };
}

interface EndWait {
  readonly position: number;
  readonly untilMs: number;
  readonly resolve: () => void;
}

/**
 * Waits for what the leader has written: nearly each request that is passed on waits, so that all have one listener and
 * one timer.
 */
export class EndWaits {
  readonly #log: Pick<MemberLog, 'end' | 'onApplied'>;
  readonly #clock: Clock;
  /** In the order in which their time is over, where all wait equally long. */
  readonly #waiting = new Set<EndWait>();
  #timer: AbortController | null = null;

  constructor(log: Pick<MemberLog, 'end' | 'onApplied'>, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    log.onApplied(() => this.#look());
  }

  /** Resolves when readers see the log up to this position, and after `ms` milliseconds, which are the same for all. */
  next(position: number, ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add({ position, untilMs: this.#clock.monotonicMs() + ms, resolve });
      if (this.#timer === null) background(this.#time());
    });
  }

  #look(): void {
    if (this.#waiting.size === 0) return;
    const { end } = this.#log;
    for (const wait of this.#waiting) if (wait.position <= end) this.#end(wait);
    // With a reason of its own, none has to be made up with its stack.
    if (this.#waiting.size === 0) this.#timer?.abort(null);
  }

  #end(wait: EndWait): void {
    this.#waiting.delete(wait);
    wait.resolve();
  }

  async #time(): Promise<void> {
    while (this.#waiting.size > 0) {
      const timer = (this.#timer = new AbortController());
      const [first] = this.#waiting;
      await this.#clock.sleep(first!.untilMs - this.#clock.monotonicMs(), timer.signal);
      const nowMs = this.#clock.monotonicMs();
      for (const wait of this.#waiting) {
        if (wait.untilMs > nowMs) break;
        this.#end(wait);
      }
    }
    this.#timer = null;
  }
}
