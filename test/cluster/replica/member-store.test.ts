import { describe, expect, test } from 'vitest';
import { readRawLog } from '../../scavenge/raw-log.ts';
import { CHUNK_BYTES, Cluster, event } from './kit.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { HookedObjects } from '../../shared-log/setup.ts';
import { ANY } from '../../../core/streams/api.ts';
import { scavengeStoreOf } from '../../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import type { MemberStore } from '../../../core/cluster/replica/replica.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { MARKS_STREAM } from '../../../core/streams/format/marks.ts';
import { MARKS_FILE, writeMarksTable } from '../../../core/streams/format/marks-table.ts';
import { ALL_MARKS } from '../../../core/streams/format/mark-columns.ts';
import { Redactions } from '../../../core/streams/redactions/redactions.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';

const SIGNAL = new AbortController().signal;

describe('a member', () => {
  test("sees its own writes at once, and others' when it asks", async () => {
    const cluster = new Cluster();
    const [one, two] = [await cluster.open(), await cluster.open()];
    await one.store.append('parcels', -1, [event('a'), event('b')]);
    expect(
      (await one.store.readStream('parcels', { direction: 'forward', from: 0, count: 10 })).events.map(
        ({ type }) => type,
      ),
    ).toEqual(['a', 'b']);
    await expect(two.store.readStream('parcels', { direction: 'forward', from: 0, count: 10 })).rejects.toMatchObject({
      code: 'stream_not_found',
    });
    await two.log.refresh();
    expect(
      (await two.store.readStream('parcels', { direction: 'forward', from: 0, count: 10 })).events.map(
        ({ type }) => type,
      ),
    ).toEqual(['a', 'b']);
    await expect(two.store.append('parcels', 0, [event('c')])).rejects.toMatchObject({
      code: 'wrong_expected_version',
    });
    await two.store.append('parcels', 1, [event('c')]);
    expect(two.log.end).toBeGreaterThan(one.log.end);
    await one.log.refresh();
    expect(one.log).toMatchObject({ applied: two.log.applied, end: two.log.end });
    await one.close();
    await two.close();
    expect(await readRawLog(one.storage)).toEqual(await readRawLog(two.storage));
  });

  describe('with marks that a restore left beside its log', () => {
    const SHOWN = ['false 10', 'true 0'];
    const shown = async ({ store }: MemberStore) =>
      (await store.readStream('parcels', { direction: 'forward', from: 0, count: 10 })).events.map(
        ({ isRedacted, data }) => `${isRedacted} ${data.length}`,
      );
    const marksIn = async ({ store }: MemberStore) => (await store.streamInfo(MARKS_STREAM)).lastEventNumber + 1;

    async function withMarks(cluster: Cluster): Promise<Storage> {
      const one = await cluster.open();
      await one.store.append('parcels', -1, [event('a', '{"card":1}'), event('b', '{"card":2}')]);
      const { preparePosition, id } = await one.store.readEvent('parcels', 1);
      await one.close();
      const marks = new Redactions();
      marks.add({ position: preparePosition, id, keys: [] }, 0);
      await writeMarksTable(one.storage, MARKS_FILE, marks.columns(...ALL_MARKS), nodeDigests);
      return one.storage;
    }

    test('hides their events, and appends them, so that all others hide them, too', async () => {
      const cluster = new Cluster();
      const storage = await withMarks(cluster);
      const two = await cluster.open();
      const again = await cluster.open(storage);
      expect(await shown(again)).toEqual(SHOWN);
      await again.appendRestored();
      await two.log.refresh();
      expect(await shown(two)).toEqual(SHOWN);
      expect(await marksIn(two)).toBe(1);
      expect(again.restoredMarks.positions).toHaveLength(0);
      expect(await storage.list('')).not.toContain(MARKS_FILE);
      await again.appendRestored();
      await again.close();
      const third = await cluster.open(storage);
      expect(await shown(third)).toEqual(SHOWN);
      expect(await marksIn(third)).toBe(1);
      await third.close();
      await two.close();
    });

    test('keeps them where it may write nothing, and tries again after a minute', async () => {
      const cluster = new Cluster();
      const storage = await withMarks(cluster);
      let refusal: SkuaError | null = new SkuaError('not_leader', 'No.');
      const again = await cluster.open(storage, { refusal: () => refusal });
      await expect(again.appendRestored()).rejects.toBe(refusal);
      expect(await shown(again)).toEqual(SHOWN);
      const hold = await again.hold();
      expect(hold.snapshot.files.map(({ kind }) => kind)).toContain('redactions');
      await hold.release();
      expect(await storage.list('')).toContain(MARKS_FILE);
      refusal = null;
      await cluster.clock.advance(61_000);
      expect(await marksIn(again)).toBe(1);
      expect(await storage.list('')).not.toContain(MARKS_FILE);
      await again.close();
    });

    test('leaves them beside its log until what another member wrote for it has come into that', async () => {
      const cluster = new Cluster();
      const storage = await withMarks(cluster);
      const leader = await cluster.open();
      const again = await cluster.open(storage, {
        scavengeStore: (copy) => scavengeStoreOf(copy, { append: (...written) => leader.store.append(...written) }),
      });
      await again.appendRestored();
      expect(await marksIn(leader)).toBe(1);
      expect(await storage.list('')).toContain(MARKS_FILE);
      expect(await shown(again)).toEqual(SHOWN);
      await again.log.refresh();
      await again.appendRestored();
      expect(await marksIn(again)).toBe(1);
      expect(await storage.list('')).not.toContain(MARKS_FILE);
      await again.close();
      await leader.close();
    });
  });

  test('asks the bucket before it tells a refusal, but for one that nothing of others could change', async () => {
    const cluster = new Cluster();
    const counted = new HookedObjects(cluster.objects);
    const one = await cluster.open(undefined, { through: () => counted });
    let asked = 0;
    counted.onGet = (_, get) => {
      asked++;
      return get();
    };
    const final = new SkuaError('not_leader', 'No.', { isFinal: true });
    await expect(one.store.append('s', ANY, [event('e')], () => final)).rejects.toBe(final);
    expect(asked).toBe(0);
    const passing = new SkuaError('not_leader', 'No.', { isFinal: false });
    // One of the two may be decided otherwise by what others have committed: then both are asked for together.
    await Promise.all(
      [final, passing].map((error) =>
        expect(one.store.append('s', ANY, [event('e')], () => error)).rejects.toBe(error),
      ),
    );
    expect(asked).toBe(1);
    await one.close();
  });

  test('is opened again where a commit goes into files while it is being opened, at whichever read', async () => {
    const cluster = new Cluster();
    const one = await cluster.open();
    for (let i = 0; i < 5; i++) await one.store.append('s', ANY, [event('e')]);
    const copy = await cluster.open();
    await copy.log.refresh();
    await copy.close();
    for (let at = 1, isHit = true; isHit; at++) {
      isHit = false;
      let reads = 0;
      const opened = await cluster.open(copy.storage, {
        through: (objects) => {
          const hooked = new HookedObjects(objects);
          hooked.onGet = async (key, get) => {
            if (!key.startsWith('log/') || ++reads !== at) return get();
            isHit = true;
            return null;
          };
          return hooked;
        },
      });
      await opened.log.refresh();
      expect(opened.log).toMatchObject({ applied: one.log.applied, end: one.log.end });
      await opened.close();
    }
    await one.close();
  });

  test('is fed by commits that are sent', async () => {
    const cluster = new Cluster();
    const [one, two] = [await cluster.open(), await cluster.open()];
    for (let i = 0; i < 20; i++) await one.store.append(`s${i % 3}`, ANY, [event('x', `{"i":${i}}`)]);
    expect(one.log.recent(1, 1_000_000)!.length).toBeGreaterThan(0);
    expect(two.log.applied).toBe(0);
    const waited = two.log.waitForCommit(one.log.applied, SIGNAL);
    while (two.log.applied < one.log.applied) await two.log.takePushed(one.log.recent(two.log.applied + 1, 1_000)!);
    expect(await waited).toBe(true);
    expect(two.log.recent(two.log.applied + 1, 1_000)).toHaveLength(0);
    expect((await two.store.readStream('s1', { direction: 'forward', from: 0, count: 10 })).events).toHaveLength(7);
    await Promise.all([one.close(), two.close()]);
  });

  test('goes on where it was, across chunks, and remembers ids', async () => {
    const cluster = new Cluster();
    const one = await cluster.open();
    const again = event('again');
    await one.store.append('s', ANY, [again]);
    const big = `{"text":"${'x'.repeat(9_000)}"}`;
    for (let i = 0; i < 20; i++) await one.store.append('s', ANY, [event('big', big)]);
    const { applied, end } = one.log;
    await one.close();
    const two = await cluster.open();
    expect(two.log).toMatchObject({ applied, end });
    const back = await cluster.open(one.storage);
    expect(back.log).toMatchObject({ applied, end });
    expect(await back.store.append('s', ANY, [again])).toMatchObject({ firstEventNumber: 0 });
    await back.store.append('s', 20, [event('next')]);
    await two.log.refresh();
    expect((await two.store.readEvent('s', 'last')).type).toBe('next');
    await Promise.all([two.close(), back.close()]);
    expect(await readRawLog(two.storage)).toEqual(await readRawLog(one.storage));
  });

  test('ends where its chunk has ended, behind the last commit: who waits there for more waits', async () => {
    const cluster = new Cluster();
    let appendPoint: (() => Promise<unknown>) | null = null;
    const one = await cluster.open(undefined, {
      scavengeStore: (store) => {
        appendPoint = () => store.appendInternal('s', ANY, [event('point')], { completeChunkAfter: true });
        return store;
      },
    });
    await appendPoint!();
    const page = await one.store.readAll({ direction: 'forward', from: 'start', count: 10 });
    expect([one.store.end, page.next.commit, page.isEnd]).toEqual([CHUNK_BYTES, CHUNK_BYTES, true]);
    let hasCome = false;
    const waiting = one.store.waitForLog(one.store.end, SIGNAL).then(() => {
      hasCome = true;
    });
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(hasCome).toBe(false);
    await one.store.append('s', ANY, [event('next')]);
    await waiting;
    await one.close();
  });

  test('two write at once: both writes are in, in one order', async () => {
    const cluster = new Cluster();
    const members = [await cluster.open(), await cluster.open(), await cluster.open()];
    let done = 0;
    const writes = Promise.all(
      members.flatMap(({ store }, m) =>
        Array.from({ length: 10 }, (_, i) =>
          store.append(`of-${m}`, ANY, [event(`w${i}`)]).then(() => {
            done++;
          }),
        ),
      ),
    );
    for (let i = 0; i < 2_000 && done < 30; i++) await cluster.clock.advance(20);
    await writes;
    for (const { log } of members) await log.refresh();
    expect(new Set(members.map(({ log }) => log.end)).size).toBe(1);
    for (const { store } of members)
      for (const m of [0, 1, 2])
        expect((await store.readStream(`of-${m}`, { direction: 'forward', from: 0, count: 20 })).events).toHaveLength(
          10,
        );
    for (const member of members) await member.close();
    const [first, ...others] = await Promise.all(members.map(({ storage }) => readRawLog(storage)));
    for (const other of others) expect(other).toEqual(first);
  });
});

