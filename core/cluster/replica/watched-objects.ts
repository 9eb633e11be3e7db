import { isSkuaError, type ErrorCode } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type {
  GetOptions,
  ListOptions,
  ObjectInfo,
  ObjectPage,
  ObjectStore,
  WhyAnother,
} from '../../ports/object-store.ts';

/** Errors of a store that does not answer, or not in time. */
const SILENT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'storage_unreachable',
  'outcome_unknown',
  'storage_throttled',
]);

/** The bucket, with a look at whether it answers. Uploads, which may rightly take long, count by their outcome only. */
export class WatchedObjects implements ObjectStore {
  readonly #objects: ObjectStore;
  readonly #clock: Clock;
  /** Monotonic starts of the small requests under way. */
  readonly #pending = new Set<{ readonly startMs: number }>();
  #silentSinceMs: number | null = null;

  constructor(objects: ObjectStore, clock: Clock) {
    this.#objects = objects;
    this.#clock = clock;
  }

  get place(): string {
    return this.#objects.place;
  }

  /** For how long requests have had no answer; 0 while the last one had. */
  get silentMs(): number {
    const now = this.#clock.monotonicMs();
    let since = this.#silentSinceMs ?? now;
    // No request waits for long: of a set the first is the oldest.
    for (const { startMs } of this.#pending) {
      since = Math.min(since, startMs);
      break;
    }
    return Math.max(0, now - since);
  }

  get(key: string, options?: GetOptions): Promise<Uint8Array | null> {
    return this.#small(() => this.#objects.get(key, options));
  }
  head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    return this.#small(() => this.#objects.head(key, signal));
  }
  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    return this.#small(() => this.#objects.put(key, bytes, signal));
  }
  create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'> {
    return this.#small(() => this.#objects.create(key, bytes, signal));
  }
  list(prefix: string, options?: ListOptions): Promise<ObjectPage> {
    return this.#small(() => this.#objects.list(prefix, options));
  }
  remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    return this.#small(() => this.#objects.remove(keys, signal));
  }
  upload(key: string, sizeBytes: number, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    return this.#judged(() => this.#objects.upload(key, sizeBytes, content, signal), this.#clock.monotonicMs());
  }
  async begin(): Promise<void> {
    await this.#objects.begin?.();
  }
  recognise(why: WhyAnother): () => void {
    return this.#objects.recognise?.(why) ?? (() => {});
  }
  close(): Promise<void> {
    return this.#objects.close();
  }

  async #small<T>(call: () => Promise<T>): Promise<T> {
    const pending = { startMs: this.#clock.monotonicMs() };
    this.#pending.add(pending);
    try {
      return await this.#judged(call, pending.startMs);
    } finally {
      this.#pending.delete(pending);
    }
  }

  async #judged<T>(call: () => Promise<T>, startMs: number): Promise<T> {
    try {
      const answer = await call();
      this.#silentSinceMs = null;
      return answer;
    } catch (error) {
      if (isSkuaError(error) && SILENT.has(error.code)) this.#silentSinceMs ??= startMs;
      else this.#silentSinceMs = null;
      throw error;
    }
  }
}
