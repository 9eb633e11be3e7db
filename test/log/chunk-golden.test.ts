import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { putI32, putI64 } from '../../core/base/bytes.ts';
import { BlockCache } from '../../core/cache/cache.ts';
import { Checkpoint } from '../../core/log/format/checkpoint.ts';
import {
  chunkFileName,
  decodeFooter,
  decodeHeader,
  encodeFooter,
  encodeHeader,
  ongoingFileBytes,
  parseChunkFileNames,
  takeInventory,
} from '../../core/log/format/chunk-format.ts';
import { ChunkTable } from '../../core/log/chunk-table/chunk-table.ts';
import { OngoingChunk } from '../../core/log/chunk/ongoing-chunk.ts';
import { openCompleted } from '../../core/log/chunk/chunk.ts';
import { END, HIT, type Outcome, untilHit } from '../../core/base/step.ts';
import { RecordFrame } from '../../core/log/format/records.ts';
import type { Ids } from '../../core/ports/ids.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { bytesOf, examplePrepare } from '../support/golden.ts';
import { contentOf } from './kit.ts';

/** Golden bytes of chunk files and checkpoints (core/log/FORMAT.md). */

const CHUNK_SIZE = 268_435_456;
const CHUNK_ID = bytesOf('ff 19 96 6f 86 8b 11 d0 b4 2d 00 c0 4f c9 64 ff');
const HEADER_7 = bytesOf(`
  02 03 00 00 00 10 07 00 00 00 07 00 00 00 00 00
  00 00 ff 19 96 6f 86 8b 11 d0 b4 2d 00 c0 4f c9
  64 ff`);
/** Gives the id of the example, in textual order. */
const exampleIds: Ids = { uuidBytes: () => bytesOf('6f 96 19 ff 8b 86 d0 11 b4 2d 00 c0 4f c9 64 ff') };

/** The example record at another place of the log. */
function recordAt(position: number): Uint8Array {
  const record = examplePrepare();
  putI64(record, 6, position);
  putI64(record, 16, position);
  return record;
}

describe('header', () => {
  it('of chunk 7 is the example', () => {
    const header = {
      version: 3,
      chunkSize: CHUNK_SIZE,
      startNumber: 7,
      endNumber: 7,
      isScavenged: false,
      chunkId: CHUNK_ID,
    };
    const bytes = encodeHeader(header);
    expect(bytes.length).toBe(128);
    expect(bytes.subarray(0, 34)).toEqual(HEADER_7);
    expect(bytes.subarray(34).every((byte) => byte === 0)).toBe(true);
    expect(decodeHeader('chunk-000007.000000', bytes)).toEqual(header);
  });
  it('accepts version 2 and the newer form with byte 34, refuses others', () => {
    const bytes = encodeHeader({
      version: 2,
      chunkSize: 65_536,
      startNumber: 1,
      endNumber: 3,
      isScavenged: true,
      chunkId: CHUNK_ID,
    });
    bytes[34] = 4;
    expect(decodeHeader('f', bytes)).toMatchObject({ version: 2, startNumber: 1, endNumber: 3, isScavenged: true });
    for (const [at, value, code] of [
      [0, 1, 'log_corrupt'],
      [1, 1, 'log_unsupported'],
      [1, 4, 'log_unsupported'],
      [35, 1, 'log_unsupported'],
      [9, 0x80, 'log_corrupt'],
      [10, 0, 'log_corrupt'],
      [5, 0x80, 'log_corrupt'],
    ] as const) {
      const damaged = bytes.slice();
      damaged[at] = value;
      expect(() => decodeHeader('f', damaged), `byte ${at}`).toThrow(
        expect.objectContaining({ code, data: expect.objectContaining({ file: 'f' }) }),
      );
    }
  });
});

