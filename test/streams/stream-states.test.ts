import { describe, expect, it } from 'vitest';
import { ANY } from '../../core/streams/api.ts';
import { Lookup } from '../../core/streams/lookup.ts';
import type { StreamState } from '../../core/streams/stream-state.ts';
import { StreamStates } from '../../core/streams/stream-states.ts';
import { MemoryLog, NaiveIndex } from './doubles.ts';
import { events, outcomeOf, setUp } from './setup.ts';

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

  it('is never behind a write that came while a state was being read', async () => {
    const cold = setUp({ misses: 0.6 });
    for (let i = 0; i < 40; i++) await cold.store.append(`s${i}`, ANY, events(2));
    const second = setUp({ from: cold });
    await Promise.all(Array.from({ length: 40 }, async (_, i) => {
      const reads = [second.store.streamInfo(`s${i}`), second.store.streamInfo(`$$s${i}`)];
      expect(await outcomeOf(second.store.append(`s${i}`, 1, events(1)))).toBe('ok');
      reads.push(second.store.streamInfo(`s${i}`));
      const [, , info] = await Promise.all(reads);
      expect(info!.lastEventNumber).toBe(2);
    }));
  });
});
