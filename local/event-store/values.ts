import type { Position } from './api.ts';

/** Small things that all stores make, or ask of what they are given. */

/** Whether it is an object with members: no array, and no bytes. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

/** Of what was committed at a place in the log. */
export function positionAt(position: number): Position {
  return { commit: position, prepare: position };
}

/** Resolves after so long, or when the signal aborts. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
