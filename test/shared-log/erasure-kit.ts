import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import type { ObjectInstance } from '../../core/shared-log/api.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { listAll, type ObjectStore } from '../../core/ports/object-store.ts';
import { ANY, type NewEvent } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import type { AutoClock } from './auto-clock.ts';
import { OPTIONS } from './scavenge-kit.ts';
import { compactionTick, eventsOf, runTick, type TickOptions, uuid, worldOf } from './tick-kit.ts';

/** In the data of every event that is erased, and nowhere else. */
export const MARK = 'this-was-to-be-erased';
export const MINUTE_MS = 60_000;

export function marked(ids: SeededIds): NewEvent {
  return { id: uuid(ids), type: 'T', isJson: false, data: encodeText(MARK.repeat(20)), metadata: new Uint8Array(0) };
}

/** Keys of all objects, whatever they are, in which the mark is. */
export async function marksIn(objects: ObjectStore): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of listAll(objects, ''))
    if (Buffer.from((await objects.get(key))!).includes(MARK)) found.push(key);
  return found;
}

/** As `compactAfterMs` has it by default: the tail waits for a while. */
export function idleTick(objects: ObjectStore, clock: AutoClock, seed: number, given: TickOptions = {}) {
  return runTick(worldOf(objects, clock, seed), { ...given, settings: { compactCommitsMin: 64, ...given.settings } });
}

/**
 * A store, the writer of which stays open, with a hard-deleted stream whose events lie in files and in the tail, and a
 * scavenge that was asked for.
 */
export async function erasable(clock: AutoClock): Promise<{
  readonly objects: MemoryObjects;
  readonly writer: ObjectInstance;
  readonly scavengeId: string;
  readonly ids: SeededIds;
}> {
  const objects = new MemoryObjects({ clock });
  await compactionTick(worldOf(objects, clock, 1));
  const writer = await openObjectStore(worldOf(objects, clock, 2), OPTIONS);
  const ids = new SeededIds(3);
  for (let i = 0; i < 6; i++) {
    await writer.store.append('doomed', ANY, [marked(ids)]);
    await writer.store.append('kept', ANY, eventsOf(ids, 1, 100));
    if (i === 2) {
      clock.advance(MINUTE_MS);
      await compactionTick(worldOf(objects, clock, 4));
    }
  }
  await writer.store.deleteStream('doomed', ANY, 'hard');
  const { scavengeId } = await startScavenge(worldOf(objects, clock, 5));
  return { objects, writer, scavengeId, ids };
}
