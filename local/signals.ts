import type { Log } from '../core/ports/log.ts';

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

export interface HangUp {
  /** From now on SIGHUP reloads; before, it is only noted. The outcome is logged by the reload itself. */
  attach(reload: () => Promise<unknown>): void;
  release(): void;
}

interface Signals {
  on(signal: 'SIGHUP', listener: () => void): unknown;
  off(signal: 'SIGHUP', listener: () => void): unknown;
}

/**
 * SIGHUP asks for a reload (options-and-security.md section 13). Listen before anything slow begins: without a listener the
 * signal ends the process.
 */
export function listenForHangUp(signals: Signals, log: Log): HangUp {
  let reload: (() => Promise<unknown>) | null = null;
  const listener = () => {
    if (reload === null) log.info('SIGHUP: the node is still starting, there is nothing to reload');
    else reload().catch(() => {});
  };
  signals.on('SIGHUP', listener);
  return {
    attach: (attached) => { reload = attached; },
    release: () => { signals.off('SIGHUP', listener); },
  };
}
