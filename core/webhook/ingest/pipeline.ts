import { isSkuaError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import { ANY } from '../../streams/api.ts';
import type { Authorize, EventStore } from '../../streams/api.ts';
import type { Deduplication } from './deduplication.ts';
import type { Delivery } from './delivery.ts';
import { background } from '../../background.ts';

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

/** Bytes that all connectors may hold together. */
export class ByteBudget {
  readonly #max: number;
  used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  take(bytes: number): boolean {
    if (this.used + bytes > this.#max) return false;
    this.used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.used -= bytes;
  }
}

interface PipelineParts {
  readonly store: EventStore;
  readonly clock: Clock;
  /** What decides in its turn whether the event may be written; asked for before each attempt, since lists may have changed. */
  readonly authorize: (delivery: Delivery) => Authorize | null | Promise<Authorize | null>;
  /** Null: every call is written. */
  readonly deduplication: Deduplication | null;
  readonly limits: PipelineLimits;
  readonly budget: ByteBudget;
  /** A withdrawal of a note failed, which costs later deliveries of that id a look at their stream. */
  readonly onWithdrawalFailed: (error: unknown) => void;
}

interface Entry {
  readonly delivery: Delivery;
  readonly bytes: number;
  readonly settle: (outcome: WriteOutcome) => void;
}

const NOTES_A_WRITE = 256;
const WRITTEN: WriteOutcome = { kind: 'written' };
const STOPPED: WriteOutcome = { kind: 'stopped' };
/** Failures of which it is sure that nothing was written, and which pass. */
const UNWRITTEN: readonly string[] = ['too_busy', 'disk_full', 'io_error', 'commit_contended'];
/** Failures that pass, and waits between the attempts. */
const PASSING: ReadonlySet<string> = new Set([...UNWRITTEN, 'storage_throttled', 'storage_unreachable']);
const RETRY_MS: readonly number[] = [20, 100, 500, 2_000];
/** Nothing was written, nor will be. After any other error the log may hold the event all the same. */
const DEFINITE: ReadonlySet<string> = new Set([...UNWRITTEN, 'stream_deleted', 'invalid_stream_name', 'invalid_event', 'invalid_metadata', 'event_too_large', 'batch_too_large', 'access_denied', 'not_leader', 'write_expired']);
/** What a call counts besides its event. */
const CALL_BYTES = 4_096;

export class Pipeline {
  readonly #parts: PipelineParts;
  readonly #pending = new Set<Entry>();
  readonly #toNote: Entry[] = [];
  readonly #giveUp = new AbortController();
  #bytes = 0;
  #isNoting = false;
  #isStopping = false;
  #onIdle: (() => void) | null = null;
  #draining: Promise<void> | null = null;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  get calls(): number { return this.#pending.size; }
  get isStopping(): boolean { return this.#isStopping; }

  /** Takes a delivery in; the outcome comes later and never as a rejection. Null: full, or stopping. */
  accept(delivery: Delivery): Promise<WriteOutcome> | null {
    const { limits, budget, deduplication } = this.#parts;
    const bytes = CALL_BYTES + delivery.data.length + delivery.metadata.length;
    if (this.#isStopping || this.#pending.size >= limits.callsMax || this.#bytes + bytes > limits.bytesMax || !budget.take(bytes)) return null;
    this.#bytes += bytes;
    return new Promise((settle) => {
      const entry: Entry = { delivery, bytes, settle };
      this.#pending.add(entry);
      if (deduplication === null || delivery.deliveryId === null) background(this.#write(entry));
      else {
        this.#toNote.push(entry);
        if (!this.#isNoting) background(this.#noteAll(deduplication));
      }
    });
  }

  /** One list of notes after the other, each with all that came while the one before it was written. */
  async #noteAll(deduplication: Deduplication): Promise<void> {
    this.#isNoting = true;
    while (this.#toNote.length > 0) {
      // What was given up is not begun.
      const entries = this.#toNote.splice(0, NOTES_A_WRITE).filter((entry) => this.#pending.has(entry));
      if (entries.length === 0) continue;
      try {
        await this.#noteEnds(entries);
        await this.#persistently(() => deduplication.note(entries.map(({ delivery }) => delivery)));
      } catch (error) {
        for (const entry of entries) this.#end(entry, failure(error));
        continue;
      }
      for (const entry of entries) {
        if (entry.delivery.isWritten) this.#end(entry, WRITTEN);
        else if (this.#pending.has(entry)) background(this.#write(entry));
      }
    }
    this.#isNoting = false;
  }

  /** The last event numbers of the streams that the deliveries go to, as far as no earlier note tells them. */
  async #noteEnds(entries: readonly Entry[]): Promise<void> {
    const { store } = this.#parts;
    for (const { delivery } of entries) {
      if (delivery.after !== null) continue;
      const info = store.streamInfoNow?.(delivery.stream) ?? await store.streamInfo(delivery.stream);
      delivery.after = info.lastEventNumber;
    }
  }

  async #write(entry: Entry): Promise<void> {
    const { store, deduplication, authorize } = this.#parts;
    const { delivery } = entry;
    const { eventId, stream, type, data, metadata } = delivery;
    try {
      const append = (decides: Authorize | null) => store.append(stream, ANY, [{ id: eventId, type, isJson: true, data, metadata }], decides ?? undefined);
      await this.#persistently(() => {
        const asked = authorize(delivery);
        return asked instanceof Promise ? asked.then(append) : append(asked);
      });
    } catch (error) {
      if (delivery.note >= 0 && isSkuaError(error) && DEFINITE.has(error.code)) await deduplication!.withdraw(delivery).catch(this.#parts.onWithdrawalFailed);
      return this.#end(entry, failure(error));
    }
    if (delivery.note >= 0) deduplication!.settle(delivery);
    this.#end(entry, WRITTEN);
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
    // A drain that ended earlier has told the caller already.
    if (!this.#pending.delete(entry)) return;
    this.#bytes -= entry.bytes;
    this.#parts.budget.give(entry.bytes);
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
      const idle = new Promise<void>((resolve) => { this.#onIdle = resolve; });
      await Promise.race([idle, this.#parts.clock.sleep(this.#parts.limits.drainMs, inTime.signal)]);
      inTime.abort();
    }
    this.#giveUp.abort();
    for (const entry of this.#pending) this.#end(entry, STOPPED);
  }
}

/** The same call may succeed when somebody has looked after the node, or when it is known what became of the first one. */
const PASSING_LATER: ReadonlySet<string> = new Set(['writer_stopped', 'sync_failed', 'store_closed', 'not_ready', 'not_leader', 'write_expired', 'commit_outcome_unknown']);

function isPassing(error: unknown): boolean {
  return isSkuaError(error) && PASSING.has(error.code);
}

function failure(error: unknown): WriteOutcome {
  const code = isSkuaError(error) ? error.code : 'unexpected';
  return { kind: 'failed', code, isPassing: isPassing(error) || PASSING_LATER.has(code), reason: `The event could not be written: ${code}. ${isSkuaError(error) ? error.message : String(error)}` };
}
