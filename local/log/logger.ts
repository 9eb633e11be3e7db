import pino from 'pino';
import type { Log } from '../../core/ports/log.ts';
import type { LogView } from '../../handlers/documents/node.ts';
import type { LogQuery } from '../../handlers/http/node-control.ts';
import { draw } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';
import { LogFiles } from './log-files.ts';
import type { LogFileSettings } from './log-files.ts';
import { jsonLine, plainLine, terminalLine } from '../../infra/runtime/log-line.ts';
import type { LineLevel, LogEvent, LogLevel } from '../../infra/runtime/log-line.ts';
import { LogRing } from './log-ring.ts';

export type { LogLevel } from '../../infra/runtime/log-line.ts';
export { logFolder } from './log-files.ts';

const RANKS: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3, off: 4 };
const NO_FIELDS = {};

type LogIo = Pick<Io, 'stderr' | 'env'>;

export interface LogSettings {
  readonly level: LogLevel;
  /** Of stderr; null for lines for people on a terminal, and JSON elsewhere. */
  readonly format?: 'Plain' | 'Json' | null;
  /** Null for no files. */
  readonly files?: LogFileSettings | null;
  readonly nowMs?: () => number;
}

/** The log of a node. */
export interface NodeLog extends Log {
  readonly level: LogLevel;
  /** Takes effect with the next line. */
  setLevel(level: LogLevel): void;
  /** The last lines, from memory. */
  recent(query: LogQuery): LogView;
  /** A line of statistics, which goes into the file of statistics only. */
  stats(values: Readonly<Record<string, unknown>>): void;
  /** Writes out what waits for the log files, in bounded time. What is logged afterwards goes to stderr only. */
  close(): Promise<void>;
}

/** The structured log on stderr, for commands that need no more. */
export function createLog(io: LogIo, level: LogLevel): NodeLog {
  return createNodeLog(io, { level });
}

/**
 * The structured log: on stderr, written at once so that no line is missing when the process ends, and in files. Files
 * that can't be written cost a warning on stderr and nothing else.
 */
export function createNodeLog(io: LogIo, settings: LogSettings): NodeLog {
  return new ConsoleAndFiles(io, settings);
}

class ConsoleAndFiles implements NodeLog {
  readonly #nowMs: () => number;
  readonly #writeConsole: (event: LogEvent, line: () => string) => void;
  #files: LogFiles | null;
  readonly #ring = new LogRing();
  #level: LogLevel;

  constructor(io: LogIo, { level, format = null, files = null, nowMs = Date.now }: LogSettings) {
    this.#level = level;
    this.#nowMs = nowMs;
    this.#writeConsole = consoleOf(io, format);
    this.#files = files === null ? null : new LogFiles(files, (file, error) => this.#warnOfFiles(file, error), nowMs);
  }

  get level(): LogLevel {
    return this.#level;
  }
  setLevel(level: LogLevel): void {
    this.#level = level;
  }
  recent(query: LogQuery): LogView {
    return this.#ring.view(this.#level, query);
  }

  debug(message: string, fields?: Record<string, unknown>): void {
    this.#log('debug', message, fields);
  }
  info(message: string, fields?: Record<string, unknown>): void {
    this.#log('info', message, fields);
  }
  warn(message: string, fields?: Record<string, unknown>): void {
    this.#log('warn', message, fields);
  }
  error(message: string, fields?: Record<string, unknown>): void {
    this.#log('error', message, fields);
  }

  stats(values: Readonly<Record<string, unknown>>): void {
    this.#files?.writeStats({ atMs: this.#nowMs(), level: 'info', message: 'statistics', fields: { stats: values } });
  }

  async close(): Promise<void> {
    const files = this.#files;
    this.#files = null;
    await files?.close();
  }

  #log(level: LineLevel, message: string, fields: Record<string, unknown> = NO_FIELDS): void {
    if (RANKS[level] < RANKS[this.#level]) return;
    const atMs = this.#nowMs();
    try {
      this.#write({ atMs, level, message, fields });
    } catch (error) {
      // A field that can't be shown (a getter that throws, say) must not turn logging into a failure.
      this.#write({ atMs, level, message, fields: { logging: String(error) } });
    }
  }

  #write(event: LogEvent): void {
    let made: string | null = null;
    const line = () => (made ??= jsonLine(event));
    this.#writeConsole(event, line);
    this.#files?.write(event, line());
    this.#ring.add({ atMs: event.atMs, level: event.level, text: line() });
  }

  #warnOfFiles(file: string, error: unknown): void {
    const event: LogEvent = {
      atMs: this.#nowMs(),
      level: 'warn',
      message: 'log files cannot be written; retrying every minute, and until then lines go to stderr only',
      fields: { file, error },
    };
    if (this.#level !== 'off') this.#writeConsole(event, () => jsonLine(event));
  }
}

function consoleOf(
  { stderr, env }: LogIo,
  format: LogSettings['format'],
): (event: LogEvent, line: () => string) => void {
  // pino's destination goes on where a pipe is full for a moment, which a plain write to the descriptor does not.
  const direct =
    (stderr.behind ?? stderr) === process.stderr && stderr.isTTY !== true
      ? pino.destination({ fd: 2, sync: true })
      : null;
  const write = (text: string) => {
    (direct ?? stderr).write(text);
  };
  if (format === 'Json' || (format !== 'Plain' && stderr.isTTY !== true)) return (_event, line) => write(line());
  if (stderr.isTTY === true) return (event) => draw(stderr, terminalLine(event, stderr, env));
  return (event) => write(plainLine(event));
}
