import { equalBytes } from '../bytes.ts';
import type { BlockCache } from '../cache/block-cache.ts';
import { EntryList, IndexEntry } from '../index/entries.ts';
import type { TableReader } from '../index/table-search.ts';
import { END, HIT, isMiss, type Outcome, untilHit } from '../cache/step.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, TOMBSTONE } from '../log/records.ts';
import type { FrozenMemTable } from './frozen-mem-table.ts';
import type { RunChunks } from './run-chunks.ts';

/** Numbers looked at together where the entries at the end of a stream are behind the limit, or another stream's. */
const BACKWARD_NUMBERS = 1_024;
const POSITION_MAX = Number.MAX_SAFE_INTEGER;

/** A stream as the index is asked for it. */
export interface IndexKey {
  readonly hi: number;
  readonly lo: number;
  /** The name in UTF-8 where the hash is shared, so that every entry is confirmed by its record; else null. */
  readonly name: Uint8Array | null;
}

export interface RunIndexParts {
  readonly tables: readonly TableReader[];
  readonly memTables: readonly FrozenMemTable[];
  readonly chunks: RunChunks;
  readonly cache: BlockCache;
  /** Entries of records at or behind this position do not exist for the run. */
  readonly before: number;
}

/**
 * The index as a run sees it: the entries of all tables and memtables that point before the scavenge point, in order,
 * one a number (the earliest in the log, which is the one that readers see), exact where streams share a hash.
 */
export class RunIndex {
  readonly #parts: RunIndexParts;
  readonly #entry = new IndexEntry();
  readonly #nearest = new IndexEntry();
  readonly #backward = new EntryList();
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();

  constructor(parts: RunIndexParts) {
    this.#parts = parts;
  }

  /** Number of the last event of the stream, -1 when it has none. */
  async lastNumber(key: IndexKey): Promise<number> {
    const { before } = this.#parts;
    for (let to = TOMBSTONE; to >= 0;) {
      const highest = to;
      if (await untilHit(() => this.#floor(key, highest)) === END) return -1;
      const { version, position } = this.#nearest;
      if (key.name === null && position < before) return version;
      const from = Math.max(0, version - BACKWARD_NUMBERS + 1);
      await this.#range(key, from, version, this.#backward);
      for (let i = this.#backward.length - 1; i >= 0; i--) {
        if (await this.#counts(key, this.#backward.positions[i]!)) return this.#backward.versions[i]!;
      }
      to = from - 1;
    }
    return -1;
  }

  /**
   * Fills `out` with the entries of the first event numbers at or after `from`: as many numbers as `numbers` says, beginning
   * with the first that has an entry. `last` is the stream's last number. Returns the number to go on with, which is
   * greater than `last` when there are no more.
   */
  async slice(key: IndexKey, from: number, last: number, numbers: number, out: EntryList): Promise<number> {
    out.clear();
    if (from > last) return from;
    let first = from;
    if (last - from >= numbers) {
      // The last number has an entry, so there is one.
      if (await untilHit(() => this.#ceiling(key, from)) === HIT) first = this.#nearest.version;
    }
    const to = Math.min(last, first + numbers - 1);
    await this.#range(key, first, to, out);
    if (key.name === null) this.#keepEarliest(out);
    else await this.#keepConfirmed(key, out);
    return to + 1;
  }

  /** Drops what lies behind the limit, and all but the first entry of a number. */
  #keepEarliest(list: EntryList): void {
    const { before } = this.#parts;
    const { versions, positions } = list;
    let kept = 0;
    for (let i = 0; i < list.length; i++) {
      if (positions[i]! >= before || (kept > 0 && versions[kept - 1] === versions[i])) continue;
      versions[kept] = versions[i]!;
      positions[kept++] = positions[i]!;
    }
    list.length = kept;
  }

  async #keepConfirmed(key: IndexKey, list: EntryList): Promise<void> {
    const { versions, positions } = list;
    let kept = 0;
    for (let i = 0; i < list.length; i++) {
      if (kept > 0 && versions[kept - 1] === versions[i]) continue;
      if (!(await this.#counts(key, positions[i]!))) continue;
      versions[kept] = versions[i]!;
      positions[kept++] = positions[i]!;
    }
    list.length = kept;
  }

  /** True when the entry with this position is one of the stream's, as far as the run goes. */
  async #counts(key: IndexKey, position: number): Promise<boolean> {
    if (position >= this.#parts.before) return false;
    const { name } = key;
    if (name === null) return true;
    const frame = this.#frame;
    if (!(await this.#parts.chunks.record(position, frame)) || frame.type !== PREPARE) return false;
    const fields = this.#fields;
    parsePrepare(frame, fields);
    return fields.streamLength === name.length && equalBytes(frame.bytes, fields.streamAt, name, 0, name.length);
  }

  /** Leaves the greatest entry with a number of at most `version` in `#nearest`. */
  #floor({ hi, lo }: IndexKey, version: number): Outcome {
    const { tables, memTables } = this.#parts;
    const entry = this.#entry;
    let isFound = false;
    for (const table of memTables) if (table.floor(hi, lo, version, entry)) isFound = this.#takeGreater(isFound);
    for (const table of tables) {
      const outcome = table.floor(hi, lo, version, POSITION_MAX, entry);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) isFound = this.#takeGreater(isFound);
    }
    return isFound ? HIT : END;
  }

  #takeGreater(isFound: boolean): true {
    const { version, position } = this.#entry;
    const nearest = this.#nearest;
    if (!isFound || version > nearest.version || (version === nearest.version && position < nearest.position)) {
      nearest.version = version;
      nearest.position = position;
    }
    return true;
  }

  /** Leaves the least number of at least `version` in `#nearest`. */
  #ceiling({ hi, lo }: IndexKey, version: number): Outcome {
    const { tables, memTables } = this.#parts;
    const entry = this.#entry;
    let least = Infinity;
    for (const table of memTables) if (table.ceiling(hi, lo, version, entry)) least = Math.min(least, entry.version);
    for (const table of tables) {
      const outcome = table.ceiling(hi, lo, version, 0, entry);
      if (isMiss(outcome)) return outcome;
      if (outcome === HIT) least = Math.min(least, entry.version);
    }
    this.#nearest.version = least;
    return least === Infinity ? END : HIT;
  }

  /** All entries of the hash with numbers from `from` to `to`, ascending by number, then position. */
  async #range({ hi, lo }: IndexKey, from: number, to: number, out: EntryList): Promise<void> {
    const { tables, memTables } = this.#parts;
    out.clear();
    for (const table of memTables) table.range(hi, lo, from, to, out);
    for (const table of tables) {
      const { length } = out;
      // Only this table is asked again.
      await untilHit(() => {
        out.length = length;
        return table.range(hi, lo, from, to, out);
      });
    }
    out.sortAscending();
  }
}
