import type { Access } from '../../handlers/http/context.ts';
import type { StreamAction } from '../../core/security/api.ts';
import { HOLD_ID } from '../support/backup/fake-backups.ts';
import { SCRIPT_NAME } from '../support/fake-page.ts';
import { PROOF_ID } from '../support/fake-erasure.ts';
import { gossipOf, instanceOf, LOG_ID } from '../support/fake-cluster.ts';

/**
 * What every operation of the route table is expected to answer, and to whom, written down here a second time so that a
 * change of the route table or of the rules shows.
 */

export const CALLERS = ['anonymous', 'wrong', 'plain', 'ops', 'keeper', 'admin'] as const;
export type Caller = (typeof CALLERS)[number];

/** Who gets the answer of the operation itself; everyone else is refused. */
type Admitted = readonly Caller[];

/**
 * Callers named in the trusted header, and as whom they count: the one whom a trusted proxy names, and the one who
 * names himself.
 */
export const NAMED = { proxied: 'ops', impostor: 'anonymous' } as const satisfies Record<string, Caller>;

const EVERYONE: Admitted = ['anonymous', 'plain', 'ops', 'keeper', 'admin'];
const KNOWN: Admitted = ['plain', 'ops', 'keeper', 'admin'];
const OPERATORS: Admitted = ['ops', 'admin'];
/** Of the node's files. */
const KEEPERS: Admitted = ['keeper', 'admin'];
const ADMINISTRATORS: Admitted = ['admin'];
const NOBODY: Admitted = [];

/** By the access of a route. `self` and `stream` are decided in the handlers, and have tables of their own. */
export const ADMITTED: Readonly<Record<Exclude<Access, 'stream' | 'self'>, Admitted>> = {
  probe: CALLERS,
  sender: CALLERS,
  anyone: EVERYONE,
  gossip: EVERYONE,
  statistics: KNOWN,
  authenticated: KNOWN,
  operators: OPERATORS,
  backup: KEEPERS,
  administrators: ADMINISTRATORS,
  members: NOBODY,
};

/** The streams that the table is made for; see `access.test.ts` for what they are. */
export const STREAM_KINDS = ['open', 'guarded', 'closed', 'system', 'metastream'] as const;
export type StreamKind = (typeof STREAM_KINDS)[number] | 'all' | 'scavenges';

export const ADMITTED_TO_STREAM: Readonly<Record<StreamKind, Readonly<Record<StreamAction, Admitted>>>> = {
  // Without an access list.
  open: { read: KNOWN, write: KNOWN, delete: KNOWN, metadataRead: KNOWN, metadataWrite: KNOWN },
  // `$ops` for everything but writing, which has no entry.
  guarded: { read: OPERATORS, write: KNOWN, delete: OPERATORS, metadataRead: OPERATORS, metadataWrite: OPERATORS },
  // Empty lists.
  closed: {
    read: ADMINISTRATORS,
    write: ADMINISTRATORS,
    delete: ADMINISTRATORS,
    metadataRead: ADMINISTRATORS,
    metadataWrite: ADMINISTRATORS,
  },
  // A name that begins with `$`, without an access list.
  system: {
    read: ADMINISTRATORS,
    write: ADMINISTRATORS,
    delete: ADMINISTRATORS,
    metadataRead: ADMINISTRATORS,
    metadataWrite: ADMINISTRATORS,
  },
  // The metadata of an open stream, under its own name.
  metastream: { read: KNOWN, write: KNOWN, delete: NOBODY, metadataRead: NOBODY, metadataWrite: NOBODY },
  all: {
    read: ADMINISTRATORS,
    write: NOBODY,
    delete: NOBODY,
    metadataRead: ADMINISTRATORS,
    metadataWrite: ADMINISTRATORS,
  },
  // As the node writes it: read by `$ops`, everything else empty.
  scavenges: {
    read: OPERATORS,
    write: ADMINISTRATORS,
    delete: ADMINISTRATORS,
    metadataRead: ADMINISTRATORS,
    metadataWrite: ADMINISTRATORS,
  },
};

/**
 * What a request gets that a page of another origin has sent, with an administrator's credentials: what reads is
 * answered (the browser keeps it from the page), what changes something is refused before it is looked at. Null for as
 * without the page.
 */
export function foreignOriginStatus(method: string): number | null {
  return method === 'GET' || method === 'HEAD' ? null : 403;
}

