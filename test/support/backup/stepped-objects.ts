import type { Clock } from '../../../core/ports/clock.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../../core/ports/object-store.ts';

/**
 * Runs several processes over one object store, one call at a time: each call, and each sleep, waits until the schedule
 * names its process. A call takes effect when its turn comes.
 */
export class Steps {
  #nowMs: number;
  readonly #waiting = new Map<string, { readonly op: string; readonly go: () => void }[]>();

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Time passes while nobody moves. */
  pass(ms: number): void {
    this.#nowMs += ms;
  }

  /** What a process does at its next turn. */
  next(process: string): string | undefined {
    return this.#waiting.get(process)?.[0]?.op;
  }

  turn(process: string, op: string): Promise<void> {
    return new Promise((go) => {
      const queue = this.#waiting.get(process) ?? [];
      queue.push({ op, go });
      this.#waiting.set(process, queue);
    });
  }

  /** Time as a process sees it: it goes on when one sleeps. */
  clock(process: string): Clock {
    return {
      nowMs: () => this.#nowMs,
      monotonicMs: () => this.#nowMs,
      sleep: async (ms) => {
        await this.turn(process, 'sleep');
        this.#nowMs += ms;
      },
      yield: () => Promise.resolve(),
    };
  }

  objects(process: string, below: ObjectStore): ObjectStore {
    return new SteppedObjects(below, (op) => this.turn(process, op));
  }

  /**
   * Runs all processes to their ends. `choose` picks one of those that wait; it is told how often each has had its
   * turn.
   */
  async run(
    processes: Readonly<Record<string, Promise<unknown>>>,
    choose: (ready: readonly string[], turns: ReadonlyMap<string, number>) => string,
  ): Promise<void> {
    const ended = new Set<string>();
    const turns = new Map<string, number>();
    for (const [name, process] of Object.entries(processes))
      process.then(
        () => ended.add(name),
        () => ended.add(name),
      );
    for (;;) {
      await settled();
      if (ended.size === Object.keys(processes).length) return;
      const ready = [...this.#waiting]
        .filter(([, queue]) => queue.length > 0)
        .map(([name]) => name)
        .toSorted();
      if (ready.length === 0) continue;
      const chosen = choose(ready, turns);
      turns.set(chosen, (turns.get(chosen) ?? 0) + 1);
      this.#waiting.get(chosen)!.shift()!.go();
    }
  }
}

/** All work that needs no further turn has been done. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

class SteppedObjects implements ObjectStore {
  readonly #below: ObjectStore;
  readonly #turn: (op: string) => Promise<void>;

  constructor(below: ObjectStore, turn: (op: string) => Promise<void>) {
    this.#below = below;
    this.#turn = turn;
  }

  get place(): string {
    return this.#below.place;
  }
  async get(key: string, options?: GetOptions): Promise<Uint8Array | null> {
    await this.#turn('get');
    return await this.#below.get(key, options);
  }
  async head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    await this.#turn('head');
    return await this.#below.head(key, signal);
  }
  async put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#turn('put');
    return await this.#below.put(key, bytes, signal);
  }
  async create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'> {
    await this.#turn('create');
    return await this.#below.create(key, bytes, signal);
  }
  async upload(
    key: string,
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#turn('upload');
    return await this.#below.upload(key, sizeBytes, content, signal);
  }
  async list(prefix: string, options?: ListOptions): Promise<ObjectPage> {
    await this.#turn('list');
    return await this.#below.list(prefix, options);
  }
  async remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    await this.#turn('remove');
    return await this.#below.remove(keys, signal);
  }
  async close(): Promise<void> {}
}
