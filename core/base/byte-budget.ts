import { SkuaError } from './errors.ts';
import { SharedLimit } from './shared-limit.ts';
import { afterDelay } from './background.ts';
import { lagMs, SLOW_MS } from './pace.ts';

export interface ByteBudgetOptions {
  /** What the bytes are of, for the text of a refusal, such as `replies`. */
  readonly of: string;
  /** All shares together, in bytes. */
  readonly totalBytes: number;
  /** The part of the total that only small shares, and callers that hold little, may take. */
  readonly reserveBytes: number;
  /** A share of at most this many bytes is small. */
  readonly smallBytes: number;
  /**
   * One largest request, in bytes: a caller that holds no more holds little (core/base/shared-limit.ts). Left out, a
   * sixteenth of the total is little.
   */
  readonly largestBytes?: number;
  /** Shares that may wait; the next one is refused at once. */
  readonly waitersMax: number;
  /** Longest wait in milliseconds. */
  readonly waitMs: number;
}

/** Of the clock that measures waits (core/ports/clock.ts). */
interface Timer {
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  monotonicMs(): number;
}

/**
 * Less of a body is not asked how fast it comes: all calls and connections that there may be hold little of the usual
 * totals with so few bytes each.
 */
const PACED_BYTES = 8_192;

/**
 * A sender that lags so far is slow even if this process stood still meanwhile and has not yet read what has come.
 * Milliseconds.
 */
const SURELY_SLOW_MS = 5_000;

interface Waiter {
  readonly share: ByteShare;
  /** Bytes that are asked for; 0 where they have been counted already and only the way on is waited for. */
  readonly bytes: number;
  readonly timer: AbortController;
  resolve(): void;
  reject(error: SkuaError): void;
}

/** Small and other shares wait apart from one another. */
interface Lane {
  /** In the order of their coming; those first whose callers hold little. */
  readonly first: Set<Waiter>;
  readonly waiters: Set<Waiter>;
  /** The one share that may go beyond the limit, so that not all of them stand half-way. */
  beyond: ByteShare | null;
}

/**
 * A total of bytes in memory that many share: replies under way, bodies that arrive, calls that are worked on. A share
 * that finds room takes it with a few additions and without a promise; one that finds none waits its turn, first come
 * first served, and is refused with `too_busy` when the queue is full or the wait too long. Small shares have a reserve
 * that others can't take, and a caller that holds little has its part whatever others hold: the bytes, and the places
 * in the queue, are a `SharedLimit` of the callers whose shares they are.
 *
 * There are two ways to use a share:
 * - Bytes that are going to be made or read: `tryGrow`, and where that is false give back what is held (`release`),
 *   wait with `grow`, and begin anew. A share that waits for bytes must hold none, or all might wait for one another.
 * - Bytes that have arrived and are in memory whatever the budget says: `add`, and where that is false take no more
 *   from the sender until `room` resolves. The first share that waits may go beyond the total, one at a time, so that
 *   one always finishes. What lies beyond the total is therefore bounded by the largest body and one read of a socket
 *   for each share that waits.
 *
 * While a share waits, the sender that lags most behind the pace of `pace.ts` goes first, if it is slow: what stands
 * half-way keeps no room from others. Time in which the sender's bytes are not read does not count.
 *
 * The code that made a share must `close` it when what the share stands for has ended, in whatever way.
 */
export class ByteBudget {
  readonly options: ByteBudgetOptions;
  readonly #clock: Timer;
  readonly #small: Lane = { first: new Set(), waiters: new Set(), beyond: null };
  readonly #long: Lane = { first: new Set(), waiters: new Set(), beyond: null };
  readonly #bytes: SharedLimit;
  readonly #places: SharedLimit;
  /** Bytes of the shares that are not small. */
  #heldLong = 0;
  /** Of whose senders more is read. */
  readonly #arriving = new Set<ByteShare>();
  #isLooking = false;

