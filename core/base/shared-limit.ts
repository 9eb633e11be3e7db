/** The part of a limit that is left to callers that hold little, and what counts as little. */
const RESERVED_PART = 1 / 4;
const LITTLE_PART = 1 / 16;

export interface SharedLimitOptions {
  /** What only callers that hold little may take; left out, a quarter of the total. */
  readonly reserve?: number;
  /**
   * A caller that holds no more than this holds little, too, where this is more than a sixteenth of the total: one
   * request of the largest kind. It never comes to the whole reserve.
   */
  readonly little?: number;
}

/**
 * A limit that many callers share: calls, bytes, places in a queue. Every caller may take until three quarters of the
 * limit are taken; beyond that only a caller that holds less than a sixteenth of the limit with what it takes. So one
 * caller alone may take much, and none takes all. What counts for no caller (null) is taken of what is not reserved.
 * There is an entry for each caller that holds something, and none for others.
 */
export class SharedLimit {
  readonly total: number;
  readonly #common: number;
  readonly #little: number;
  readonly #byCaller = new Map<string, number>();
  #held = 0;

  constructor(total: number, { reserve = Math.floor(total * RESERVED_PART), little = 0 }: SharedLimitOptions = {}) {
    this.total = total;
    this.#common = total - reserve;
    this.#little = Math.max(1, Math.floor(total * LITTLE_PART), Math.min(little, Math.floor((reserve * 3) / 4)));
  }

  /** What all callers hold together. */
  get held(): number {
    return this.#held;
  }
  /** Callers that hold something. */
  get callers(): number {
    return this.#byCaller.size;
  }

  heldBy(caller: string): number {
    return this.#byCaller.get(caller) ?? 0;
  }

  /** Whether the caller would still hold little with so much more, so that its part is kept for it. */
  isLittle(caller: string | null, amount: number): boolean {
    return caller !== null && this.heldBy(caller) + amount <= this.#little;
  }

  /**
   * Whether the caller may take so much more now; 0 asks whether it may hold what it does. `apart`: how much of what is
   * held takes nothing of what is left to callers that hold little.
   */
  admits(caller: string | null, amount: number, apart = 0): boolean {
    const next = this.#held + amount;
    return next <= this.#common || (next - apart <= this.total && this.isLittle(caller, amount));
  }

  /** Takes so much, where the caller may. What was taken must be given back, by the same caller. */
  tryTake(caller: string | null, amount = 1): boolean {
    if (!this.admits(caller, amount)) return false;
    this.take(caller, amount);
    return true;
  }

  /** Counts what is there already, whether there is room or not. */
  take(caller: string | null, amount = 1): void {
    this.#held += amount;
    if (caller !== null && amount > 0) this.#byCaller.set(caller, this.heldBy(caller) + amount);
  }

  giveBack(caller: string | null, amount = 1): void {
    this.#held -= amount;
    if (caller === null || amount === 0) return;
    const left = this.heldBy(caller) - amount;
    if (left > 0) this.#byCaller.set(caller, left);
    else this.#byCaller.delete(caller);
  }
}
