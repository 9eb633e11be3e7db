import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { batch, event, Members, named, newId, silent, STREAMS } from './kit.ts';
import type { TestMember } from './kit.ts';

let members: Members;
let leader: TestMember;
let follower: TestMember;

beforeEach(async () => {
  members = new Members();
  leader = await members.open();
  follower = await members.open();
  await members.leads(leader, follower);
});

afterEach(() => members.close());

const idsOf = (count: number): string[] => Array.from({ length: count }, () => newId());

describe('appends of a batch call', () => {
  test('go together to the member that leads, and the call stays where it is when another one leads', async () => {
    const call = follower.grpc.open(
      `${STREAMS}/BatchAppend`,
      [batch('s', newId()), batch('s', newId(), { stream_position: 7 })],
      { isOpen: true },
    );
    const answers = await call.until(2);
    expect(
      answers.map((answer) => Object.keys(answer).filter((key) => key === 'success' || key === 'error')).toSorted(),
    ).toEqual([['error'], ['success']]);
    expect(answers.find(({ error }) => error !== undefined)).toMatchObject({
      error: { code: 'ALREADY_EXISTS', message: 'WrongExpectedVersion' },
    });
    expect(members.forwarded).toHaveLength(1);
    // What was acknowledged is read here at once.
    expect(await follower.types('s')).toHaveLength(1);
    await members.leads(follower, leader);
    call.push(batch('s', newId()));
    expect((await call.until(3))[2]).toMatchObject({ success: { current_revision: '1' } });
    expect(members.forwarded).toHaveLength(1);
    call.halfClose();
    expect(await call.ended).toMatchObject({ status: 0 });
  });

  test('fail by themselves where the leader refuses them', async () => {
    await follower.grpc.call(`${STREAMS}/Append`, [
      { options: { ...named('s'), any: {} } },
      { proposed_message: event(newId()) },
    ]);
    await leader.grpc.call(`${STREAMS}/Tombstone`, { options: { ...named('s'), any: {} } });
    const call = follower.grpc.open(`${STREAMS}/BatchAppend`, [batch('s', newId()), batch('t', newId())]);
    expect(await call.ended).toMatchObject({ status: 0 });
    expect(call.received.find(({ error }) => error !== undefined)).toMatchObject({
      error: { code: 'NOT_FOUND', message: 'StreamDeleted' },
    });
    expect(call.received.find(({ success }) => success !== undefined)).toMatchObject({
      success: { current_revision: '0' },
    });
  });

  test('do not overtake those that this member has begun to decide when it hears of a leader', async () => {
    follower.lead.knows(null);
    const held = members.hold();
    const [first, second] = idsOf(2);
    const call = follower.grpc.open(`${STREAMS}/BatchAppend`, [batch('s', first!)], { isOpen: true });
    await held.begun;
    follower.lead.knows(leader.lead.self);
    call.push(batch('s', second!));
    for (let i = 0; i < 10; i++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    expect(members.forwarded).toEqual([]);
    held.go();
    expect((await call.until(2)).map(({ success }) => success)).toMatchObject([
      { current_revision: '0' },
      { current_revision: '1' },
    ]);
    expect([members.forwarded.length, await follower.types('s')]).toEqual([1, [first, second]]);
    call.halfClose();
    await call.ended;
  });

  test('are in the log in their order, each expecting the one before, whoever leads and however long each way takes', async () => {
    const ids = idsOf(60);
    // The first ways are the slowest: single requests would overtake one another.
    let delay = 12;
    members.wire = async (deliver) => {
      for (let i = delay--; i > 0; i--)
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      return deliver();
    };
    const call = follower.grpc.open(`${STREAMS}/BatchAppend`, [], { isOpen: true });
    for (const [i, id] of ids.entries()) {
      if (i === 20) follower.lead.knows(null);
      if (i === 40) follower.lead.knows(leader.lead.self);
      call.push(batch('s', id, i === 0 ? { no_stream: {} } : { stream_position: i - 1 }));
      if (i % 7 === 0)
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
    }
    call.halfClose();
    expect(await call.ended).toMatchObject({ status: 0 });
    expect(call.received.filter(({ success }) => success === undefined)).toEqual([]);
    expect(await leader.types('s')).toEqual(ids);
    expect(members.forwarded.length).toBeLessThan(20);
  });

  test('that a leader has refused because it leads no more go to the next one, the others of the group do not', async () => {
    const third = await members.open();
    const ids = idsOf(3);
    const { store } = leader.store;
    const append = store.append.bind(store);
    let calls = 0;
    let moved: Promise<void> | null = null;
    store.append = async (...args: Parameters<typeof append>) => {
      if (++calls === 1) {
        const appending = append(...args);
        moved = appending.then(() => members.leads(third, leader, follower));
        return appending;
      }
      await moved;
      return append(...args);
    };
    const call = follower.grpc.open(
      `${STREAMS}/BatchAppend`,
      ids.map((id) => batch('s', id)),
    );
    expect(await call.ended).toMatchObject({ status: 0 });
    expect(call.received.filter(({ success }) => success === undefined)).toEqual([]);
    expect([await third.types('s'), members.forwarded.map(({ to }) => to)]).toEqual([ids, [0, 2]]);
  });

  test('are neither written nor refused where nobody knows: their clients are told that they took too long', async () => {
    members.wire = async (deliver) => {
      await deliver();
      throw silent('time');
    };
    const call = follower.grpc.open(`${STREAMS}/BatchAppend`, [batch('s', newId())], { isOpen: true });
    await members.cluster.clock.advance(20_000);
    expect((await call.until(1))[0]).toMatchObject({ error: { code: 'DEADLINE_EXCEEDED', message: 'Timeout' } });
    call.halfClose();
    expect(await call.ended).toMatchObject({ status: 0 });
  });

  test('end a call that is for the leader alone once another member leads', async () => {
    const call = leader.grpc.open(`${STREAMS}/BatchAppend`, [batch('s', newId())], {
      isOpen: true,
      metadata: { 'requires-leader': 'true' },
    });
    await call.until(1);
    await members.leads(follower, leader);
    call.push(batch('s', newId()));
    expect(await call.ended).toMatchObject({
      status: 5,
      message: 'Leader info available',
      trailers: { exception: 'not-leader', 'leader-endpoint-host': '127.0.0.1', 'leader-endpoint-port': '2123' },
    });
    expect([await leader.types('s'), members.forwarded]).toEqual([[expect.any(String)], []]);
  });

  test('are told to the audit once, by the member that has the call', async () => {
    const told: string[] = [];
    const [there, here] = [
      await members.open(() => ({
        audit: { record: ({ action, outcome }) => told.push(`there ${action} ${outcome}`) },
      })),
      await members.open(() => ({
        audit: { record: ({ action, outcome }) => told.push(`here ${action} ${outcome}`) },
      })),
    ];
    await members.leads(there, here);
    const metadata = {
      ...batch('$$s', newId()),
      proposed_messages: [
        {
          ...event(newId()),
          metadata: { type: '$metadata', 'content-type': 'application/json' },
          data: Buffer.from('{"$acl":{"$r":"x"}}').toString('base64'),
        },
      ],
    };
    expect((await here.grpc.call(`${STREAMS}/BatchAppend`, [metadata])).received).toMatchObject([{ success: {} }]);
    expect(told).toEqual(['here access-list.change success']);
  });

  test('that wait for their turn are not sent once nobody waits for them', async () => {
    let goOn = (): void => {};
    const may = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    members.wire = async (deliver) => {
      await may;
      return deliver();
    };
    const call = follower.grpc.open(`${STREAMS}/BatchAppend`, [batch('s', newId())], { isOpen: true });
    for (let i = 0; i < 20; i++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    call.push(batch('s', newId()), batch('s', newId()));
    for (let i = 0; i < 20; i++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    call.cancel();
    goOn();
    await call.ended;
    for (let i = 0; i < 50; i++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    expect([members.forwarded.length, (await leader.types('s')).length]).toEqual([1, 1]);
  });
});
