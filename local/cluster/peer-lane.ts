import { SkuaError } from '../../core/errors.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
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

  get isEmpty(): boolean { return this.#taken === 0 && this.#waiting.size === 0; }

  /** Resolves with a place, which `leave` gives back. Errors: `member_unreachable` when the time is over or too many wait, `aborted`. */
  enter(request: PeerRequest, deadlineMs: number): Promise<void> | null {
    if (this.#taken < this.#placesMax && this.#waiting.size === 0) {
      this.#taken++;
      return null;
    }
    if (this.#waiting.size >= WAITING_MAX) return Promise.reject(failed(request.node, 'busy', 'member_unreachable', null));
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
      const abort = (): void => end(() => reject(new SkuaError('aborted', `The call to ${nodeKey(node)} was given up.`)));
      const timer = setTimeout(() => end(() => reject(failed(node, 'busy', 'member_unreachable', null))), Math.max(1, deadlineMs - performance.now()));
      this.#waiting.add(take);
      signal?.addEventListener('abort', abort);
      if (signal?.aborted === true) abort();
    });
  }
}
