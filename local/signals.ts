/** The same key press may arrive twice: from the terminal, and passed on by the parent (npm does that). */
const SAME_PRESS_MS = 500;

export interface SignalOptions {
  readonly nowMs: () => number;
  /** The first signal. */
  readonly onFirst: (signal: string) => void;
  /** A second one, from somebody who does not want to wait. */
  readonly onSecond: (signal: string) => void;
}

/** Sorts the signals that ask a process to end. */
export function signalHandler({ nowMs, onFirst, onSecond }: SignalOptions): (signal: string) => void {
  let firstMs: number | null = null;
  return (signal) => {
    const now = nowMs();
    if (firstMs === null) {
      firstMs = now;
      onFirst(signal);
    } else if (now - firstMs >= SAME_PRESS_MS) onSecond(signal);
  };
}
