/** Where a command writes, what it may look at, and the process that it runs in; tests give their own. */
export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  /** What is typed or piped in; absent where there is none. */
  readonly stdin?: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly process: Surroundings;
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
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Exit codes of every command (design section 11). */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, refused: 4, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const processIo: Io = {
  stdout: process.stdout, stderr: process.stderr, env: process.env, process,
  // Made when it is first asked for, which most commands never do.
  get stdin() { return process.stdin; },
};

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
  return { bold: paint(codes.bold), dim: paint(codes.dim), red: paint(codes.red), green: paint(codes.green), yellow: paint(codes.yellow) };
}

export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
}

/** Lines of a table: the titles, then the rows, each column as wide as its widest cell. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const cells = [columns.map((column) => column.title), ...rows];
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => (row[at] ?? '').length)));
  return cells.map((row) => columns.map(({ align }, at) => {
    const cell = row[at] ?? '';
    return align === 'right' ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!);
  }).join('  ').trimEnd());
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
