import { afterEach, describe, expect, test } from 'vitest';
import { DEADLINE_MS } from '../../../core/cluster/ask-leader/ask-leader.ts';
import { readWrites } from '../../../core/cluster/format/carried-writes.ts';
import { EVENTS, Members, newId, originOf, silent, unreachable } from './kit.ts';

let members: Members;

afterEach(() => members.close());

function two() {
  members = new Members();
  return members.pair();
}

const outcomes = ({ counts }: { readonly counts: Map<string, number> }) =>
  Object.fromEntries(
    [...counts]
      .filter(([key]) => key.startsWith('eventstore_forwarded_requests_total'))
      .map(([key, n]) => [key.split(' ')[1]!, n]),
  );

describe('a write at a follower', () => {
  test('is decided by the leader, and answered as by this member, which shows it at once', async () => {
    const { leader, follower } = await two();
    const id = newId();
    const reply = await follower.append('s', id);
    expect([reply.status, reply.reason, reply.headers.get('location')]).toEqual([
      201,
      'Created',
      `${originOf(1)}/streams/s/0`,
    ]);
    expect([...reply.headers.keys()].filter((name) => name.startsWith('skua-'))).toEqual([]);
    expect(follower.store.log.end).toBe(leader.store.log.end);
    expect((await follower.send('GET', '/streams/s/0', { accept: 'application/json' })).status).toBe(200);
    expect(await leader.types('s')).toEqual([id]);
    expect(members.forwarded).toHaveLength(1);
    expect(outcomes(follower)).toEqual({ answered: 1 });
    expect(follower.counts.get('eventstore_forwarded_request_duration_seconds')).toBe(1);
  });

  test('goes as a value, with its writer and the epoch in which it is sent', async () => {
    const { follower } = await two();
    const id = newId();
    await follower.send(
      'POST',
      '/streams/a%20b',
      { 'content-type': EVENTS, 'es-expectedversion': '-1' },
      `[ {"eventId":"${id}",  "eventType":"t","data":{"n":1.50}} ]`,
    );
    const { request } = members.forwarded[0]!;
    expect([request.method, request.target, request.headers]).toEqual([
      'POST',
      '/cluster/append',
      { 'content-type': 'application/octet-stream' },
    ]);
    const { epoch, writes } = readWrites(request.body);
    expect([epoch, writes]).toMatchObject([
      0,
      [
        {
          kind: 'append',
          by: { name: 'system', asks: 'list' },
          writes: [{ stream: 'a b', expectedVersion: -1, events: [{ id, type: 't', isJson: true }] }],
        },
      ],
    ]);
    // What only a member may say is not decided as if it were a client's.
    expect(
      (await follower.send('POST', '/streams/a', { 'content-type': EVENTS, 'skua-forwarded': 'forged' }, '[]')).status,
    ).toBe(401);
    expect(members.forwarded).toHaveLength(1);
  });

  test.each([
    [
      'a wrong expected version',
      'POST',
      '/streams/s',
      { 'content-type': EVENTS, 'es-expectedversion': '77' },
      400,
      'Wrong expected EventNumber',
    ],
    ['no media type', 'POST', '/streams/s', {}, 415, 'Invalid or missing Content-Type'],
    [
      'no id',
      'POST',
      '/streams/s',
      { 'content-type': 'application/json', 'es-eventtype': 't' },
      307,
      'Temporary Redirect',
    ],
    ['a stream that is not there', 'DELETE', '/streams/none', {}, 400, 'Wrong expected EventNumber'],
    [
      'a header of another form',
      'POST',
      '/streams/s',
      { 'content-type': EVENTS, 'es-requireleader': 'maybe' },
      400,
      'Bad Request',
    ],
  ] as const)('%s is told as the leader tells it', async (_, method, path, headers, status, reason) => {
    const { leader, follower } = await two();
    const body = method === 'POST' ? `[{"eventId":"${newId()}","eventType":"t"}]` : null;
    const [there, here] = [
      await leader.send(method, path, { ...headers }, body),
      await follower.send(method, path, { ...headers }, body),
    ];
    expect([here.status, here.reason]).toEqual([status, reason]);
    expect(here.text).toBe(there.text);
    const without = (reply: typeof here) =>
      Object.fromEntries(
        [...reply.headers].map(([name, value]) => [
          name,
          name === 'location' ? new URL(value).host === new URL(originOf(1)).host || reply === there : value,
        ]),
      );
    expect(without(here)).toEqual(without(there));
  });

  test('waits for what the leader has written, and not for ever', async () => {
    const { follower } = await two();
    members.isFed = false;
    let isAnswered = false;
    const first = follower.append('s', newId()).then((reply) => {
      isAnswered = true;
      return reply;
    });
    await members.cluster.clock.advance(4_900);
    expect(isAnswered).toBe(false);
    await follower.store.log.refresh();
    expect((await first).status).toBe(201);
    const second = follower.append('s', newId());
    await members.cluster.clock.advance(5_000);
    expect((await second).status).toBe(201);
    expect(await follower.types('s')).toHaveLength(2);
  });

  test('is what a page of another origin is refused here', async () => {
    const { follower } = await two();
    const reply = await follower.append('s', newId(), { 'sec-fetch-site': 'cross-site', origin: 'http://evil.test' });
    expect([reply.status, members.forwarded]).toEqual([403, []]);
  });
});

