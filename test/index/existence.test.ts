import { describe, expect, it } from 'vitest';
import { bloomFileBytes } from '../../core/index/format/bloom.ts';
import { ExistenceFilter } from '../../core/index/existence-filter.ts';
import {
  EXISTENCE_CHECKPOINT_PATH as CHK,
  EXISTENCE_DATA_PATH as DAT,
} from '../../core/index/format/existence-files.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { damage, keyOf, md5Hex, openIndex } from './world.ts';
import { contentOf, putFile } from '../log/kit.ts';

function openFilter(
  storage: Storage,
  logicalBytes = 10_000,
  logEnd = Number.MAX_SAFE_INTEGER,
): Promise<ExistenceFilter> {
  return ExistenceFilter.open({ storage, clock: new ManualClock(), log: silentLog, logicalBytes, logEnd });
}

async function checkpointOf(storage: Storage): Promise<bigint> {
  return new DataView((await contentOf(storage, CHK)).buffer).getBigInt64(0, true);
}

async function filled(storage: Storage, streams = 100): Promise<void> {
  const filter = await openFilter(storage);
  filter.complete(0);
  for (let i = 0; i < streams; i++) filter.add(...keyOf(`s-${i}`));
  filter.note(5_000);
  await filter.flush();
  await filter.close();
}