/**
 * The status that everyone gets who is not admitted: wrong credentials and no credentials are 401, a missing role 403.
 */
export function refusedStatus(caller: Caller): number {
  return caller === 'anonymous' || caller === 'wrong' ? 401 : 403;
}

export interface OperationExpectation {
  readonly access: Exclude<Access, 'stream'>;
  /** Who gets `status`; for `self` only, where the user in the path is the plain caller. */
  readonly admitted?: Admitted;
  readonly status: number;
  readonly body?: unknown;
  /** Values of the path's parameters. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
}

export interface StreamExpectation {
  readonly access: 'stream';
  readonly action: StreamAction;
  readonly status: number;
  /** The kind of the stream where the path names it; by default all of STREAM_KINDS are tried. */
  readonly kind?: StreamKind;
  readonly params?: Readonly<Record<string, string>>;
  /** What is posted. Default: one event. */
  readonly body?: unknown;
  /** What is posted, where it names the stream. */
  readonly bodyFor?: (stream: string) => unknown;
}

export type Expectation = OperationExpectation | StreamExpectation;

export const SCAVENGE_ID = '00000000-0000-4000-8000-000000000001';
const VICTIM = { login: 'victim' };
const PLAIN = { login: 'kim' };
const START = '0'.repeat(32);

const reads = (params: Record<string, string> = {}, kind?: StreamKind): StreamExpectation => ({
  access: 'stream',
  action: 'read',
  status: 200,
  params,
  ...(kind && { kind }),
});
const metadata = (params: Record<string, string> = {}, kind?: StreamKind): StreamExpectation => ({
  access: 'stream',
  action: 'metadataRead',
  status: 200,
  params,
  ...(kind && { kind }),
});
const writes = (action: 'write' | 'delete' | 'metadataWrite', kind?: StreamKind): StreamExpectation => ({
  access: 'stream',
  action,
  status: action === 'delete' ? 204 : 201,
  ...(kind && { kind }),
});
const is = (
  access: OperationExpectation['access'],
  status = 200,
  more: Partial<OperationExpectation> = {},
): OperationExpectation => ({ access, status, ...more });

/** `metadataNumber` stands for the number of the last metadata event of the stream. */
const STREAMS: Record<string, StreamExpectation> = {
  'POST /streams': {
    ...writes('write'),
    status: 200,
    bodyFor: (stream) => ({ stream, events: [{ type: stream.startsWith('$$') ? '$metadata' : 'made', data: {} }] }),
  },
  'GET /streams/:stream/info': reads(),
  'GET /streams/%24all': reads({}, 'all'),
  'POST /streams/%24all': writes('write', 'all'),
  'DELETE /streams/%24all': writes('delete', 'all'),
  'GET /streams/%24all/:position/:count': reads({ position: 'head', count: '2' }, 'all'),
  'GET /streams/%24all/:position/backward/:count': reads({ position: 'head', count: '2' }, 'all'),
  'GET /streams/%24all/:position/forward/:count': reads({ position: START, count: '2' }, 'all'),
  'GET /streams/%24all/filtered': reads({}, 'all'),
  'GET /streams/%24all/filtered/:position/:count': reads({ position: 'head', count: '2' }, 'all'),
  'GET /streams/%24all/filtered/:position/backward/:count': reads({ position: 'head', count: '2' }, 'all'),
  'GET /streams/%24all/filtered/:position/forward/:count': reads({ position: START, count: '2' }, 'all'),
  'GET /streams/%24all/metadata': metadata({}, 'all'),
  'POST /streams/%24all/metadata': writes('metadataWrite', 'all'),
  'GET /streams/%24scavenges': reads({}, 'scavenges'),
  'POST /streams/%24scavenges': writes('write', 'scavenges'),
  'DELETE /streams/%24scavenges': writes('delete', 'scavenges'),
  'GET /streams/%24scavenges/:scavenge/:event/:count': reads(
    { scavenge: SCAVENGE_ID, event: 'head', count: '2' },
    'scavenges',
  ),
  'GET /dcb/read': reads({}, 'all'),
  // As by query: whoever may read an open stream.
  'GET /checkpoint': reads({}, 'open'),
  // Beside the right to write, which these streams give all.
  'POST /dcb/append': {
    ...reads({}, 'all'),
    body: { events: [{ type: 'made' }], condition: { failIfEventsMatch: { items: [] } } },
  },
  'GET /streams/:stream': reads(),
  'POST /streams/:stream': writes('write'),
  'DELETE /streams/:stream': writes('delete'),
  'POST /streams/:stream/incoming/:guid': writes('write'),
  'GET /streams/:stream/:event': reads({ event: '0' }),
  'GET /streams/:stream/:event/:count': reads({ event: 'head', count: '2' }),
  'GET /streams/:stream/:event/backward/:count': reads({ event: 'head', count: '2' }),
  'GET /streams/:stream/:event/forward/:count': reads({ event: '0', count: '2' }),
  'GET /streams/:stream/metadata': metadata(),
  'POST /streams/:stream/metadata': writes('metadataWrite'),
  'GET /streams/:stream/metadata/:event': metadata({ event: 'metadataNumber' }),
  'GET /streams/:stream/metadata/:event/:count': metadata({ event: 'head', count: '2' }),
  'GET /streams/:stream/metadata/:event/backward/:count': metadata({ event: 'head', count: '2' }),
  'GET /streams/:stream/metadata/:event/forward/:count': metadata({ event: '0', count: '2' }),
};

