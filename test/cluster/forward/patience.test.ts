import { afterEach, describe, expect, test } from 'vitest';
import { UNFOLLOWED_MS, UNHEARD_MS } from '../../../core/cluster/ask-leader/ask-leader.ts';
import type { RequestParts } from '../../../handlers/http/cluster-feature.ts';
import { batch, EVENTS, Members, newId, originOf, PATIENCE_MS, SECRET, silent, STREAMS } from './kit.ts';
import type { TestMember } from './kit.ts';

/**
 * A write that has waited too long, or whose client is gone, takes no place in the log any more: at the member that has
 * it, and at the one that it is passed on to.
 */

let members: Members;

afterEach(() => members.close());

function two() {
  members = new Members();
  return members.pair();
}

/** The machines stood still: nobody's monotonic clock has moved. */
function stand(ms: number): void {
  const { clock } = members.cluster;
  clock.setNow(clock.nowMs() + ms);
}

/** Its requests stand still where they are, for as long as the test says. */
function holds(): { readonly arrived: Promise<void>; goOn(): void } {
  const arrived = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  members.wire = async (deliver) => {
    arrived.resolve();
    await goOn.promise;
    return deliver();
  };
  return { arrived: arrived.promise, goOn: () => goOn.resolve() };
}

const codeOf = ({ status, text }: { readonly status: number; readonly text: string }) => [
  status,
  JSON.parse(text).code,
];
const EXPIRED = [503, 'write_expired'];

describe('a member that stood still', () => {
  test('sends nothing on that its client has long sent elsewhere, nor decides it when nobody leads by then', async () => {
    for (const leads of [true, false]) {
      const { leader, follower } = await two();
      const id = newId();
      follower.lead.knows({ ...leader.lead.self, instanceId: newId() });
      const reply = follower.append('s', id);
      await members.cluster.clock.settle();
      stand(PATIENCE_MS + 1);
      follower.lead.knows(leads ? leader.lead.self : null);
      expect(codeOf(await reply)).toEqual(EXPIRED);
      expect(members.forwarded).toEqual([]);
      expect(await leader.store.store.streamInfo('s')).toMatchObject({ lastEventNumber: -1 });
      if (leads) await members.close();
    }
  });

  test('does not decide a request anew whose first outcome it does not know', async () => {
    const { leader, follower } = await two();
    const third = await members.open();
    members.wire = async (deliver) => {
      await deliver();
      throw silent();
    };
    const id = newId();
    const reply = follower.append('s', id);
    await members.cluster.clock.settle();
    stand(PATIENCE_MS + 1);
    await members.leads(third, follower, leader);
    expect(codeOf(await reply)).toEqual([503, 'commit_outcome_unknown']);
    expect(members.forwarded).toHaveLength(1);
  });

  test('nor appends of a batch call', async () => {
    const { leader, follower } = await two();
    follower.lead.knows({ ...leader.lead.self, instanceId: newId() });
    const call = follower.grpc.open(`${STREAMS}/BatchAppend`, [batch('s', newId())], { isOpen: true });
    await members.cluster.clock.settle();
    stand(PATIENCE_MS + 1);
    follower.lead.knows(null);
    expect((await call.until(1))[0]).toMatchObject({ error: { message: 'Server Is Busy' } });
    call.push(batch('s', newId()));
    expect((await call.until(2))[1]).toMatchObject({ success: { current_revision: '0' } });
    call.halfClose();
    await call.ended;
  });
});

