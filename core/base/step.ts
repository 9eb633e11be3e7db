/**
 * Reading is written as synchronous steps, so that a hit costs no promise and memory, disk and object storage are read
 * by the same code. A step comes to one of these.
 */

/** The step found what it looked for. */
export const HIT = 0;
/** There is nothing (more) to find. */
export const END = 1;
/** Bytes are not in memory: await this and take the same step again. It rejects with the error of the storage. */
export type Miss = Promise<void>;
export type Outcome = typeof HIT | typeof END | Miss;

/** Whether a step that answers with a number when it has one has missed. */
export function isMiss(outcome: number | Miss): outcome is Miss {
  return typeof outcome === 'object';
}

/** Takes a step until it misses no more. */
export async function untilHit<T extends number>(step: () => T | Miss): Promise<T> {
  for (;;) {
    const outcome = step();
    if (typeof outcome !== 'object') return outcome;
    await outcome;
  }
}
