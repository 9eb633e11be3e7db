import { describe, expect, it } from 'vitest';
import { BLOCK_BYTES, BlockCache } from '../../core/cache/cache.ts';
import { HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { decodeSlot, SLOT_BYTES, slotOffset } from '../../core/log/format/commit-slot.ts';
import { crcWithBlock } from '../../core/log/block-sums/crc32-combine.ts';
import { OngoingChunk } from '../../core/log/chunk/ongoing-chunk.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { contentOf } from './kit.ts';

const { crc32 } = nodeDigests;
const CHUNK = 32 * BLOCK_BYTES;

function bytes(length: number, seed: number): Uint8Array {
  const out = new Uint8Array(length);
  for (let i = 0, x = seed; i < length; i++) {
    x = (Math.imul(x, 1_664_525) + 1_013_904_223) | 0;
    out[i] = x >>> 24;
  }
  return out;
}

describe('checksums of a group', () => {
  it.each([0, 1, 7, BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 5])(
    'of %d bytes and a block behind them are joined',
    (before) => {
      const all = bytes(before + BLOCK_BYTES, before + 1);
      expect(crcWithBlock(crc32(all.subarray(0, before)), crc32(all.subarray(before)))).toBe(crc32(all));
    },
  );

  it.each([
    ['that stay within a block', [1, 40, 5_000]],
    ['that end with a block', [BLOCK_BYTES - HEADER_BYTES, 1]],
    ['that are a block', [BLOCK_BYTES - HEADER_BYTES, BLOCK_BYTES, BLOCK_BYTES, 9]],
    [
      'that are as long as a block and lie across two',
      [100, BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES - HEADER_BYTES - 100],
    ],
    [
      'that begin, hold and end blocks',
      [30, 5 * BLOCK_BYTES + 11, 60, 3 * BLOCK_BYTES, BLOCK_BYTES - HEADER_BYTES - 101, 4 * BLOCK_BYTES, 77],
    ],
  ])('stand in its slot and in the sums of the blocks: groups %s', async (_, lengths) => {
    const storage = new MemoryStorage();
    const ongoing = await OngoingChunk.create(
      { storage, cache: new BlockCache(0), digests: nodeDigests, ids: new SeededIds(1), chunkSize: CHUNK },
      0,
      1,
    );
    let end = HEADER_BYTES;
    for (const [i, length] of lengths.entries()) {
      const group = bytes(length, i + 1);
      await ongoing.append(group);
      end += length;
      const file = await contentOf(storage, ongoing.chunk.name);
      expect(decodeSlot(file.subarray(slotOffset(CHUNK, i + 1)).subarray(0, SLOT_BYTES), nodeDigests)).toMatchObject({
        checksum: crc32(group),
        end: end - HEADER_BYTES,
      });
      const { sums, end: vouchedTo } = ongoing.checksummed({ position: -1, bytes: new Uint8Array(0) });
      expect(vouchedTo).toBe(end);
      const blocks = Array.from({ length: Math.ceil(end / BLOCK_BYTES) }, (__, block) =>
        crc32(file.subarray(block * BLOCK_BYTES, Math.min(end, (block + 1) * BLOCK_BYTES))),
      );
      expect([...sums]).toEqual(blocks);
    }
    await ongoing.settle();
  });
});