const ADMIN: Record<string, OperationExpectation> = {
  'POST /admin/scavenge': is('operators'),
  'POST /admin/redact': is('administrators', 404, { body: { stream: 'nothing', events: [0], reason: 'test' } }),
  'GET /admin/indexes': is('administrators'),
  'POST /admin/indexes': is('administrators', 200, { body: { tags: true } }),
  'GET /admin/scavenge/current': is('operators'),
  'DELETE /admin/scavenge/current': is('operators'),
  'GET /admin/scavenge/last': is('operators'),
  'GET /admin/scavenge/progress': is('operators'),
  'DELETE /admin/scavenge/:scavenge': is('operators', 200, { params: { scavenge: SCAVENGE_ID } }),
  'GET /admin/scavenge/dry-run/:scavenge': is('operators', 202, { params: { scavenge: SCAVENGE_ID } }),
  'GET /admin/scavenge/explain/:stream': is('operators', 200, { params: { stream: 'explained' } }),
  'POST /admin/shutdown': is('operators'),
  'POST /admin/reloadconfig': is('operators'),
  'POST /admin/mergeindexes': is('operators'),
  'POST /admin/node/priority/:n': is('operators', 200, { params: { n: '3' } }),
  'POST /admin/node/resign': is('operators'),
  'GET /admin/login': is('authenticated'),
};

const USERS: Record<string, OperationExpectation> = {
  'GET /users': is('administrators'),
  'POST /users': is('administrators', 201, { body: { loginName: 'newcomer', password: 'x' } }),
  'GET /users/%24current': is('authenticated'),
  'PUT /users/%24current': is('administrators', 404, { body: {} }),
  'DELETE /users/%24current': is('administrators', 404),
  'GET /users/:login': is('self', 200, { params: PLAIN, admitted: ['plain', 'admin'] }),
  'PUT /users/:login': is('administrators', 200, { params: VICTIM, body: { fullName: 'V' } }),
  'DELETE /users/:login': is('administrators', 200, { params: VICTIM }),
  'POST /users/:login/command/enable': is('administrators', 200, { params: VICTIM }),
  'POST /users/:login/command/disable': is('administrators', 200, { params: VICTIM }),
  'POST /users/:login/command/reset-password': is('administrators', 200, {
    params: VICTIM,
    body: { newPassword: 'y' },
  }),
  'POST /users/:login/command/change-password': is('self', 200, {
    params: PLAIN,
    admitted: ['plain'],
    body: { currentPassword: 'kim:pass', newPassword: 'kim:pass' },
  }),
};

const CONNECTOR = { connector: 'parcels' };
const SCRIPT = { instanceTypeName: 'webhook-source', routingScript: 'Y29uc3Qgcm91dGUgPSAoKSA9PiBudWxsOw==' };

