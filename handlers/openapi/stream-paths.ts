import {
  arrayOf,
  BINARY,
  BOOLEAN,
  CACHING,
  COUNT,
  CURRENT_VERSION,
  documentOf,
  failing,
  FROM_EVENT,
  FROM_POSITION,
  json,
  LOCATION,
  media,
  object,
  ok,
  oneOf,
  PARAMETERS,
  problems,
  ref,
  TEXT,
  TIME,
  UUID,
} from './schema-parts.ts';
import type {
  AuthorDocument,
  EntryDocument,
  EventDocument,
  EventMembers,
  FeedLinkDocument,
  LineDocument,
  PageDocument,
} from '../documents/streams.ts';
import type {
  AppendedDocument,
  AppendedStream,
  AppendsBody,
  StreamAppendBody,
  StreamInfoDocument,
  WholeNewEvent,
} from '../documents/together.ts';
import type { MembersOf } from './schema-parts.ts';
import type { MediaDocs, OperationDoc, ParameterDoc, ResponseDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of the paths under `/streams`. */

/** Numbers of tombstones are 2^63-1, which few JSON readers hold exactly. */
const EVENT_NUMBER: Schema = {
  type: 'integer',
  minimum: 0,
  description: 'The event that hard-deletes a stream has 9223372036854775807.',
};
const NAME_OR_NAMES: Schema = { anyOf: [TEXT, arrayOf(TEXT)] };
const NULL: Schema = { type: 'null' };
const POSITION: Schema = { type: 'string', pattern: '^\\d+/\\d+$' };
const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };

/** Members of `embed=rich` and beyond, and of lines. */
const RICH: MembersOf<EventMembers> = {
  eventId: UUID,
  eventType: TEXT,
  eventNumber: EVENT_NUMBER,
  data: TEXT_OR_NULL,
  metaData: TEXT_OR_NULL,
  linkMetaData: TEXT_OR_NULL,
  streamId: TEXT,
  isJson: BOOLEAN,
  isMetaData: BOOLEAN,
  isLinkMetaData: BOOLEAN,
  isRedacted: BOOLEAN,
  positionEventNumber: EVENT_NUMBER,
  positionStreamId: TEXT,
};
const EMBEDDED = Object.fromEntries(Object.entries(RICH).map(([name, schema]) => [`${name}?`, schema])) as MembersOf<
  Partial<EventMembers>
>;

const LINK_TARGET = object({ href: TEXT, supportedContentTypes: arrayOf(TEXT) });

