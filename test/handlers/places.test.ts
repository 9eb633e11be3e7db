import { expect, test } from 'vitest';
import { ROUTES } from '../../handlers/routes.ts';
import type { DecidedBy } from '../../handlers/http/route.ts';

/** Where each operation of the route table is decided in a cluster: whoever adds one says so here too. */
const EXPECTED: Readonly<Record<DecidedBy, readonly string[]>> = {
  writes: [
    'POST /streams/%24all', 'POST /streams/%24all/metadata', 'POST /streams/%24scavenges', 'POST /streams/:stream', 'POST /streams/:stream/metadata', 'POST /streams/:stream/incoming/:guid',
    'DELETE /streams/%24all', 'DELETE /streams/%24scavenges', 'DELETE /streams/:stream',
    'POST /users', 'PUT /users/%24current', 'DELETE /users/%24current', 'PUT /users/:login', 'DELETE /users/:login', 'POST /users/:login/command/enable', 'POST /users/:login/command/disable',
    'POST /users/:login/command/reset-password', 'POST /users/:login/command/change-password',
  ],
  leader: [
    'POST /connectors/:connector', 'PUT /connectors/:connector', 'DELETE /connectors/:connector', 'PUT /connectors/:connector/settings', 'PUT /connectors/:connector/configuration', 'PUT /connectors/:connector/rename',
    'POST /connectors/:connector/start', 'POST /connectors/:connector/start/:position', 'POST /connectors/:connector/stop', 'POST /connectors/:connector/reset', 'POST /connectors/:connector/reset/:position',
    'POST /webhook/:connector', 'GET /auto-scavenge/status', 'POST /auto-scavenge/pause', 'POST /auto-scavenge/resume', 'POST /auto-scavenge/configure',
    'GET /subscriptions', 'GET /subscriptions/restart', 'POST /subscriptions/restart', 'GET /subscriptions/:stream', 'GET /subscriptions/:stream/:group/info', 'POST /subscriptions/:stream/:group/replayParked', 'POST /subscriptions/:stream/:group/reset', 'POST /subscriptions/:stream/:group/ack',
    'POST /subscriptions/:stream/:group/nack', 'POST /subscriptions/:stream/:group/ack/:id', 'POST /subscriptions/:stream/:group/nack/:id', 'GET /subscriptions/:stream/:group/:count', 'GET /subscriptions/:stream/:group',
    'GET /subscriptions/viewparkedmessages/:stream/:group/:event/backward/:count', 'GET /subscriptions/viewparkedmessages/:stream/:group/:event/forward/:count',
    'PUT /subscriptions/:stream/:group', 'POST /subscriptions/:stream/:group', 'DELETE /subscriptions/:stream/:group',
  ],
  here: [
    'GET /streams/%24all', 'GET /streams/%24all/filtered', 'GET /streams/%24all/filtered/:position/:count', 'GET /streams/%24all/filtered/:position/backward/:count', 'GET /streams/%24all/filtered/:position/forward/:count',
    'GET /streams/%24all/metadata', 'GET /streams/%24all/:position/:count', 'GET /streams/%24all/:position/backward/:count', 'GET /streams/%24all/:position/forward/:count', 'GET /streams/%24scavenges', 'GET /streams/:stream',
    'GET /streams/:stream/metadata', 'GET /streams/:stream/:event', 'GET /streams/:stream/metadata/:event', 'GET /streams/:stream/:event/:count', 'GET /streams/:stream/:event/forward/:count', 'GET /streams/:stream/:event/backward/:count',
    'GET /streams/:stream/metadata/:event/:count', 'GET /streams/:stream/metadata/:event/forward/:count', 'GET /streams/:stream/metadata/:event/backward/:count', 'GET /streams/%24scavenges/:scavenge/:event/:count',
    'POST /admin/scavenge', 'GET /admin/scavenge/current', 'DELETE /admin/scavenge/current', 'GET /admin/scavenge/last', 'GET /admin/scavenge/progress', 'DELETE /admin/scavenge/:scavenge', 'GET /admin/scavenge/dry-run/:scavenge', 'GET /admin/scavenge/explain/:stream',
    'GET /auto-scavenge/enabled', 'GET /auto-scavenge/times', 'POST /admin/backup', 'GET /admin/backups', 'GET /admin/backup/current', 'GET /admin/backup/status', 'POST /admin/backup/verify', 'POST /admin/backup/drill', 'GET /admin/backup/check', 'DELETE /admin/backup/check', 'DELETE /admin/backup/current', 'POST /admin/backup/hold', 'POST /admin/backup/hold/:hold', 'DELETE /admin/backup/hold/:hold', 'GET /admin/backup/files', 'GET /admin/backup/files/:path+',
    'GET /users', 'GET /users/%24current', 'GET /users/:login', 'GET /connectors', 'GET /connectors/:connector', 'GET /connectors/:connector/settings', 'GET /connectors/:connector/configuration', 'GET /connectors/:connector/rejections', 'POST /connectors/:connector/test',
    'POST /cluster/gossip', 'GET /cluster/commits', 'POST /cluster/lead', 'POST /cluster/append',
    'POST /admin/shutdown', 'POST /admin/reloadconfig', 'POST /admin/mergeindexes', 'POST /admin/node/priority/:n', 'POST /admin/node/resign', 'GET /admin/login',
    'GET /health/live', 'GET /health/ready', 'GET /ping', 'GET /info', 'GET /info/options', 'GET /gossip', 'GET /metrics', 'GET /stats', 'GET /stats/replication', 'GET /stats/tcp', 'GET /stats/:path+', 'GET /sys/subsystems', 'GET /', 'GET /openapi.json',
    'GET /ui', 'GET /ui/assets/:name', 'GET /ui/:path+', 'GET /ui/session', 'POST /ui/session', 'DELETE /ui/session',
    'GET /admin/chunks', 'GET /admin/streams', 'GET /admin/erasure', 'POST /admin/erasure', 'GET /admin/erasure/:proof', 'DELETE /admin/erasure/:proof', 'GET /admin/log', 'GET /admin/overview', 'GET /admin/webhooks', 'PUT /admin/log/level',
  ],
};

test('every operation says where it is decided', () => {
  const found: Record<DecidedBy, string[]> = { writes: [], leader: [], here: [] };
  for (const { path, operations } of ROUTES) for (const [method, { place }] of Object.entries(operations)) found[place].push(`${method} ${path}`);
  for (const place of ['writes', 'leader', 'here'] as const) expect(found[place].toSorted()).toEqual(EXPECTED[place].toSorted());
});

test('what only reads writes nothing', () => {
  for (const { operations } of ROUTES) for (const [method, { place }] of Object.entries(operations)) if (place === 'writes') expect(method).not.toBe('GET');
});
