import { systemClock } from '../system-clock.ts';

/** Where a command writes, what it may look at, and the process that it runs in; tests give their own. */
export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  /** What is typed or piped in; absent where there is none. */
  readonly stdin?: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly process: Surroundings;
  /** Of a clock that never goes back, in milliseconds: bars are drawn by it. */
  monotonicMs(): number;
}

/** What befalls the process from outside, and its way out. */
export interface Surroundings {
  on(event: ProcessEvent, listener: (told: string & Error) => void): unknown;
  off(event: ProcessEvent, listener: (told: string & Error) => void): unknown;
  /** Ends it at once, whatever is under way. */
  exit(code: ExitCode): unknown;
}

export type ProcessEvent = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'uncaughtException';

export interface Output {
  /**
   * Text that may have come from anywhere: behind `safeIo` nothing in it reaches a terminal that this would obey, but
   * for the colours of `coloursFor`.
   */
  write(text: string): unknown;
  /**
   * What moves the cursor, written as it is: it must be our own to the last character. Left out where `write` changes
   * nothing.
   */
  draw?(text: string): unknown;
  /** The output that this one writes to. */
  readonly behind?: Output;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Exit codes of every command. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, refused: 4, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const processIo: Io = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  process,
  monotonicMs: () => systemClock.monotonicMs(),
  // Made when it is first asked for, which most commands never do.
  get stdin() {
    return process.stdin;
  },
};

/** Takes a line off a terminal, so that another one can be written in its place. */
export const CLEAR_LINE = '\r\u001B[2K';

/** Writes what moves the cursor. */
export function draw(output: Output, text: string): void {
  if (output.draw === undefined) output.write(text);
  else output.draw(text);
}

/**
 * What a terminal obeys (control characters of both sets), takes for the end of a line, or turns the direction of text
 * round by.
 */
const OBEYED_OR_PARTED = /[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;
const OBEYED = /(?![\n\t])[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;
/** The colours of `coloursFor` are one match, so that they can be distinguished. */
// eslint-disable-next-line no-control-regex -- a control character is what is looked for
const OBEYED_OR_COLOUR = /\u001B\[(?:[012]|3[123])m|(?![\n\t])[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

/** As JSON writes it, so that what is JSON stays the same. */
function escaped(character: string): string {
  return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** A text of others on one line, with nothing in it that a terminal would obey: names, cells of tables, fields. */
export function shown(text: string): string {
  return text.replace(OBEYED_OR_PARTED, escaped);
}

/** A text whose lines and tabulators are our own, without what else a terminal would obey. */
export function harmless(text: string): string {
  return text.replace(OBEYED, escaped);
}

/**
 * The same for all that a program writes. The colours of a terminal stay, and a text of others can have no more than
 * those.
 */
export function safeIo(io: Io): Io {
  return {
    stdout: safe(io.stdout),
    stderr: safe(io.stderr),
    env: io.env,
    process: io.process,
    monotonicMs: () => io.monotonicMs(),
    get stdin() {
      return io.stdin!;
    },
  };
}

function safe(output: Output): Output {
  return {
    write: (text) =>
      output.write(
        output.isTTY === true
          ? text.replace(OBEYED_OR_COLOUR, (found) => (found.length > 1 ? found : escaped(found)))
          : harmless(text),
      ),
    draw: (text) => output.write(text),
    behind: output,
    get isTTY() {
      return output.isTTY === true;
    },
    get columns() {
      return output.columns!;
    },
  };
}

export function line(output: Output, text = ''): void {
  output.write(`${text}\n`);
}

export interface Colours {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

/** Colours for a terminal; plain text for everything else, and where `NO_COLOR` is set (no-color.org). */
export function coloursFor(output: Output, env: Io['env']): Colours {
  const isOn = output.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  const paint = (code: number) => (text: string) => (isOn ? `\u001B[${code}m${text}\u001B[0m` : text);
  return {
    bold: paint(codes.bold),
    dim: paint(codes.dim),
    red: paint(codes.red),
    green: paint(codes.green),
    yellow: paint(codes.yellow),
  };
}

export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
}

/**
 * Lines of a table: the titles, then the rows, each column as wide as its widest cell. Cells may come from anywhere.
 */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const cells = [columns.map((column) => column.title), ...rows.map((row) => row.map(shown))];
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => (row[at] ?? '').length)));
  return cells.map((row) =>
    columns
      .map(({ align }, at) => {
        const cell = row[at] ?? '';
        return align === 'right' ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!);
      })
      .join('  ')
      .trimEnd(),
  );
}

/** `1,250`. */
export function countText(count: number): string {
  return count.toLocaleString('en');
}

/** `1 chunk`, `2 chunks`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** A word of a command that is shown to be typed: quoted for the shell where it has to be. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
