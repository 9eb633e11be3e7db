import { EventEmitter } from 'node:events';
import type { Io } from '../../infra/runtime/io.ts';

/** A process that signals are sent to by `emit`, and that remembers how it was ended. */
class FakeProcess extends EventEmitter {
  exitCode: number | null = null;

  exit(code: number): void {
    this.exitCode = code;
  }
}

/** Work in phases begins with its percentage, other work with its name. */
const PROGRESS_LINES = /^(?:[a-z ]+: )?\d+ %, .*\n/gm;

/** Collects what a command writes. */
export class FakeIo implements Io {
  out = '';
  err = '';
  readonly #waiting: { readonly find: RegExp; readonly resolve: () => void }[] = [];
  readonly stdout;
  readonly stderr;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly process = new FakeProcess();
  readonly monotonicMs: Io['monotonicMs'];

  constructor(options: { isTTY?: boolean; env?: Io['env']; monotonicMs?: Io['monotonicMs'] } = {}) {
    const isTTY = options.isTTY ?? false;
    this.env = options.env ?? {};
    this.monotonicMs = options.monotonicMs ?? (() => performance.now());
    this.stdout = {
      isTTY,
      columns: 100,
      write: (text: string) => {
        this.out += text;
        this.#tell();
      },
    };
    this.stderr = {
      isTTY,
      columns: 100,
      write: (text: string) => {
        this.err += text;
        this.#tell();
      },
    };
  }

  /** Resolves when the text has been written. */
  written(find: RegExp): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ find, resolve });
      this.#tell();
    });
  }

  /** What was told as an error or a warning: without the lines of progress that a slow machine sees. */
  get complaints(): string {
    return this.err.replaceAll(PROGRESS_LINES, '');
  }

  #tell(): void {
    for (const { find, resolve } of this.#waiting) if (find.test(this.out + this.err)) resolve();
  }
}
