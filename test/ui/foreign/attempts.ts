/** What somebody would change of a node, in an order in which all of it can be done; and what he would like to read. */

export interface Change {
  readonly method: 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: string;
  readonly type?: string;
}

const JSON_TYPE = 'application/json';
const SETTINGS = {
  instanceTypeName: 'webhook-source',
  routingScript: Buffer.from("function route() { return { stream: 'in-x', schema: 'x' }; }").toString('base64'),
  streams: ['in-*'],
};

export const READER = {
  loginName: 'reader',
  fullName: 'Reader of the classified',
  groups: ['readers'],
  password: 'a Password 2',
};
/** Stands in what nobody else may see. */
export const SECRETS: readonly string[] = ['classified', 'chunk-000000', 'routingScript', '$admins'];
export const EVENTS_TYPE = 'application/vnd.eventstore.events+json';

function change(method: Change['method'], path: string, body?: unknown, type = JSON_TYPE): Change {
  return { method, path, ...(body !== undefined && { body: JSON.stringify(body), type }) };
}

export const CHANGES: readonly Change[] = [
  change(
    'POST',
    '/streams/orders',
    [{ eventId: '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11', eventType: 'planted', data: {} }],
    EVENTS_TYPE,
  ),
  change('POST', '/admin/redact', { stream: 'orders', events: [0], reason: 'r' }),
  change(
    'POST',
    '/streams/orders/metadata',
    [{ eventId: '0b8c7d1e-52f4-4c3a-8f7e-1d2c3b4a5968', eventType: '$metadata', data: { $maxCount: 1 } }],
    EVENTS_TYPE,
  ),
  change('DELETE', '/streams/orders'),
  change('POST', '/users', { ...READER, loginName: 'planted', groups: ['$admins'] }),
  change('PUT', '/users/reader', { fullName: 'Planted', groups: ['$admins'] }),
  change('POST', '/users/reader/command/disable'),
  change('POST', '/users/reader/command/enable'),
  change('POST', '/users/reader/command/reset-password', { newPassword: 'a Password 3' }),
  change('POST', '/connectors/planted', { settings: SETTINGS }),
  change('POST', '/connectors/planted/start'),
  change('POST', '/connectors/planted/test', { body: {}, settings: SETTINGS }),
  change('POST', '/connectors/planted/stop'),
  change('DELETE', '/connectors/planted'),
  change('PUT', '/subscriptions/orders/planted', {}),
  change('POST', '/subscriptions/orders/workers', { maxRetryCount: 1 }),
  change('DELETE', '/subscriptions/orders/workers'),
  change('POST', '/auto-scavenge/configure', { schedule: '30 2 * * 0' }),
  change('POST', '/auto-scavenge/pause'),
  change('POST', '/admin/scavenge?dryRun=true'),
  change('POST', '/admin/scavenge'),
  change('POST', '/admin/erasure', { stream: 'orders' }),
  change('PUT', '/admin/log/level', { level: 'debug' }),
  change('POST', '/admin/mergeindexes'),
  change('POST', '/admin/reloadconfig'),
  change('DELETE', '/users/reader'),
  change('POST', '/ui/session', { user: READER.loginName, password: READER.password }),
  change('DELETE', '/ui/session'),
  change('POST', '/admin/shutdown'),
];

/** Those that our own page could not do twice, or does not come back from. */
export const LAST_CHANGES: ReadonlySet<string> = new Set([
  'POST /ui/session',
  'DELETE /ui/session',
  'POST /admin/shutdown',
]);

export const PRIVATE_PATHS: readonly string[] = [
  '/streams/orders',
  '/streams/orders?embed=body',
  '/streams/orders/0',
  '/streams/$all',
  '/users',
  '/users/$current',
  '/admin/overview',
  '/admin/log',
  '/admin/chunks',
  '/info/options',
  '/connectors?includeSettings=true',
  '/stats',
];
export const PUBLIC_PATHS: readonly string[] = ['/ui', '/ui/streams/orders', '/ui/session', '/info', '/health/ready'];
