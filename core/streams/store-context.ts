import { SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Meter } from '../ports/meter.ts';
import type { StoredEvent } from './api.ts';
import type { EventStoreOptions } from './deps.ts';
import type { Lookup } from './lookup.ts';
import { isMetastream, originalOf } from './names.ts';
import { StreamView, type StreamState } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';

/** What all reading needs. */
export interface StoreContext {
  readonly lookup: Lookup;
  readonly states: StreamStates;
  readonly clock: Clock;
  readonly meter: Meter;
  readonly options: EventStoreOptions;
}

/** The state that covers the stream: its own, or for a metastream that of its original. */
export function stateOf(context: StoreContext, stream: string): StreamState | Promise<StreamState> {
  return context.states.load(isMetastream(stream) ? originalOf(stream) : stream);
}

/** The stream as committed by now. */
export async function viewOf(context: StoreContext, stream: string): Promise<StreamView> {
  const state = stateOf(context, stream);
  return new StreamView(state instanceof Promise ? await state : state, isMetastream(stream));
}

export function deletedError(stream: string): SkuaError {
  return new SkuaError('stream_deleted', `The stream ${stream} was deleted for ever: use another name.`, { stream });
}

export function notFoundError(stream: string): SkuaError {
  return new SkuaError('stream_not_found', `There is no stream ${stream}: check the name, or append to create it.`, { stream });
}

/** Throws unless the stream can be read. */
export function assertReadable(view: StreamView): void {
  if (view.isTombstoned) throw deletedError(view.key.name);
  if (view.isMissing) throw notFoundError(view.key.name);
}

const READ = { activity: 'read' };

/** Metrics of what a client's read brought. Bytes are those of data and metadata. */
export function countRead(meter: Meter, events: readonly StoredEvent[]): void {
  let bytes = 0;
  for (const { data, metadata } of events) bytes += data.length + metadata.length;
  meter.count('eventstore_io_events_total', events.length, READ);
  meter.count('eventstore_io_bytes_total', bytes, READ);
}
