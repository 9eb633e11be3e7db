import pino from 'pino';
import type { Log } from '../core/ports/log.ts';
import { coloursFor, type Colours } from './cli/colour.ts';
import type { Io, Output } from './cli/io.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'off';

/** Longest rendering of one field on a terminal. */
const FIELD_LENGTH_MAX = 400;

/**
 * The structured log on stderr: one JSON object a line, or a compact rendering for people where stderr is a terminal.
 * Lines are written at once, so that none is missing when the process ends.
 */
export function createLog(io: Io, level: LogLevel): Log {
  const destination = io.stderr.isTTY === true ? { write: (text: string) => { io.stderr.write(forTerminal(text, io.stderr, io.env)); } }
    : io.stderr === process.stderr ? pino.destination({ fd: 2, sync: true }) : { write: (text: string) => { io.stderr.write(text); } };
  const logger = pino({
    level: level === 'off' ? 'silent' : level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: errorFields },
  }, destination);
  return {
    debug: (message, fields) => logger.debug(fields, message),
    info: (message, fields) => logger.info(fields, message),
    warn: (message, fields) => logger.warn(fields, message),
    error: (message, fields) => logger.error(fields, message),
  };
}

/** An error as fields: what it is, what it says, its data, and where it came from. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, data } = error as { code?: unknown; data?: unknown };
  return { code, message: error.message, data, stack: error.stack, cause: error.cause === undefined ? undefined : errorFields(error.cause) };
}

function forTerminal(text: string, output: Output, env: Io['env']): string {
  const { level, time, msg, ...fields } = JSON.parse(text) as { level: string; time: string; msg?: string } & Record<string, unknown>;
  const colours = coloursFor(output, env);
  const rest = Object.entries(fields).map(([name, value]) => ` ${colours.dim(`${name}=`)}${fieldText(value)}`).join('');
  // A progress bar may stand on the line: it is wiped, and drawn again later.
  return `\r\u001B[2K${colours.dim(time.slice(11, 19))} ${levelText(level, colours)} ${msg ?? ''}${rest}\n`;
}

function levelText(level: string, colours: Colours): string {
  const padded = level.padEnd(5);
  if (level === 'error') return colours.red(padded);
  if (level === 'warn') return colours.yellow(padded);
  return level === 'info' ? colours.green(padded) : colours.dim(padded);
}

function fieldText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value) ?? '';
  return text.length > FIELD_LENGTH_MAX ? `${text.slice(0, FIELD_LENGTH_MAX)}…` : text;
}
