import { SkuaError } from '../errors.ts';
import type { ScavengeOptions } from './api.ts';

/** Chunks at a time, whatever was asked for. */
export const THREADS_MAX = 4;
const I32_MIN = -2_147_483_648;
const I32_MAX = 2_147_483_647;

/** Options of a run that have been checked and completed. */
export interface LaunchOptions {
  readonly threads: number;
  readonly threshold: number;
  readonly throttlePercent: number;
  readonly syncOnly: boolean;
  /** As they came in. */
  readonly asked: ScavengeOptions;
}

/** Throws `bad_option`. */
export function checkedOptions(options: ScavengeOptions): LaunchOptions {
  const { threads = 1, threshold = 0, throttlePercent = 100, syncOnly = false } = options;
  checkNumber('threads', threads, 1, I32_MAX);
  checkNumber('threshold', threshold, I32_MIN, I32_MAX);
  checkNumber('throttlePercent', throttlePercent, 1, 100);
  if (throttlePercent < 100 && threads > 1) throw new SkuaError('bad_option', 'throttlePercent must be 100 for a multi-threaded scavenge.', { option: 'throttlePercent', value: throttlePercent });
  return { threads: Math.min(threads, THREADS_MAX), threshold, throttlePercent, syncOnly, asked: options };
}

function checkNumber(option: string, value: number, min: number, max: number): void {
  if (!Number.isInteger(value) || value < min || value > max) throw new SkuaError('bad_option', `${option} is ${value}; it must be a whole number from ${min} to ${max}.`, { option, value });
}
