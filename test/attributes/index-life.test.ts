import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY } from '../../core/streams/api.ts';
import type { EventStoreInternals } from '../../core/streams/streams.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { collectingLog, damage, md5Hex } from '../index/world.ts';
import { contentOf, putFile } from '../log/kit.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { appendSome, differences, newEvent, openIndexed, positionsOf, set } from './world.ts';

const SMALL = { attributes: { memTableEntriesMax: 40 } };

async function copyOf(storage: MemoryStorage): Promise<MemoryStorage> {
  const copy = new MemoryStorage();
  for (const folder of ['', 'index', 'index/stream-existence', 'attributes/names', 'attributes/tags'])
    for (const name of await storage.list(folder)) {
      const path = folder === '' ? name : `${folder}/${name}`;
      if (!path.includes('lock')) await putFile(copy, path, await contentOf(storage, path));
    }
  return copy;
}

async function tablesIn(storage: MemoryStorage): Promise<string[]> {
  return (await storage.list('attributes/names'))
    .filter((name) => /^[0-9a-f-]{36}$/.test(name))
    .map((name) => `attributes/names/${name}`);
}

async function filled(appends = 60): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const open = await openIndexed({ storage, ...SMALL });
  await appendSome(open.store, new Random(2), appends);
  await open.close();
  return storage;
}

/** A map as a newer program might write it: another version, and sound. */
async function newerMap(storage: MemoryStorage, path: string): Promise<void> {
  const body = decodeText((await contentOf(storage, path)).subarray(32)).replace('\n2\n', '\n3\n');
  await putFile(storage, path, encodeText(md5Hex(encodeText(body)).toUpperCase() + body));
}

