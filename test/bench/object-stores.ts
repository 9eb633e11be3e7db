import { randomUUID } from 'node:crypto';
import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../../core/shared-log/api.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { tick } from '../../core/shared-log/tick/tick.ts';
import type { TickParts, TickReport, TickSettings } from '../../core/shared-log/tick/tick.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { ANY } from '../../core/streams/api.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { systemIds } from '../../infra/system-ids.ts';

/** What the figures of stores on object storage share. */
const EMPTY = new Uint8Array(0);

export function worldOver(objects: ObjectStore): ObjectWorld {
  return { objects, clock: systemClock, ids: systemIds, digests: nodeDigests, log: silentLog, meter: silentMeter };
}

export interface CountedInstance extends ObjectInstance {
  readonly counting: CountingObjects;
}

export async function openCounted(objects: ObjectStore, options: ObjectLogOptions = {}): Promise<CountedInstance> {
  const counting = new CountingObjects(objects);
  return Object.assign(await openObjectStore(worldOver(counting), options), { counting });
}

export function events(count: number, bytes: number): NewEvent[] {
  const data = new Uint8Array(bytes).fill(0x61);
  return Array.from({ length: count }, () => ({
    id: randomUUID(),
    type: 'note',
    isJson: false,
    data,
    metadata: EMPTY,
  }));
}

/** A tick with all its memory in this process. */
export function tickOnce(
  objects: ObjectStore,
  settings: Partial<TickSettings> = {},
  autoScavenge?: TickParts['autoScavenge'],
): Promise<TickReport> {
  const scratch = new MemoryStorage();
  return tick({
    ...(autoScavenge !== undefined && { autoScavenge }),
    world: worldOver(objects),
    scratch,
    open: openObjectStore,
    scavengeStates: MemoryScavengeStates.of(scratch),
    deadlineMs: systemClock.monotonicMs() + 600_000,
    settings: { compactCommitsMin: 1, ...settings },
  });
}

/** A store of so many events in 1 000 streams, all in files with one index table. */
export async function filledStore(objects: ObjectStore, count: number, bytes: number): Promise<void> {
  const instance = await openObjectStore(worldOver(objects));
  const batch = 500;
  for (let at = 0; at < count; at += batch) {
    await instance.store.append(`stream-${(at / batch) % 1_000}`, ANY, events(Math.min(batch, count - at), bytes));
    // As a schedule would: the tail is never long.
    if (at % (200 * batch) === 199 * batch) await tickOnce(objects);
  }
  await instance.close();
  await tickOnce(objects);
}
