import type { WasmMemory } from './webassembly.ts';

/** Pages of this size that hold zeros only are not kept, but zeroed again. */
const PAGE_BYTES = 4096;
/** A shorter gap of zeros is kept: two copies cost more than one that is a little longer. */
const GAP_PAGES_MAX = 4;
const ZEROS = Buffer.alloc(PAGE_BYTES);

/**
 * The whole state of an engine at one moment: its linear memory. Everything that a script can change lives there, so that
 * putting it back leaves nothing of what ran since, and brings free memory to zero as well.
 */
export class MemoryImage {
  readonly #runs: readonly { readonly start: number; readonly bytes: Uint8Array }[];
  /** Bytes that it covers, from the memory's beginning. */
  readonly length: number;

  private constructor(runs: readonly { start: number; bytes: Uint8Array }[], length: number) {
    this.#runs = runs;
    this.length = length;
  }

  static take(memory: WasmMemory, length: number): MemoryImage {
    const bytes = new Uint8Array(memory.buffer, 0, length);
    const runs: { start: number; bytes: Uint8Array }[] = [];
    let start = -1;
    let end = 0;
    for (let page = 0; page < bytes.length; page += PAGE_BYTES) {
      if (ZEROS.equals(bytes.subarray(page, page + PAGE_BYTES))) continue;
      if (start >= 0 && page - end > GAP_PAGES_MAX * PAGE_BYTES) {
        runs.push({ start, bytes: bytes.slice(start, end) });
        start = -1;
      }
      if (start < 0) start = page;
      end = page + PAGE_BYTES;
    }
    if (start >= 0) runs.push({ start, bytes: bytes.slice(start, end) });
    return new MemoryImage(runs, bytes.length);
  }

  /** What lies behind the image's length stays as it is. */
  put(memory: WasmMemory): void {
    const bytes = new Uint8Array(memory.buffer, 0, this.length);
    let at = 0;
    for (const run of this.#runs) {
      bytes.fill(0, at, run.start);
      bytes.set(run.bytes, run.start);
      at = run.start + run.bytes.length;
    }
    bytes.fill(0, at);
  }
}
