import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Digest, Digests } from '../core/ports/digests.ts';

/** Digests by the native code of Node.js. */
export const nodeDigests: Digests = {
  md5: () => digest('md5'),
  sha256: () => digest('sha256'),
  crc32(bytes, seed) { return crc32(bytes, seed); },
};

function digest(algorithm: string): Digest {
  const hash = createHash(algorithm);
  return {
    update(bytes) { hash.update(bytes); },
    // A plain Uint8Array: `slice` of a Buffer would not copy, and the core relies on copies.
    finish() { return new Uint8Array(hash.digest()); },
  };
}
