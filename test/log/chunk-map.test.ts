import { describe, expect, test } from 'vitest';
import { BlockCache } from '../../core/cache/cache.ts';
import { Chunk } from '../../core/log/chunk/chunk.ts';
import { ChunkMap, ChunkTable } from '../../core/log/chunk-table/chunk-table.ts';
import { align4096, FOOTER_BYTES, HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { encodeText } from '../../core/base/text.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';

const CHUNK_BYTES = 65_536;
let made = 0;

async function append(open: Awaited<ReturnType<typeof openTestStore>>, stream: string, bytes: number): Promise<void> {
  const id = `40000000-0000-4000-8000-${String(++made).padStart(12, '0')}`;
  await open.store.append(stream, -2, [
    { id, type: 'made', isJson: false, data: encodeText('x'.repeat(bytes)), metadata: new Uint8Array(0) },
  ]);
}

describe('the map of a store', () => {
  test('has every file, and the same version while only the last one grows', async () => {
    const open = await openTestStore({ storage: new MemoryStorage(), chunkSizeBytes: CHUNK_BYTES });
    for (let i = 0; i < 5; i++) await append(open, 'orders', 30_000);
    const first = open.chunkMap(null);
    expect(first.chunks).toHaveLength(3);
    expect([first.chunkSize, first.logEnd]).toEqual([CHUNK_BYTES, open.store.end]);
    expect(
      first.chunks!.map(({ start, end, startPosition, endPosition, isOngoing, isScavenged, isCold, records }) => ({
        start,
        end,
        startPosition,
        endPosition,
        isOngoing,
        isScavenged,
        isCold,
        records,
      })),
    ).toEqual(
      [0, 1, 2].map((start) => ({
        start,
        end: start,
        startPosition: start * CHUNK_BYTES,
        endPosition: (start + 1) * CHUNK_BYTES,
        isOngoing: start === 2,
        isScavenged: false,
        isCold: false,
        records: null,
      })),
    );
    await append(open, 'orders', 10);
    expect(open.chunkMap(first.version)).toEqual({
      version: first.version,
      chunkSize: CHUNK_BYTES,
      logEnd: open.store.end,
      chunks: null,
    });
    const grown = open.chunkMap(null).chunks!;
    expect(grown[2]!.dataBytes).toBe(open.store.end - 2 * CHUNK_BYTES);
    expect(grown[2]!.dataBytes).toBeGreaterThan(first.chunks![2]!.dataBytes);
    // Its file is as long as a full one, and takes what is written.
    expect(grown[2]!.bytes).toBe(HEADER_BYTES + grown[2]!.dataBytes);
    for (const { bytes, dataBytes } of grown.slice(0, 2))
      expect(bytes).toBe(align4096(HEADER_BYTES + dataBytes + FOOTER_BYTES));
    await append(open, 'orders', 40_000);
    const next = open.chunkMap(first.version);
    expect(next.version).not.toBe(first.version);
    expect(next.chunks).toHaveLength(4);
    await open.close();
  });

  test('tells of scavenged and merged files, and how many records they have', async () => {
    const open = await openTestStore({ storage: new MemoryStorage(), chunkSizeBytes: CHUNK_BYTES });
    await append(open, 'kept', 100);
    for (let i = 0; i < 5; i++) await append(open, 'orders', 30_000);
    await open.store.deleteStream('orders', -2, 'soft');
    const before = open.chunkMap(null);
    await open.scavenger.start();
    await open.scavenger.idle();
    const { version, chunks } = open.chunkMap(before.version);
    expect(version).not.toBe(before.version);
    const merged = chunks![0]!;
    expect([merged.isScavenged, merged.start, merged.end > 0, merged.endPosition]).toEqual([
      true,
      0,
      true,
      (merged.end + 1) * CHUNK_BYTES,
    ]);
    expect(merged.records).toBeGreaterThan(0);
    expect(merged.bytes).toBeLessThan(before.chunks![0]!.bytes);
    await open.close();
  });

  test('another opening has other versions, whatever it has counted', async () => {
    const storage = new MemoryStorage();
    const first = await openTestStore({ storage, seed: 1 });
    const { version } = first.chunkMap(null);
    await first.close();
    const second = await openTestStore({ storage, seed: 2 });
    expect(second.chunkMap(version).chunks).not.toBeNull();
    await second.close();
  });
});

test('ten thousand files are compared by what is in memory alone', () => {
  const table = new ChunkTable(CHUNK_BYTES);
  const cache = new BlockCache(1_048_576);
  const file = {
    path: 'chunk',
    size: 4_096,
    read: () => {
      throw new Error('No file may be read.');
    },
  };
  const header = (number: number) => ({
    version: 3 as const,
    chunkSize: CHUNK_BYTES,
    startNumber: number,
    endNumber: number,
    isScavenged: true,
    chunkId: new Uint8Array(16),
  });
  const footer = {
    isCompleted: true,
    mapEntryBytes: 12,
    physicalBytes: 1_000,
    logicalBytes: 1_000,
    mapBytes: 120,
    md5: new Uint8Array(16),
  };
  for (let number = 0; number < 10_000; number++)
    table.put(new Chunk(`chunk-${number}`, cache.attach(file as never), header(number), footer as never, 0));
  const map = new ChunkMap({ table: () => table, isCold: true, ids: new SeededIds(3) });
  const { version, chunks } = map.view(null);
  expect([chunks!.length, chunks![9_999]]).toEqual([
    10_000,
    {
      file: 'chunk-9999',
      start: 9_999,
      end: 9_999,
      startPosition: 9_999 * CHUNK_BYTES,
      endPosition: 10_000 * CHUNK_BYTES,
      bytes: 4_096,
      dataBytes: 1_000,
      isOngoing: false,
      isScavenged: true,
      isCold: true,
      records: 10,
    },
  ]);
  for (let i = 0; i < 10; i++) expect(map.view(version).chunks).toBeNull();
  table.put(new Chunk('chunk-5000.000002', cache.attach(file as never), header(5_000), footer as never, 0));
  expect(map.view(version).chunks![5_000]!.file).toBe('chunk-5000.000002');
});
