import { randomUUID } from 'node:crypto';
import type { Event, ReadEvent } from 'emmett-current';
import type { IncomingEvent, OutgoingEvent } from './emmett-connection.ts';
import { SkuaEventStoreError } from './emmett-errors.ts';
import { isRecord } from '../event-store/values.ts';
import type { SkuaReadEventMetadata } from './api.ts';

/** Events of Emmett as they are written, and the other way around. */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NO_UUID = '00000000-0000-0000-0000-000000000000';

type Metadata = Readonly<Record<string, unknown>>;

/** An event to be written. Throws `invalid_event`. */
export function outgoing(event: Event, index: number): OutgoingEvent {
  if (typeof event?.type !== 'string' || event.type === '') throw invalid(index, 'has no type');
  const { metadata } = event as { readonly metadata?: unknown };
  if (metadata !== undefined && metadata !== null && !isRecord(metadata))
    throw invalid(index, 'has metadata that is not an object');
  // What every reader is told anew.
  const { messageId, streamName: _, streamPosition, globalPosition, ...own } = metadata ?? {};
  // Metadata of an event that was read, passed on to a new one: that is another event, which has to have another id.
  const isOfAnother = streamPosition !== undefined || globalPosition !== undefined;
  return {
    id: isOfAnother ? randomUUID() : idOf(messageId, index),
    type: event.type,
    data: event.data,
    metadata: Object.keys(own).length === 0 ? undefined : own,
  };
}

function idOf(messageId: unknown, index: number): string {
  if (messageId === undefined || messageId === null) return randomUUID();
  if (typeof messageId !== 'string' || !UUID.test(messageId) || messageId === NO_UUID)
    throw invalid(index, 'has a messageId in its metadata, which becomes its id, that is not a UUID');
  return messageId.toLowerCase();
}

/**
 * Says which of the events no JSON can be made of. Where that is looked at anyway when they are written, it is asked
 * only after a failure.
 */
export function refuseNoJson(events: readonly OutgoingEvent[]): void {
  for (const [index, { data, metadata }] of events.entries()) {
    try {
      JSON.stringify([data, metadata]);
    } catch (error) {
      throw invalid(index, `can't be written as JSON (${(error as Error).message})`, error);
    }
  }
}

function invalid(index: number, what: string, cause?: unknown): SkuaEventStoreError {
  return new SkuaEventStoreError('invalid_event', 400, `Event ${index} of those to append ${what}.`, cause);
}

/** An event that was read. */
export function recorded<EventType extends Event>(
  stream: string,
  event: IncomingEvent,
): ReadEvent<EventType, SkuaReadEventMetadata> {
  return {
    kind: 'Event',
    type: event.type,
    data: event.data,
    metadata: {
      ...(isRecord(event.metadata) ? event.metadata : {}),
      ...placeOf(stream, event.id, event.version, event.position),
    },
  } as unknown as ReadEvent<EventType, SkuaReadEventMetadata>;
}

/** An event that has just been written, for callbacks: as its writer has it. */
export function committed(
  stream: string,
  event: Event,
  { id }: OutgoingEvent,
  version: bigint,
  position: bigint,
): ReadEvent<Event, SkuaReadEventMetadata> {
  const { metadata } = event as { readonly metadata?: Metadata };
  return {
    ...event,
    kind: 'Event',
    metadata: { ...metadata, ...placeOf(stream, id, version, position) },
  } as unknown as ReadEvent<Event, SkuaReadEventMetadata>;
}

function placeOf(
  streamName: string,
  messageId: string,
  streamPosition: bigint,
  globalPosition: bigint,
): SkuaReadEventMetadata {
  return { messageId, streamName, streamPosition, globalPosition };
}
