import type { ByteShare } from '../base/byte-budget.ts';
import { SkuaError } from '../base/errors.ts';
import type { RedactionView } from './redactions/redaction-view.ts';
export type { EventIndex } from './lookup/lookup.ts';
export type { Retention, RetentionRule, StoredRetention } from './format/retention.ts';
export type { MarkColumns } from './format/mark-columns.ts';
export type { RedactionView } from './redactions/redaction-view.ts';

/**
 * What the store offers to handlers and other parts of the core. Event numbers and positions are safe integers;
 * TOMBSTONE (core/log/format/records.ts) is the number of the event that hard-deletes a stream.
 */

/** The stream must not have events (a soft-deleted stream counts as such). */
export const NO_STREAM = -1;
/** No check. */
export const ANY = -2;
/** The stream must have events or metadata. */
export const STREAM_EXISTS = -4;

/** What a stream is, beside the numbers above, where a check finds it so. */
export const IS_SOFT_DELETED = -5;
export const IS_TOMBSTONED = -6;

export interface NewEvent {
  /** UUID text, any case. */
  readonly id: string;
  readonly type: string;
  readonly isJson: boolean;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

export interface AppendResult {
  readonly firstEventNumber: number;
  readonly lastEventNumber: number;
  /** Log position of the last event written (of the original one for a repeat). */
  readonly position: number;
  /** The request had been written before; nothing was written now. */
  readonly isRepeat: boolean;
}

/** Events for one stream of several, one behind the other. */
export interface StreamWrite {
  readonly stream: string;
  /** What `append` takes. ANY where the same stream occurs more than once. */
  readonly expectedVersion: number;
  /** At least one. */
  readonly events: readonly NewEvent[];
  readonly authorize?: Authorize | undefined;
}

/**
 * What a stream must be for a write to others, or to itself: the number of its last event, NO_STREAM (soft-deleted and
 * hard-deleted ones are none either), STREAM_EXISTS (a soft-deleted one does not) or ANY.
 */
export interface StreamCheck {
  readonly stream: string;
  readonly expectedVersion: number;
  readonly authorize?: Authorize | undefined;
}

/** An event matches a query where it matches an item of it; without items all events match. */
export interface ConditionQuery {
  /** At most QUERY_ITEMS_MAX. */
  readonly items: readonly ConditionItem[];
}

/** Of any of the types, and with all of the tags. Limits as in EventQuery. */
export interface ConditionItem {
  readonly types?: readonly string[];
  readonly tags?: readonly string[];
}

/**
 * No event that counts and matches has come behind a position (core/streams/CONDITIONS.md). Events of streams
 * whose names begin with `$` don't count.
 */
export interface AppendCondition {
  readonly failIfEventsMatch: ConditionQuery;
  /**
   * Commit position of the last event that was looked at, or how far a read has looked; -1, the default, for nothing.
   * What stands there does not count, so the log must have reached it.
   */
  readonly after?: number;
}

export interface AppendToStreamsOptions {
  readonly condition?: AppendCondition | undefined;
  /** What has to hold before anything is written. */
  readonly checks?: readonly StreamCheck[];
  /** False where not all ids are the client's own: then nothing is taken for a repeat. Default true. */
  readonly isRepeatable?: boolean;
}

export interface StreamOutcome {
  readonly stream: string;
  readonly lastEventNumber: number;
  /** Log position of its last event. */
  readonly position: number;
}

export interface AppendToStreamsResult {
  /** One for each stream, in the order in which they come first. */
  readonly streams: readonly StreamOutcome[];
  /** Log position of the last event of all. */
  readonly position: number;
  readonly isRepeat: boolean;
}

export interface StoredEvent {
  /** The stream that holds the event (for a resolved link, the target's stream). */
  readonly stream: string;
  /** TOMBSTONE for the event that hard-deletes a stream. */
  readonly number: number;
  readonly type: string;
  readonly id: string;
  readonly isJson: boolean;
  readonly isRedacted: boolean;
  /** View of cached bytes: never write to it. */
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** Commit position: of the event, or of the commit record of its explicit transaction. */
  readonly position: number;
  /** Position of the event's own record. */
  readonly preparePosition: number;
  /** Milliseconds since 1970 and 100 ns units (0 to 9999) beyond. */
  readonly createdMs: number;
  readonly createdTicks: number;
  /** The link through which this event was reached, if links were resolved and this was one. */
  link: StoredEvent | null;
  /** Links were resolved, this is a link, and its target is gone: the event is the link itself. */
  linkTargetMissing: boolean;
}

export interface AccessList {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
  readonly delete?: readonly string[];
  readonly metadataRead?: readonly string[];
  readonly metadataWrite?: readonly string[];
}

/**
 * Parsed stream metadata. A missing or invalid key is undefined; `acl`, where it is there and can't be understood, is
 * UNREADABLE_LIST.
 */
export interface StreamMetadata {
  readonly maxCount?: number;
  /** Seconds. */
  readonly maxAge?: number;
  /** First event number to show; TOMBSTONE when soft-deleted. */
  readonly truncateBefore?: number;
  readonly temporary?: boolean;
  /** Seconds. */
  readonly cacheControl?: number;
  readonly acl?: AccessList;
}

/**
 * One page of a stream. `from` is where it started, after `end` was replaced by the last event number. A forward page
 * of numbers that are all older than `$maxAge` holds the first ones that are not, if they are found within its limit
 * (`expiredScanEventsMax`).
 */
export interface StreamPage {
  readonly stream: string;
  /** In reading order: ascending numbers forward, descending backward. */
  readonly events: StoredEvent[];
  readonly from: number;
  /** Last event number of the stream, hidden or not. */
  readonly lastEventNumber: number;
  /** Where the next page in the same direction starts; -1 at the end of a backward read. Jumps over hidden events. */
  readonly nextEventNumber: number;
  /**
   * The page ended before it had `count` numbers, as it held all the bytes that one may: `nextEventNumber` is the first
   * event that is missing.
   */
  readonly isCut: boolean;
  /** The read reached the end of the stream (forward) or its beginning (backward). */
  readonly isEnd: boolean;
  /** The stream is a view: its numbers rise, and don't count (core/streams/link-views). */
  readonly hasGaps?: boolean;
  readonly metadata: StreamMetadata;
}

/** A position in `$all`. */
export interface AllPosition {
  readonly commit: number;
  readonly prepare: number;
}

export interface AllPage {
  readonly events: StoredEvent[];
  /** Where the page started. */
  readonly from: AllPosition;
  /**
   * Where the next page in the same direction starts; of a forward page that is the end, the end of the log as it was
   * then, or its own start where that lies beyond.
   */
  readonly next: AllPosition;
  readonly isEnd: boolean;
  /** Commit position of the last record of the log when the page was read. */
  readonly lastCommitPosition: number;
}

/**
 * Decides by a text alone, in a time that grows no faster than the text: `stepsPerCharacter` is the most that it does
 * for each. An expression of the language itself is none, since it has no such bound.
 */
export interface TextMatcher {
  test(text: string): boolean;
  readonly stepsPerCharacter: number;
}

export interface AllFilter {
  readonly on: 'stream' | 'type';
  readonly prefixes?: readonly string[];
  readonly regex?: TextMatcher;
  readonly excludeSystemEvents?: boolean;
  /** Beside what else the filter asks for. Where it is there, what retention hides is hidden. */
  readonly query?: EventQuery;
  /**
   * Events as conditions count them (CONDITIONS.md): of streams whose names don't begin with `$`, and without what
   * retention hides.
   */
  readonly forDecisions?: boolean;
}

/**
 * Events by what they are (core/attributes/README.md): of the category AND of any of the types AND with the correlation
 * AND with all of the tags; at least one of these. What is redacted counts no more. Or `anyOf` alone.
 */
export interface EventQuery {
  /** What stands before the first `-` of the name of the stream: without a `-`, and not empty. */
  readonly category?: string;
  /** 1 to QUERY_TYPES_MAX. */
  readonly types?: readonly string[];
  /** 1 to ATTRIBUTE_BYTES_MAX bytes of UTF-8, as each of the tags has. */
  readonly correlation?: string;
  /** 1 to TAGS_MAX. */
  readonly tags?: readonly string[];
  /** Those that any of these asks for: 1 to QUERY_ITEMS_MAX, each without `anyOf`. */
  readonly anyOf?: readonly EventQuery[];
}

/** Items that one query can have. */
export const QUERY_ITEMS_MAX = 32;
/** Types that one query can name. */
export const QUERY_TYPES_MAX = 64;

/**
 * Which events a reader by query may see, each by the list of its stream: what it may not is left out, as if it was not
 * there.
 */
export interface EventAccess {
  /** Called before each page is read, so that `allows` knows what it needs. What it throws ends the reading. */
  begin(): void | Promise<void>;
  /** `metadata` are those of the stream; of a metadata stream those of the stream it belongs to. */
  allows(stream: string, metadata: StreamMetadata): boolean;
}

/**
 * Decides whether a write is allowed, by the stream's metadata at the end of the log (for a metadata stream that of the
 * stream it belongs to): the error that refuses it, or null. It is asked while the write takes its place in the log, so
 * that no change of an access list can come between. An error with `isFinal: true` in its data refuses whatever others
 * commit later: where nothing else is decided, the answer does not wait for others' commits.
 */
export interface Authorize {
  (metadata: StreamMetadata, endOf: EndOf): SkuaError | null;
  /** Where it asks nothing but that these have not been written to: so it can be sent as a value (`unlessChanged`). */
  readonly unchanged?: readonly UnchangedStream[];
}

/** Where a stream ended when it was read. */
export interface UnchangedStream extends StreamEnd {
  readonly stream: string;
}

/** Allows what both do; null for what allows everything. */
export function bothAllow(first: Authorize | null, second: Authorize | null): Authorize | null {
  if (first === null || second === null || first === second) return first ?? second;
  return (metadata, endOf) => first(metadata, endOf) ?? second(metadata, endOf);
}

/**
 * Lets a write take its place only while none of these streams, nor its metadata, was written to since. Errors of the
 * write: `wrong_expected_version`.
 */
export function unlessChanged(unchanged: readonly UnchangedStream[]): Authorize {
  const authorize: Authorize = (_, endOf) => {
    for (const { stream, lastEventNumber, metadataVersion } of unchanged) {
      const end = endOf(stream);
      if (end === null || end.lastEventNumber !== lastEventNumber || end.metadataVersion !== metadataVersion)
        return streamChanged(stream, lastEventNumber, end?.lastEventNumber ?? lastEventNumber);
    }
    return null;
  };
  return Object.assign(authorize, { unchanged });
}

export function streamChanged(stream: string, expected: number, actual: number): SkuaError {
  return new SkuaError('wrong_expected_version', `${stream} has been changed: read it and decide again.`, {
    stream,
    expected,
    actual,
  });
}

/**
 * Where another stream ends at the end of the log, with what takes its place there in the same commit; null where that
 * would have to be read first. So a write may depend on a stream that it does not write to.
 */
export type EndOf = (stream: string) => StreamEnd | null;

export interface StreamEnd {
  readonly lastEventNumber: number;
  readonly metadataVersion: number;
}

/** Where a reader is, by which a log tells whether it is its own (CHECKPOINTS.md). Plain JSON. */
export interface Checkpoint {
  /** Of the last record that was passed. */
  readonly position: AllPosition;
  /** Of the event there; null where it was gone, there is another record, or its reader was not told. */
  readonly id: string | null;
  /** The newest one at or before the position: its number in its stream, the position of its record, its id. */
  readonly epoch: { readonly number: number; readonly position: number; readonly id: string } | null;
  /** Id of the log, where it has one. */
  readonly log: string | null;
}

export interface CheckpointOptions {
  /** Default: that of `after`, else of the log's last record. */
  readonly position?: AllPosition;
  /** Of the event that the reader has seen there. */
  readonly id?: string;
  /** The checkpoint that came before, which must be of this log, and not behind the position. */
  readonly after?: Checkpoint;
}

export interface CheckpointAnswer {
  /** Null where nothing is asked for in a log without records. */
  readonly checkpoint: Checkpoint | null;
  /** Where the log ends. */
  readonly end: number;
}

/** How much a page may hold, and for which reader. */
export interface PageOptions {
  /**
   * Bytes with which a page ends, behind at least one event: data, metadata, and EVENT_OVERHEAD_BYTES for each event.
   * Default 8 MiB.
   */
  readonly bytesMax?: number;
  /**
   * False: events come with empty data and metadata, but for the data of links. What an answer does not show is not
   * kept for it.
   */
  readonly payloads?: boolean;
  /**
   * Length in bytes of an address without the name of the stream, where the answer has links to each event: they count,
   * too, where they are longer than usual.
   */
  readonly addressBytes?: number;
  /**
   * What the page holds is taken from here, and is the caller's to give back when the events are let go; before the
   * page is read, it takes back what the share still held. A share that was closed ends the reading. Without a share
   * nothing is counted.
   */
  readonly share?: ByteShare | undefined;
}

export interface ReadStreamOptions extends PageOptions {
  readonly direction: 'forward' | 'backward';
  /** Number of the first event wanted; `end` is the last event. */
  readonly from: number | 'end';
  /** 1 to PAGE_EVENTS_MAX. */
  readonly count: number;
  readonly resolveLinks?: boolean;
  /** Of a view: which of the events that it points to are seen. Default: all. Other streams don't ask it. */
  readonly access?: EventAccess | undefined;
}

export interface ReadAllOptions extends PageOptions {
  readonly direction: 'forward' | 'backward';
  /** Forward: events at or after; backward: events before. */
  readonly from: AllPosition | 'start' | 'end';
  readonly count: number;
  readonly resolveLinks?: boolean;
  /** Forward: where no record begins at `from`, the next one is meant. */
  readonly orNext?: boolean;
  readonly filter?: AllFilter;
  /** With a query: which of its events are seen. Default: all. */
  readonly access?: EventAccess | undefined;
  /**
   * What one page looks at, whether or not it keeps it; less than the store's own limits. The page then ends early, and
   * leads on.
   */
  readonly scan?: ScanLimits;
}

export interface ScanLimits {
  /** Records of the log. */
  readonly recordsMax: number;
  /** Bytes of the log, as far as some records more. */
  readonly bytesMax: number;
}

/**
 * `Place` is what `after` of a subscription takes: a reader that goes on after it misses nothing and gets nothing
 * twice.
 */
export type SubscriptionMessage<Place = number | AllPosition> =
  | { readonly kind: 'event'; readonly event: StoredEvent }
  /** Of filtered subscriptions: much was looked at up to here, and nothing of it is wanted. */
  | { readonly kind: 'checkpoint'; readonly after: Place }
  /**
   * The history has been read; what follows is live. Comes again after the reader fell behind and caught up. Null where
   * there is nothing yet.
   */
  | { readonly kind: 'caught-up'; readonly after: Place | null };

/** What a subscription has read at once. `Place` as in SubscriptionMessage. */
export interface SubscriptionPage<Place = number | AllPosition> {
  /** In order. They are taken back when the next page is asked for. */
  readonly events: StoredEvent[];
  /** In order, among the events and behind them. */
  readonly checkpoints: readonly SubscriptionCheckpoint<Place>[];
  /** Behind all that: the history has been read. */
  readonly isCaughtUp: boolean;
  /** How far the subscription is where it has caught up; null where there is nothing yet. */
  readonly after: Place | null;
  /** Of a stream: there is none, or it is soft-deleted, and is waited for. */
  readonly isAwaited: boolean;
}

/** `after` as in SubscriptionMessage. */
export interface SubscriptionCheckpoint<Place> {
  /** How many events of the page lie before it. */
  readonly behind: number;
  readonly after: Place;
}

/** How often a filtered subscription reports how far it is (`CheckpointCount`). */
export interface CheckpointRule {
  /** Events of the history that are looked at together, 1 or more. */
  readonly windowEvents: number;
  /** Events to look at between two checkpoints, 1 or more. */
  readonly intervalEvents: number;
}

export interface SubscribeStreamOptions {
  /** Number of the last event already seen (exclusive); -1 from the beginning; `end` for new events only. */
  readonly after: number | 'end';
  readonly resolveLinks?: boolean;
  /** As in ReadStreamOptions. */
  readonly access?: EventAccess | undefined;
  readonly signal?: AbortSignal;
  /** As in PageOptions; default 1 MiB. */
  readonly bytesMax?: number;
  /** As in PageOptions. It holds nothing while the subscription waits. */
  readonly share?: ByteShare | undefined;
}

export interface SubscribeAllOptions {
  readonly after: AllPosition | 'start' | 'end';
  /** The event at the position `after` is wanted, too. */
  readonly isInclusive?: boolean;
  readonly resolveLinks?: boolean;
  readonly filter?: AllFilter;
  /** As in ReadAllOptions. */
  readonly access?: EventAccess | undefined;
  /** With a filter: instead of a checkpoint wherever much was looked at and nothing of it is wanted. */
  readonly checkpoints?: CheckpointRule | undefined;
  readonly signal?: AbortSignal;
  readonly bytesMax?: number;
  readonly share?: ByteShare | undefined;
}

/** Largest page in events. */
export const PAGE_EVENTS_MAX = 4_096;
/** Largest data plus metadata of one event in bytes. */
export const EVENT_BYTES_MAX = 4_194_304;
/** Longest stream name in UTF-16 code units. */
export const STREAM_NAME_LENGTH_MAX = 1_024;
/** Longest event type in UTF-16 code units. */
export const EVENT_TYPE_LENGTH_MAX = 1_024;

/** Streams that one write may touch, or ask for. */
export const STREAMS_PER_WRITE_MAX = 1_000;

export interface StreamInfo {
  /** -1 without events, TOMBSTONE after a hard delete. */
  readonly lastEventNumber: number;
  readonly isTombstoned: boolean;
  readonly isSoftDeleted: boolean;
  readonly metadata: StreamMetadata;
  /** Last event number of the metadata stream, -1 without metadata. */
  readonly metadataVersion: number;
}

export interface EventStore {
  /** Position after the last record that readers see. */
  readonly end: number;
  /** The redacted events, which are shown without their content. */
  readonly redactions: RedactionView;

