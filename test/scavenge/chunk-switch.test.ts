import { describe, expect, it } from 'vitest';
import { BlockCache } from '../../core/cache/cache.ts';
import { HIT, untilHit } from '../../core/base/step.ts';
import { RecordFrame } from '../../core/log/format/records.ts';
import { scanLog } from '../../core/log/chunk-table/chunk-table.ts';
import type { TransactionLog } from '../../core/log/transaction-log.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { executeChunk } from '../../core/scavenge/chunk-execution.ts';
import { mergeChunks } from '../../core/scavenge/chunk-merging.ts';
import { switchChunk, type SwitchParts } from '../../core/scavenge/chunk-switch.ts';
import { isCrash } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { CHUNK, openTestLog, readBackward, readForward, type SeenRecord } from '../log/kit.ts';
import { errorsIn, event, ID, jobContext, runSettings, statesWith } from './chunk-kit.ts';
import { SlowStorage, turn } from './slow-storage.ts';
import { bySize } from '../support/run-size.ts';

/** Completed chunks of the log of these tests. */
const CHUNKS = 6;
const STATES = statesWith({ a: { discardPoint: 1_000_000, maybeDiscardPoint: 1_000_000 } });

/**
 * A log of six complete chunks with events of `a`, which go, and of `b`, which stay, and one of `b` in the ongoing
 * chunk.
 */
async function makeLog(storage: Storage, cache?: BlockCache): Promise<TransactionLog> {
  const log = await openTestLog(storage, cache && { cache });
  let number = 0;
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    for (let i = 0; i < 14; i++, number++)
      await log.append(
        event({ stream: i % 3 === chunk % 3 ? 'b' : 'a', number, position: log.end, dataBytes: (i * 613) % 4_000 }),
      );
    await log.completeChunk();
  }
  await log.append(event({ stream: 'b', number, position: log.end }));
  return log;
}

function partsOf(storage: Storage, log: TransactionLog, cache: BlockCache): SwitchParts {
  return { storage, cache, table: log.table };
}

async function executeAndSwitch(
  storage: Storage,
  log: TransactionLog,
  cache: BlockCache,
  number: number,
): Promise<void> {
  const chunk = log.table.chunkAt(number * CHUNK)!;
  await executeChunk(
    {
      settings: runSettings(),
      chunkSize: CHUNK,
      source: chunk.name,
      target: `00000000-0000-4000-8000-00000000000${number}.scavenge.tmp`,
      chunkId: ID,
    },
    jobContext(storage, { states: STATES }),
  );
  await switchChunk(
    partsOf(storage, log, cache),
    `00000000-0000-4000-8000-00000000000${number}.scavenge.tmp`,
    chunk.startNumber,
    chunk.endNumber,
  );
}

async function mergeAndSwitch(
  storage: Storage,
  log: TransactionLog,
  cache: BlockCache,
  first: number,
  last: number,
): Promise<void> {
  const sources: string[] = [];
  for (const chunk of log.table.all())
    if (chunk.startNumber >= first && chunk.endNumber <= last) sources.push(chunk.name);
  await mergeChunks(
    { chunkSize: CHUNK, sources, target: '00000000-0000-4000-8000-000000000014.merge.scavenge.tmp', chunkId: ID },
    jobContext(storage),
  );
  await switchChunk(
    partsOf(storage, log, cache),
    '00000000-0000-4000-8000-000000000014.merge.scavenge.tmp',
    first,
    last,
  );
}

const chunkNames = async (storage: Storage) =>
  (await storage.list('')).filter((name) => name.startsWith('chunk-') || name.endsWith('.tmp'));
const textOf = ({ position, bytes }: SeenRecord) => `${position} ${Buffer.from(bytes).toString('latin1')}`;
const isKept = ({ bytes }: SeenRecord) => bytes[33] === 98;
const survivors = (records: readonly SeenRecord[]) => records.filter(isKept).map(textOf);

