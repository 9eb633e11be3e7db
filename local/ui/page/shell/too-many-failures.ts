import type { ApiError } from '../api/problem-text.ts';
import { clockText } from '../lib/format.ts';

const WAIT_MS = 60_000;

/** What a user is told whose passwords were wrong too often: a time of day, which stays right while it is read. */
export function tooManyText({ atMs, retryAfterMs }: ApiError): string {
  return `Too many failed attempts. Try again after ${clockText(atMs + (retryAfterMs ?? WAIT_MS))}.`;
}
