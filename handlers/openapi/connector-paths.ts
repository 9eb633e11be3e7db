import type {
  ConfiguredDocument,
  ConnectorConfigurationDocument,
  ConnectorDocument,
  ConnectorsDocument,
  ConnectorSettingsDocument,
  RejectionDocument,
  RejectionsDocument,
  RpcStatusDocument,
  ScriptTestDocument,
} from '../documents/connectors.ts';
import type { BodyDoc, HeaderDoc, OperationDoc, ResponseDoc, Schema } from '../http/route.ts';
import {
  arrayOf,
  BOOLEAN,
  documentOf,
  INTEGER,
  json,
  object,
  ok,
  oneOf,
  PROBLEMS,
  query,
  ref,
  segment,
  TEXT,
  TIME,
} from './schema-parts.ts';

/** The OpenAPI document of connectors. */

const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };
const STATES = [
  'CONNECTOR_STATE_ACTIVATING',
  'CONNECTOR_STATE_RUNNING',
  'CONNECTOR_STATE_DEACTIVATING',
  'CONNECTOR_STATE_STOPPED',
] as const;
const FLAT: Schema = {
  type: 'object',
  additionalProperties: TEXT,
  description: 'Nested names joined with `:`, lists as `name:0`. Secrets are `********`.',
};
const NESTED: Schema = { type: 'object', description: 'The same settings, nested.' };
const GIVEN: Schema = {
  type: 'object',
  description:
    'Flat or nested, with texts, numbers, booleans and lists. `skippedStatus` is the answer to calls that the script skips: 200, 202, 204 or 400 (default). `streams` lists the streams that the connector may write to, with `*` at the end of a name for a prefix; without it, every stream that does not start with `$`. A secret given as `********` keeps the stored one.',
};

export const CONNECTOR_SCHEMAS: Readonly<Record<string, Schema>> = {
  Connector: documentOf<ConnectorDocument>({
    connectorId: TEXT,
    instanceTypeName: oneOf('webhook-source'),
    name: TEXT,
    state: oneOf(...STATES),
    stateUpdateTime: TIME,
    'settings?': FLAT,
    'configuration?': NESTED,
    settingsUpdateTime: TIME,
    createTime: TIME,
    updateTime: TIME,
    'deleteTime?': TIME,
    'errorDetails?': documentOf<NonNullable<ConnectorDocument['errorDetails']>>(
      { code: INTEGER, message: TEXT },
      'Why a connector could not run.',
    ),
  }),
  ConnectorList: documentOf<ConnectorsDocument>({
    items: arrayOf(ref('Connector')),
    totalSize: { type: 'integer', description: 'Connectors on this page.' },
  }),
  ConnectorSettings: documentOf<ConnectorSettingsDocument>({ settings: FLAT, settingsUpdateTime: TIME }),
  ConnectorConfiguration: documentOf<ConnectorConfigurationDocument>({
    configuration: NESTED,
    configurationUpdateTime: TIME,
  }),
  NewSettings: {
    ...GIVEN,
    description: `${GIVEN['description'] as string} All of them may stand in a member \`settings\` or \`configuration\`, as GET gives them.`,
  },
  NewConnector: object({
    'name?': TEXT_OR_NULL,
    'settings?': GIVEN,
    'configuration?': { ...GIVEN, description: 'Instead of `settings`; goes before them unless it is empty.' },
  }),
  NewConnectorName: object({ name: TEXT }),
  Rejections: documentOf<RejectionsDocument>({
    connectorId: TEXT,
    rejections: {
      ...arrayOf(
        documentOf<RejectionDocument>({
          eventNumber: { type: 'integer', minimum: 0 },
          time: { type: ['string', 'null'], format: 'date-time' },
          status: { type: ['integer', 'null'], description: 'The answer to the caller.' },
          reason: TEXT,
          headers: { ...arrayOf(TEXT), description: 'Names of headers, without their values.' },
          'deliveryId?': TEXT,
          'suppressed?': {
            type: 'integer',
            description: 'Calls refused before this one that were only counted: ten a minute are recorded.',
          },
        }),
      ),
      description: 'Newest first.',
    },
  }),
  ScriptTest: object({
    'settings?': {
      ...GIVEN,
      description: 'Used instead of the stored settings; the connector need not exist, and secrets are ignored.',
    },
    body: { description: 'A string is the text of the payload; anything else is the payload.' },
    'headers?': { type: 'object', additionalProperties: TEXT },
    'query?': { type: 'object', additionalProperties: TEXT },
  }),
  ScriptTestResult: documentOf<ScriptTestDocument>({
    outcome: oneOf('routed', 'skipped', 'failed', 'timed-out', 'unavailable', 'invalid-json'),
    stream: TEXT_OR_NULL,
    schema: TEXT_OR_NULL,
    error: TEXT_OR_NULL,
    durationMs: { type: 'number', minimum: 0 },
    'warnings?': { ...arrayOf(TEXT), description: 'What is allowed, and yet perhaps not meant.' },
  }),
  Nothing: object({}),
  Configured: documentOf<ConfiguredDocument>({
    'warnings?': {
      ...arrayOf(TEXT),
      description: 'Allowed but risky settings: an unsigned connector without `streams`.',
    },
  }),
  RpcStatus: documentOf<RpcStatusDocument>(
    {
      code: { type: 'integer', description: 'Number of a gRPC status code.' },
      message: TEXT,
      details: arrayOf({ type: 'object', properties: { '@type': TEXT }, required: ['@type'] }),
    },
    'Why a request about connectors failed.',
  ),
};

