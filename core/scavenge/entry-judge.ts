import type { TableEntry } from '../index/table-format.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { isMetastream } from '../streams/names.ts';
import type { StoredRetention } from '../streams/retention.ts';
import type { RecordNames } from './record-names.ts';
import { type RunSettings, storedRetention } from './run-files.ts';

/** Streams of one shared hash that are remembered at a time. */
const NAMES_MAX = 1_024;

/**
 * Says which index entries stay; scavenge.md section 8. Entries come sorted by hash, so a stream's data are looked up
 * once. Where streams share a hash the record tells whose entry it is, and an entry without a record goes.
 */
export class EntryJudge {
  readonly #state: ScavengeState;
  readonly #pointPosition: number;
  readonly #rule: StoredRetention;
  readonly #names: RecordNames;
  readonly #keepFromByName = new Map<string, number>();
  #hi = -1;
  #lo = -1;
  #keepFrom = 0;
  /** Whether several streams have the hash of the last entry. */
  isShared = false;

  constructor(state: ScavengeState, settings: RunSettings, names: RecordNames) {
    this.#state = state;
    this.#pointPosition = settings.point.position;
    this.#rule = storedRetention(settings);
    this.#names = names;
  }

  /** True when the entry stays. A promise only where its record has to be read. */
  keeps(entry: TableEntry): boolean | Promise<boolean> {
    if (entry.hi !== this.#hi || entry.lo !== this.#lo) this.#begin(entry.hi, entry.lo);
    if (entry.position >= this.#pointPosition) return true;
    return this.isShared ? this.#keepsShared(entry.version, entry.position) : entry.version >= this.#keepFrom;
  }

  #begin(hi: number, lo: number): void {
    this.#hi = hi;
    this.#lo = lo;
    this.#keepFromByName.clear();
    this.isShared = this.#state.isSharedHash(hi, lo);
    if (this.isShared) return;
    const original = this.#state.originalByHash(hi, lo);
    if (original === undefined) this.#rule.ofMetastream(this.#state.metastreamByHash(hi, lo));
    else this.#rule.ofOriginal(original);
    this.#keepFrom = this.#rule.firstEntry;
  }

  async #keepsShared(version: number, position: number): Promise<boolean> {
    const name = await this.#names.streamAt(position);
    return name !== null && version >= this.#keepFromOf(name);
  }

  #keepFromOf(name: string): number {
    const known = this.#keepFromByName.get(name);
    if (known !== undefined) return known;
    if (isMetastream(name)) this.#rule.ofMetastream(this.#state.metastream(name, this.#hi, this.#lo));
    else this.#rule.ofOriginal(this.#state.original(name, this.#hi, this.#lo));
    const keepFrom = this.#rule.firstEntry;
    if (this.#keepFromByName.size >= NAMES_MAX) this.#keepFromByName.clear();
    this.#keepFromByName.set(name, keepFrom);
    return keepFrom;
  }
}
