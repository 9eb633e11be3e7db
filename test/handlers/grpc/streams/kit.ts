import { StreamsService } from '../../../../handlers/grpc/messages/streams.ts';
import type { Json } from '../../../grpc/codec.ts';

const { Append, BatchAppend, Delete, Tombstone } = StreamsService.methods;
export const APPEND = Append.path;
export const BATCH = BatchAppend.path;
export const DELETE = Delete.path;
export const TOMBSTONE = Tombstone.path;

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export function stream(name: string): Json {
  return { stream_identifier: { stream_name: base64(name) } };
}

export function idOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

export const JSON_TYPE = { type: 'made', 'content-type': 'application/json' };

/** An event with a number of its own and text for data. */
export function proposed(n: number, data = '{}', more: Json = {}): Json {
  return { id: { string: idOf(n) }, metadata: JSON_TYPE, data: base64(data), ...more };
}

/** The messages of an Append. */
export function appendOf(name: string, expected: Json, ...events: readonly Json[]): Json[] {
  return [{ options: { ...stream(name), ...expected } }, ...events.map((event) => ({ proposed_message: event }))];
}

/** A chunk of a BatchAppend. */
export function chunkOf(correlation: number, events: readonly Json[], more: Json = { is_final: true }): Json {
  return { correlation_id: { string: idOf(correlation) }, proposed_messages: [...events], ...more };
}
