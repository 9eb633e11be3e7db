import type {
  AppendResult as StoredAppend,
  AppendToStreamsOptions,
  NewEvent as BytesEvent,
  StoredEvent,
  StreamWrite,
} from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { checkedExpected, checkedList, type GivenEvent, givenEvent, taggedEvents } from '../event-store/given.ts';
import { EXPECTED_NUMBERS } from '../event-store/words.ts';
import { positionAt } from '../event-store/values.ts';
import type { AppendCondition, AppendResult, Expected, NewEvent, Position, RecordedEvent, TaggedEvent } from './api.ts';

/** Between the bytes of the store and what a program works with. */

const NOTHING = new Uint8Array(0);

/** Throws `invalid_expected_version`. */
export function expectedNumber(expected?: Expected): number {
  const known = checkedExpected(expected);
  return typeof known === 'number' ? known : EXPECTED_NUMBERS[known];
}

/** Throws `batch_empty` and `invalid_event`. */
export function bytesEvents(events: NewEvent | readonly NewEvent[]): BytesEvent[] {
  return checkedList(events).map((event, index) => bytesEvent(givenEvent(event, index)));
}

/** Each event for its stream, with its tags in its metadata. Throws as `bytesEvents`. */
function taggedWrites(events: TaggedEvent | readonly TaggedEvent[]): StreamWrite[] {
  return taggedEvents(events).map(({ stream, event }) => ({
    stream,
    expectedVersion: EXPECTED_NUMBERS.any,
    events: [bytesEvent(event)],
  }));
}

/** What the core is called with for tagged events and their condition. Throws as `taggedWrites`. */
export function taggedAppend(
  events: TaggedEvent | readonly TaggedEvent[],
  { condition }: { readonly condition?: AppendCondition },
): readonly [StreamWrite[], AppendToStreamsOptions] {
  const writes = taggedWrites(events);
  if (condition === undefined) return [writes, {}];
  const { failIfEventsMatch, after } = condition;
  return [writes, { condition: { failIfEventsMatch, ...(after !== undefined && { after: after.commit }) } }];
}

function bytesEvent({ id, type, data, metadata }: GivenEvent): BytesEvent {
  return { id, type, isJson: typeof data === 'string', data: bytesOf(data), metadata: bytesOf(metadata) };
}

function bytesOf(payload: string | Uint8Array | undefined): Uint8Array {
  return payload === undefined ? NOTHING : typeof payload === 'string' ? encodeText(payload) : payload;
}

export function appendResult({ firstEventNumber, lastEventNumber, position, isRepeat }: StoredAppend): AppendResult {
  return { version: lastEventNumber, firstVersion: firstEventNumber, position: positionAt(position), isRepeat };
}

/** An event of its own: nothing of it is a view of cached bytes. */
export function recordedEvent<Data, Metadata>(event: StoredEvent): RecordedEvent<Data, Metadata> {
  const { stream, number, type, id, isRedacted, link } = event;
  const data = isRedacted ? UNSEEN : valueOf(event.data, event.isJson);
  const metadata = valueOf(event.metadata, true);
  return {
    stream,
    version: number,
    type,
    id,
    data: data.value as Data,
    // Of a redacted event what was kept is JSON; other bytes are what a tool has written over it.
    metadata: (isRedacted && !metadata.isJson ? undefined : metadata.value) as Metadata,
    isJson: data.isJson,
    isRedacted,
    position: placeOf(event),
    createdAt: new Date(event.createdMs),
    link: link === null ? null : { stream: link.stream, version: link.number, position: placeOf(link) },
  };
}

function placeOf({ position, preparePosition }: StoredEvent): Position {
  return { commit: position, prepare: preparePosition };
}

interface Value {
  readonly value: unknown;
  readonly isJson: boolean;
}

const UNSEEN: Value = { value: undefined, isJson: false };

/** What others have marked as JSON need not be any. */
function valueOf(bytes: Uint8Array, mayBeJson: boolean): Value {
  if (bytes.length === 0) return UNSEEN;
  if (mayBeJson) {
    try {
      return { value: JSON.parse(decodeText(bytes)), isJson: true };
    } catch {
      // Then these are bytes.
    }
  }
  return { value: bytes.slice(), isJson: false };
}