  /**
   * Appends events to a stream, durably and all or nothing. No events at all check the expected version, and leave a
   * record that says so and is no event. Errors: `invalid_stream_name`, `invalid_expected_version`, `invalid_event`,
   * `event_too_large`, `bad_tags` (`$tags` in metadata beyond TAGS_MAX or ATTRIBUTE_BYTES_MAX), `batch_too_large`,
   * `stream_is_view` (what begins with `$ce-`, `$et-` or `$bc-`),
   * `invalid_metadata` (data: stream, key, mustBe; of metadata and `$settings`
   * that would not be understood), `wrong_expected_version` (data: expected, actual), `stream_deleted`, `too_busy`,
   * `disk_full`, `writer_stopped`, and what `authorize` refuses with.
   */
  append(
    stream: string,
    expectedVersion: number,
    events: readonly NewEvent[],
    authorize?: Authorize,
  ): Promise<AppendResult>;

  /**
   * Appends to several streams in one commit, all or nothing, in the order of the writes. Whatever is expected is
   * compared with what was there before the first of them. The same ids again are a repeat where all of them are known,
   * and a conflict where only some are. Errors: as `append`, `batch_empty`, `bad_request` (too many streams, or one of
   * them with several expectations), with a condition `condition_failed` (data: stream, number, position),
   * `position_unknown`, `index_off`, `index_building`, `condition_too_broad`, and `consistency_violation` (data:
   * violations) with all checks that do not hold;
   * `stream_deleted` says by `isSoftDeleted` whether the stream can come back.
   */
  appendToStreams(writes: readonly StreamWrite[], options?: AppendToStreamsOptions): Promise<AppendToStreamsResult>;