describe('footer', () => {
  it('of the examples is written and read', () => {
    const plain = encodeFooter(123, 123, 0);
    expect(plain.length).toBe(128);
    expect(plain.subarray(0, 17)).toEqual(bytesOf('03 7b 00 00 00 7b 00 00 00 00 00 00 00 00 00 00 00'));
    expect(plain.subarray(17).every((byte) => byte === 0)).toBe(true);
    expect(encodeFooter(246, 268_439_579, 24).subarray(0, 17)).toEqual(
      bytesOf('03 f6 00 00 00 1b 10 00 10 00 00 00 00 18 00 00 00'),
    );
    expect(decodeFooter('f', encodeFooter(246, 268_439_579, 24), 4096)).toMatchObject({
      isCompleted: true,
      mapEntryBytes: 12,
      physicalBytes: 246,
      logicalBytes: 268_439_579,
      mapBytes: 24,
    });
  });
  it('with the old map has 32-bit fields', () => {
    const old = new Uint8Array(128);
    old[0] = 1;
    putI32(old, 1, 200);
    putI32(old, 5, 4000);
    putI32(old, 9, 16);
    expect(decodeFooter('f', old, 4096)).toMatchObject({
      mapEntryBytes: 8,
      physicalBytes: 200,
      logicalBytes: 4000,
      mapBytes: 16,
    });
  });
  it('that can be no footer is refused with its offset', () => {
    const incomplete = encodeFooter(123, 123, 0);
    incomplete[0] = 2;
    for (const footer of [
      incomplete,
      encodeFooter(123, 122, 0),
      encodeFooter(123, 123, 13),
      encodeFooter(4000, 4000, 0),
      encodeFooter(-1, 5, 0),
    ]) {
      expect(() => decodeFooter('f', footer, 4096)).toThrow(
        expect.objectContaining({ code: 'log_corrupt', data: { file: 'f', offset: 3968 } }),
      );
    }
  });
});

describe('whole files', () => {
  it('the completed chunk 7 has the recorded MD5', async () => {
    const storage = new MemoryStorage();
    const cache = new BlockCache(1 << 20);
    const ongoing = await OngoingChunk.create(
      { storage, cache, digests: nodeDigests, ids: exampleIds, chunkSize: CHUNK_SIZE },
      7,
      1,
    );
    expect(await storage.size('chunk-000007.000000')).toBe(268_439_552);
    expect(ongoingFileBytes(CHUNK_SIZE)).toBe(268_439_552);
    await ongoing.append(recordAt(7 * CHUNK_SIZE));
    await ongoing.complete();
    const bytes = await contentOf(storage, 'chunk-000007.000000');
    expect(bytes.length).toBe(4096);
    expect(bytes.subarray(0, 34)).toEqual(HEADER_7);
    expect(bytes.subarray(128, 251)).toEqual(recordAt(7 * CHUNK_SIZE));
    expect(Buffer.from(bytes.subarray(4080)).toString('hex')).toBe('64b8c8161cd761f2589582a40ae7a894');
    expect(createHash('md5').update(bytes.subarray(0, 4080)).digest('hex')).toBe('64b8c8161cd761f2589582a40ae7a894');
  });

  /** The merged chunk 7-9 of the example, with the new or the old form of the map. */
  async function mergedTable(wide: boolean): Promise<ChunkTable> {
    const storage = new MemoryStorage();
    const data = new Uint8Array(4096);
    data.set(
      encodeHeader({
        version: 3,
        chunkSize: CHUNK_SIZE,
        startNumber: 7,
        endNumber: 9,
        isScavenged: true,
        chunkId: CHUNK_ID,
      }),
    );
    data.set(recordAt(7 * CHUNK_SIZE), 128);
    data.set(recordAt(8 * CHUNK_SIZE + 4000), 251);
    const footer = encodeFooter(246, 268_439_579, 24);
    if (wide) data.set(bytesOf('00 00 00 00  00 00 00 00 00 00 00 00  7b 00 00 00  a0 0f 00 10 00 00 00 00'), 374);
    else {
      data.set(bytesOf('00 00 00 00  00 00 00 00  7b 00 00 00  a0 0f 00 10'), 374);
      footer.fill(0);
      footer[0] = 1;
      putI32(footer, 1, 246);
      putI32(footer, 5, 268_439_579);
      putI32(footer, 9, 16);
    }
    data.set(footer, 4096 - 128);
    const file = await storage.create('chunk-000007.000001');
    await file.writeAt(0, data);
    const cache = new BlockCache(1 << 20);
    const table = new ChunkTable(CHUNK_SIZE);
    table.put(await openCompleted(storage, cache, 'chunk-000007.000001'));
    table.end = 10 * CHUNK_SIZE;
    return table;
  }

  it.each([
    ['12 bytes', true],
    ['8 bytes', false],
  ] as const)('a merged chunk with map entries of %s is read by position, forward and backward', async (_, wide) => {
    const table = await mergedTable(wide);
    const frame = new RecordFrame();
    const step = (take: () => Outcome): Promise<number> => untilHit(take);
    const start = 7 * CHUNK_SIZE;
    const second = 8 * CHUNK_SIZE + 4000;
    const at = async (read: 'readAt' | 'readForward' | 'readBackward', position: number): Promise<number> =>
      (await step(() => table[read](position, frame))) === HIT ? frame.position : -1;
    expect(await at('readAt', start)).toBe(start);
    expect(frame.next).toBe(start + 123);
    expect(await at('readAt', second)).toBe(second);
    expect(await at('readAt', start + 123)).toBe(-1);
    expect(await at('readAt', second + 1)).toBe(-1);
    expect(await at('readForward', start)).toBe(start);
    expect(await at('readForward', start + 123)).toBe(second);
    expect(await at('readForward', 8 * CHUNK_SIZE)).toBe(second);
    expect(await step(() => table.readForward(second + 123, frame))).toBe(END);
    // Straight after a scan reached the last record, its end holds no record either.
    expect(await at('readForward', second)).toBe(second);
    expect(await at('readAt', second + 123)).toBe(-1);
    expect(await at('readBackward', 10 * CHUNK_SIZE)).toBe(second);
    expect(await at('readBackward', second)).toBe(start);
    expect(await at('readBackward', start + 123)).toBe(start);
  });
});

