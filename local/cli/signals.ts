import type { Log } from '../../core/ports/log.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { Io, Surroundings } from '../../infra/runtime/io.ts';

/** The same key press may arrive twice: from the terminal, and passed on by the parent (npm does that). */
const SAME_PRESS_MS = 500;

interface SignalOptions {
  readonly nowMs: () => number;
  /** The first signal. */
  readonly onFirst: (signal: string) => void;
  /** Called at a second signal, from a person who does not want to wait. */
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

interface HangUp {
  /** From now on SIGHUP reloads; before, it is only noted. The outcome is logged by the reload itself. */
  attach(reload: () => Promise<unknown>): void;
  release(): void;
}

/** SIGHUP asks for a reload. Listen before anything slow begins: without a listener the signal ends the process. */
export function listenForHangUp(process: Pick<Surroundings, 'on' | 'off'>, log: Log): HangUp {
  let reload: (() => Promise<unknown>) | null = null;
  const listener = () => {
    if (reload === null) log.info('SIGHUP: the node is still starting, nothing to reload');
    else reload().catch(() => {});
  };
  process.on('SIGHUP', listener);
  return {
    attach: (attached) => {
      reload = attached;
    },
    release: () => {
      process.off('SIGHUP', listener);
    },
  };
}

/** Ctrl+C and SIGTERM while a command runs. */
export interface Interrupt {
  /**
   * Aborted by the first of them, with an error that ends the command with exit code 130. A second one ends the
   * process.
   */
  readonly signal: AbortSignal;
  release(): void;
}

/** Listens until released; `message` says what became of the work. */
export function listenForInterrupt(message: string, { process }: Pick<Io, 'process'>): Interrupt {
  const controller = new AbortController();
  const handle = signalHandler({
    nowMs: () => systemClock.monotonicMs(),
    onFirst: () => controller.abort(new CommandError('interrupted', message, EXIT.interrupted)),
    onSecond: () => process.exit(EXIT.interrupted),
  });
  const names = ['SIGINT', 'SIGTERM'] as const;
  for (const name of names) process.on(name, handle);
  return {
    signal: controller.signal,
    release: () => {
      for (const name of names) process.off(name, handle);
    },
  };
}
