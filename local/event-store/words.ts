import { type DataOf, type ErrorCode, SkuaError } from '../../core/base/errors.ts';
import type { Expected } from './api.ts';
import type { Conflict } from './store-errors.ts';

/** What is expected, as the core and its interfaces have it. */
export const EXPECTED_NUMBERS = { none: -1, any: -2, exists: -4 } as const;

/** What was expected and what was there, in the words of programs: an error of a store as its callers see it. */
export function inWords(error: SkuaError): SkuaError {
  switch (error.code) {
    case 'wrong_expected_version':
      return other(error, error.code, worded(error.data as DataOf<'wrong_expected_version'>));
    case 'consistency_violation': {
      const { violations } = error.data as DataOf<'consistency_violation'>;
      return other(error, error.code, { violations: violations.map(worded) });
    }
    case 'bad_request':
      return other(error, 'bad_option', error.data);
    default:
      return error;
  }
}

/** The data have words here, which the core's own have not. */
function other(error: SkuaError, code: ErrorCode, data: Readonly<Record<string, unknown>>): SkuaError {
  return new SkuaError<ErrorCode>(code, error.message, data, error);
}

function worded({ stream, expected, actual }: DataOf<'wrong_expected_version'>): Conflict {
  return { stream, expected: wordOf(expected), actual: actual >= 0 ? actual : null };
}

function wordOf(expected: number): Expected {
  const known = Object.entries(EXPECTED_NUMBERS).find(([, number]) => number === expected);
  return known === undefined ? expected : (known[0] as Expected);
}
