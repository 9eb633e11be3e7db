import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Note } from './decision.ts';

/** The same line is written again after this time. */
const AGAIN_MS = 600_000;

/** One line for each decision; one that is made again and again, such as to wait, is told once in a while. */
export class NoteLog {
  readonly #log: Log;
  readonly #clock: Clock;
  #lastLine = '';
  #lastMs = 0;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  write({ level, text, fields }: Note): void {
    const line = `${text} ${JSON.stringify(fields)}`;
    const nowMs = this.#clock.monotonicMs();
    if (line === this.#lastLine && nowMs - this.#lastMs < AGAIN_MS) return;
    this.#lastLine = line;
    this.#lastMs = nowMs;
    this.#log[level](text, { ...fields });
  }
}
