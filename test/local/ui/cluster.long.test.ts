import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startedProcess } from '../spawn.ts';
import type { Started } from '../spawn.ts';

/** Sessions of the page at real members: three with a vote, and a copy that only reads. */

let folder: string;
let members: Started[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-ui-'));
  members = await Promise.all([1, 2, 3, 4].map((i) => startedProcess(words(i))));
  await Promise.all(
    members.map(({ url }) =>
      until(
        async () =>
          ((await (await fetch(`${url}/gossip`)).json()) as { members: { state: string }[] }).members.filter(
            ({ state }) => state === 'Leader',
          ).length === 1,
      ),
    ),
  );
});
afterAll(async () => {
  await Promise.all(members.map((member) => member.stop()));
  rmSync(folder, { recursive: true, force: true });
});

function words(i: number): string[] {
  return [
    '--storage',
    path.join(folder, 'log'),
    '--db',
    path.join(folder, `node${i}`),
    '--cluster-size',
    '3',
    '--cluster-secret',
    'between-us',
    '--disable-tls',
    '--chunk-size',
    '1MiB',
    '--gossip-interval-ms',
    '200',
    ...(i === 4 ? ['--read-only-replica', 'true'] : []),
  ];
}

/** Asks until it is so; each question is answered by the node, so nothing waits by the clock. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 100_000; tries++) {
    if (await isSo().catch(() => false)) return;
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  throw new Error('It did not become so.');
}

/**
 * While no member leads, as after a stand-still of the machine, what only a leader decides is refused, and asked again.
 */
async function settled(send: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const reply = await send();
    if (reply.status !== 503) return reply;
    await reply.body?.cancel();
  }
}

const OURS = { 'x-requested-with': 'skua', 'content-type': 'application/json' };

async function logIn(url: string): Promise<{ readonly cookie: string }> {
  const reply = await settled(() =>
    fetch(`${url}/ui/session`, { method: 'POST', headers: OURS, body: '{"user":"admin","password":"changeit"}' }),
  );
  expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('"user":"admin"')]);
  return { cookie: reply.headers.get('set-cookie')!.split(';')[0]! };
}

async function userAt(url: string, headers: { readonly cookie: string }): Promise<string | null> {
  return ((await (await fetch(`${url}/ui/session`, { headers })).json()) as { user: string | null }).user;
}

const urls = (): string[] => members.map(({ url }) => url);

test('a session that is begun anywhere counts everywhere, for reads and for what the leader decides, until it is ended anywhere', async () => {
  for (const [i, url] of urls().entries()) {
    const session = await logIn(url);
    for (const other of urls()) await until(async () => (await userAt(other, session)) === 'admin');
    const noted = { 'es-eventtype': 'noted', 'es-eventid': crypto.randomUUID() };
    const written = await settled(() =>
      fetch(`${url}/streams/from-${i}`, { method: 'POST', headers: { ...OURS, ...session, ...noted }, body: '{}' }),
    );
    expect([
      written.status,
      (await fetch(`${url}/streams/from-${i}`, { headers: { ...session, accept: 'application/json' } })).status,
    ]).toEqual([201, 200]);
    // Ended by another member than began it.
    const ending = urls()[(i + 1) % members.length]!;
    expect(
      (await settled(() => fetch(`${ending}/ui/session`, { method: 'DELETE', headers: { ...OURS, ...session } })))
        .status,
    ).toBe(204);
    expect(await userAt(ending, session)).toBeNull();
    for (const other of urls()) await until(async () => (await userAt(other, session)) === null);
  }
});

test('logins at all members at once count at all of them', async () => {
  const sessions = await Promise.all(urls().map(logIn));
  for (const session of sessions)
    for (const url of urls()) await until(async () => (await userAt(url, session)) === 'admin');
});

test('a member that was started again knows the sessions of before', async () => {
  const session = await logIn(members[1]!.url);
  await members[1]!.stop();
  members[1] = await startedProcess(words(2));
  await until(async () => (await userAt(members[1]!.url, session)) === 'admin');
  expect(() => readFileSync(path.join(folder, 'node2', 'session.key'))).toThrow('ENOENT');
});
