/** Largest unit of allocation in bytes. Blocks of the block cache lie inside one page, so they are read as views. */
export const PAGE_BYTES = 1_048_576;
/** First allocation of a page in bytes: small files stay small. */
const PAGE_BYTES_MIN = 4_096;

const NOTHING = new Uint8Array(0);
/** Where ranges that were never written are read from. Nobody writes to what `read` returns. */
const ZEROS = new Uint8Array(PAGE_BYTES);

/**
 * The bytes of one sparse file in memory. A page is allocated when something is written to it and grows by doubling up
 * to PAGE_BYTES, so a chunk file with its full length from the start costs nothing until it is filled.
 */
export class MemoryPages {
  readonly #pages: (Uint8Array | undefined)[] = [];
  size = 0;
  /** Bytes of memory held by the pages. */
  allocatedBytes = 0;

  /** A view where the range lies in one page, else a copy; fewer bytes than asked for at the end of the file. */
  read(position: number, length: number): Uint8Array {
    const end = Math.min(position + length, this.size);
    if (end <= position) return NOTHING;
    const index = Math.floor(position / PAGE_BYTES);
    const from = position - index * PAGE_BYTES;
    const to = end - index * PAGE_BYTES;
    if (to <= PAGE_BYTES) {
      const page = this.#pages[index];
      if (page === undefined) return ZEROS.subarray(from, to);
      if (to <= page.length) return page.subarray(from, to);
    }
    return this.#copy(position, end);
  }

  #copy(position: number, end: number): Uint8Array {
    const out = new Uint8Array(end - position);
    for (let at = position; at < end;) {
      const index = Math.floor(at / PAGE_BYTES);
      const from = at - index * PAGE_BYTES;
      const to = Math.min(end - index * PAGE_BYTES, PAGE_BYTES);
      const page = this.#pages[index];
      if (page !== undefined && from < page.length) out.set(page.subarray(from, Math.min(to, page.length)), at - position);
      at += to - from;
    }
    return out;
  }

  /** Bytes of memory that a write of this range would add. */
  growth(position: number, length: number): number {
    const end = position + length;
    let bytes = 0;
    for (let at = position; at < end;) {
      const index = Math.floor(at / PAGE_BYTES);
      const to = Math.min(end - index * PAGE_BYTES, PAGE_BYTES);
      const held = this.#pages[index]?.length ?? 0;
      if (to > held) bytes += pageBytes(held, to) - held;
      at = index * PAGE_BYTES + to;
    }
    return bytes;
  }

  write(position: number, bytes: Uint8Array): void {
    const end = position + bytes.length;
    for (let at = position; at < end;) {
      const index = Math.floor(at / PAGE_BYTES);
      const from = at - index * PAGE_BYTES;
      const to = Math.min(end - index * PAGE_BYTES, PAGE_BYTES);
      const part = to - from === bytes.length ? bytes : bytes.subarray(at - position, at - position + to - from);
      this.#page(index, to).set(part, from);
      at += to - from;
    }
    if (end > this.size) this.size = end;
  }

  /** The page with at least `bytes` bytes of memory. */
  #page(index: number, bytes: number): Uint8Array {
    const page = this.#pages[index];
    const held = page?.length ?? 0;
    if (page !== undefined && held >= bytes) return page;
    const grown = new Uint8Array(pageBytes(held, bytes));
    if (page !== undefined) grown.set(page);
    this.#pages[index] = grown;
    this.allocatedBytes += grown.length - held;
    return grown;
  }

  truncate(size: number): void {
    if (size < this.size) {
      const keep = Math.ceil(size / PAGE_BYTES);
      for (let i = keep; i < this.#pages.length; i++) this.allocatedBytes -= this.#pages[i]?.length ?? 0;
      if (this.#pages.length > keep) this.#pages.length = keep;
      // What lies beyond the end must read as zeros should the file grow again.
      const inLast = size - (keep - 1) * PAGE_BYTES;
      if (keep > 0) this.#pages[keep - 1]?.fill(0, inLast);
    }
    this.size = size;
  }
}

function pageBytes(held: number, needed: number): number {
  let bytes = Math.max(held, PAGE_BYTES_MIN);
  while (bytes < needed) bytes *= 2;
  return bytes;
}
