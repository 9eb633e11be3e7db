import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { AuditAction } from '../../core/ports/audit.ts';
import type { StoredEvent } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import { timestampText } from '../../core/base/time.ts';
import { rejectionsStream } from '../../core/webhook/format/stream-names.ts';
import type { Connector, Connectors } from '../../core/webhook/api.ts';
import { nestSettings } from '../../core/webhook/format/settings-shape.ts';
import { invalidConnector } from '../../core/webhook/api.ts';
import { connectorOf, listQueryOf, newNameOf, newSettingsOf, trialOf } from './requests.ts';
import type { ListQuery } from './requests.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import type { OperationDoc, DecidedBy, RouteOfArea } from '../http/route.ts';
import { decodeSegment } from '../http/url.ts';
import type {
  ConfiguredDocument,
  ConnectorConfigurationDocument,
  ConnectorDocument,
  ConnectorsDocument,
  ConnectorSettingsDocument,
  RejectionDocument,
  RejectionsDocument,
  ScriptTestDocument,
} from '../documents/connectors.ts';
import { CONNECTOR_DOCS, connectorFailures, WEBHOOK_DOC, webhookFailures } from '../openapi/connector-paths.ts';
import { connectorFailure } from './call-failures.ts';
import { receiveWebhook, webhookBody, webhookFailure } from './webhook-routes.ts';

/** Connectors over HTTP. */

/** GET `/connectors`. */
const listConnectors: Handler = async (call, app) => {
  const connectors = connectorsOf(call, app);
  const query = listQueryOf(call);
  const wanted = (await connectors.list()).filter(query.wants);
  const from = (query.page - 1) * query.pageSize;
  const items = wanted.slice(from, from + query.pageSize).map((connector) => itemOf(connector, query));
  return jsonReply(call, { items, totalSize: items.length } satisfies ConnectorsDocument);
};

/** POST `/connectors/{id}`. */
const createConnector: Handler = (call, app) =>
  command(call, app, async (connectors, id) => {
    const { name, settings } = await connectorOf(call, app);
    return connectors.create(id, name, settings);
  });

/** GET `/connectors/{id}`: what PUT takes back, and POST for another id. */
const oneConnector: Handler = async (call, app) => {
  const connector = await connectorsOf(call, app).get(idOf(call));
  return jsonReply(call, itemOf(connector, { includeSettings: true, includeConfiguration: false }));
};

/** PUT `/connectors/{id}`: all settings anew, and the name where there is one. */
const updateConnector: Handler = (call, app) =>
  command(call, app, async (connectors, id) => {
    const { name, settings } = await connectorOf(call, app);
    return connectors.update(id, name, settings);
  });

/** GET `/connectors/{id}/settings`. */
const connectorSettings: Handler = async (call, app) => {
  const { settings, settingsUpdatedMs } = await connectorsOf(call, app).get(idOf(call));
  return jsonReply(call, {
    settings: Object.fromEntries(settings),
    settingsUpdateTime: timeText(settingsUpdatedMs),
  } satisfies ConnectorSettingsDocument);
};

/** GET `/connectors/{id}/configuration`: the same settings, nested. */
const connectorConfiguration: Handler = async (call, app) => {
  const { settings, settingsUpdatedMs } = await connectorsOf(call, app).get(idOf(call));
  return jsonReply(call, {
    configuration: nestSettings(settings),
    configurationUpdateTime: timeText(settingsUpdatedMs),
  } satisfies ConnectorConfigurationDocument);
};

/** PUT `/connectors/{id}/settings` and `/configuration`: all settings anew. */
const reconfigureConnector: Handler = (call, app) =>
  command(call, app, async (connectors, id) => connectors.reconfigure(id, await newSettingsOf(call, app)));

/** PUT `/connectors/{id}/rename`. */
const renameConnector: Handler = (call, app) =>
  command(call, app, async (connectors, id) => connectors.rename(id, await newNameOf(call, app)));

const startConnector: Handler = (call, app) => command(call, app, (connectors, id) => connectors.start(id));
const stopConnector: Handler = (call, app) => command(call, app, (connectors, id) => connectors.stop(id));
const resetConnector: Handler = (call, app) => command(call, app, (connectors, id) => connectors.reset(id));
const deleteConnector: Handler = (call, app) => command(call, app, (connectors, id) => connectors.delete(id));

