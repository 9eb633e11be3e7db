import { describe, expect, it } from 'vitest';
import { encodeText } from '../../core/base/text.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY, type AppendCondition, type EventStore, NO_STREAM } from '../../core/streams/api.ts';
import { newEvent, openIndexed, randomId, set } from '../attributes/world.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { simulateConditions } from './conditions-run.ts';

async function opened(
  seed = 1,
  storage = new MemoryStorage(),
  clock = new ManualClock(TEST_NOW_MS, 'microtask'),
): ReturnType<typeof openIndexed> {
  const open = await openIndexed({ storage, seed, clock, attributes: { memTableEntriesMax: 64 } });
  await set(open.store, { tags: true });
  await open.attributes!.idle();
  return open;
}

/** The same directory by another clock. */
async function openLater(
  open: Awaited<ReturnType<typeof openIndexed>>,
  storage: MemoryStorage,
  nowMs: number,
): ReturnType<typeof openIndexed> {
  await open.close();
  return openIndexed({ storage, seed: nowMs % 1_000_003, clock: new ManualClock(nowMs, 'microtask') });
}

function appendIf(
  store: EventStore,
  condition: AppendCondition,
  tags: readonly string[],
  stream = 'dcb',
  id = randomId(),
): ReturnType<EventStore['appendToStreams']> {
  const event = { ...newEvent('enrolled', { $tags: tags }), id };
  return store.appendToStreams([{ stream, expectedVersion: ANY, events: [event] }], { condition });
}

/** Events of the stream `short` expire within ten seconds. */
async function expireSoon(store: EventStore): Promise<void> {
  const data = encodeText('{"$maxAge":10}');
  await store.append('$$short', ANY, [
    { id: randomId(), type: '$metadata', isJson: true, data, metadata: new Uint8Array(0) },
  ]);
}

const COURSE: AppendCondition = { failIfEventsMatch: { items: [{ types: ['enrolled'], tags: ['course:1'] }] } };

