import { fileReadOnly, type StorageFile } from './storage.ts';

interface BlockFileParts {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  /** Length of every block but the last. */
  readonly blockBytes: number;
  /** Block `number` of the file, from 0 on. */
  readonly block: (number: number) => Promise<Uint8Array>;
}

/**
 * A file that is only read, put together of blocks that come from elsewhere: objects, or what a backup holds of a file.
 */
export class BlockFile implements StorageFile {
  readonly path: string;
  readonly size: number;
  readonly #blockBytes: number;
  readonly #block: BlockFileParts['block'];

  constructor({ path, size, blockBytes, block }: BlockFileParts) {
    this.path = path;
    this.size = size;
    this.#blockBytes = blockBytes;
    this.#block = block;
  }

  async read(position: number, length: number): Promise<Uint8Array> {
    const end = Math.min(this.size, position + length);
    if (end <= position) return new Uint8Array(0);
    const out = new Uint8Array(end - position);
    for (let number = Math.floor(position / this.#blockBytes); number * this.#blockBytes < end; number++) {
      const start = number * this.#blockBytes;
      const from = Math.max(position, start);
      const block = await this.#block(number);
      out.set(block.subarray(from - start, Math.min(end, start + block.length) - start), from - position);
    }
    return out;
  }

  writeAt(): never {
    throw fileReadOnly(this.path);
  }
  async truncate(): Promise<void> {
    throw fileReadOnly(this.path);
  }
  async sync(): Promise<void> {}
  async seal(): Promise<void> {}
  async close(): Promise<void> {}
}
