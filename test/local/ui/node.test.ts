import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startedNode } from '../spawn.ts';
import type { Started } from '../spawn.ts';

/** The page of a real node that runs from its sources. */

const OURS = { 'x-requested-with': 'skua', 'content-type': 'application/json' };

let folder: string;
let node: Started;
const words = () => ['--disable-tls', '--db', path.join(folder, 'db')];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-ui-node-'));
  node = await startedNode(words());
});
afterAll(async () => {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('it is built when somebody asks for it, and all that it names is there', async () => {
  const reply = await fetch(`${node.url}/ui`);
  const html = await reply.text();
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  // No code in the page itself: the policy lets none run.
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style| on\w+=| style=/);
  const names = [...html.matchAll(/(?:src|href)="(ui\/assets\/[^"]+)"/g)].map(([, name]) => `/${name!}`);
  expect(names.length).toBeGreaterThan(1);
  for (const name of names) {
    const asset = await fetch(node.url + name, { headers: { 'accept-encoding': 'br' } });
    expect([
      name,
      asset.status,
      asset.headers.get('cache-control'),
      asset.headers.get('content-encoding'),
      (await asset.arrayBuffer()).byteLength > 0,
    ]).toEqual([name, 200, 'public, max-age=31536000, immutable', 'br', true]);
  }
});

test('a session outlives the process, by a key that only its owner may read', async () => {
  const file = path.join(folder, 'db', 'session.key');
  // Who comes with what looks like a session has no file made.
  const now = Date.now();
  const forged = Buffer.from(JSON.stringify(['AAAAAAAAAAAA', 'id', 'admin', now, now + 3_600_000, 0, 0, 'x'])).toString(
    'base64url',
  );
  expect(
    await (
      await fetch(`${node.url}/ui/session`, { headers: { ...OURS, cookie: `skua-session=2.${forged}.AAAA` } })
    ).json(),
  ).toMatchObject({ user: null });
  expect(() => statSync(file)).toThrow('ENOENT');
  const reply = await fetch(`${node.url}/ui/session`, {
    method: 'POST',
    headers: OURS,
    body: '{"user":"admin","password":"changeit"}',
  });
  const headers = { cookie: reply.headers.get('set-cookie')!.split(';')[0]! };
  expect([reply.status, statSync(file).mode & 0o777]).toEqual([200, 0o600]);
  await node.stop();
  node = await startedNode(words());
  expect(await (await fetch(`${node.url}/ui/session`, { headers })).json()).toMatchObject({
    user: 'admin',
    isAdministrator: true,
  });
  expect((await fetch(`${node.url}/users`, { headers })).status).toBe(200);
});

test('with DisableAdminUi there is neither', async () => {
  const without = await startedNode(['--disable-tls', '--mem-db', '--disable-admin-ui']);
  for (const at of ['/ui', '/ui/', '/ui/session', '/'])
    expect((await fetch(without.url + at, { headers: { accept: 'text/html' } })).status).toBe(404);
  await without.stop();
});