describe('switching a chunk', () => {
  it('gives each new file the next version and removes what it replaces', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const cache = new BlockCache(0);
    const log = await makeLog(storage, cache);
    const before = await readForward(log.table);
    await executeAndSwitch(storage, log, cache, 1);
    await executeAndSwitch(storage, log, cache, 1);
    await executeAndSwitch(storage, log, cache, 3);
    expect(await chunkNames(storage)).toEqual([
      'chunk-000000.000000',
      'chunk-000001.000002',
      'chunk-000002.000000',
      'chunk-000003.000001',
      'chunk-000004.000000',
      'chunk-000005.000000',
      'chunk-000006.000000',
    ]);
    await mergeAndSwitch(storage, log, cache, 1, 3);
    expect(await chunkNames(storage)).toEqual([
      'chunk-000000.000000',
      'chunk-000001.000003',
      'chunk-000004.000000',
      'chunk-000005.000000',
      'chunk-000006.000000',
    ]);
    await mergeAndSwitch(storage, log, cache, 0, 3);
    expect(await chunkNames(storage)).toEqual([
      'chunk-000000.000001',
      'chunk-000004.000000',
      'chunk-000005.000000',
      'chunk-000006.000000',
    ]);
    await executeAndSwitch(storage, log, cache, 2);
    expect(await chunkNames(storage)).toEqual([
      'chunk-000000.000002',
      'chunk-000004.000000',
      'chunk-000005.000000',
      'chunk-000006.000000',
    ]);
    const expected = before.filter((record) => record.position >= 4 * CHUNK || isKept(record)).map(textOf);
    expect((await readForward(log.table)).map(textOf)).toEqual(expected);
    expect((await readBackward(log.table)).map(textOf)).toEqual(expected.toReversed());
    await log.close();
    expect(await errorsIn(storage)).toEqual([]);
    const again = await openTestLog(storage);
    expect((await readForward(again.table)).map(textOf)).toEqual(expected);
    await again.close();
  });

  it('is refused, and the new file removed, where it would cut a chunk or replace one that is still written', async () => {
    const storage = new FaultyStorage();
    const cache = new BlockCache(0);
    const log = await makeLog(storage, cache);
    await mergeAndSwitch(storage, log, cache, 1, 2);
    const target = '00000000-0000-4000-8000-000000000014.merge.scavenge.tmp';
    const tries: readonly [number, number, readonly string[]][] = [
      [2, 3, ['chunk-000003.000000']],
      [0, 1, ['chunk-000000.000000']],
      [5, 6, ['chunk-000005.000000']],
      [0, 9, ['chunk-000000.000000']],
    ];
    for (const [start, end, sources] of tries) {
      await mergeChunks({ chunkSize: CHUNK, sources, target, chunkId: ID }, jobContext(storage));
      await expect(switchChunk(partsOf(storage, log, cache), target, start, end)).rejects.toMatchObject({
        code: 'scavenge_failed',
      });
    }
    // A file that is not what it is taken for.
    await mergeChunks({ chunkSize: CHUNK, sources: ['chunk-000003.000000'], target, chunkId: ID }, jobContext(storage));
    await expect(switchChunk(partsOf(storage, log, cache), target, 4, 4)).rejects.toMatchObject({
      code: 'log_corrupt',
    });
    expect(await chunkNames(storage)).toEqual([
      'chunk-000000.000000',
      'chunk-000001.000001',
      'chunk-000003.000000',
      'chunk-000004.000000',
      'chunk-000005.000000',
      'chunk-000006.000000',
    ]);
    expect((await readForward(log.table)).length).toBe(CHUNKS * 14 + 1);
    await log.close();
  });

  it('tells of an old file that could not be removed, which the next start removes', async () => {
    const storage = new FaultyStorage();
    const cache = new BlockCache(0);
    const log = await makeLog(storage, cache);
    storage.failWhen((op, path) => (op === 'remove' && path.startsWith('chunk-') ? 'io_error' : undefined));
    const leftovers: unknown[] = [];
    await mergeChunks(
      {
        chunkSize: CHUNK,
        sources: ['chunk-000000.000000', 'chunk-000001.000000'],
        target: '00000000-0000-4000-8000-000000000014.merge.scavenge.tmp',
        chunkId: ID,
      },
      jobContext(storage),
    );
    await switchChunk(
      {
        ...partsOf(storage, log, cache),
        onLeftover: (file, error) => leftovers.push(file, (error as { code: string }).code),
      },
      '00000000-0000-4000-8000-000000000014.merge.scavenge.tmp',
      0,
      1,
    );
    expect(leftovers).toEqual(['chunk-000000.000000', 'io_error', 'chunk-000001.000000', 'io_error']);
    storage.failWhen(undefined);
    expect((await readForward(log.table)).length).toBe(CHUNKS * 14 + 1);
    await log.close();
    const again = await openTestLog(storage);
    expect(await chunkNames(storage)).toEqual([
      'chunk-000000.000001',
      'chunk-000002.000000',
      'chunk-000003.000000',
      'chunk-000004.000000',
      'chunk-000005.000000',
      'chunk-000006.000000',
    ]);
    expect((await readForward(again.table)).length).toBe(CHUNKS * 14 + 1);
    await again.close();
  });
});

