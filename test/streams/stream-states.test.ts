import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { ANY } from '../../core/streams/api.ts';
import { Lookup } from '../../core/streams/lookup/lookup.ts';
import type { StreamState } from '../../core/streams/stream-state.ts';
import { StreamStates } from '../../core/streams/stream-states.ts';
import { MemoryLog, NaiveIndex } from './doubles.ts';
import { events, outcomeOf, setMetadata, setUp } from './setup.ts';

describe('the cache of stream states', () => {
  it('is bounded and keeps what the group in flight decided', () => {
    const index = new NaiveIndex();
    const states = new StreamStates(new Lookup(new MemoryLog(), index), index.hasher, 1_024);
    const drafted = states.load('draft') as StreamState;
    drafted.draft = drafted.committed.withLast(7);
    for (let i = 0; i < 10_000; i++) expect((states.load(`s${i}`) as StreamState).latest.lastNumber).toBe(-1);
    expect(states.size).toBeLessThanOrEqual(1_026);
    expect(states.get('draft')).toBe(drafted);
    expect(states.get('s0')).toBeUndefined();
    expect(states.get('s9999')).toBeDefined();
  });

  it('packs states that are not used, and unpacks them as they were', async () => {
    const { store, index, log } = setUp();
    await store.append('plain', ANY, events(3));
    await store.append('described', ANY, events(2));
    await setMetadata(store, 'described', '{"$maxCount":5}');
    await store.append('gone', ANY, events(1));
    await store.deleteStream('gone', ANY, 'hard');
    const states = new StreamStates(new Lookup(log, index), index.hasher, 1_024);
    const names = ['plain', 'described', 'gone', 'never'];
    const known = (name: string) => {
      const { lastNumber, metadataVersion, metadata, isTombstoned } = (states.load(name) as StreamState).committed;
      return { lastNumber, metadataVersion, metadata, isTombstoned };
    };
    const first = names.map(known);
    expect(first.map(({ lastNumber, metadataVersion }) => [lastNumber, metadataVersion])).toEqual([
      [2, -1],
      [1, 0],
      [TOMBSTONE, -1],
      [-1, -1],
    ]);
    const plain = states.get('plain');
    // A read would miss now, so what is answered is what was kept.
    for (let i = 0; i < 700; i++) states.load(`s${i}`);
    log.remove(log.starts[0]!);
    const { floor } = index;
    index.floor = () => {
      throw new Error('the index was asked');
    };
    expect(names.map(known)).toEqual(first);
    expect(states.get('plain')).not.toBe(plain);
    index.floor = floor;
    for (let i = 0; i < 600; i++) states.load(`t${i}`);
    states.forgetTombstones();
    expect(names.map((name) => states.get(name) === undefined)).toEqual([false, false, true, false]);
  });

  it('is never behind a write that came while a state was being read', async () => {
    const cold = setUp({ misses: 0.6 });
    for (let i = 0; i < 40; i++) await cold.store.append(`s${i}`, ANY, events(2));
    const second = setUp({ from: cold });
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const reads = [second.store.streamInfo(`s${i}`), second.store.streamInfo(`$$s${i}`)];
        expect(await outcomeOf(second.store.append(`s${i}`, 1, events(1)))).toBe('ok');
        reads.push(second.store.streamInfo(`s${i}`));
        const [, , info] = await Promise.all(reads);
        expect(info!.lastEventNumber).toBe(2);
      }),
    );
  });
});
