import { workerData } from 'node:worker_threads';

/** Cells: syncs of the request loop under way, and how many have begun. */
const UNDER_WAY = 0;
const BEGUN = 1;
/** Time in microseconds, modulo 2^32, in which at least one was under way. */
const BUSY = 2;
/** What one takes while no thread in the background syncs, in microseconds, by the last ones; 0: not known. */
const ALONE = 3;
/** Syncs of threads in the background under way, and how many have begun. */
const BACKGROUND = 4;
const BACKGROUND_BEGUN = 5;
const CELLS = 6;
/** Longest that a sync in the background lets those of the request loop go first, in milliseconds. */
const WAIT_MS_MAX = 10;
/** What the last sync counts in the mean. */
const LAST_WEIGHT = 1 / 16;
/** A sync counts at most this long in the mean, in microseconds. */
const ALONE_US_MAX = 1_000_000;

/**
 * The order of syncs: a disk works through one large sync after the other, and an append that comes behind the sync of
 * a scavenge waits for all of it. So threads in the background let syncs that are under way end, for a moment at most,
 * and take no more of the disk than its share (disk-share.ts), which goes by what is measured here. The cells are
 * shared by the threads of the process; the request loop alone calls `begin` and `end`.
 */
export class SyncTurns {
  readonly cells: Int32Array<SharedArrayBuffer>;
  readonly #nowMs: () => number;
  #seen = 0;
  /**
   * Of the request loop: since when any has been under way, and whether the last one was begun and alone beside the
   * background.
   */
  #sinceMs = 0;
  #isAlone = false;
  #backgroundSeen = 0;

  constructor(
    cells: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4 * CELLS)),
    nowMs: () => number = () => performance.now(),
  ) {
    this.cells = cells;
    this.#nowMs = nowMs;
  }

  begin(): void {
    const { cells } = this;
    const isFirst = Atomics.add(cells, UNDER_WAY, 1) === 0;
    Atomics.add(cells, BEGUN, 1);
    if (isFirst) this.#sinceMs = this.#nowMs();
    this.#isAlone = isFirst && Atomics.load(cells, BACKGROUND) === 0;
    this.#backgroundSeen = Atomics.load(cells, BACKGROUND_BEGUN);
  }

  end(): void {
    const { cells } = this;
    if (Atomics.sub(cells, UNDER_WAY, 1) !== 1) return;
    const us = Math.max(0, Math.round((this.#nowMs() - this.#sinceMs) * 1_000));
    Atomics.add(cells, BUSY, us | 0);
    if (this.#isAlone && Atomics.load(cells, BACKGROUND_BEGUN) === this.#backgroundSeen) {
      const before = Atomics.load(cells, ALONE);
      const counted = Math.min(us, ALONE_US_MAX);
      Atomics.store(
        cells,
        ALONE,
        Math.max(1, Math.round(before === 0 ? counted : before + (counted - before) * LAST_WEIGHT)),
      );
    }
    Atomics.notify(cells, UNDER_WAY);
  }

  /**
   * Time in which syncs of the request loop were under way, in milliseconds, modulo 2^32 microseconds: only differences
   * say something (`busyBetween`).
   */
  get busyMs(): number {
    return (Atomics.load(this.cells, BUSY) >>> 0) / 1_000;
  }

  /** What a sync of the request loop takes when no thread in the background syncs, in milliseconds; null: not known. */
  get aloneMs(): number | null {
    const us = Atomics.load(this.cells, ALONE);
    return us === 0 ? null : us / 1_000;
  }

  /** A thread in the background begins a sync. */
  beginBehind(): void {
    Atomics.add(this.cells, BACKGROUND, 1);
    Atomics.add(this.cells, BACKGROUND_BEGUN, 1);
  }

  endBehind(): void {
    Atomics.sub(this.cells, BACKGROUND, 1);
  }

  /** Whether any sync of the request loop has begun since the last call. */
  wereTaken(): boolean {
    const begun = Atomics.load(this.cells, BEGUN);
    const isNew = begun !== this.#seen;
    this.#seen = begun;
    return isNew;
  }

  /** Blocks the calling thread until no sync of the request loop is under way, or it has waited long enough. */
  giveWay(): void {
    const end = performance.now() + WAIT_MS_MAX;
    for (let left = WAIT_MS_MAX; left > 0; left = end - performance.now()) {
      const underWay = Atomics.load(this.cells, UNDER_WAY);
      if (underWay === 0 || Atomics.wait(this.cells, UNDER_WAY, underWay, left) === 'timed-out') return;
    }
  }
}

/** Milliseconds between two values of `busyMs`. */
export function busyBetween(before: number, after: number): number {
  return after >= before ? after - before : after - before + 2 ** 32 / 1_000;
}

/** Those of this process: a worker is given the cells of the thread that started it. */
export const syncTurns = new SyncTurns((workerData as { syncTurns?: Int32Array<SharedArrayBuffer> } | null)?.syncTurns);
