import { SkuaError } from '../../base/errors.ts';
import type { Digest, Digests } from '../../ports/digests.ts';
import type { StorageFile } from '../../ports/storage.ts';
import { MD5_BYTES } from './chunk-format.ts';

/** Read at once of what no other reader needs. */
const READ_BYTES = 1_048_576;

/**
 * Compares the MD5 at the end of a completed chunk file with its content while the file is read to be written
 * elsewhere: a copy of damaged content must not get a checksum of its own that fits. `ChunkProof` gets every byte of
 * the file, in order; then `check` is asked, before what was written counts as good.
 */
export class ChunkProof {
  readonly #md5: Digest;
  readonly #name: string;
  readonly #covered: number;
  readonly #stored = new Uint8Array(MD5_BYTES);
  #at = 0;

  constructor(digests: Digests, name: string, fileBytes: number) {
    this.#md5 = digests.md5(fileBytes);
    this.#name = name;
    this.#covered = fileBytes - MD5_BYTES;
  }

  add(bytes: Uint8Array): void {
    const inside = Math.max(0, Math.min(bytes.length, this.#covered - this.#at));
    if (inside > 0) this.#md5.update(inside === bytes.length ? bytes : bytes.subarray(0, inside));
    if (inside < bytes.length) this.#stored.set(bytes.subarray(inside), this.#at + inside - this.#covered);
    this.#at += bytes.length;
  }

  /**
   * Reads on to `to` the bytes that no other reader needs; `between` is awaited between two pieces, with the bytes of
   * the last.
   */
  async addRange(file: StorageFile, to: number, between?: (bytes: number) => Promise<void>): Promise<void> {
    const buffer = new Uint8Array(Math.min(READ_BYTES, Math.max(0, to - this.#at)));
    while (this.#at < to) {
      const bytes = await file.read(this.#at, Math.min(READ_BYTES, to - this.#at), buffer);
      // A file that was cut short has no checksum any more.
      if (bytes.length === 0) return;
      this.add(bytes);
      if (this.#at < to) await between?.(bytes.length);
    }
  }

  /** Whether the file is as it was written. To be asked once, at its end. */
  get isSound(): boolean {
    const found = this.#md5.finish();
    return this.#at === this.#covered + MD5_BYTES && found.every((byte, i) => byte === this.#stored[i]);
  }

  /** Throws `log_corrupt`, with file and remedy, when the file is not as it was written. */
  check(refusal: (name: string) => SkuaError = chunkDamaged): void {
    if (!this.isSound) throw refusal(this.#name);
  }
}

/** A chunk file whose content does not fit its MD5, which is therefore not written anywhere else. */
export function chunkDamaged(name: string): SkuaError {
  return new SkuaError(
    'log_corrupt',
    `The content of chunk file ${name} does not match its checksum: it has changed since it was written, so it is neither rewritten nor copied. Run \`skua verify\` to find all damage, and restore the file from a backup.`,
    { file: name, offset: null },
  );
}
