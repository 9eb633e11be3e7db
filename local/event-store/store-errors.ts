import {
  type ErrorCode,
  isSkuaError as isAnySkuaError,
  type SkuaError,
  type SkuaErrorOf,
} from '../../core/base/errors.ts';
import type { Expected } from './api.ts';

/** What was expected of a stream, and its version, or null where it has none. */
export type Conflict = { readonly stream: string; readonly expected: Expected; readonly actual: number | null };

/** Data that a store reports in its own words. */
type OwnData = {
  readonly wrong_expected_version: Conflict;
  readonly consistency_violation: { readonly violations: readonly Conflict[] };
};

/** An error of a store whose code is known, so that its data are, too. */
export type StoreError<C extends ErrorCode> = C extends keyof OwnData
  ? Error & { readonly code: C; readonly data: OwnData[C] }
  : SkuaErrorOf<C>;

/** True when `error` is a SkuaError, of the given code if one is named. */
export function isSkuaError(error: unknown): error is SkuaError;
export function isSkuaError<C extends ErrorCode>(error: unknown, code: C): error is StoreError<C>;
export function isSkuaError(error: unknown, code?: ErrorCode): boolean {
  return isAnySkuaError(error) && (code === undefined || error.code === code);
}