describe('appends on a condition', () => {
  it('are written while nothing matches, and refused with what does', async () => {
    const open = await opened();
    const { store } = open;
    const first = await appendIf(store, COURSE, ['course:1']);
    await expect(appendIf(store, COURSE, ['course:1'])).rejects.toMatchObject({
      code: 'condition_failed',
      data: { stream: 'dcb', number: 0, position: first.position },
    });
    await appendIf(store, COURSE, ['course:2']).catch(() => {});
    const second = await appendIf(store, { ...COURSE, after: first.position }, ['course:1']);
    await expect(appendIf(store, { ...COURSE, after: first.position }, ['x'])).rejects.toMatchObject({
      data: { position: second.position },
    });
    // What is written at the very end would stand at this position, and so not count.
    for (const after of [store.end, store.end + 1])
      await expect(appendIf(store, { ...COURSE, after }, ['x'])).rejects.toMatchObject({ code: 'position_unknown' });
    await open.close();
  });

  it('of one moment: one of those that would break each other is written', async () => {
    const open = await opened();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) => appendIf(open.store, COURSE, ['course:1'], `student-${i % 3}`)),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await open.close();
  });

  it('are refused for what stands before them in the same group, however much that is', async () => {
    const open = await opened();
    const { store } = open;
    for (const count of [20, 700]) {
      const tags = Array.from({ length: count }, (_, i) => `${count}:${i}`);
      const written = tags.map((tag) =>
        store.append('plain', ANY, [newEvent('enrolled', { $tags: [tag, `${tag}:more`] })]),
      );
      const decided = tags.map((tag) => appendIf(store, { failIfEventsMatch: { items: [{ tags: [tag] }] } }, []));
      expect(new Set((await Promise.allSettled(decided)).map(({ status }) => status))).toEqual(new Set(['rejected']));
      await Promise.all(written);
    }
    await open.close();
  });

  it('hold where what matches is hidden, and no longer where it is shown again', async () => {
    const open = await opened();
    const { store } = open;
    await appendIf(store, COURSE, ['course:1'], 'old');
    const meta = (json: string): Promise<unknown> =>
      store.append('$$old', ANY, [
        { id: randomId(), type: '$metadata', isJson: true, data: encodeText(json), metadata: new Uint8Array(0) },
      ]);
    await meta('{"$tb":1}');
    await appendIf(store, COURSE, ['course:9'], 'other');
    await meta('{}');
    await expect(appendIf(store, COURSE, ['course:9'], 'other')).rejects.toMatchObject({ data: { stream: 'old' } });
    // Both in one group: the metadata come first.
    await meta('{"$tb":1}');
    const both = await Promise.allSettled([meta('{}'), appendIf(store, COURSE, ['course:9'], 'other')]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    await open.close();
  });

  it('are known as repeats by the oldest match, when ids are remembered no more', async () => {
    const storage = new MemoryStorage();
    const open = await opened(1, storage);
    const id = randomId();
    const first = await appendIf(open.store, COURSE, ['course:1'], 's-1', id);
    await open.close();
    const again = await openIndexed({ storage, seed: 2, recentIds: 0, attributes: { memTableEntriesMax: 64 } });
    expect(await appendIf(again.store, COURSE, ['course:1'], 's-1', id)).toEqual({ ...first, isRepeat: true });
    await expect(appendIf(again.store, COURSE, ['course:1'], 's-1')).rejects.toMatchObject({
      code: 'condition_failed',
    });
    await again.close();
  });

  it('go with expected versions: all or nothing', async () => {
    const open = await opened();
    const { store } = open;
    const write = { stream: 's', expectedVersion: NO_STREAM, events: [newEvent('enrolled', { $tags: ['course:1'] })] };
    await store.appendToStreams([write], { condition: COURSE });
    await expect(
      store.appendToStreams([{ ...write, events: [newEvent('x')] }], {
        condition: { failIfEventsMatch: { items: [{ types: ['none'] }] } },
      }),
    ).rejects.toMatchObject({ code: 'wrong_expected_version' });
    await open.close();
  });

  it('are refused where no index can tell', async () => {
    const open = await openIndexed({ storage: new MemoryStorage(), seed: 1 });
    await expect(appendIf(open.store, COURSE, [])).rejects.toMatchObject({ code: 'index_off' });
    await expect(
      appendIf(open.store, { failIfEventsMatch: { items: Array(33).fill({ tags: ['a'] }) } }, []),
    ).rejects.toMatchObject({ code: 'bad_request' });
    await open.close();
  });

  it('of one moment on all events: one is written', async () => {
    const open = await opened();
    const all: AppendCondition = { failIfEventsMatch: { items: [] }, after: open.store.end - 1 };
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => appendIf(open.store, all, [])));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await open.close();
  });

  it('see that one of very many streams which hide events shows them again', { timeout: 30_000 }, async () => {
    const open = await opened();
    const { store } = open;
    const meta = (i: number, json: string): Promise<{ readonly position: number }> =>
      store.append(`$$many-${i}`, ANY, [
        { id: randomId(), type: '$metadata', isJson: true, data: encodeText(json), metadata: new Uint8Array(0) },
      ]);
    for (let i = 0; i < 300; i++) {
      await store.append(`many-${i}`, ANY, [newEvent('enrolled', { $tags: ['course:1'] })]);
      await meta(i, '{"$tb":1}');
    }
    await appendIf(store, COURSE, ['course:9']);
    const both = await Promise.allSettled([meta(270, '{}'), appendIf(store, COURSE, ['course:9'])]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    // At one of these moments it has been searched, and comes into one group with the metadata, behind them.
    for (let turns = 0; turns < 20; turns++) {
      await meta(270, '{"$tb":1}');
      const deciding = appendIf(store, COURSE, ['course:9']);
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      const showing = meta(270, '{}');
      const decided = await deciding.catch(() => null);
      const { position } = await showing;
      if (decided !== null) expect(decided.position).toBeLessThan(position);
    }
    await open.close();
  });

  it('count what has expired by the time of the last record, where the clock lies behind', async () => {
    const storage = new MemoryStorage();
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    const open = await opened(1, storage, clock);
    await expireSoon(open.store);
    await appendIf(open.store, COURSE, ['course:1'], 'short');
    const late = await openLater(open, storage, TEST_NOW_MS + 60_000);
    await late.store.append('other', ANY, [newEvent('made')]);
    const behind = await openLater(late, storage, TEST_NOW_MS + 5_000);
    await appendIf(behind.store, COURSE, ['course:1'], 'other');
    await behind.close();
  });

  it('count no more what a scavenge may have removed, where the clock steps back far', async () => {
    const storage = new MemoryStorage();
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    const open = await opened(1, storage, clock);
    await expireSoon(open.store);
    await appendIf(open.store, COURSE, ['course:1'], 'short');
    clock.setNow(TEST_NOW_MS + 3_600_000);
    await open.store.append('$scavengePoints', ANY, [newEvent('$scavengePoint')]);
    clock.setNow(TEST_NOW_MS + 5_000);
    await open.store.append('other', ANY, [newEvent('made')]);
    await appendIf(open.store, COURSE, ['other'], 'short');
    const behind = await openLater(open, storage, TEST_NOW_MS + 6_000);
    await appendIf(behind.store, COURSE, ['other'], 'short');
    await behind.close();
  });

  it('are refused where too much would have to be looked at', { timeout: 60_000 }, async () => {
    const open = await openIndexed({ storage: new MemoryStorage(), seed: 1, chunkSizeBytes: 67_108_864 });
    const { store } = open;
    const made = Array.from({ length: 3_300 }, () => newEvent('made'));
    for (let i = 0; i < 20; i++)
      await store.append(
        'long',
        ANY,
        made.map((event) => ({ ...event, id: randomId() })),
      );
    await store.append('$$long', ANY, [
      {
        id: randomId(),
        type: '$metadata',
        isJson: true,
        data: encodeText('{"$tb":66000}'),
        metadata: new Uint8Array(0),
      },
    ]);
    const condition: AppendCondition = { failIfEventsMatch: { items: [{ types: ['made'] }] } };
    await expect(appendIf(store, condition, [])).rejects.toMatchObject({ code: 'condition_too_broad' });
    await open.close();
  });

  it('are never wrong: random ones at once, and repeats, against a model', { timeout: 120_000 }, async () => {
    const sums: Record<string, number> = {};
    for (const seed of seedsFrom(1, bySize(20, 200))) {
      const { problems, counts } = await simulateConditions(seed);
      expect(problems, `seed ${seed}`).toEqual([]);
      for (const [what, times] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + times;
    }
    for (const [what, times] of Object.entries(sums)) expect(times, what).toBeGreaterThan(0);
  });
});