describe('file names', () => {
  it('are six digits each', () => {
    expect(chunkFileName(7, 12)).toBe('chunk-000007.000012');
    expect(
      parseChunkFileNames([
        'chunk-000002.000001',
        'chunk-000001.000000',
        'chunk-1.0',
        'chunk-000003.000000.tmp',
        'Chunk-000004.000000',
      ]),
    ).toEqual([
      { name: 'chunk-000001.000000', number: 1, version: 0 },
      { name: 'chunk-000002.000001', number: 2, version: 1 },
    ]);
  });
  it('give the latest, old and missing chunks of the example', async () => {
    const names = ['1.0', '2.1', '5.0', '5.1', '5.2', '6.0', '8.7', '10.5'].map((name) =>
      chunkFileName(Number(name.split('.')[0]), Number(name.split('.')[1])),
    );
    const ends: Record<string, number> = {
      'chunk-000002.000001': 2,
      'chunk-000005.000002': 7,
      'chunk-000008.000007': 8,
      'chunk-000010.000005': 14,
    };
    const inventory = await takeInventory(parseChunkFileNames(names), 16, async (file) => ends[file.name]!);
    expect(inventory.latest.map(({ file, endNumber }) => [file.number, endNumber])).toEqual([
      [1, 1],
      [2, 2],
      [5, 7],
      [8, 8],
      [10, 14],
    ]);
    expect(inventory.old.map((file) => file.name)).toEqual([
      'chunk-000005.000000',
      'chunk-000005.000001',
      'chunk-000006.000000',
    ]);
    expect(inventory.missing).toEqual([0, 3, 4, 9, 15, 16]);
  });
});

describe('checkpoints', () => {
  it('are eight bytes, little-endian', async () => {
    const storage = new MemoryStorage();
    const checkpoint = await Checkpoint.open(storage, 'epoch.chk', -1);
    expect(checkpoint.wasMissing).toBe(true);
    expect(await contentOf(storage, 'epoch.chk')).toEqual(bytesOf('ff ff ff ff ff ff ff ff'));
    await checkpoint.flush(1_099_511_627_777);
    expect(await contentOf(storage, 'epoch.chk')).toEqual(bytesOf('01 00 00 00 00 01 00 00'));
    expect((await Checkpoint.open(storage, 'epoch.chk', -1)).value).toBe(1_099_511_627_777);
  });
  it('of another length are brought to eight bytes', async () => {
    const storage = new MemoryStorage();
    const file = await storage.create('writer.chk');
    await file.writeAt(0, bytesOf('41 07 00 00 00 00 00 00 99 99'));
    expect((await Checkpoint.open(storage, 'writer.chk', 0)).value).toBe(0x741);
    expect(await storage.size('writer.chk')).toBe(8);
  });
});
