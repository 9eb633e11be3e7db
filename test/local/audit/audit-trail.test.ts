import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ownEntry } from '../../../core/ports/audit.ts';
import { AUDIT_STREAM } from '../../../core/ports/audit.ts';
import { AUDIT_QUEUE_BYTES_MAX } from '../../../core/security/audit-stream/audit-stream.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { AuditTrail } from '../../../local/audit/audit-trail.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { basic, LogLines } from '../../handlers/secured.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ModelStore } from '../../support/model-store.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { startNode } from '../../../local/node/node.ts';
import { load } from '../config/support.ts';
import { NodeLines } from '../backup/node-kit.ts';

const NOW_MS = Date.UTC(2031, 3, 2, 9, 15, 30, 250);
let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'skua-audit-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, any>);

function setUp(name: string | null = 'audit.json', more: { sizeBytes?: number; retention?: number } = {}) {
  const clock = new ManualClock(NOW_MS);
  const log = new LogLines();
  const meter = createMetrics(clock);
  const store = new ModelStore(clock, new SeededIds());
  const file =
    name === null
      ? null
      : { name: path.join(root, name), sizeBytes: 1_000_000, interval: 'Infinite' as const, retention: 3, ...more };
  const trail = new AuditTrail({ file, clock, log, meter });
  const metrics = async () =>
    (await meter.render(null)).body.split('\n').filter((line) => line.startsWith('eventstore_audit'));
  return { clock, log, meter, store, trail, metrics, ids: new SeededIds() };
}

describe('the file', () => {
  test('has a line an entry, and is for the user of the node only', async () => {
    const { trail, metrics } = setUp();
    trail.own('node.start', { target: 'http://127.0.0.1:2113' });
    trail.record(ownEntry('user.delete', { user: 'ada', address: '192.0.2.7', target: 'kim', status: 200 }));
    await trail.close();
    const file = path.join(root, 'audit.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(linesOf(file)).toEqual([
      {
        time: '2031-04-02T09:15:30.25Z',
        action: 'node.start',
        outcome: 'success',
        user: null,
        address: null,
        target: 'http://127.0.0.1:2113',
      },
      {
        time: '2031-04-02T09:15:30.25Z',
        action: 'user.delete',
        outcome: 'success',
        status: 200,
        user: 'ada',
        address: '192.0.2.7',
        target: 'kim',
      },
    ]);
    expect(await metrics()).toContain('eventstore_audit_entries_total{sink="file",result="written"} 2');
  });

  test('is continued in another at its size, and the oldest go; files of others stay', async () => {
    writeFileSync(path.join(root, 'audit-of-another.json'), 'x');
    const { trail } = setUp('audit.json', { sizeBytes: 4_096 });
    for (let i = 0; i < 200; i++) trail.own('node.priority', { target: String(i), details: { text: 'x'.repeat(200) } });
    await trail.close();
    const names = readdirSync(root)
      .filter((name) => /^audit(_\d+)?\.json$/.test(name))
      .sort();
    expect(names).toHaveLength(3);
    for (const name of names) expect(statSync(path.join(root, name)).mode & 0o777).toBe(0o600);
    expect(names.flatMap((name) => linesOf(path.join(root, name))).at(-1)!['target']).toBe('199');
    expect(existsSync(path.join(root, 'audit-of-another.json'))).toBe(true);
  });

  test('that can not be written is told in log, metric and health, and its losses in the file once it can', async () => {
    writeFileSync(path.join(root, 'not-a-folder'), '');
    const { trail, log, metrics, clock } = setUp('not-a-folder/audit.json');
    trail.own('node.start');
    await expect.poll(() => trail.view, { timeout: 600_000 }).toEqual({ failing: true, entriesLost: 1 });
    for (let i = 0; i < 4; i++) trail.own('node.priority');
    expect(trail.view).toEqual({ failing: true, entriesLost: 5 });
    expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
      ['error', expect.stringContaining('audit cannot be written')],
    ]);
    expect(await metrics()).toEqual(
      expect.arrayContaining([
        'eventstore_audit_failing 1',
        'eventstore_audit_entries_total{sink="file",result="lost"} 5',
      ]),
    );
    rmSync(path.join(root, 'not-a-folder'));
    mkdirSync(path.join(root, 'not-a-folder'));
    await clock.advance(60_000);
    trail.own('node.stop');
    await trail.close();
    expect(trail.view).toEqual({ failing: false, entriesLost: 5 });
    expect(
      linesOf(path.join(root, 'not-a-folder', 'audit.json')).map(({ action, details }) => [action, details]),
    ).toEqual([
      ['audit.lost', { entries: 5 }],
      ['node.stop', undefined],
    ]);
    expect(log.lines.at(-1)).toMatchObject({ level: 'info', fields: { sink: 'file', entriesLost: 5 } });
  });
});

