import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { RuntimeInterface } from './runtime-interface.ts';
import type { Outcome } from './runtime-interface.ts';
import { background } from '../../core/base/background.ts';

/** Calls of one function that may wait for an instance. */
const CALLS_WAITING_MAX = 1_000;

/** The instances of one function: another one is started as long as all are busy and fewer than the limit are there. */
export class FunctionPool {
  readonly #options: FunctionProcessOptions;
  readonly #instancesMax: number;
  readonly #instances: FunctionProcess[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(options: FunctionProcessOptions, instancesMax: number) {
    this.#options = options;
    this.#instancesMax = instancesMax;
  }

  /** Null: too many calls wait. */
  async invoke(event: unknown, timeoutMs: number): Promise<Outcome | null> {
    const instance = await this.#free();
    if (instance === null) return null;
    try {
      return await instance.invoke(event, timeoutMs);
    } finally {
      this.#waiting.shift()?.();
    }
  }

  async #free(): Promise<FunctionProcess | null> {
    for (;;) {
      const idle = this.#instances.find(({ isBusy }) => !isBusy);
      if (idle !== undefined) return reserved(idle);
      if (this.#instances.length < this.#instancesMax) {
        const made = new FunctionProcess(this.#options);
        this.#instances.push(made);
        return reserved(made);
      }
      if (this.#waiting.length >= CALLS_WAITING_MAX) return null;
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.close()));
  }
}

/** No other call takes the process before its call begins. */
function reserved(instance: FunctionProcess): FunctionProcess {
  instance.isBusy = true;
  return instance;
}

interface FunctionProcessOptions {
  /** Names the function in its environment. */
  readonly name: string;
  /** The process works in it. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The program and its arguments that ask the runtime interface for calls. */
  readonly command: readonly [string, ...string[]];
  /** Gets what the process writes. */
  readonly onOutput: (text: string) => void;
}

/**
 * One instance of a function: a process of its own, which lives from the first call until it crashes, exceeds a
 * timeout or is closed, and handles one call at a time. The next call after its end starts another process.
 */
export class FunctionProcess {
  readonly #options: FunctionProcessOptions;
  #running: { readonly child: ChildProcess; readonly runtime: RuntimeInterface } | null = null;
  isBusy = false;

  constructor(options: FunctionProcessOptions) {
    this.#options = options;
  }

  /** Processes that were started so far. */
  starts = 0;

  async invoke(event: unknown, timeoutMs: number): Promise<Outcome> {
    this.isBusy = true;
    try {
      const { runtime } = (this.#running ??= await this.#start());
      const timer = setTimeout(() => {
        runtime.end({ kind: 'timed-out' });
        background(this.close());
      }, timeoutMs);
      const outcome = await runtime.invoke(event, timeoutMs);
      clearTimeout(timer);
      return outcome;
    } finally {
      this.isBusy = false;
    }
  }

  async close(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    if (running === null) return;
    const { child, runtime } = running;
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => {
        child.once('exit', resolve);
      });
    await runtime.close();
  }

  async #start(): Promise<{ child: ChildProcess; runtime: RuntimeInterface }> {
    const {
      name,
      folder,
      env,
      command: [program, ...args],
      onOutput,
    } = this.#options;
    const runtime = new RuntimeInterface();
    const api = await runtime.listen();
    this.starts++;
    const child = spawn(program, args, {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, ...platformVariables(name, folder), AWS_LAMBDA_RUNTIME_API: api },
    });
    const running = { child, runtime };
    child.stdout.setEncoding('utf8').on('data', onOutput);
    child.stderr.setEncoding('utf8').on('data', onOutput);
    const gone = (reason: string) => {
      if (this.#running?.child === child) this.#running = null;
      runtime.end({ kind: 'crashed', reason });
      background(runtime.close());
    };
    child.once('error', (error) => gone(error.message));
    child.once('exit', (code, signal) => gone(signal === null ? `exit code ${code}` : `signal ${signal}`));
    return running;
  }
}

/** What the platform gives every process of a function. */
function platformVariables(name: string, folder: string): Record<string, string> {
  return {
    AWS_LAMBDA_FUNCTION_NAME: `skua-${name}`,
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '1024',
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/skua-${name}`,
    AWS_LAMBDA_LOG_STREAM_NAME: 'local',
    LAMBDA_TASK_ROOT: folder,
    _HANDLER: 'index.handler',
  };
}
