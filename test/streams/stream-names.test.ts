import { describe, expect, test } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import type { ReadAllOptions } from '../../core/streams/api.ts';
import { type NamesWanted, SLICE_BYTES_MAX, StreamNames } from '../../core/streams/find-names/find-names.ts';
import { encodeText } from '../../core/base/text.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

const WANTED: NamesWanted = {
  by: 'written',
  search: null,
  match: 'substring',
  withSystem: false,
  count: 50,
  from: 'end',
};
let made = 0;

const eventOf = (bytes = 2) => ({
  id: `50000000-0000-4000-8000-${String(++made).padStart(12, '0')}`,
  type: 'made',
  isJson: false,
  data: encodeText('x'.repeat(bytes)),
  metadata: new Uint8Array(0),
});

async function opened() {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const open = await openTestStore({ storage: new MemoryStorage(), clock, chunkSizeBytes: 1_048_576 });
  const write = (stream: string, count = 1, bytes = 2) =>
    open.store.append(
      stream,
      -2,
      Array.from({ length: count }, () => eventOf(bytes)),
    );
  const names = new StreamNames(open.store, clock);
  const find = async (more: Partial<NamesWanted> = {}) =>
    (await names.find({ ...WANTED, ...more })).streams.map(({ stream }) => stream);
  return { clock, open, write, names, find };
}

/** All slices, one behind the other. */
async function all(
  names: StreamNames,
  wanted: NamesWanted,
): Promise<{ readonly streams: string[]; readonly slices: number }> {
  const streams: string[] = [];
  let slices = 0;
  for (let from: NamesWanted['from'] | null = 'end'; from !== null; slices++) {
    const slice = await names.find({ ...wanted, from });
    streams.push(...slice.streams.map(({ stream }) => stream));
    from = slice.next;
  }
  return { streams, slices };
}

describe('names of streams', () => {
  test('written lately come once each, newest first, system streams only on demand', async () => {
    const { open, write, names, find } = await opened();
    await write('a');
    await write('b', 2);
    await write('$system');
    await write('a');
    expect(await find()).toEqual(['a', 'b']);
    expect(await find({ withSystem: true })).toEqual(expect.arrayContaining(['a', '$system', 'b']));
    expect((await find({ withSystem: true })).slice(0, 3)).toEqual(['a', '$system', 'b']);
    const { streams, from, to, logEnd, next } = await names.find(WANTED);
    expect([streams[0], from, to, logEnd, next]).toEqual([
      {
        stream: 'a',
        lastEventNumber: 1,
        isDeleted: false,
        event: {
          number: 1,
          position: expect.any(Number),
          createdMs: expect.any(Number),
          createdTicks: expect.any(Number),
        },
      },
      open.store.end,
      0,
      open.store.end,
      null,
    ]);
    await open.close();
  });

  test('created lately are those of first events', async () => {
    const { open, write, find } = await opened();
    for (const stream of ['first', 'second', 'first', 'third', 'second']) await write(stream);
    expect(await find({ by: 'created' })).toEqual(['third', 'second', 'first']);
    expect(await find({ by: 'created', count: 1 })).toEqual(['third']);
    await open.close();
  });

  test('are found by a part in any case, or by how they begin', async () => {
    const { open, write, find } = await opened();
    for (const stream of ['Order-1', 'reorder-2', 'other', 'Größe-ÄÖ']) await write(stream);
    expect(await find({ search: 'ORDER' })).toEqual(['reorder-2', 'Order-1']);
    expect(await find({ search: 'order', match: 'prefix' })).toEqual(['Order-1']);
    expect(await find({ search: 'größe-äö' })).toEqual(['Größe-ÄÖ']);
    expect(await find({ search: '.*' })).toEqual([]);
    expect(await find({ search: '' })).toHaveLength(4);
    await open.close();
  });

  test('tell what is deleted, softly and for ever', async () => {
    const { open, write, names } = await opened();
    for (const stream of ['soft', 'hard', 'kept']) await write(stream);
    await open.store.deleteStream('soft', -2, 'soft');
    await open.store.deleteStream('hard', -2, 'hard');
    const { streams } = await names.find(WANTED);
    expect(Object.fromEntries(streams.map(({ stream, isDeleted }) => [stream, isDeleted]))).toEqual({
      soft: true,
      hard: true,
      kept: false,
    });
    await open.close();
  });

  test('that do not fit lead on, without one lost', async () => {
    const { open, write, names } = await opened();
    for (let i = 0; i < 25; i++) await write(`s-${i}`);
    for (let i = 0; i < 30; i++) await write('hot');
    const { streams, slices } = await all(names, { ...WANTED, count: 4 });
    expect(new Set(streams).size).toBe(26);
    expect(streams.filter((each) => each !== 'hot')).toEqual(Array.from({ length: 25 }, (_, i) => `s-${24 - i}`));
    expect(slices).toBe(7);
    await open.close();
  });

  test('go on where a scavenge has removed what the cursor stood at', async () => {
    const { open, write, names } = await opened();
    for (let i = 0; i < 5; i++) await write(`kept-${i}`);
    await write('gone', 1);
    await write('newest');
    const { next } = await names.find({ ...WANTED, count: 2 });
    await open.store.deleteStream('gone', -2, 'soft');
    await open.scavenger.start();
    await open.scavenger.idle();
    expect((await names.find({ ...WANTED, from: next! })).streams.map(({ stream }) => stream)).toEqual([
      'kept-4',
      'kept-3',
      'kept-2',
      'kept-1',
      'kept-0',
    ]);
    await open.close();
  });
});

