/** Time. Real on a node, driven by hand in tests. */
export interface Clock {
  /** Wall-clock time in milliseconds since 1970-01-01 UTC, possibly with a fraction. */
  nowMs(): number;
  /** A clock that never goes back, in milliseconds from an arbitrary start. */
  monotonicMs(): number;
  /** Resolves after `ms` milliseconds, or at once when the signal aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Lets other work of the process run. */
  yield(): Promise<void>;
}
