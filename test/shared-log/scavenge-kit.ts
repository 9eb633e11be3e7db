import { expect } from 'vitest';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { keysOf } from '../../core/shared-log/format/manifest.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { ANY } from '../../core/streams/api.ts';
import { latestPoint } from '../scavenge/model.ts';
import { checkClosed, judge } from '../scavenge/random-check.ts';
import { type RawRecord, readRawLog } from '../scavenge/raw-log.ts';
import { readWholeStream } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import type { AutoClock } from './auto-clock.ts';
import {
  CHUNK_BYTES,
  compactionTick,
  eventsOf,
  exportDirectory,
  manifestOf,
  runTick,
  setMetadata,
  worldOf,
} from './tick-kit.ts';

export const OPTIONS = { chunkSizeBytes: CHUNK_BYTES };

/** Everything that the newest manifest names is there. */
export async function expectNamedFiles(objects: MemoryObjects): Promise<void> {
  for (const key of keysOf(await manifestOf(objects))) expect(await objects.head(key), key).not.toBe(null);
}

/**
 * A store of a few chunks, in files or still in the tail, a scavenge of which has been asked for, and the records that
 * there are.
 */
export async function scavengeable(clock: AutoClock, isCompacted = false, appends = 14) {
  const base = new MemoryObjects({ clock });
  const world = worldOf(base, clock, 1);
  await compactionTick(world);
  const writer = await openObjectStore(worldOf(base, clock, 2), OPTIONS);
  const ids = new SeededIds(3);
  await setMetadata(writer.store, ids, 'short', { $maxCount: 2 });
  for (let i = 0; i < appends; i++) {
    await writer.store.append('short', ANY, eventsOf(ids, 3, 2_500));
    await writer.store.append('long', ANY, eventsOf(ids, 1, 1_000));
  }
  await writer.store.append('gone', ANY, eventsOf(ids, 2, 100));
  await writer.store.deleteStream('gone', ANY, 'hard');
  if (isCompacted) await compactionTick(world);
  const { scavengeId } = await startScavenge(world);
  await writer.close();
  const universe = new Map((await readRawLog(await exportDirectory(base))).map((record) => [record.position, record]));
  return { base, scavengeId, universe };
}

/** Ends the run, and judges what is there then. */
export async function expectScavenged(
  objects: MemoryObjects,
  clock: AutoClock,
  scavengeId: string,
  given: ReadonlyMap<number, RawRecord>,
  seed: number,
): Promise<void> {
  const world = worldOf(objects, clock, seed);
  for (let ticks = 0; ; ticks++) {
    const { scavenge } = await runTick(world);
    if (scavenge?.state === 'ended' && scavenge.isTold) {
      expect(scavenge).toMatchObject({ scavengeId, result: 'Success' });
      break;
    }
    expect(ticks).toBeLessThan(150);
  }
  await expectNamedFiles(objects);
  const universe = new Map(given);
  const directory = await exportDirectory(objects);
  const after = await readRawLog(directory);
  for (const record of after) if (!universe.has(record.position)) universe.set(record.position, record);
  const records = [...universe.values()].sort((a, b) => a.position - b.position);
  const { wrong } = await judge(directory, {
    universe: records,
    after,
    point: latestPoint(records)!,
    carried: new Map(),
    sharing: 'none',
    keepsDeletedData: false,
  });
  expect([...wrong, ...(await checkClosed(directory, streamHasher))]).toEqual([]);
  const reader = await openObjectStore(worldOf(objects, clock, seed + 1), OPTIONS);
  const history = await readWholeStream(reader.store, `$scavenges-${scavengeId}`, 'forward', 100);
  const types = 'error' in history ? [] : history.map(({ type }) => type);
  // A tick whose work was discarded may have told of some of it even behind the end.
  expect(types[0]).toBe('$scavengeStarted');
  expect(types.filter((type) => type === '$scavengeStarted' || type === '$scavengeCompleted')).toHaveLength(2);
  await reader.close();
}

/** The same objects, where `meanwhile` happens before the first call of one kind is answered. */
export function held(objects: MemoryObjects, op: 'create' | 'head', meanwhile: () => Promise<unknown>): MemoryObjects {
  let isDone = false;
  return new Proxy(objects, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        if (name === op && !isDone) {
          isDone = true;
          await meanwhile();
        }
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
}
