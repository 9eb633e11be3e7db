import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import type { ObjectInstance } from '../../core/shared-log/api.ts';
import { commitKey } from '../../core/shared-log/format/object-keys.ts';
import { newestManifest } from '../../core/shared-log/format/manifest.ts';
import { ANY, NO_STREAM, type StoredEvent, STREAM_EXISTS } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { compact } from './compact.ts';
import { Bucket, event, HookedObjects, uuid } from './setup.ts';

const BIG = JSON.stringify({ text: 'x'.repeat(5_000) });

const all = async ({ store }: ObjectInstance): Promise<readonly StoredEvent[]> =>
  (await store.readAll({ direction: 'forward', from: 'start', count: 4_000 })).events;
const numbers = async ({ store }: ObjectInstance, stream: string) =>
  (await store.readStream(stream, { direction: 'forward', from: 0, count: 4_000 })).events.map(({ number }) => number);
const requests = (instance: Awaited<ReturnType<Bucket['open']>>) => {
  const { gets, puts, lists } = instance.counting.counts();
  instance.counting.reset();
  return { gets, puts, lists };
};

describe('requests', () => {
  test('an append to a known stream is one PUT, whatever it expects', async () => {
    const bucket = new Bucket();
    const instance = await bucket.open();
    await instance.store.append('s', NO_STREAM, [event()]);
    requests(instance);
    await instance.store.append('s', 0, [event()]);
    expect(requests(instance)).toEqual({ gets: 0, puts: 1, lists: 0 });
    await instance.store.append('s', ANY, [event()]);
    await instance.store.append('s', STREAM_EXISTS, [event(), event()]);
    expect(requests(instance)).toEqual({ gets: 0, puts: 2, lists: 0 });
    await Promise.all(Array.from({ length: 50 }, () => instance.store.append('s', ANY, [event()])));
    expect(requests(instance).puts).toBeLessThanOrEqual(2);
  });

  test('a read of a recent event is one GET, and reads of one moment share it', async () => {
    const bucket = new Bucket();
    const [writer, reader] = [await bucket.open(), await bucket.open()];
    await writer.store.append('s', NO_STREAM, [event()]);
    await reader.store.readEvent('s', 'last');
    requests(reader);
    await reader.store.readEvent('s', 'last');
    expect(requests(reader)).toEqual({ gets: 1, puts: 0, lists: 0 });
    await Promise.all(Array.from({ length: 20 }, () => reader.store.readEvent('s', 'last')));
    expect(requests(reader).gets).toBeLessThanOrEqual(2);
  });

  test('a cold start reads a tail of 200 commits, and one event of a table, with at most 12', async () => {
    const bucket = new Bucket();
    const writer = await bucket.open();
    for (let i = 0; i < 20; i++) await writer.store.append(`old-${i}`, NO_STREAM, [event(), event()]);
    await compact(bucket.world());
    for (let i = 0; i < 200; i++) await writer.store.append(`new-${i % 10}`, ANY, [event()]);
    const cold = await bucket.open();
    expect(cold.counting.counts()).toMatchObject({ lists: 2, puts: 0 });
    expect(cold.counting.counts().gets).toBeLessThanOrEqual(4);
    expect((await cold.store.readEvent('old-7', 1)).number).toBe(1);
    const { gets, lists } = cold.counting.counts();
    expect(gets + lists).toBeLessThanOrEqual(12);
  });

  test('an append that expects nothing in particular finds the ids of the last 1 000 events with 3 at most', async () => {
    const bucket = new Bucket();
    const writer = await bucket.open({ chunkSizeBytes: 2_097_152 });
    const batch = (): ReturnType<typeof event>[] => Array.from({ length: 500 }, () => event());
    const [early, late] = [batch(), batch()];
    await writer.store.append('s', ANY, early);
    for (let i = 0; i < 10; i++) await writer.store.append(`other-${i}`, ANY, batch());
    await writer.store.append('s', ANY, late);
    await compact(bucket.world());
    for (const repeated of [null, early[3]!, late[3]!]) {
      const fresh = await bucket.open();
      await fresh.store.append('warm', ANY, [event()]);
      requests(fresh);
      const { lastEventNumber, isRepeat } = await fresh.store.append('s', ANY, [repeated ?? event()]);
      const { gets, puts, lists } = requests(fresh);
      expect({ puts, lists, isRepeat }).toEqual({
        puts: repeated === null ? 1 : 0,
        lists: 0,
        isRepeat: repeated !== null,
      });
      expect(gets).toBeLessThanOrEqual(3);
      expect(lastEventNumber).toBe(repeated === null ? 1_000 : repeated === early[3] ? 3 : 503);
    }
  });

  test('one that is far behind catches up with few of them', async () => {
    const bucket = new Bucket();
    const [writer, reader] = [await bucket.open(), await bucket.open()];
    requests(reader);
    for (let i = 0; i < 400; i++) await writer.store.append(`s-${i % 5}`, ANY, [event()]);
    expect(await numbers(reader, 's-3')).toHaveLength(80);
    expect(requests(reader).gets).toBeLessThan(45);
  });
});

