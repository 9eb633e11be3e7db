import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { VERIFY_CHUNK_JOB } from '../../core/log/scrub/scrub.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import type { JobContext } from '../../core/ports/jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { executeChunk } from '../../core/scavenge/chunk-execution.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { contentOf } from '../log/kit.ts';
import {
  ID,
  jobContext,
  recordsOf,
  runSettings,
  statesWith,
  writeChunkFile,
  type ContextOptions,
  type EventInput,
} from './chunk-kit.ts';

const CHUNK = 1_048_576;
const TARGET = '00000000-0000-4000-8000-000000000011.scavenge.tmp';

const args = (source: string, chunkSize = CHUNK) => ({
  settings: runSettings(),
  chunkSize,
  source,
  target: TARGET,
  chunkId: ID,
});

async function execute(storage: Storage, source: string, options: ContextOptions = {}, chunkSize = CHUNK) {
  const result = await executeChunk(args(source, chunkSize), jobContext(storage, options));
  const bytes = await contentOf(storage, TARGET);
  expect(
    await (JOBS[VERIFY_CHUNK_JOB] as (given: object, context: JobContext) => Promise<unknown>)(
      { name: TARGET },
      jobContext(storage),
    ),
  ).toBe(true);
  expect(bytes.length).toBe(result.bytesAfter);
  expect(result.bytesBefore).toBe(await storage.size(source));
  return {
    result,
    bytes,
    header: decodeHeader(TARGET, bytes),
    footer: decodeFooter(TARGET, bytes.subarray(bytes.length - FOOTER_BYTES), bytes.length),
  };
}

describe('executing a chunk', () => {
  it('copies what stays, each record under its own position', async () => {
    const storage = new MemoryStorage();
    const events: EventInput[] = Array.from({ length: 2_500 }, (_, i) => ({
      stream: i % 3 === 0 ? 'a' : 'b',
      number: i,
      dataBytes: (i * 7) % 500,
    }));
    await writeChunkFile(storage, 'chunk-000003.000000', 3, CHUNK, events);
    const before = await recordsOf(storage, 'chunk-000003.000000');
    const { result, bytes, header, footer } = await execute(storage, 'chunk-000003.000000', {
      states: statesWith({ a: { discardPoint: 2_000, maybeDiscardPoint: 2_000 } }),
    });
    const kept = before.filter((_, i) => i % 3 !== 0 || i >= 2_000);
    expect(await recordsOf(storage, TARGET)).toEqual(kept);
    expect(result).toMatchObject({ recordsKept: kept.length, recordsDiscarded: 2_500 - kept.length });
    expect(header).toEqual({
      version: 3,
      chunkSize: CHUNK,
      startNumber: 3,
      endNumber: 3,
      isScavenged: true,
      chunkId: ID,
    });
    expect(footer.mapBytes).toBe(kept.length * 12);
    const last = kept[kept.length - 1]!;
    expect(footer.logicalBytes).toBe(last.position - 3 * CHUNK + last.text.length + 8);
    expect(result.logicalBytes).toBe(footer.logicalBytes);
    expect(bytes.length % 4_096).toBe(0);
  });

  it('leaves an empty chunk when nothing stays', async () => {
    const storage = new MemoryStorage();
    await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, [
      { stream: 'a', number: 0 },
      { stream: 'a', number: 1 },
    ]);
    const { result, bytes, footer } = await execute(storage, 'chunk-000000.000000', {
      states: statesWith({ a: { isTombstoned: true, discardPoint: 2, maybeDiscardPoint: 2 } }),
    });
    expect(result).toMatchObject({ recordsKept: 0, recordsDiscarded: 2, logicalBytes: 0, bytesAfter: 4_096 });
    expect([footer.physicalBytes, footer.logicalBytes, footer.mapBytes]).toEqual([0, 0, 0]);
    expect(bytes.subarray(HEADER_BYTES, bytes.length - FOOTER_BYTES).every((byte) => byte === 0)).toBe(true);
    // And an empty one again.
    await storage.rename(TARGET, 'chunk-000000.000001');
    expect((await execute(storage, 'chunk-000000.000001')).result).toMatchObject({
      recordsKept: 0,
      recordsDiscarded: 0,
      bytesBefore: 4_096,
      bytesAfter: 4_096,
    });
  });

  it('keeps a result that is larger than the source', async () => {
    const storage = new MemoryStorage();
    await writeChunkFile(
      storage,
      'chunk-000000.000000',
      0,
      CHUNK,
      Array.from({ length: 3_000 }, (_, number) => ({ stream: 'a', number })),
    );
    const { result } = await execute(storage, 'chunk-000000.000000');
    expect(result.recordsKept).toBe(3_000);
    expect(result.bytesAfter).toBeGreaterThan(result.bytesBefore + 30_000);
  });

  it('is right wherever the blocks that are read and written end', async () => {
    const random = new Random(9);
    for (let round = 0; round < 4; round++) {
      const storage = new FaultyStorage({ reads: round % 2 === 0 ? 'async' : 'sync', seed: round });
      const events: EventInput[] = [];
      for (let left = 9_000_000; left > 0;) {
        const dataBytes = random.chance(0.05)
          ? random.int(500_000, 4_500_000)
          : random.int(0, random.pick([100, 4_000, 300_000]));
        events.push({ stream: random.pick(['a', 'b', 'c']), number: events.length, dataBytes });
        left -= dataBytes + 100;
      }
      await writeChunkFile(storage, 'chunk-000000.000000', 0, 33_554_432, events, round === 3 ? 2 : 3);
      const before = await recordsOf(storage, 'chunk-000000.000000');
      expect(before.length).toBe(events.length);
      const limit = random.int(0, events.length);
      const { result } = await execute(
        storage,
        'chunk-000000.000000',
        { states: statesWith({ a: { discardPoint: limit, maybeDiscardPoint: limit } }) },
        33_554_432,
      );
      const kept = before.filter((_, i) => events[i]!.stream !== 'a' || i >= limit);
      expect(await recordsOf(storage, TARGET)).toEqual(kept);
      expect(result.recordsKept).toBe(kept.length);
      expect(storage.hasUnsynced(TARGET)).toBe(false);
      expect(storage.isSealed(TARGET)).toBe(true);
    }
  });
});