/** POST `/connectors/{id}/start/{position}` and `/reset/{position}`: for sinks, of which there are none. */
const startConnectorAt: Handler = (call, app) =>
  command(call, app, async (connectors, id) => {
    if (!/^\d{1,20}$/.test(call.params['position']!))
      throw invalidConnector([{ field: 'position', description: 'position must be a whole number' }]);
    const { connectorId } = await connectors.get(id);
    throw new SkuaError(
      'connector_state',
      `Connector '${connectorId}' is a source, which has no position in the log. Leave out the position.`,
      { connectorId },
    );
  });

/**
 * POST `/connectors/{id}/test`: runs the script that is stored, or the one of settings that are not, and writes
 * nothing.
 */
const testConnector: Handler = async (call, app) => {
  const connectors = connectorsOf(call, app);
  const { input, settings } = await trialOf(call, app);
  const { outcome, stream, schema, error, durationMs, warnings } = await connectors.test(idOf(call), input, settings);
  return jsonReply(call, {
    outcome,
    stream,
    schema,
    error,
    durationMs: Math.round(durationMs * 1_000) / 1_000,
    ...(warnings !== undefined && { warnings }),
  } satisfies ScriptTestDocument);
};

/** Rejections of an answer: by default, and at most. */
const REJECTIONS_DEFAULT = 20;
const REJECTIONS_MAX = 100;

/** GET `/connectors/{id}/rejections`: why calls were refused lately, from the stream in which that is noted. */
const connectorRejections: Handler = async (call, app) => {
  const { connectorId } = await connectorsOf(call, app).get(idOf(call));
  const events = await lastEvents(app, rejectionsStream(connectorId), rejectionsCountOf(call));
  return jsonReply(call, {
    connectorId,
    rejections: events.map(({ number, data }) => ({ eventNumber: number, ...rejectionIn(data) })),
  } satisfies RejectionsDocument);
};

function rejectionsCountOf(call: Call): number {
  const text = queryOf(call, 'count');
  if (text === undefined) return REJECTIONS_DEFAULT;
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > REJECTIONS_MAX)
    throw invalidConnector([{ field: 'count', description: `count must be 1 to ${REJECTIONS_MAX}` }]);
  return count;
}

/** Newest first; none of a stream that there is not. */
async function lastEvents(app: App, stream: string, count: number): Promise<readonly StoredEvent[]> {
  try {
    return (await app.store.readStream(stream, { direction: 'backward', from: 'end', count })).events;
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'stream_deleted')) return [];
    throw error;
  }
}

/** The members of a note that connectors write; nothing of what another writer has put there. */
function rejectionIn(data: Uint8Array): Omit<RejectionDocument, 'eventNumber'> {
  const { time, status, reason, headers, deliveryId, suppressed } = noteIn(data);
  return {
    time: typeof time === 'string' ? time : null,
    status: typeof status === 'number' ? status : null,
    reason: typeof reason === 'string' ? reason : '',
    headers: Array.isArray(headers) ? headers.map(String) : [],
    ...(typeof deliveryId === 'string' && { deliveryId }),
    ...(typeof suppressed === 'number' && { suppressed }),
  };
}

function noteIn(data: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(decodeText(data));
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

/** The answer is empty but for warnings, where `run` gives some. */
async function command(
  call: Call,
  app: App,
  run: (connectors: Connectors, connectorId: string) => Promise<readonly string[] | void>,
): Promise<Reply> {
  const warnings = (await run(connectorsOf(call, app), idOf(call))) ?? [];
  return jsonReply(call, (warnings.length > 0 ? { warnings } : {}) satisfies ConfiguredDocument);
}

function connectorsOf(call: Call, app: App): Connectors {
  const { connectors } = featureOf(call, app, 'webhooks');
  negotiate(call, JSON_ONLY);
  return connectors;
}

/** What is no id is refused where it is used. */
function idOf(call: Call): string {
  return decodeSegment(call.params['connector']!);
}

function itemOf(
  connector: Connector,
  { includeSettings, includeConfiguration }: Pick<ListQuery, 'includeSettings' | 'includeConfiguration'>,
): ConnectorDocument {
  const { connectorId, instanceTypeName, name, state, settings, error, deletedMs } = connector;
  return {
    connectorId,
    instanceTypeName,
    name,
    state,
    stateUpdateTime: timeText(connector.stateUpdatedMs),
    ...(includeSettings && { settings: Object.fromEntries(settings) }),
    ...(includeConfiguration && { configuration: nestSettings(settings) }),
    settingsUpdateTime: timeText(connector.settingsUpdatedMs),
    createTime: timeText(connector.createdMs),
    updateTime: timeText(connector.updatedMs),
    ...(deletedMs !== null && { deleteTime: timeText(deletedMs) }),
    ...(error !== null && { errorDetails: error }),
  };
}

function timeText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}

