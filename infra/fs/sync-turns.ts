import { workerData } from 'node:worker_threads';

/** Cells: syncs under way, and how many have begun, on the request loop. */
const UNDER_WAY = 0;
const BEGUN = 1;
/** Longest that a sync in the background lets those of the request loop go first, in milliseconds. */
const WAIT_MS_MAX = 10;

/**
 * Who syncs first: a disk works through one large sync after the other, and an append that comes behind the sync of a
 * scavenge waits for all of it. So threads in the background let syncs that are under way end, for a moment at most, and
 * sync less at a time while there are any. The cells are shared by the threads of the process.
 */
export class SyncTurns {
  readonly cells: Int32Array<SharedArrayBuffer>;
  #seen = 0;

  constructor(cells: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(8))) {
    this.cells = cells;
  }

  begin(): void {
    Atomics.add(this.cells, UNDER_WAY, 1);
    Atomics.add(this.cells, BEGUN, 1);
  }

  end(): void {
    if (Atomics.sub(this.cells, UNDER_WAY, 1) === 1) Atomics.notify(this.cells, UNDER_WAY);
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

/** Those of this process: a worker is given the cells of the thread that started it. */
export const syncTurns = new SyncTurns((workerData as { syncTurns?: Int32Array<SharedArrayBuffer> } | null)?.syncTurns);
