import { SkuaError } from '../../base/errors.ts';
import { type Stamp, sinceMs, stampOf } from '../../ports/stamp.ts';
import type { Clock } from '../../ports/clock.ts';

/** How often a member looks at its clocks, to know afterwards for how long it stood still. */
const LOOK_MS = 1_000;
/** A process that has looked so long ago stood still: what it reads now may have lain in its sockets all the while. */
const STILL_MS = 3_000;

/**
 * For how long clients' writes may be on their way through the members before they take their place in the log: whoever
 * asked has gone elsewhere by then, and where more was written meanwhile than event ids are remembered nobody would
 * know it again. All ages are by the clock that says more, and all that is not known counts as waited.
 */
export class Patience {
  readonly clock: Clock;
  readonly limitMs: number;
  /** The look before the last one; null where it is not looked. */
  #before: Stamp | null = null;
  #last: Stamp | null = null;

  constructor(clock: Clock, limitMs: number) {
    this.clock = clock;
    this.limitMs = limitMs;
  }

  /** Looks at the clocks until aborted. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const now = stampOf(this.clock);
      this.#before = this.#last ?? now;
      this.#last = now;
      await this.clock.sleep(LOOK_MS, signal);
    }
  }

  /** A client's write that has arrived as a whole. `isGone`: no caller waits for its answer any more. */
  begin(isGone: () => boolean): HeldWrite {
    return new HeldWrite(this, this.#unseenMs(), isGone);
  }

  /**
   * One that another member has passed on: it came there at `atMs` by the wall clock here, as far as that member knew
   * it, or null.
   */
  beginPassedOn(atMs: number | null, isGone: () => boolean): HeldWrite {
    return new HeldWrite(this, Math.max(this.#unseenMs(), atMs === null ? 0 : this.clock.nowMs() - atMs), isGone);
  }

  /**
   * For how long something that is read now may have been here: behind a standstill until the second look, when the
   * sockets have been read.
   */
  #unseenMs(): number {
    if (this.#before === null) return 0;
    const ms = sinceMs(this.#before, this.clock);
    return ms > STILL_MS ? ms : 0;
  }
}

/** A client's write while it has not taken its place in the log. */
export class HeldWrite {
  readonly #patience: Patience;
  readonly #wallMs: number;
  readonly #monotonicMs: number;
  readonly #isGone: () => boolean;

  constructor(patience: Patience, ageMs: number, isGone: () => boolean) {
    const { clock } = patience;
    this.#patience = patience;
    this.#wallMs = clock.nowMs() - ageMs;
    this.#monotonicMs = clock.monotonicMs() - ageMs;
    this.#isGone = isGone;
  }

  get ageMs(): number {
    const { clock } = this.#patience;
    return Math.max(clock.nowMs() - this.#wallMs, clock.monotonicMs() - this.#monotonicMs);
  }

  /** Why it may not be sent on, and not take its place in the log, any more; null while it may. */
  refusal(): SkuaError | null {
    const { ageMs } = this;
    const { limitMs } = this.#patience;
    if (ageMs > limitMs)
      return new SkuaError(
        'write_expired',
        `The write had waited for ${Math.round(ageMs)} ms and was dropped: by now its client may have sent it elsewhere (ForwardPatienceMs is ${limitMs}). Send it again.`,
        { ageMs: Math.round(ageMs), limitMs },
      );
    return this.#isGone()
      ? new SkuaError('write_expired', 'The client no longer waits for the answer, so the write was dropped.', {})
      : null;
  }
}
