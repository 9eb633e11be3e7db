import { STRATEGIES } from '../../core/persistent/api.ts';
import {
  arrayOf,
  BOOLEAN,
  COUNT,
  documentOf,
  failing,
  FROM_EVENT,
  INTEGER,
  json,
  LOCATION,
  media,
  object,
  ok,
  oneOf,
  PARAMETERS,
  problems,
  query,
  ref,
  segment,
  TEXT,
  TIME,
  UUID,
} from './schema-parts.ts';
import type { LinkDocument } from '../documents/link.ts';
import type {
  ConnectionDocument,
  DetailsDocument,
  GroupConfigDocument,
  GroupDoneDocument,
  GroupMembers,
  GroupPageDocument,
  SummaryDocument,
} from '../documents/subscriptions.ts';
import type { MessagesDocument } from '../documents/streams.ts';
import type { MembersOf } from './schema-parts.ts';
import type { BodyDoc, MediaDocs, OperationDoc, ParameterDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of persistent subscriptions. */

const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };
const NUMBER: Schema = { type: 'number', minimum: 0 };
const EVENT_NUMBER: Schema = {
  type: 'integer',
  minimum: -1,
  description: '-1 while it is unknown, and of groups of `$all`.',
};
const POSITION: Schema = {
  ...TEXT_OR_NULL,
  description: 'A number, or a position such as `C:1024/P:1024`; null while it is unknown.',
};
const MESSAGE_TIMEOUT: Schema = { ...COUNT, description: 'Time a consumer has for a message; 0 for no limit.' };

const config: MembersOf<GroupConfigDocument> = {
  resolveLinktos: BOOLEAN,
  'startFrom?': { ...INTEGER, description: 'The start as a number; of groups of streams.' },
  startPosition: { ...TEXT, description: 'The number of an event, `-1` for the end; of groups of `$all` a position.' },
  messageTimeoutMilliseconds: MESSAGE_TIMEOUT,
  extraStatistics: BOOLEAN,
  maxRetryCount: { ...INTEGER, description: 'After this many retries a message is parked.' },
  liveBufferSize: INTEGER,
  bufferSize: INTEGER,
  readBatchSize: INTEGER,
  preferRoundRobin: BOOLEAN,
  checkPointAfterMilliseconds: INTEGER,
  minCheckPointCount: INTEGER,
  maxCheckPointCount: INTEGER,
  maxSubscriberCount: { ...INTEGER, description: '0: no limit.' },
  namedConsumerStrategy: oneOf(...STRATEGIES),
};
const common: MembersOf<GroupMembers> = {
  eventStreamId: TEXT,
  groupName: TEXT,
  parkedMessageUri: TEXT,
  getMessagesUri: TEXT,
  status: TEXT,
  averageItemsPerSecond: NUMBER,
  totalItemsProcessed: COUNT,
  lastProcessedEventNumber: EVENT_NUMBER,
  lastCheckpointedEventPosition: POSITION,
  lastKnownEventNumber: EVENT_NUMBER,
  lastKnownEventPosition: POSITION,
};
const links = (...rels: readonly string[]): Schema =>
  arrayOf(documentOf<LinkDocument>({ href: TEXT, rel: oneOf(...rels) }));

