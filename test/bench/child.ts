import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { LoadRequest, LoadResult } from './processes/http-load.ts';

/** The project's folder. */
export const ROOT = join(import.meta.dirname, '..', '..');
/** What `npm start` gives to Node.js. */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16', '--initial-old-space-size=64'];
/** What the archive sets. */
const ALLOCATOR = { MALLOC_ARENA_MAX: '2' };
const START_MS_MAX = 60_000;
const STOP_MS_MAX = 20_000;

export interface Server {
  readonly port: number;
  readonly process: ChildProcess;
  stop(): Promise<void>;
}

/**
 * Starts a program of this run's Node.js that prints its address, and waits for that. `hasChannel`: it can be sent
 * messages, and sends some.
 */
export async function startServer(args: readonly string[], hasChannel = false): Promise<Server> {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...ALLOCATOR },
    stdio: ['ignore', 'pipe', 'pipe', ...(hasChannel ? ['ipc' as const] : [])],
  });
  let printed = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    printed = (printed + chunk.toString()).slice(-4_000);
  });
  const port = await new Promise<number>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${args.join(' ')} printed no address.\n${printed}`)),
      START_MS_MAX,
    );
    let out = '';
    child.stdout!.on('data', (chunk: Buffer) => {
      out = (out + chunk.toString()).slice(-4_000);
      const found = /https?:\/\/[^\s/"]+:(\d+)/.exec(out);
      if (found === null) return;
      clearTimeout(timer);
      resolve(Number(found[1]));
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`${args.join(' ')} ended with ${code}.\n${out}${printed}`));
    });
  });
  return { port, process: child, stop: () => stopChild(child) };
}

/**
 * Starts the node on a directory, without TLS; with `--disable-tls` there are users, and without them the figures stay
 * those of the store.
 */
export function startNode(folder: string, security: '--insecure' | '--disable-tls' = '--insecure'): Promise<Server> {
  return startServer([...NODE_FLAGS, 'local/main.ts', 'start', '--db', folder, '--node-port', '0', security]);
}

export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(timer);
}

/** Starts a program that answers each JSON line on its input with one JSON line on its output. */
export function startHelper(args: readonly string[]): { ask<T>(request: unknown): Promise<T>; stop(): Promise<void> } {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask<T>(request: unknown): Promise<T> {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      const line = await lines.next();
      if (line.done === true) throw new Error(`${args.join(' ')} ended without an answer.`);
      return JSON.parse(line.value) as T;
    },
    async stop() {
      child.stdin.end();
      await stopChild(child);
    },
  };
}

/** The load generator of HTTP, which fails with the first answer that was another than expected. */
export function startHttpLoad(): { load(request: LoadRequest): Promise<LoadResult>; stop(): Promise<void> } {
  const generator = startHelper(['test/bench/processes/http-load.ts']);
  return {
    stop: generator.stop,
    async load(request) {
      const result = await generator.ask<LoadResult>(request);
      if (result.failures > 0)
        throw new Error(`${result.failures} requests failed, the first with:\n${result.firstFailure}`);
      return result;
    },
  };
}
