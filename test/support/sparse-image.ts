/** Unit of allocation in bytes, as a file system's block. */
export const IMAGE_BLOCK_BYTES = 4_096;

/** The content of one simulated file: blocks that were written, and holes that read as zeros and take no space. */
export class SparseImage {
  readonly #blocks = new Map<number, Uint8Array>();
  /** Blocks that a copy has, too: whoever writes to one takes a copy of it first. */
  readonly #shared = new Set<Uint8Array>();
  size = 0;
  /** What was read last, while nothing has been written since. */
  #last: { readonly position: number; readonly bytes: Uint8Array } | null = null;

  get allocatedBytes(): number {
    return this.#blocks.size * IMAGE_BLOCK_BYTES;
  }

  /**
   * A copy, which nobody may write to: the next one to read the same gets it, too, as long as nothing has been written.
   */
  read(position: number, length: number): Uint8Array {
    const end = Math.max(position, Math.min(position + length, this.size));
    if (this.#last !== null && this.#last.position === position && this.#last.bytes.length === end - position)
      return this.#last.bytes;
    const out = new Uint8Array(end - position);
    for (let at = position; at < end;) {
      const index = Math.floor(at / IMAGE_BLOCK_BYTES);
      const to = Math.min(end, (index + 1) * IMAGE_BLOCK_BYTES);
      const block = this.#blocks.get(index);
      if (block !== undefined)
        out.set(block.subarray(at - index * IMAGE_BLOCK_BYTES, to - index * IMAGE_BLOCK_BYTES), at - position);
      at = to;
    }
    this.#last = { position, bytes: out };
    return out;
  }

  write(position: number, bytes: Uint8Array): void {
    const end = position + bytes.length;
    this.#last = null;
    for (let at = position; at < end;) {
      const index = Math.floor(at / IMAGE_BLOCK_BYTES);
      const to = Math.min(end, (index + 1) * IMAGE_BLOCK_BYTES);
      const block = this.#own(index) ?? this.#add(index, new Uint8Array(IMAGE_BLOCK_BYTES));
      block.set(bytes.subarray(at - position, to - position), at - index * IMAGE_BLOCK_BYTES);
      at = to;
    }
    if (bytes.length > 0 && end > this.size) this.size = end;
  }

  /** Bytes that a write of this range would allocate. */
  growth(position: number, length: number): number {
    let blocks = 0;
    const end = position + length;
    for (let index = Math.floor(position / IMAGE_BLOCK_BYTES); index * IMAGE_BLOCK_BYTES < end; index++) {
      if (!this.#blocks.has(index)) blocks++;
    }
    return blocks * IMAGE_BLOCK_BYTES;
  }

  truncate(size: number): void {
    this.#last = null;
    if (size < this.size) {
      for (const index of this.#blocks.keys()) {
        const start = index * IMAGE_BLOCK_BYTES;
        if (start >= size) this.#blocks.delete(index);
        else if (start + IMAGE_BLOCK_BYTES > size) this.#own(index)!.fill(0, size - start);
      }
    }
    this.size = size;
  }

  copy(): SparseImage {
    const copy = new SparseImage();
    copy.size = this.size;
    copy.#last = this.#last;
    for (const [index, block] of this.#blocks) {
      copy.#add(index, block);
      copy.#shared.add(block);
      this.#shared.add(block);
    }
    return copy;
  }

  #own(index: number): Uint8Array | undefined {
    const block = this.#blocks.get(index);
    return block !== undefined && this.#shared.delete(block) ? this.#add(index, block.slice()) : block;
  }

  #add(index: number, block: Uint8Array): Uint8Array {
    this.#blocks.set(index, block);
    return block;
  }
}
