import { isSkuaError, SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { POLL_MS } from './limits.ts';
import type { Refresher } from './refresher.ts';

/** Asks for other writers' commits while somebody waits for events. One line of requests serves all who wait. */
export class Poller {
  readonly #refresher: Refresher;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #waiting = 0;
  #running: Promise<void> | null = null;
  #idle: AbortController | null = null;

  constructor(refresher: Refresher, clock: Clock, log: Log) {
    this.#refresher = refresher;
    this.#clock = clock;
    this.#log = log;
  }

  /** The messages of a subscription, which hears of other writers' commits meanwhile. Files that were replaced are found again by whoever subscribes anew. */
  async *follow<T>(subscribe: () => AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    this.#enter();
    try {
      await this.#refresher.refresh();
      yield* subscribe();
    } catch (error) {
      if (!isSkuaError(error, 'file_not_found')) throw error;
      await this.#refresher.replaced(error);
      throw new SkuaError('too_busy', 'The subscription read files that were being replaced: subscribe again behind the last event.', {}, error);
    } finally {
      this.#leave();
    }
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#enter();
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #enter(): void {
    if (this.#waiting++ === 0) this.#idle = new AbortController();
    this.#running ??= this.#run();
  }

  #leave(): void {
    if (--this.#waiting === 0) this.#idle?.abort();
  }

  async #run(): Promise<void> {
    let wasFailing = false;
    while (this.#waiting > 0 && !this.#closing.signal.aborted) {
      await this.#clock.sleep(POLL_MS, AbortSignal.any([this.#closing.signal, this.#idle!.signal]));
      if (this.#waiting === 0 || this.#closing.signal.aborted) break;
      try {
        await this.#refresher.refresh();
        wasFailing = false;
      } catch (error) {
        if (!wasFailing) this.#log.warn('Other writers\' events could not be asked for; whoever waits for them waits on.', { error });
        wasFailing = true;
      }
    }
    this.#running = null;
    if (this.#waiting > 0 && !this.#closing.signal.aborted) this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }
}
