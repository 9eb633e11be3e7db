import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../local/main.ts', import.meta.url));
/** What `npm start` gives to Node.js. */
const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16', '--initial-old-space-size=64'];
/** Longest a member may take to listen, and to end when it is asked to, in milliseconds. */
const START_MS_MAX = 300_000;
const STOP_MS_MAX = 300_000;
/** Characters of its log that are kept for a report of what went wrong. */
const LOG_CHARACTERS = 4_000;

export interface MemberOptions {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Its data directory. */
  readonly folder: string;
  /** Options of `skua start` besides address and directory. */
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs another one, such as one that enters a network namespace. */
  readonly before?: readonly string[];
  /** Where its log goes, behind what is there. */
  readonly logFile?: string;
}

/**
 * One member of a cluster, or a single node, in a process of its own that is ended and started again at the same
 * address.
 */
export class Member {
  readonly options: MemberOptions;
  readonly url: string;
  /** How often it was started. */
  starts = 0;
  #child: ChildProcess | null = null;
  #listening: Promise<void> = Promise.resolve();
  #log = '';
  /** Ends that nobody asked for. */
  readonly #onFall: (what: string) => void;

  constructor(options: MemberOptions, onFall: (what: string) => void = () => {}) {
    this.options = options;
    this.url = `http://${options.host}:${options.port}`;
    this.#onFall = onFall;
  }

  get name(): string {
    return this.options.name;
  }
  get isRunning(): boolean {
    return this.#child !== null;
  }
  get pid(): number {
    return this.#child!.pid!;
  }
  get log(): string {
    return this.#log;
  }
  /** What its threads are at; empty where it does not run, or nothing tells. */
  get threads(): string {
    return this.#child === null ? '' : threadsOf(this.#child);
  }

  /** Resolves when it listens, which is before it is ready. */
  start(): Promise<void> {
    const { before = [], words, folder, host, port, env } = this.options;
    const line = [
      ...before,
      process.execPath,
      ...NODE_FLAGS,
      MAIN,
      'start',
      ...(folder === '' ? [] : ['--db', folder]),
      '--node-ip',
      host,
      '--node-port',
      String(port),
      ...words,
    ];
    const child = spawn(line[0]!, line.slice(1), {
      env: { ...process.env, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.starts++;
    let out = '';
    this.#listening = new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`${this.name} does not listen.\n${threadsOf(child)}\n${this.#log}`)),
        START_MS_MAX,
      );
      child.stdout.on('data', (text: Buffer) => {
        out = (out + text.toString()).slice(-LOG_CHARACTERS);
        if (!/listening on https?:\/\//.test(out)) return;
        clearTimeout(timer);
        resolve();
      });
      child.once('exit', (code, signal) => {
        clearTimeout(timer);
        reject(new Error(`${this.name} ended with ${code ?? signal} before it listened.\n${out}\n${this.#log}`));
        if (this.#child !== child) return;
        this.#child = null;
        this.#onFall(`${this.name} ended by itself with ${code ?? signal}: ${this.#log}`);
      });
    });
    this.#listening.catch(() => {});
    child.stderr.on('data', (text: Buffer) => {
      this.#log = (this.#log + text.toString()).slice(-LOG_CHARACTERS);
      if (this.options.logFile !== undefined) appendFileSync(this.options.logFile, text);
    });
    return this.#listening;
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Resolves when the process is gone. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    const gone = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
    });
    const timer = setTimeout(() => {
      if (signal === 'SIGTERM')
        this.#onFall(`${this.name} did not end within ${STOP_MS_MAX} ms of SIGTERM: ${threadsOf(child)}\n${this.#log}`);
      child.kill('SIGKILL');
    }, STOP_MS_MAX);
    child.kill(signal);
    // One that stands still ends only when it goes on.
    child.kill('SIGCONT');
    await gone;
    clearTimeout(timer);
  }

  /** As a new machine would be: all that the member had is gone. */
  async forget(): Promise<void> {
    const { folder } = this.options;
    // The folder itself may be a mounted disk.
    for (const entry of await readdir(folder).catch(() => []))
      await rm(`${folder}/${entry}`, { recursive: true, force: true });
  }
}

/**
 * Of a process that hangs: what each of its threads waits for, and processor time that it has taken, in hundredths of a
 * second. Empty where the system does not tell.
 */
function threadsOf({ pid }: ChildProcess): string {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((thread) => {
        const of = (what: string): string => readFileSync(`/proc/${pid}/task/${thread}/${what}`, 'utf8').trim();
        const [state, ...figures] = of('stat')
          .replace(/^.*\) /s, '')
          .split(' ');
        return `${of('comm')} ${state} ${of('wchan')} ${Number(figures[10]) + Number(figures[11])}`;
      })
      .join('; ');
  } catch {
    return '';
  }
}
