/** Share of the cache, and most bytes, of what readers have passed; a share in which the longest run has room. */
const PASSED_SHARE = 8;
const PASSED_BYTES_MAX = 4_194_304;
/** Places beside one another that are remembered as one. */
const PLACE_BLOCKS = 16;

/** What one read brought, as far as it matters here. */
export interface PassedLoad {
  readonly firstKey: number;
  readonly sizeBytes: number;
  /** A sequential reader has gone on to what lies behind it. Set here alone. */
  isPassed: boolean;
}

/**
 * What sequential readers have passed, in that order. Of it the oldest goes soon, whatever else the cache has: so a
 * reader of all of the log does not push out what is read again and again, and the collector meets the memory of blocks
 * while it is young. Were it promoted first, every 60 MB or so would have the whole heap marked.
 *
 * What comes back so soon that it would still be there, had all been kept, is worth keeping: `isBack` tells.
 */
export class PassedLoads<Load extends PassedLoad> {
  readonly #bytesMax: number;
  readonly #blocksBack: number;
  readonly #placesMax: number;
  readonly #queue: Load[] = [];
  #bytes = 0;
  /** Places of what has gone, and when. */
  readonly #gone = new Map<number, number>();

  constructor(capacityBytes: number, blockBytes: number) {
    this.#bytesMax = Math.min(capacityBytes / PASSED_SHARE, PASSED_BYTES_MAX);
    this.#blocksBack = capacityBytes / blockBytes / 2;
    this.#placesMax = Math.ceil(capacityBytes / blockBytes / PLACE_BLOCKS);
  }

  add(load: Load): void {
    load.isPassed = true;
    this.#queue.push(load);
    this.#bytes += load.sizeBytes;
  }

  /** The load that has to go now; null for none. */
  get surplus(): Load | null {
    return this.#bytes > this.#bytesMax ? this.#queue[0]! : null;
  }

  /** The load is asked for again, or forgotten. */
  remove(load: Load): void {
    load.isPassed = false;
    this.#queue.splice(this.#queue.indexOf(load), 1);
    this.#bytes -= load.sizeBytes;
  }

  /** A load went since it was surplus. `turn`: blocks that have been asked for. */
  gone({ firstKey }: Load, turn: number): void {
    const place = placeOf(firstKey);
    this.#gone.delete(place);
    this.#gone.set(place, turn);
    if (this.#gone.size > this.#placesMax) this.#gone.delete(this.#gone.keys().next().value!);
  }

  /** Whether what begins with this block went less than half of the cache ago. */
  isBack(firstKey: number, turn: number): boolean {
    const at = this.#gone.get(placeOf(firstKey));
    return at !== undefined && turn - at < this.#blocksBack;
  }
}

function placeOf(key: number): number {
  return Math.floor(key / PLACE_BLOCKS);
}