describe('an execution that does not come to its end', () => {
  const events: EventInput[] = Array.from({ length: 3_000 }, (_, number) => ({ stream: 'a', number, dataBytes: 200 }));

  it('looks every 1024 records whether it is to end, and then leaves nothing', async () => {
    const storage = new MemoryStorage();
    await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, events);
    let checks = 0;
    await execute(storage, 'chunk-000000.000000', {
      onCheckpoint: () => {
        checks++;
      },
    });
    expect(checks).toBe(3);
    await storage.remove(TARGET);
    const onCheckpoint = () => {
      throw new SkuaError('aborted', 'The job was ended.');
    };
    await expect(
      executeChunk(args('chunk-000000.000000'), jobContext(storage, { onCheckpoint })),
    ).rejects.toMatchObject({ code: 'aborted' });
    expect(await storage.list('')).toEqual(['chunk-000000.000000']);
  });

  it('removes its file whichever operation fails', async () => {
    const measured = new FaultyStorage();
    await writeChunkFile(measured, 'chunk-000000.000000', 0, CHUNK, events);
    const first = measured.operations + 1;
    await execute(measured, 'chunk-000000.000000');
    for (let n = first; n <= measured.operations; n++) {
      for (const code of ['disk_full', 'io_error', 'sync_failed'] as const) {
        const storage = new FaultyStorage({ reads: 'async' });
        await writeChunkFile(storage, 'chunk-000000.000000', 0, CHUNK, events);
        storage.failAt(n, code);
        await expect(
          executeChunk(args('chunk-000000.000000'), jobContext(storage)),
          `operation ${n}`,
        ).rejects.toMatchObject({ code });
        expect(await storage.list('')).toEqual(['chunk-000000.000000']);
        expect(storage.violations).toEqual([]);
      }
    }
  });
});
