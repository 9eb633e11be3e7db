import { type EntryList, IndexEntry } from '../index/entries.ts';
import type { StreamHasher } from '../stream-hash.ts';
import { END, HIT, isMiss, type Miss, type Outcome } from '../cache/step.ts';
import type { LogReader } from '../log/log-reader.ts';
import type { RecordFrame } from '../log/records.ts';
import type { EventIndex } from '../streams/deps.ts';
import type { ObjectView } from './object-view.ts';

/** The view in force. It is replaced in one step, between two steps of any reader. */
export interface CurrentView { view: ObjectView }

/** The log as the view in force has it. Positions stay the same from view to view. */
export class ViewLogReader implements LogReader {
  readonly #current: CurrentView;

  constructor(current: CurrentView) {
    this.#current = current;
  }

  get end(): number { return this.#current.view.table.end; }
  readAt(position: number, frame: RecordFrame, isSparse?: boolean): Outcome { return this.#current.view.table.readAt(position, frame, isSparse); }
  prefetch(position: number): void { this.#current.view.table.prefetch(position); }
  prefetchRun(from: number, to: number): void { this.#current.view.table.prefetchRun(from, to); }
  readForward(position: number, frame: RecordFrame): Outcome { return this.#current.view.table.readForward(position, frame); }
  readBackward(position: number, frame: RecordFrame): Outcome { return this.#current.view.table.readBackward(position, frame); }
  isBoundary(position: number): Outcome { return this.#current.view.table.isBoundary(position); }
}

/**
 * The index as the view in force has it: entries of the tail in memory, and the tables of the manifest. There is no
 * existence filter: other writers' streams would have to get into it first.
 */
export class ViewIndex implements EventIndex {
  readonly hasher: StreamHasher;
  readonly #current: CurrentView;
  readonly #candidate = new IndexEntry();

  constructor(current: CurrentView, hasher: StreamHasher) {
    this.#current = current;
    this.hasher = hasher;
  }

  add(hi: number, lo: number, version: number, position: number): void {
    this.#current.view.mem.add(hi, lo, version, position);
  }

  endBulk(commitPosition: number): void {
    this.#current.view.lastPosition = commitPosition;
  }

  ready(): null { return null; }
  mightContain(): boolean { return true; }
  addStream(): void {}
  noteExistenceCheckpoint(): void {}

  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#nearest(hi, lo, version, position, out, true);
  }

  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    return this.#nearest(hi, lo, version, position, out, false);
  }

  /** Null when all tables are open; else they are opened first, all at once. */
  #opening(): Miss | null {
    const { tables } = this.#current.view;
    for (const { reader } of tables) if (reader === null) return this.#open();
    return null;
  }

  #open(): Miss {
    const opening = Promise.all(this.#current.view.tables.map((table) => table.open())).then(() => {});
    // Whoever missed may have gone before he waited.
    opening.catch(() => {});
    return opening;
  }

  /** Asks all parts: with colliding hashes the nearest entry can be in any of them. */
  #nearest(hi: number, lo: number, version: number, position: number, out: IndexEntry, isFloor: boolean): Outcome {
    const opening = this.#opening();
    if (opening !== null) return opening;
    const c = this.#candidate;
    const { mem, tables } = this.#current.view;
    let isFound = isFloor ? mem.floor(hi, lo, version, position, out) : mem.ceiling(hi, lo, version, position, out);
    for (const { reader } of tables) {
      const outcome = isFloor ? reader!.floor(hi, lo, version, position, c) : reader!.ceiling(hi, lo, version, position, c);
      if (isMiss(outcome)) return outcome;
      if (outcome !== HIT) continue;
      const order = c.version - out.version || c.position - out.position;
      if (isFound && (isFloor ? order <= 0 : order >= 0)) continue;
      out.version = c.version;
      out.position = c.position;
      isFound = true;
    }
    return isFound ? HIT : END;
  }

  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): Outcome {
    const opening = this.#opening();
    if (opening !== null) return opening;
    out.clear();
    const { mem, tables } = this.#current.view;
    mem.range(hi, lo, fromVersion, toVersion, out);
    for (const { reader } of tables) {
      const outcome = reader!.range(hi, lo, fromVersion, toVersion, out);
      if (isMiss(outcome)) return outcome;
    }
    out.sortAscending();
    return HIT;
  }
}
