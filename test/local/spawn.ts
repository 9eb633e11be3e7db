import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { runProgram } from '../../local/cli/run-command.ts';
import { VERSION } from '../../infra/runtime/version.ts';
import { COMMANDS } from '../../local/commands/all-commands.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = fileURLToPath(new URL('../../local/main.ts', import.meta.url));

/** What tests do with a process; one that runs in theirs has no number of its own. */
type Child = Pick<ChildProcess, 'kill'> & { readonly pid?: number | undefined };

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const LEVELS: Readonly<Record<string, string>> = {
  Debug: 'debug',
  Information: 'info',
  Warning: 'warn',
  Error: 'error',
};

/** What a command has written. */
abstract class Written {
  out = '';
  err = '';
  abstract readonly ended: Promise<Ended>;
  #waiting: { readonly find: RegExp; readonly resolve: (match: RegExpExecArray) => void }[] = [];

  protected take(name: 'out' | 'err', text: string): void {
    this[name] += text;
    this.#look();
  }

  /** Resolves when the text has appeared on stdout or stderr; rejects when the process ends without it. */
  seen(find: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ find, resolve });
      this.#look();
      void this.ended.then(({ code }) =>
        reject(new Error(`ended with ${code} before ${find} was seen:\n${this.out}\n${this.err}`)),
      );
    });
  }

  /** The lines that were logged so far: their members as documented, and `level`, `time` and `msg` for short. */
  logged(): Record<string, unknown>[] {
    return this.err
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => {
        const logged = JSON.parse(line) as Record<string, unknown>;
        return { ...logged, level: LEVELS[String(logged['@l'])], time: logged['@t'], msg: logged['@mt'] };
      });
  }

  #look(): void {
    for (const { find, resolve } of this.#waiting) {
      const match = find.exec(this.out) ?? find.exec(this.err);
      if (match !== null) resolve(match);
    }
  }
}

/** A command in a process of its own; `isGroup` makes it the first of a group, which `end` ends as a whole. */
export class Spawned extends Written {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;

  constructor(
    command: string,
    words: readonly string[],
    env: Readonly<Record<string, string | undefined>> = {},
    { cwd = ROOT, isGroup = false } = {},
  ) {
    super();
    this.child = spawn(command, words, {
      cwd,
      detached: isGroup,
      env: { ...process.env, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout!.on('data', (part: Buffer) => {
      this.take('out', part.toString());
    });
    this.child.stderr!.on('data', (part: Buffer) => {
      this.take('err', part.toString());
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject);
      this.child.on('close', (code) => resolve({ code, out: this.out, err: this.err }));
    });
  }

  /** Ctrl+C, as a terminal sends it to all that a command has started. Resolves when all of them have ended. */
  end(): Promise<Ended> {
    process.kill(-this.child.pid!, 'SIGINT');
    return this.ended;
  }
}

/** A command in this process, which is sent signals as a process is. */
class Here extends Written {
  readonly #process = new EventEmitter();
  readonly ended: Promise<Ended>;

  constructor(words: readonly string[], env: Record<string, string> = {}, stdin?: NodeJS.ReadableStream) {
    super();
    const { promise: exit, resolve } = Promise.withResolvers<ExitCode>();
    const io: Io = {
      stdout: { write: (text) => this.take('out', text) },
      stderr: { write: (text) => this.take('err', text) },
      env: { ...process.env, NO_COLOR: '1', ...env },
      ...(stdin !== undefined && { stdin }),
      process: Object.assign(this.#process, { exit: resolve }),
      monotonicMs: () => performance.now(),
    };
    this.ended = Promise.race([runProgram({ commands: COMMANDS, version: VERSION }, words, io), exit]).then((code) => ({
      code,
      out: this.out,
      err: this.err,
    }));
  }

  get child(): Child {
    return { kill: (signal) => this.#process.emit(String(signal), signal) };
  }
}

/** `skua ...` in a process of its own. */
export function skua(words: readonly string[], env?: Record<string, string>): Spawned {
  return new Spawned(process.execPath, [MAIN, ...words], env);
}

/** Without one of these a node for tests has no users and no TLS. */
const SECURITY = new Set(['--insecure', '--disable-tls', '--dev', '--certificate-file']);

/** Nodes of tests have few streams; making a filter for as many as a real one takes a third of a start. */
const FILTER = '--stream-existence-filter-size';

export interface Started {
  readonly process: Pick<Spawned, 'ended' | 'seen' | 'logged' | 'out' | 'err'> & { readonly child: Child };
  readonly url: string;
  stop(): Promise<Ended>;
}

/** A running node on a free port, in a process of its own. End it with `stop`. */
export function startedProcess(words: readonly string[], env?: Record<string, string>): Promise<Started> {
  return listening(skua(wordsOf(words), env));
}

/**
 * A running node on a free port, by the command's own way in but in this process: a start takes a tenth of the time.
 */
export function startedNode(words: readonly string[]): Promise<Started> {
  return listening(new Here(wordsOf(words)));
}

/** `skua ...` in this process, to its end. */
export function ran(
  words: readonly string[],
  env?: Record<string, string>,
  stdin?: NodeJS.ReadableStream,
): Promise<Ended> {
  return new Here(words, env, stdin).ended;
}

function wordsOf(words: readonly string[]): string[] {
  return [
    'start',
    '--node-port',
    '0',
    ...(words.some((word) => SECURITY.has(word)) ? [] : ['--insecure']),
    ...(words.includes(FILTER) ? [] : [FILTER, '10000']),
    ...words,
  ];
}

async function listening<P extends Started['process']>(process: P): Promise<Started> {
  const match = await process.seen(/listening on (https?:\/\/\S+)\n/);
  return {
    process,
    url: match[1]!,
    stop: () => {
      process.child.kill('SIGTERM');
      return process.ended;
    },
  };
}

/** What the threads of a process are called, where the system tells. */
export function threadsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      return [readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8').trim()];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}
