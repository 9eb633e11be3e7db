import * as path from 'node:path';
import { describe, expect, test } from 'vitest';
import { skua, startedNode } from '../spawn.ts';
import { ask, fill, type Node, numbersIn, onBucket, setMaxCount, streamUrl, until } from './kit.ts';
import { IS_LONG_RUN } from '../../support/run-size.ts';

/** Nodes whose data lie in a bucket, as processes of their own. */

const on = onBucket();
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

const lastScavenge = (node: Node) => ask(node, 'GET', '/admin/scavenge/last');

describe('a node on a bucket', () => {
  test('keeps what it was given over a restart', async () => {
    const first = await on.start();
    await fill(first, 'kept', 1, 60);
    await fill(first, 'gone', 2, 5);
    expect((await fetch(streamUrl(first, 'gone'), { method: 'DELETE' })).status).toBe(204);
    expect(await numbersIn(first, 'kept')).toEqual(upTo(60));
    expect((await first.stop()).code).toBe(0);
    const second = await on.start();
    expect(await numbersIn(second, 'kept')).toEqual(upTo(60));
    expect((await fetch(streamUrl(second, 'gone'))).status).toBe(404);
    await fill(second, 'gone', 3, 1);
    expect(await numbersIn(second, 'gone')).toEqual([0]);
  });

  test('sees at once what another one on the same bucket has acknowledged', async () => {
    const [a, b] = (await Promise.all([on.start(), on.start()])) as [Node, Node];
    for (let round = 0; round < 5; round++) {
      await fill(a, 'shared', 1, 1, 2 * round);
      expect(await numbersIn(b, 'shared')).toEqual(upTo(2 * round + 1));
      await fill(b, 'shared', 1, 1, 2 * round + 1);
      expect(await numbersIn(a, 'shared')).toEqual(upTo(2 * round + 2));
    }
    const expected = { 'content-type': 'application/json', 'es-eventtype': 'T', 'es-expectedversion': '9' };
    const replies = await Promise.all(
      [a, b].map((node, i) =>
        fetch(streamUrl(node, 'shared'), {
          method: 'POST',
          headers: { ...expected, 'es-eventid': `00000000-0000-4000-8777-00000000000${i}` },
          body: '{"number":10}',
        }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 400]);
  });

  if (IS_LONG_RUN)
    test('foresees what a scavenge will do, and does it', async () => {
      const node = await on.start();
      await setMaxCount(node, 'short', 3);
      await fill(node, 'short', 1, 150);
      await fill(node, 'long', 2, 20);
      expect(await ask(node, 'GET', '/admin/scavenge/explain/short')).toMatchObject({
        status: 200,
        body: { lastEventNumber: 149, removed: [{ from: 0, to: 146, count: 147, rule: '$maxCount' }] },
      });
      expect((await ask(node, 'GET', '/admin/scavenge/explain/none')).status).toBe(404);
      const {
        body: { scavengeId: dryId },
      } = await ask(node, 'POST', '/admin/scavenge?dryRun=true');
      const report = await until(
        () => ask(node, 'GET', `/admin/scavenge/dry-run/${dryId}`),
        ({ status }) => status !== 202,
      );
      expect(report).toMatchObject({ status: 200, body: { totals: { discardable: 147 } } });
      expect((await lastScavenge(node)).body.scavengeId).not.toBe(dryId);
      const {
        status,
        body: { scavengeId },
      } = await ask(node, 'POST', '/admin/scavenge');
      expect(status).toBe(200);
      const last = await until(
        () => lastScavenge(node),
        ({ body }) => body.scavengeId === scavengeId && body.scavengeResult !== 'InProgress',
      );
      expect(last.body.scavengeResult).toBe('Success');
      expect(await numbersIn(node, 'short')).toEqual([147, 148, 149]);
      expect(await numbersIn(node, 'long')).toEqual(upTo(20));
      expect((await ask(node, 'GET', '/admin/scavenge/explain/short')).body.removed).toEqual([]);
    });

  if (IS_LONG_RUN)
    test('may stop in the middle of a scavenge, which the next one ends', async () => {
      const first = await on.start();
      await setMaxCount(first, 'short', 3);
      await fill(first, 'short', 1, 300);
      const {
        body: { scavengeId },
      } = await ask(first, 'POST', '/admin/scavenge');
      expect((await first.stop()).code).toBe(0);
      const second = await on.start();
      const last = await until(
        () => lastScavenge(second),
        ({ body }) => body.scavengeId === scavengeId && body.scavengeResult !== 'InProgress',
      );
      expect(last.body.scavengeResult).toBe('Success');
      expect(await numbersIn(second, 'short')).toEqual([297, 298, 299]);
    });

  test('has the other interfaces of a node', async () => {
    const node = await on.start();
    await fill(node, 'some', 1, 3);
    expect(await ask(node, 'GET', '/auto-scavenge/enabled')).toMatchObject({ status: 200, body: { enabled: true } });
    const status = await ask(node, 'GET', '/auto-scavenge/status');
    expect(status).toMatchObject({ status: 200, body: { schedule: null } });
    const metrics = await (await fetch(`${node.url}/metrics`)).text();
    expect(metrics).toMatch(/^eventstore_checkpoints\{.*\} [1-9]\d*/m);
    expect((await ask(node, 'GET', '/stats')).status).toBe(200);
    const script = btoa("function route({ body }) { return { stream: 'in-' + body.kind, schema: 'T' }; }");
    const made = await fetch(`${node.url}/connectors/parcels`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        settings: { instanceTypeName: 'webhook-source', routingScript: script, streams: ['in-*'], waitForWrite: true },
      }),
    });
    expect([made.status, await made.text()]).toEqual([200, '{}']);
    expect((await fetch(`${node.url}/connectors/parcels/start`, { method: 'POST' })).status).toBe(200);
    const call = await fetch(`${node.url}/webhook/parcels`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"kind":"parcel","number":7}',
    });
    expect(call.status).toBe(201);
    expect(await numbersIn(node, 'in-parcel')).toEqual([7]);
  });
});