describe('a slice', () => {
  /** What a slice asks of the store. */
  function counted(open: DirectoryStore, onPage: () => Promise<void>) {
    const asked: ReadAllOptions[] = [];
    const store = {
      get end() {
        return open.store.end;
      },
      readAll: async (options: ReadAllOptions) => {
        asked.push(options);
        await onPage();
        return open.store.readAll(options);
      },
      streamInfo: (stream: string) => open.store.streamInfo(stream),
    };
    return { asked, store };
  }

  test('ends after its time, and says how far it has come', async () => {
    const { clock, open, write } = await opened();
    await write('needle');
    for (let i = 0; i < 5; i++) await write('hay', 2_000);
    const { asked, store } = counted(open, () => clock.advance(100));
    const names = new StreamNames(store, clock);
    const slice = await names.find({ ...WANTED, search: 'needle' });
    expect([slice.streams, asked.length]).toEqual([[], 3]);
    expect(slice.to).toBeGreaterThan(0);
    expect(slice.to).toBeLessThan(slice.from);
    expect((await all(names, { ...WANTED, search: 'needle' })).streams).toEqual(['needle']);
    await open.close();
  });

  test('passes over so many bytes, and keeps none of them', async () => {
    const { open, clock, write } = await opened();
    await write('needle');
    for (let i = 0; i < 50; i++) await write('hay', 1, 900_000);
    const { asked, store } = counted(open, async () => {});
    const slice = await new StreamNames(store, clock).find({ ...WANTED, search: 'needle' });
    expect(slice.streams).toEqual([]);
    expect(slice.from - slice.to).toBeGreaterThan(SLICE_BYTES_MAX);
    expect(slice.from - slice.to).toBeLessThan(SLICE_BYTES_MAX + 2_000_000);
    expect(asked.every(({ payloads, scan }) => payloads === false && scan!.bytesMax === SLICE_BYTES_MAX)).toBe(true);
    await open.close();
  });

  test('is refused where two are under way', async () => {
    const { open, names, write } = await opened();
    await write('a');
    const under = [names.find(WANTED), names.find(WANTED)];
    await expect(names.find(WANTED)).rejects.toMatchObject({ code: 'too_busy' });
    await Promise.all(under);
    expect((await names.find(WANTED)).streams).toHaveLength(1);
    await open.close();
  });
});
