import type { ConnectorQueue } from './connector-queue.ts';

/**
 * Whose turn it is: connectors take turns, one worker each, and slow ones together never hold the last worker. So the
 * scripts of one connector delay those of another by no more than the runs under way.
 */
export class Turns {
  readonly #workers: number;
  readonly #ready: ConnectorQueue[] = [];
  /** Slow connectors under way, as they were when their turn came. */
  readonly #slow = new Set<ConnectorQueue>();
  #running = 0;

  constructor(workers: number) {
    this.#workers = workers;
  }

  /** Of a connector that has got its first waiting call. */
  add(queue: ConnectorQueue): void {
    if (!queue.isRunning && !this.#ready.includes(queue)) this.#ready.push(queue);
  }

  /** The connector whose turn it is, or null when all have to wait. */
  next(): ConnectorQueue | null {
    if (this.#running >= this.#workers) return null;
    const slowMax = Math.max(1, this.#workers - 1);
    return this.#ready.find((queue) => !queue.isSlow || this.#slow.size < slowMax) ?? null;
  }

  begin(queue: ConnectorQueue): void {
    this.#ready.splice(this.#ready.indexOf(queue), 1);
    this.#running++;
    queue.isRunning = true;
    if (queue.isSlow) this.#slow.add(queue);
  }

  end(queue: ConnectorQueue): void {
    this.#running--;
    queue.isRunning = false;
    this.#slow.delete(queue);
    if (queue.length > 0) this.#ready.push(queue);
  }

  /** Of a connector of which nothing waits any more. */
  remove(queue: ConnectorQueue): void {
    const at = this.#ready.indexOf(queue);
    if (at >= 0) this.#ready.splice(at, 1);
  }
}