describe('a crash at any operation of executing, merging and switching', () => {
  async function work(storage: Storage, log: TransactionLog, cache: BlockCache): Promise<void> {
    await executeAndSwitch(storage, log, cache, 0);
    await executeAndSwitch(storage, log, cache, 1);
    await mergeAndSwitch(storage, log, cache, 0, 2);
    await executeAndSwitch(storage, log, cache, 1);
  }

  it.each(['before', 'middle', 'after'] as const)(
    '%s it takes effect leaves the old files or the new ones',
    async (moment) => {
      const measured = new FaultyStorage();
      const measuredCache = new BlockCache(0);
      const measuredLog = await makeLog(measured, measuredCache);
      const first = measured.operations + 1;
      await work(measured, measuredLog, measuredCache);
      const operations = measured.operations;
      const full = (await readForward((await openTestLog(await copyOfLog())).table)).map(textOf);
      for (let n = first; n <= operations; n += bySize(11, 1)) {
        const storage = new FaultyStorage({ seed: n });
        const cache = new BlockCache(0);
        const log = await makeLog(storage, cache);
        storage.crashAt(n, moment);
        // Only the removal of an old file may end without an error.
        await work(storage, log, cache).catch((error: unknown) =>
          expect(isCrash(error), `operation ${n}: ${String(error)}`).toBe(true),
        );
        expect(storage.isCrashed).toBe(true);
        for (const mode of ['drop', 'keep', 'partial', 'clean'] as const) {
          const restarted = storage.restart(mode, n);
          const again = await openTestLog(restarted);
          const seen = (await readForward(again.table)).map(textOf);
          for (let chunk = 0; chunk <= CHUNKS; chunk++) {
            const inChunk = (text: string) => Math.floor(Number(text.split(' ', 1)[0]) / CHUNK) === chunk;
            const all = full.filter(inChunk);
            const kept = all.filter((text) => text.slice(text.indexOf(' ') + 1).charCodeAt(33) === 98);
            expect([all, kept], `operation ${n} ${mode} chunk ${chunk}`).toContainEqual(seen.filter(inChunk));
          }
          await again.close();
          expect(await errorsIn(restarted), `operation ${n} ${mode}`).toEqual([]);
          const names = await chunkNames(restarted);
          expect(
            names.every((name) => /^chunk-\d{6}\.\d{6}$/.test(name)),
            names.join(),
          ).toBe(true);
          expect(new Set(names.map((name) => name.slice(0, 12))).size, names.join()).toBe(names.length);
        }
      }
    },
  );

  async function copyOfLog(): Promise<FaultyStorage> {
    const storage = new FaultyStorage();
    await (await makeLog(storage)).close();
    return storage;
  }

  it('that only fails leaves a log that goes on, in the process and after it', async () => {
    const measured = new FaultyStorage();
    const measuredCache = new BlockCache(0);
    const measuredLog = await makeLog(measured, measuredCache);
    const expected = survivors(await readForward(measuredLog.table));
    const first = measured.operations + 1;
    await work(measured, measuredLog, measuredCache);
    for (let n = first; n <= measured.operations; n += bySize(5, 1)) {
      const storage = new FaultyStorage({ seed: n });
      const cache = new BlockCache(0);
      const log = await makeLog(storage, cache);
      storage.failAt(n, 'io_error');
      await work(storage, log, cache).catch((error: unknown) =>
        expect(error, `operation ${n}`).toMatchObject({ code: 'io_error' }),
      );
      expect(survivors(await readForward(log.table))).toEqual(expected);
      await log.append(event({ stream: 'b', number: 99, position: log.end }));
      await log.close();
      const again = await openTestLog(storage);
      expect(survivors(await readForward(again.table)).length).toBe(expected.length + 1);
      await again.close();
    }
  });
});