  constructor(options: ByteBudgetOptions, clock: Timer) {
    this.options = options;
    this.#clock = clock;
    this.#bytes = new SharedLimit(options.totalBytes, {
      reserve: options.reserveBytes,
      little: options.largestBytes ?? 0,
    });
    this.#places = new SharedLimit(options.waitersMax);
  }

  /** Bytes that all shares hold now. */
  get heldBytes(): number {
    return this.#bytes.held;
  }
  /** Shares that wait. */
  get waiting(): number {
    return this.#places.held;
  }

  /**
   * A share that holds nothing yet. `caller`: the one whose bytes these are; null for none. `sender`: may be asked to
   * make way while more is expected of it.
   */
  share(owner: ShareOwner | null = null, caller: string | null = null, sender: Sender | null = null): ByteShare {
    return new ByteShare(this, owner, caller, sender);
  }

  /** @internal */
  nowMs(): number {
    return this.#clock.monotonicMs();
  }

  /** @internal More of what the share holds is read from its sender, or no more. */
  arrives(share: ByteShare, isArriving: boolean): void {
    if (isArriving) {
      this.#arriving.add(share);
      this.#look();
    } else this.#arriving.delete(share);
  }

  /** Looks for slow senders, again and again while a share waits. */
  #look(): void {
    if (this.#isLooking || this.waiting === 0 || this.#arriving.size === 0) return;
    this.#isLooking = true;
    const dueMs = this.nowMs() + SLOW_MS;
    afterDelay(this.#clock, SLOW_MS, new AbortController().signal, () => {
      this.#isLooking = false;
      // What has come while this process stood still is read before the next look.
      if (this.nowMs() - dueMs < SLOW_MS / 2) this.#dropSlow(SLOW_MS);
      this.#look();
    });
  }

  /** Senders that lag more than this make way, the one that lags most first, until no share waits. */
  #dropSlow(moreThanMs: number): void {
    const nowMs = this.nowMs();
    while (this.waiting > 0) {
      let slowest: ByteShare | null = null;
      let mostMs = moreThanMs;
      for (const share of this.#arriving) {
        const lag = share.lagMs(nowMs);
        if (lag <= mostMs) continue;
        slowest = share;
        mostMs = lag;
      }
      if (slowest === null) return;
      this.#arriving.delete(slowest);
      // What the slowest share gives back serves the waiting ones, here and now.
      slowest.sender!.makeWay(this.#refusal(' This one arrived too slowly, and others needed its memory.'));
    }
  }

  /** @internal Whether the share may hold so many bytes more now; 0 asks whether it may hold what it does. */
  fits(share: ByteShare, bytes: number): boolean {
    const next = share.heldBytes + bytes;
    const beyond = this.#beyondBytes(share);
    if (next <= this.options.smallBytes)
      return share.caller === null
        ? this.#bytes.held + bytes <= this.#bytes.total
        : this.#bytes.admits(share.caller, bytes, beyond);
    // What is larger than the whole budget has its turn when no other share is there.
    return (
      this.#heldLong === this.#longPart(share.heldBytes) ||
      this.#bytes.admits(share.longCaller, this.#moreOf(share, bytes), beyond)
    );
  }

  /** What other shares hold that may go beyond the total: that takes no room of callers that hold little. */
  #beyondBytes(share: ByteShare): number {
    const [small, long] = [this.#small.beyond, this.#long.beyond];
    return (
      (small === null || small === share ? 0 : small.heldBytes) + (long === null || long === share ? 0 : long.heldBytes)
    );
  }

  /** @internal Whether the share's caller holds little also with so many bytes more. */
  isLittle(share: ByteShare, bytes: number): boolean {
    return this.#bytes.isLittle(this.#callerOf(share, share.heldBytes + bytes), this.#moreOf(share, bytes));
  }

  /** @internal Whether no other share waits before one that is going to hold so many bytes. */
  isFree(share: ByteShare, bytes: number): boolean {
    const lane = this.#laneOf(bytes);
    return (
      lane.beyond === share ||
      (lane.first.size === 0 && (lane.waiters.size === 0 || this.isLittle(share, bytes - share.heldBytes)))
    );
  }

  /** @internal */
  mayGoBeyond(share: ByteShare): boolean {
    return this.#small.beyond === share || this.#long.beyond === share;
  }

  /** @internal The share holds `after` bytes from now on. */
  changed(share: ByteShare, before: number, after: number): void {
    if (after === 0) this.#withdraw(share);
    if (before > 0) this.#bytes.giveBack(this.#callerOf(share, before), before);
    if (after > 0) this.#bytes.take(this.#callerOf(share, after), after);
    this.#heldLong += this.#longPart(after) - this.#longPart(before);
    if (after < before && this.waiting > 0) this.#serve();
  }

  /** @internal */
  wait(share: ByteShare, bytes: number): Promise<void> {
    const { waitMs } = this.options;
    const lane = this.#laneOf(share.heldBytes + bytes);
    if (!this.#places.tryTake(share.caller)) return Promise.reject(this.#refusal());
    const timer = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { share, bytes, timer, resolve, reject };
    (this.isLittle(share, bytes) ? lane.first : lane.waiters).add(waiter);
    afterDelay(this.#clock, waitMs, timer.signal, () => {
      if (!this.#leave(lane, waiter)) return;
      reject(this.#refusal());
      this.#serve();
    });
    this.#serve();
    this.#dropSlow(SURELY_SLOW_MS);
    this.#look();
    return promise;
  }

  /** @internal The share has ended: it waits no more, and goes beyond nothing. */
  ended(share: ByteShare): void {
    this.#withdraw(share);
    for (const lane of [this.#small, this.#long]) {
      for (const queue of [lane.first, lane.waiters]) {
        for (const waiter of queue) {
          if (waiter.share !== share) continue;
          this.#leave(lane, waiter);
          waiter.reject(goneError());
        }
      }
    }
    if (this.waiting > 0) this.#serve();
  }

  #withdraw(share: ByteShare): void {
    if (this.#small.beyond === share) this.#small.beyond = null;
    if (this.#long.beyond === share) this.#long.beyond = null;
  }

  #serve(): void {
    this.#serveLane(this.#small);
    this.#serveLane(this.#long);
  }

  #serveLane(lane: Lane): void {
    for (const queue of [lane.first, lane.waiters]) {
      for (const waiter of queue) {
        const { share, bytes } = waiter;
        if (!this.fits(share, bytes)) {
          if (queue === lane.first && !this.isLittle(share, bytes)) {
            // Its caller has got so much meanwhile that it waits among all others.
            queue.delete(waiter);
            lane.waiters.add(waiter);
            continue;
          }
          if (bytes > 0 || lane.beyond !== null) break;
          lane.beyond = share;
        }
        this.#leave(lane, waiter);
        if (bytes > 0) share.add(bytes);
        waiter.resolve();
      }
    }
  }

  /** Waits no more; false where it did not. */
  #leave(lane: Lane, waiter: Waiter): boolean {
    if (!lane.first.delete(waiter) && !lane.waiters.delete(waiter)) return false;
    this.#places.giveBack(waiter.share.caller);
    waiter.timer.abort();
    return true;
  }

  /** Large shares count apart from small ones, so that a caller with many of them still has room for what is small. */
  #callerOf(share: ByteShare, bytes: number): string | null {
    return bytes <= this.options.smallBytes ? share.caller : share.longCaller;
  }

  /**
   * What so many bytes more would add to what they count among: all of the share, where it would be small no longer.
   */
  #moreOf(share: ByteShare, bytes: number): number {
    const next = share.heldBytes + bytes;
    return next > this.options.smallBytes && share.heldBytes <= this.options.smallBytes ? next : bytes;
  }

  #laneOf(bytes: number): Lane {
    return bytes <= this.options.smallBytes ? this.#small : this.#long;
  }

  #longPart(bytes: number): number {
    return bytes <= this.options.smallBytes ? 0 : bytes;
  }

  #refusal(why = ''): SkuaError {
    const { of, totalBytes } = this.options;
    return new SkuaError(
      'too_busy',
      `The ${of} in progress use all ${totalBytes} bytes available to them.${why} Try again in a moment, or with less at once.`,
      { limit: totalBytes },
    );
  }
}

