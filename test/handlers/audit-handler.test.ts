import { describe, expect, test } from 'vitest';
import { ADDRESS_REFUSALS_MAX, AUDIT_SAMPLE_MS, REFUSALS_PER_MINUTE_MAX } from '../../handlers/audit-handler.ts';
import type { AuditEntry } from '../../core/ports/audit.ts';
import { auditLine, ownEntry } from '../../core/ports/audit.ts';
import { ROUTES } from '../../handlers/routes.ts';
import type { FlatContext } from '../support/app-context.ts';
import { FakeAutoScavenge } from '../support/fake-auto-scavenge.ts';
import { fakeBackups, HOLD_ID } from '../support/backup/fake-backups.ts';
import { fakeConnectors, fakeIngest } from '../support/fake-connectors.ts';
import { fakeErasure, PROOF_ID } from '../support/fake-erasure.ts';
import { fakeGroups } from '../support/fake-subscriptions.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { FakeNode } from '../support/fake-node.ts';
import { EXPECTATIONS, SCAVENGE_ID } from './access-table.ts';
import { AS, basic, secured } from './secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const EVENTS = { 'content-type': 'application/vnd.eventstore.events+json' };

function audited(context: Partial<FlatContext> = {}) {
  const entries: AuditEntry[] = [];
  const from = { address: '192.0.2.7' as string | null };
  const h = secured({
    audit: {
      record: (entry) => {
        entries.push(entry);
      },
    },
    addressOf: () => from.address,
    ...context,
  });
  const of = (action: string) => entries.filter((entry) => entry.action === action);
  const write = (path: string, body: unknown, headers: Record<string, string> = AS.admin) =>
    h.send(
      'POST',
      path,
      { ...headers, ...EVENTS },
      JSON.stringify([{ eventId: h.id(), eventType: '$metadata', data: body }]),
    );
  return { ...h, entries, of, from, write };
}

describe('logins', () => {
  test('are told once an hour for a user and an address, with how the caller was known', async () => {
    const h = audited();
    for (let i = 0; i < 3; i++) await h.get('/', undefined, AS.plain);
    expect(h.entries).toEqual([ownEntry('login', { user: 'kim', address: '192.0.2.7', details: { by: 'password' } })]);
    h.from.address = '192.0.2.8';
    await h.get('/', undefined, AS.plain);
    await h.get('/', undefined, AS.ops);
    expect(h.entries.map(({ user, address }) => [user, address])).toEqual([
      ['kim', '192.0.2.7'],
      ['kim', '192.0.2.8'],
      ['olga', '192.0.2.8'],
    ]);
    await h.clock.advance(AUDIT_SAMPLE_MS);
    await h.get('/', undefined, AS.plain);
    expect(h.entries).toHaveLength(4);
  });

  test('by a certificate name it', async () => {
    const node = { name: 'system', roles: ['$admins'] };
    const h = audited({ peerOf: () => node, certificateOf: () => 'node1.example.test' });
    await h.get('/');
    expect(h.entries).toMatchObject([
      { action: 'login', user: 'system', certificate: 'node1.example.test', details: { by: 'certificate' } },
    ]);
  });

  test('that fail are told with the name that was tried, cut, and then as a number', async () => {
    const h = audited();
    for (let i = 0; i < 5; i++) expect((await h.get('/', undefined, AS.wrong)).status).toBe(401);
    await h.get('/', undefined, { authorization: basic('x'.repeat(500), 'y') });
    await h.get('/', undefined, { authorization: 'Basic ???' });
    expect(h.entries.map(({ outcome, status, code, user }) => [outcome, status, code, user])).toEqual([
      ['refused', 401, 'not_authenticated', 'kim'],
      ['refused', 401, 'not_authenticated', 'x'.repeat(64)],
      ['refused', 401, 'not_authenticated', null],
    ]);
    await h.clock.advance(AUDIT_SAMPLE_MS);
    await h.get('/', undefined, AS.wrong);
    expect(h.entries.at(-1)).toMatchObject({ user: 'kim', details: { repeats: 4 } });
  });

  test('without credentials are none', async () => {
    const h = audited();
    await h.get('/');
    await h.get('/streams/s');
    expect(h.entries).toEqual([]);
  });

  test('nobody can bury what others do: refusals are bounded by address and in all', async () => {
    const h = audited();
    for (let i = 0; i < 2 * ADDRESS_REFUSALS_MAX; i++)
      await h.get('/', undefined, { authorization: basic(`guess${i}`, 'x') });
    expect(h.entries).toHaveLength(ADDRESS_REFUSALS_MAX + 1);
    expect(h.entries.at(-1)!.details).toMatchObject({ others: expect.any(String) });
    await h.clock.advance(60_000);
    h.entries.length = 0;
    for (let i = 0; i < REFUSALS_PER_MINUTE_MAX + 50; i++) {
      h.from.address = `198.51.${i >> 8}.${i & 255}`;
      await h.get('/', undefined, AS.wrong);
    }
    expect(h.entries).toHaveLength(REFUSALS_PER_MINUTE_MAX);
    await h.send('DELETE', '/users/kim', AS.admin);
    expect(h.of('user.delete')).toHaveLength(1);
    await h.clock.advance(60_000);
    h.from.address = '203.0.113.1';
    await h.get('/', undefined, AS.wrong);
    expect(h.entries.at(-1)).toMatchObject({ action: 'login', details: { untold: 50 } });
  });
});