const BY_STATUS: Readonly<Record<number, ResponseDoc>> = {
  400: PROBLEMS.BadRequest,
  401: PROBLEMS.NotAuthenticated,
  403: PROBLEMS.Forbidden,
  404: { description: 'There is no such connector.' },
  406: PROBLEMS.NotAcceptable,
  409: { description: 'There is a connector with this id.' },
  413: PROBLEMS.ContentTooLarge,
  415: PROBLEMS.UnsupportedMediaType,
  429: PROBLEMS.TooManyRequests,
  500: PROBLEMS.InternalError,
  503: PROBLEMS.Unavailable,
};

/** The usual failures of these statuses, with the body that connector routes have. */
export function connectorFailures(...statuses: readonly number[]): Readonly<Record<number, ResponseDoc>> {
  return Object.fromEntries(
    statuses.map((status) => [status, { ...BY_STATUS[status]!, content: json(ref('RpcStatus')) }]),
  );
}

const ID = segment(
  'connector',
  'Id of a connector: 1 to 50 letters, digits, hyphens and underscores.',
  { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,50}$' },
  'parcels',
);
const POSITION = segment('position', 'A position in the log.', { type: 'string', pattern: '^\\d+$' }, '0');
const EXAMPLE = {
  instanceTypeName: 'webhook-source',
  routingScript: 'Y29uc3Qgcm91dGUgPSAocmVxdWVzdCkgPT4gKHsgc3RyZWFtOiAncGFyY2VscycgfSk7',
};
const DONE = ok('Done.', json(ref('Nothing')));
const CONFIGURED = ok('Done.', json(ref('Configured')));

function body(schema: string, example: unknown): BodyDoc {
  return { required: true, content: json(ref(schema), example) };
}

/** A command without a body. */
function plain(summary: string, description: string): OperationDoc {
  return { summary, description, parameters: [ID], responses: { 200: DONE, ...connectorFailures(400, 404, 406) } };
}

/** What only sinks could do; the answer that one would get is documented, so that clients have its form. */
function refused(summary: string): OperationDoc {
  return {
    summary,
    description: 'There are no sinks, so this is always refused.',
    parameters: [ID, POSITION],
    responses: { 200: DONE, ...connectorFailures(400, 404, 406) },
  };
}

function withBody(summary: string, description: string, given: BodyDoc, done: ResponseDoc = DONE): OperationDoc {
  return {
    summary,
    description,
    parameters: [ID],
    body: given,
    responses: { 200: done, ...connectorFailures(400, 404, 406, 413, 415) },
  };
}

const AT_START = 'Takes effect at the next start of the connector.';