export const STREAM_SCHEMAS: Readonly<Record<string, Schema>> = {
  NewEvents: { ...arrayOf(ref('NewEvent')), minItems: 1 },
  NewEvent: {
    type: 'object',
    description: 'Objects and arrays in `data` make a JSON event; other text is stored as is, not as JSON.',
    properties: { eventId: UUID, eventType: { type: 'string', minLength: 1 }, data: {}, metadata: {} },
    required: ['eventId', 'eventType'],
  },
  StreamMetadata: {
    type: 'object',
    description: "Keys without `$` are the user's own.",
    properties: {
      $maxAge: {
        type: 'integer',
        description: 'Seconds after which events are hidden, and removed by the next scavenge.',
      },
      $maxCount: { type: 'integer', description: 'Only this many of the newest events are visible.' },
      $tb: { type: 'integer', description: 'Events with a lower number are hidden.' },
      $cacheControl: { type: 'integer', description: 'Seconds for which the newest page may be cached.' },
      $acl: {
        type: 'object',
        description: 'Who may do what: names of users or groups.',
        properties: { $r: NAME_OR_NAMES, $w: NAME_OR_NAMES, $d: NAME_OR_NAMES, $mr: NAME_OR_NAMES, $mw: NAME_OR_NAMES },
      },
    },
  },
  Feed: documentOf<PageDocument>(
    {
      title: TEXT,
      id: TEXT,
      updated: TIME,
      streamId: TEXT_OR_NULL,
      author: ref('Author'),
      headOfStream: BOOLEAN,
      selfUrl: TEXT_OR_NULL,
      eTag: TEXT_OR_NULL,
      links: arrayOf(ref('Link')),
      entries: arrayOf(ref('Entry')),
    },
    'A page of events. Entries are newest first, whatever the direction of the page; `previous` leads to newer events, `next` to older ones.',
  ),
  Entry: documentOf<EntryDocument>(
    {
      ...EMBEDDED,
      title: TEXT,
      id: TEXT,
      updated: TIME,
      author: ref('Author'),
      summary: TEXT,
      retryCount: {
        type: ['null', 'integer'],
        description: 'Of messages of persistent subscriptions: how often it was sent before.',
      },
      content: { anyOf: [NULL, ref('Event')] },
      links: arrayOf(ref('Link')),
    },
    'An event in a feed. The optional members come with `embed`.',
  ),
  Author: documentOf<AuthorDocument>({ name: oneOf('EventStore', 'Kurrent') }),
  Link: documentOf<FeedLinkDocument>({
    uri: TEXT,
    relation: oneOf(
      'self',
      'first',
      'last',
      'next',
      'previous',
      'metadata',
      'edit',
      'alternate',
      'ack',
      'nack',
      'ackAll',
      'nackAll',
    ),
    type: NULL,
  }),
  Event: documentOf<EventDocument>({
    eventStreamId: TEXT,
    eventNumber: EVENT_NUMBER,
    eventType: TEXT,
    eventId: UUID,
    data: {},
    metadata: {},
  }),
  EventLine: documentOf<LineDocument>(
    {
      ...RICH,
      updated: TIME,
      position: { ...POSITION, description: 'Commit and prepare position in the log.' },
      'eventUpdated?': { ...TIME, description: 'Of the event itself, where it was reached by a link.' },
      'eventPosition?': { ...POSITION, description: 'As `eventUpdated`.' },
      'dataBase64?': { ...TEXT, description: 'Data that are no JSON.' },
      'metaDataBase64?': { ...TEXT, description: 'Metadata that are no JSON.' },
    },
    'An event as a line of JSON, and in the `data` of server-sent events.',
  ),
  WholeNewEvent: documentOf<WholeNewEvent>({
    type: { type: 'string', minLength: 1 },
    'id?': UUID,
    'data?': {},
    'dataBase64?': { ...TEXT, description: 'Instead of `data`: bytes that are no JSON.' },
    'metadata?': {},
    'metadataBase64?': TEXT,
  }),
  StreamAppend: documentOf<StreamAppendBody>({
    stream: TEXT,
    'expected?': { anyOf: [oneOf('any', 'none', 'exists'), EVENT_NUMBER], default: 'any' },
    events: { ...arrayOf(ref('WholeNewEvent')), minItems: 1 },
  }),
  Appends: documentOf<AppendsBody>({
    appends: { ...arrayOf(ref('StreamAppend')), minItems: 1 },
    'condition?': ref('DcbCondition'),
  }),
  Appended: documentOf<AppendedDocument>({
    streams: arrayOf(documentOf<AppendedStream>({ stream: TEXT, version: COUNT, position: COUNT })),
    position: { ...COUNT, description: 'Of the last event of all.' },
    isRepeat: BOOLEAN,
  }),
  StreamInfo: documentOf<StreamInfoDocument>({
    stream: TEXT,
    state: oneOf('none', 'live', 'deleted', 'tombstoned'),
    version: { type: ['integer', 'null'] },
  }),
  StreamDescription: object({
    title: TEXT,
    description: TEXT,
    _links: object({ self: LINK_TARGET, stream: LINK_TARGET, streamSubscription: NULL }),
  }),
};

const FAMILIES = ['eventstore', 'kurrent'];
const ofFamilies = (suffix: string): string[] => FAMILIES.map((family) => `application/vnd.${family}.${suffix}`);