export const SUBSCRIPTION_SCHEMAS: Readonly<Record<string, Schema>> = {
  SubscriptionConfig: documentOf<GroupConfigDocument>(config),
  NewSubscriptionConfig: {
    ...object(
      Object.fromEntries(
        Object.entries(config).map(([name, schema]) => [name.endsWith('?') ? name : `${name}?`, schema]),
      ),
      'Members left out get the client default; in an update they stay unchanged.',
    ),
    additionalProperties: true,
  },
  Subscription: documentOf<SummaryDocument>({
    links: links('detail'),
    ...common,
    connectionCount: COUNT,
    totalInFlightMessages: COUNT,
    parkedMessageCount: COUNT,
    startPosition: config.startPosition,
  }),
  SubscriptionPage: documentOf<GroupPageDocument>({
    links: links('self'),
    offset: COUNT,
    count: COUNT,
    total: COUNT,
    subscriptions: arrayOf(ref('Subscription')),
  }),
  SubscriptionDetails: documentOf<DetailsDocument>({
    links: links('detail', 'replayParked'),
    config: ref('SubscriptionConfig'),
    ...common,
    countSinceLastMeasurement: COUNT,
    readBufferCount: COUNT,
    liveBufferCount: COUNT,
    retryBufferCount: COUNT,
    totalInFlightMessages: COUNT,
    outstandingMessagesCount: COUNT,
    parkedMessageCount: COUNT,
    connections: arrayOf(ref('SubscriptionConnection')),
    connectionCount: COUNT,
  }),
  SubscriptionConnection: documentOf<ConnectionDocument>({
    from: { ...TEXT, description: 'Address of the client.' },
    username: TEXT,
    averageItemsPerSecond: NUMBER,
    totalItemsProcessed: COUNT,
    countSinceLastMeasurement: COUNT,
    extraStatistics: arrayOf(documentOf<ConnectionDocument['extraStatistics'][number]>({ key: TEXT, value: INTEGER })),
    availableSlots: COUNT,
    inFlightMessages: COUNT,
    connectionName: TEXT,
  }),
  SubscriptionDone: documentOf<GroupDoneDocument>({ reason: TEXT, result: { type: 'string', const: 'Success' } }),
  SubscriptionMessages: documentOf<MessagesDocument>({
    title: TEXT,
    id: TEXT,
    updated: TIME,
    author: ref('Author'),
    headOfStream: BOOLEAN,
    links: arrayOf(ref('Link')),
    entries: arrayOf(ref('Entry')),
  }),
};

const GROUP = segment('group', 'Name of a group, escaped as UTF-8.', { type: 'string', minLength: 1 }, 'workers');
const ID = segment(
  'id',
  'Id of the message: that of its event, or of the link to the event.',
  UUID,
  '3e5d7c9b-1a2f-4e6d-8c0b-a9f8e7d6c5b4',
);
const MESSAGES = segment('count', 'Most messages.', { type: 'integer', minimum: 1, maximum: 100 }, 10);
const IDS = query(
  'ids',
  'Ids of messages, separated by commas; where the path names none.',
  TEXT,
  '3e5d7c9b-1a2f-4e6d-8c0b-a9f8e7d6c5b4',
);
const ACTION = query(
  'action',
  'What to do with the message; by default it is sent again.',
  oneOf('park', 'retry', 'skip', 'stop'),
  'park',
);
const FROM: ParameterDoc = {
  ...query(
    'from',
    'Where: `start`, `end`, the number of an event, or for groups of `$all` a position such as `C:1024/P:1024`.',
    TEXT,
    'start',
  ),
  required: true,
};
const STOP_AT = query('stopAt', 'Only parked messages with numbers below it.', COUNT, 10);
const PAGE: readonly ParameterDoc[] = [
  query('offset', 'Groups to skip.', COUNT, 0),
  query('count', 'Most groups.', { type: 'integer', minimum: 1 }, 20),
];

const LEADER = 'Answered by the leader of the cluster, whichever member you ask.';
const DONE = ok('Done.', json(ref('SubscriptionDone')));
const GROUP_PROBLEMS = problems(400, 404, 406);
const CONFIG: BodyDoc = {
  required: true,
  content: json(ref('NewSubscriptionConfig'), {
    startPosition: '0',
    maxRetryCount: 5,
    namedConsumerStrategy: 'Pinned',
  }),
};
const FEED: MediaDocs = media(
  ref('Feed'),
  'application/json',
  'application/vnd.eventstore.atom+json',
  'application/vnd.kurrent.atom+json',
);
const PARKED = {
  parameters: [GROUP, PARAMETERS.feedFormat, PARAMETERS.embed],
  responses: { 200: ok('The page.', FEED), ...GROUP_PROBLEMS, ...problems(410) },
};
const OF_ONE = {
  summary: 'The groups of a stream',
  responses: { 200: ok('The groups.', json(arrayOf(ref('Subscription')))), ...GROUP_PROBLEMS },
};

