import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import {
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  MD5_BYTES,
} from '../../core/log/format/chunk-format.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { executeChunk } from '../../core/scavenge/chunk-execution.ts';
import { mergeChunks } from '../../core/scavenge/chunk-merging.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { contentOf, flip } from '../log/kit.ts';
import { ID, jobContext, recordsOf, runSettings, statesWith, writeChunkFile } from './chunk-kit.ts';
import type { EventInput } from './chunk-kit.ts';

const CHUNK = 8_388_608;
const TARGET = '00000000-0000-4000-8000-000000000011.merge.scavenge.tmp';

function scavenge(storage: Storage, source: string, target: string, states = statesWith({}), chunkSize = CHUNK) {
  return executeChunk(
    { settings: runSettings(), chunkSize, source, target, chunkId: ID },
    jobContext(storage, { states }),
  );
}

function merge(storage: Storage, sources: readonly string[], chunkSize = CHUNK) {
  return mergeChunks({ chunkSize, sources, target: TARGET, chunkId: ID }, jobContext(storage));
}

async function footerOf(storage: Storage, name: string) {
  const bytes = await contentOf(storage, name);
  return decodeFooter(name, bytes.subarray(bytes.length - FOOTER_BYTES), bytes.length);
}

describe('merging chunks', () => {
  it('gives the example, byte for byte', async () => {
    const storage = new MemoryStorage();
    const size = 268_435_456;
    // Stream, type and data of 10, 1 and 22 bytes make a record of 123 with its frame.
    const record: EventInput = { stream: 'order-0042', number: 0, dataBytes: 22 };
    const filler: EventInput = { stream: 'gone', number: 0, dataBytes: 3_905 };
    await writeChunkFile(storage, 'chunk-000007.000000', 7, size, [record]);
    await writeChunkFile(storage, 'chunk-000008.000000', 8, size, [filler, record]);
    await writeChunkFile(storage, 'chunk-000009.000000', 9, size, []);
    await scavenge(
      storage,
      'chunk-000008.000000',
      'chunk-000008.000001',
      statesWith({ gone: { isTombstoned: true, discardPoint: 9, maybeDiscardPoint: 9 } }),
      size,
    );
    await merge(storage, ['chunk-000007.000000', 'chunk-000008.000001', 'chunk-000009.000000'], size);
    const bytes = await contentOf(storage, TARGET);
    expect(Buffer.from(bytes.subarray(374, 398)).toString('hex')).toBe(
      '000000000000000000000000' + '7b000000a00f001000000000',
    );
    expect(
      Buffer.from(bytes.subarray(bytes.length - FOOTER_BYTES, bytes.length - FOOTER_BYTES + 17)).toString('hex'),
    ).toBe('03f60000001b1000100000000018000000');
    expect(bytes.length).toBe(4_096);
    expect(decodeHeader(TARGET, bytes)).toMatchObject({
      startNumber: 7,
      endNumber: 9,
      isScavenged: true,
      chunkSize: size,
    });
  });

  it('takes scavenged, unscavenged, old, empty and merged ones', async () => {
    const random = new Random(5);
    for (let round = 0; round < 3; round++) {
      const storage = new FaultyStorage({ reads: round === 1 ? 'sync' : 'async' });
      const sources: string[] = [];
      for (let number = 2; number < 8; number++) {
        const events: EventInput[] =
          number === 5
            ? []
            : Array.from({ length: 400 }, (_, i) => ({
                stream: random.pick(['a', 'b']),
                number: i,
                dataBytes: random.int(0, number === 3 ? 9_000 : 700),
              }));
        const name = `chunk-00000${number}.000000`;
        await writeChunkFile(storage, name, number, CHUNK, events, number === 4 ? 2 : 3);
        if (number % 2 === 0) sources.push(name);
        else {
          await scavenge(
            storage,
            name,
            `chunk-00000${number}.000001`,
            statesWith({ a: { discardPoint: 250, maybeDiscardPoint: 250 } }),
          );
          sources.push(`chunk-00000${number}.000001`);
        }
      }
      const expected = (await Promise.all(sources.map((name) => recordsOf(storage, name)))).flat();
      const sizes = await Promise.all(sources.map((name) => storage.size(name)));
      await merge(storage, sources.slice(0, 3));
      await storage.rename(TARGET, 'chunk-000002.000001');
      const result = await merge(storage, ['chunk-000002.000001', ...sources.slice(3)]);
      expect(await recordsOf(storage, TARGET)).toEqual(expected);
      expect(result.bytesAfter).toBe(await storage.size(TARGET));
      expect(result.bytesBefore).toBe(
        (await storage.size('chunk-000002.000001'))! + sizes.slice(3).reduce((sum: number, size) => sum + size!, 0),
      );
      const footer = await footerOf(storage, TARGET);
      const last = expected[expected.length - 1]!;
      expect(footer.logicalBytes).toBe(last.position + last.text.length + 8 - 2 * CHUNK);
      expect(footer.mapBytes).toBe(expected.length * 12);
      expect(storage.violations).toEqual([]);
    }
  });

  it('reads the maps of eight bytes that old files have', async () => {
    const storage = new MemoryStorage();
    await writeChunkFile(
      storage,
      'chunk-000000.000000',
      0,
      CHUNK,
      Array.from({ length: 40 }, (_, number) => ({ stream: 'a', number, dataBytes: number })),
    );
    await scavenge(storage, 'chunk-000000.000000', 'chunk-000000.000001');
    await shortenMap(storage, 'chunk-000000.000001', 'chunk-000000.000002');
    await writeChunkFile(storage, 'chunk-000001.000000', 1, CHUNK, [{ stream: 'b' }]);
    await merge(storage, ['chunk-000000.000002', 'chunk-000001.000000']);
    expect(await recordsOf(storage, TARGET)).toEqual([
      ...(await recordsOf(storage, 'chunk-000000.000000')),
      ...(await recordsOf(storage, 'chunk-000001.000000')),
    ]);
    expect((await footerOf(storage, TARGET)).mapEntryBytes).toBe(12);
  });

  it('refuses chunks that are no neighbours and maps that are damaged, and leaves nothing behind', async () => {
    const storage = new MemoryStorage();
    for (const number of [0, 1, 2])
      await writeChunkFile(storage, `chunk-00000${number}.000000`, number, CHUNK, [
        { stream: 'a' },
        { stream: 'a', number: 1 },
      ]);
    await expect(merge(storage, ['chunk-000000.000000', 'chunk-000002.000000'])).rejects.toMatchObject({
      code: 'scavenge_failed',
    });
    await scavenge(storage, 'chunk-000001.000000', 'chunk-000001.000001');
    await flip(
      storage,
      'chunk-000001.000001',
      HEADER_BYTES + (await footerOf(storage, 'chunk-000001.000001')).physicalBytes + 4,
      0xff,
    );
    await expect(merge(storage, ['chunk-000000.000000', 'chunk-000001.000001'])).rejects.toMatchObject({
      code: 'log_corrupt',
    });
    await expect(merge(storage, ['chunk-000000.000000', 'chunk-000001.000000'], CHUNK * 2)).rejects.toMatchObject({
      code: 'log_corrupt',
    });
    expect((await storage.list('')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('can be ended, and removes its file whichever operation fails', async () => {
    const prepare = async (storage: Storage) => {
      await writeChunkFile(
        storage,
        'chunk-000000.000000',
        0,
        CHUNK,
        Array.from({ length: 300 }, (_, number) => ({ stream: 'a', number, dataBytes: 5_000 })),
      );
      await scavenge(storage, 'chunk-000000.000000', 'chunk-000000.000001');
      await writeChunkFile(
        storage,
        'chunk-000001.000000',
        1,
        CHUNK,
        Array.from({ length: 300 }, (_, number) => ({ stream: 'a', number, dataBytes: 5_000 })),
      );
      return ['chunk-000000.000001', 'chunk-000001.000000'];
    };
    const measured = new FaultyStorage();
    const sources = await prepare(measured);
    const first = measured.operations + 1;
    await merge(measured, sources);
    for (let n = first; n <= measured.operations; n++) {
      const storage = new FaultyStorage({ reads: 'async' });
      await prepare(storage);
      storage.failAt(n, n % 2 === 0 ? 'disk_full' : 'sync_failed');
      await expect(merge(storage, sources), `operation ${n}`).rejects.toBeInstanceOf(SkuaError);
      expect(await storage.list('')).toEqual(['chunk-000000.000000', ...sources]);
      expect(storage.violations).toEqual([]);
    }
    for (let ended = 1; ended <= 4; ended++) {
      const storage = new FaultyStorage({ reads: 'async' });
      await prepare(storage);
      let checks = 0;
      const onCheckpoint = () => {
        if (++checks === ended) throw new SkuaError('aborted', 'The job was ended.');
      };
      await expect(
        mergeChunks({ chunkSize: CHUNK, sources, target: TARGET, chunkId: ID }, jobContext(storage, { onCheckpoint })),
      ).rejects.toMatchObject({ code: 'aborted' });
      expect(await storage.list('')).toEqual(['chunk-000000.000000', ...sources]);
    }
  });
});

/** Copies a scavenged chunk file with the map and the footer that older versions wrote. */
async function shortenMap(storage: Storage, from: string, to: string): Promise<void> {
  const bytes = await contentOf(storage, from);
  const { physicalBytes, logicalBytes, mapBytes } = decodeFooter(
    from,
    bytes.subarray(bytes.length - FOOTER_BYTES),
    bytes.length,
  );
  const count = mapBytes / 12;
  const out = new Uint8Array(4_096 * Math.ceil((HEADER_BYTES + physicalBytes + count * 8 + FOOTER_BYTES) / 4_096));
  const view = new DataView(out.buffer);
  const mapAt = HEADER_BYTES + physicalBytes;
  out.set(bytes.subarray(0, mapAt), 0);
  for (let i = 0; i < count; i++) out.set(bytes.subarray(mapAt + i * 12, mapAt + i * 12 + 8), mapAt + i * 8);
  const footerAt = out.length - FOOTER_BYTES;
  out[footerAt] = 1;
  view.setInt32(footerAt + 1, physicalBytes, true);
  view.setInt32(footerAt + 5, logicalBytes, true);
  view.setInt32(footerAt + 9, count * 8, true);
  const md5 = nodeDigests.md5();
  md5.update(out.subarray(0, out.length - MD5_BYTES));
  out.set(md5.finish(), out.length - MD5_BYTES);
  const file = await storage.create(to);
  await file.writeAt(0, out);
  await file.sync();
  await file.close();
}
