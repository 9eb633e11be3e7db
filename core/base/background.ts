/** Of the clock (core/ports/clock.ts). */
interface Sleeper {
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * Begins work that nobody waits for and that belongs to no request. What it rejects with ends the process, as
 * everything that nobody expects: what it has left half done may be shared by all.
 */
export function background(work: Promise<unknown>): void {
  work.then(undefined, unexpected);
}

function unexpected(error: unknown): never {
  throw error;
}

/** Runs `run` when `ms` milliseconds are over, or when `signal` has aborted. */
export function afterDelay(clock: Sleeper, ms: number, signal: AbortSignal, run: () => void): void {
  background(clock.sleep(ms, signal).then(run));
}
