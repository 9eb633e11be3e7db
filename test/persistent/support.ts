import { DEFAULT_SETTINGS } from '../../core/persistent/api.ts';
import type { ConnectOptions, Delivery, GroupConsumer, GroupSettings } from '../../core/persistent/api.ts';
import { createPersistentSubscriptions } from '../../core/persistent/persistent.ts';
import type { EngineParts, GroupStore } from '../../core/persistent/group-parts.ts';
import { silentLog } from '../../core/ports/log.ts';
import { streamHasher } from '../../core/base/stream-hash.ts';
import type { EventStore, NewEvent, StoredEvent } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';

/** An engine that reads and writes here. */
export function engineOver(store: GroupStore & EngineParts['writes'], parts: Partial<EngineParts> = {}) {
  const clock = (parts.clock as ManualClock | undefined) ?? new ManualClock();
  const engine = createPersistentSubscriptions({
    store,
    writes: store,
    ids: new SeededIds(77),
    log: silentLog,
    hasher: streamHasher,
    matcherOf: async (source) => ({ test: (text) => text.includes(source), stepsPerCharacter: 1 }),
    ...parts,
    clock,
  });
  return { engine, clock };
}

export const CONNECT: ConnectOptions = { bufferSize: 10, username: 'admin', connectionName: 'test', from: '' };

export function settings(changes: Partial<GroupSettings> = {}): GroupSettings {
  return {
    ...DEFAULT_SETTINGS,
    messageTimeoutMs: 1_500,
    checkpointAfterMs: 200,
    minCheckpointCount: 5,
    maxCheckpointCount: 20,
    ...changes,
  };
}

/** What a consumer gets until nothing more comes by itself. */
export async function drain(
  consumer: GroupConsumer,
  clock: ManualClock,
  answer: (delivery: Delivery) => void,
): Promise<Delivery[]> {
  const all: Delivery[] = [];
  let pending = consumer.next();
  pending.catch(() => {});
  for (;;) {
    let isThere = false;
    const watched = pending.then((deliveries) => {
      isThere = true;
      return deliveries;
    });
    watched.catch(() => {});
    // oxlint-disable-next-line no-await-in-loop
    for (let turn = 0; turn < 40 && !isThere; turn++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    if (!isThere) return all;
    // oxlint-disable-next-line no-await-in-loop
    const deliveries = await watched;
    all.push(...deliveries);
    for (const delivery of deliveries) answer(delivery);
    pending = consumer.next();
    pending.catch(() => {});
  }
}

export function events(count: number, from = 0, type = 'happened'): NewEvent[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `00000000-0000-4000-8000-${String(from + i).padStart(12, '0')}`,
    type,
    isJson: true,
    data: encodeText(JSON.stringify({ n: from + i })),
    metadata: new Uint8Array(0),
  }));
}

export const textOf = (bytes: Uint8Array) => decodeText(bytes);

/** All events of a stream that a reader sees; none where there is no stream. */
export async function readWhole(store: Pick<EventStore, 'readStream'>, stream: string): Promise<StoredEvent[]> {
  try {
    return (await store.readStream(stream, { direction: 'forward', from: 0, count: 4_096 })).events;
  } catch {
    return [];
  }
}

/** The source's number of a delivery: of its link, where one was resolved. */
export const numberOf = ({ event }: Delivery) => (event.link ?? event).number;
