import type { Io } from '../../local/cli/io.ts';

/** Collects what a command writes. */
export class FakeIo implements Io {
  out = '';
  err = '';
  readonly stdout;
  readonly stderr;
  readonly env: Readonly<Record<string, string>>;

  constructor(options: { isTTY?: boolean; env?: Record<string, string> } = {}) {
    const isTTY = options.isTTY ?? false;
    this.env = options.env ?? {};
    this.stdout = { isTTY, columns: 100, write: (text: string) => { this.out += text; } };
    this.stderr = { isTTY, columns: 100, write: (text: string) => { this.err += text; } };
  }
}
