import { describe, expect, it } from 'vitest';
import { readLogId, removeLogId, writeLogId } from '../../../core/cluster/replica/identity/identity.ts';
import { prepareReplica } from '../../../core/cluster/replica/prepare-replica.ts';
import { requestTruncation } from '../../../core/cluster/replica/truncate.ts';
import { clearForRestore } from '../../../core/backup/restore/restore-directory.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { ANY } from '../../../core/streams/api.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { eventsOf, newClock, setMetadata } from '../../shared-log/tick-kit.ts';
import { readRawLog } from '../../scavenge/raw-log.ts';
import { FaultyStorage } from '../../support/faulty-storage.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore } from '../../support/test-store.ts';
import { CHUNK_BYTES, expectCopy, manifestOf, openMember, prepare, TestLog } from './catch-up-kit.ts';

/** A log of some chunks, and a copy of it that lacks the last ones. */
async function behind(rounds = 12, more = 12): Promise<{ readonly log: TestLog; readonly storage: FaultyStorage }> {
  const log = await TestLog.begin();
  await log.write(rounds);
  await log.compact();
  const storage = new FaultyStorage({ seed: 1, reads: 'async' });
  await prepare(storage, log.objects);
  await log.write(more);
  await log.compact();
  return { log, storage };
}

/** A single node's directory with some chunks of its own. */
async function single(rounds: number): Promise<FaultyStorage> {
  const storage = new FaultyStorage({ seed: 2, reads: 'async' });
  const open = await openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES });
  for (let i = 0; i < rounds; i++) await open.store.append('own', ANY, eventsOf(new SeededIds(400 + i), 3, 2_500));
  await open.close();
  return storage.restart('keep');
}

async function expectUntouched(storage: FaultyStorage, log: TestLog, code: string): Promise<void> {
  const before = storage.operations;
  await expect(prepare(storage, log.objects)).rejects.toMatchObject({ code });
  expect(storage.operations, 'nothing is written').toBe(before);
}

describe('a directory that is no copy of this log', () => {
  it('is refused, with nothing written', async () => {
    const { log } = await behind();
    await expectUntouched(await single(30), log, 'log_diverged');
    await expectUntouched(await single(2), log, 'log_diverged');
    const { log: other, storage } = await behind();
    await writeLogId(storage, '00000000-0000-4000-8000-000000000000');
    await expectUntouched(storage, other, 'other_log');
    await writeLogId(storage, (await manifestOf(other.objects)).storeId);
    await expectCopy(storage, await prepare(storage, other.objects), other);
  });

  it('is refused where it went apart after it was opened alone, whether or not the bucket has scavenged since', async () => {
    const { log, storage } = await behind();
    const { storeId } = await manifestOf(log.objects);
    await removeLogId(storage);
    const open = await openTestStore({ storage });
    for (let i = 0; i < 10; i++) await open.store.append('own', ANY, eventsOf(new SeededIds(500 + i), 3, 2_500));
    await open.close();
    await expectUntouched(storage, log, 'log_diverged');
    await writeLogId(storage, storeId);
    await expectUntouched(storage, log, 'log_diverged');
    await log.scavenge();
    await expectUntouched(storage, log, 'log_diverged');
  });

  it('is refused where the log is shorter than the copy, in its tail too, or has other commits there', async () => {
    const log = await TestLog.begin();
    await log.write(8);
    await log.compact();
    await log.write(2);
    const older = await log.copy();
    await log.write(2);
    const storage = new FaultyStorage({ seed: 1, reads: 'async' });
    await (await openMember(storage, log, 70)).close();
    await expect(openMember(storage.restart('keep'), older, 71)).rejects.toMatchObject({ code: 'log_diverged' });
    const joining = storage.restart('keep');
    await removeLogId(joining);
    await expectUntouched(joining, older, 'log_diverged');
    await older.write(2);
    await expectUntouched(joining, older, 'log_diverged');
    await expect(openMember(storage.restart('keep'), older, 72)).rejects.toMatchObject({ code: 'log_diverged' });
    await (await openMember(storage.restart('keep'), log, 73)).close();
  });

  it('is refused where the bucket has scavenged all with which it could be compared', async () => {
    const log = new TestLog();
    await log.compact();
    await log.write(6);
    await setMetadata((await log.writer()).store, log.ids, 'short', { $maxCount: 2 });
    await log.compact();
    await log.scavenge();
    await log.compact();
    expect((await log.records()).has(0), 'the log does not begin with a record any more').toBe(false);
    const own = await single(0);
    await expectUntouched(own, log, 'log_diverged');
    // Where it names the log, that it ends inside a record which was kept is enough.
    const kept = [...(await log.records()).values()][0]!;
    const longer = await single(1);
    expect((await readRawLog(longer)).at(-1)!.position).toBeLessThan(kept.position + kept.bytes.length);
    await writeLogId(longer, (await manifestOf(log.objects)).storeId);
    await expectUntouched(longer, log, 'log_diverged');
  });

  it('joins without log-id where it is a prefix of the log, with some of its tail too', async () => {
    const log = await TestLog.begin();
    await log.write(8);
    const storage = new FaultyStorage({ seed: 1, reads: 'async' });
    await (await openMember(storage, log, 70)).close();
    const copy = storage.restart('keep');
    await removeLogId(copy);
    await log.write(3);
    await prepare(copy, log.objects);
    expect(await readLogId(copy)).toBe((await manifestOf(log.objects)).storeId);
    await log.compact();
    await expectCopy(copy, await prepare(copy, log.objects), log);
  });

  it('is not opened alone by mistake, and has everything when it is detached', async () => {
    const { log, storage } = await behind();
    await prepare(storage, log.objects);
    await expect(openTestStore({ storage })).rejects.toMatchObject({ code: 'copy_attached' });
    await removeLogId(storage);
    expect(await readLogId(storage)).toBe(null);
    const open = await openTestStore({ storage });
    const { store } = await log.writer();
    const options = { direction: 'forward', from: 0, count: 100 } as const;
    for (const stream of ['short', 'kept-0', 'kept-4']) {
      const ids = (await store.readStream(stream, options)).events.map(({ id }) => id);
      expect((await open.store.readStream(stream, options)).events.map(({ id }) => id)).toEqual(ids);
    }
    await open.close();
    await writeLogId(storage, (await manifestOf(log.objects)).storeId);
    await clearForRestore(storage, 'a backup');
    expect(await storage.list('')).toEqual(['restoring']);
    await expect(prepare(storage, log.objects)).rejects.toMatchObject({ code: 'backup_failed' });
  });
});

