import type { Clock } from '../../core/ports/clock.ts';
import { throwIfAborted } from '../../core/ports/object-store.ts';
import type { S3Failure } from './s3-errors.ts';

export interface RetryLimits {
  readonly attemptsMax: number;
  /** No attempt begins later than this after the first, in milliseconds. */
  readonly totalMsMax: number;
  /** The first wait in milliseconds, doubled each time; a busy server gets more. */
  readonly waitMs: number;
  readonly busyWaitMs: number;
  readonly waitMsMax: number;
}

export const RETRY_LIMITS: RetryLimits = { attemptsMax: 6, totalMsMax: 60_000, waitMs: 100, busyWaitMs: 500, waitMsMax: 20_000 };

export interface RetryTools {
  readonly clock: Clock;
  /** 0 to below 1: spreads the repeats of many clients. */
  readonly random: () => number;
  readonly limits: RetryLimits;
}

/** Repeats what may be repeated, within the limits, after waits that grow; the last failure is thrown. */
export async function withRetries<T>(tools: RetryTools, key: string, signal: AbortSignal | undefined, attempt: () => Promise<T>, judge: (error: unknown) => S3Failure): Promise<T> {
  const { clock, limits } = tools;
  const began = clock.monotonicMs();
  for (let n = 1; ; n++) {
    throwIfAborted(signal, key);
    let failure: S3Failure;
    try {
      return await attempt();
    } catch (error) {
      throwIfAborted(signal, key);
      failure = judge(error);
    }
    const wait = waitBefore(tools, n, failure);
    if (!failure.isRetryable || n >= limits.attemptsMax || clock.monotonicMs() - began + wait > limits.totalMsMax) throw failure.error;
    await clock.sleep(wait, signal);
  }
}

/** Between half and all of a wait that doubles, and never less than the server asked for. */
function waitBefore({ random, limits }: RetryTools, n: number, failure: S3Failure): number {
  const base = failure.error.code === 'storage_throttled' ? limits.busyWaitMs : limits.waitMs;
  const most = Math.min(base * 2 ** (n - 1), limits.waitMsMax);
  return Math.max(most * (0.5 + random() / 2), failure.retryAfterMs ?? 0);
}