const LINES: MediaDocs = media(
  {
    type: 'string',
    description: 'One event per line.',
    contentMediaType: 'application/json',
    contentSchema: ref('EventLine'),
  },
  'application/x-ndjson',
);
const LIVE: MediaDocs = media(
  {
    type: 'string',
    description:
      'First existing events, then new ones, without end. `event: caught-up` marks the end of existing events, `event: checkpoint` how far a filter without matches has read: both have an `id` for `Last-Event-ID`. `event: error` is the last one, with a problem in its data.',
    contentMediaType: 'application/json',
    contentSchema: ref('EventLine'),
  },
  'text/event-stream',
);
const FEED: MediaDocs = {
  ...media(ref('Feed'), 'application/json', ...ofFamilies('atom+json')),
  ...media(ref('StreamDescription'), ...ofFamilies('streamdesc+json')),
  ...LINES,
};
const SINGLE: MediaDocs = {
  'application/json': { schema: { description: 'The data of the event; data that is not JSON as a string.' } },
  ...media(ref('Entry'), ...ofFamilies('atom+json')),
  ...media(ref('Event'), ...ofFamilies('event+json')),
  ...media(BINARY, 'application/octet-stream'),
};

/** Where a stream has no metadata an empty object stands for it. */
const NONE: Schema = { type: 'object', maxProperties: 0 };
const METADATA: MediaDocs = {
  ...SINGLE,
  ...json(ref('StreamMetadata')),
  ...media({ anyOf: [ref('Entry'), NONE] }, ...ofFamilies('atom+json')),
  ...media({ anyOf: [ref('Event'), NONE] }, ...ofFamilies('event+json')),
};

const NOT_MODIFIED: ResponseDoc = { description: "The caller's copy of the page is current." };
const READING = problems(400, 404, 406, 410);
/** `$all` is always there. */
const READING_ALL = problems(400, 406);

const page: ResponseDoc = ok('The page.', FEED, CACHING);
const backwardPage: ResponseDoc = ok('The page.', FEED, {
  ...CACHING,
  Link: {
    description:
      'With `Accept: application/x-ndjson`: the page with older events, as `rel="next"`. Without it there are none.',
    schema: TEXT,
  },
});
const head: ResponseDoc = ok(
  'The newest events, all events as lines, or a subscription.',
  { ...FEED, ...LIVE },
  CACHING,
);

const P = PARAMETERS;
const FEED_PARAMETERS: readonly ParameterDoc[] = [P.feedFormat, P.embed, P.resolveLinks, P.ifNoneMatch];
const FORWARD_PARAMETERS: readonly ParameterDoc[] = [...FEED_PARAMETERS, P.longPoll];
const FILTER: readonly ParameterDoc[] = [P.context, P.type, P.data, P.excludeSystemEvents];
/** Events by what they are, each by the access list of its own stream: no right to `$all` is needed. */
const QUERY: readonly ParameterDoc[] = [P.category, P.eventTypes, P.correlation, P.tags, P.items];
/** Of lines and subscriptions that go over all streams. */
const LINES_OF_ALL: readonly ParameterDoc[] = [P.fromPosition, P.afterPosition, P.direction, P.limit, P.lastPosition];
const QUERYING =
  'With `category`, `eventType`, `correlation` or `tag` only events that are all of what is asked for, or with `items` any of these, which the caller may read in their own streams and which retention does not hide.';
const WRITE_PARAMETERS: readonly ParameterDoc[] = [P.expectedVersion, P.requireLeader];
const FOLLOWING =
  'With `Accept: application/x-ndjson` all events as lines of JSON; with `Accept: text/event-stream` a subscription that continues with new events.';

const BATCH = [
  {
    eventId: '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11',
    eventType: 'parcel-weighed',
    data: { grams: 750 },
    metadata: { scale: 'S-4' },
  },
];
const SINGLE_BODY: MediaDocs = {
  'application/json': { schema: { description: 'One event, stored byte for byte.' }, example: { grams: 750 } },
  'application/octet-stream': { schema: BINARY },
};

const WRITTEN = ok('Written; or it had been written before, by a request with the same ids.', undefined, {
  Location: LOCATION,
});
const WRITING = {
  ...problems(410, 413, 415, 507),
  400: failing('Something in the request is wrong, or the stream has another version than expected.', CURRENT_VERSION),
};

