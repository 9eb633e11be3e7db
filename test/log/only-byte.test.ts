import { describe, expect, it } from 'vitest';
import { onlyByteOf } from '../../core/log/block-sums/only-byte.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { Random } from '../support/random.ts';

const BYTES = 65_536;

function differenceOf(bytes: Uint8Array, changes: readonly (readonly [at: number, bits: number])[]): number {
  const other = bytes.slice();
  for (const [at, bits] of changes) other[at]! ^= bits;
  return nodeDigests.crc32(bytes) ^ nodeDigests.crc32(other);
}

describe('the one byte that makes two checksums differ', () => {
  const random = new Random(5);
  const bytes = random.bytes(BYTES);

  it('is found wherever it is and whatever it has become', () => {
    for (const at of [0, 1, 255, 256, 40_000, BYTES - 2, BYTES - 1, ...random.bytes(40).map((byte) => byte * 256)])
      for (const bits of [1, 2, 0x80, 0xff])
        expect(onlyByteOf(nodeDigests, differenceOf(bytes, [[at, bits]]), BYTES)).toBe(at);
    const few = bytes.subarray(0, 3);
    expect(onlyByteOf(nodeDigests, differenceOf(few, [[1, 7]]), few.length)).toBe(1);
  });

  it('is none where more than one are others', () => {
    let taken = 0;
    for (let i = 0; i < 500; i++) {
      const at = random.int(0, BYTES - 5);
      const length = random.int(2, 4);
      const changes = Array.from({ length }, (_, j) => [at + j, random.int(1, 255)] as const);
      if (onlyByteOf(nodeDigests, differenceOf(bytes, changes), BYTES) !== null) taken++;
    }
    expect(taken).toBeLessThan(10);
  });

  it('is none without a difference', () => {
    expect(onlyByteOf(nodeDigests, 0, BYTES)).toBe(null);
  });
});
