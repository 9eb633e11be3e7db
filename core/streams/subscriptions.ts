import { SkuaError } from '../base/errors.ts';
import type { RedactionView, SubscribeStreamOptions, SubscriptionMessage, SubscriptionPage } from './api.ts';

/**
 * A reader that waits for a stream, or for the log. A wake-up that comes while the reader does not wait is kept for its
 * next wait.
 */
class Waiter {
  readonly stream: string | null;
  #isWoken = false;
  #resume: (() => void) | null = null;

  constructor(stream: string | null) {
    this.stream = stream;
  }

  /** Forgets earlier wake-ups. Call it before reading what they would announce. */
  arm(): void {
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    const resume = this.#resume;
    this.#resume = null;
    resume?.();
  }

  /** Resolves at the next wake-up since `arm`, or when the signal aborts. */
  async wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#isWoken || signal?.aborted === true) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resume = resolve;
    signal?.addEventListener('abort', resolve as () => void, { once: true });
    try {
      await promise;
    } finally {
      this.#resume = null;
      signal?.removeEventListener('abort', resolve as () => void);
    }
  }
}

/** All readers that wait. Only readers of streams that were written to are woken. */
export class Waiters {
  readonly #max: number;
  readonly #streams = new Map<string, Set<Waiter>>();
  readonly #log = new Set<Waiter>();
  #count = 0;
  isClosed = false;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#count;
  }

  /** A waiter for a stream, or for the log when `stream` is null. The caller removes it. */
  add(stream: string | null): Waiter {
    if (this.isClosed) throw closedError();
    if (this.#count >= this.#max) {
      throw new SkuaError(
        'too_busy',
        `There are already ${this.#max} subscriptions and waiting readers: end some, or use another node.`,
        { limit: this.#max },
      );
    }
    this.#count++;
    const waiter = new Waiter(stream);
    if (stream === null) this.#log.add(waiter);
    else {
      let set = this.#streams.get(stream);
      if (set === undefined) this.#streams.set(stream, (set = new Set()));
      set.add(waiter);
    }
    return waiter;
  }

  remove(waiter: Waiter): void {
    const set = waiter.stream === null ? this.#log : this.#streams.get(waiter.stream);
    if (set === undefined || !set.delete(waiter)) return;
    this.#count--;
    if (waiter.stream !== null && set.size === 0) this.#streams.delete(waiter.stream);
  }

  wakeStream(stream: string): void {
    if (this.#streams.size === 0) return;
    for (const waiter of this.#streams.get(stream) ?? []) waiter.wake();
  }

  wakeLog(): void {
    for (const waiter of this.#log) waiter.wake();
  }

  wakeAll(): void {
    this.wakeLog();
    for (const set of this.#streams.values()) for (const waiter of set) waiter.wake();
  }

  /** Wakes every reader for the last time. */
  close(): void {
    this.isClosed = true;
    this.wakeAll();
  }
}

export function closedError(): SkuaError {
  return new SkuaError('store_closed', 'The store has been closed: reopen it.');
}

/**
 * What is in the pages of a subscription, one after the other. The reader sets the pace: what was redacted meanwhile is
 * shown as it is then.
 */
export async function* messagesOf<Place>(
  pages: AsyncIterable<SubscriptionPage<Place>>,
  redactions: RedactionView,
  { signal, share }: Pick<SubscribeStreamOptions, 'signal' | 'share'>,
): AsyncGenerator<SubscriptionMessage<Place>, void, undefined> {
  for await (const { events, checkpoints, isCaughtUp, after } of pages) {
    let said = 0;
    for (let i = 0; i <= events.length; i++) {
      for (; said < checkpoints.length && checkpoints[said]!.behind <= i; said++) {
        yield { kind: 'checkpoint', after: checkpoints[said]!.after };
        if (signal?.aborted === true) return;
      }
      if (i === events.length) break;
      yield { kind: 'event', event: redactions.shown(events[i]!) };
      if (signal?.aborted === true) return;
    }
    if (!isCaughtUp) continue;
    // A subscription that has caught up mostly waits, and holds nothing meanwhile.
    events.length = 0;
    share?.release();
    yield { kind: 'caught-up', after };
  }
}
