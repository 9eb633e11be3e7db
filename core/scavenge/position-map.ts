import { putI32, putI64 } from '../bytes.ts';

export const MAP_ENTRY_BYTES = 12;
/** Entries of one page: a chunk of a few hundred thousand records takes a handful. */
const PAGE_ENTRIES = 65_536;
const FIRST_PAGE_ENTRIES = 1_024;

/** The position map of a chunk that is being written, in the bytes of the file; disk-format.md section 2.5. */
export class PositionMap {
  readonly #full: Uint8Array[] = [];
  #page = new Uint8Array(FIRST_PAGE_ENTRIES * MAP_ENTRY_BYTES);
  #used = 0;
  count = 0;

  get sizeBytes(): number { return this.count * MAP_ENTRY_BYTES; }

  /** `actual`: data offset of the record; `logical`: its position relative to the start of the first chunk. Both ascend. */
  add(actual: number, logical: number): void {
    if (this.#used === this.#page.length) this.#turn();
    const page = this.#page;
    const at = this.#used;
    putI32(page, at, actual);
    putI64(page, at + 4, logical);
    this.#used = at + MAP_ENTRY_BYTES;
    this.count++;
  }

  #turn(): void {
    this.#full.push(this.#page);
    this.#page = new Uint8Array(PAGE_ENTRIES * MAP_ENTRY_BYTES);
    this.#used = 0;
  }

  /** All entries, in pieces. */
  pieces(): readonly Uint8Array[] {
    return [...this.#full, this.#page.subarray(0, this.#used)];
  }
}
