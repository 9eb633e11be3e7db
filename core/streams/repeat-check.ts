import { equalBytes } from '../bytes.ts';
import { END, HIT, MISS } from '../log/log-reader.ts';
import { NO_STREAM } from './api.ts';
import type { AppendRequest } from './append-request.ts';
import { CeilingSearch, type Lookup, type StreamKey } from './lookup.ts';
import type { PastIds } from './past-ids.ts';
import type { RecentIds } from './recent-ids.ts';

/** New events. */
export const NEW = 10;
/** All written before: `first`, `last` and `position` say where. */
export const REPEAT = 11;
/** Neither: another writer was first, or a part was written before. */
export const CONFLICT = 12;
/** It depends on the group in flight: commit that, then begin anew. */
export const WAIT = 13;
export type Verdict = typeof NEW | typeof REPEAT | typeof CONFLICT | typeof WAIT | typeof MISS;

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

/** Decides whether a request is a repeat (http-api.md section 2.4), in steps. */
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

  constructor(lookup: Lookup, recent: RecentIds, past: PastIds | null) {
    this.#lookup = lookup;
    this.#recent = recent;
    this.#past = past;
  }

  begin(): void {
    this.#index = 0;
    this.#search = null;
    this.#past?.begin();
  }

  /** By the ids alone, as far as they are remembered or stand in the stream's last events. */
  byIds(request: AppendRequest, scope: RepeatScope): Verdict {
    const { ids } = request;
    for (; this.#index < request.events.length; this.#index++) {
      const at = request.idsAt + this.#index * 16;
      let position = this.#recent.find(ids, at, scope.key.salt);
      if (position < 0 && this.#past !== null) {
        if (this.#past.load(scope.key, scope.committedLast) === MISS) return MISS;
        position = this.#past.find(ids, at);
      }
      if (position >= scope.groupStart) return WAIT;
      const outcome = position < 0 ? END : this.#lookup.confirm(position, scope.key);
      if (outcome === MISS) return MISS;
      if (outcome === END || !this.#hasId(ids, at)) return this.#index === 0 ? NEW : CONFLICT;
      this.last = this.#lookup.fields.eventNumber;
      this.position = position;
      if (this.#index === 0) this.first = this.last;
    }
    return request.events.length === 0 ? NEW : REPEAT;
  }

  /** Event k of the request must be event `expected` + 1 + k of the stream. */
  byNumbers(request: AppendRequest, scope: RepeatScope): Verdict {
    if (request.events.length === 0) return CONFLICT;
    for (; this.#index < request.events.length; this.#index++) {
      const number = request.expected + 1 + this.#index;
      const at = request.idsAt + this.#index * 16;
      if (number > scope.committedLast) {
        // Only an id that is among the recent ones can be in flight.
        const mayBeInFlight = number <= scope.latestLast && (scope.isGroupHuge || this.#recent.find(request.ids, at, scope.key.salt) >= 0);
        return mayBeInFlight ? WAIT : this.#differs(request, scope);
      }
      this.#search ??= new CeilingSearch(scope.key, number, number);
      const outcome = this.#search.step(this.#lookup);
      if (outcome === MISS) return MISS;
      this.#search = null;
      if (outcome !== HIT || !this.#hasId(request.ids, at)) return this.#differs(request, scope);
      this.position = this.#lookup.frame.position;
    }
    this.first = request.expected + 1;
    this.last = request.expected + request.events.length;
    return REPEAT;
  }

  /** A stream that was deleted does not count as one, so "no stream" holds for other events than its first. */
  #differs(request: AppendRequest, scope: RepeatScope): Verdict {
    return this.#index === 0 && request.expected === NO_STREAM && scope.isSoftDeleted ? NEW : CONFLICT;
  }

  #hasId(ids: Uint8Array, at: number): boolean {
    return equalBytes(this.#lookup.frame.bytes, this.#lookup.fields.eventIdAt, ids, at, 16);
  }
}
