import { isSkuaError } from '../../base/errors.ts';
import type { SharedLimit } from '../../base/shared-limit.ts';
import type { Clock } from '../../ports/clock.ts';
import { ANY } from '../../streams/api.ts';
import type { EventStore } from '../../streams/api.ts';
import type { Deduplication } from './deduplication.ts';
import { eventOf } from './delivery.ts';
import type { AuthorizeDelivery, Delivery } from './delivery.ts';
import { background } from '../../base/background.ts';

/**
 * From the acceptance of a call to its durable event, for one connector. Bounded in calls and bytes; what is beyond is
 * refused, never kept. Writes that fail for reasons that pass are tried again for a while.
 */

export interface PipelineLimits {
  /** Calls of one connector that are accepted and not yet written, and the bytes of their events. */
  readonly callsMax: number;
  readonly bytesMax: number;
  /** How long a connector that stops may take to write what it had accepted. */
  readonly drainMs: number;
}

export const PIPELINE_LIMITS: PipelineLimits = { callsMax: 4_096, bytesMax: 33_554_432, drainMs: 10_000 };

/** What became of an accepted call. `isPassing`: the same call may well succeed later. */
export type WriteOutcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'failed'; readonly isPassing: boolean; readonly reason: string; readonly code: string }
  /** The connector stopped first; whether the event will yet be written is not known. */
  | { readonly kind: 'stopped' };

interface PipelineParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly authorize: AuthorizeDelivery;
  /** Null: every call is written. */
  readonly deduplication: Deduplication | null;
  readonly limits: PipelineLimits;
  /** Bytes that all connectors may hold together. */
  readonly budget: SharedLimit;
}

interface Entry {
  readonly delivery: Delivery;
  readonly bytes: number;
  readonly settle: (outcome: WriteOutcome) => void;
}

/**
 * Deliveries whose notes and events are written in one commit, and what they count together, in bytes, where there is
 * more than one.
 */
const CALLS_A_COMMIT = 256;
const BYTES_A_COMMIT = 4_194_304;
const WRITTEN: WriteOutcome = { kind: 'written' };
const STOPPED: WriteOutcome = { kind: 'stopped' };
/** Failures that pass, and waits between the attempts. */
const PASSING: ReadonlySet<string> = new Set([
  'too_busy',
  'disk_full',
  'io_error',
  'commit_contended',
  'storage_throttled',
  'storage_unreachable',
]);
const RETRY_MS: readonly number[] = [20, 100, 500, 2_000];
/** What a call counts besides its event. */
const CALL_BYTES = 4_096;

export class Pipeline {
  readonly #parts: PipelineParts;
  readonly #pending = new Set<Entry>();
  /** Deliveries that are told apart, until they are written. */
  readonly #waiting: Entry[] = [];
  readonly #giveUp = new AbortController();
  #bytes = 0;
  #isWriting = false;
  #isStopping = false;
  #onIdle: (() => void) | null = null;
  #draining: Promise<void> | null = null;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Takes a delivery in; the outcome comes later and never as a rejection. Null: full, or stopping. */
  accept(delivery: Delivery): Promise<WriteOutcome> | null {
    const { limits, budget, deduplication } = this.#parts;
    const bytes = CALL_BYTES + delivery.data.length + delivery.metadata.length;
    if (
      this.#isStopping ||
      this.#pending.size >= limits.callsMax ||
      this.#bytes + bytes > limits.bytesMax ||
      !budget.tryTake(null, bytes)
    )
      return null;
    this.#bytes += bytes;
    return new Promise((settle) => {
      const entry: Entry = { delivery, bytes, settle };
      this.#pending.add(entry);
      if (deduplication === null || delivery.deliveryId === null) background(this.#write([entry]));
      else {
        this.#waiting.push(entry);
        if (!this.#isWriting) background(this.#writeWaiting());
      }
    });
  }

  /** One list after the other, each with all that came while the one before it was written. */
  async #writeWaiting(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      let count = 0;
      for (
        let bytes = 0;
        count < Math.min(this.#waiting.length, CALLS_A_COMMIT) && (count === 0 || bytes <= BYTES_A_COMMIT);
        count++
      )
        bytes += this.#waiting[count]!.bytes;
      await this.#write(this.#waiting.splice(0, count));
    }
    this.#isWriting = false;
  }

  /** In one commit; where one of several is refused, the others without it. */
  async #write(list: readonly Entry[]): Promise<void> {
    // What was given up is not begun.
    const entries = list.filter((entry) => this.#pending.has(entry));
    if (entries.length === 0) return;
    let outcome: WriteOutcome = WRITTEN;
    try {
      await this.#persistently(() => this.#append(entries));
    } catch (error) {
      outcome = failure(error);
      if (entries.length > 1 && isOfOne(error)) {
        for (const part of apart(entries, error)) await this.#write(part);
        return;
      }
    }
    for (const entry of entries) this.#end(entry, outcome);
  }

  async #append(entries: readonly Entry[]): Promise<unknown> {
    const { store, deduplication, authorize } = this.#parts;
    const { delivery } = entries[0]!;
    if (deduplication !== null && delivery.deliveryId !== null)
      return deduplication.write(
        entries.map((entry) => entry.delivery),
        authorize,
      );
    return store.append(delivery.stream, ANY, [eventOf(delivery)], (await authorize(delivery)) ?? undefined);
  }

