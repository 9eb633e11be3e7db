import type { Digests } from '../ports/digests.ts';
import type { Sha256 } from './layout.ts';

/** SHA-256 as the hashes of proofs are written down. */
export function sha256By(digests: Digests): Sha256 {
  return (...parts) => {
    const digest = digests.sha256();
    for (const part of parts) digest.update(part);
    return digest.finish();
  };
}