const POSITION_OF_DELETE = {
  description: 'Of the event that deletes it.',
  required: true,
  schema: { type: 'integer', minimum: 0 },
} as const;

export const STREAM_DOCS = {
  readAll: {
    summary: 'The newest events of all streams',
    description: `${FOLLOWING} ${QUERYING}`,
    parameters: [...QUERY, P.excludeSystemEvents, ...FEED_PARAMETERS, ...LINES_OF_ALL],
    responses: { 200: head, 304: NOT_MODIFIED, ...READING_ALL },
  },
  pageAllBackward: {
    summary: 'A page of all streams, going backward',
    description: QUERYING,
    parameters: [...QUERY, P.excludeSystemEvents, ...FEED_PARAMETERS],
    responses: { 200: backwardPage, 304: NOT_MODIFIED, ...READING_ALL },
  },
  pageAllForward: {
    summary: 'A page of all streams, going forward',
    description: QUERYING,
    parameters: [FROM_POSITION, ...QUERY, P.excludeSystemEvents, ...FORWARD_PARAMETERS],
    responses: { 200: page, 304: NOT_MODIFIED, ...READING_ALL },
  },
  readFiltered: {
    summary: 'The newest events that pass a filter',
    description: FOLLOWING,
    parameters: [...FILTER, ...QUERY, ...FEED_PARAMETERS, ...LINES_OF_ALL],
    responses: { 200: head, 304: NOT_MODIFIED, ...READING_ALL },
  },
  pageFilteredBackward: {
    summary: 'A filtered page of all streams, going backward',
    parameters: [...FILTER, ...QUERY, ...FEED_PARAMETERS],
    responses: { 200: page, 304: NOT_MODIFIED, ...READING_ALL },
  },
  pageFilteredForward: {
    summary: 'A filtered page of all streams, going forward',
    parameters: [FROM_POSITION, ...FILTER, ...QUERY, ...FORWARD_PARAMETERS],
    responses: { 200: page, 304: NOT_MODIFIED, ...READING_ALL },
  },
  append: {
    summary: 'Append events to a stream',
    description:
      'An array of events is written as a whole or not at all. The stream is created with its first event. A single event takes its type and id from headers.',
    parameters: [...WRITE_PARAMETERS, P.eventId, P.eventType],
    body: {
      required: true,
      content: {
        ...Object.fromEntries(
          ofFamilies('events+json').map((type) => [type, { schema: ref('NewEvents'), example: BATCH }]),
        ),
        ...SINGLE_BODY,
      },
    },
    responses: {
      201: WRITTEN,
      307: ok(
        'A single event without an id. Nothing was written: post it to the address in `Location`, repeatedly if necessary.',
        media(TEXT, 'text/plain'),
        { Location: LOCATION },
      ),
      ...WRITING,
    },
  },
  appendTogether: {
    summary: 'Append to one stream or several, with events as they are',
    description:
      'All or nothing. Any JSON value is kept as its text, bytes come as Base64. `{stream, expected, events}` is an append to one stream; `{appends}` one to several, each with what is expected of it before anything is written (409 `consistency_violation` where that does not hold), and maybe on a condition, which asks for the right to read `$all`. Streams by which rights are changed are written alone. The body has at most 8 MiB.',
    parameters: [P.requireLeader],
    body: {
      required: true,
      content: json(
        { anyOf: [ref('StreamAppend'), ref('Appends')] },
        {
          appends: [{ stream: 'parcels', expected: 'any', events: [{ type: 'parcel-weighed', data: { grams: 750 } }] }],
        },
      ),
    },
    responses: {
      200: ok('Written; or it had been written before, by a request with the same ids.', json(ref('Appended'))),
      ...problems(406),
      ...WRITING,
      409: failing(
        'A stream is at another version than expected, an event that matches the condition has come, or that can not be told.',
      ),
      422: failing('The search for events that match looked at too many.'),
    },
  },
  readInfo: {
    summary: 'Whether a stream is there, and its last event',
    description: 'Of a stream that was deleted and can be written again the version is that of its last event.',
    responses: { 200: ok('What it is now.', json(ref('StreamInfo'))), ...problems(400, 406) },
  },
  appendIncoming: {
    summary: 'Append one event under an id, repeatably',
    parameters: [...WRITE_PARAMETERS, { ...P.eventType, required: true }],
    body: { required: true, content: SINGLE_BODY },
    responses: { 201: WRITTEN, ...WRITING },
  },
  deleteStream: {
    summary: 'Delete a stream',
    description: 'Soft delete: it can be written to again, and event numbers continue. Hard delete: for ever.',
    parameters: [...WRITE_PARAMETERS, P.hardDelete],
    responses: {
      204: ok('Deleted.', undefined, { 'ES-Position': POSITION_OF_DELETE }),
      ...problems(410, 507),
      400: WRITING[400],
    },
  },
  readStream: {
    summary: 'The newest events of a stream',
    description: FOLLOWING,
    parameters: [...FEED_PARAMETERS, P.from, P.direction, P.limit, P.lastEventId, P.requireLeader],
    responses: { 200: head, 304: NOT_MODIFIED, ...READING },
  },
  pageBackward: {
    summary: 'A page of a stream, going backward',
    parameters: FEED_PARAMETERS,
    responses: { 200: backwardPage, 304: NOT_MODIFIED, ...READING },
  },
  pageForward: {
    summary: 'A page of a stream, going forward',
    parameters: [FROM_EVENT, ...FORWARD_PARAMETERS],
    responses: { 200: page, 304: NOT_MODIFIED, ...READING },
  },
  readEvent: {
    summary: 'One event of a stream',
    parameters: [P.feedFormat, P.embed, P.resolveLinks],
    responses: { 200: ok('The event.', SINGLE, CACHING), ...READING },
  },
  readMetadata: {
    summary: 'The metadata of a stream',
    description: '`{}` for a stream that has events and no metadata.',
    parameters: [P.feedFormat, P.resolveLinks],
    responses: { 200: ok('The newest metadata event.', METADATA, CACHING), ...READING },
  },
  setMetadata: {
    summary: 'Set the metadata of a stream',
    description:
      'Replaces all earlier metadata. `ES-ExpectedVersion` is about the number of the last metadata event. A batch holds one event of type `$metadata`.',
    parameters: [
      ...WRITE_PARAMETERS,
      { ...P.eventId, description: `${P.eventId.description.split('. ')[0]}; needed unless a batch is posted.` },
    ],
    body: {
      required: true,
      content: {
        ...Object.fromEntries(
          ofFamilies('events+json').map((type) => [
            type,
            {
              schema: ref('NewEvents'),
              example: [
                { eventId: 'c0a8f7e6-5d4b-4a3c-9b2d-1e0f9a8b7c6d', eventType: '$metadata', data: { $maxCount: 100 } },
              ],
            },
          ]),
        ),
        ...json(ref('StreamMetadata'), { $maxCount: 100 }),
      },
    },
    responses: { 201: WRITTEN, ...WRITING },
  },
  readMetadataEvent: {
    summary: 'An earlier metadata event',
    parameters: [P.feedFormat, P.resolveLinks],
    responses: { 200: ok('The event; `{}` if there is none.', METADATA, CACHING), ...READING },
  },
  pageMetadataBackward: {
    summary: 'A page of metadata events, going backward',
    parameters: FEED_PARAMETERS,
    responses: { 200: backwardPage, 304: NOT_MODIFIED, ...READING },
  },
  pageMetadataForward: {
    summary: 'A page of metadata events, going forward',
    parameters: [FROM_EVENT, ...FORWARD_PARAMETERS],
    responses: { 200: page, 304: NOT_MODIFIED, ...READING },
  },
  scavengeHistory: {
    summary: 'The events of one scavenge',
    description: 'Going backward; the newest event has its result.',
    parameters: FEED_PARAMETERS,
    responses: { 200: page, 304: NOT_MODIFIED, ...READING },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