describe('where nobody leads', () => {
  test('each member decides by itself', async () => {
    const { leader, follower } = await two();
    follower.lead.knows(null);
    const id = newId();
    expect((await follower.append('s', id)).status).toBe(201);
    expect(members.forwarded).toEqual([]);
    expect(await leader.types('s')).toEqual([id]);
  });

  test('a leader that is gone is reported, and the request decided here', async () => {
    const { follower } = await two();
    members.wire = () => Promise.reject(unreachable());
    const reply = await follower.append('s', newId());
    expect([reply.status, reply.headers.get('location')]).toEqual([201, `${originOf(1)}/streams/s/0`]);
    expect(follower.lead.lostInstances).toHaveLength(1);
    expect((await follower.send('DELETE', '/streams/s')).status).toBe(204);
    expect(outcomes(follower)).toEqual({ unreachable: 1, here: 1 });
  });

  test('or sent to the next leader, once there is one', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    members.wire = async (deliver) => {
      if (members.forwarded.length === 0 && follower.lead.lostInstances.length === 0) {
        await members.leads(third, follower, leader);
        throw unreachable();
      }
      return deliver();
    };
    expect((await follower.append('s', newId())).status).toBe(201);
    expect(members.forwarded.map(({ to }) => to)).toEqual([2]);
  });
});

describe('a leader that was deposed', () => {
  test('refuses for certain, and the request goes to the next one', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    await members.leads(third, leader);
    // The follower has not heard of it, and is not fed.
    members.isFed = false;
    const reply = follower.append('s', newId());
    await members.cluster.clock.advance(100);
    expect(members.forwarded.map(({ to }) => to)).toEqual([0]);
    members.isFed = true;
    await follower.store.log.refresh();
    follower.lead.knows(third.lead.self);
    expect((await reply).status).toBe(201);
    expect(members.forwarded.map(({ to }) => to)).toEqual([0, 2]);
    expect(outcomes(follower)).toEqual({ 'not-leader': 1, answered: 1 });
  });

  test('is not asked any more once a newer epoch is here; who does not hear of its leader in a moment decides by itself', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    await members.leads(third, leader);
    await follower.store.log.refresh();
    const [first, second] = [follower.append('s', newId()), follower.append('s', newId())];
    await members.cluster.clock.advance(900);
    expect(members.forwarded).toEqual([]);
    follower.lead.knows(third.lead.self);
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([201, 201]);
    follower.lead.knows(leader.lead.self);
    const last = follower.append('s', newId());
    await members.cluster.clock.advance(1_000);
    expect((await last).status).toBe(201);
    expect(new Set(members.forwarded.map(({ to }) => to))).toEqual(new Set([2]));
  });

  test('is asked again while nothing else is known, and after the deadline the request is decided here: nobody has decided it', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    await members.leads(third, leader);
    members.isFed = false;
    const id = newId();
    const reply = follower.append('s', id);
    await members.cluster.clock.advance(DEADLINE_MS + 1_000);
    expect((await reply).status).toBe(201);
    expect(members.forwarded.length).toBeGreaterThan(10);
    expect(members.forwarded.length).toBeLessThan(100);
    expect(await leader.types('s')).toEqual([id]);
  });
});

describe('a leader that does not answer', () => {
  test('an append is decided anew, once, with the same ids, when a newer epoch is here', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    const id = newId();
    members.wire = async (deliver) => {
      const reply = await deliver();
      if (members.forwarded.length > 1) return reply;
      // It was written; the answer is lost.
      throw silent();
    };
    const reply = follower.append('s', id);
    await members.cluster.clock.advance(500);
    await members.leads(third, follower, leader);
    expect((await reply).status).toBe(201);
    expect(members.forwarded.map(({ to }) => to)).toEqual([0, 2]);
    expect(await leader.types('s')).toEqual([id]);
    expect(outcomes(follower)).toEqual({ silent: 1, answered: 1 });
  });

  test('or here, where nobody leads by then', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    const id = newId();
    members.wire = async (deliver) => {
      await deliver();
      throw silent();
    };
    const reply = follower.append('s', id);
    await members.cluster.clock.advance(500);
    await third.store.log.refresh();
    await third.store.log.lead(third.lead.self.instanceId, 0);
    await follower.store.log.refresh();
    expect((await reply).status).toBe(201);
    expect(members.forwarded).toHaveLength(1);
    expect(await leader.types('s')).toEqual([id]);
  });

  test('without a newer epoch by the deadline nobody knows', async () => {
    const { follower } = await two();
    members.wire = () => Promise.reject(silent());
    const reply = follower.append('s', newId());
    await members.cluster.clock.advance(DEADLINE_MS);
    const { status, headers, text } = await reply;
    expect([status, headers.get('retry-after'), JSON.parse(text).code]).toEqual([503, '1', 'commit_outcome_unknown']);
    expect(outcomes(follower)).toEqual({ silent: 1, unknown: 1 });
  });

  test('nor of what is no append', async () => {
    const { follower } = await two();
    await follower.append('s', newId());
    members.wire = () => Promise.reject(silent());
    const { status, text } = await follower.send('DELETE', '/streams/s');
    expect([status, JSON.parse(text).code]).toEqual([503, 'commit_outcome_unknown']);
  });

  test('and stands still is not waited for any longer once it has been succeeded', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    const id = newId();
    members.wire = (deliver, _, signal) =>
      members.forwarded.length === 0 && signal?.aborted === false
        ? new Promise((_resolve, reject) => {
            members.forwarded.push({ to: 0, request: null! });
            signal.addEventListener('abort', () => reject(silent('time')));
          })
        : deliver();
    const reply = follower.append('s', id);
    await members.cluster.clock.advance(1_000);
    await members.leads(third, follower, leader);
    await members.cluster.clock.advance(300);
    expect((await reply).status).toBe(201);
    // Only a connection that broke says that the leader is gone.
    expect(follower.lead.lostInstances).toEqual([]);
    expect(await leader.types('s')).toEqual([id]);
  });
});
