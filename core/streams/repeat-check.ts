import { equalBytes, i32 } from '../base/bytes.ts';
import { EntryList } from '../index/format/entries.ts';
import { END, HIT, isMiss, type Miss } from '../base/step.ts';
import { NO_STREAM } from './api.ts';
import { CeilingSearch, type Lookup, type StreamKey } from './lookup/lookup.ts';
import { type CheckedEvents, VERDICT, type Verdict } from './append-request.ts';
import type { RecentIds } from './recent-ids.ts';

/** The events of one stream that a request has, and what it expects of the stream. */
export interface ComparedEvents extends Pick<CheckedEvents, 'events' | 'ids' | 'idsAt'> {
  readonly isMeta: boolean;
  readonly expected: number;
}

/** What the check is made against. One object serves all checks. */
export interface RepeatScope {
  key: StreamKey;
  /** Last event number that is durable, and last one including the group in flight. */
  committedLast: number;
  latestLast: number;
  isSoftDeleted: boolean;
  /** Where the group in flight starts. */
  groupStart: number;
  /** The group holds more events than ids are remembered. */
  isGroupHuge: boolean;
}

/**
 * Decides whether a request is a repeat, in steps: NEW, REPEAT (`first`, `last` and `position` say where it was
 * written), CONFLICT (another writer was first, or a part was written before), or WAIT.
 */
export class RepeatCheck {
  first = -1;
  last = -1;
  position = -1;
  readonly #lookup: Lookup;
  readonly #recent: RecentIds;
  /** Null where the recent ids are all that is asked. */
  readonly #past: PastIds | null;
  #index = 0;
  #search: CeilingSearch | null = null;

  /**
   * `lookbackEvents`: how many events back in its stream an id is looked for that is not among the recent ones; 0: not
   * at all.
   */
  constructor(lookup: Lookup, recent: RecentIds, lookbackEvents: number) {
    this.#lookup = lookup;
    this.#recent = recent;
    this.#past = lookbackEvents === 0 ? null : new PastIds(lookup, recent, lookbackEvents);
  }

  begin(): void {
    this.#index = 0;
    this.#search = null;
    this.#past?.begin();
  }