export const SUBSCRIPTION_DOCS = {
  listAll: {
    summary: 'All groups',
    description: `A page of them if \`offset\` or \`count\` is given. ${LEADER}`,
    parameters: PAGE,
    responses: {
      200: ok('The groups.', json({ anyOf: [arrayOf(ref('Subscription')), ref('SubscriptionPage')] })),
      ...problems(400, 406),
    },
  },
  restart: {
    summary: 'Restart all groups',
    description: `From their checkpoints; their consumers are dropped. ${LEADER}`,
    responses: { 200: DONE, ...problems(400, 406) },
  },
  listOfStream: { ...OF_ONE, description: LEADER },
  listOfRestart: { ...OF_ONE, description: 'Of the stream `restart`.' },
  details: {
    summary: 'Details of a group',
    description: LEADER,
    parameters: [GROUP],
    responses: { 200: ok('The group.', json(ref('SubscriptionDetails'))), ...GROUP_PROBLEMS },
  },
  history: {
    summary: 'What a group did in the last 24 hours',
    description: `A value a minute, since the member that answers has led. Kept in memory, of 10 groups, the busiest ones; null where nothing is known. ${LEADER}`,
    parameters: [GROUP],
    responses: { 200: ok('The history.', json(ref('SubscriptionHistory'))), ...problems(400, 406) },
  },
  create: {
    summary: 'Create a group',
    description: `Groups of \`$all\` are created over gRPC. ${LEADER}`,
    parameters: [GROUP],
    body: CONFIG,
    responses: {
      201: ok('The group was created.', json(ref('SubscriptionDone')), { Location: LOCATION }),
      ...problems(400, 406, 413, 415),
      409: failing('The group already exists.'),
    },
  },
  update: {
    summary: 'Change the settings of a group',
    description: `Its consumers are dropped and reconnect. A new start position applies only until the first checkpoint. ${LEADER}`,
    parameters: [GROUP],
    body: CONFIG,
    responses: { 200: DONE, ...GROUP_PROBLEMS, ...problems(413, 415) },
  },
  delete: {
    summary: 'Delete a group',
    description: `With its checkpoint and parked messages. ${LEADER}`,
    parameters: [GROUP],
    responses: { 200: DONE, ...GROUP_PROBLEMS },
  },
  take: {
    summary: 'Fetch messages of a group',
    description: `Those available now. They must be acknowledged within the message timeout, or they are sent again. Requires the right to read the stream. ${LEADER}`,
    parameters: [GROUP, MESSAGES, PARAMETERS.embed],
    responses: {
      200: ok(
        'The messages, newest first.',
        media(
          ref('SubscriptionMessages'),
          'application/json',
          'application/vnd.eventstore.competingatom+json',
          'application/vnd.kurrent.competingatom+json',
        ),
      ),
      ...problems(403),
      ...GROUP_PROBLEMS,
    },
  },
  ack: {
    summary: 'Acknowledge messages',
    description: `Unknown ids are ignored. ${LEADER}`,
    parameters: [GROUP, ID, IDS],
    responses: { 202: ok('Accepted.'), ...problems(400, 403, 404) },
  },
  nack: {
    summary: 'Report that messages could not be processed',
    description: `Unknown ids are ignored. ${LEADER}`,
    parameters: [GROUP, ID, IDS, ACTION],
    responses: { 202: ok('Accepted.'), ...problems(400, 403, 404) },
  },
  reset: {
    summary: 'Reset a group',
    description: `Its checkpoint is discarded; parked messages stay. Its consumers are dropped and reconnect. ${LEADER}`,
    parameters: [GROUP, FROM],
    responses: { 200: DONE, ...GROUP_PROBLEMS },
  },
  replay: {
    summary: 'Replay parked messages',
    description: LEADER,
    parameters: [GROUP, STOP_AT],
    responses: { 200: DONE, ...GROUP_PROBLEMS },
  },
  parkedBackward: {
    ...PARKED,
    summary: 'Parked messages of a group, going backward',
    description: 'Requires the right to read the stream of the group.',
    responses: { ...PARKED.responses, ...problems(403) },
  },
  parkedForward: {
    ...PARKED,
    summary: 'Parked messages of a group, going forward',
    description: 'Requires the right to read the stream of the group.',
    parameters: [FROM_EVENT, ...PARKED.parameters],
    responses: { ...PARKED.responses, ...problems(403) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
