import { mkdir, open } from 'node:fs/promises';
import * as path from 'node:path';

/** Folders known to be durable that are remembered; beyond, all are looked at again. */
const KNOWN_MAX = 10_000;

/** Makes folders, and the names in them, durable. Calls for one folder that come while it is being synced share one further sync. */
export class DurableFolders {
  readonly #root: string;
  readonly #known = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = root;
  }

  /**
   * Creates the folder and those above it. Their names are synced the first time even where they exist: another
   * process may have made them and not have come to its sync.
   */
  async ensure(folder: string): Promise<void> {
    if (this.#known.has(folder)) return;
    const first = await mkdir(folder, { recursive: true });
    // Above the root only what was made just now counts: the rest is not ours, and need not be readable.
    const top = first !== undefined && first.length <= this.#root.length ? path.dirname(first) : this.#root;
    for (let made = folder; made !== top && made !== path.dirname(made); made = path.dirname(made)) await this.sync(path.dirname(made));
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.add(folder);
  }

  /** After this, `ensure` looks at the folder again: it was found to be gone. */
  forget(folder: string): void {
    this.#known.delete(folder);
  }

  /** Makes every name durable that is in the folder now. */
  sync(folder: string): Promise<void> {
    const waiting = this.#waiting.get(folder);
    if (waiting !== undefined) return waiting;
    const running = this.#running.get(folder);
    if (running === undefined) return this.#run(folder);
    const next = running.then(() => {}, () => {}).then(() => {
      this.#waiting.delete(folder);
      return this.#run(folder);
    });
    this.#waiting.set(folder, next);
    return next;
  }

  #run(folder: string): Promise<void> {
    const running = syncFolder(folder).finally(() => {
      if (this.#running.get(folder) === running) this.#running.delete(folder);
    });
    this.#running.set(folder, running);
    return running;
  }
}

/** Windows can't sync a folder, and does not need to. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