describe('a chunk that is full to its last byte', () => {
  test('ends where it ends, and the next commit begins the next one, in every copy', async () => {
    const cluster = new Cluster();
    const [one, two, late] = [await cluster.open(), await cluster.open(), await cluster.open()];
    const text = (length: number) => `"${'x'.repeat(length - 2)}"`;
    await one.store.append('s', ANY, [event('t', text(1_000))]);
    const overhead = one.log.end - 1_000;
    while (CHUNK_BYTES - one.log.end > 20_000) await one.store.append('s', ANY, [event('t', text(9_000))]);
    await one.store.append('s', ANY, [event('t', text(CHUNK_BYTES - one.log.end - overhead))]);
    expect(one.log.end).toBe(CHUNK_BYTES);
    await two.log.refresh();
    const { applied } = two.log;
    await two.close();
    const back = await cluster.open(two.storage);
    expect(back.log).toMatchObject({ applied, end: CHUNK_BYTES });
    // It has nothing for others that it does not have itself, and tells them to wait.
    expect(back.log.recent(applied + 1, 1_000)).toHaveLength(0);
    await back.store.append('s', ANY, [event('t', text(100))]);
    await one.log.refresh();
    await one.store.append('s', ANY, [event('t', text(100))]);
    await back.log.refresh();
    expect(back.log).toMatchObject({ applied: applied + 2, end: CHUNK_BYTES + 2 * (100 + overhead) });
    // Commits of both chunks are pushed to this one at once.
    await late.log.takePushed(one.log.recent(late.log.applied + 1, 1_048_576)!);
    expect(late.log).toMatchObject({ applied: back.log.applied, end: back.log.end });
    await Promise.all([one.close(), back.close(), late.close()]);
    expect(await readRawLog(two.storage)).toEqual(await readRawLog(one.storage));
    expect(await readRawLog(late.storage)).toEqual(await readRawLog(one.storage));
  });
});

