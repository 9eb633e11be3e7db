import { isSkuaError } from '../../core/base/errors.ts';
import type { App, Call } from '../http/context.ts';
import { afterDelay } from '../../core/base/background.ts';

/** A read that may be held until there is something to read. */
interface HeldRead<P> {
  /** Longest wait; 0 for none. */
  readonly seconds: number;
  read(): Promise<P>;
  /** The page starts behind the last event: hold the reply. */
  isWaiting(page: P): boolean;
  /**
   * True when something arrived, false when the signal aborted. Begun before each read, so that nothing slips between.
   */
  arrival(signal: AbortSignal): Promise<boolean>;
  /** The first arrival ends the wait, whatever it brought. */
  readonly endsAtOnce: boolean;
}

/** Reads; while the result is to be held, waits for an arrival or the end of the time, and reads again. */
export async function heldRead<P>(call: Call, app: App, held: HeldRead<P>): Promise<P> {
  if (held.seconds === 0) return held.read();
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, call.request.signal]);
  afterDelay(app.world.clock, held.seconds * 1_000, signal, () => ending.abort());
  try {
    for (;;) {
      const arrived = held.arrival(signal);
      let page: P | null = null;
      let missing: unknown = null;
      try {
        page = await held.read();
      } catch (error) {
        if (!isSkuaError(error, 'stream_not_found')) throw error;
        missing = error;
      }
      if (page !== null && !held.isWaiting(page)) return page;
      if (await arrived) {
        if (held.endsAtOnce) return await held.read();
        // What has arrived may be nothing that is wanted, and all of this need not have waited for anything.
        await app.world.clock.yield();
      } else if (page !== null) return page;
      else throw missing;
    }
  } finally {
    ending.abort();
  }
}
