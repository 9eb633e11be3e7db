import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ran, startedNode } from '../spawn.ts';

type Node = Awaited<ReturnType<typeof startedNode>>;
const EVENTS = 'application/vnd.eventstore.events+json';
const AUTHORIZATION = `Basic ${Buffer.from('admin:changeit').toString('base64')}`;

let folder: string;
let members: Node[] = [];
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-members-'));
  members = await Promise.all([1, 2, 3].map((i) => startedNode(words(i))));
  await Promise.all(
    members.map(({ url }) =>
      until(
        async () =>
          (await ask(url, '/gossip')).members.filter(({ state }: { state: string }) => state === 'Leader').length === 1,
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
    '--stream-existence-filter-size',
    '10000',
  ];
}

function send(
  url: string,
  method: string,
  target: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + target, {
    method,
    redirect: 'manual',
    headers: { authorization: AUTHORIZATION, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

function append(
  url: string,
  stream: string,
  data: unknown,
  headers: Record<string, string> = {},
  eventId: string = randomUUID(),
): Promise<Response> {
  return send(url, 'POST', `/streams/${stream}`, [{ eventId, eventType: 'noted', data }], {
    'content-type': EVENTS,
    ...headers,
  });
}

async function ask(url: string, target: string): Promise<any> {
  return (await send(url, 'GET', target, undefined, { accept: 'application/json' })).json();
}

/**
 * Between two questions, in milliseconds: whoever asks without a pause takes the processor from who is asked, a
 * scavenge above all.
 */
const PAUSE_MS = 10;

/** Asks until it is so; a test that waits in vain is ended by the runner. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo().catch(() => false)))
    await new Promise((resolve) => {
      setTimeout(resolve, PAUSE_MS);
    });
}

async function byState(): Promise<{ readonly leader: string; readonly followers: readonly string[] }> {
  const states = await Promise.all(
    members.map(async ({ url }) => ({ url, state: (await ask(url, '/info')).state as string })),
  );
  return {
    leader: states.find(({ state }) => state === 'leader')!.url,
    followers: states.filter(({ state }) => state === 'follower').map(({ url }) => url),
  };
}

describe('three members over a directory', () => {
  test('each takes writes, shows its own at once, and refuses what another has made impossible', async () => {
    const { leader, followers } = await byState();
    for (const [i, url] of [leader, ...followers].entries()) {
      const answer = await append(url, 'orders', { i }, { 'es-expectedversion': String(i - 1) });
      expect([answer.status, answer.headers.get('location')]).toEqual([201, `${url}/streams/orders/${i}`]);
      expect(await ask(url, `/streams/orders/${i}`)).toEqual({ i });
      expect((await append(url, 'orders', {}, { 'es-expectedversion': '-1' })).status).toBe(400);
    }
  });

  test('the same event sent to two of them is there once', async () => {
    const { leader, followers } = await byState();
    const id = randomUUID();
    for (const url of [followers[0]!, leader, followers[1]!])
      expect((await append(url, 'once', { id }, {}, id)).status).toBe(201);
    expect((await append(leader, 'once', {})).headers.get('location')).toBe(`${leader}/streams/once/1`);
  });

  test('who requires the leader is sent there', async () => {
    const { leader, followers } = await byState();
    const answer = await send(followers[0]!, 'GET', '/streams/orders/0', undefined, { 'es-requireleader': 'True' });
    expect([answer.status, answer.headers.get('location')]).toEqual([307, `${leader}/streams/orders/0`]);
    expect(
      (
        await send(leader, 'GET', '/streams/orders/0', undefined, {
          'es-requireleader': 'True',
          accept: 'application/json',
        })
      ).status,
    ).toBe(200);
  });

  test('users, passwords and deletes count everywhere at once', async () => {
    const {
      leader,
      followers: [one, two],
    } = await byState();
    const user = { loginName: 'kim', fullName: 'Kim', groups: ['$ops'], password: 'secret1!' };
    expect((await send(one!, 'POST', '/users', user, { 'content-type': 'application/json' })).status).toBe(201);
    const asKim = { authorization: `Basic ${Buffer.from('kim:secret1!').toString('base64')}` };
    for (const url of [one!, leader])
      expect((await send(url, 'GET', '/users/$current', undefined, asKim)).status).toBe(200);
    expect((await append(two!, 'gone', {})).status).toBe(201);
    expect((await send(one!, 'DELETE', '/streams/gone', undefined, { 'es-harddelete': 'True' })).status).toBe(204);
    expect((await send(one!, 'GET', '/streams/gone')).status).toBe(410);
  });

  test('a scavenge is that of the member, and another one goes to the same point', async () => {
    const {
      followers: [one, two],
    } = await byState();
    for (const [url, query] of [
      [one!, ''],
      [two!, '?syncOnly=true'],
    ] as const) {
      expect((await send(url, 'POST', `/admin/scavenge${query}`)).status).toBe(200);
      await until(async () => (await ask(url, '/admin/scavenge/last')).scavengeResult === 'Success');
    }
    const points = await ask(one!, '/streams/%24scavengePoints');
    expect(points.entries).toHaveLength(1);
  });

  test('resigning gives the lead to another without a failed request', async () => {
    const { leader, followers } = await byState();
    let isOver = false;
    const writing = Promise.all(
      [leader, ...followers].map(async (url, i) => {
        const statuses = new Set<number>();
        while (!isOver) statuses.add((await append(url, `while-${i}`, {})).status);
        return [...statuses];
      }),
    );
    // Where nobody could take the lead within seconds it is kept, and given up again.
    await until(async () => {
      expect((await send(leader, 'POST', '/admin/node/resign')).status).toBe(200);
      return (await ask(leader, '/info')).state === 'follower';
    });
    isOver = true;
    expect(await writing).toEqual([[201], [201], [201]]);
    await until(async () => (await byState()).leader !== leader);
  });

  test('one that comes back has what it missed, and each copy is a sound directory', async () => {
    const { followers } = await byState();
    const index = members.findIndex(({ url }) => url === followers[0]);
    await members[index]!.stop();
    expect((await append(followers[1]!, 'missed', { by: 'one' })).status).toBe(201);
    members[index] = await startedNode(words(index + 1));
    expect(await ask(members[index]!.url, '/streams/missed/0')).toEqual({ by: 'one' });
    await Promise.all(members.map((member) => member.stop()));
    for (const i of [1, 2, 3]) {
      expect(existsSync(path.join(folder, `node${i}`, 'log-id'))).toBe(true);
      expect((await ran(['verify', path.join(folder, `node${i}`)])).code).toBe(0);
    }
    const alone = await ran(['start', '--db', path.join(folder, 'node1'), '--insecure', '--node-port', '0']);
    expect([alone.code, alone.err]).toEqual([expect.any(Number), expect.stringContaining('copy_attached')]);
  });
});
