import * as crypto from 'node:crypto';
import * as zlib from 'node:zlib';
import type { Digest, Digests } from '../core/ports/digests.ts';

/** Digests by the native code of Node.js. */
export const nodeDigests: Digests = {
  md5: () => digest('md5'),
  sha256: () => digest('sha256'),
  sha256Of(bytes) {
    // Text of one character a byte comes several times as fast as a Buffer, each of which has memory outside of the
    // heap.
    const text = crypto.hash('sha256', bytes, 'binary');
    const out = new Uint8Array(text.length);
    for (let i = 0; i < out.length; i++) out[i] = text.charCodeAt(i);
    return out;
  },
  crc32(bytes, seed) {
    return zlib.crc32(bytes, seed);
  },
};

function digest(algorithm: string): Digest {
  const digesting = crypto.createHash(algorithm);
  return {
    update(bytes) {
      digesting.update(bytes);
    },
    // A plain Uint8Array: `slice` of a Buffer would not copy, and the core relies on copies.
    finish() {
      return new Uint8Array(digesting.digest());
    },
  };
}