describe('what is done', () => {
  const SECRET = 'n0b0dy-may-see-this';

  test('to users', async () => {
    const h = audited();
    const as = { ...AS.admin, ...JSON_TYPE };
    await h.send(
      'POST',
      '/users',
      { ...as, 'x-request-id': 'r-1' },
      JSON.stringify({ loginName: 'sam', password: SECRET, groups: ['pickers', '$ops'] }),
    );
    await h.send('PUT', '/users/sam', as, JSON.stringify({ groups: ['leads'] }));
    await h.send('POST', '/users/sam/command/reset-password', as, JSON.stringify({ newPassword: `${SECRET}2` }));
    await h.send('POST', '/users/sam/command/disable', as);
    await h.send('DELETE', '/users/sam', AS.plain);
    await h.send('DELETE', '/users/nobody', AS.admin);
    await h.send('DELETE', '/users/$current', AS.admin);
    expect(
      h.entries
        .filter(({ action }) => action !== 'login')
        .map(({ action, outcome, status, code, user, target, details }) => [
          action,
          outcome,
          status,
          code,
          user,
          target,
          details,
        ]),
    ).toEqual([
      ['user.create', 'success', 201, null, 'ada', 'sam', { groups: ['pickers', '$ops'] }],
      ['user.update', 'success', 200, null, 'ada', 'sam', { groups: ['leads'] }],
      ['user.reset-password', 'success', 200, null, 'ada', 'sam', null],
      ['user.disable', 'success', 200, null, 'ada', 'sam', null],
      ['user.delete', 'refused', 403, 'access_denied', 'kim', 'sam', null],
      ['user.delete', 'failed', 404, 'user_not_found', 'ada', 'nobody', null],
      ['user.delete', 'failed', 404, 'user_not_found', 'ada', '$current', null],
    ]);
    expect(h.of('user.create')[0]).toMatchObject({ requestId: 'r-1', address: '192.0.2.7' });
    expect(JSON.stringify(h.entries)).not.toContain(SECRET);
  });

  test('to access lists, by every way in which they can be changed', async () => {
    const h = audited();
    await h.fill('s', {});
    await h.send('POST', '/streams/s', { ...AS.admin, ...JSON_TYPE, 'es-eventtype': 'x', 'es-eventid': h.id() }, '{}');
    await h.write('/streams/s/metadata', { $maxCount: 5 });
    expect(h.entries.filter(({ action }) => action !== 'login')).toEqual([]);
    await h.write('/streams/s/metadata', { $acl: { $r: ['kim', '$ops'] } });
    await h.write('/streams/%24%24s', { $maxCount: 5 });
    await h.write('/streams/%24%24s', { $acl: { $w: 'kim' } }, AS.anonymous);
    await h.write('/streams/$settings', { $userStreamAcl: {} });
    await h.write('/streams/$user-kim', {});
    expect(
      h.entries
        .filter(({ action }) => action !== 'login')
        .map(({ action, outcome, user, target, details }) => [action, outcome, user, target, details]),
    ).toEqual([
      ['access-list.change', 'success', 'ada', 's', { read: ['kim', '$ops'] }],
      ['access-list.change', 'success', 'ada', 's', { removed: true }],
      ['access-list.change', 'refused', null, 's', null],
      ['access-list.change', 'success', 'ada', '$settings', null],
      ['user.write', 'success', 'ada', 'kim', null],
    ]);
  });

  test('to streams: deletes of both kinds, also by metadata', async () => {
    const h = audited();
    for (const stream of ['a', 'b', 'c']) await h.write(`/streams/${stream}`, {});
    await h.send('DELETE', '/streams/a', AS.admin);
    await h.send('DELETE', '/streams/b', { ...AS.plain, 'es-harddelete': 'true' });
    await h.send(
      'POST',
      '/streams/c/metadata',
      { ...AS.admin, ...EVENTS },
      `[{"eventId":"${h.id()}","eventType":"$metadata","data":{"$tb":9223372036854775807}}]`,
    );
    await h.send('DELETE', '/streams/c', { ...AS.admin, 'es-expectedversion': '7' });
    expect(
      h.entries
        .filter(({ action }) => action !== 'login')
        .map(({ action, outcome, code, user, target }) => [action, outcome, code, user, target]),
    ).toEqual([
      ['stream.delete', 'success', null, 'ada', 'a'],
      ['stream.tombstone', 'success', null, 'kim', 'b'],
      ['stream.delete', 'success', null, 'ada', 'c'],
      ['stream.delete', 'failed', 'wrong_expected_version', 'ada', 'c'],
    ]);
  });

  test('to the node', async () => {
    const node = new FakeNode();
    node.reloadResult = {
      options: [{ name: 'LogLevel', from: 'info', to: SECRET }],
      ignoredOptions: [],
      certificatesChanged: true,
      certificates: [],
    };
    const h = audited({ node });
    await h.send('POST', '/admin/reloadconfig', AS.ops);
    await h.send('POST', '/admin/scavenge?threads=2', AS.ops);
    await h.send('DELETE', `/admin/scavenge/${SCAVENGE_ID}`, AS.plain);
    await h.send('POST', '/admin/shutdown', AS.ops);
    expect(
      h.entries
        .filter(({ action }) => action !== 'login')
        .map(({ action, outcome, user, target, details }) => [action, outcome, user, target, details]),
    ).toEqual([
      ['node.reload', 'success', 'olga', null, { options: ['LogLevel'], certificatesChanged: true }],
      ['scavenge.start', 'success', 'olga', expect.stringMatching(/^[0-9a-f-]{36}$/), { threads: 2, dryRun: false }],
      ['scavenge.stop', 'refused', 'kim', SCAVENGE_ID, null],
      ['node.shutdown', 'success', 'olga', null, null],
    ]);
  });
});

