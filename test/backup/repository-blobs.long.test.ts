import { describe, expect, it } from 'vitest';
import { measure, objectBytes, objectContent } from '../../core/backup/repository/blob-writer.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { listAll } from '../../core/ports/object-store.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { collect, inPieces, openTestRepository, TEST_FRAME_BYTES } from '../support/backup/test-repository.ts';
import { Random } from '../support/random.ts';

const KEY = new Random(99).bytes(32);
const text = (length: number) =>
  new TextEncoder()
    .encode('a line of text that repeats itself, again and again\n'.repeat(Math.ceil(length / 52)))
    .subarray(0, length);
/** Comparing typed arrays element by element would take longer than all the rest. */
const expectSame = (actual: Uint8Array, expected: Uint8Array) => expect(Buffer.compare(actual, expected)).toBe(0);
const noise = (length: number) => new Random(length).bytes(length);

async function sole(objects: MemoryObjects, prefix: string): Promise<{ key: string; bytes: Uint8Array }> {
  const keys: string[] = [];
  for await (const { key } of listAll(objects, prefix)) keys.push(key);
  expect(keys).toHaveLength(1);
  return { key: keys[0]!, bytes: (await objects.get(keys[0]!))! };
}

const FORMS = [
  { name: 'plain', key: null, compression: 'off' },
  { name: 'compressed', key: null, compression: 'on' },
  { name: 'encrypted', key: KEY, compression: 'off' },
  { name: 'compressed and encrypted', key: KEY, compression: 'on' },
] as const;

describe.each(FORMS)('blobs, $name', ({ key, compression }) => {
  const sizes = [0, 1, 999, TEST_FRAME_BYTES - 1, TEST_FRAME_BYTES, TEST_FRAME_BYTES + 1, 3 * TEST_FRAME_BYTES, 50_000];

  it.each(sizes)('gives back %i bytes and every range of them', async (size) => {
    for (const content of [text(size), noise(size)]) {
      const objects = new MemoryObjects();
      const repository = await openTestRepository(objects, { key, compression });
      const ref = await repository.writeBlob(size, inPieces(content));
      expect(ref).toMatchObject({ isNew: true, sizeBytes: size });
      expect(ref.storedBytes).toBe((await sole(objects, 'blobs/')).bytes.length);
      expectSame(await collect(repository.readBlob(ref)), content);
      const random = new Random(size + 1);
      for (let i = 0; i < 10; i++) {
        const from = random.int(0, size + 1);
        const length = random.int(0, size);
        expectSame(await collect(repository.readBlob(ref, { from, length })), content.subarray(from, from + length));
      }
      expect(await repository.writeBlob(size, inPieces(content, 77))).toEqual({ ...ref, isNew: false, storedBytes: 0 });
    }
  });

  it('finds every changed byte and every cut, and names the object', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects, { key, compression });
    const content = noise(10_000);
    content.set(text(5_000));
    const ref = await repository.writeBlob(content.length, inPieces(content));
    const { key: objectKey, bytes } = await sole(objects, 'blobs/');
    const refused = () =>
      expect(collect(repository.readBlob(ref))).rejects.toMatchObject({
        code: 'repository_damaged',
        data: { key: objectKey },
      });
    for (let at = 0; at < bytes.length; at += at < 200 ? 1 : 61) {
      const changed = bytes.slice();
      changed[at]! ^= 1 << (at % 8);
      await objects.put(objectKey, changed);
      await refused();
    }
    for (const length of [0, 7, 23, 24, 60, bytes.length - 1]) {
      await objects.put(objectKey, bytes.subarray(0, length));
      await refused();
    }
    await objects.remove([objectKey]);
    await refused();
  });
});

