import { effect, signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { send } from './page-client.ts';
import { connection, returns } from './connection-state.ts';
import { ApiError, errorOf } from './problem-text.ts';

/**
 * What the node answers at a path, asked for again and again. All views of the same path share one poller. The poller
 * stops while the tab is hidden or the node is away, waits longer after errors, and goes on at once when either has
 * passed. An answer that has not changed (304, or the same text) changes no signal, so that nothing is drawn anew.
 */
export interface Polled<T> {
  /** Null until the first answer; the last one stays while later requests fail. */
  readonly data: ReadonlySignal<T | null>;
  /** Of the last request; null when it succeeded. */
  readonly error: ReadonlySignal<ApiError | null>;
  /** When the last answer came. */
  readonly atMs: ReadonlySignal<number | null>;
  /** Asks at once. */
  refresh(): Promise<void>;
}

export interface PollOptions<T> {
  /** Makes of the text what `data` is to be; without it the text is JSON. */
  readonly parse?: (text: string) => T;
  readonly accept?: string;
  /** What a 404 says, where it is no error that there is nothing just now: work that is not under way. */
  readonly missing?: T;
}

const BACK_OFF_MS_MAX = 60_000;

class Poller<T> implements Polled<T> {
  readonly data = signal<T | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly atMs = signal<number | null>(null);
  readonly #path: string;
  readonly #options: PollOptions<T>;
  /** The intervals at which the views want an answer. */
  readonly #wanted: number[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #etag: string | null = null;
  #text: string | null = null;
  #running: Promise<void> | null = null;
  #ending = new AbortController();
  #stopWatching: (() => void) | null = null;

  constructor(path: string, options: PollOptions<T>) {
    this.#path = path;
    this.#options = options;
  }

  get isUsed(): boolean {
    return this.#wanted.length > 0;
  }

  use(everyMs: number): () => void {
    this.#wanted.push(everyMs);
    if (this.#wanted.length === 1) this.#begin();
    else this.#plan();
    return () => {
      this.#wanted.splice(this.#wanted.indexOf(everyMs), 1);
      if (!this.isUsed) this.#end();
    };
  }

  refresh(): Promise<void> {
    // What is under way may have been answered before what the caller has just changed.
    return this.#running === null ? this.#ask() : this.#running.then(() => this.#ask());
  }

  #begin(): void {
    this.#ending = new AbortController();
    const seen = () => {
      if (document.hidden) clearTimeout(this.#timer);
      else this.#askSoon();
    };
    document.addEventListener('visibilitychange', seen);
    let last = returns.peek();
    const stop = effect(() => {
      if (returns.value === last) return;
      last = returns.value;
      this.#failures = 0;
      this.#askSoon();
    });
    this.#stopWatching = () => {
      document.removeEventListener('visibilitychange', seen);
      stop();
    };
    this.#askSoon();
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#ending.abort();
    this.#stopWatching?.();
  }

  #askSoon(): void {
    void this.#ask();
  }

  #ask(): Promise<void> {
    clearTimeout(this.#timer);
    this.#running ??= this.#once().finally(() => {
      this.#running = null;
      if (this.isUsed) this.#plan();
    });
    return this.#running;
  }

  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#running !== null || document.hidden || connection.peek() !== 'ok') return;
    const every = Math.min(...this.#wanted);
    const wait = Math.max(every * 2 ** Math.min(this.#failures, 6), this.error.peek()?.retryAfterMs ?? 0);
    this.#timer = setTimeout(
      () => this.#askSoon(),
      this.#failures === 0 ? every : Math.min(wait, Math.max(BACK_OFF_MS_MAX, every)),
    );
  }

  async #once(): Promise<void> {
    const { signal: ending } = this.#ending;
    const { accept = 'application/json', parse = JSON.parse as (text: string) => T } = this.#options;
    try {
      const response = await send('GET', this.#path, undefined, {
        signal: ending,
        headers: { accept, ...(this.#etag !== null && { 'if-none-match': this.#etag }) },
      });
      if (response.status !== 304) {
        const text = await response.text();
        this.#etag = response.headers.get('etag');
        if (text !== this.#text) this.data.value = parse(text);
        this.#text = text;
      }
      this.error.value = null;
      this.atMs.value = Date.now();
      this.#failures = 0;
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 404 && 'missing' in this.#options) {
        this.#etag = this.#text = null;
        this.data.value = this.#options.missing!;
        this.error.value = null;
        this.atMs.value = Date.now();
        this.#failures = 0;
        return;
      }
      const error =
        thrown instanceof SyntaxError
          ? new ApiError('unreadable', "The answer of the node can't be parsed. Is there a proxy in between?")
          : errorOf(thrown);
      if (error.code === 'aborted') return;
      this.error.value = error;
      this.#failures++;
    }
  }
}

const pollers = new Map<string, Poller<unknown>>();

/** A poller that runs as long as one holds it by `use`, for what lives outside of components. */
export function poller<T>(
  path: string,
  options: PollOptions<T> = {},
): Polled<T> & { use(everyMs: number): () => void } {
  const found = pollers.get(path);
  if (found !== undefined) return found as Poller<T>;
  // A path that no view looks at any more is forgotten when a new one is looked at.
  for (const [name, other] of pollers) if (!other.isUsed) pollers.delete(name);
  const made = new Poller<T>(path, options);
  pollers.set(path, made as Poller<unknown>);
  return made;
}

const NOTHING: Polled<never> = { data: signal(null), error: signal(null), atMs: signal(null), refresh: async () => {} };

/** What the path says, every `everyMs`, as long as the component is shown. A path of null asks for nothing. */
export function usePolled<T>(path: string | null, everyMs: number, options: PollOptions<T> = {}): Polled<T> {
  // The options of a path never change.
  const polled = useMemo(() => (path === null ? null : poller<T>(path, options)), [path]);
  useEffect(() => polled?.use(everyMs), [polled, everyMs]);
  return polled ?? NOTHING;
}
