import { CLEAR_LINE, coloursFor, harmless, shown as oneLine } from './io.ts';
import type { Colours, Io, Output } from './io.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'off';
export type LineLevel = Exclude<LogLevel, 'off'>;

/** One thing that was logged. */
export interface LogEvent {
  readonly atMs: number;
  readonly level: LineLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Longest text of one field, of all fields together, and of the message, in characters: a line stays below 64 KiB. */
const FIELD_LENGTH_MAX = 8_192;
const FIELDS_LENGTH_MAX = 24_576;
const MESSAGE_LENGTH_MAX = 4_096;
const DEPTH_MAX = 6;
const ITEMS_MAX = 100;
/** Values that a field may consist of. */
const VALUES_MAX = 1_000;
/** Longest rendering of one field for people. */
const SHOWN_LENGTH_MAX = 400;
/** Names that the format itself uses; a field of such a name gets another `@` before it, as is the custom. */
const RESERVED = /^@/;

const LEVELS: Readonly<Record<LineLevel, { readonly name: string; readonly short: string }>> = {
  debug: { name: 'Debug', short: 'DBG' },
  info: { name: 'Information', short: 'INF' },
  warn: { name: 'Warning', short: 'WRN' },
  error: { name: 'Error', short: 'ERR' },
};

/** The line of log files and of the console format `Json`, with its line break. */
export function jsonLine(event: LogEvent): string {
  const { atMs, level, message, fields } = event;
  const head = { '@t': localTime(atMs), '@mt': cut(message, MESSAGE_LENGTH_MAX), '@l': LEVELS[level].name };
  const error = fields['error'];
  const exception = error instanceof Error ? { '@x': cut(stackOf(error), FIELD_LENGTH_MAX) } : {};
  const tail = { SourceContext: 'Skua', ProcessId: process.pid };
  let length = 0;
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    const plain = plainValue(value, 0);
    length += name.length + (JSON.stringify(plain)?.length ?? 0);
    if (length > FIELDS_LENGTH_MAX)
      return `${harmless(JSON.stringify({ ...head, ...exception, ...shown, isTruncated: true, ...tail }))}\n`;
    shown[RESERVED.test(name) ? `@${name}` : name] = plain;
  }
  return `${harmless(JSON.stringify({ ...head, ...exception, ...shown, ...tail }))}\n`;
}

/** The console format `Plain`: `[pid,thread,HH:mm:ss.fff,LVL] message` and the fields behind it. */
export function plainLine({ atMs, level, message, fields }: LogEvent): string {
  return `[${process.pid},1,${localTime(atMs).slice(11, 23)},${LEVELS[level].short}] ${oneLine(cut(message, MESSAGE_LENGTH_MAX))}${fieldsText(fields, (name) => name)}\n`;
}

/** The compact rendering for a terminal. A progress bar may stand on the line: it is wiped, and drawn again later. */
export function terminalLine({ atMs, level, message, fields }: LogEvent, output: Output, env: Io['env']): string {
  const colours = coloursFor(output, env);
  const time = colours.dim(localTime(atMs).slice(11, 19));
  return `${CLEAR_LINE}${time} ${levelText(level, colours)} ${oneLine(cut(message, MESSAGE_LENGTH_MAX))}${fieldsText(fields, colours.dim)}\n`;
}

function levelText(level: LineLevel, colours: Colours): string {
  const padded = level.padEnd(5);
  if (level === 'error') return colours.red(padded);
  if (level === 'warn') return colours.yellow(padded);
  return level === 'info' ? colours.green(padded) : colours.dim(padded);
}

function fieldsText(fields: LogEvent['fields'], paint: (text: string) => string): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${paint(`${oneLine(name)}=`)}${shownText(value)}`)
    .join('');
}

function shownText(value: unknown): string {
  const plain = plainValue(value, 0);
  return cut(oneLine(typeof plain === 'string' ? plain : (JSON.stringify(plain) ?? '')), SHOWN_LENGTH_MAX);
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

interface Budget {
  left: number;
}

/** A value as JSON can hold it, bounded: of an error what it is, what it says and its data. */
function plainValue(value: unknown, depth: number, budget: Budget = { left: VALUES_MAX }): unknown {
  if (--budget.left < 0) return '…';
  const plain = (each: unknown): unknown => plainValue(each, depth + 1, budget);
  if (typeof value === 'string') return cut(value, FIELD_LENGTH_MAX);
  if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function')
    return cut(String(value), FIELD_LENGTH_MAX);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEPTH_MAX) return '…';
  if (value instanceof Error) {
    const { code, data } = value as { code?: unknown; data?: unknown };
    return {
      code,
      message: cut(value.message, FIELD_LENGTH_MAX),
      data: plain(data),
      cause: value.cause === undefined ? undefined : plain(value.cause),
    };
  }
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (Array.isArray(value)) return value.slice(0, ITEMS_MAX).map(plain);
  if (value instanceof Map || value instanceof Set) return plain([...value]);
  if (value instanceof Date || value instanceof URL) return String(value);
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, ITEMS_MAX)
      .map(([name, each]) => [name, plain(each)]),
  );
}

/** Where an error came from, with the errors behind it. */
function stackOf(error: Error): string {
  const own = error.stack ?? `${error.name}: ${error.message}`;
  return error.cause instanceof Error ? `${own}\n ---> ${stackOf(error.cause)}` : own;
}

/** ISO 8601 in local time with its offset from UTC. */
export function localTime(atMs: number): string {
  const minutes = -new Date(atMs).getTimezoneOffset();
  const local = new Date(atMs + minutes * 60_000).toISOString().slice(0, -1);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${local}${minutes < 0 ? '-' : '+'}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}