export const CONNECTOR_DOCS = {
  list: {
    summary: 'All connectors',
    description: 'In the order of their creation. Repeated parameters match any of their values.',
    parameters: [
      query(
        'state',
        'Those in this state; its number does too.',
        oneOf('CONNECTOR_STATE_UNKNOWN', ...STATES),
        'CONNECTOR_STATE_RUNNING',
      ),
      query('instanceTypeName', 'Those of this type.', TEXT, 'webhook-source'),
      query('connectorId', 'The one with this id.', TEXT, 'parcels'),
      query('includeSettings', 'With their settings.', BOOLEAN, true),
      query('includeConfiguration', 'With their settings, nested.', BOOLEAN, true),
      query('showDeleted', 'Deleted ones too.', BOOLEAN, true),
      query('page', 'Which page; `paging.page` means the same.', { type: 'integer', minimum: 1 }, 1),
      query(
        'pageSize',
        'Most connectors on a page; `paging.pageSize` means the same.',
        { type: 'integer', minimum: 1, maximum: 100 },
        100,
      ),
    ],
    responses: { 200: ok('The connectors.', json(ref('ConnectorList'))), ...connectorFailures(400, 406) },
  },
  create: {
    summary: 'Create a connector',
    description: 'It does not run until it is started. The id of a deleted connector can be used again.',
    parameters: [ID],
    body: body('NewConnector', { name: 'Parcels', settings: EXAMPLE }),
    responses: { 200: CONFIGURED, ...connectorFailures(400, 406, 409, 413, 415) },
  },
  one: {
    summary: 'A connector',
    description:
      'With its settings. PUT accepts this document, and so does POST for another id, once the secrets are added.',
    parameters: [ID],
    responses: { 200: ok('The connector.', json(ref('Connector'))), ...connectorFailures(400, 404, 406) },
  },
  update: withBody(
    'Replace the settings of a connector, and its name',
    `${AT_START} The name, if given, takes effect immediately. Other members that GET returns are ignored.`,
    body('NewConnector', { name: 'Parcels', settings: EXAMPLE }),
    CONFIGURED,
  ),
  delete: plain('Delete a connector', 'It must be stopped. Its events are truncated.'),
  settings: {
    summary: 'Settings of a connector',
    parameters: [ID],
    responses: { 200: ok('The settings.', json(ref('ConnectorSettings'))), ...connectorFailures(400, 404, 406) },
  },
  configuration: {
    summary: 'Settings of a connector, nested',
    parameters: [ID],
    responses: { 200: ok('The settings.', json(ref('ConnectorConfiguration'))), ...connectorFailures(400, 404, 406) },
  },
  reconfigure: withBody('Replace the settings of a connector', AT_START, body('NewSettings', EXAMPLE), CONFIGURED),
  rename: withBody('Rename a connector', 'The id stays.', body('NewConnectorName', { name: 'Letters' })),
  start: plain('Start a connector', 'It accepts calls once this is answered.'),
  startAt: refused('Start a sink at a position'),
  stop: plain('Stop a connector', 'Accepted calls have been written when this is answered.'),
  reset: plain('Start a connector from the beginning', 'For a source the same as a start.'),
  resetAt: refused('Start a sink from a position'),
  rejections: {
    summary: 'Recently refused calls of a connector',
    description: 'As recorded in the stream `$webhook-{id}-rejections`; no values of headers, and no bodies.',
    parameters: [ID, query('count', 'Most of them.', { type: 'integer', minimum: 1, maximum: 100 }, 20)],
    responses: { 200: ok('Newest first.', json(ref('Rejections'))), ...connectorFailures(400, 404, 406) },
  },
  test: withBody(
    'Run the routing script of a connector',
    'With the stored settings, or those given. Nothing is written.',
    body('ScriptTest', { body: { id: 7 }, headers: {}, query: {} }),
    ok('The outcome of the script.', json(ref('ScriptTestResult'))),
  ),
} as const satisfies Readonly<Record<string, OperationDoc>>;

/**
 * The OpenAPI document of the webhook endpoint. Its replies have no body, but for that to a form and that to a
 * question.
 */

const RETRY_AFTER: Readonly<Record<string, HeaderDoc>> = {
  'Retry-After': { description: 'Seconds after which to send it again.', required: true, schema: INTEGER },
};

function status(description: string): ResponseDoc {
  return { description };
}

const FAILURES: Readonly<Record<number, string>> = { 403: 'A page of another origin sent it.' };

/** What every operation can answer, without the body that other operations have. */
export function webhookFailures(...statuses: readonly number[]): Readonly<Record<number, ResponseDoc>> {
  return Object.fromEntries(statuses.map((each) => [each, status(FAILURES[each]!)]));
}

export const WEBHOOK_DOC: OperationDoc = {
  summary: 'Deliver a webhook call',
  description:
    "The routing script of the connector names the stream that the body is written to. Calls are authenticated by the sender's signature, where the connector asks for one.",
  parameters: [segment('connector', 'Id of a running connector.', TEXT, 'parcels')],
  body: {
    required: true,
    description: 'JSON in UTF-8. It becomes the data of the event unchanged.',
    content: { 'application/json': { example: { resource: 'order', action: 'created' } } },
  },
  responses: {
    201: status('Written durably, or already written before (connectors with `waitForWrite`).'),
    200: {
      ...status(
        'The script skipped the call (connectors with `skippedStatus` 200); or the sender asked, signed by the scheme `Slack`, whether somebody is there, and gets its `challenge` back.',
      ),
      content: { 'text/plain': { schema: TEXT } },
    },
    202: status('Accepted, or accepted before; or the script skipped the call (connectors with `skippedStatus` 202).'),
    204: status('The script skipped the call (connectors with `skippedStatus` 204).'),
    400: status(
      'The body is empty or not JSON; or the script skipped the call, and the connector has no other `skippedStatus`.',
    ),
    401: status('The signature is missing, malformed, wrong or too old.'),
    404: status('No connector with this id runs here.'),
    408: status('The body took too long to arrive, or arrived too slowly.'),
    413: status('The body is too long.'),
    415: status(
      'The content type is not JSON. For a form, the answer is a problem document that says what to set at the sender.',
    ),
    422: status('The stream is deleted for ever, so the event can never be written (connectors with `waitForWrite`).'),
    500: status(
      'The script failed, took too long, or named an invalid stream or event type, or a stream that the connector may not write to.',
    ),
    503: {
      ...status('Too much is waiting, the connector is stopping, or the node cannot accept it now.'),
      headers: RETRY_AFTER,
    },
    504: status('Not written in time. It may still be (connectors with `waitForWrite`).'),
  },
};