function goneError(): SkuaError {
  return new SkuaError('aborted', 'The client disconnected.');
}

/** What a share stands for, where that may end by itself. */
export interface ShareOwner {
  /** What the share stands for has ended. */
  readonly isGone: boolean;
  /** The share holds bytes, or waits for some, for the first time: it must be closed when the owner ends. */
  onFirstUse(share: ByteShare): void;
}

/** What sends the bytes that a share holds. */
export interface Sender {
  /** Others wait for room, and this sender lags most: it is to end, and its share to be released or closed at once. */
  makeWay(refusal: SkuaError): void;
}

/** What one reply, body or call holds of a budget. Made by `ByteBudget.share`. */
export class ByteShare {
  readonly #budget: ByteBudget;
  readonly #owner: ShareOwner | null;
  /** The caller for which the bytes of this share count; null for none. */
  readonly caller: string | null;
  /** @internal */
  readonly sender: Sender | null;
  #longCaller: string | null = null;
  /**
   * Of the body or message that has begun: what is here, for how long it was read before the last pause, and since when
   * it is read again, NaN while it is not.
   */
  #arrivedBytes = 0;
  #readMs = 0;
  #readSinceMs = Number.NaN;
  #held = 0;
  #isUsed = false;
  #isClosed = false;

  /** @internal */
  constructor(budget: ByteBudget, owner: ShareOwner | null, caller: string | null, sender: Sender | null) {
    this.#budget = budget;
    this.#owner = owner;
    this.caller = caller;
    this.sender = sender;
  }

