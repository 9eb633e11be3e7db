import { ByteBudget } from '../../../core/base/byte-budget.ts';
import { isSkuaError } from '../../../core/base/errors.ts';
import type { App } from '../../http/context.ts';
import { GrpcError, STATUS } from '../call.ts';

/** Bytes of appends that all calls together may hold while they arrive and until they are answered. */
const HELD_BYTES_MAX = 134_217_728;
/** What an event holds in memory beside its bytes. */
export const EVENT_OVERHEAD_BYTES = 256;

/** What appends of gRPC may hold, one for a node. */
export function appendBudget(app: App): ByteBudget {
  return new ByteBudget(
    {
      of: 'appends',
      totalBytes: HELD_BYTES_MAX,
      reserveBytes: HELD_BYTES_MAX / 4,
      smallBytes: 262_144,
      largestBytes: app.options.bodyBytesMax,
      waitersMax: 1_024,
      waitMs: 10_000,
    },
    app.world.clock,
  );
}

/**
 * Adds up one append. The data alone count for MaxAppendSize, as in the reference; all that was sent for it counts for
 * what a body may have, so that metadata have a limit too.
 */
export class AppendSize {
  readonly #dataMax: number;
  readonly #allMax: number;
  #data = 0;
  #all = 0;

  constructor({ options }: App) {
    this.#dataMax = options.appendBytesMax;
    this.#allMax = options.bodyBytesMax;
  }

  addMessage(bytes: number): void {
    this.#all += bytes;
  }
  addData(bytes: number): void {
    this.#data += bytes;
  }

  /** The limit that is exceeded; null for none. */
  get exceeded(): number | null {
    if (this.#data > this.#dataMax) return this.#dataMax;
    return this.#all > this.#allMax ? this.#allMax : null;
  }

  /** What the limit was compared with. */
  get exceededBy(): number {
    return this.#data > this.#dataMax ? this.#data : this.#all;
  }
}

export function tooLarge(limit: number): GrpcError {
  return new GrpcError(STATUS.invalidArgument, `Maximum Append Size of ${limit} Exceeded.`, {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(limit),
  });
}

/** Which event is too large, its size and the limit, where an error says so; null for every other error. */
export function eventTooLarge(
  error: unknown,
  events: readonly { readonly id: string }[],
): { readonly eventId: string; readonly size: number; readonly limit: number } | null {
  if (!isSkuaError(error, 'event_too_large')) return null;
  const { index, size, limit } = error.data;
  return { eventId: events[index]?.id ?? '', size, limit };
}