describe('blobs', () => {
  it('reads a range without the rest', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects, { frameBytes: 65_536 });
    const content = noise(1_000_000);
    const ref = await repository.writeBlob(content.length, inPieces(content, 60_000));
    const { key, bytes } = await sole(objects, 'blobs/');
    // Whatever lies before the frames that are asked for may be damaged.
    bytes.fill(0, 1_000, 500_000);
    await objects.put(key, bytes);
    expectSame(
      await collect(repository.readBlob(ref, { from: 700_000, length: 100_000 })),
      content.subarray(700_000, 800_000),
    );
    await expect(collect(repository.readBlob(ref))).rejects.toMatchObject({ code: 'repository_damaged' });
  });

  it('auto compresses what shrinks, and nothing in a local place', async () => {
    const stored = async (place: string, content: Uint8Array) => {
      const objects = new MemoryObjects({ place });
      const repository = await openTestRepository(objects, { compression: 'auto' });
      const ref = await repository.writeBlob(content.length, inPieces(content));
      expectSame(await collect(repository.readBlob(ref)), content);
      return ref.storedBytes;
    };
    expect(await stored('s3://bucket', text(50_000))).toBeLessThan(10_000);
    expect(await stored('s3://bucket', noise(50_000))).toBeGreaterThan(50_000);
    expect(await stored('/srv/backups', text(50_000))).toBeGreaterThan(50_000);
  });

  it('compresses content again that is too much to keep', async () => {
    // Noise behind text: the first frame decides for compression, and more than 16 MiB have to be stored.
    const content = noise(20_000_000);
    content.set(text(4_194_304));
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects, { compression: 'on', key: KEY, frameBytes: 1_048_576 });
    const ref = await repository.writeBlob(content.length, inPieces(content, 700_000));
    expect(ref.storedBytes).toBeLessThan(17_000_000);
    expectSame(await collect(repository.readBlob(ref)), content);
  });

  it.each(['off', 'on'] as const)(
    'never stores content under the id of what it was before (compression %s)',
    async (compression) => {
      const objects = new MemoryObjects();
      const repository = await openTestRepository(objects, { compression, frameBytes: 1_048_576 });
      let readings = 0;
      const content = noise(18_000_000);
      // Each of the first readings differs from the next in a byte of the last frame.
      const changing = () => {
        content[17_999_000] = Math.min(++readings, 4);
        return inPieces(content, 500_000)();
      };
      const ref = await repository.writeBlob(content.length, changing);
      expectSame(await collect(repository.readBlob(ref)), content);
      expect(readings).toBe(6);
      const always = () => {
        content[17_999_000] = readings++ % 256;
        return inPieces(content, 500_000)();
      };
      await expect(repository.writeBlob(content.length, always)).rejects.toMatchObject({ code: 'io_error' });
    },
  );

  it('refuses content of another length than was said', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    for (const said of [9_999, 10_001])
      await expect(repository.writeBlob(said, inPieces(noise(10_000)))).rejects.toMatchObject({ code: 'io_error' });
  });

  it.each([150, 50])('ends when it is aborted while piece %i is read, and leaves nothing', async (piece) => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const abort = new AbortController();
    let left = piece;
    const content = async function* content() {
      for await (const part of inPieces(noise(100_000))()) {
        if (left-- === 0) abort.abort();
        yield part;
      }
    };
    await expect(repository.writeBlob(100_000, content, { signal: abort.signal })).rejects.toMatchObject({
      code: 'aborted',
    });
    expect(await repository.blobs()[Symbol.asyncIterator]().next()).toMatchObject({ done: true });
  });

  it('holds no plain text where it is encrypted, and names that tell nothing', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects, { key: KEY });
    const content = text(20_000);
    const ref = await repository.writeBlob(content.length, inPieces(content));
    const sha = nodeDigests.sha256();
    sha.update(content);
    expect(ref.blob).not.toBe(Buffer.from(sha.finish()).toString('hex'));
    expect(Buffer.from((await sole(objects, 'blobs/')).bytes).includes('a line of text')).toBe(false);
  });

  it('seals each frame for its place', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects, { key: KEY });
    const ref = await repository.writeBlob(8_192, inPieces(noise(8_192)));
    const { key, bytes } = await sole(objects, 'blobs/');
    const header = 24 + 2 * 8 + 4;
    const frame = (bytes.length - header) / 2;
    const swapped = bytes.slice();
    swapped.set(bytes.subarray(header + frame), header);
    swapped.set(bytes.subarray(header, header + frame), header + frame);
    await objects.put(key, swapped);
    await expect(collect(repository.readBlob(ref))).rejects.toMatchObject({ code: 'repository_damaged' });
  });

  it('tells the length of an object before it is written', async () => {
    const world = { digests: nodeDigests, compression: nodeCompression, sealer: null, frameBytes: 1_000 };
    for (const size of [0, 1, 1_000, 2_500]) {
      const content = inPieces(text(size), 300);
      for (const mode of ['off', 'on', 'auto'] as const) {
        const measured = await measure(world, size, content, mode);
        expect((await collect(objectContent(world, 'id', measured, content))).length).toBe(
          objectBytes(world, measured),
        );
      }
    }
  });
});