describe('damage in the bucket', () => {
  it('is refused before anything of it is taken over', async () => {
    const { log, storage } = await behind();
    const manifest = await manifestOf(log.objects);
    const { number, segments } = manifest.ongoing!;
    const lastChunk = Math.floor((await lastPosition(storage)) / CHUNK_BYTES);
    const completed = manifest.chunks.find(({ startNumber }) => startNumber === lastChunk)!;
    const last = manifest.chunks.at(-1)!;
    for (const [key, offset, at] of [
      [completed.key, 200, 'old'],
      [completed.key, completed.sizeBytes - 500, 'old'],
      [last.key, 5_000, 'old'],
      [last.key, 5_000, 'empty'],
      [segments[0]!.key, 300, 'empty'],
    ] as const) {
      const damaged = await log.copy();
      const bytes = (await damaged.objects.get(key))!;
      bytes[offset] = bytes[offset]! ^ 4;
      await damaged.objects.put(key, bytes);
      const copy = at === 'old' ? storage.restart('keep') : new FaultyStorage({ seed: 3 });
      await expect(prepare(copy, damaged.objects), `${at}, ${key} at ${offset}`).rejects.toMatchObject({
        code: 'log_corrupt',
        data: { key },
      });
      expect((await copy.list('')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
      // With the object as it was the next one goes on.
      await expectCopy(copy, await prepare(copy, log.objects), log);
    }
    expect(number).toBeGreaterThan(last.endNumber);
  });

  it('in a segment that the copy has a part of is told apart from a copy that went apart', async () => {
    const { log, storage } = await behind(2, 5);
    const { segments } = (await manifestOf(log.objects)).ongoing!;
    expect(segments).toHaveLength(1);
    const { key, to } = segments[0]!;
    const damaged = await log.copy();
    const bytes = (await damaged.objects.get(key))!;
    bytes[to - 100] = bytes[to - 100]! ^ 4;
    await damaged.objects.put(key, bytes);
    const copy = storage.restart('keep');
    await expect(prepare(copy, damaged.objects)).rejects.toMatchObject({ code: 'log_corrupt', data: { key } });
    await expectCopy(copy, await prepare(copy, log.objects), log);
  });

  it('a file that the newest manifest names and that is not there is told with its key', async () => {
    const { log } = await behind();
    const { key } = (await manifestOf(log.objects)).chunks[1]!;
    await log.objects.remove([key]);
    await expect(prepare(new MemoryStorage(), log.objects)).rejects.toMatchObject({
      code: 'log_corrupt',
      data: { key },
    });
  });
});

/** Of the last record on a disk. */
async function lastPosition(storage: FaultyStorage): Promise<number> {
  const records = await readRawLog(storage);
  return records.at(-1)!.position;
}

describe('a catch-up', () => {
  it('that finds a file gone goes on with the newest manifest', async () => {
    const log = await TestLog.begin();
    await log.write(24);
    await log.compact();
    const first = await manifestOf(log.objects);
    let calls = 0;
    const objects = new Proxy(log.objects, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]): Promise<unknown> => {
          // When two of its files have been read the bucket is scavenged, and the old files go.
          if (name === 'get' && String(args[0]).startsWith('files/') && ++calls === 3) {
            await log.scavenge();
            await log.compact();
            await log.objects.remove(first.chunks.map(({ key }) => key));
          }
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
    const storage = new FaultyStorage({ seed: 3, reads: 'async' });
    const done = await prepare(storage, objects);
    expect(done.manifest.number).toBeGreaterThan(first.number);
    await expectCopy(storage, done, log);
  });

  it('is ended by its signal, and goes on at the next one', async () => {
    const { log, storage } = await behind(2, 30);
    const ending = new AbortController();
    const world = {
      objects: log.objects,
      clock: newClock(),
      ids: new SeededIds(9),
      digests: nodeDigests,
      log: silentLog,
      meter: silentMeter,
    };
    const told: number[] = [];
    const manifest = await manifestOf(log.objects);
    const onProgress = ({
      bytesDone,
      bytesTotal,
    }: {
      readonly bytesDone: number;
      readonly bytesTotal: number;
    }): void => {
      told.push(bytesDone);
      expect(bytesDone).toBeLessThanOrEqual(bytesTotal);
      if (bytesDone > 2 * CHUNK_BYTES) ending.abort();
    };
    await expect(prepareReplica({ storage, world, manifest, onProgress, signal: ending.signal })).rejects.toMatchObject(
      { code: 'aborted' },
    );
    expect(told.at(-1)).toBeGreaterThan(2 * CHUNK_BYTES);
    await expectCopy(storage, await prepare(storage, log.objects), log);
  });

  it('for which the disk is too small says so before it begins', async () => {
    const { log, storage } = await behind();
    const before = await readRawLog(storage);
    storage.setCapacity(600_000);
    await expect(prepare(storage, log.objects)).rejects.toMatchObject({ code: 'disk_full' });
    expect(await readRawLog(storage)).toEqual(before);
    storage.setCapacity(100_000_000);
    await expectCopy(storage, await prepare(storage, log.objects), log);
  });

  it('leaves an index that fits, whatever was cut off and replaced', async () => {
    const log = await TestLog.begin();
    await log.write(10);
    await log.compact();
    const storage = new FaultyStorage({ seed: 1, reads: 'async' });
    await (await openMember(storage, log, 80)).close();
    await log.write(10);
    await log.scavenge();
    await log.compact();
    await prepare(storage, log.objects);
    expect(await storage.size('index/indexmap'), 'it knew events that are no more').toBe(null);
    await (await openMember(storage, log, 81)).close();
    const copy = storage.restart('keep');
    await expectCopy(copy, await prepare(copy, log.objects), log);
    expect(await copy.size('index/indexmap')).not.toBe(null);
  });

  it('goes on with a cut down to nothing of which only the last step is missing', async () => {
    const { log, storage } = await behind();
    for (const name of (await storage.list('')).filter((one) => one.startsWith('chunk-'))) await storage.remove(name);
    await requestTruncation(storage, 0);
    await expectCopy(storage, await prepare(storage, log.objects), log);
  });

  it('lets whoever opens the directory alone find the epochs that came with it', async () => {
    const log = await TestLog.begin();
    const storage = new FaultyStorage({ seed: 1, reads: 'async' });
    const one = await openMember(storage, log, 90);
    await one.log.lead('00000000-0000-4000-8000-000000000001', -1);
    await one.close();
    const other = await openMember(new MemoryStorage(), log, 91);
    await other.log.lead('00000000-0000-4000-8000-000000000002', 0);
    await other.close();
    await log.write(9);
    await log.compact();
    await prepare(storage, log.objects);
    await removeLogId(storage);
    const alone = await openTestStore({ storage });
    const last = await alone.store.readEvent('$epoch-information', 'last');
    expect(JSON.parse(new TextDecoder().decode(last.data))).toMatchObject({ epochNumber: 2 });
    await alone.close();
  });
});
