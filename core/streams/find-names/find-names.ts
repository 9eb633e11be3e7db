import { SkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Clock } from '../../ports/clock.ts';
import type { AllPage, AllPosition, EventStore, StoredEvent, TextMatcher } from '../api.ts';

/**
 * Names of streams. The index knows hashes only, so that a search for a name reads the log: backward, since what is
 * wanted was mostly written lately, and slice by slice, each of which reports how far it has come and how to go on.
 */

/** Bytes of the log that one slice passes over, but for the records that it began with. */
export const SLICE_BYTES_MAX = 16_777_216;
/** Milliseconds after which a slice ends. */
const SLICE_MS_MAX = 250;
/** Records that are looked at between two looks at the time. */
const RECORDS_MAX = 2_048;
/** Slices that are read at once; each reads through the cache that all readers share. */
const SLICES_MAX = 2;
/** Most streams of a slice. */
export const STREAMS_MAX = 200;
/** Streams whose state is looked up at once. */
const LOOKUPS_PARALLEL = 8;

export interface NamesWanted {
  /**
   * `created`: by their first event, so that streams without it, which began before a deletion or lost it to a
   * scavenge, are not found.
   */
  readonly by: 'written' | 'created';
  /** Any case; null for every name. */
  readonly search: string | null;
  readonly match: 'substring' | 'prefix';
  /** Names that begin with `$`, too. */
  readonly withSystem: boolean;
  /** 1 to STREAMS_MAX. */
  readonly count: number;
  /** Where an earlier slice ended. */
  readonly from: AllPosition | 'end';
}

export interface FoundStream {
  readonly stream: string;
  /** -1 without events, TOMBSTONE after a hard delete. */
  readonly lastEventNumber: number;
  /** Softly or hard. */
  readonly isDeleted: boolean;
  /** The event by which it was found. */
  readonly event: Pick<StoredEvent, 'number' | 'position' | 'createdMs' | 'createdTicks'>;
}

export interface NamesSlice {
  /** Newest first, each once. */
  readonly streams: readonly FoundStream[];
  /** Where the slice began, and how far it has come: everything from `to` on has been looked at. */
  readonly from: number;
  readonly to: number;
  readonly logEnd: number;
  /** Where to go on; null at the beginning of the log. */
  readonly next: AllPosition | null;
}

type NamesStore = Pick<EventStore, 'end' | 'readAll' | 'streamInfo'>;

export class StreamNames {
  readonly #store: NamesStore;
  readonly #clock: Clock;
  #underWay = 0;

  constructor(store: NamesStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** One slice. Errors: `too_busy`, `invalid_position`. */
  async find(wanted: NamesWanted): Promise<NamesSlice> {
    if (this.#underWay >= SLICES_MAX)
      throw new SkuaError(
        'too_busy',
        `${SLICES_MAX} stream name searches are already in progress: try again in a moment.`,
        { limit: SLICES_MAX },
      );
    this.#underWay++;
    try {
      return await this.#find(wanted);
    } finally {
      this.#underWay--;
    }
  }

  async #find(wanted: NamesWanted): Promise<NamesSlice> {
    const until = this.#clock.monotonicMs() + SLICE_MS_MAX;
    const logEnd = this.#store.end;
    const names = new NameMatcher(wanted);
    const found: StoredEvent[] = [];
    let from = logEnd;
    let at: AllPosition | 'end' = wanted.from;
    let isEnd = false;
    do {
      const page: AllPage = await this.#store.readAll({
        direction: 'backward',
        from: at,
        count: RECORDS_MAX,
        payloads: false,
        filter: { on: 'stream', regex: names },
        scan: { recordsMax: RECORDS_MAX, bytesMax: SLICE_BYTES_MAX },
      });
      if (at === wanted.from) from = page.from.commit;
      const cut = takeNew(page.events, names, found, wanted.count);
      isEnd = page.isEnd && cut === null;
      at = cut ?? page.next;
    } while (
      !isEnd &&
      found.length < wanted.count &&
      from - at.commit < SLICE_BYTES_MAX &&
      this.#clock.monotonicMs() < until
    );
    return { streams: await this.#known(found), from, to: at.commit, logEnd, next: isEnd ? null : at };
  }

  async #known(events: readonly StoredEvent[]): Promise<FoundStream[]> {
    const streams: FoundStream[] = [];
    await inParallel(events.length, LOOKUPS_PARALLEL, async (i) => {
      const { stream, number, position, createdMs, createdTicks } = events[i]!;
      const { lastEventNumber, isSoftDeleted, isTombstoned } = await this.#store.streamInfo(stream);
      streams[i] = {
        stream,
        lastEventNumber,
        isDeleted: isSoftDeleted || isTombstoned,
        event: { number, position, createdMs, createdTicks },
      };
    });
    return streams;
  }
}

/**
 * Takes the events by which streams are found until there are enough; then the position behind which the next slice
 * begins, else null.
 */
function takeNew(
  events: readonly StoredEvent[],
  names: NameMatcher,
  found: StoredEvent[],
  count: number,
): AllPosition | null {
  for (const event of events) {
    if (!names.isNew(event)) continue;
    found.push(event);
    if (found.length === count) return { commit: event.position, prepare: event.preparePosition };
  }
  return null;
}

/** Lets pass what may be wanted; a name that was found is none that is looked for any more. */
class NameMatcher implements TextMatcher {
  readonly stepsPerCharacter = 1;
  readonly #wanted: NamesWanted;
  readonly #search: string | null;
  readonly #found = new Set<string>();

  constructor(wanted: NamesWanted) {
    this.#wanted = wanted;
    this.#search = wanted.search === null || wanted.search === '' ? null : wanted.search.toLowerCase();
  }

  test(name: string): boolean {
    if (!this.#wanted.withSystem && name.startsWith('$')) return false;
    if (this.#found.has(name)) return false;
    if (this.#search === null) return true;
    const folded = name.toLowerCase();
    return this.#wanted.match === 'prefix' ? folded.startsWith(this.#search) : folded.includes(this.#search);
  }

  /** Whether the event is the first by which its stream is found. */
  isNew({ stream, number }: StoredEvent): boolean {
    if ((this.#wanted.by === 'created' && number !== 0) || this.#found.has(stream)) return false;
    this.#found.add(stream);
    return true;
  }
}
