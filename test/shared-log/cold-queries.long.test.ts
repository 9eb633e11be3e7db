import { expect, test } from 'vitest';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { openPrefix } from '../../core/shared-log/prefix/prefix.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { tick } from '../../core/shared-log/tick/tick.ts';
import { ANY, type EventQuery, type NewEvent } from '../../core/streams/api.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { uuid, worldOf } from './tick-kit.ts';

/** Requests of an instance that has just begun, for the first page of a query, in a log of a million events. */

const EVENTS = 1_000_000;
const COMMIT_EVENTS = 2_000;
const TICK_EVENTS = 200_000;
const HOUR_MS = 3_600_000;
const OPTIONS = { chunkSizeBytes: 268_435_456 };
const PAGE = 20;

/** One in a hundred is of `some`, one in a thousand of `rare`; nothing of `rare-type` is of `often`. */
function kindOf(n: number): { readonly category: string; readonly type: string } {
  const category = n % 1_000 === 77 ? 'rare' : n % 100 === 7 ? 'some' : 'often';
  const isRare = category === 'rare' && n % 2_000 < 1_000;
  return { category, type: isRare ? 'rare-type' : `type-${Math.imul(n, 0x9e3779b1) >>> 29}` };
}

async function millionEvents(objects: MemoryObjects, clock: AutoClock): Promise<void> {
  const ids = new SeededIds(7);
  let seed = 1;
  const world = () => worldOf(objects, clock, seed++);
  await openPrefix(world(), OPTIONS);
  const writer = await openObjectStore(world(), OPTIONS);
  const [data, metadata] = [new Uint8Array(20), new Uint8Array(0)];
  for (let n = 0; n < EVENTS;) {
    const streams = new Map<string, NewEvent[]>();
    for (let i = 0; i < COMMIT_EVENTS; i++, n++) {
      const { category, type } = kindOf(n);
      const stream = `${category}-${n % 64}`;
      const events = streams.get(stream) ?? [];
      events.push({ id: uuid(ids), type, isJson: false, data, metadata });
      streams.set(stream, events);
    }
    await Promise.all([...streams].map(([stream, events]) => writer.store.append(stream, ANY, events)));
    if (n % TICK_EVENTS === 0)
      await tick({
        world: world(),
        open: () => Promise.reject(new Error('the streams are not needed')),
        scavengeStates: new MemoryScavengeStates(),
        scratch: new MemoryStorage(),
        deadlineMs: clock.monotonicMs() + HOUR_MS,
        options: OPTIONS,
        settings: { compactCommitsMin: 1 },
      });
  }
  await writer.close();
}

/** With those of the start: manifest, tail, both tables' ends and filters. */
const CASES: readonly {
  readonly query: EventQuery;
  readonly finds: number;
  readonly forwardMax: number;
  readonly backwardMax: number;
}[] = [
  { query: { category: 'some' }, finds: PAGE, forwardMax: 14, backwardMax: 14 },
  { query: { category: 'often', types: ['type-3'] }, finds: PAGE, forwardMax: 14, backwardMax: 14 },
  // Records that lie half a megabyte apart are a request each.
  { query: { category: 'some', types: ['type-3'] }, finds: PAGE, forwardMax: 20, backwardMax: 20 },
  {
    query: { category: 'rare', types: ['type-3', 'type-4'] },
    finds: PAGE,
    forwardMax: 16 + PAGE,
    backwardMax: 16 + PAGE,
  },
  // Each event of the type is looked up among all of the category: 16 MB of entries.
  { query: { category: 'often', types: ['rare-type'] }, finds: 0, forwardMax: 26, backwardMax: 21 },
  { query: { category: 'rare', types: ['nothing'] }, finds: 0, forwardMax: 10, backwardMax: 10 },
];

test('a cold read by category and type takes few requests, however many entries lie between', async () => {
  const clock = new AutoClock();
  const objects = new MemoryObjects({ clock });
  await millionEvents(objects, clock);
  const first = async (query: EventQuery, direction: 'forward' | 'backward') => {
    const counting: ObjectStore & CountingObjects = new CountingObjects(objects);
    const cold = await openObjectStore(worldOf(counting, clock, 9_999), OPTIONS);
    const from = direction === 'forward' ? 'start' : 'end';
    const page = await cold.store.readAll({ direction, from, count: PAGE, filter: { on: 'stream', query } });
    await cold.close();
    const { gets, lists } = counting.counts();
    return { found: page.events.length, requests: gets + lists };
  };
  for (const { query, finds, forwardMax, backwardMax } of CASES) {
    const forward = await first(query, 'forward');
    const backward = await first(query, 'backward');
    const what = JSON.stringify({ query, forward, backward });
    expect([forward.found, backward.found], what).toEqual([finds, finds]);
    expect(forward.requests, what).toBeLessThanOrEqual(forwardMax);
    expect(backward.requests, what).toBeLessThanOrEqual(backwardMax);
  }
}, 120_000);