describe('stream existence filter', () => {
  it('writes the documented bytes and finds them again', async () => {
    const storage = new MemoryStorage();
    const filter = await openFilter(storage);
    expect(filter.checkpoint).toBe(-1);
    filter.complete(0);
    filter.add(...keyOf('order-1'));
    filter.note(1_400);
    await filter.flush();
    expect(md5Hex(await contentOf(storage, DAT))).toBe('69fb49f506a1fe43c28216fdc98b74dc');
    expect(await checkpointOf(storage)).toBe(1_400n);
    filter.add(...keyOf('order-42'));
    filter.note(1_500);
    filter.note(1_000);
    await filter.flush();
    await filter.close();
    const again = await openFilter(storage);
    expect(again.checkpoint).toBe(1_500);
    expect(['order-1', 'order-42', 'order-7'].map((name) => again.mightContain(...keyOf(name)))).toEqual([
      true,
      true,
      false,
    ]);
    await again.close();
  });

  it('says "maybe" and writes nothing until it is complete', async () => {
    const storage = new MemoryStorage();
    const filter = await openFilter(storage);
    filter.note(77);
    expect(filter.mightContain(1, 2)).toBe(true);
    await filter.flush();
    expect(await storage.list('index/stream-existence')).toEqual([]);
    filter.complete(50);
    expect(filter.mightContain(1, 2)).toBe(false);
    expect(filter.checkpoint).toBe(50);
    await filter.close();
  });

  it('lowers a checkpoint beyond the end of the log, on disk at once', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    const filter = await openFilter(storage, 10_000, 300);
    expect(filter.checkpoint).toBe(300);
    expect(await checkpointOf(storage)).toBe(300n);
    await filter.close();
  });

  it.each<[string, number, (storage: MemoryStorage) => Promise<void>]>([
    ['its file is missing', 0, (storage) => storage.remove(DAT)],
    [
      'its file has another size',
      0,
      async (storage) => putFile(storage, DAT, (await contentOf(storage, DAT)).subarray(0, 10_688)),
    ],
    ['its header is damaged', 0, (storage) => damage(storage, DAT, 0)],
    [
      'too many lines are damaged',
      1,
      async (storage) =>
        putFile(
          storage,
          DAT,
          (await contentOf(storage, DAT)).map((byte, i) => (i > 64 && i < 64 * 12 ? 0x55 : byte)),
        ),
    ],
  ])('is built anew when %s', async (_what, rebuilds, harm) => {
    const storage = new MemoryStorage();
    await filled(storage);
    await harm(storage);
    const filter = await openFilter(storage);
    expect(filter.checkpoint).toBe(-1);
    filter.complete(10);
    filter.add(...keyOf('new'));
    await filter.flush();
    await filter.close();
    const again = await openFilter(storage);
    expect(again.checkpoint).toBe(10);
    expect([again.mightContain(...keyOf('new')), again.mightContain(...keyOf('s-1'))]).toEqual([true, false]);
    expect((await contentOf(storage, DAT))[4]).toBe(rebuilds);
    await again.close();
  });

  it('lives with a few damaged lines, which answer "maybe"', async () => {
    const storage = new MemoryStorage();
    await filled(storage);
    await putFile(
      storage,
      DAT,
      (await contentOf(storage, DAT)).map((byte, i) => (i >= 64 && i < 64 * 5 ? 0x55 : byte)),
    );
    const filter = await openFilter(storage);
    expect(filter.checkpoint).toBe(5_000);
    for (let i = 0; i < 100; i++) expect(filter.mightContain(...keyOf(`s-${i}`))).toBe(true);
    await filter.close();
  });

  it('writes only pages that changed, and a large file in slices', async () => {
    const storage = new FaultyStorage();
    const filter = await openFilter(storage, 4_000_000);
    filter.complete(1);
    for (let i = 0; i < 3_000; i++) filter.add(...keyOf(`s-${i}`));
    await filter.flush();
    const written = (from: number): number =>
      storage.ops.slice(from).reduce((sum, op) => sum + (op.op === 'writeAt' && op.path === DAT ? op.length : 0), 0);
    expect(written(0)).toBe(bloomFileBytes(4_000_000));
    expect(Math.max(...storage.ops.filter((op) => op.op === 'writeAt').map((op) => op.length))).toBeLessThanOrEqual(
      1_048_576,
    );
    const before = storage.ops.length;
    filter.add(...keyOf('one-more'));
    filter.note(9);
    await filter.flush();
    expect(written(before)).toBeLessThanOrEqual(6 * 8_192);
    const idle = storage.ops.length;
    await filter.flush();
    expect(storage.ops.length).toBe(idle);
    await filter.close();
  });

  it('never shows a checkpoint whose streams are not all there, whatever call the power fails at', async () => {
    const addStreams = (filter: ExistenceFilter, from: number, to: number): void => {
      for (let i = from; i <= to; i++) for (let k = 0; k < 50; k++) filter.add(...keyOf(`s-${i}-${k}`));
    };
    const expectStreams = (filter: ExistenceFilter): void => {
      for (let i = 1; i <= filter.checkpoint; i++)
        for (let k = 0; k < 50; k++) expect(filter.mightContain(...keyOf(`s-${i}-${k}`))).toBe(true);
    };
    for (let n = 1; n < 40; n++) {
      const storage = new FaultyStorage({ seed: n });
      storage.crashAt(n);
      let crashed = false;
      try {
        const filter = await openFilter(storage, 30_000);
        filter.complete(0);
        for (let i = 1; i <= 4; i++) {
          addStreams(filter, i, i);
          filter.note(i);
          await filter.flush();
        }
      } catch (error) {
        expect(error).toMatchObject({ code: 'storage_crashed' });
        crashed = true;
      }
      for (const mode of ['drop', 'keep', 'partial', 'clean'] as const) {
        const filter = await openFilter(storage.restart(mode, n), 30_000);
        if (!crashed) expect(filter.checkpoint).toBe(4);
        expectStreams(filter);
        await filter.close();
      }
      // Only the process ended. The power fails in the flush of the next one, or behind it.
      for (let m = 1; m < 12; m++) {
        const after = storage.restart('clean', n);
        const next = await openFilter(after, 30_000);
        addStreams(next, next.checkpoint + 1, 5);
        next.complete(5);
        next.note(5);
        after.crashAt(after.operations + m);
        await next.flush().catch((error: unknown) => expect(error).toMatchObject({ code: 'storage_crashed' }));
        expectStreams(await openFilter(after.restart(m % 2 === 0 ? 'drop' : 'partial', m), 30_000));
      }
    }
  });

  it('takes no checkpoint for durable that a failed sync may have left to be read', async () => {
    const storage = new FaultyStorage();
    const filter = await openFilter(storage);
    filter.complete(100);
    filter.add(...keyOf('old'));
    await filter.flush();
    await filter.close();
    // The log was cut back to 50, and the checkpoint that follows it can't be made durable.
    storage.failWhen((op, at) => (op === 'sync' && at === CHK ? 'sync_failed' : undefined));
    await expect(openFilter(storage, 10_000, 50)).rejects.toMatchObject({ code: 'sync_failed' });
    for (let seed = 1; seed <= 8; seed++) {
      const next = storage.restart('clean', seed);
      const cut = await openFilter(next, 10_000, 50);
      cut.add(...keyOf('new'));
      cut.note(70);
      // The stream is in the log from 60 on, which grows to 120; the filter was never flushed.
      const after = await openFilter(next.restart('drop'), 10_000, 120);
      expect(
        after.checkpoint <= 60 || after.mightContain(...keyOf('new')),
        `seed ${seed}: from ${after.checkpoint} on the log is read again`,
      ).toBe(true);
    }
  });

  it('writes a new file after a failed sync, and never syncs the old one again', async () => {
    const storage = new FaultyStorage();
    const filter = await openFilter(storage);
    filter.complete(1);
    filter.add(...keyOf('a'));
    await filter.flush();
    for (const path of [DAT, CHK]) {
      storage.failWhen((op, at) => (op === 'sync' && at === path ? 'sync_failed' : undefined));
      filter.add(...keyOf(path));
      filter.note(filter.checkpoint + 1);
      await expect(filter.flush()).rejects.toMatchObject({ code: 'sync_failed' });
      storage.failWhen(undefined);
      await filter.flush();
      expect(await checkpointOf(storage)).toBe(BigInt(filter.checkpoint));
    }
    await filter.close();
    expect(storage.violations).toEqual([]);
    const again = await openFilter(storage.restart('drop'));
    expect(['a', DAT, CHK, 'b'].map((name) => again.mightContain(...keyOf(name)))).toEqual([true, true, true, false]);
    await again.close();
  });
});