describe('the life of an attribute index', () => {
  it('says how far it goes by the start of a record, also while nothing of the log was looked at', async () => {
    class WithoutTags extends MemoryStorage {
      fails = false;
      override list(folder: string): Promise<string[]> {
        return this.fails && folder === 'attributes/tags' ? Promise.reject(new Error('not now')) : super.list(folder);
      }
    }
    const storage = new WithoutTags();
    const before = await openIndexed({ storage, ...SMALL });
    await set(before.store, { tags: true });
    await before.store.append('rare-1', ANY, [newEvent('rare')]);
    await appendSome(before.store, new Random(4), 500);
    await before.close();
    storage.fails = true;
    const open = await openTestStore({ storage, chunkSizeBytes: 65_536, ...SMALL, seed: 2 });
    const failure = await open.attributes!.idle().catch((error: unknown) => error);
    expect(String(failure)).toContain('not now');
    expect(open.status().attributes[0]).toMatchObject({ name: 'names', state: 'building', error: 'not now' });
    const { events, isEnd } = await open.store.readAll({
      from: 'start',
      direction: 'forward',
      count: 10,
      filter: { on: 'stream', query: { types: ['rare'] } },
    });
    expect(events.map(({ type }) => type)).toEqual(['rare']);
    expect(isEnd).toBe(true);

    // What has failed once is not told of a later build.
    storage.fails = false;
    await open.attributes!.idle();
    await set(open.store, { names: false });
    await open.attributes!.idle();
    await set(open.store, { names: true });
    expect(open.status().attributes[0]).toMatchObject({ name: 'names', state: 'building' });
    expect(open.status().attributes[0]).not.toHaveProperty('error');
    await open.close();
  });

  it('is built for a directory that has none, while appends go on', async () => {
    const storage = new MemoryStorage();
    const random = new Random(5);
    const before = await openIndexed({ storage, ...SMALL });
    await set(before.store, { names: false });
    await appendSome(before.store, random, 150);
    await before.attributes!.idle();
    expect(await storage.list('attributes/names')).toEqual([]);
    // Each look at the clock ends a slice.
    const clock = new SteppingClock(TEST_NOW_MS, 'microtask');
    await before.close();
    const open = await openTestStore({ storage, chunkSizeBytes: 65_536, clock, ...SMALL, seed: 2 });
    await set(open.store, { names: true, tags: true });
    const seen = new Set<string>();
    for (let n = 0; n < 60; n++) {
      await appendSome(open.store, random, 1);
      seen.add(open.status().attributes[0]!.state);
      expect(await differences(open)).toEqual([]);
    }
    await open.attributes!.idle();
    seen.add(open.status().attributes[0]!.state);
    expect([...seen]).toEqual(['building', 'live']);
    expect(open.status().attributes[2]).toMatchObject({ name: 'tags', coveredTo: open.status().checkpoints.writer });
    expect(await differences(open)).toEqual([]);
    await open.close();
  });

  it('begins where it ended after a clean stop, and where its map is after none', async () => {
    const storage = await filled();
    const clean = await openTestStore({ storage, chunkSizeBytes: 65_536, ...SMALL, seed: 3 });
    await clean.attributes!.idle();
    const map = await contentOf(storage, 'attributes/names/indexmap');
    await appendSome(clean.store, new Random(9), 3);
    const crashed = await copyOf(storage);
    await clean.close();
    expect(await contentOf(storage, 'attributes/names/indexmap')).not.toEqual(map);
    for (const each of [storage, crashed]) {
      const lines: string[] = [];
      const open = await openIndexed({ storage: each, ...SMALL, seed: 4, log: collectingLog(lines) });
      expect(await differences(open)).toEqual([]);
      expect(lines).toEqual([]);
      await open.close();
    }
  });

  it('is discarded where the log was cut and grew differently since', async () => {
    const storage = await filled(30);
    const early = await copyOf(storage);
    const first = await openIndexed({ storage, ...SMALL, seed: 5 });
    await appendSome(first.store, new Random(6), 60);
    await first.close();
    const second = await openIndexed({ storage: early, ...SMALL, seed: 6 });
    await appendSome(second.store, new Random(7), 120);
    await second.close();
    // The index of one log beside the other, which is longer.
    for (const name of await early.list('attributes/names')) await early.remove(`attributes/names/${name}`);
    for (const name of await storage.list('attributes/names'))
      await putFile(early, `attributes/names/${name}`, await contentOf(storage, `attributes/names/${name}`));
    const lines: string[] = [];
    const open = await openIndexed({ storage: early, ...SMALL, seed: 7, log: collectingLog(lines) });
    expect(lines.join()).toContain('of another log');
    expect(await differences(open)).toEqual([]);
    await open.close();
  });

  it('is built anew where it is damaged, of another version, or its map says nothing of the log', async () => {
    const good = await filled();
    const spoilt: readonly (readonly [string, (storage: MemoryStorage) => Promise<void>])[] = [
      ['MD5', async (storage) => damage(storage, (await tablesIn(storage))[0]!, 200)],
      ['not known', async (storage) => damage(storage, (await tablesIn(storage))[0]!, 1, 0x7f)],
      ['MD5', async (storage) => damage(storage, 'attributes/names/indexmap', 40)],
      ['version 3, which is not known', async (storage) => newerMap(storage, 'attributes/names/indexmap')],
      ['', async (storage) => storage.remove((await tablesIn(storage))[0]!)],
    ];
    for (const [what, spoil] of spoilt) {
      const storage = await copyOf(good);
      await storage.remove('attributes/names/proven-tables');
      await spoil(storage);
      const lines: string[] = [];
      const open = await openIndexed({ storage, ...SMALL, seed: 8, log: collectingLog(lines) });
      expect(lines.join()).toContain('discarded');
      expect(lines.join()).toContain(what);
      expect(await differences(open)).toEqual([]);
      expect(open.status().attributes[0]!.state).toBe('live');
      await open.close();
    }
  });

  it('goes with its files when it is switched off, and a stranger stays', async () => {
    const storage = await filled();
    await putFile(storage, 'attributes/names/notes.txt', new Uint8Array(3));
    const open = await openIndexed({ storage, ...SMALL, seed: 9 });
    const entries = open.attributes!.of('names')!;
    expect(entries.coveredTo).toBeGreaterThan(0);
    await set(open.store, { names: false });
    await open.attributes!.idle();
    expect(open.attributes!.of('names')).toBeNull();
    expect(entries.coveredTo).toBe(0);
    expect(await storage.list('attributes/names')).toEqual(['notes.txt']);
    await set(open.store, {});
    await open.attributes!.idle();
    expect(await differences(open)).toEqual([]);
    await open.close();
  });

  it('is behind, and holds no writer back, while its tables cannot be written', async () => {
    const storage = new MemoryStorage();
    const create = storage.create.bind(storage);
    let isFull = true;
    storage.create = (path) =>
      isFull && path.startsWith('attributes/') ? Promise.reject(new Error('no room')) : create(path);
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    const open = await openTestStore({ storage, chunkSizeBytes: 65_536, clock, attributes: { memTableEntriesMax: 8 } });
    await open.attributes!.idle();
    await appendSome(open.store, new Random(11), 40);
    expect(open.status().attributes[0]!.state).toBe('building');
    expect(open.status().attributes[0]!.coveredTo).toBeLessThan(open.status().checkpoints.writer);
    expect(await differences(open)).toEqual([]);
    isFull = false;
    await open.attributes!.idle();
    expect(open.status().attributes[0]).toMatchObject({ state: 'live', coveredTo: open.status().checkpoints.writer });
    expect(await differences(open)).toEqual([]);
    await open.close();
  });

  it('knows the epoch that is written together with a condition, whose group is read beforehand', async () => {
    const storage = new MemoryStorage();
    const open = await openIndexed({ storage, ...SMALL });
    await appendSome(open.store, new Random(5), 20);
    const [epoch] = await Promise.all([
      (open.store as EventStoreInternals).writeEpoch({
        epochNumber: 7,
        prevEpochPosition: -1,
        leaderInstanceId: '00000000-0000-4000-8000-000000000001',
      }),
      open.store.appendToStreams([{ stream: 'order-1', expectedVersion: ANY, events: [newEvent('placed')] }], {
        condition: { failIfEventsMatch: { items: [{ types: ['none'] }] } },
      }),
    ]);
    // A table and its map come when the memtable is full.
    await appendSome(open.store, new Random(6), 60);
    await open.close();
    const map = decodeText(await contentOf(storage, 'attributes/names/indexmap'));
    expect(map).toMatch(new RegExp(`^at,.* ${epoch} [0-9a-f-]{36}$`, 'm'));
  });

  it('is none in a store that is open only to be looked at', async () => {
    const storage = await filled();
    const before = await storage.list('attributes/names');
    const open = await openTestStore({ storage, chunkSizeBytes: 65_536, writeEpoch: false });
    expect(open.attributes).toBeNull();
    expect(open.status().attributes).toEqual([]);
    await open.close();
    expect(await storage.list('attributes/names')).toEqual(before);
  });

  it('has 16 bytes an entry, in tables whose bytes stay what they are', async () => {
    const storage = new MemoryStorage();
    const open = await openIndexed({ storage, attributes: { memTableEntriesMax: 1_000 } });
    await set(open.store, { names: false, tags: true });
    await open.attributes!.idle();
    await open.store.append('order-1', ANY, [newEvent('placed', { $tags: ['red', 'blue'] })]);
    await open.store.append('order-2', ANY, [newEvent('placed', { $tags: ['red'] })]);
    const [first, second] = await positionsOf(open.attributes!.of('tags')!, 'tag:red');
    await open.close();
    const [table] = (await storage.list('attributes/tags')).filter((name) => /^[0-9a-f-]{36}$/.test(name));
    const bytes = await contentOf(storage, `attributes/tags/${table}`);
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    expect([...bytes.subarray(0, 4)]).toEqual([1, 0x53, 0, 0]);
    const entries = [0, 1, 2].map((i) => [
      view
        .getBigUint64(128 + 16 * i, true)
        .toString(16)
        .padStart(16, '0'),
      Number(view.getBigInt64(136 + 16 * i, true)),
    ]);
    expect(entries).toEqual([
      ['f2ecd6f9a9647609', second],
      ['f2ecd6f9a9647609', first],
      ['8b268b700c669237', first],
    ]);
    expect(bytes.length).toBe(128 + 3 * 16 + 3 * 24 + 128 + 16);
    expect(bytes[128 + 48 + 72 + 1]).toBe(0x53);
  });
});

/** Time goes on with each look. */
class SteppingClock extends ManualClock {
  override monotonicMs(): number {
    void this.advance(3);
    return super.monotonicMs();
  }
}
