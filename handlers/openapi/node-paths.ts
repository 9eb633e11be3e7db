import {
  arrayOf,
  BOOLEAN,
  COUNT,
  documentOf,
  INTEGER,
  json,
  jsonOrText,
  media,
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
import type {
  AuditView,
  BuildingView,
  ChunkProofView,
  GossipDocument,
  InfoDocument,
  MemberDocument,
  MemberOnlyMembers,
  OptionView,
  PingDocument,
  ReadinessDocument,
  WelcomeDocument,
} from '../documents/node.ts';
import type { HeaderDoc, OperationDoc, ResponseDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of health, information and statistics. */

const STATE = ['Initializing', 'Leader', 'ResigningLeader', 'ShuttingDown'];
const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };
const TYPE_ID: Schema = { type: 'integer', description: 'Means nothing to clients.' };

export const NODE_SCHEMAS: Readonly<Record<string, Schema>> = {
  Welcome: documentOf<WelcomeDocument>({
    name: TEXT,
    version: TEXT,
    links: { type: 'object', additionalProperties: TEXT },
    hint: TEXT,
  }),
  Ping: documentOf<PingDocument>({ text: TEXT, msgTypeId: TYPE_ID, label: TEXT }),
  Info: documentOf<InfoDocument>({
    dbVersion: TEXT,
    esVersion: TEXT,
    state: oneOf(...STATE.map((state) => state.toLowerCase())),
    features: documentOf<InfoDocument['features']>({ projections: BOOLEAN, userManagement: BOOLEAN, atomPub: BOOLEAN }),
    authentication: documentOf<InfoDocument['authentication']>({
      type: oneOf('internal', 'insecure'),
      properties: { type: 'null' },
    }),
  }),
  Option: documentOf<OptionView>({
    name: TEXT,
    description: TEXT,
    group: TEXT,
    value: { type: 'string', description: '`********` for what is secret.' },
    possibleValues: { anyOf: [{ type: 'null' }, arrayOf(TEXT)] },
    configurationSource: TEXT,
    deprecationMessage: TEXT_OR_NULL,
    schema: documentOf<OptionView['schema']>({ type: oneOf('boolean', 'integer', 'string') }),
    defaultValue: { type: 'string', description: 'In readable form; empty for none.' },
    isSecret: BOOLEAN,
    isReloadable: { ...BOOLEAN, description: 'A new value takes effect on reload.' },
    commandLine: {
      type: ['string', 'null'],
      description: 'How it is spelt on the command line; null for what is given in the environment only.',
    },
    environment: { type: 'string', description: 'The name of its variable.' },
  }),
  Gossip: documentOf<GossipDocument>({ members: arrayOf(ref('Member')), serverIp: TEXT, serverPort: COUNT }),
  // What members of a cluster tell beside it is not documented.
  Member: documentOf<Omit<MemberDocument, keyof MemberOnlyMembers>>(
    {
      instanceId: UUID,
      timeStamp: TIME,
      state: oneOf(...STATE),
      isAlive: BOOLEAN,
      internalTcpIp: TEXT,
      internalTcpPort: COUNT,
      internalSecureTcpPort: COUNT,
      externalTcpIp: TEXT,
      externalTcpPort: COUNT,
      externalSecureTcpPort: COUNT,
      httpEndPointIp: TEXT,
      httpEndPointPort: COUNT,
      lastCommitPosition: INTEGER,
      writerCheckpoint: INTEGER,
      chaserCheckpoint: INTEGER,
      epochPosition: INTEGER,
      epochNumber: INTEGER,
      epochId: UUID,
      nodePriority: INTEGER,
      isReadOnlyReplica: BOOLEAN,
      esVersion: TEXT,
    },
    'Ports of unsupported protocols are 0.',
  ),
  Readiness: documentOf<ReadinessDocument>(
    {
      status: oneOf('ready', 'starting', 'stopping'),
      'phase?': TEXT,
      'bytesDone?': COUNT,
      'bytesTotal?': COUNT,
      'elapsedSeconds?': { type: 'number', minimum: 0 },
      'remainingSeconds?': { type: ['number', 'null'], description: 'Null while unknown.' },
      'log?': ref('ChunkProofs'),
      'audit?': ref('AuditHealth'),
      'building?': {
        ...arrayOf(ref('IndexBuilding')),
        description: 'Attribute indexes that do not cover the whole log yet.',
      },
    },
    'While the node is starting, its progress; then how much of its log is verified, and whether its audit is being written.',
  ),
  IndexBuilding: documentOf<BuildingView>({
    index: oneOf('names', 'correlations', 'tags'),
    coveredTo: { ...COUNT, description: 'Position in the log.' },
    logEnd: COUNT,
  }),
  AuditHealth: documentOf<AuditView>({
    failing: { ...BOOLEAN, description: 'Actions are currently not being recorded.' },
    entriesLost: { ...COUNT, description: 'Entries since startup that could not be recorded.' },
  }),
  ChunkProofs: documentOf<ChunkProofView>({
    bytesUnproven: {
      ...COUNT,
      description: 'Of completed chunk files whose checksum was not verified since they were written or changed.',
    },
    oldestProofSeconds: {
      type: ['integer', 'null'],
      minimum: 0,
      description: 'Since the least recently verified file was verified; null when none was.',
    },
  }),
  Statistics: {
    type: 'object',
    description: 'Values in objects, as deep as their keys have dashes; with `group=false` all in one.',
  },
};

const RETRY_AFTER: Readonly<Record<string, HeaderDoc>> = {
  'Retry-After': { description: 'Seconds after which to check again.', required: true, schema: COUNT },
};
const NO_STORE: Readonly<Record<string, HeaderDoc>> = {
  'Cache-Control': { description: '`no-store`.', required: true, schema: TEXT },
};
const MOMENT: Readonly<Record<string, HeaderDoc>> = {
  'Cache-Control': { description: 'For a moment at most.', required: true, schema: TEXT },
};

const GROUPING = [
  query('group', 'Put values into objects by the parts of their keys. Default true.', BOOLEAN, true),
  query('metadata', 'Describe each value.', BOOLEAN, true),
];
const STATISTICS = ok('The values collected last.', json(ref('Statistics')), MOMENT);
const NO_CONNECTIONS: ResponseDoc = ok('Always empty.', json({ type: 'array' }), MOMENT);
const BRANCH = segment(
  'path',
  'Keys that lead to a branch, separated by slashes that are not escaped.',
  { type: 'string', minLength: 1 },
  'proc',
);

const readiness: OperationDoc = {
  summary: 'Whether the node is ready, and its startup progress',
  responses: {
    200: ok('It serves.', json(ref('Readiness')), NO_STORE),
    503: ok('It is starting or stopping.', json(ref('Readiness')), { ...NO_STORE, ...RETRY_AFTER }),
  },
};

export const NODE_DOCS = {
  live: {
    summary: 'Whether the node has started; a restart would not help against what it lacks then',
    responses: {
      204: ok('It has started.', undefined, NO_STORE),
      503: ok('It is starting.', undefined, { ...NO_STORE, ...RETRY_AFTER }),
    },
  },
  ready: readiness,
  ping: {
    summary: 'Whether the process answers',
    parameters: [PARAMETERS.adminFormat],
    responses: { 200: ok('It does.', jsonOrText(ref('Ping'))), ...problems(400, 406) },
  },
  info: {
    summary: 'Version, state and features of the node',
    responses: { 200: ok('The node.', json(ref('Info'))), ...problems(400, 406) },
  },
  options: {
    summary: 'Every option and its current value',
    responses: { 200: ok('The options.', json(arrayOf(ref('Option')))), ...problems(400, 406) },
  },
  gossip: {
    summary: 'The members of the cluster',
    parameters: [PARAMETERS.adminFormat],
    responses: {
      200: ok('The members, as this node knows them.', jsonOrText(ref('Gossip')), MOMENT),
      ...problems(400, 406),
    },
  },
  metrics: {
    summary: 'Metrics for Prometheus',
    description: 'In the format OpenMetrics for those who ask for it.',
    responses: { 200: ok('The metrics.', media(TEXT, 'text/plain', 'application/openmetrics-text'), MOMENT) },
  },
  stats: { summary: 'Statistics', parameters: GROUPING, responses: { 200: STATISTICS, ...problems(400, 406) } },
  branch: {
    summary: 'A branch of the statistics',
    parameters: [BRANCH, ...GROUPING],
    responses: { 200: STATISTICS, ...problems(400, 404, 406) },
  },
  replication: { summary: 'Replicas that follow this node', responses: { 200: NO_CONNECTIONS, ...problems(400, 406) } },
  tcp: { summary: 'Connections of the TCP protocol', responses: { 200: NO_CONNECTIONS, ...problems(400, 406) } },
  subsystems: {
    summary: 'Subsystems of the node',
    responses: { 200: ok('There are none.', json(arrayOf(TEXT))), ...problems(400, 406) },
  },
  welcome: {
    summary: 'Entry points',
    responses: {
      200: ok('The addresses to start with.', json(ref('Welcome'))),
      307: ok('To the page, for browsers.', media(TEXT, 'text/plain'), {
        Location: { description: 'Of the page.', required: true, schema: TEXT },
      }),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
