import type { RoutingResult } from '../../core/ports/routing-sandbox.ts';
import type { Run, RunResult } from './script-messages.ts';

/** After so many timeouts in a row a connector gets nothing for a while; after every further one again. */
export const TIMEOUTS_IN_ROW_MAX = 3;
/** That while, in milliseconds. */
export const PAUSE_MS = 1000;
/** A connector whose last run took so long in milliseconds counts as slow. */
const SLOW_MS = 10;
/** Runs that a worker is given at a time: every message costs two threads a turn. */
const BATCH_MAX = 16;
/** And no more characters than this, beside the first run's: a worker's heap is small. */
const BATCH_LENGTH_MAX = 2 ** 20;

/** A run that waits or is under way. */
export interface Call {
  readonly script: string;
  readonly run: Run;
  readonly resolve: (result: RoutingResult) => void;
  readonly reject: (error: unknown) => void;
}

/** What waits for one connector, and what its last runs have shown of it. */
export class ConnectorQueue {
  readonly connectorId: string;
  readonly #waiting: Call[] = [];
  #timeoutsInRow = 0;
  #pausedUntilMs = -Infinity;
  /** Under way in a worker: at most one at a time. */
  isRunning = false;
  isSlow = false;

  constructor(connectorId: string) {
    this.connectorId = connectorId;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Only when something waits. */
  get nextScript(): string {
    return this.#waiting[0]!.script;
  }

  /** Nothing has to be remembered of it. */
  get isForgettable(): boolean {
    return this.length === 0 && !this.isRunning && !this.isSlow && this.#timeoutsInRow === 0;
  }

  /** Milliseconds until calls are taken again. */
  pausedForMs(nowMs: number): number {
    return Math.max(0, this.#pausedUntilMs - nowMs);
  }

  push(call: Call): void {
    this.#waiting.push(call);
  }

  /** Puts calls back that were not begun. */
  unshift(calls: readonly Call[]): void {
    this.#waiting.unshift(...calls);
  }

  /** Calls with the same script, oldest first. */
  takeBatch(): Call[] {
    const script = this.nextScript;
    let count = 0;
    let length = 0;
    for (const call of this.#waiting) {
      length += call.run.requestJson.length;
      if (count === BATCH_MAX || call.script !== script || (count > 0 && length > BATCH_LENGTH_MAX)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  takeAll(): Call[] {
    return this.#waiting.splice(0);
  }

  /** Learns from a result, and is paused by the third timeout in a row. The end of a thread counts as one. */
  note(result: RunResult, nowMs: number, hasEndedThread: boolean): void {
    const isHarm = hasEndedThread || result.kind === 'timed-out';
    this.isSlow = isHarm || ('cpuMs' in result && result.cpuMs >= SLOW_MS);
    if (!isHarm) return this.noteInTime();
    this.#timeoutsInRow++;
    if (this.#timeoutsInRow >= TIMEOUTS_IN_ROW_MAX) this.#pausedUntilMs = nowMs + PAUSE_MS;
  }

  /** A run has ended in time. */
  noteInTime(): void {
    this.#timeoutsInRow = 0;
  }
}

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