describe('several writers', () => {
  test('lose, take in the winner and check again', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    await a.store.append('s', NO_STREAM, [event()]);
    await expect(b.store.append('s', NO_STREAM, [event()])).rejects.toMatchObject({
      code: 'wrong_expected_version',
      data: { expected: -1, actual: 0 },
    });
    expect((await b.store.append('s', 0, [event()])).lastEventNumber).toBe(1);
    expect((await a.store.append('s', ANY, [event()])).lastEventNumber).toBe(2);
    expect(await numbers(a, 's')).toEqual([0, 1, 2]);
    expect((await all(a)).map(({ id }) => id)).toEqual((await all(b)).map(({ id }) => id));
  });

  test('a refusal is decided by the latest state, not by an old one', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    await b.store.append('s', NO_STREAM, [event()]);
    for (let i = 0; i < 5; i++) await a.store.append('s', i, [event()]);
    // What b knows ends with event 0.
    expect((await b.store.append('s', 5, [event()])).lastEventNumber).toBe(6);
    await b.store.deleteStream('s', 6, 'soft');
    await expect(a.store.append('s', STREAM_EXISTS, [event()])).rejects.toMatchObject({ code: 'stream_deleted' });
    await b.store.append('s', NO_STREAM, [event()]);
    expect((await a.store.append('s', STREAM_EXISTS, [event()])).lastEventNumber).toBe(8);
  });

  test('a repeat too: it is none any more when the stream was deleted for ever', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    const one = event();
    await a.store.append('s', NO_STREAM, [one]);
    await b.store.deleteStream('s', 0, 'hard');
    await expect(a.store.append('s', NO_STREAM, [one])).rejects.toMatchObject({ code: 'stream_deleted' });
  });

  test('authorize is asked again after a loss, with the metadata that the winner wrote', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    await b.store.append('s', NO_STREAM, [event()]);
    await a.refresh();
    await b.store.append('$$s', NO_STREAM, [event('{"$acl":{"$w":"ops"}}')]);
    const seen: (readonly string[] | undefined)[] = [];
    await a.store.append('s', ANY, [event()], ({ acl }) => {
      seen.push(acl?.write);
      return null;
    });
    expect(seen).toEqual([undefined, ['ops']]);
  });

  test("recognise each other's repeats: by number, among recent ids, and among the last events of a stream", async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    const events = [event(), event()];
    const first = await a.store.append('s', NO_STREAM, events);
    expect(await b.store.append('s', NO_STREAM, events)).toEqual({ ...first, isRepeat: true });
    expect(await b.store.append('s', ANY, events)).toEqual({ ...first, isRepeat: true });
    for (let i = 0; i < 30; i++) await a.store.append('s', ANY, [event()]);
    await compact(bucket.world());
    const cold = await bucket.open();
    expect(await cold.store.append('s', STREAM_EXISTS, events)).toEqual({ ...first, isRepeat: true });
    expect(await cold.store.append('s', ANY, [event()])).toMatchObject({ lastEventNumber: 32, isRepeat: false });
    await expect(cold.store.append('s', ANY, [events[0]!, event()])).rejects.toMatchObject({
      code: 'wrong_expected_version',
    });
  });

  test('recognise them also after a request that failed when it had let in what others wrote', async () => {
    const bucket = new Bucket();
    const hooks = new HookedObjects(bucket.objects);
    const [a, b] = [await bucket.open(), await bucket.open({}, () => hooks)];
    await b.store.append('s', ANY, [event()]);
    // From here on b knows the ids of the stream's past, and adds to them what it sees.
    await b.store.append('s', ANY, [event()]);
    const one = event();
    await a.store.append('s', ANY, [one]);
    let gets = 0;
    hooks.onGet = async (_, get) => {
      if (++gets > 1) throw new SkuaError('storage_unreachable', 'Gone.', {});
      return get();
    };
    await expect(b.store.append('s', 7, [event()])).rejects.toMatchObject({ code: 'storage_unreachable' });
    hooks.onGet = null;
    expect(gets).toBe(2);
    expect(await b.store.append('s', ANY, [one])).toMatchObject({ lastEventNumber: 2, isRepeat: true });
    expect(await numbers(a, 's')).toEqual([0, 1, 2]);
  });

  test('go on with ids that no longer are among the recent ones', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open({ streams: { recentIds: 8 } }), await bucket.open({ streams: { recentIds: 8 } })];
    const early = event();
    const { position } = await a.store.append('s', ANY, [early]);
    for (let i = 0; i < 40; i++) await (i % 2 === 0 ? a : b).store.append('s', ANY, [event()]);
    expect(await b.store.append('s', ANY, [early])).toEqual({
      firstEventNumber: 0,
      lastEventNumber: 0,
      position,
      isRepeat: true,
    });
    expect(await a.store.append('s', ANY, [early])).toMatchObject({ isRepeat: true });
    expect(await numbers(a, 's')).toHaveLength(41);
  });

  test('all get through when all write at once', async () => {
    const bucket = new Bucket();
    const instances = await Promise.all(Array.from({ length: 5 }, () => bucket.open()));
    await Promise.all(
      instances.flatMap(({ store }, i) =>
        Array.from({ length: 20 }, (_, k) => store.append(`s-${k % 3}`, ANY, [event(`${i}`)])),
      ),
    );
    const logs = await Promise.all(instances.map(all));
    expect(logs[0]).toHaveLength(100);
    for (const log of logs) expect(log.map(({ id }) => id)).toEqual(logs[0]!.map(({ id }) => id));
    expect(await numbers(instances[0]!, 's-0')).toEqual(Array.from({ length: 35 }, (_, i) => i));
  });

  test('one that always loses is told to come again', async () => {
    const bucket = new Bucket();
    const winner = await bucket.open();
    const hooked = new HookedObjects(bucket.objects);
    const loser = await bucket.open({ commitAttemptsMax: 4 }, () => hooked);
    hooked.onCreate = async (_, create) => {
      await winner.store.append('w', ANY, [event()]);
      return create();
    };
    await expect(loser.store.append('s', ANY, [event()])).rejects.toMatchObject({
      code: 'commit_contended',
      data: { attempts: 4, limit: 4, retryAfterMs: 1_000 },
    });
    expect(await numbers(winner, 'w')).toHaveLength(4);
    await expect(winner.store.readEvent('s', 'last')).rejects.toMatchObject({ code: 'stream_not_found' });
  });
});