describe('the existence filter of an index', () => {
  it('is built from tables and memtables', async () => {
    const storage = new MemoryStorage();
    const first = await openIndex(storage, { existenceFilterBytes: 0 });
    for (let i = 0; i < 200; i++) {
      first.add(...keyOf(`s-${i}`), 0, i * 10);
      first.endBulk(i * 10, i * 10);
      if (i === 80 || i === 160) await first.flush();
    }
    expect([first.existenceCheckpoint, first.mightContain(1, 2)]).toEqual([Number.MAX_SAFE_INTEGER, true]);
    await first.initExistence();
    await first.close();
    const index = await openIndex(storage);
    expect(index.existenceCheckpoint).toBe(-1);
    index.add(...keyOf('late'), 0, 2_500);
    index.endBulk(2_500, 2_500);
    await index.initExistence();
    expect(index.existenceCheckpoint).toBe(2_500);
    for (let i = 0; i <= 160; i++) expect(index.mightContain(...keyOf(`s-${i}`))).toBe(true);
    expect([index.mightContain(...keyOf('late')), index.mightContain(...keyOf('never'))]).toEqual([true, false]);
    index.noteExistenceCheckpoint(2_600);
    await index.flush();
    await index.close();
    const again = await openIndex(storage);
    expect(again.existenceCheckpoint).toBe(2_600);
    await again.close();
  });

  it('of an empty log begins at 0', async () => {
    const index = await openIndex();
    await index.initExistence();
    expect([index.existenceCheckpoint, index.mightContain(1, 1)]).toEqual([0, false]);
    index.addStream(1, 1, 0);
    expect(index.mightContain(1, 1)).toBe(true);
    await index.close();
  });
});