test('whatever changes something is told to the audit, or stands here with the reason', () => {
  const UNTOLD: Readonly<Record<string, string>> = {
    'POST /streams/:stream': 'data; what gives rights is told by the handler',
    'POST /streams/%24all': 'refused to everybody',
    'POST /streams/%24scavenges': 'data',
    'POST /dcb/append': 'data',
    'POST /streams': 'told by the handler where it is about rights',
    'POST /streams/:stream/incoming/:guid': 'as POST /streams/:stream',
    'POST /streams/:stream/metadata': 'told by the handler where it is about rights',
    'POST /streams/%24all/metadata': 'the same',
    'POST /admin/backup/hold/:hold': 'keeps a hold that was told of',
    'POST /connectors/:connector/test': 'writes nothing',
    'POST /connectors/:connector/start/:position': 'always refused',
    'POST /connectors/:connector/reset/:position': 'always refused',
    'POST /webhook/:connector': 'data, with a log of its own',
    'POST /cluster/gossip': 'tells, and changes nothing',
    'POST /cluster/lead': 'the resign is told where it was asked for',
    'POST /cluster/append': 'what a member writes for itself',
    'POST /subscriptions/:stream/:group/ack': 'the work of consumers',
    'POST /subscriptions/:stream/:group/nack': 'the same',
    'POST /subscriptions/:stream/:group/ack/:id': 'the same',
    'POST /subscriptions/:stream/:group/nack/:id': 'the same',
  };
  const untold = ROUTES.flatMap(({ path, operations }) =>
    Object.entries(operations)
      .filter(([method, { audit }]) => !['GET', 'HEAD'].includes(method) && audit === undefined)
      .map(([method]) => `${method} ${path}`),
  );
  expect(untold.sort()).toEqual(Object.keys(UNTOLD).sort());
  expect(Object.keys(EXPECTATIONS)).toEqual(expect.arrayContaining(untold));
});

