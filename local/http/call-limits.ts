import { SkuaError } from '../../core/base/errors.ts';
import { SharedLimit } from '../../core/base/shared-limit.ts';

/** Calls of gRPC and requests of HTTP/2 under way in all. */
const CALLS_MAX = 20_000;
/**
 * Those of one address (or IPv6 network) whose callers are not known yet: they are while their logins are looked at, a
 * moment.
 */
const UNKNOWN_CALLS_MAX = 1_024;

export interface CallLimitOptions {
  readonly callsMax?: number;
  readonly unknownCallsMax?: number;
}

/** Calls under way, by caller. A call counts for its address until its caller is known. */
export class CallLimits {
  readonly #known: SharedLimit;
  readonly #unknown: SharedLimit;
  readonly #unknownMax: number;

  constructor({ callsMax = CALLS_MAX, unknownCallsMax = UNKNOWN_CALLS_MAX }: CallLimitOptions = {}) {
    this.#known = new SharedLimit(callsMax);
    this.#unknown = new SharedLimit(callsMax);
    this.#unknownMax = unknownCallsMax;
  }

  /** A call that begins, which must be ended whatever becomes of it; null where the address has begun too many. */
  begin(address: string): CountedCall | null {
    return this.#unknown.heldBy(address) < this.#unknownMax && this.#unknown.tryTake(address)
      ? new CountedCall(this.#known, this.#unknown, address)
      : null;
  }
}

/** A call, or a request over HTTP/2, for as long as it counts. */
export class CountedCall {
  readonly address: string;
  readonly sinceMs = performance.now();
  readonly #known: SharedLimit;
  readonly #unknown: SharedLimit;
  #caller: string | null = null;
  #isOver = false;

  /** @internal */
  constructor(known: SharedLimit, unknown: SharedLimit, address: string) {
    this.#known = known;
    this.#unknown = unknown;
    this.address = address;
  }

  /** The caller; null until that is known. */
  get caller(): string | null {
    return this.#caller;
  }

  /** Names the caller: the call counts for that caller from now on. Errors: `too_busy`. */
  calledBy(caller: string): void {
    if (this.#isOver || this.#caller === caller) return;
    if (!this.#known.tryTake(caller))
      throw new SkuaError(
        'too_busy',
        'Too many calls are in progress, and this caller has more than its share. End some, or try again in a moment.',
        { limit: this.#known.total },
      );
    this.#giveBack();
    this.#caller = caller;
  }

  end(): void {
    this.#isOver = true;
    this.#giveBack();
  }

  #giveBack(): void {
    if (this.#caller === null) this.#unknown.giveBack(this.address);
    else this.#known.giveBack(this.#caller);
  }
}