describe('the stream', () => {
  test('is for administrators, bounded, and begun once', async () => {
    const { trail, store, ids } = setUp(null);
    trail.openStream(store, ids);
    for (let i = 0; i < 600; i++) trail.own('user.delete', { target: `user-${i}` });
    await trail.closeStream();
    const metadata = store.log.filter(({ stream }) => stream === `$$${AUDIT_STREAM}`);
    expect(metadata.map(({ data }) => JSON.parse(Buffer.from(data).toString()))).toEqual([
      {
        $maxCount: 1_000_000,
        $maxAge: 7_776_000,
        $acl: { $r: '$admins', $w: '$admins', $d: '$admins', $mr: '$admins', $mw: '$admins' },
      },
    ]);
    const events = store.log.filter(({ stream }) => stream === AUDIT_STREAM);
    expect(events.map(({ data }) => JSON.parse(Buffer.from(data).toString()).target)).toEqual(
      Array.from({ length: 600 }, (_, i) => `user-${i}`),
    );
    expect(events[0]).toMatchObject({ type: '$audit.user.delete', isJson: true });
    // What an administrator has set stays.
    const next = setUp(null);
    next.trail.openStream(store, next.ids);
    next.trail.own('node.start');
    await next.trail.closeStream();
    expect(store.log.filter(({ stream }) => stream === `$$${AUDIT_STREAM}`)).toHaveLength(1);
  });

  test('loses what does not fit in its queue, and what the store refuses, and says how much', async () => {
    const { trail, store, ids, log } = setUp(null);
    let isFull = true;
    trail.openStream(
      {
        streamInfo: (stream) => store.streamInfo(stream),
        append: async (stream, expected, events) => {
          if (isFull) throw new SkuaError('disk_full', 'The disk is full.');
          return store.append(stream, expected, events);
        },
      },
      ids,
    );
    trail.own('node.start');
    await expect.poll(() => trail.view, { timeout: 600_000 }).toEqual({ failing: true, entriesLost: 1 });
    expect(log.lines[0]).toMatchObject({ level: 'error', fields: { stream: '$audit', error: { code: 'disk_full' } } });
    isFull = false;
    const big = { text: 'x'.repeat(1_000) };
    const count = Math.ceil(AUDIT_QUEUE_BYTES_MAX / 1_000) + 50;
    for (let i = 0; i < count; i++) trail.own('node.priority', { details: big });
    const { entriesLost } = trail.view;
    expect(entriesLost).toBeGreaterThan(50);
    await trail.closeStream();
    const written = store.log
      .filter(({ stream }) => stream === AUDIT_STREAM)
      .map(({ data }) => JSON.parse(Buffer.from(data).toString()));
    const told = written
      .filter(({ action }) => action === 'audit.lost')
      .reduce((sum: number, { details }) => sum + details.entries, 0);
    expect([told, written.filter(({ action }) => action === 'node.priority').length]).toEqual([
      entriesLost,
      count + 1 - entriesLost,
    ]);
    expect(trail.view.failing).toBe(false);
  });
});

test('a node keeps both, from its start to its end, and no secret in either', async () => {
  const log = new NodeLines();
  const env = { SERVER_DEFAULT_ADMIN_PASSWORD: 'the-admin-s3cret', SERVER_DEFAULT_OPS_PASSWORD: 'the-ops-s3cret' };
  const file = path.join(root, 'kept', 'audit.json');
  const words = [
    '--node-port',
    '0',
    '--disable-tls',
    '--mem-db',
    '--audit-log',
    file,
    '--audit-stream',
    '--log-file-interval',
    'Infinite',
    '--stream-existence-filter-size',
    '10000',
    '--password-format',
    'compatible',
  ];
  const node = await startNode({ config: load(words, { env }), log, env });
  let isStopped = false;
  onTestFinished(() => (isStopped ? undefined : node.stop()));
  const ask = (method: string, url: string, user: string, body?: unknown, headers: Record<string, string> = {}) =>
    fetch(node.url + url, {
      method,
      headers: {
        authorization: basic(
          user,
          user === 'ops' ? 'the-ops-s3cret' : user === 'admin' ? 'the-admin-s3cret' : 'no-s3cret',
        ),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  expect(
    (
      await ask(
        'POST',
        '/users',
        'admin',
        { loginName: 'sam', groups: ['pickers'], password: 'sams-s3cret' },
        { 'x-request-id': 'r-7' },
      )
    ).status,
  ).toBe(201);
  expect((await ask('GET', '/admin/login', 'nobody')).status).toBe(401);
  expect((await ask('POST', '/admin/scavenge', 'ops')).status).toBe(200);
  expect((await ask('DELETE', '/users/sam', 'ops')).status).toBe(403);
  await node.reload('SIGHUP');
  const health = (await (await fetch(`${node.url}/health/ready`)).json()) as Record<string, unknown>;
  expect(health['audit']).toEqual({ failing: false, entriesLost: 0 });
  const stream = await ask('GET', '/streams/$audit', 'admin', undefined, { accept: 'application/x-ndjson' });
  const inStream = (await stream.text())
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(JSON.parse(line).data) as Record<string, any>);
  expect((await ask('GET', '/streams/$audit', 'ops')).status).toBe(403);
  await node.stop();
  isStopped = true;
  const inFile = linesOf(file);
  const brief = (lines: Record<string, any>[]) =>
    lines.map(({ action, outcome, user, target }) => [
      action,
      outcome,
      user,
      action === 'scavenge.start' || action === 'node.start' ? '' : target,
    ]);
  const expected = [
    ['node.start', 'success', null, ''],
    ['login', 'success', 'admin', null],
    ['user.create', 'success', 'admin', 'sam'],
    ['login', 'refused', 'nobody', null],
    ['login', 'success', 'ops', null],
    ['scavenge.start', 'success', 'ops', ''],
    ['user.delete', 'refused', 'ops', 'sam'],
    ['node.reload', 'success', null, null],
  ];
  expect(brief(inFile)).toEqual([...expected, ['node.stop', 'success', null, null]]);
  expect(brief(inStream)).toEqual(expected);
  expect(inFile[2]).toMatchObject({
    address: '127.0.0.1',
    requestId: 'r-7',
    status: 201,
    details: { groups: ['pickers'] },
  });
  expect(readFileSync(file, 'utf8')).not.toContain('s3cret');
  expect(JSON.stringify(log.lines)).not.toContain('s3cret');
});
