import { SkuaError } from '../errors.ts';
import type { AppendRequest } from './append-request.ts';

/** Consumed entries are cut off the front once there are this many. */
const COMPACT_AT = 1_024;

/** Requests that wait for their group, first come first served; bounded in number and bytes. */
export class AppendQueue {
  readonly #requestsMax: number;
  readonly #bytesMax: number;
  #items: AppendRequest[] = [];
  #head = 0;
  #bytes = 0;

  constructor(requestsMax: number, bytesMax: number) {
    this.#requestsMax = requestsMax;
    this.#bytesMax = bytesMax;
  }

  get length(): number { return this.#items.length - this.#head; }

  /** Takes the request in, or says why not. */
  push(request: AppendRequest): SkuaError | null {
    if (this.length >= this.#requestsMax || (this.length > 0 && this.#bytes + request.bytes > this.#bytesMax)) {
      return new SkuaError('too_busy', `${this.length} appends with ${this.#bytes} bytes wait already: try again in a moment.`, { requests: this.length, bytes: this.#bytes });
    }
    this.#bytes += request.bytes;
    this.#items.push(request);
    return null;
  }

  peek(): AppendRequest | undefined {
    return this.#items[this.#head];
  }

  /** Removes the first one. */
  shift(): void {
    this.#bytes -= this.#items[this.#head]!.bytes;
    this.#head++;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head >= COMPACT_AT && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Puts requests back before all others, in their order; there is always room for what has been let in. */
  putBack(requests: readonly AppendRequest[]): void {
    for (const request of requests) this.#bytes += request.bytes;
    this.#items = [...requests, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }

  /** Rejects everything that waits. */
  rejectAll(error: unknown): void {
    for (let request = this.peek(); request !== undefined; request = this.peek()) {
      this.shift();
      request.reject(error);
    }
  }
}
