import type { ChunkMapView, ChunkView } from '../../core/log/api.ts';
import {
  arrayOf,
  BOOLEAN,
  COUNT,
  documentOf,
  INTEGER,
  json,
  ok,
  oneOf,
  problems,
  query,
  ref,
  TEXT,
  TIME,
} from './schema-parts.ts';
import type {
  ActivityHistoryView,
  ActivityView,
  DiskView,
  GroupHistoryView,
  HistoryView,
  LogLevelDocument,
  LogLineView,
  LogView,
  NodeWarning,
  OverviewView,
  WebhookHistoryView,
  WebhooksView,
} from '../documents/node.ts';
import type { StreamDocument, StreamsDocument } from '../documents/streams.ts';
import { LOG_LEVELS } from '../http/node-control.ts';
import type { OperationDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of what shows a node from inside: its files, names of streams, its log, and how it is. */

const NUMBER: Schema = { type: 'number' };
const RATE: Schema = { type: ['number', 'null'] };

const NOT_MEASURED =
  'One value per time; null where nothing was measured, as while the machine slept or its clock was set.';

/** The last 24 hours of some lines. */
function historyOf(values: Schema): Schema {
  return documentOf<HistoryView>({
    since: { ...TIME, description: 'When the values begin: the start of the node, or 24 hours ago.' },
    stepSeconds: COUNT,
    times: { ...arrayOf(COUNT), description: 'Ends of the steps in Unix milliseconds, rising.' },
    values,
  });
}

export const INSPECTION_SCHEMAS: Readonly<Record<string, Schema>> = {
  ChunkMap: documentOf<ChunkMapView>({
    version: {
      type: 'string',
      description: 'Of the set of files, for `since`. It stays while the file that is being written grows.',
    },
    chunkSize: { ...COUNT, description: 'Bytes of log that a logical chunk holds.' },
    logEnd: { ...COUNT, description: 'Position in the log.' },
    chunks: {
      anyOf: [{ type: 'null' }, arrayOf(ref('ChunkFile'))],
      description: 'In log order; null where `since` is the version that holds.',
    },
  }),
  StreamNames: documentOf<StreamsDocument>(
    {
      streams: {
        ...arrayOf(
          documentOf<StreamDocument>({
            stream: TEXT,
            lastEventNumber: {
              type: 'integer',
              minimum: -1,
              description: '-1 without events, 9223372036854775807 after a hard delete.',
            },
            isDeleted: { ...BOOLEAN, description: 'It can be written to again unless it was hard-deleted.' },
            position: { ...COUNT, description: 'In the log, of the event by which it was found.' },
            eventNumber: { ...COUNT, description: 'Of the same event.' },
            writtenAt: TIME,
          }),
        ),
        description: 'Newest first.',
      },
      hidden: { ...COUNT, description: 'Streams that were found and that the caller may not read.' },
      from: { ...COUNT, description: 'Position in the log at which this slice began.' },
      to: { ...COUNT, description: 'Everything from here on has been looked at.' },
      logEnd: COUNT,
      next: {
        type: ['string', 'null'],
        description: 'Where to continue, as `from`; null when the start of the log was reached.',
      },
    },
    'A slice may find nothing and still have a next one.',
  ),
  LogLines: documentOf<LogView>({
    level: {
      ...oneOf(...LOG_LEVELS, 'off'),
      description: 'The log level: this level and more severe ones are logged.',
    },
    first: { ...COUNT, description: 'Number of the oldest line in memory.' },
    last: { ...COUNT, description: 'Number of the newest line.' },
    missed: { ...COUNT, description: 'Lines after `since` that are no longer in memory.' },
    lines: arrayOf(
      documentOf<LogLineView>({
        sequence: {
          type: 'integer',
          minimum: 1,
          description: 'Grows by one from line to line, from the start of the node on.',
        },
        time: TIME,
        level: oneOf(...LOG_LEVELS),
        message: TEXT,
        fields: { type: 'object' },
        'exception?': { type: 'string', description: 'Where an error came from.' },
      }),
    ),
  }),
  LogLevel: documentOf<LogLevelDocument>({ level: oneOf(...LOG_LEVELS) }),
  ActivityHistory: historyOf(
    documentOf<ActivityHistoryView['values']>(
      {
        appendsPerSecond: arrayOf(RATE),
        eventsWrittenPerSecond: arrayOf(RATE),
        eventsReadPerSecond: arrayOf(RATE),
        bytesWrittenPerSecond: arrayOf(RATE),
        bytesReadPerSecond: arrayOf(RATE),
        requestsPerSecond: arrayOf(RATE),
        appendP99Seconds: arrayOf(RATE),
        requestP99Seconds: arrayOf(RATE),
        cpuShare: { ...arrayOf(RATE), description: 'CPU time of the process, as a share of one core.' },
      },
      NOT_MEASURED,
    ),
  ),
  MetricHistory: historyOf({
    type: 'object',
    additionalProperties: arrayOf(RATE),
    description: `By \`name{label="value", …}\`. Of counters the rates, of histograms over all labels the values below which half and 99 % lie, with the label \`quantile\`. ${NOT_MEASURED}`,
  }),
  WebhookHistory: historyOf(
    documentOf<WebhookHistoryView['values']>(
      { takenPerSecond: arrayOf(RATE), skippedPerSecond: arrayOf(RATE), refusedPerSecond: arrayOf(RATE) },
      NOT_MEASURED,
    ),
  ),
  SubscriptionHistory: historyOf(
    documentOf<GroupHistoryView['values']>(
      {
        sentPerSecond: arrayOf(RATE),
        lag: {
          ...arrayOf(RATE),
          description: 'Between the checkpoint and the last known event: events, or for `$all` bytes of the log.',
        },
        inFlight: { ...arrayOf(RATE), description: 'Messages sent and not yet acknowledged.' },
      },
      NOT_MEASURED,
    ),
  ),
  Overview: documentOf<OverviewView>({
    time: TIME,
    node: documentOf<OverviewView['node']>({
      version: TEXT,
      instanceId: TEXT,
      state: TEXT,
      address: TEXT,
      isSecure: BOOLEAN,
      authentication: oneOf('internal', 'insecure'),
      startedAt: TIME,
      uptimeSeconds: NUMBER,
      isMember: BOOLEAN,
    }),
    log: documentOf<OverviewView['log']>({
      end: { ...COUNT, description: 'A position, which goes on at the next chunk where one was not filled.' },
      bytes: { ...COUNT, description: 'Of the chunk files, wherever they lie.' },
      lastCommitPosition: INTEGER,
      chunks: COUNT,
      indexTables: COUNT,
      indexEntries: COUNT,
      indexEntriesInMemory: COUNT,
      bytesUnproven: { type: ['integer', 'null'], description: 'Null where the files are objects.' },
      appendsQueued: COUNT,
      subscriptions: COUNT,
    }),
    disk: {
      anyOf: [
        { type: 'null' },
        documentOf<DiskView>({
          folder: TEXT,
          totalBytes: COUNT,
          freeBytes: COUNT,
          usedBytes: COUNT,
          chunkBytes: COUNT,
          indexBytes: COUNT,
          otherBytes: COUNT,
        }),
      ],
      description: 'Null where data is not on a disk of the node. `otherBytes` are used by others.',
    },
    activity: documentOf<ActivityView>(
      {
        windowSeconds: RATE,
        appendsPerSecond: RATE,
        eventsWrittenPerSecond: RATE,
        eventsReadPerSecond: RATE,
        bytesWrittenPerSecond: RATE,
        bytesReadPerSecond: RATE,
        requestsPerSecond: RATE,
        appendP99Seconds: RATE,
        requestP99Seconds: RATE,
        totals: documentOf<ActivityView['totals']>(
          {
            appends: COUNT,
            eventsWritten: COUNT,
            eventsRead: COUNT,
            bytesWritten: COUNT,
            bytesRead: COUNT,
            requests: COUNT,
          },
          'Since the node started.',
        ),
      },
      'Rates of about the last 10 seconds; null until two answers lie far enough apart. p99 are interpolated within the buckets of the histograms in `/metrics`.',
    ),
    process: documentOf<OverviewView['process']>({ cpuPercent: NUMBER, memoryBytes: COUNT, heapBytes: COUNT }),
    connections: COUNT,
    certificates: { ...arrayOf(ref('Certificate')), description: 'Current ones; none without TLS.' },
    licence: documentOf<OverviewView['licence']>({
      source: oneOf('built-in', 'key', 'none'),
      expiresAt: { type: ['string', 'null'], format: 'date-time' },
      refusal: { type: ['string', 'null'], description: 'Why auto-scavenge is not granted, and what to do.' },
    }),
    warnings: {
      ...arrayOf(
        documentOf<NodeWarning>({
          code: TEXT,
          severity: oneOf('error', 'warning', 'info'),
          message: TEXT,
          todo: { type: 'string', description: 'What to do about it.' },
          view: { type: 'string', description: 'Part of the administration that has more on it.' },
        }),
      ),
      description: 'The severest first.',
    },
  }),
  WebhookActivity: documentOf<WebhooksView>({
    windowSeconds: RATE,
    connectors: {
      ...arrayOf(
        documentOf<WebhooksView['connectors'][number]>({
          connectorId: { type: 'string', description: 'Empty for calls to connectors that do not run.' },
          calls: COUNT,
          outcomes: { type: 'object', additionalProperties: COUNT },
          callsPerSecond: RATE,
          outcomesPerSecond: { type: ['object', 'null'], additionalProperties: NUMBER },
          p99Seconds: RATE,
        }),
      ),
      description: 'Those that were called since the node started.',
    },
  }),
  ChunkFile: documentOf<ChunkView>({
    file: TEXT,
    start: { ...COUNT, description: 'First logical chunk.' },
    end: { ...COUNT, description: 'Last logical chunk: a merged file holds several.' },
    startPosition: COUNT,
    endPosition: COUNT,
    bytes: { ...COUNT, description: 'Of the file; of the one that is being written, what is written so far.' },
    dataBytes: { ...COUNT, description: 'Of the records in it.' },
    isOngoing: { ...BOOLEAN, description: 'It is being written.' },
    isScavenged: BOOLEAN,
    isCold: { ...BOOLEAN, description: 'It is an object in object storage.' },
    records: { type: ['integer', 'null'], minimum: 0, description: 'Known of scavenged files only.' },
  }),
};

export const CHUNK_MAP_DOC: OperationDoc = {
  summary: 'The chunk files of the log',
  description: 'From memory, so it can be polled. A dry run reports what a scavenge would remove from each file.',
  parameters: [
    query('since', 'The version of an earlier answer: the files are left out while it is current.', TEXT, '3f0c9a1e-7'),
  ],
  responses: { 200: ok('The files.', json(ref('ChunkMap'))), ...problems(400, 406) },
};

export const STREAM_NAMES_DOC: OperationDoc = {
  summary: 'Names of streams',
  description:
    'Streams written or created recently, or with a text in their names. The index knows no names, so the log is read backward, at most 16 MiB or a quarter of a second per answer, which says how far it got and how to continue. A stream may appear again in a later slice. Names of streams that the caller may not read are left out.',
  parameters: [
    query(
      'recent',
      'By their last events (`written`), or by their first ones (`created`).',
      oneOf('written', 'created'),
      'written',
    ),
    query('search', 'A text in the name, in any case, of at most 200 characters.', TEXT, 'order'),
    query('match', 'Where in the name.', oneOf('substring', 'prefix'), 'prefix'),
    query('system', 'Names that begin with `$`, too.', BOOLEAN, true),
    query('count', 'Most streams of an answer.', { type: 'integer', minimum: 1, maximum: 200 }, 50),
    query(
      'from',
      'What an earlier answer gave as `next`.',
      { type: 'string', pattern: '^\\d{1,15}-\\d{1,15}$' },
      '0-0',
    ),
  ],
  responses: { 200: ok('The streams of one slice of the log.', json(ref('StreamNames'))), ...problems(400, 406) },
};

export const LOG_DOCS = {
  lines: {
    summary: 'The last lines of the log',
    description:
      'Of the node that is asked, from memory, which holds 1 MiB of them. They name users, addresses and streams.',
    parameters: [
      query('count', 'Most lines.', { type: 'integer', minimum: 1, maximum: 1_000 }, 200),
      query('level', 'Lines of this level, and more severe ones.', oneOf(...LOG_LEVELS), 'warn'),
      query('since', 'The lines behind the one of this number, oldest first. Without it the newest ones.', COUNT, 3),
    ],
    responses: { 200: ok('The lines, in their order.', json(ref('LogLines'))), ...problems(400, 406) },
  },
  level: {
    summary: 'Set what is logged',
    description: 'Until the node is restarted, or its configuration is loaded with another level.',
    body: { required: true, content: json(ref('LogLevel'), { level: 'debug' }) },
    responses: {
      200: ok('It takes effect with the next line.', json(ref('LogLevel'))),
      ...problems(400, 406, 413, 415),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;

export const OVERVIEW_DOC: OperationDoc = {
  summary: 'Status of the node',
  description:
    'State, log, disk, rates, certificates, licence, and warnings that say what to do. Made from data in memory, so it can be polled every other second.',
  responses: { 200: ok('The overview.', json(ref('Overview'))), ...problems(400, 406) },
};

export const ACTIVITY_HISTORY_DOC: OperationDoc = {
  summary: 'Activity of the last 24 hours',
  description:
    'Rates, latencies and CPU of the node that is asked, one value a minute, from its start on. Kept in memory: a restart begins anew.',
  responses: { 200: ok('The history.', json(ref('ActivityHistory'))), ...problems(400, 406) },
};

export const METRIC_HISTORY_DOC: OperationDoc = {
  summary: 'Main metrics of the last 24 hours',
  description:
    'Of events, appends, HTTP requests (the 12 busiest series) and cache lookups: one value a minute, of the node that is asked, from its start on. Kept in memory: a restart begins anew.',
  responses: { 200: ok('The history.', json(ref('MetricHistory'))), ...problems(400, 406) },
};

export const WEBHOOK_ACTIVITY_DOC: OperationDoc = {
  summary: 'Webhook calls by outcome',
  description:
    'Of the node that is asked, since its start and in about the last 10 seconds; rates are null until two answers lie far enough apart.',
  responses: { 200: ok('By connector.', json(ref('WebhookActivity'))), ...problems(400, 406) },
};

export const WEBHOOK_HISTORY_DOC: OperationDoc = {
  summary: 'Calls for a connector in the last 24 hours',
  description:
    'Taken, skipped by its script, and refused: one value a minute, of the node that is asked. Kept in memory, of 10 connectors, the busiest ones; null where nothing is known.',
  parameters: [{ ...query('connector', 'Id of the connector.', TEXT, 'orders'), required: true }],
  responses: { 200: ok('The history.', json(ref('WebhookHistory'))), ...problems(400, 406) },
};