describe('a leader that stood still', () => {
  test.each([
    ['on the way', false],
    ['at the leader', true],
  ])('decides nothing that has been too long %s', async (_, isThere) => {
    const { leader, follower } = await two();
    follower.lead.knows({ ...leader.lead.self, aheadMs: 0 });
    const { store } = leader.store;
    const goOn = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const append = store.append.bind(store);
    const way = isThere ? null : holds();
    store.append = async (...args) => {
      arrived.resolve();
      if (isThere) await goOn.promise;
      return append(...args);
    };
    const reply = follower.append('s', newId());
    await (way?.arrived ?? arrived.promise);
    stand(PATIENCE_MS + 1_000);
    way?.goOn();
    goOn.resolve();
    expect(codeOf(await reply)).toEqual(EXPIRED);
    expect(await leader.store.store.streamInfo('s')).toMatchObject({ lastEventNumber: -1 });
  });

  test('nor what its own clients had asked for', async () => {
    const { leader } = await two();
    const { store } = leader.store;
    const goOn = Promise.withResolvers<void>();
    const append = store.append.bind(store);
    store.append = async (...args) => {
      await goOn.promise;
      return append(...args);
    };
    const reply = leader.append('s', newId());
    await members.cluster.clock.settle();
    stand(PATIENCE_MS + 1);
    goOn.resolve();
    expect(codeOf(await reply)).toEqual(EXPIRED);
  });

  test('takes no request that was sent before, however late it is read', async () => {
    const { leader, follower } = await two();
    follower.lead.knows({ ...leader.lead.self, aheadMs: 0 });
    let sent: RequestParts | null = null;
    members.wire = (deliver, request) => {
      sent = request;
      return deliver();
    };
    await follower.append('s', newId());
    const { headers, body } = sent!;
    const again = () =>
      leader.app(
        new Request(`${originOf(0)}/cluster/append`, {
          method: 'POST',
          headers: { ...headers, authorization: `Cluster ${SECRET}` },
          body: body as Uint8Array<ArrayBuffer>,
        }),
      );
    expect(await (await again()).json()).toMatchObject({ outcomes: [{ result: { isRepeat: true } }] });
    await members.cluster.clock.advance(PATIENCE_MS + 200);
    expect(await (await again()).json()).toMatchObject({ outcomes: [{ error: { code: 'write_expired' } }] });
  });
});

describe('a client that has hung up', () => {
  async function gone(member: TestMember, until: () => Promise<void>): Promise<Response> {
    const leaving = new AbortController();
    const body = JSON.stringify([{ eventId: newId(), eventType: 't' }]);
    const reply = member.app(
      new Request(`${originOf(member.index)}/streams/s`, {
        method: 'POST',
        headers: { 'content-type': EVENTS },
        body,
        signal: leaving.signal,
      }),
    );
    await members.cluster.clock.settle();
    leaving.abort();
    await until();
    return reply;
  }

  test('has its request sent nowhere, and decided by nobody', async () => {
    for (const leads of [true, false]) {
      const { leader, follower } = await two();
      follower.lead.knows({ ...leader.lead.self, instanceId: newId() });
      const reply = await gone(follower, async () => {
        follower.lead.knows(leads ? leader.lead.self : null);
      });
      expect(reply.status).toBe(503);
      expect(members.forwarded).toEqual([]);
      expect(await follower.store.store.streamInfo('s')).toMatchObject({ lastEventNumber: -1 });
      if (leads) await members.close();
    }
  });
});

describe('a leader and a follower that stand still', () => {
  test('a request that was sent ends as unknown within the election timeout and some seconds, and is decided by nobody', async () => {
    const { leader, follower } = await two();
    members.wire = (_, request, signal) =>
      new Promise((_resolve, reject) => {
        members.forwarded.push({ to: 0, request });
        signal!.addEventListener('abort', () => reject(silent('given-up')));
      });
    const replies = [follower.append('s', newId()), follower.send('DELETE', '/streams/t')];
    await members.cluster.clock.advance(1_000);
    // Nobody of a majority hears it any more.
    follower.lead.knows(null);
    await members.cluster.clock.advance(UNHEARD_MS + UNFOLLOWED_MS);
    expect((await Promise.all(replies)).map(codeOf)).toEqual([
      [503, 'commit_outcome_unknown'],
      [503, 'commit_outcome_unknown'],
    ]);
    expect(members.forwarded).toHaveLength(2);
    // The next one is decided here at once.
    members.wire = (deliver) => deliver();
    expect((await follower.append('s', newId())).status).toBe(201);
    expect(await leader.types('s')).toHaveLength(1);
  });

  test('one that was not sent is decided here then', async () => {
    const { follower } = await two();
    members.wire = (_deliver, _request, signal) =>
      new Promise((_resolve, reject) => {
        // It waits for its turn among those that the leader does not answer.
        signal!.addEventListener('abort', () =>
          reject(Object.assign(silent('time'), { code: 'member_unreachable', data: { reason: 'given-up' } })),
        );
      });
    const reply = follower.append('s', newId());
    await members.cluster.clock.advance(1_000);
    follower.lead.knows(null);
    await members.cluster.clock.advance(UNHEARD_MS);
    expect((await reply).status).toBe(201);
  });

  test('a leader that is heard again in time is waited for', async () => {
    const { leader, follower } = await two();
    const way = holds();
    const reply = follower.append('s', newId());
    await way.arrived;
    follower.lead.knows(null);
    await members.cluster.clock.advance(UNHEARD_MS - 1);
    follower.lead.knows(leader.lead.self);
    await members.cluster.clock.advance(2_000);
    way.goOn();
    expect((await reply).status).toBe(201);
    expect(members.forwarded).toHaveLength(1);
  });
});
