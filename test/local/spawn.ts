import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = fileURLToPath(new URL('../../local/main.ts', import.meta.url));

export interface Ended { readonly code: number | null; readonly out: string; readonly err: string }

const LEVELS: Readonly<Record<string, string>> = { Debug: 'debug', Information: 'info', Warning: 'warn', Error: 'error' };

/** A command in a process of its own. */
export class Spawned {
  readonly child: ChildProcess;
  out = '';
  err = '';
  readonly ended: Promise<Ended>;
  #waiting: { readonly find: RegExp; readonly resolve: (match: RegExpExecArray) => void }[] = [];

  constructor(command: string, words: readonly string[], env: Record<string, string> = {}) {
    this.child = spawn(command, words, { cwd: ROOT, env: { ...process.env, NO_COLOR: '1', ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout!.on('data', (part: Buffer) => { this.out += part.toString(); this.#look(); });
    this.child.stderr!.on('data', (part: Buffer) => { this.err += part.toString(); this.#look(); });
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject);
      this.child.on('close', (code) => resolve({ code, out: this.out, err: this.err }));
    });
  }

  /** Resolves when the text has appeared on stdout or stderr; rejects when the process ends without it. */
  seen(find: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ find, resolve });
      this.#look();
      void this.ended.then(({ code }) => reject(new Error(`ended with ${code} before ${find} was seen:\n${this.out}\n${this.err}`)));
    });
  }

  /** The lines that were logged so far: their members as documented, and `level`, `time` and `msg` for short. */
  logged(): Record<string, unknown>[] {
    return this.err.split('\n').filter((line) => line.startsWith('{')).map((line) => {
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

/** `skua ...` in a process of its own. */
export function skua(words: readonly string[], env?: Record<string, string>): Spawned {
  return new Spawned(process.execPath, [MAIN, ...words], env);
}

/** Without one of these a node for tests has no users and no TLS. */
const SECURITY = new Set(['--insecure', '--disable-tls', '--dev', '--certificate-file']);

/** Nodes of tests have few streams; making a filter for as many as a real one takes a third of a start. */
const FILTER = '--stream-existence-filter-size';

/** A running node on a free port. End it with `stop`. */
export async function startedNode(words: readonly string[]): Promise<{ readonly process: Spawned; readonly url: string; stop(): Promise<Ended> }> {
  const process = skua(['start', '--node-port', '0', ...(words.some((word) => SECURITY.has(word)) ? [] : ['--insecure']), ...(words.includes(FILTER) ? [] : [FILTER, '10000']), ...words]);
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