describe('chunks', () => {
  test('begin where a group does not fit, and every instance sees the same positions', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    for (let i = 0; i < 40; i++) await (i % 3 === 0 ? b : a).store.append(`s-${i % 4}`, ANY, [event(BIG)]);
    const log = await all(await bucket.open());
    expect(log).toHaveLength(40);
    expect((await all(a)).map(({ position }) => position)).toEqual(log.map(({ position }) => position));
    expect(new Set(log.map(({ position }) => Math.floor(position / 65_536)))).toEqual(new Set([0, 1, 2, 3]));
    const backward = await b.store.readAll({ direction: 'backward', from: 'end', count: 100 });
    expect(backward.events.map(({ position }) => position)).toEqual(log.map(({ position }) => position).toReversed());
  });

  test('end behind a write that asks for it, for everybody, in the same commit', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    await a.internals.appendInternal('s', ANY, [event()], { completeChunkAfter: true });
    expect((await b.store.append('t', ANY, [event()])).position).toBe(65_536);
    await (await bucket.open()).internals.appendInternal('s', ANY, [event()], { completeChunkAfter: true });
    expect((await a.store.append('t', ANY, [event()])).position).toBe(131_072);
    await compact(bucket.world());
    expect(await newestManifest(bucket.objects, nodeDigests)).toMatchObject({
      chunks: [{ startNumber: 0 }, { startNumber: 1 }],
    });
    expect((await all(await bucket.open())).map(({ position }) => Math.floor(position / 65_536))).toEqual([0, 1, 1, 2]);
  });
});

