import type { Log } from '../../../core/ports/log.ts';
import { jsonLine } from '../../../local/log/log-line.ts';
import type { LineLevel, LogLevel } from '../../../local/log/log-line.ts';

const RANKS: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3, off: 4 };
const NO_FIELDS = {};

/** A JSON object a line, which the platform collects; `requestId` says during which call it was written. */
export class FunctionLog implements Log {
  #rank: number;
  readonly #write: (text: string) => void;
  requestId: string | null = null;

  constructor(level: LogLevel, write: (text: string) => void = (text) => { process.stdout.write(text); }) {
    this.#rank = RANKS[level];
    this.#write = write;
  }

  setLevel(level: LogLevel): void { this.#rank = RANKS[level]; }

  debug(message: string, fields: Record<string, unknown> = NO_FIELDS): void { this.#line('debug', message, fields); }
  info(message: string, fields: Record<string, unknown> = NO_FIELDS): void { this.#line('info', message, fields); }
  warn(message: string, fields: Record<string, unknown> = NO_FIELDS): void { this.#line('warn', message, fields); }
  error(message: string, fields: Record<string, unknown> = NO_FIELDS): void { this.#line('error', message, fields); }

  #line(level: LineLevel, message: string, fields: Record<string, unknown>): void {
    if (RANKS[level] < this.#rank) return;
    this.#write(jsonLine({ atMs: Date.now(), level, message, fields: this.requestId === null ? fields : { requestId: this.requestId, ...fields } }));
  }
}