test.each([
  ['a directory for its index too', ['--index', 'somewhere'], /--storage .*leave out --index/],
  [
    'backups among its data',
    ['--backup-repository', 'HERE/backups'],
    /--backup-repository and --storage are inside each other/,
  ],
  [
    'to ship its log',
    ['--backup-repository', 'BESIDE', '--backup-ship-every-sec', '5'],
    /--backup-ship-every-sec: the log is already in object storage/,
  ],
])('a node on a bucket that is given %s does not start', async (_, words, reason) => {
  const given = words.map((word) => word.replace('HERE', on.storage).replace('BESIDE', on.beside));
  const { code, err } = await skua(['start', '--insecure', '--node-port', '0', '--storage', on.storage, ...given])
    .ended;
  expect(code).toBe(2);
  expect(err.replaceAll('\n', ' ')).toMatch(reason);
});

if (IS_LONG_RUN)
  test('a node on a bucket backs itself up beside a scavenge, and what it made restores', async () => {
    const node = await on.start('--backup-repository', on.beside);
    await setMaxCount(node, 'short', 3);
    await fill(node, 'short', 1, 150);
    await fill(node, 'long', 2, 20);
    await ask(node, 'POST', '/admin/scavenge');
    const {
      status,
      body: { backupId },
    } = await ask(node, 'POST', '/admin/backup');
    expect(status).toBe(202);
    const { body } = await until(
      () => ask(node, 'GET', '/admin/backups'),
      (found) => (found.body as { backups?: unknown[] }).backups?.length === 1,
    );
    expect(body).toMatchObject({ backups: [{ id: backupId }] });
    await node.stop();
    const db = path.join(on.folder, 'restored');
    expect(await skua(['restore', '--from', on.beside, '--db', db]).ended).toMatchObject({ code: 0 });
    expect(await skua(['verify', db]).ended).toMatchObject({ code: 0 });
    const restored = await startedNode(['--db', db]);
    expect(await numbersIn(restored, 'long')).toEqual(upTo(20));
    expect((await numbersIn(restored, 'short')).slice(-3)).toEqual([147, 148, 149]);
    await restored.stop();
  });

if (IS_LONG_RUN)
  test('a copy of files from a node on a bucket is a data directory', async () => {
    const node = await on.start();
    await fill(node, 'long', 2, 100);
    const to = path.join(on.folder, 'copied');
    expect(await skua(['backup', 'copy', '--full', '--to', to, '--node', node.url]).ended).toMatchObject({ code: 0 });
    await node.stop();
    const db = path.join(on.folder, 'restored');
    expect(await skua(['restore', '--from', to, '--db', db]).ended).toMatchObject({ code: 0 });
    expect(await skua(['verify', db]).ended).toMatchObject({ code: 0 });
  });
