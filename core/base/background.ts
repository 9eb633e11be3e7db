/** Of the clock (core/ports/clock.ts). */
interface Sleeper {
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * Begins work that no code awaits and that belongs to no request. An error of that work ends the process, as every
 * unexpected error does: what the work has left half done may be shared by all.
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
