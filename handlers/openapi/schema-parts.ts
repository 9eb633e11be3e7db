import { ATTRIBUTE_BYTES_MAX, TAGS_MAX } from '../../core/attributes/format/attribute-keys.ts';
import { PAGE_EVENTS_MAX, QUERY_TYPES_MAX } from '../../core/streams/api.ts';
import type { HeaderDoc, MediaDocs, ParameterDoc, ResponseDoc, Schema } from '../http/route.ts';

/** Building blocks of the OpenAPI document: what more than one operation takes or answers. */

export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

export const TEXT: Schema = { type: 'string' };
export const INTEGER: Schema = { type: 'integer' };
export const COUNT: Schema = { type: 'integer', minimum: 0 };
export const BOOLEAN: Schema = { type: 'boolean' };
export const TIME: Schema = { type: 'string', format: 'date-time' };
export const UUID: Schema = { type: 'string', format: 'uuid' };
/** The media type says it all: the bytes of the body are the value. */
export const BINARY: Schema = {};

export function oneOf(...values: readonly string[]): Schema {
  return { type: 'string', enum: values };
}

export function arrayOf(items: Schema): Schema {
  return { type: 'array', items };
}

/** An object of exactly these members. A `?` behind a name marks one that may be absent. */
export function object(members: Readonly<Record<string, Schema>>, description?: string): Schema {
  const names = Object.keys(members);
  return {
    type: 'object',
    ...(description !== undefined && { description }),
    properties: Object.fromEntries(names.map((name) => [name.replace('?', ''), members[name]!])),
    required: names.filter((name) => !name.endsWith('?')),
    additionalProperties: false,
  };
}

/** Names of the members of a type, as `object` takes them. */
export type MembersOf<T> = Readonly<
  Record<{ [K in keyof T & string]-?: {} extends Pick<T, K> ? `${K}?` : K }[keyof T & string], Schema>
>;

/**
 * The schema of a document, which the compiler compares with its type: it has exactly the members of that, and they may
 * be absent where they may be there.
 */
export function documentOf<T extends object>(members: MembersOf<T>, description?: string): Schema {
  return object(members, description);
}

