import { isSkuaError, type SkuaErrorOf } from './errors.ts';

/** How often a write that met another one is tried again. */
const ATTEMPTS_MAX = 16;

/**
 * Repeats what met a concurrent write, from reading on; `attempt` learns when it is the last time. When that goes on,
 * rejects with what `givenUp` makes of it.
 */
export async function retryConflicts<T>(
  attempt: (isLast: boolean) => Promise<T>,
  givenUp: (error: SkuaErrorOf<'wrong_expected_version'>) => Error = (error) => error,
): Promise<T> {
  for (let i = 1; ; i++) {
    try {
      return await attempt(i === ATTEMPTS_MAX);
    } catch (error) {
      if (!isSkuaError(error, 'wrong_expected_version')) throw error;
      if (i === ATTEMPTS_MAX) throw givenUp(error);
    }
  }
}