describe('readers during a switch', () => {
  it('whose read of the old file is under way take their step again on the new one', async () => {
    const inner = new FaultyStorage();
    const storage = new SlowStorage(inner, new Random(1), 0);
    await (await makeLog(inner)).close();
    const cache = new BlockCache(0);
    const log = await openTestLog(storage, { cache });
    await executeChunk(
      {
        settings: runSettings(),
        chunkSize: CHUNK,
        source: 'chunk-000002.000000',
        target: '00000000-0000-4000-8000-000000000011.scavenge.tmp',
        chunkId: ID,
      },
      jobContext(inner, { states: STATES }),
    );
    const old = log.table.chunkAt(2 * CHUNK)!;
    let open = () => {};
    storage.gate = new Promise((resolve) => {
      open = resolve;
    });
    const frame = new RecordFrame();
    const filling = log.table.readForward(2 * CHUNK, frame);
    expect(filling).toBeInstanceOf(Promise);
    storage.gate = null;
    let isDone = false;
    const switching = switchChunk(
      partsOf(storage, log, cache),
      '00000000-0000-4000-8000-000000000011.scavenge.tmp',
      2,
      2,
    ).then(() => {
      isDone = true;
    });
    for (let i = 0; i < 20; i++) await turn();
    // The new file is in force, and the old one waits for its last reader.
    expect(log.table.chunkAt(2 * CHUNK)).not.toBe(old);
    expect(isDone).toBe(false);
    expect(await inner.size('chunk-000002.000000')).not.toBeNull();
    open();
    await filling;
    await switching;
    expect(await inner.size('chunk-000002.000000')).toBeNull();
    expect(await untilHit(() => log.table.readForward(2 * CHUNK, frame))).toBe(HIT);
    expect(frame.bytes[frame.at + 33]).toBe(98);
    await log.close();
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])('see no error, gap or repetition (seed %i)', async (seed) => {
    const random = new Random(seed);
    const inner = new FaultyStorage({ reads: 'async' });
    const storage = new SlowStorage(inner, random);
    await (await makeLog(inner)).close();
    // Small enough that blocks go and are read again.
    const cache = new BlockCache(0);
    const log = await openTestLog(storage, { cache });
    const expected = survivors(await readForward(log.table));
    let isOver = false;
    let passes = 0;
    const check = (records: readonly SeenRecord[], inOrder: readonly string[]) => {
      expect(survivors(records)).toEqual(inOrder);
      const positions = records.map((record) => record.position);
      expect(new Set(positions).size).toBe(positions.length);
      passes++;
    };
    const reader = async (read: () => Promise<SeenRecord[]>, inOrder: readonly string[]) => {
      do {
        check(await read(), inOrder);
        await turn();
      } while (!isOver);
    };
    const scan = async (): Promise<SeenRecord[]> => {
      const out: SeenRecord[] = [];
      await scanLog(log.table, 0, (frame) => {
        out.push({
          position: frame.position,
          next: frame.next,
          bytes: frame.bytes.slice(frame.at, frame.at + frame.length),
        });
        if (random.chance(0.2)) return turn();
        return undefined;
      });
      return out;
    };
    const readers = [
      reader(() => readForward(log.table), expected),
      reader(() => readBackward(log.table), expected.toReversed()),
      reader(scan, expected),
      reader(scan, expected),
    ];
    await Promise.all([
      ...readers,
      (async () => {
        for (const number of random.shuffle([0, 1, 2, 3, 4, 5])) await executeAndSwitch(storage, log, cache, number);
        await mergeAndSwitch(storage, log, cache, 1, 2);
        await mergeAndSwitch(storage, log, cache, 0, 3);
        await executeAndSwitch(storage, log, cache, 1);
        await mergeAndSwitch(storage, log, cache, 4, 5);
        await mergeAndSwitch(storage, log, cache, 0, 5);
        isOver = true;
      })(),
    ]);
    expect(passes).toBeGreaterThan(4);
    expect(await chunkNames(inner)).toEqual(['chunk-000000.000004', 'chunk-000006.000000']);
    await log.close();
  });
});
