import { afterEach, describe, expect, test } from 'vitest';
import { LEADER_WAIT_MS } from '../../../core/cluster/ask-leader/ask-leader.ts';
import { Members, newId, originOf } from './kit.ts';

let members: Members;

afterEach(() => members.close());

async function two() {
  members = new Members();
  const both = await members.pair();
  await both.leader.append('s', newId());
  return both;
}

const REQUIRE = { 'es-requireleader': 'True' };

describe('who requires the leader', () => {
  test.each([
    '/streams/s',
    '/streams/s/0/forward/1?embed=body&x=%2F',
    '/streams/$all',
    '/streams/%24all/head/backward/2',
    '/streams/s/metadata',
    '/dcb/read?query=%7B%7D',
  ])('is sent there from %s, path and query as they came', async (path) => {
    const { follower } = await two();
    for (const name of ['ES-RequireLeader', 'ES-RequireMaster', 'Kurrent-RequireLeader']) {
      const reply = await follower.send('GET', path, { [name]: 'true' });
      expect([reply.status, reply.reason, reply.text, reply.headers.get('location')]).toEqual([
        307,
        'Temporary Redirect',
        '',
        originOf(0) + path,
      ]);
    }
    expect((await follower.send('GET', '/streams/s', { 'es-requireleader': 'False' })).status).not.toBe(307);
    expect(members.forwarded).toEqual([]);
  });

  test('is answered by the leader from what it has proved at most a second ago', async () => {
    const { leader } = await two();
    const { objects, clock } = members.cluster;
    let gets = 0;
    const get = objects.get.bind(objects);
    objects.get = (...parts: Parameters<typeof get>) => {
      gets++;
      return get(...parts);
    };
    await clock.advance(2_000);
    const read = async (headers: Record<string, string>) => {
      const before = gets;
      expect((await leader.send('GET', '/streams/s/0', { accept: 'application/json', ...headers })).status).toBe(200);
      return gets - before;
    };
    expect(await read({})).toBe(0);
    expect(await read(REQUIRE)).toBe(1);
    expect(await read(REQUIRE)).toBe(0);
    await clock.advance(1_001);
    expect(await read(REQUIRE)).toBe(1);
  });

  test('sees there what another member has written by itself', async () => {
    const { leader, follower } = await two();
    follower.lead.knows(null);
    await members.cluster.clock.advance(2_000);
    await follower.append('s', newId());
    expect((await leader.send('GET', '/streams/s/1', { accept: 'application/json' })).status).toBe(404);
    expect((await leader.send('GET', '/streams/s/1', { accept: 'application/json', ...REQUIRE })).status).toBe(200);
  });

  test('sees all that was in the log a second before, by whichever clock says more, and asks for no more than that', async () => {
    const { leader, follower } = await two();
    const { clock } = members.cluster;
    follower.lead.knows(null);
    const seen = async (number: number) =>
      (await leader.send('GET', `/streams/s/${number}`, { accept: 'application/json', ...REQUIRE })).status;
    await clock.advance(2_000);
    expect(await seen(0)).toBe(200);
    await clock.advance(300);
    await follower.append('s', newId());
    await clock.advance(700);
    // It was proved a second ago that there was nothing more, 700 ms before this.
    expect(await seen(1)).toBe(404);
    await clock.advance(1);
    expect(await seen(1)).toBe(200);
    await follower.append('s', newId());
    // The machine was suspended: its monotonic clock stood.
    clock.setNow(clock.nowMs() + 1_001);
    expect(await seen(2)).toBe(200);
    await follower.append('s', newId());
    await clock.advance(1_001);
    clock.setNow(clock.nowMs() - 3_600_000);
    expect(await seen(3)).toBe(200);
  });

  test('waits a moment for a leader, and then is told that there is none', async () => {
    const { leader, follower } = await two();
    follower.lead.knows(null);
    const first = follower.send('GET', '/streams/s', REQUIRE);
    await members.cluster.clock.advance(LEADER_WAIT_MS - 100);
    follower.lead.knows(leader.lead.self);
    expect((await first).status).toBe(307);
    follower.lead.knows(null);
    const second = follower.append('s', newId(), REQUIRE);
    await members.cluster.clock.advance(LEADER_WAIT_MS);
    const { status, headers, text } = await second;
    expect([status, headers.get('retry-after'), JSON.parse(text).code]).toEqual([503, '5', 'no_leader']);
  });

  test('finds nothing where there is nothing, here as there', async () => {
    const { follower } = await two();
    expect((await follower.send('GET', '/streams/s/0/sideways/2', REQUIRE)).status).toBe(404);
    expect((await follower.send('PUT', '/streams/s', REQUIRE)).status).toBe(405);
  });
});
