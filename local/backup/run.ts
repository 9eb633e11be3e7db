import { isSkuaError } from '../../core/errors.ts';
import { systemClock } from '../../infra/clock.ts';
import type { Io } from '../cli/io.ts';
import { line } from '../cli/io.ts';
import { listenForInterrupt } from '../interrupt.ts';
import { Progress } from '../progress.ts';

export interface Work {
  /** Aborted by Ctrl+C and SIGTERM. */
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/**
 * Runs the work of a command with a progress bar, which Ctrl+C ends with exit code 130 and `message`. Whatever the work throws
 * because it was ended, the interruption is what is told.
 */
export async function runInterruptibly<T>(message: string, io: Io, work: (parts: Work) => Promise<T>): Promise<T> {
  const interrupt = listenForInterrupt(message);
  const progress = new Progress({ output: io.stderr, env: io.env, clock: systemClock, onLine: (text) => line(io.stderr, text) });
  try {
    return await work({ signal: interrupt.signal, progress });
  } catch (error) {
    if (interrupt.signal.aborted && (isSkuaError(error, 'aborted') || error === interrupt.signal.reason)) throw interrupt.signal.reason;
    throw error;
  } finally {
    progress.clear();
    interrupt.release();
  }
}