/** Connectors are a fake's, which has `parcels`, stopped. */
const CONNECTORS: Record<string, OperationExpectation> = {
  'GET /connectors': is('operators'),
  'POST /connectors/:connector': is('operators', 200, {
    params: { connector: 'newcomer' },
    body: { settings: SCRIPT },
  }),
  'DELETE /connectors/:connector': is('operators', 200, { params: CONNECTOR }),
  'GET /connectors/:connector': is('operators', 200, { params: CONNECTOR }),
  'PUT /connectors/:connector': is('operators', 200, { params: CONNECTOR, body: { settings: SCRIPT } }),
  'GET /connectors/:connector/settings': is('operators', 200, { params: CONNECTOR }),
  'PUT /connectors/:connector/settings': is('operators', 200, { params: CONNECTOR, body: SCRIPT }),
  'GET /connectors/:connector/configuration': is('operators', 200, { params: CONNECTOR }),
  'PUT /connectors/:connector/configuration': is('operators', 200, { params: CONNECTOR, body: SCRIPT }),
  'PUT /connectors/:connector/rename': is('operators', 200, { params: CONNECTOR, body: { name: 'Letters' } }),
  'POST /connectors/:connector/start': is('operators', 200, { params: CONNECTOR }),
  'POST /connectors/:connector/start/:position': is('operators', 400, { params: { ...CONNECTOR, position: '0' } }),
  'POST /connectors/:connector/stop': is('operators', 200, { params: CONNECTOR }),
  'POST /connectors/:connector/reset': is('operators', 200, { params: CONNECTOR }),
  'POST /connectors/:connector/reset/:position': is('operators', 400, { params: { ...CONNECTOR, position: '0' } }),
  'GET /connectors/:connector/rejections': is('operators', 200, { params: CONNECTOR }),
  'POST /connectors/:connector/test': is('operators', 200, { params: CONNECTOR, body: { body: {} } }),
  'POST /webhook/:connector': is('sender', 202, { params: CONNECTOR, body: {} }),
};

const NODE: Record<string, OperationExpectation> = {
  'GET /health/live': is('probe', 204),
  'GET /health/ready': is('probe'),
  'GET /': is('anyone'),
  'GET /ping': is('anyone'),
  'GET /info': is('anyone'),
  'GET /openapi.json': is('anyone'),
  'GET /info/options': is('operators'),
  'GET /sys/subsystems': is('operators'),
  'GET /gossip': is('gossip'),
  'GET /metrics': is('statistics'),
  'GET /metrics/history': is('statistics'),
  'GET /stats': is('statistics'),
  'GET /stats/replication': is('statistics'),
  'GET /stats/tcp': is('statistics'),
  'GET /stats/:path+': is('statistics', 200, { params: { 'path+': 'proc' } }),
};

/** A fake's, of one script. */
const PAGE: Record<string, OperationExpectation> = {
  'GET /ui': is('anyone'),
  'GET /ui/session': is('anyone'),
  'POST /ui/session': is('anyone', 200, { body: { user: 'kim', password: 'kim:pass' } }),
  'DELETE /ui/session': is('anyone', 204),
  'GET /ui/:path+': is('anyone', 200, { params: { 'path+': 'streams' } }),
  'GET /ui/assets/:name': is('anyone', 200, { params: { name: SCRIPT_NAME } }),
};

/** A fake's, which is on. */
const AUTO_SCAVENGE: Record<string, OperationExpectation> = {
  'GET /auto-scavenge/enabled': is('authenticated'),
  'GET /auto-scavenge/status': is('authenticated'),
  'POST /auto-scavenge/pause': is('operators'),
  'POST /auto-scavenge/resume': is('operators'),
  'GET /auto-scavenge/times': is('authenticated', 200, { query: 'schedule=0%20*%20*%20*%20*' }),
  'POST /auto-scavenge/configure': is('operators', 200, { body: { schedule: '0 * * * *' } }),
};

/** A fake's, which makes one and holds files for another. */
const BACKUPS: Record<string, OperationExpectation> = {
  'POST /admin/backup': is('operators', 202),
  'GET /admin/backups': is('operators'),
  'GET /admin/backup/current': is('operators'),
  'DELETE /admin/backup/current': is('operators'),
  'GET /admin/backup/status': is('operators'),
  'POST /admin/backup/verify': is('operators', 202),
  'POST /admin/backup/drill': is('operators', 202),
  'GET /admin/backup/check': is('operators'),
  'DELETE /admin/backup/check': is('operators'),
  'POST /admin/backup/hold': is('backup'),
  'POST /admin/backup/hold/:hold': is('backup', 200, { params: { hold: HOLD_ID } }),
  'DELETE /admin/backup/hold/:hold': is('backup', 204, { params: { hold: HOLD_ID } }),
  'GET /admin/backup/files': is('backup', 200, { query: `hold=${HOLD_ID}` }),
  'GET /admin/backup/files/:path+': is('backup', 200, {
    params: { 'path+': 'chunk-000000.000000' },
    query: `hold=${HOLD_ID}`,
  }),
};

