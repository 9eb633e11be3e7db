import type { ServerResponse } from 'node:http';
import { ByteBudget } from '../../core/base/byte-budget.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { background } from '../../core/base/background.ts';
import { Turns } from '../../handlers/http/turns.ts';
import { systemClock } from '../../infra/system-clock.ts';

export interface FlowLimits {
  /** Bytes that all replies together may hold in memory. */
  readonly replyBytesMax: number;
  /** Bytes of request bodies that may be in memory, from their arrival to the answer. */
  readonly uploadBytesMax: number;
  /** A client that takes or sends nothing for so long while it should is cut off. */
  readonly stallMs: number;
}

export const FLOW_LIMITS: FlowLimits = { replyBytesMax: 268_435_456, uploadBytesMax: 268_435_456, stallMs: 30_000 };

/** The part of each total that large replies and bodies leave to small ones, and how large a small one is. */
const RESERVED_PART = 1 / 4;
const SMALL_BYTES = 262_144;
/**
 * The largest body. One at a time may go beyond its budget, so that it ends (core/base/byte-budget.ts): that much is
 * left out of the budget.
 */
const LARGEST_BYTES = 30_000_000;
/** A reply that finds no room waits at most so long, and so many wait. */
const REPLY_WAIT_MS = 20_000;
const UPLOAD_WAIT_MS = 30_000;
const WAITERS_MAX = 1_024;

/** What bounds the bytes that go through a server. */
export class Flow {
  readonly replies: ByteBudget;
  readonly uploads: ByteBudget;
  readonly stalls: Stalls;
  /**
   * Long replies go on one after another, one in each turn of the process: between two pieces of theirs all others get
   * to work, however fast their clients take them.
   */
  readonly turns: Turns;

  constructor(limits: Partial<FlowLimits> = {}, clock: Clock = systemClock) {
    const { replyBytesMax, uploadBytesMax, stallMs } = { ...FLOW_LIMITS, ...limits };
    this.replies = budget('replies', replyBytesMax, REPLY_WAIT_MS, clock);
    this.uploads = budget(
      'request bodies',
      uploadBytesMax - Math.min(LARGEST_BYTES, uploadBytesMax / 4),
      UPLOAD_WAIT_MS,
      clock,
      LARGEST_BYTES,
    );
    this.stalls = new Stalls(stallMs, clock);
    this.turns = new Turns(clock);
  }
}

function budget(of: string, totalBytes: number, waitMs: number, clock: Clock, largestBytes = 0): ByteBudget {
  const reserveBytes = Math.floor(totalBytes * RESERVED_PART);
  return new ByteBudget(
    {
      of,
      totalBytes,
      reserveBytes,
      smallBytes: Math.min(SMALL_BYTES, reserveBytes),
      largestBytes,
      waitersMax: WAITERS_MAX,
      waitMs,
    },
    clock,
  );
}

/** A client that is expected to take or send something. */
export interface Expected {
  /** It is over: the connection is cut off. */
  cutOff(): void;
  /** Whether it can't do anything now, such as the reader of a reply whose turn on its connection has not come. */
  readonly isExcused?: boolean;
}

/** How many times within its patience the clients are looked at. */
const LOOKS = 4;

/** Cuts off clients that stand still. One timer for all of them. */
export class Stalls {
  readonly #stallMs: number;
  readonly #clock: Clock;
  /** Since when each is waited for. */
  readonly #since = new Map<Expected, number>();
  readonly #stopping = new AbortController();
  #isLooking = false;

  constructor(stallMs: number, clock: Clock) {
    this.#stallMs = stallMs;
    this.#clock = clock;
  }

  /** Something is expected from now on; or something came, and more is expected. */
  expect(client: Expected): void {
    this.#since.set(client, this.#clock.monotonicMs());
    if (!this.#isLooking) background(this.#look());
  }

  /** Nothing is expected any more. */
  done(client: Expected): void {
    this.#since.delete(client);
  }

  close(): void {
    this.#stopping.abort();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    const { signal } = this.#stopping;
    while (this.#since.size > 0 && !signal.aborted) {
      await this.#clock.sleep(this.#stallMs / LOOKS, signal);
      const nowMs = this.#clock.monotonicMs();
      for (const [client, sinceMs] of this.#since) {
        if (client.isExcused === true) this.#since.set(client, nowMs);
        else if (nowMs - sinceMs >= this.#stallMs) {
          this.#since.delete(client);
          client.cutOff();
        }
      }
    }
    this.#isLooking = false;
  }
}

/** The reader of a reply. */
export class Reader implements Expected {
  readonly #reply: ServerResponse;

  constructor(reply: ServerResponse) {
    this.#reply = reply;
  }

  /** An earlier reply on the connection has not ended. */
  get isExcused(): boolean {
    return this.#reply.socket === null;
  }

  cutOff(): void {
    this.#reply.destroy();
  }
}
