import { SkuaError } from '../../core/base/errors.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import { failed } from './peer-exchange.ts';
import type { PeerRequest } from './peer-exchange.ts';

/** Requests that wait for one of a lane's places. */
const WAITING_MAX = 2_048;

/** Lets so many requests to a member go on at a time, the others one after the other as they came. */
export class Lane {
  readonly #placesMax: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(placesMax: number) {
    this.#placesMax = placesMax;
  }

  get isEmpty(): boolean {
    return this.#taken === 0 && this.#waiting.size === 0;
  }

  /**
   * Resolves with a place, which `leave` gives back; null for one at once. Errors: `too_busy` when the time is over or
   * too many wait, `member_unreachable` when the signal aborts.
   */
  enter(request: PeerRequest, deadlineMs: number): Promise<void> | null {
    if (this.#taken < this.#placesMax && this.#waiting.size === 0) {
      this.#taken++;
      return null;
    }
    if (this.#waiting.size >= WAITING_MAX) return Promise.reject(busy(request.node));
    return this.#turn(request, deadlineMs);
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#taken--;
    else next();
  }

  #turn({ node, signal }: PeerRequest, deadlineMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#waiting.delete(take);
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        settle();
      };
      const take = (): void => end(resolve);
      const abort = (): void => end(() => reject(failed(node, 'given-up', 'member_unreachable', null)));
      const timer = setTimeout(() => end(() => reject(busy(node))), Math.max(1, deadlineMs - performance.now()));
      this.#waiting.add(take);
      signal?.addEventListener('abort', abort);
      if (signal?.aborted === true) abort();
    });
  }
}

/** It says nothing about the member. */
function busy(node: NodeAddress): SkuaError {
  return new SkuaError(
    'too_busy',
    `Too many requests to the member ${nodeKey(node)} are in progress. Try again in a moment.`,
  );
}