/** The same schema for several media types. */
export function media(schema: Schema, ...types: readonly string[]): MediaDocs {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

export function json(schema: Schema, example?: unknown): MediaDocs {
  return { 'application/json': { schema, ...(example !== undefined && { example }) } };
}

/** JSON, and a line of text where the request asks for it. */
export function jsonOrText(schema: Schema): MediaDocs {
  return { ...json(schema), ...media(TEXT, 'text/plain') };
}

export function ok(
  description: string,
  content?: MediaDocs,
  headers?: Readonly<Record<string, HeaderDoc>>,
): ResponseDoc {
  return { description, ...(headers && { headers }), ...(content && { content }) };
}

const RETRY_AFTER: HeaderDoc = { description: 'Seconds to wait before the next attempt.', schema: COUNT };

function problem(description: string, headers?: Readonly<Record<string, HeaderDoc>>): ResponseDoc {
  return { description, ...(headers && { headers }), content: media(ref('Problem'), 'application/problem+json') };
}

/** What a failed request is answered with, by status. Their names are those of the document's components. */
export const PROBLEMS = {
  BadRequest: problem('Something in the request is wrong; `detail` says what.'),
  NotAuthenticated: problem('The credentials are wrong, or there are none and some are needed.', {
    'WWW-Authenticate': { description: 'How to authenticate.', required: true, schema: TEXT },
  }),
  Forbidden: problem('The caller may not do this, or a page of another origin sent it.'),
  NotFound: problem('There is no such thing.'),
  NotAcceptable: problem('The answer is not available in a format that `Accept` or `format` asks for.'),
  Gone: problem('The stream is hard-deleted.'),
  ContentTooLarge: problem('The body, or what it holds, is larger than the limit.'),
  UnsupportedMediaType: problem('The body is of a media type, or in a character set, that is not supported.'),
  TooManyRequests: problem('Too many failed logins for this user from this address.', {
    'Retry-After': { ...RETRY_AFTER, required: true },
  }),
  InternalError: problem("The request failed inside the server. See the server's log for the reason."),
  Unavailable: problem(
    "The node can't do this now: it is starting or stopping, too busy, has stopped writing, or can't reach the leader or its storage.",
    { 'Retry-After': RETRY_AFTER },
  ),
  InsufficientStorage: problem('The disk is full. Nothing was written; writes work again when there is space.'),
} as const satisfies Readonly<Record<string, ResponseDoc>>;

const BY_STATUS: Readonly<Record<number, ResponseDoc>> = {
  400: PROBLEMS.BadRequest,
  401: PROBLEMS.NotAuthenticated,
  403: PROBLEMS.Forbidden,
  404: PROBLEMS.NotFound,
  406: PROBLEMS.NotAcceptable,
  410: PROBLEMS.Gone,
  413: PROBLEMS.ContentTooLarge,
  415: PROBLEMS.UnsupportedMediaType,
  429: PROBLEMS.TooManyRequests,
  500: PROBLEMS.InternalError,
  503: PROBLEMS.Unavailable,
  507: PROBLEMS.InsufficientStorage,
};

/** The usual failures of these statuses. */
export function problems(...statuses: readonly number[]): Readonly<Record<number, ResponseDoc>> {
  return Object.fromEntries(statuses.map((status) => [status, BY_STATUS[status]!]));
}

/** A failure with more to say than its status. */
export function failing(description: string, headers?: Readonly<Record<string, HeaderDoc>>): ResponseDoc {
  return problem(description, headers);
}

function header(name: string, description: string, schema: Schema, example: ParameterDoc['example']): ParameterDoc {
  return { name, in: 'header', description, schema, example };
}

export function query(
  name: string,
  description: string,
  schema: Schema,
  example: ParameterDoc['example'],
): ParameterDoc {
  return { name, in: 'query', description, schema, example };
}

export function segment(
  name: string,
  description: string,
  schema: Schema,
  example: ParameterDoc['example'],
): ParameterDoc {
  return { name, in: 'path', description, required: true, schema, example };
}

const ALSO = (name: string): string => `\`Kurrent-${name}\` means the same.`;
const ATTRIBUTE: Schema = { type: 'string', minLength: 1, maxLength: ATTRIBUTE_BYTES_MAX };
const NUMBER: Schema = { type: 'integer', minimum: 0 };
const POSITION_PATTERN = '^[0-9A-Fa-f]{32}$';

/** Parameters of paths, by the name they have in route tables, unless an operation describes them. */
export const PATH_PARAMETERS: Readonly<Record<string, ParameterDoc>> = {
  stream: segment(
    'stream',
    'Name of a stream, escaped as UTF-8; `%2F` is part of the name.',
    { type: 'string', minLength: 1 },
    'orders-42',
  ),
  event: segment(
    'event',
    'Number of an event, or `head` for the newest.',
    { type: 'string', pattern: '^(\\d+|head)$' },
    '1',
  ),
  count: segment('count', 'Most events on the page.', { type: 'integer', minimum: 1, maximum: PAGE_EVENTS_MAX }, 20),
  position: segment(
    'position',
    'A position: 16 hexadecimal digits of the commit position and 16 of the prepare position, as links have them; `head` for the end.',
    { type: 'string', pattern: '^([0-9A-Fa-f]{32}|head)$' },
    'head',
  ),
  guid: segment('guid', 'Id of the event.', UUID, '3e5d7c9b-1a2f-4e6d-8c0b-a9f8e7d6c5b4'),
  scavenge: segment(
    'scavenge',
    'Id of a scavenge, as returned by its start.',
    TEXT,
    '0d0f7c3e-1d3e-4c55-8a5a-53e2c1b6a0f4',
  ),
  login: segment('login', 'Login name of a user.', { type: 'string', minLength: 1 }, 'kim'),
};

/** Where a forward page begins. */
export const FROM_EVENT = segment('event', 'Number of the first event.', NUMBER, 0);
export const FROM_POSITION = segment(
  'position',
  'A position, as links have them; 32 zeros for the beginning.',
  { type: 'string', pattern: POSITION_PATTERN },
  '0'.repeat(32),
);

/**
 * Parameters of queries and in headers that several operations take. Their names are those of the document's
 * components.
 */
export const PARAMETERS = {
  feedFormat: query('format', 'Overrides `Accept`.', oneOf('json', 'atomxj'), 'json'),
  adminFormat: query('format', 'Overrides `Accept`.', oneOf('json', 'text'), 'json'),
  embed: query(
    'embed',
    'How much of each event an entry contains; case-insensitive.',
    oneOf('none', 'content', 'rich', 'body', 'pretty', 'tryharder'),
    'body',
  ),
  from: query(
    'from',
    'With `application/x-ndjson` and `text/event-stream`: the number of the first event wanted; `start` or `end`. With `text/event-stream` `end` means: only new events.',
    TEXT,
    '0',
  ),
  fromPosition: query(
    'from',
    'With `application/x-ndjson` and `text/event-stream`: the position of the first event wanted, as `C/P` in decimal or 32 hexadecimal digits; `start` or `end`. Backward it is the one before. With `text/event-stream` `end` means: only new events.',
    TEXT,
    '0/0',
  ),
  afterPosition: query(
    'after',
    'With `application/x-ndjson`, in the place of `from`: the position of an event, behind which the first one wanted is.',
    TEXT,
    '0/0',
  ),
  direction: query(
    'direction',
    'With `application/x-ndjson`: from which side the events come. Default `forward`.',
    oneOf('forward', 'backward'),
    'forward',
  ),
  limit: query('limit', 'With `application/x-ndjson`: most events to send.', { type: 'integer', minimum: 1 }, 100),
  context: {
    ...query('context', 'What is compared; case-insensitive.', oneOf('streamid', 'eventtype'), 'streamid'),
    required: true,
  },
  type: {
    ...query('type', 'How it is compared; case-insensitive.', oneOf('prefix', 'regex'), 'prefix'),
    required: true,
  },
  data: {
    ...query(
      'data',
      'Prefixes, separated by commas, or a regular expression of RE2 (no look-around, no back reference).',
      { type: 'string', minLength: 1 },
      'orders-',
    ),
    required: true,
  },
  excludeSystemEvents: query('exclude-system-events', 'Leave out events whose type begins with `$`.', BOOLEAN, true),
  category: query(
    'category',
    'Only events of streams of this category: what stands before the first `-` of their names.',
    { type: 'string', minLength: 1, pattern: '^[^-]*$' },
    'parcels',
  ),
  eventTypes: query(
    'eventType',
    'Only events of this type; repeated, of any of the types.',
    { ...arrayOf({ type: 'string', minLength: 1 }), minItems: 1, maxItems: QUERY_TYPES_MAX },
    ['parcel-weighed'],
  ),
  correlation: query(
    'correlation',
    `Only events with this \`$correlationId\` in their metadata: 1 to ${ATTRIBUTE_BYTES_MAX} bytes of UTF-8.`,
    ATTRIBUTE,
    'order-42',
  ),
  tags: query(
    'tag',
    `Only events with this text among \`$tags\` of their metadata; repeated, with all of them. Each has 1 to ${ATTRIBUTE_BYTES_MAX} bytes of UTF-8.`,
    { ...arrayOf(ATTRIBUTE), minItems: 1, maxItems: TAGS_MAX },
    ['express'],
  ),
  items: query(
    'items',
    'In the place of the other four: the items of a condition, as JSON. Just what it counts is read, from behind any position.',
    TEXT,
    '[{"types":["parcel-weighed"],"tags":["express"]}]',
  ),
  resolveLinks: header(
    'ES-ResolveLinkTos',
    `Show the event that a link points to in place of the link. Default true for streams, false for \`$all\` and metadata. ${ALSO('ResolveLinkTos')}`,
    BOOLEAN,
    true,
  ),
  longPoll: header(
    'ES-LongPoll',
    `Seconds to hold the answer while there is nothing to read. ${ALSO('LongPoll')}`,
    { type: 'integer', minimum: 1 },
    1,
  ),
  ifNoneMatch: header('If-None-Match', "The `ETag` of the caller's copy of the page.", TEXT, '"0;1747451192"'),
  lastEventId: header(
    'Last-Event-ID',
    'With `text/event-stream`: the last id seen, after which to continue; it overrides `from`.',
    TEXT,
    '0',
  ),
  lastPosition: header(
    'Last-Event-ID',
    'With `text/event-stream`: the last id that was seen, `C/P`, after which to continue; it overrides `from`.',
    TEXT,
    '0/0',
  ),
  requireLeader: header(
    'ES-RequireLeader',
    `Only the leader may answer; a single node always leads. ${ALSO('RequireLeader')}`,
    BOOLEAN,
    true,
  ),
  expectedVersion: header(
    'ES-ExpectedVersion',
    `Number that the last event of the stream must have. -1: the stream must not exist; -2: no check, as without the header; -4: the stream must exist. ${ALSO('ExpectedVersion')}`,
    { type: 'integer', minimum: -4 },
    -2,
  ),
  eventId: header(
    'ES-EventId',
    `Id of a single posted event. Without it the answer redirects to an address with a new one. ${ALSO('EventId')}`,
    UUID,
    '5b3f8a52-4c1d-4e2a-9b7f-0d1c2b3a4958',
  ),
  eventType: header(
    'ES-EventType',
    `Type of a single posted event; not needed for batches. ${ALSO('EventType')}`,
    TEXT,
    'order-placed',
  ),
  hardDelete: header(
    'ES-HardDelete',
    `Hard delete: the stream can never be written to again. ${ALSO('HardDelete')}`,
    BOOLEAN,
    false,
  ),
} as const satisfies Readonly<Record<string, ParameterDoc>>;

/** Headers of answers. */
export const LOCATION: HeaderDoc = {
  description: 'Address of what was created.',
  required: true,
  schema: { type: 'string', format: 'uri' },
};
export const CACHING: Readonly<Record<string, HeaderDoc>> = {
  'Cache-Control': { description: 'Whether and how long the answer may be cached.', required: true, schema: TEXT },
  ETag: { description: 'Version of the page, for `If-None-Match`; on pages that can change.', schema: TEXT },
};
export const CURRENT_VERSION: Readonly<Record<string, HeaderDoc>> = {
  'ES-CurrentVersion': {
    description:
      'After a conflict of versions: number of the last event of the stream, -1 when there is none. `Kurrent-CurrentVersion` is there too.',
    schema: { type: 'integer', minimum: -1 },
  },
};
