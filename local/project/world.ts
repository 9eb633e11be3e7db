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
  wait: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end);
    }),
  turn: () =>
    new Promise((resolve) => {
      setTimeout(resolve, 0);
    }),
};