describe('manifests', () => {
  test('are taken over while the process runs; what is known stays known', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    for (let i = 0; i < 60; i++) await a.store.append(`s-${i % 4}`, ANY, [event(BIG)]);
    await all(b);
    for (const commitsMax of [13, 20, 1_000]) {
      await compact(bucket.world(), { commitsMax });
      bucket.clock.stand(400_000);
      for (const instance of [a, b, await bucket.open()]) {
        expect(await all(instance)).toHaveLength(60);
        expect(await numbers(instance, 's-1')).toEqual(Array.from({ length: 15 }, (_, i) => i));
      }
    }
    expect((await a.store.append('s-1', 14, [event()])).lastEventNumber).toBe(15);
    expect(await all(b)).toHaveLength(61);
  });

  test('reads that find a file gone look for the newest manifest once', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    for (let i = 0; i < 30; i++) await a.store.append('s', ANY, [event(BIG)]);
    await compact(bucket.world());
    const reader = await bucket.open();
    for (let i = 0; i < 30; i++) await a.store.append('s', ANY, [event(BIG)]);
    await compact(bucket.world());
    // As if the age of removal had passed for the reader alone.
    const { dropped } = (await newestManifest(bucket.objects, nodeDigests))!;
    await bucket.objects.remove(dropped.filter(({ key }) => key.startsWith('files/')).map(({ key }) => key));
    expect(await numbers(reader, 's')).toHaveLength(60);
    expect((await b.store.append('s', 59, [event()])).lastEventNumber).toBe(60);
  });

  test('reads that stand still after that look again, as often as files go away meanwhile', async () => {
    const bucket = new Bucket();
    const writer = await bucket.open();
    const fill = async () => {
      for (let i = 0; i < 30; i++) await writer.store.append('s', ANY, [event(BIG)]);
      await compact(bucket.world());
    };
    await fill();
    const hooks = new HookedObjects(bucket.objects);
    const reader = await bucket.open({}, () => hooks);
    let absent = 0;
    hooks.onGet = async (key, get) => {
      if (!key.startsWith('files/') || absent === 3) return get();
      // As if the request had hung until all that the manifest in use names was dropped and removed.
      await fill();
      const { dropped } = (await newestManifest(bucket.objects, nodeDigests))!;
      await bucket.objects.remove(dropped.map((object) => object.key));
      const there = await get();
      if (there === null) absent++;
      return there;
    };
    expect((await numbers(reader, 's')).length).toBeGreaterThanOrEqual(60);
    expect(absent).toBe(3);
  });

  test('a file that the newest one names and that is gone is damage, which one LIST tells', async () => {
    const bucket = new Bucket();
    const writer = await bucket.open();
    for (let i = 0; i < 30; i++) await writer.store.append('s', ANY, [event(BIG)]);
    await compact(bucket.world());
    const reader = await bucket.open();
    const { key } = (await newestManifest(bucket.objects, nodeDigests))!.files.find(
      ({ name, key: at }) => at !== null && name.startsWith('index/'),
    )!;
    const chunk = (await newestManifest(bucket.objects, nodeDigests))!.chunks[0]!.key;
    await bucket.objects.remove([chunk]);
    requests(reader);
    await expect(numbers(reader, 's')).rejects.toMatchObject({ code: 'log_corrupt', data: { key: chunk } });
    expect(requests(reader).lists).toBe(1);
    await bucket.objects.remove([key!]);
    await expect(numbers(await bucket.open(), 's')).rejects.toMatchObject({ code: 'log_corrupt' });
  });

  test('one that knows nothing of many compacted and removed commits starts over', async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    await b.store.append('s', ANY, [event()]);
    for (let i = 0; i < 50; i++) await a.store.append('s', ANY, [event()]);
    await compact(bucket.world());
    await bucket.objects.remove(Array.from({ length: 51 }, (_, i) => commitKey(i + 1)));
    await a.store.append('s', 50, [event()]);
    bucket.clock.stand(7_200_000, false);
    expect(await numbers(b, 's')).toHaveLength(52);
    expect((await b.store.append('s', ANY, [event()])).lastEventNumber).toBe(52);
  });

  test('a missing commit that no manifest has taken in is damage', async () => {
    const bucket = new Bucket();
    const a = await bucket.open();
    for (let i = 0; i < 5; i++) await a.store.append('s', ANY, [event()]);
    await bucket.objects.remove([commitKey(3)]);
    await expect(bucket.open()).rejects.toMatchObject({ code: 'log_corrupt' });
  });

  test('of another store under the same prefix end the work', async () => {
    const bucket = new Bucket();
    const a = await bucket.open();
    await a.store.append('s', ANY, [event()]);
    const keys = (await bucket.objects.list('')).objects.map(({ key }) => key);
    await bucket.objects.remove(keys);
    bucket.clock.stand(400_000);
    await expect(a.store.readEvent('s', 0)).rejects.toMatchObject({ code: 'manifest_invalid' });
  });
});

