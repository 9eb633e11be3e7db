import { type AttributeFollower, type AttributeIndexes, NO_ATTRIBUTES } from '../../core/attributes/api.ts';
import type { StreamHasher } from '../../core/base/stream-hash.ts';
import { type Log, silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import type { AppendResult, NewEvent, StoredEvent, SubscriptionMessage } from '../../core/streams/api.ts';
import type { EventStoreOptions } from '../../core/streams/store-context.ts';
import { createEventStore, type EventStoreInternals } from '../../core/streams/streams.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { MemoryLog, Misses, NaiveIndex } from './doubles.ts';

export interface Setup {
  readonly store: EventStoreInternals;
  readonly log: MemoryLog;
  readonly index: NaiveIndex;
  readonly clock: ManualClock;
}

export interface SetupOptions {
  readonly hasher?: StreamHasher;
  /** Chance that a step misses. */
  readonly misses?: number;
  readonly capacity?: number;
  readonly options?: Partial<EventStoreOptions>;
  readonly attributes?: AttributeIndexes;
  readonly log?: Log;
  /** Continue on the log and index of another. */
  readonly from?: Setup;
}

function follower(attributes: AttributeIndexes): AttributeFollower {
  return { ...NO_ATTRIBUTES, isOn: (name) => attributes.isOn(name), of: (name) => attributes.of(name) };
}

/** Opens stores elsewhere than on a log in memory; null: there. */
export const elsewhere: { setUp: ((options: SetupOptions) => Setup) | null } = { setUp: null };

export function setUp(options: SetupOptions = {}): Setup {
  if (elsewhere.setUp !== null) return elsewhere.setUp(options);
  const chance = options.misses ?? 0;
  const log = options.from?.log ?? new MemoryLog(options.capacity, new Misses(11, chance));
  const index = options.from?.index ?? new NaiveIndex(options.hasher, new Misses(23, chance));
  const clock = options.from?.clock ?? new ManualClock(1_700_000_000_000);
  const store = createEventStore({
    reader: log,
    commitLog: log.writer,
    index,
    clock,
    ids: new SeededIds(5),
    log: options.log ?? silentLog,
    meter: silentMeter,
    ...(options.attributes && { attributes: follower(options.attributes) }),
    ...(options.options ? { options: options.options } : {}),
  });
  return { store, log, index, clock };
}

let counter = 0;
export function newId(): string {
  return `00000000-0000-4000-8000-${String(++counter).padStart(12, '0')}`;
}

export function event(text = '', over: Partial<NewEvent> = {}): NewEvent {
  return { id: newId(), type: 'thing', isJson: false, data: encodeText(text), metadata: new Uint8Array(0), ...over };
}

export function events(count: number): NewEvent[] {
  return Array.from({ length: count }, (_, i) => event(`e${i}`));
}

/** Writes the metadata of a stream as given. */
export function setMetadata(store: EventStoreInternals, stream: string, json: string): Promise<AppendResult> {
  return store.append(`$$${stream}`, -2, [event(json, { type: '$metadata', isJson: true })]);
}

export function numbers(list: readonly StoredEvent[]): number[] {
  return list.map((e) => e.number);
}

export function textOf(e: StoredEvent): string {
  return decodeText(e.data);
}

/** How a promise ended: the code of its error, or `ok`. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'ok',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );
}

/** As codeOf, with the version found for a conflict. */
export async function outcomeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'ok',
    (error: unknown) => {
      const { code, data } = error as { code: string; data: { actual?: number } };
      return code === 'wrong_expected_version' ? `conflict ${data.actual}` : code;
    },
  );
}

/** Takes messages until the condition holds, and leaves the subscription open. */
export async function takeUntil(
  iterator: AsyncIterator<SubscriptionMessage>,
  isEnough: (messages: SubscriptionMessage[]) => boolean,
): Promise<SubscriptionMessage[]> {
  const messages: SubscriptionMessage[] = [];
  while (!isEnough(messages)) {
    const { value, done } = await iterator.next();
    if (done === true) break;
    messages.push(value);
  }
  return messages;
}

export function brief(messages: readonly SubscriptionMessage[]): (number | string)[] {
  return messages.map((m) => (m.kind === 'event' ? m.event.number : m.kind));
}