  async #persistently(write: () => Promise<unknown>): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await write();
        return;
      } catch (error) {
        const waitMs = RETRY_MS[attempt];
        if (waitMs === undefined || !isPassing(error) || this.#giveUp.signal.aborted) throw error;
        await this.#parts.clock.sleep(waitMs, this.#giveUp.signal);
      }
    }
  }

  #end(entry: Entry, outcome: WriteOutcome): void {
    // A drain that ended earlier has answered the caller already.
    if (!this.#pending.delete(entry)) return;
    this.#bytes -= entry.bytes;
    this.#parts.budget.giveBack(null, entry.bytes);
    entry.settle(outcome);
    if (this.#pending.size === 0) this.#onIdle?.();
  }

  /** Takes nothing more, and writes what it has within the limit; the rest ends as `stopped`. */
  drain(): Promise<void> {
    this.#draining ??= this.#drain();
    return this.#draining;
  }

  async #drain(): Promise<void> {
    this.#isStopping = true;
    if (this.#pending.size > 0) {
      const inTime = new AbortController();
      const idle = new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
      await Promise.race([idle, this.#parts.clock.sleep(this.#parts.limits.drainMs, inTime.signal)]);
      inTime.abort();
    }
    this.#giveUp.abort();
    for (const entry of this.#pending) this.#end(entry, STOPPED);
  }
}

/**
 * The same call may succeed when an operator has looked after the node, or when it is known what became of the first
 * one.
 */
const PASSING_LATER: ReadonlySet<string> = new Set([
  'writer_stopped',
  'sync_failed',
  'store_closed',
  'not_ready',
  'not_leader',
  'write_expired',
  'commit_outcome_unknown',
]);

function isPassing(error: unknown): boolean {
  return isSkuaError(error) && PASSING.has(error.code);
}

/**
 * Where several were to be written it may be that one of them alone is refused: for good, or because the member that
 * took it led no more, where it does again.
 */
function isOfOne(error: unknown): boolean {
  return (
    !isSkuaError(error) || error.code === 'not_leader' || !(PASSING.has(error.code) || PASSING_LATER.has(error.code))
  );
}

/** The entries whose stream the refusal names, and the others; two halves where the name separates nothing. */
function apart(entries: readonly Entry[], error: unknown): readonly (readonly Entry[])[] {
  const refused = isSkuaError(error) ? error.data['stream'] : null;
  const named = entries.filter(({ delivery }) => delivery.stream === refused);
  if (named.length > 0 && named.length < entries.length)
    return [named, entries.filter(({ delivery }) => delivery.stream !== refused)];
  const half = entries.length >> 1;
  return [entries.slice(0, half), entries.slice(half)];
}

function failure(error: unknown): WriteOutcome {
  const code = isSkuaError(error) ? error.code : 'unexpected';
  return {
    kind: 'failed',
    code,
    isPassing: isPassing(error) || PASSING_LATER.has(code),
    reason: `The event could not be written: ${code}. ${isSkuaError(error) ? error.message : String(error)}`,
  };
}
