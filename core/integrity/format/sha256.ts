import type { Digests } from '../../ports/digests.ts';
import type { Sha256 } from './chain-layout.ts';

/** Bytes of the longest input that is put together of several parts: a link. */
const JOINED_BYTES_MAX = 128;

/** SHA-256 as the hashes of proofs are written down: of one part of any length, or of several short ones. */
export function sha256By(digests: Digests): Sha256 {
  const joined = new Uint8Array(JOINED_BYTES_MAX);
  return (...parts) => {
    if (parts.length === 1) return digests.sha256Of(parts[0]!);
    let length = 0;
    for (const part of parts) {
      joined.set(part, length);
      length += part.length;
    }
    return digests.sha256Of(joined.subarray(0, length));
  };
}
