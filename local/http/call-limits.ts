import type { ServerHttp2Stream } from 'node:http2';
import { SkuaError } from '../../core/errors.ts';
import { SharedLimit } from '../../core/shared-limit.ts';

/** Calls of gRPC and requests of HTTP/2 under way in all. */
const CALLS_MAX = 20_000;
/** Those of one address (or IPv6 network) whose callers are not known yet: they are while their logins are looked at, a moment. */
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

  /** Calls under way. */
  get count(): number { return this.#known.held + this.#unknown.held; }

  /** False where the address has begun too many. */
  begin(address: string): boolean {
    return this.#unknown.heldBy(address) < this.#unknownMax && this.#unknown.tryTake(address);
  }

  /** Whose call it is, which was `before`'s, or nobody's. Errors: `too_busy`. */
  known(address: string, before: string | null, caller: string): void {
    if (before === caller) return;
    if (!this.#known.tryTake(caller)) throw new SkuaError('too_busy', 'Too many calls are under way, and this caller has more than its part of them. End some, or try again in a moment.', { limit: this.#known.total });
    this.end(address, before);
  }

  end(address: string, caller: string | null): void {
    if (caller === null) this.#unknown.giveBack(address);
    else this.#known.giveBack(caller);
  }
}

/** A request over HTTP/2 that counts as a call. */
export class CountedRequest {
  readonly sinceMs = performance.now();
  readonly #limits: CallLimits;
  readonly #address: string;
  #caller: string | null = null;
  #isOver = false;

  constructor(limits: CallLimits, address: string) {
    this.#limits = limits;
    this.#address = address;
  }

  /** Errors: `too_busy`. */
  calledBy(caller: string): void {
    if (this.#isOver) return;
    this.#limits.known(this.#address, this.#caller, caller);
    this.#caller = caller;
  }

  end(): void {
    this.#isOver = true;
    this.#limits.end(this.#address, this.#caller);
  }
}

/** What counts the request of a stream. */
export const countedRequests = new WeakMap<ServerHttp2Stream, CountedRequest>();