  /** Soft delete (the stream can be written again) or hard delete (a tombstone, for ever). Errors as `append`. */
  deleteStream(
    stream: string,
    expectedVersion: number,
    kind: 'soft' | 'hard',
    authorize?: Authorize,
  ): Promise<{ readonly position: number }>;

  /**
   * Errors: `stream_not_found`, `stream_deleted`, `invalid_stream_name`, `invalid_count`, `page_too_large`,
   * `invalid_event_number`; with a share `too_busy`, `aborted`.
   */
  readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage>;

  /** One event; `last` is the newest. `share` as in PageOptions. Errors: as readStream, and `event_not_found`. */
  readEvent(stream: string, number: number | 'last', resolveLinks?: boolean, share?: ByteShare): Promise<StoredEvent>;

  /**
   * Errors: `invalid_position` (not the start or end of a record), `invalid_count`, `page_too_large`, `bad_request` (a
   * query beyond its limits); with a share `too_busy`, `aborted`.
   */
  readAll(options: ReadAllOptions): Promise<AllPage>;

  /**
   * The checkpoint of a reader that has come to a position; with `after` alone, whether that one is of this log.
   * Errors: `checkpoint_unknown` (data: position, why), `bad_request`.
   */
  checkpoint(options: CheckpointOptions): Promise<CheckpointAnswer>;

