import { END, HIT, MISS } from '../log/log-reader.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf } from '../log/records.ts';
import { type Lookup, StreamKey } from './lookup.ts';
import type { RecentIds } from './recent-ids.ts';
import type { StoreContext } from './store-context.ts';

/** Records at the end of the log whose ids are remembered after a start: those whose writers may not have got their answer. */
const PRIMED_RECORDS_MAX = 16_384;

/** Walks back over the last records of the log, then remembers their events in the order in which they were written. */
export async function primeRecentIds(context: StoreContext, recent: RecentIds): Promise<void> {
  const { lookup, clock, options } = context;
  const walk = new WalkBack(lookup);
  for (let isDone = false; !isDone;) {
    const outcome = walk.step(options.readSliceEvents);
    if (outcome === MISS) await lookup.fill();
    else if (outcome === END) isDone = true;
    else await clock.yield();
  }
  walk.fillIn(recent);
}

class WalkBack {
  readonly #lookup: Lookup;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  readonly #ids = new Uint8Array(PRIMED_RECORDS_MAX * 16);
  readonly #salts = new Int32Array(PRIMED_RECORDS_MAX);
  readonly #positions = new Float64Array(PRIMED_RECORDS_MAX);
  #count = 0;
  #examined = 0;
  #position: number;

  constructor(lookup: Lookup) {
    this.#lookup = lookup;
    this.#position = lookup.reader.end;
  }

  /** END when enough has been seen; HIT after a slice. */
  step(slice: number): typeof HIT | typeof MISS | typeof END {
    const { reader, index } = this.#lookup;
    const f = this.#fields;
    for (let i = 0; i < slice; i++) {
      if (this.#examined === PRIMED_RECORDS_MAX) return END;
      const outcome = this.#lookup.ofLog(reader.readBackward(this.#position, this.#frame));
      if (outcome !== HIT) return outcome;
      this.#examined++;
      this.#position = this.#frame.position;
      if (this.#frame.type !== PREPARE) continue;
      parsePrepare(this.#frame, f);
      if (!f.isCommitted || !f.isEvent) continue;
      this.#ids.set(this.#frame.bytes.subarray(f.eventIdAt, f.eventIdAt + 16), this.#count * 16);
      this.#salts[this.#count] = new StreamKey(streamOf(this.#frame, f), index.hasher).salt;
      this.#positions[this.#count++] = this.#position;
    }
    return HIT;
  }

  fillIn(recent: RecentIds): void {
    for (let i = this.#count - 1; i >= 0; i--) recent.add(this.#ids, i * 16, this.#salts[i]!, this.#positions[i]!, 0);
  }
}

