/** Where a command writes and what it may look at; tests give their own. */
export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Exit codes of every command (design section 11). */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, refused: 4, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const processIo: Io = { stdout: process.stdout, stderr: process.stderr, env: process.env };

export function line(output: Output, text = ''): void {
  output.write(`${text}\n`);
}
