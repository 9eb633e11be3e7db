import { busyBetween, type SyncTurns, syncTurns } from './sync-turns.ts';

/**
 * Bytes that a thread in the background writes before it sets the disk to work on them: the last sync, or one of the
 * system's own, would hold up everyone else's.
 */
const WRITE_BACK_BYTES = 16_777_216;
/**
 * The same while the request loop syncs, at first and at least (chunks and tables are written by so much), and at most.
 */
const BESIDE_BYTES_MIN = 1_048_576;
const BESIDE_BYTES_MAX = 4_194_304;
/**
 * A sync in the background may take this long whatever those of the request loop take, in milliseconds: an answer takes
 * as long.
 */
const TARGET_MS_MIN = 2;
/**
 * How long the disk rests, in times of what it was had for, beside a request loop that syncs all the time: a little
 * more than a third of it is left to the background.
 */
const REST_FACTOR = 0.8;
/** The disk rests this long at most, in milliseconds. */
const REST_MS_MAX = 100;

/**
 * What a thread in the background takes of the disk while the request loop syncs, by the time that either has the disk.
 *
 * - A sync in the background takes about as long as one of the request loop that meets none: what comes behind it waits
 *   twice its time. How many bytes that is follows from how long the last ones took.
 * - Behind each the disk rests nearly as long as that sync had it, times the share of the time in which the request
 *   loop syncs. So a loop that syncs all the time leaves a good third of the disk to the background, which then takes
 *   less than three times as long as alone, and one that syncs now and then leaves nearly all of it.
 */
export class DiskShare {
  readonly #turns: SyncTurns;
  readonly #nowMs: () => number;
  #besideBytes = BESIDE_BYTES_MIN;
  #sinceMs: number;
  #sinceBusyMs: number;

  constructor(turns: SyncTurns, nowMs: () => number = () => performance.now()) {
    this.#turns = turns;
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
    this.#sinceBusyMs = turns.busyMs;
  }

  /** Whether so many bytes are to be written back now; and if so, whether beside others. */
  isDue(bytes: number): 'no' | 'alone' | 'beside' {
    if (bytes < BESIDE_BYTES_MIN) return 'no';
    if (bytes >= WRITE_BACK_BYTES) return this.#turns.wereTaken() ? 'beside' : 'alone';
    return bytes >= this.#besideBytes && this.#turns.wereTaken() ? 'beside' : 'no';
  }

  /** Makes a sync, and says how long the disk is to rest behind it, in milliseconds. */
  async during(sync: () => Promise<void>): Promise<number> {
    const turns = this.#turns;
    const [beginMs, beginBusyMs] = [this.#nowMs(), turns.busyMs];
    await sync();
    const [endMs, endBusyMs] = [this.#nowMs(), turns.busyMs];
    const tookMs = endMs - beginMs;
    // While both are under way each has half of the disk.
    const ownMs = tookMs - Math.min(tookMs, busyBetween(beginBusyMs, endBusyMs)) / 2;
    const passedMs = endMs - this.#sinceMs;
    const demand = passedMs <= 0 ? 1 : Math.min(1, busyBetween(this.#sinceBusyMs, endBusyMs) / passedMs);
    this.#sinceMs = endMs;
    this.#sinceBusyMs = endBusyMs;
    const targetMs = Math.max(TARGET_MS_MIN, turns.aloneMs ?? 0);
    if (ownMs > targetMs) this.#besideBytes = Math.max(BESIDE_BYTES_MIN, this.#besideBytes / 2);
    else if (ownMs < targetMs / 2) this.#besideBytes = Math.min(BESIDE_BYTES_MAX, this.#besideBytes * 2);
    return Math.min(REST_MS_MAX, ownMs * demand * REST_FACTOR);
  }
}

/** That of this thread. */
export const diskShare = new DiskShare(syncTurns);
