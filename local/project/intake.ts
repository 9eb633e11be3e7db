import type { Position, RecordedEvent } from '../event-store/api.ts';
import type { BatchLimits, EventSource } from './api.ts';
import type { World } from './world.ts';

/** Events in order, with what follows from them for where the projection is. */
export interface Taken<Event> {
  readonly events: readonly Event[];
  /** Behind them, up to here nothing was left out; null where that is not known. */
  readonly passed: Position | null;
}

type Subscription<Event extends RecordedEvent> = Parameters<EventSource<Event>['subscribe']>[0];

/** Reads a subscription ahead, up to one batch, while the batch before is handled. */
export class Intake<Event extends RecordedEvent> {
  /** All that there was has been read; what has not been taken lies here. */
  hasCaughtUp = false;
  readonly #limits: BatchLimits;
  readonly #world: World;
  readonly #ending = new AbortController();
  readonly #pumping: Promise<void>;
  #events: Event[] = [];
  #sizes: number[] = [];
  #bytes = 0;
  #passed: Position | null = null;
  #ended: { readonly error: unknown } | null = null;
  #wake: () => void = () => {};
  #makeRoom: () => void = () => {};

  constructor(source: EventSource<Event>, options: Subscription<Event>, limits: BatchLimits, world: World) {
    this.#limits = limits;
    this.#world = world;
    this.#pumping = this.#pump(source, options);
  }

  get isEmpty(): boolean {
    return this.#events.length === 0 && this.#passed === null;
  }

  async #pump(source: EventSource<Event>, options: Subscription<Event>): Promise<void> {
    const { signal } = this.#ending;
    let error: unknown = null;
    try {
      const events = source.subscribe({
        ...options,
        signal,
        onCaughtUp: () => {
          this.hasCaughtUp = true;
          this.#wake();
        },
        ...(options?.stream === undefined && {
          onCheckpoint: (position: Position) => {
            this.#passed = position;
            this.#wake();
          },
        }),
      });
      for await (const event of events) {
        const size = sizeOf(event);
        this.#passed = null;
        this.#events.push(event);
        this.#sizes.push(size);
        this.#bytes += size;
        this.#wake();
        if (this.#isFull() && !signal.aborted)
          await new Promise<void>((resolve) => {
            this.#makeRoom = resolve;
          });
        if (signal.aborted) break;
      }
    } catch (thrown) {
      error = thrown ?? new Error('The subscription has ended.');
    }
    this.#ended = { error };
    this.#wake();
  }

  #isFull(): boolean {
    return this.#events.length >= this.#limits.events || this.#bytes >= this.#limits.bytes;
  }

  /**
   * What has come, up to a batch, as soon as there is something to take, or to say: nothing at all where all was read,
   * or the time is over. Throws what the subscription has ended with, behind its last event.
   */
  async take(waitMs: number, signal: AbortSignal | undefined): Promise<Taken<Event>> {
    const caughtUpBefore = this.hasCaughtUp;
    if (this.isEmpty && this.#ended === null) {
      const waiting = new AbortController();
      const stop = () => waiting.abort();
      signal?.addEventListener('abort', stop);
      await Promise.race([
        this.#world.wait(waitMs, waiting.signal),
        new Promise<void>((resolve) => {
          this.#wake = () => {
            if (!this.isEmpty || this.#ended !== null || this.hasCaughtUp !== caughtUpBefore) resolve();
          };
          // It may have come between look and wait.
          this.#wake();
        }),
      ]);
      this.#wake = () => {};
      signal?.removeEventListener('abort', stop);
      waiting.abort();
    }
    // Events come one by one: what is at hand belongs to this batch.
    if (!this.isEmpty && !this.#isFull() && this.#ended === null) await this.#world.turn();
    if (this.isEmpty && this.#ended !== null && signal?.aborted !== true)
      throw this.#ended.error ?? new Error('The subscription has ended, and gave no reason.');
    return this.#takeNow();
  }

  #takeNow(): Taken<Event> {
    let count = 0;
    let bytes = 0;
    while (count < this.#events.length && count < this.#limits.events && (count === 0 || bytes < this.#limits.bytes))
      bytes += this.#sizes[count++]!;
    const events = this.#events.splice(0, count);
    this.#sizes.splice(0, count);
    this.#bytes -= bytes;
    const passed = this.#events.length === 0 ? this.#passed : null;
    if (passed !== null) this.#passed = null;
    if (!this.#isFull()) this.#makeRoom();
    return { events, passed };
  }

  /** Puts back what was taken and was not handled. */
  putBack(events: readonly Event[]): void {
    const sizes = events.map(sizeOf);
    this.#events.unshift(...events);
    this.#sizes.unshift(...sizes);
    for (const size of sizes) this.#bytes += size;
  }

  /** Resolves when the subscription has ended. */
  async close(): Promise<void> {
    this.#ending.abort();
    this.#makeRoom();
    await this.#pumping;
  }
}

/** Bytes of the data and metadata of an event, as JSON has them, roughly. */
function sizeOf({ data, metadata }: RecordedEvent): number {
  return lengthOf(data) + lengthOf(metadata);
}

function lengthOf(value: unknown): number {
  if (value === undefined) return 0;
  return value instanceof Uint8Array ? value.length : (JSON.stringify(value)?.length ?? 0);
}
