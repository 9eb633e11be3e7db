import { describe, expect, test } from 'vitest';
import { BLOCK_BYTES, BlockCache } from '../../core/cache/cache.ts';
import { HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { OngoingFile } from '../../core/shared-log/files/files.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { Random } from '../support/random.ts';

const ORIGIN = 10 * 1_048_576;
const random = new Random(5);

/** A file with segments of these lengths behind its header, and the bytes that it should have. */
async function make(lengths: readonly number[]): Promise<{
  file: OngoingFile;
  bytes: () => Uint8Array;
  append: (length: number) => void;
  counting: CountingObjects;
}> {
  const counting = new CountingObjects(new MemoryObjects());
  const header = random.bytes(HEADER_BYTES);
  const parts = [header];
  let at = ORIGIN;
  const segments = [];
  for (const [i, length] of lengths.entries()) {
    const data = random.bytes(length);
    await counting.put(`files/${i}`, data);
    parts.push(data);
    segments.push({ key: `files/${i}`, from: at, to: at + length });
    at += length;
  }
  const file = new OngoingFile(counting, 'chunk', ORIGIN, header, segments);
  counting.reset();
  return {
    file,
    counting,
    bytes: () => Buffer.concat(parts),
    append: (length) => {
      const data = random.bytes(length);
      parts.push(data);
      file.append(data);
    },
  };
}

describe('the file of a chunk that is being written', () => {
  test.each<[string, number[]]>([
    ['no segment', []],
    ['a short one', [1_000]],
    ['some', [70_000, 5, 60_000]],
    ['one that ends with a block', [BLOCK_BYTES - HEADER_BYTES]],
  ])('with %s gives every range of what is there', async (_, lengths) => {
    const { file, bytes, append } = await make(lengths);
    for (let i = 0; i < 60; i++) {
      append(random.int(1, 9_000));
      const all = bytes();
      for (let k = 0; k < 6; k++) {
        const from = random.int(0, all.length - 1);
        const length = random.int(1, Math.min(all.length - from, 200_000));
        expect(
          Buffer.compare((await file.read(from, length)).subarray(0, length), all.subarray(from, from + length)),
          `${from} + ${length} of ${all.length}`,
        ).toBe(0);
      }
    }
    const data = bytes().subarray(HEADER_BYTES + lengths.reduce((a, b) => a + b, 0));
    expect(Buffer.compare(file.appended(ORIGIN + lengths.reduce((a, b) => a + b, 0), data.length), data)).toBe(0);
  });

  test('costs no request for what was appended, and one for the seam', async () => {
    const { file, append, counting } = await make([100_000]);
    append(200_000);
    const inMemory = file.read(2 * BLOCK_BYTES, 1_000);
    expect(inMemory).toBeInstanceOf(Uint8Array);
    expect(counting.counts().gets).toBe(0);
    await Promise.all([file.read(BLOCK_BYTES, 10), file.read(BLOCK_BYTES + 100, 10)]);
    await file.read(BLOCK_BYTES, BLOCK_BYTES);
    expect(counting.counts()).toMatchObject({ gets: 1, bytesOut: 100_000 + HEADER_BYTES - BLOCK_BYTES });
  });

  test.each([0, 1_000, 200_000, 700_000])(
    'seen through the cache is what it is, while it grows behind %i bytes of segments',
    async (stored) => {
      const { file, bytes, append } = await make(stored === 0 ? [] : [stored]);
      const cache = new BlockCache(1_048_576);
      const cached = cache.attach(file);
      append(100);
      for (let i = 0; i < 300; i++) {
        if (random.int(0, 2) === 0) append(random.int(1, 30_000));
        const all = bytes();
        // As often as not near the end, where the seam is and the growing blocks are.
        const from = random.int(random.int(0, 1) === 0 ? 0 : Math.max(0, all.length - 150_000), all.length - 1);
        const length = random.int(1, Math.min(all.length - from, 120_000));
        if (random.int(0, 5) === 0)
          cached.prefetchRun(Math.floor(from / BLOCK_BYTES), Math.floor((from + length) / BLOCK_BYTES));
        let seen = cached.bytes(from, length);
        for (let tries = 0; seen instanceof Promise && tries < 20; tries++) {
          await seen;
          seen = cached.bytes(from, length);
        }
        expect(
          Buffer.compare(seen as Uint8Array, all.subarray(from, from + length)),
          `${from} + ${length} of ${all.length}`,
        ).toBe(0);
      }
    },
  );

  test('a block that the cache holds grows with what is appended', async () => {
    const { file, bytes, append } = await make([1_000]);
    append(100);
    const cached = new BlockCache(1_048_576).attach(file);
    expect(cached.bytes(0, 10)).toBeInstanceOf(Promise);
    await file.read(0, 10);
    let block = cached.block(0);
    while (block instanceof Promise) {
      await Promise.resolve();
      block = cached.block(0);
    }
    append(30_000);
    const all = bytes();
    expect(Buffer.compare(cached.bytes(500, 25_000) as Uint8Array, all.subarray(500, 25_500))).toBe(0);
    append(100_000);
    expect(Buffer.compare(cached.bytes(60_000, 20_000) as Uint8Array, bytes().subarray(60_000, 80_000))).toBe(0);
  });

  test('is never written to by others', async () => {
    const { file } = await make([]);
    expect(() => file.writeAt()).toThrow(expect.objectContaining({ code: 'io_error' }));
    await expect(file.truncate()).rejects.toMatchObject({ code: 'io_error' });
  });
});