describe('whoever waits', () => {
  test("hears of other writers' events by asking once a second", async () => {
    const bucket = new Bucket();
    const [a, b] = [await bucket.open(), await bucket.open()];
    const abort = new AbortController();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const message of b.store.subscribeToStream('s', { after: -1, signal: abort.signal })) {
        seen.push(message.kind === 'event' ? String(message.event.number) : message.kind);
        if (seen.length === 4) abort.abort();
      }
    })();
    const waiting = b.store.waitForStream('s', abort.signal);
    for (let i = 0; i < 3; i++) await a.store.append('s', ANY, [event()]);
    await reading;
    expect(await waiting).toBe(true);
    expect(seen.filter((one) => one !== 'caught-up')).toEqual(
      ['0', '1', '2'].slice(0, seen.filter((one) => one !== 'caught-up').length),
    );
    expect(await b.store.waitForLog(0, new AbortController().signal)).toBe(true);
    await b.close();
    requests(b);
    await bucket.clock.yield();
    expect(requests(b).gets).toBe(0);
  });
});

test('options that make removal unsafe are refused', async () => {
  await expect(new Bucket().open({ freshMs: 10_000, removeAfterMs: 19_999 })).rejects.toMatchObject({
    code: 'bad_option',
  });
});

test('a tail that no tick takes into files has a limit, which a tick lifts', async () => {
  const bucket = new Bucket();
  const limits = { tailCommitsMax: 10 };
  const [a, b] = [await bucket.open(limits), await bucket.open(limits)];
  for (let i = 0; i < 10; i++) await a.store.append('s', ANY, [event()]);
  await expect(a.store.append('s', ANY, [event()])).rejects.toMatchObject({
    code: 'too_busy',
    data: { commits: 10, commitsMax: 10 },
  });
  expect(await numbers(b, 's')).toHaveLength(10);
  await compact(bucket.world());
  expect((await a.store.append('s', ANY, [event()])).lastEventNumber).toBe(10);
  expect(await numbers(b, 's')).toHaveLength(11);
  const bytes = await bucket.open({ tailBytesMax: 6_000 });
  await bytes.store.append('s', ANY, [event(BIG)]);
  await bytes.store.append('s', ANY, [event(BIG)]);
  await expect(bytes.store.append('s', ANY, [event()])).rejects.toMatchObject({ code: 'too_busy' });
});

test('figures say what an instance holds', async () => {
  const bucket = new Bucket();
  const a = await bucket.open();
  expect(a.figures()).toMatchObject({
    indexCheckpoint: -1,
    lastCommitPosition: -1,
    indexTables: 0,
    indexEntriesInMemory: 0,
    chunks: 0,
  });
  for (let i = 0; i < 20; i++) await a.store.append('s', ANY, [event(BIG)]);
  const { position } = await a.store.append('s', ANY, [event()]);
  expect(a.figures()).toMatchObject({ lastCommitPosition: position, indexEntriesInMemory: 21, chunks: 2 });
  await compact(bucket.world(), { commitsMax: 20 });
  const b = await bucket.open();
  expect(b.figures()).toMatchObject({
    lastCommitPosition: position,
    indexEntriesInMemory: 1,
    indexTables: 1,
    chunks: 2,
  });
  await b.store.readEvent('s', 0);
  expect(b.figures()).toMatchObject({ indexTableEntries: 20, indexCheckpoint: position });
});

test('ids of events are those that were given', async () => {
  const bucket = new Bucket();
  const a = await bucket.open();
  await a.store.append('s', ANY, [event('{}', uuid(77_777))]);
  expect((await (await bucket.open()).store.readEvent('s', 0)).id).toBe(uuid(77_777));
});
