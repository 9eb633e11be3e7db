import { expect, test } from 'vitest';
import { connectorFailure } from '../../handlers/connectors/call-failures.ts';
import { webhookFailure } from '../../handlers/connectors/webhook-routes.ts';
import { firstSegment, PLAIN } from '../../handlers/http/branches.ts';
import { branchAt, ROUTES } from '../../handlers/routes.ts';

/** What is said of paths by how they begin; test/handlers/access.test.ts has what becomes of it. */

test('a path has the branch of its first segment, whether a route is there or not', () => {
  for (const path of ['/connectors', '/connectors/parcels', '/connectors/parcels/nothing/here', '/connectors/'])
    expect([path, branchAt(path)]).toEqual([path, { ...PLAIN, fail: connectorFailure }]);
  for (const path of ['/webhook/parcels', '/webhook/parcels/more', '/webhook/'])
    expect([path, branchAt(path)]).toEqual([path, { ...PLAIN, fail: webhookFailure, isForSenders: true }]);
  for (const path of ['/health/live', '/health/other'])
    expect([path, branchAt(path)]).toEqual([path, { ...PLAIN, probes: new Set(['/health/live', '/health/ready']) }]);
  for (const path of ['/streams/orders', '/streams/%24all/x', '/streams/'])
    expect([path, branchAt(path)]).toEqual([path, { ...PLAIN, heedsRequiresLeader: true }]);
  for (const path of [
    '/auto-scavenge/status',
    '/auto-scavenge/other',
    '/subscriptions',
    '/subscriptions/orders/workers',
  ])
    expect([path, branchAt(path)]).toEqual([path, { ...PLAIN, hasReadsOfLeader: true }]);
});

test('a path that only looks like one of a branch has none, and neither has the segment alone where it is no path', () => {
  for (const path of [
    '/',
    '/connectorsx',
    '/webhook',
    '/webhooks/parcels',
    '/health',
    '/healthy/live',
    '/auto-scavenge',
    '/subscriptionsx',
    '/admin/webhooks',
    '/cluster/append',
    '//webhook/x',
  ])
    expect([path, branchAt(path)]).toEqual([path, PLAIN]);
});

test('routes that begin alike fail alike', () => {
  for (const [first, routes] of Map.groupBy(ROUTES, ({ path }) => firstSegment(path)))
    expect([first, new Set(routes.map(({ failures }) => failures?.reply)).size]).toEqual([first, 1]);
});
