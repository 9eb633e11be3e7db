import type { EventStore } from '../streams/api.ts';

export type StreamInfo = Awaited<ReturnType<EventStore['streamInfo']>>;

/** A store that can say at once what it has in memory. Without that every check of rights waits for a promise. */
export interface ObservableStore extends EventStore {
  /** What `streamInfo` says where the state of the stream is in memory, else null; null for what is no stream name. */
  streamInfoNow?(stream: string): StreamInfo | null;
}

export function infoNow(store: ObservableStore, stream: string): StreamInfo | null {
  return store.streamInfoNow === undefined ? null : store.streamInfoNow(stream);
}

/** What changes with every write to a stream or to its metadata, a deletion included. */
export interface StreamMark {
  readonly lastEventNumber: number;
  readonly metadataVersion: number;
}

export function isUnchanged(mark: StreamMark, info: StreamMark): boolean {
  return mark.lastEventNumber === info.lastEventNumber && mark.metadataVersion === info.metadataVersion;
}
