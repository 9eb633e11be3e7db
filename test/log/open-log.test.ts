import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openLog } from '../../core/log/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import {
  appendGroup,
  checkpoint,
  CHUNK,
  contentOf,
  framed,
  groupAt,
  logText,
  ONGOING_FILE,
  logOptions,
  openTestLog,
  readBackward,
  readForward,
  textOf,
} from './kit.ts';

/** Opening, appending and completing without faults, on every kind of storage. */

const STORAGES: readonly (readonly [string, () => Storage & { isSealed?(path: string): boolean }])[] = [
  ['memory', () => new MemoryStorage()],
  ['disk with reads at once', () => new FaultyStorage({ reads: 'sync' })],
  ['disk with reads that wait', () => new FaultyStorage({ reads: 'async' })],
];

describe.each(STORAGES)('on %s', (_, newStorage) => {
  it('a fresh directory gets its checkpoints and an empty chunk of full length', async () => {
    const storage = newStorage();
    const log = await openTestLog(storage);
    expect(await storage.list('')).toEqual([
      'chaser.chk',
      'chunk-000000.000000',
      'epoch.chk',
      'proposal.chk',
      'truncate.chk',
      'writer.chk',
    ]);
    for (const [name, value] of [
      ['writer', 0],
      ['chaser', 0],
      ['epoch', -1],
      ['proposal', -1],
      ['truncate', -1],
    ] as const) {
      expect(await storage.size(`${name}.chk`)).toBe(8);
      expect(await checkpoint(storage, `${name}.chk`), name).toBe(value);
    }
    const chunk = await contentOf(storage, 'chunk-000000.000000');
    expect(chunk.length).toBe(ONGOING_FILE);
    expect([...chunk.subarray(0, 18)]).toEqual([2, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(
      chunk.subarray(18, 34).some((byte) => byte !== 0),
      'the chunk has an id',
    ).toBe(true);
    expect(chunk.subarray(34).every((byte) => byte === 0)).toBe(true);
    expect([log.end, log.remaining, log.capacity, log.chunkSize]).toEqual([0, CHUNK, CHUNK, CHUNK]);
    expect(await readForward(log.table)).toEqual([]);
    expect(await readBackward(log.table)).toEqual([]);
    await log.close();
  });

  it('what was appended is read at once, and again after a stop', async () => {
    const storage = newStorage();
    const log = await openTestLog(storage);
    const groups = [
      await appendGroup(log, [100, 200]),
      await appendGroup(log, [20_000]),
      await appendGroup(log, [101, 102, 40_000]),
    ];
    expect(log.end).toBe(300 + 20_000 + 40_203);
    expect(await logText(log.table)).toBe(textOf(...groups));
    await log.close();
    expect(await checkpoint(storage, 'writer.chk')).toBe(log.end);
    expect(await checkpoint(storage, 'chaser.chk')).toBe(log.end);
    const again = await openTestLog(storage, { chunkSizeBytes: 4 * CHUNK });
    expect([again.end, again.chunkSize], 'an existing directory keeps its chunk size').toEqual([log.end, CHUNK]);
    expect(await logText(again.table)).toBe(textOf(...groups));
    await appendGroup(again, [333]);
    expect((await readForward(again.table)).length).toBe(7);
    await again.close();
  });

  it('a group that fills the chunk to its last byte leaves no room, and the chunk completes', async () => {
    const storage = newStorage();
    const log = await openTestLog(storage);
    await appendGroup(log, [5_000]);
    await appendGroup(log, [50_000, CHUNK - 55_000]);
    expect([log.end, log.remaining]).toEqual([CHUNK, 0]);
    await expect(log.append(groupAt(log.end, [500]))).rejects.toMatchObject({ code: 'io_error' });
    await log.completeChunk();
    expect([log.end, log.remaining]).toEqual([CHUNK, CHUNK]);
    await appendGroup(log, [700]);
    const forward = await readForward(log.table);
    expect(forward.map((record) => record.position)).toEqual([0, 5_000, 55_000, CHUNK]);
    expect((await readBackward(log.table)).reverse().map((record) => record.position)).toEqual([
      0,
      5_000,
      55_000,
      CHUNK,
    ]);
    await log.close();
    const again = await openTestLog(storage);
    expect(await logText(again.table)).toBe(textOf(framed(forward)));
    await again.close();
  });

  it('a completed chunk has footer, padding, MD5 and seal, and the next one begins behind its logical end', async () => {
    const storage = newStorage();
    const log = await openTestLog(storage);
    const group = await appendGroup(log, [1_000, 3_000]);
    await log.completeChunk();
    const bytes = await contentOf(storage, 'chunk-000000.000000');
    expect(bytes.length).toBe(8_192);
    expect(textOf(bytes.subarray(128, 4_128))).toBe(textOf(group));
    expect(bytes.subarray(4_128, 8_064).every((byte) => byte === 0)).toBe(true);
    expect([...bytes.subarray(8_064, 8_081)]).toEqual([3, 0xa0, 0x0f, 0, 0, 0xa0, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(bytes.subarray(8_081, 8_176).every((byte) => byte === 0)).toBe(true);
    expect(bytes.subarray(8_176)).toEqual(new Uint8Array(createHash('md5').update(bytes.subarray(0, 8_176)).digest()));
    if (storage.isSealed) expect(storage.isSealed('chunk-000000.000000')).toBe(true);
    expect(await checkpoint(storage, 'writer.chk')).toBe(CHUNK);
    expect(await storage.size('chunk-000001.000000')).toBe(ONGOING_FILE);
    expect([log.end, log.remaining]).toEqual([CHUNK, CHUNK]);
    await appendGroup(log, [400]);
    await log.completeChunk();
    await log.close();
    const again = await openTestLog(storage);
    expect(again.end).toBe(2 * CHUNK);
    expect((await readForward(again.table)).map((record) => record.position)).toEqual([0, 1_000, CHUNK]);
    expect((await readBackward(again.table)).map((record) => record.position)).toEqual([CHUNK, 1_000, 0]);
    await again.close();
  });

  it('an empty chunk can be completed, and is passed by readers', async () => {
    const storage = newStorage();
    const log = await openTestLog(storage);
    await log.completeChunk();
    await log.completeChunk();
    await appendGroup(log, [400]);
    expect((await readForward(log.table)).map((record) => record.position)).toEqual([2 * CHUNK]);
    expect((await readBackward(log.table)).map((record) => record.position)).toEqual([2 * CHUNK]);
    await log.close();
    const again = await openTestLog(storage);
    expect((await readForward(again.table)).map((record) => record.position)).toEqual([2 * CHUNK]);
    await again.close();
  });
});

describe('chunk size', () => {
  it.each([65_535, 65_537, 61_440, 70_000, 0, -4_096, 1_073_741_824 + 4_096, Number.NaN])(
    '%d is refused',
    async (chunkSizeBytes) => {
      const storage = new MemoryStorage();
      await expect(openTestLog(storage, { chunkSizeBytes })).rejects.toMatchObject({
        code: 'bad_option',
        data: { value: chunkSizeBytes },
      });
      expect((await storage.list('')).filter((name) => name.startsWith('chunk-'))).toEqual([]);
    },
  );

  it('of an unmeasured new directory is 256 MiB', async () => {
    const storage = new MemoryStorage();
    const { chunkSizeBytes: _, ...unmeasured } = logOptions(storage);
    const log = await openLog(unmeasured);
    expect(await storage.size('chunk-000000.000000')).toBe(268_439_552);
    await log.close();
  });
});
