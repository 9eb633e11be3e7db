import { systemClock } from '../infra/clock.ts';
import { CommandError } from './cli/failure.ts';
import { EXIT } from './cli/io.ts';
import { signalHandler } from './signals.ts';

/** Ctrl+C and SIGTERM while a command runs. */
export interface Interrupt {
  /** Aborted by the first of them, with an error that ends the command with exit code 130. A second one ends the process. */
  readonly signal: AbortSignal;
  release(): void;
}

/** Listens until released; `message` says what became of the work. */
export function listenForInterrupt(message: string): Interrupt {
  const controller = new AbortController();
  const handle = signalHandler({
    nowMs: () => systemClock.monotonicMs(),
    onFirst: () => controller.abort(new CommandError('interrupted', message, EXIT.interrupted)),
    onSecond: () => process.exit(EXIT.interrupted),
  });
  const names = ['SIGINT', 'SIGTERM'] as const;
  for (const name of names) process.on(name, handle);
  return { signal: controller.signal, release: () => { for (const name of names) process.off(name, handle); } };
}