const GROUP = { stream: 'shared', group: 'workers' };
const MESSAGE_ID = '00000000-0000-4000-8000-000000000077';

/** A fake's, which has one group, of a stream that everybody may read. */
const SUBSCRIPTIONS: Record<string, OperationExpectation> = {
  'GET /subscriptions': is('authenticated'),
  'POST /subscriptions/restart': is('operators'),
  'GET /subscriptions/restart': is('authenticated', 404),
  'GET /subscriptions/:stream': is('authenticated', 200, { params: GROUP }),
  'GET /subscriptions/:stream/:group/info': is('authenticated', 200, { params: GROUP }),
  'GET /subscriptions/:stream/:group/history': is('authenticated', 200, { params: GROUP }),
  'GET /subscriptions/:stream/:group': is('authenticated', 200, { params: GROUP }),
  'GET /subscriptions/:stream/:group/:count': is('authenticated', 200, { params: { ...GROUP, count: '2' } }),
  'PUT /subscriptions/:stream/:group': is('operators', 201, { params: { ...GROUP, group: 'newcomers' }, body: {} }),
  'POST /subscriptions/:stream/:group': is('operators', 200, { params: GROUP, body: {} }),
  'DELETE /subscriptions/:stream/:group': is('operators', 200, { params: GROUP }),
  'POST /subscriptions/:stream/:group/replayParked': is('operators', 200, { params: GROUP }),
  'POST /subscriptions/:stream/:group/reset': is('operators', 200, { params: GROUP, query: 'from=start' }),
  'POST /subscriptions/:stream/:group/ack': is('authenticated', 202, { params: GROUP, query: `ids=${MESSAGE_ID}` }),
  'POST /subscriptions/:stream/:group/nack': is('authenticated', 202, { params: GROUP, query: `ids=${MESSAGE_ID}` }),
  'POST /subscriptions/:stream/:group/ack/:id': is('authenticated', 202, { params: { ...GROUP, id: MESSAGE_ID } }),
  'POST /subscriptions/:stream/:group/nack/:id': is('authenticated', 202, { params: { ...GROUP, id: MESSAGE_ID } }),
  // Nothing was parked.
  'GET /subscriptions/viewparkedmessages/:stream/:group/:event/backward/:count': is('authenticated', 404, {
    params: { ...GROUP, event: 'head', count: '2' },
  }),
  'GET /subscriptions/viewparkedmessages/:stream/:group/:event/forward/:count': is('authenticated', 404, {
    params: { ...GROUP, event: '0', count: '2' },
  }),
};

/** For members only, who are none of the callers here. */
const CLUSTER: Record<string, OperationExpectation> = {
  'POST /cluster/gossip': is('members', 200, { body: gossipOf(2) }),
  'POST /cluster/lead': is('members', 200, { body: { logId: LOG_ID, epochNumber: 3 } }),
  'POST /cluster/append': is('members', 415),
  'GET /cluster/commits': is('members', 204, { query: `log=${LOG_ID}&from=8&instance=${instanceOf(2)}&waitMs=0` }),
};

/** What shows a node from inside. */
const INSPECTION: Record<string, OperationExpectation> = {
  'GET /admin/chunks': is('operators'),
  'GET /admin/streams': is('operators'),
  'GET /admin/log': is('operators'),
  'GET /admin/erasure': is('operators'),
  'POST /admin/erasure': is('operators', 202, { body: { stream: 'orders' } }),
  'GET /admin/erasure/:proof': is('operators', 200, { params: { proof: PROOF_ID } }),
  'DELETE /admin/erasure/:proof': is('operators', 200, { params: { proof: PROOF_ID } }),
  'GET /admin/overview': is('operators'),
  'GET /admin/overview/history': is('operators'),
  'GET /admin/webhooks': is('operators'),
  'GET /admin/webhooks/history': is('operators', 200, { query: 'connector=parcels' }),
  'PUT /admin/log/level': is('operators', 200, { body: { level: 'debug' } }),
};

/** By method and path of the route table. */
export const EXPECTATIONS: Readonly<Record<string, Expectation>> = {
  ...STREAMS,
  ...ADMIN,
  ...USERS,
  ...CONNECTORS,
  ...AUTO_SCAVENGE,
  ...BACKUPS,
  ...SUBSCRIPTIONS,
  ...CLUSTER,
  ...NODE,
  ...PAGE,
  ...INSPECTION,
};