describe('epochs', () => {
  test('a member that is held begins no commit, and takes in those of others', async () => {
    const cluster = new Cluster();
    const letGo = Promise.withResolvers<void>();
    const slow = new HookedObjects(cluster.objects);
    let refusal: SkuaError | null = null;
    const [one, two] = [
      await cluster.open(undefined, { through: () => slow, refusal: () => refusal }),
      await cluster.open(),
    ];
    const creating = Promise.withResolvers<void>();
    slow.onCreate = async (_, create) => {
      creating.resolve();
      await letGo.promise;
      return create();
    };
    const told: string[] = [];
    const noting = async (name: string, what: Promise<unknown>): Promise<void> => {
      await what;
      told.push(name);
    };
    const before = noting('before', one.store.append('s', ANY, [event('before')]));
    await creating.promise;
    const holding = new AbortController();
    const held = noting('held', one.log.hold(holding.signal));
    const behind = noting('behind', one.store.append('s', ANY, [event('behind')]));
    await cluster.clock.settle();
    expect(told).toEqual([]);
    letGo.resolve();
    await Promise.all([before, held]);
    // However long it waits, the next number is free for others.
    await cluster.clock.settle();
    await two.log.refresh();
    await noting('epoch', two.log.lead('22222222-2222-4222-8222-222222222222', -1));
    await one.log.refresh();
    expect([one.log.applied, one.log.epoch?.number]).toEqual([2, 0]);
    expect(told.toSorted()).toEqual(['before', 'epoch', 'held']);
    holding.abort();
    await behind;
    expect(one.log.applied).toBe(3);
    // What has come up meanwhile counts behind it.
    const again = new AbortController();
    await one.log.hold(again.signal);
    const late = one.store.append('s', ANY, [event('late')]);
    await cluster.clock.settle();
    refusal = new SkuaError('format_too_new', 'No.', {});
    again.abort();
    await expect(late).rejects.toBe(refusal);
    await Promise.all([one.close(), two.close()]);
  });

  test('each names the one before; who is late is refused; all members hear of them', async () => {
    const cluster = new Cluster();
    const [one, two] = [await cluster.open(), await cluster.open()];
    const heard: number[] = [];
    two.log.onEpoch(({ number }) => {
      heard.push(number);
    });
    const first = await one.log.lead('11111111-1111-4111-8111-111111111111', -1);
    expect(first).toMatchObject({ number: 0, leaderInstanceId: '11111111-1111-4111-8111-111111111111' });
    await expect(two.log.lead('22222222-2222-4222-8222-222222222222', -1)).rejects.toMatchObject({
      code: 'epoch_lost',
    });
    expect(two.log.epoch).toEqual(first);
    const second = await two.log.lead('22222222-2222-4222-8222-222222222222', 0);
    expect(second.number).toBe(1);
    await one.log.refresh();
    expect(one.log.epoch).toEqual(second);
    expect(heard).toEqual([0, 1]);
    await Promise.all([one.close(), two.close()]);
    const back = await cluster.open(one.storage);
    expect(back.log.epoch).toEqual(second);
    await back.close();
  });
});
