import type { Log } from '../../core/ports/log.ts';

const WINDOW_MS = 60_000;
const LINES_MAX = 20;

/** Logs what goes wrong at the beginning of connections, at most so many lines a minute: anybody can cause them. */
export class HandshakeLog {
  readonly #log: Log;
  readonly #monotonicMs: () => number;
  #windowStart = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #suppressed = 0;

  constructor(log: Log, monotonicMs: () => number) {
    this.#log = log;
    this.#monotonicMs = monotonicMs;
  }

  note(message: string, fields: Record<string, unknown>): void {
    const now = this.#monotonicMs();
    if (now - this.#windowStart >= WINDOW_MS) {
      if (this.#suppressed > 0) this.#log.debug('lines about TLS connections were left out', { count: this.#suppressed });
      this.#windowStart = now;
      this.#lines = 0;
      this.#suppressed = 0;
    }
    if (this.#lines++ < LINES_MAX) this.#log.debug(message, fields);
    else this.#suppressed++;
  }
}
