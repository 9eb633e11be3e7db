import { isSkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Meter } from '../../ports/meter.ts';
import type { HashChain } from '../chain/chain.ts';
import type { Anchor } from '../format/chain-layout.ts';
import { afterDelay } from '../../base/background.ts';

/** Where anchors go: out of reach for an intruder that reaches the node's disk. */
export interface AnchorLocation {
  /** As it is shown, without credentials. */
  readonly name: string;
  /** Resolves when the anchor is there for good; a repeat does no harm. */
  put(anchor: Anchor, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

interface AnchoringParts {
  /** Null while there is none. */
  readonly hashChain: () => Pick<HashChain, 'anchor' | 'figures' | 'damage'> | null;
  /** A scavenge is under way, whose receipts go on growing. */
  readonly isScavenging: () => boolean;
  readonly place: AnchorLocation;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/** How often is looked whether an anchor is due. */
const LOOK_EVERY_MS = 5_000;
/** Tries for one anchor, and the pause behind the first, which doubles. */
const TRIES_MAX = 5;
const FIRST_PAUSE_MS = 2_000;
/** Time that the last anchor may take when the node stops. */
const LAST_MS_MAX = 5_000;
/** Time that one try may take. */
const TRY_MS_MAX = 60_000;

/** What is known of anchors, for metrics. */
export interface AnchoringFigures {
  /** Of the newest anchor that reached its place since the start; null for none. */
  readonly position: number | null;
  readonly ageMs: number | null;
}

/** Makes anchors and brings them to their place: at the start, every so often, behind a scavenge, and at the stop. */
export class Anchoring {
  readonly #parts: AnchoringParts;
  #placed: Anchor | null = null;
  #placedMs = 0;
  /** Monotonic time of the last try. */
  #triedMs = -Infinity;

  constructor(parts: AnchoringParts) {
    this.#parts = parts;
  }

  figures(): AnchoringFigures {
    const { clock } = this.#parts;
    return {
      position: this.#placed?.position ?? null,
      ageMs: this.#placed === null ? null : clock.monotonicMs() - this.#placedMs,
    };
  }

  /** Until the signal. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(LOOK_EVERY_MS, signal);
      if (!signal.aborted && this.#isDue()) await this.#place(TRIES_MAX, signal);
    }
  }

  /** One more anchor, when nothing is appended any more and `run` has ended. Never rejects. */
  async close(): Promise<void> {
    const { clock, place } = this.#parts;
    const last = new AbortController();
    const end = new AbortController();
    afterDelay(clock, LAST_MS_MAX, end.signal, () => last.abort());
    await this.#place(1, last.signal);
    end.abort();
    await place.close().catch(() => {});
  }

  #isDue(): boolean {
    const { hashChain, everyMs, clock, isScavenging } = this.#parts;
    const proofs = hashChain();
    if (proofs === null || proofs.damage !== null) return false;
    const hasNewReceipts =
      this.#placed !== null && proofs.figures.receipts !== this.#placed.receipts && !isScavenging();
    return hasNewReceipts || clock.monotonicMs() - this.#triedMs >= everyMs;
  }

  async #place(tries: number, signal: AbortSignal): Promise<void> {
    const { hashChain, clock, log, meter, place } = this.#parts;
    this.#triedMs = clock.monotonicMs();
    const proofs = hashChain();
    if (proofs === null || proofs.damage !== null || signal.aborted) return;
    for (let attempt = 1, pauseMs = FIRST_PAUSE_MS; ; attempt++, pauseMs *= 2) {
      try {
        const anchor = await proofs.anchor();
        if (
          this.#placed !== null &&
          anchor.link === this.#placed.link &&
          anchor.receiptsHead === this.#placed.receiptsHead
        )
          return;
        await this.#put(anchor, signal);
        this.#placed = anchor;
        this.#placedMs = clock.monotonicMs();
        meter.count('eventstore_proof_anchors_total');
        log.debug('anchor placed', { place: place.name, position: anchor.position, receipts: anchor.receipts });
        return;
      } catch (error) {
        if (isSkuaError(error, 'store_closed')) return;
        meter.count('eventstore_proof_anchor_failures_total');
        log.warn('an anchor could not be delivered', {
          place: place.name,
          attempt,
          error: error instanceof Error ? error.message : String(error),
        });
        if (attempt >= tries || signal.aborted) return;
        await clock.sleep(pauseMs, signal);
        if (signal.aborted) return;
      }
    }
  }

  async #put(anchor: Anchor, signal: AbortSignal): Promise<void> {
    const { place, clock } = this.#parts;
    const trying = new AbortController();
    const over = new AbortController();
    const onAbort = () => trying.abort();
    signal.addEventListener('abort', onAbort);
    afterDelay(clock, TRY_MS_MAX, over.signal, onAbort);
    try {
      await place.put(anchor, trying.signal);
    } finally {
      over.abort();
      signal.removeEventListener('abort', onAbort);
    }
  }
}
