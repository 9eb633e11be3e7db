import { isSkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { lastProven } from './drill-proven.ts';
import type { Repository } from './repository-api.ts';

/** Others write to the repository too: drills, and backups that are made from outside. */
const LOOK_MS = 300_000;
/** A repository that can't be reached is tried again sooner. */
const RETRY_MS = 60_000;
/** A failure that goes on is logged again after this many looks. */
const LOOKS_BETWEEN_LINES = 60;

export interface WatchParts {
  readonly repository: () => Promise<Repository>;
  /** Of this node. */
  readonly nodeId: string;
  /** Told when there is another newest backup than the one that was known. */
  readonly onNewer?: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** What the repository holds of this node, for metrics. A repository that fails is logged and asked again; the node goes on. */
export class RepositoryWatch {
  readonly #parts: WatchParts;
  #newestMs: number | null = null;
  #provenMs: number | null = null;
  #failures = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** When the newest backup of this node was taken; null for none, or before it is known. Milliseconds since 1970. */
  get newestMs(): number | null { return this.#newestMs; }
  /** When a backup in the repository was last proven by a drill. */
  get provenMs(): number | null { return this.#provenMs; }

  /** A backup of this node was made. */
  made({ createdMs }: { readonly createdMs: number }): void {
    this.#newestMs = Math.max(createdMs, this.#newestMs ?? createdMs);
  }

  /** Looks every few minutes, until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<void>((resolve) => { signal.addEventListener('abort', () => resolve(), { once: true }); });
    while (!signal.aborted) {
      // A repository that does not answer keeps nobody from stopping.
      await Promise.race([this.look(signal), aborted]);
      await this.#parts.clock.sleep(this.#failures > 0 ? RETRY_MS : LOOK_MS, signal);
    }
  }

  /** Never rejects. */
  async look(signal?: AbortSignal): Promise<void> {
    const { repository: open, nodeId, onNewer, log } = this.#parts;
    try {
      const repository = await open();
      const newestMs = (await repository.newestOf(nodeId))?.createdMs ?? null;
      if (newestMs !== this.#newestMs) onNewer?.();
      this.#newestMs = newestMs;
      this.#provenMs = (await lastProven(repository))?.provenMs ?? null;
      if (this.#failures > 0) log.info('the repository of backups can be used again', { repository: repository.place, failures: this.#failures });
      this.#failures = 0;
    } catch (error) {
      if (signal?.aborted === true) return;
      if (this.#failures % LOOKS_BETWEEN_LINES === 0) log.error('the repository of backups can not be used now; it is tried again', { code: isSkuaError(error) ? error.code : undefined, error });
      this.#failures++;
    }
  }
}
