import type { Digests } from '../../ports/digests.ts';

/**
 * A block whose CRC-32 differs may differ in one byte only, as after a bit that flipped or a digit that somebody wrote
 * over: then the difference of the checksums says which it is. What a byte adds to a checksum goes through one step for
 * each byte behind it, and the steps can be gone back.
 */

/** Steps of a zero byte, by what they shift out, and back by the highest byte of what they lead to. */
interface Steps {
  readonly added: Uint32Array;
  readonly shiftedOut: Uint8Array;
}

/**
 * The index of the byte; null where no byte alone, or more than one, makes this difference. That of a larger change is
 * taken for that of one byte in 4 of 1000 blocks of 64 KiB. `difference` is that of two sums of `length` bytes, bit by
 * bit.
 */
export function onlyByteOf(digests: Digests, difference: number, length: number): number | null {
  const { added, shiftedOut } = stepsOf(digests);
  let sum = difference >>> 0;
  let found: number | null = null;
  for (let index = length - 1; index >= 0; index--) {
    const out = shiftedOut[sum >>> 24]!;
    sum = (((sum ^ added[out]!) << 8) | out) >>> 0;
    // Before its own step a byte stands alone in the sum.
    if (sum > 0xff || sum === 0) continue;
    if (found !== null) return null;
    found = index;
  }
  return found;
}

function stepsOf(digests: Digests): Steps {
  const added = new Uint32Array(256);
  const shiftedOut = new Uint8Array(256);
  const zero = digests.crc32(Uint8Array.of(0));
  for (let byte = 0; byte < 256; byte++) {
    const sum = digests.crc32(Uint8Array.of(byte)) ^ zero;
    added[byte] = sum;
    shiftedOut[sum >>> 24] = byte;
  }
  return { added, shiftedOut };
}
