import type { AllPosition, EventStore } from '../../core/streams/api.ts';
import type { RemovedEvent } from './api.ts';
import { REMOVED_MAX } from './test-limits.ts';

const PAGE_EVENTS = 1_024;

/** The events of a log by the position of their record. */
export type Inventory = ReadonlyMap<number, RemovedEvent>;

/** What the log holds up to its present end. Meant for the logs of tests: it is all held in memory, without data. */
export async function inventory(store: Pick<EventStore, 'readAll'>): Promise<Inventory> {
  const found = new Map<number, RemovedEvent>();
  await eachEvent(store, (position, event) => found.set(position, event));
  return found;
}

/** What of it is gone. */
export async function removedSince(
  store: Pick<EventStore, 'readAll'>,
  before: Inventory,
): Promise<{ readonly removed: readonly RemovedEvent[]; readonly removedCount: number }> {
  const gone = new Map(before);
  await eachEvent(store, (position) => gone.delete(position));
  return { removed: [...gone.values()].slice(0, REMOVED_MAX), removedCount: gone.size };
}

async function eachEvent(
  store: Pick<EventStore, 'readAll'>,
  take: (position: number, event: RemovedEvent) => void,
): Promise<void> {
  let from: AllPosition | 'start' = 'start';
  for (;;) {
    const page = await store.readAll({ direction: 'forward', from, count: PAGE_EVENTS, payloads: false });
    for (const { preparePosition, stream, number, type, id } of page.events)
      take(preparePosition, { stream, version: number, type, id });
    if (page.isEnd) return;
    from = page.next;
  }
}