  /** @internal By what the caller's large shares are counted. */
  get longCaller(): string | null {
    return this.caller === null ? null : (this.#longCaller ??= `${this.caller}\nlarge`);
  }

  get heldBytes(): number {
    return this.#held;
  }
  /** What the share stood for has ended: there is no use in making anything for it. */
  get isClosed(): boolean {
    return this.#isClosed || (this.#owner !== null && this.#owner.isGone);
  }
  /** A share of at most so many bytes may take of the reserve. */
  get smallBytes(): number {
    return this.#budget.options.smallBytes;
  }

  /** Takes so many bytes more, if there is room now and no other share waits for it. */
  tryGrow(bytes: number): boolean {
    if (this.isClosed || !this.#budget.isFree(this, this.#held + bytes) || !this.#budget.fits(this, bytes))
      return false;
    this.#hold(this.#held + bytes);
    return true;
  }

  /** Waits for so many bytes more. Errors: `too_busy`, and `aborted` once the share is closed. */
  async grow(bytes: number): Promise<void> {
    if (this.isClosed) throw goneError();
    if (this.tryGrow(bytes)) return;
    this.#use();
    await this.#budget.wait(this, bytes);
  }

  /** Counts bytes that are in memory already. False where they are too many: take no more before `room` resolves. */
  add(bytes: number): boolean {
    if (this.#isClosed) return true;
    this.#hold(this.#held + bytes);
    this.#arrivedBytes += bytes;
    return this.#budget.fits(this, 0) || this.#budget.mayGoBeyond(this);
  }

  /** Resolves when the share may take more. Errors: `too_busy`, and `aborted` once the share is closed. */
  async room(): Promise<void> {
    if (this.#isClosed) throw goneError();
    if (!this.#budget.mayGoBeyond(this)) await this.#budget.wait(this, 0);
  }

  /** More of what has begun is read of the sender from now on, if it is not already. */
  readOn(): void {
    if (this.sender === null || this.#isClosed || this.#held < PACED_BYTES || !Number.isNaN(this.#readSinceMs)) return;
    this.#readSinceMs = this.#budget.nowMs();
    this.#budget.arrives(this, true);
  }

  /** The sender's bytes are not read for now. */
  pause(): void {
    if (Number.isNaN(this.#readSinceMs)) return;
    this.#readMs += this.#budget.nowMs() - this.#readSinceMs;
    this.#readSinceMs = Number.NaN;
    this.#budget.arrives(this, false);
  }

  /** What had begun is whole; what comes next begins anew. */
  whole(): void {
    this.pause();
    this.#arrivedBytes = 0;
    this.#readMs = 0;
  }

  /** @internal How far the sender is behind a brisk one. */
  lagMs(nowMs: number): number {
    return lagMs(this.#readMs + nowMs - this.#readSinceMs, this.#arrivedBytes);
  }

  /** Holds exactly so many bytes from now on; more than before only where they are in memory already. */
  resize(bytes: number): void {
    if (!this.#isClosed) this.#hold(bytes);
  }

  /** Gives everything back; the share can be used again. */
  release(): void {
    this.whole();
    this.#hold(0);
  }

  /** Gives everything back for good. A wait with this share rejects with `aborted`. */
  close(): void {
    if (this.#isClosed) return;
    this.pause();
    this.#isClosed = true;
    this.#hold(0);
    this.#budget.ended(this);
  }

  #use(): void {
    if (this.#isUsed) return;
    this.#isUsed = true;
    this.#owner?.onFirstUse(this);
  }

  #hold(bytes: number): void {
    const before = this.#held;
    if (bytes === before) return;
    this.#use();
    this.#held = bytes;
    this.#budget.changed(this, before, bytes);
  }
}
