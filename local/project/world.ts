import { wait } from '../event-store/values.ts';

/** What a projection needs of the time. */
export interface World {
  nowMs(): number;
  /** Resolves after so long, or when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** Resolves when all that is at hand has been handed over. */
  turn(): Promise<void>;
}

export const systemWorld: World = {
  nowMs: () => Date.now(),
  wait,
  turn: () =>
    new Promise((resolve) => {
      setTimeout(resolve, 0);
    }),
};