  /** State of a stream without reading its events; `lastEventNumber` -1 when it has none. */
  streamInfo(stream: string): Promise<StreamInfo>;
  /**
   * What `streamInfo` says, at once, where nothing has to be read for it; else, and for what is no stream name, null.
   */
  streamInfoNow?(stream: string): StreamInfo | null;

  /**
   * History and then live events, in order, without gap or duplicate. The reader sets the pace: nothing is buffered
   * beyond one page. Ends by the signal, by leaving the loop, or with `stream_deleted` after the tombstone's event.
   * A stream that does not exist is waited for. Hidden events are not delivered.
   */
  subscribeToStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionMessage<number>>;
  subscribeToAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionMessage<AllPosition>>;
  /**
   * The same page by page, for callers that take many events at once. The first page comes as soon as there is
   * something to report, even if only that nothing is there.
   */
  followStream(stream: string, options: SubscribeStreamOptions): AsyncIterable<SubscriptionPage<number>>;
  followAll(options: SubscribeAllOptions): AsyncIterable<SubscriptionPage<AllPosition>>;

  /** Resolves when `stream` has been written to since the call (true), or the signal aborted (false). */
  waitForStream(stream: string, signal: AbortSignal): Promise<boolean>;
  /** Resolves when the log's end lies beyond `position` (true), or the signal aborted (false). */
  waitForLog(position: number, signal: AbortSignal): Promise<boolean>;
}

/**
 * What each member of a store does: whatever stands in front of a store decides by this, and never by a name (`layer`).
 * A `value` is a property, and what answers `now` asks nothing but memory, and may be absent. A member that is missing
 * here does not compile, nor does one of another kind than its type.
 */
export const KINDS = {
  end: 'value',
  redactions: 'value',
  append: 'write',
  appendToStreams: 'write',
  deleteStream: 'write',
  readStream: 'read',
  readEvent: 'read',
  readAll: 'read',
  checkpoint: 'read',
  streamInfo: 'read',
  streamInfoNow: 'now',
  subscribeToStream: 'follow',
  subscribeToAll: 'follow',
  followStream: 'follow',
  followAll: 'follow',
  waitForStream: 'wait',
  waitForLog: 'wait',
} as const satisfies { readonly [Name in keyof EventStore]-?: KindOf<NonNullable<EventStore[Name]>> };

/**
 * The kinds that a member of this type can be of. A method takes at most four arguments, and hands on its options last.
 */
type KindOf<Member> = Member extends (...args: infer Args) => infer Result
  ? Args['length'] extends 0 | 1 | 2 | 3 | 4
    ? Result extends AsyncIterable<unknown>
      ? 'follow'
      : Result extends Promise<unknown>
        ? 'write' | 'read' | 'wait'
        : 'now'
    : never
  : 'value';

/**
 * What one of the methods that write is called with, as a value: all of it but `authorize` can wait, and can go to
 * another thread or member.
 */
export interface StoreWrite {
  /**
   * `streams` is `appendToStreams`, `conditional` the same with a condition, so that a program that knows none refuses
   * it; the others write to one stream, `soft` and `hard` without events.
   */
  readonly kind: 'append' | 'streams' | 'conditional' | 'soft' | 'hard';
  readonly writes: readonly StreamWrite[];
  readonly checks: readonly StreamCheck[];
  readonly isRepeatable: boolean;
  /** Of a `conditional` one. */
  readonly condition?: AppendCondition | undefined;
}

/** What a store answers a write with, by its kind. */
export type StoreWritten = AppendResult | AppendToStreamsResult | { readonly position: number };