const CONNECTOR = '/connectors/:connector';

/** The paths of connectors, and where senders deliver to them. */
export const CONNECTOR_ROUTES = area(
  { tag: 'Connectors', feature: 'webhooks', failures: { reply: connectorFailure, docs: connectorFailures } },
  [
    {
      path: '/connectors',
      methods: 'GET, OPTIONS',
      operations: { GET: operation('operators', 'here', inRoom(listConnectors), CONNECTOR_DOCS.list) },
    },
    {
      path: CONNECTOR,
      methods: 'POST, GET, PUT, DELETE, OPTIONS',
      operations: {
        POST: operation('operators', 'leader', createConnector, CONNECTOR_DOCS.create, 'connector.create'),
        GET: operation('operators', 'here', oneConnector, CONNECTOR_DOCS.one),
        PUT: operation('operators', 'leader', updateConnector, CONNECTOR_DOCS.update, 'connector.configure'),
        DELETE: operation('operators', 'leader', deleteConnector, CONNECTOR_DOCS.delete, 'connector.delete'),
      },
    },
    {
      path: `${CONNECTOR}/settings`,
      methods: 'GET, PUT, OPTIONS',
      operations: {
        GET: operation('operators', 'here', connectorSettings, CONNECTOR_DOCS.settings),
        PUT: operation('operators', 'leader', reconfigureConnector, CONNECTOR_DOCS.reconfigure, 'connector.configure'),
      },
    },
    {
      path: `${CONNECTOR}/configuration`,
      methods: 'GET, PUT, OPTIONS',
      operations: {
        GET: operation('operators', 'here', connectorConfiguration, CONNECTOR_DOCS.configuration),
        PUT: operation('operators', 'leader', reconfigureConnector, CONNECTOR_DOCS.reconfigure, 'connector.configure'),
      },
    },
    {
      path: `${CONNECTOR}/rename`,
      methods: 'PUT, OPTIONS',
      operations: { PUT: operation('operators', 'leader', renameConnector, CONNECTOR_DOCS.rename, 'connector.rename') },
    },
    commandRoute('start', startConnector, CONNECTOR_DOCS.start, 'connector.start'),
    commandRoute('start/:position', startConnectorAt, CONNECTOR_DOCS.startAt),
    commandRoute('stop', stopConnector, CONNECTOR_DOCS.stop, 'connector.stop'),
    commandRoute('reset', resetConnector, CONNECTOR_DOCS.reset, 'connector.reset'),
    commandRoute('reset/:position', startConnectorAt, CONNECTOR_DOCS.resetAt),
    // It writes nothing.
    {
      path: `${CONNECTOR}/rejections`,
      methods: 'GET, OPTIONS',
      operations: { GET: operation('operators', 'here', connectorRejections, CONNECTOR_DOCS.rejections) },
    },
    commandRoute('test', testConnector, CONNECTOR_DOCS.test, undefined, 'here'),
    {
      path: '/webhook/:connector',
      tag: 'Node',
      failures: { reply: webhookFailure, docs: webhookFailures },
      methods: 'POST, OPTIONS',
      operations: { POST: { ...operation('sender', 'leader', receiveWebhook, WEBHOOK_DOC), arrive: webhookBody } },
    },
  ],
);

function commandRoute(
  name: string,
  handler: Handler,
  doc: OperationDoc,
  audit?: AuditAction,
  place: DecidedBy = 'leader',
): RouteOfArea {
  return {
    path: `${CONNECTOR}/${name}`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('operators', place, handler, doc, audit) },
  };
}
