import { FunctionProcess } from './function-process.ts';
import type { FunctionProcessOptions } from './function-process.ts';
import type { Outcome } from './runtime-interface.ts';

/** Calls of one function that may wait for an instance. */
export const CALLS_WAITING_MAX = 1_000;

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
      await new Promise<void>((resolve) => { this.#waiting.push(resolve); });
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.close()));
  }
}

/** Nobody else takes it before its call begins. */
function reserved(instance: FunctionProcess): FunctionProcess {
  instance.isBusy = true;
  return instance;
}