  /** By the ids alone, as far as they are remembered or stand in the stream's last events. */
  byIds(request: ComparedEvents, scope: RepeatScope): Verdict | Miss {
    const { ids } = request;
    for (; this.#index < request.events.length; this.#index++) {
      const at = request.idsAt + this.#index * 16;
      let position = this.#recent.find(ids, at, scope.key.salt);
      if (position < 0 && this.#past !== null) {
        const loaded = this.#past.load(scope.key, scope.committedLast);
        if (isMiss(loaded)) return loaded;
        position = this.#past.find(ids, at);
      }
      if (position >= scope.groupStart) return VERDICT.WAIT;
      const outcome = position < 0 ? END : this.#lookup.confirm(position, scope.key);
      if (isMiss(outcome)) return outcome;
      if (outcome === END || !this.#hasId(ids, at)) return this.#index === 0 ? VERDICT.NEW : VERDICT.CONFLICT;
      this.last = this.#lookup.fields.eventNumber;
      this.position = position;
      if (this.#index === 0) this.first = this.last;
    }
    return request.events.length === 0 ? VERDICT.NEW : VERDICT.REPEAT;
  }

  /** Event k of the request must be event `expected` + 1 + k of the stream. */
  byNumbers(request: ComparedEvents, scope: RepeatScope): Verdict | Miss {
    if (request.events.length === 0) return VERDICT.CONFLICT;
    for (; this.#index < request.events.length; this.#index++) {
      const number = request.expected + 1 + this.#index;
      const at = request.idsAt + this.#index * 16;
      if (number > scope.committedLast) {
        // Only an id that is among the recent ones can be in flight.
        const mayBeInFlight =
          number <= scope.latestLast && (scope.isGroupHuge || this.#recent.find(request.ids, at, scope.key.salt) >= 0);
        return mayBeInFlight ? VERDICT.WAIT : this.#differs(request, scope);
      }
      this.#search ??= new CeilingSearch(scope.key, number, number);
      const outcome = this.#search.step(this.#lookup);
      if (isMiss(outcome)) return outcome;
      this.#search = null;
      if (outcome !== HIT || !this.#hasId(request.ids, at)) return this.#differs(request, scope);
      this.position = this.#lookup.frame.position;
    }
    this.first = request.expected + 1;
    this.last = request.expected + request.events.length;
    return VERDICT.REPEAT;
  }

  /** A stream that was deleted does not count as one, so "no stream" holds for other events than its first. */
  #differs(request: ComparedEvents, scope: RepeatScope): Verdict {
    return this.#index === 0 && request.expected === NO_STREAM && scope.isSoftDeleted ? VERDICT.NEW : VERDICT.CONFLICT;
  }

  #hasId(ids: Uint8Array, at: number): boolean {
    return equalBytes(this.#lookup.frame.bytes, this.#lookup.fields.eventIdAt, ids, at, 16);
  }
}

/** Ids kept in all; beyond it those of the stream that was asked for first are forgotten. */
const IDS_MAX = 262_144;
/** Records whose blocks are loaded at once when one had to be waited for. */
const PREFETCHED_RECORDS = 16;

/** Records that are no further apart than this many bytes are loaded together, and so many such runs at once. */
const RUN_GAP_BYTES = 65_536;
const PREFETCHED_RUNS = 16;

interface Past {
  /** Four words an id. */
  readonly words: Int32Array;
  readonly positions: Float64Array;
  readonly count: number;
  /** The stream's events behind this position are not among them. */
  readonly upTo: number;
}

/**
 * The event ids of the last events of streams, read from the log: for writes that expect no particular version and may
 * repeat what another writer of the same log, or this one before a restart, has written. What is written from then on
 * is among the recent ids; where those no longer reach back far enough the stream is read again.
 */
class PastIds {
  readonly #lookup: Lookup;
  readonly #recent: RecentIds;
  readonly #lookbackEvents: number;
  readonly #streams = new Map<string, Past>();
  #kept = 0;
  #current: Past | null = null;
  readonly #list = new EntryList();
  readonly #wanted = new Int32Array(4);
  #search: {
    readonly key: StreamKey;
    readonly upTo: number;
    words: Int32Array;
    positions: Float64Array;
    isListed: boolean;
    at: number;
    count: number;
  } | null = null;

  constructor(lookup: Lookup, recent: RecentIds, lookbackEvents: number) {
    this.#lookup = lookup;
    this.#recent = recent;
    this.#lookbackEvents = lookbackEvents;
  }

  /** Forgets a search that was not finished. */
  begin(): void {
    this.#search = null;
  }

  /** HIT once `find` knows the last events of the stream, whose last event number is given. */
  load(key: StreamKey, lastNumber: number): typeof HIT | Miss {
    const known = this.#streams.get(key.name);
    if (known !== undefined && known.upTo >= this.#recent.completeFrom) {
      this.#current = known;
      return HIT;
    }
    if (this.#search === null || this.#search.key !== key) {
      const room = Math.max(0, Math.min(this.#lookbackEvents, lastNumber + 1));
      this.#search = {
        key,
        upTo: this.#lookup.reader.end,
        words: new Int32Array(room * 4),
        positions: new Float64Array(room),
        isListed: false,
        at: 0,
        count: 0,
      };
    }
    const collected = this.#collect(Math.max(0, lastNumber + 1 - this.#lookbackEvents), lastNumber);
    if (isMiss(collected)) return collected;
    this.#keep();
    return HIT;
  }

  /**
   * Position of the event with the id at `at` in the stream that was loaded; -1 when it is not among its last events.
   */
  find(ids: Uint8Array, at: number): number {
    const { words, positions, count } = this.#current!;
    const w = this.#wanted;
    for (let i = 0; i < 4; i++) w[i] = i32(ids, at + i * 4);
    for (let i = 0, k = 0; i < count; i++, k += 4) {
      if (words[k] === w[0] && words[k + 1] === w[1] && words[k + 2] === w[2] && words[k + 3] === w[3])
        return positions[i]!;
    }
    return -1;
  }

  #collect(from: number, to: number): typeof HIT | Miss {
    const search = this.#search!;
    const lookup = this.#lookup;
    const list = this.#list;
    if (!search.isListed) {
      const listed = lookup.index.range(search.key.hi, search.key.lo, from, to, list);
      if (isMiss(listed)) return listed;
      search.isListed = true;
      this.#prefetch();
    }
    for (; search.at < list.length; search.at++) {
      const outcome = lookup.confirm(list.positions[search.at]!, search.key);
      if (isMiss(outcome)) {
        const end = Math.min(list.length, search.at + 1 + PREFETCHED_RECORDS);
        for (let i = search.at + 1; i < end; i++) lookup.reader.prefetch(list.positions[i]!);
        return outcome;
      }
      if (outcome === HIT) this.#take(list.positions[search.at]!);
    }
    return HIT;
  }

  /** The stream's events often lie in a few places, each of which is one read where reads are requests. */
  #prefetch(): void {
    const { positions, length } = this.#list;
    const { reader } = this.#lookup;
    let runs = 0;
    for (let from = 0, i = 1; i <= length && runs < PREFETCHED_RUNS; i++) {
      if (i < length && positions[i]! >= positions[i - 1]! && positions[i]! - positions[i - 1]! <= RUN_GAP_BYTES)
        continue;
      reader.prefetchRun(positions[from]!, positions[i - 1]!);
      from = i;
      runs++;
    }
  }

  #take(position: number): void {
    const search = this.#search!;
    // Several records may have one number, so there may be more of them than numbers.
    if (search.count === search.positions.length) {
      const positions = new Float64Array(search.count * 2 + 1);
      const words = new Int32Array(positions.length * 4);
      positions.set(search.positions);
      words.set(search.words);
      search.positions = positions;
      search.words = words;
    }
    const { bytes } = this.#lookup.frame;
    const at = this.#lookup.fields.eventIdAt;
    for (let i = 0; i < 4; i++) search.words[search.count * 4 + i] = i32(bytes, at + i * 4);
    search.positions[search.count++] = position;
  }

  #keep(): void {
    const { key, upTo, words, positions, count } = this.#search!;
    this.#search = null;
    this.#current = { words, positions, count, upTo };
    this.#forget(key.name);
    this.#streams.set(key.name, this.#current);
    this.#kept += count;
    for (const name of this.#streams.keys()) {
      if (this.#kept <= IDS_MAX && this.#streams.size <= IDS_MAX / 64) return;
      if (name !== key.name) this.#forget(name);
    }
  }

  #forget(name: string): void {
    this.#kept -= this.#streams.get(name)?.count ?? 0;
    this.#streams.delete(name);
  }
}
