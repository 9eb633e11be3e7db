import type { FoundStream, NamesSlice } from '../../core/streams/find-names/find-names.ts';

/**
 * Documents of streams as they are sent: types alone. Moments are ISO texts; the number of an event that hard-deletes a
 * stream is 2^63-1.
 */

/** What pages with `embed=rich` or `embed=body` tell of an event, and lines. */
export interface EventMembers {
  readonly eventId: string;
  readonly eventType: string;
  readonly eventNumber: number;
  /** Null for what is no JSON, and where the page was asked for without payloads. */
  readonly data: string | null;
  readonly metaData: string | null;
  readonly linkMetaData: string | null;
  readonly streamId: string;
  readonly isJson: boolean;
  readonly isMetaData: boolean;
  readonly isLinkMetaData: boolean;
  readonly isRedacted: boolean;
  /** Of the event, or of the link by which it was reached, in the stream that was read. */
  readonly positionEventNumber: number;
  readonly positionStreamId: string;
}

/** A line of NDJSON, and the `data` of a server-sent event. */
export interface LineDocument extends EventMembers {
  readonly updated: string;
  /** `commit/prepare`; as `updated`, of the link where the event was reached by one. */
  readonly position: string;
  /** Of the event itself, where it was reached by a link. */
  readonly eventUpdated?: string;
  readonly eventPosition?: string;
  /** Data that are no JSON; absent where there are none, or they were redacted. */
  readonly dataBase64?: string;
  /** Metadata that are no JSON. */
  readonly metaDataBase64?: string;
}

export interface FeedLinkDocument {
  readonly uri: string;
  readonly relation: string;
  readonly type: null;
}

export interface AuthorDocument {
  readonly name: string;
}

/** An event in a page. What stands in `EventMembers` comes with `embed`; a link to what is gone has none of it. */
export interface EntryDocument extends Partial<EventMembers> {
  readonly title: string;
  readonly id: string;
  readonly updated: string;
  readonly author: AuthorDocument;
  readonly summary: string;
  /** Of messages of groups: how often it was sent before. */
  readonly retryCount: number | null;
  readonly content: EventDocument | null;
  readonly links: readonly FeedLinkDocument[];
}

/** An entry that was asked for with `embed`, of an event that is there. */
export type EmbeddedEntryDocument = EntryDocument & EventMembers;

/** A page of a stream, its newest events first. */
export interface PageDocument<E extends EntryDocument = EntryDocument> {
  readonly title: string;
  readonly id: string;
  readonly updated: string;
  readonly streamId: string | null;
  readonly author: AuthorDocument;
  readonly headOfStream: boolean;
  readonly selfUrl: string | null;
  readonly eTag: string | null;
  readonly links: readonly FeedLinkDocument[];
  readonly entries: readonly E[];
}

/** Messages of a group. */
export type MessagesDocument = Omit<PageDocument, 'streamId' | 'selfUrl' | 'eTag'>;

/** An event by itself. */
export interface EventDocument {
  readonly eventStreamId: string;
  readonly eventNumber: number;
  readonly eventType: string;
  readonly eventId: string;
  readonly data: unknown;
  readonly metadata: unknown;
}

/** A stream as GET `/admin/streams` finds it. */
export interface StreamDocument extends Pick<FoundStream, 'stream' | 'lastEventNumber' | 'isDeleted'> {
  /** In the log, of the event by which it was found, and the number of that. */
  readonly position: number;
  readonly eventNumber: number;
  readonly writtenAt: string;
}

/** GET `/admin/streams`: what one slice of the log has. */
export interface StreamsDocument extends Pick<NamesSlice, 'from' | 'to' | 'logEnd'> {
  readonly streams: readonly StreamDocument[];
  /** Streams that were found and that the caller may not read. */
  readonly hidden: number;
  /** To go on with; null when the beginning of the log was reached. */
  readonly next: string | null;
}
