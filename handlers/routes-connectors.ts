import {
  connectorConfiguration, connectorSettings, createConnector, deleteConnector, listConnectors, reconfigureConnector, renameConnector, resetConnector, startConnector, startConnectorAt, stopConnector, testConnector,
} from './connectors.ts';
import type { Handler } from './context.ts';
import { CONNECTOR_DOCS as DOCS } from './openapi-connectors.ts';
import { WEBHOOK_DOC } from './openapi-webhook.ts';
import { operation } from './route.ts';
import type { OperationDoc, Route } from './route.ts';
import { receiveWebhook } from './webhook.ts';

const CONNECTOR = '/connectors/:connector';

/** The paths of connectors (http-api.md section 9.2), and where senders deliver to them (section 10). */
export const CONNECTOR_ROUTES: readonly Route[] = [
  { path: '/connectors', methods: 'GET, OPTIONS', operations: { GET: operation('operators', listConnectors, DOCS.list) } },
  { path: CONNECTOR, methods: 'POST, DELETE, OPTIONS', operations: { POST: operation('operators', createConnector, DOCS.create), DELETE: operation('operators', deleteConnector, DOCS.delete) } },
  { path: `${CONNECTOR}/settings`, methods: 'GET, PUT, OPTIONS', operations: { GET: operation('operators', connectorSettings, DOCS.settings), PUT: operation('operators', reconfigureConnector, DOCS.reconfigure) } },
  { path: `${CONNECTOR}/configuration`, methods: 'GET, PUT, OPTIONS', operations: { GET: operation('operators', connectorConfiguration, DOCS.configuration), PUT: operation('operators', reconfigureConnector, DOCS.reconfigure) } },
  { path: `${CONNECTOR}/rename`, methods: 'PUT, OPTIONS', operations: { PUT: operation('operators', renameConnector, DOCS.rename) } },
  command('start', startConnector, DOCS.start),
  command('start/:position', startConnectorAt, DOCS.startAt),
  command('stop', stopConnector, DOCS.stop),
  command('reset', resetConnector, DOCS.reset),
  command('reset/:position', startConnectorAt, DOCS.resetAt),
  command('test', testConnector, DOCS.test),
  { path: '/webhook/:connector', methods: 'POST, OPTIONS', operations: { POST: operation('anyone', receiveWebhook, WEBHOOK_DOC) } },
];

function command(name: string, handler: Handler, doc: OperationDoc): Route {
  return { path: `${CONNECTOR}/${name}`, methods: 'POST, OPTIONS', operations: { POST: operation('operators', handler, doc) } };
}