test('each operation that is told leaves one entry with its user, its target and no body', async () => {
  const h = audited({
    node: new FakeNode(),
    erasure: fakeErasure(new ManualClock(0)),
    autoScavenge: new FakeAutoScavenge(),
    backups: await fakeBackups(new ManualClock(0), { isHeld: true }),
    webhooks: { connectors: await fakeConnectors(), ingest: fakeIngest() },
    subscriptions: await fakeGroups('s'),
  });
  await h.get('/', undefined, AS.admin);
  for (const { path, operations } of ROUTES) {
    for (const [method, { audit }] of Object.entries(operations)) {
      // Of logins of the page: ui/session.test.ts.
      if (audit === undefined || path === '/ui/session') continue;
      const params: Record<string, string> = {
        login: 'sam',
        stream: 's',
        scavenge: SCAVENGE_ID,
        hold: HOLD_ID,
        connector: 'parcels',
        n: '3',
        group: 'workers',
        proof: PROOF_ID,
      };
      h.entries.length = 0;
      await h.send(
        method,
        path.replace(/:(\w+)/g, (_, name: string) => params[name]!),
        { ...AS.admin, ...JSON_TYPE },
        method === 'DELETE' ? null : '{"loginName":"sam","password":"hush-hush","newPassword":"hush-hush"}',
      );
      expect(h.entries.map(({ user }) => user)).toEqual(['ada']);
      expect(JSON.stringify(h.entries)).not.toContain('hush-hush');
    }
  }
});

test('a line is bounded, and holds what has a value', () => {
  const line = auditLine(
    ownEntry('user.create', {
      user: 'ada',
      target: 'x'.repeat(5_000),
      code: 'user_exists',
      outcome: 'failed',
      status: 409,
      details: { groups: Array.from({ length: 1_000 }, () => 'g'.repeat(1_000)), ok: true },
    }),
    Date.UTC(2031, 3, 2),
  );
  expect(line.length).toBeLessThan(24_576);
  const entry = JSON.parse(line) as Record<string, unknown>;
  expect(Object.keys(entry)).toEqual([
    'time',
    'action',
    'outcome',
    'status',
    'code',
    'user',
    'address',
    'target',
    'details',
  ]);
  expect([entry['time'], entry['details']]).toEqual(['2031-04-02T00:00:00Z', { isTruncated: true }]);
});
