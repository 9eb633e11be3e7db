import { describe, expect, it } from 'vitest';
import { ANY } from '../../../../core/streams/api.ts';
import type { EventStoreInternals } from '../../../../core/streams/streams.ts';
import type { Json } from '../../../grpc/codec.ts';
import { securedGrpc } from '../../../grpc/harness.ts';
import type { ScriptedCall } from '../../../grpc/harness.ts';
import { event, events } from '../../../streams/setup.ts';
import { AS } from '../../secured.ts';
import { gist, READ, readOf, realGrpc, streamRead } from './read-kit.ts';

const UNHANDLED = 'Exception was thrown by handler.';
const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
const toStream = (name: string, from: Json, more: Json = {}): Json =>
  streamRead(name, from, { subscription: {}, ...more });
const toAll = (from: Json, filter?: Json): Json =>
  readOf({ all: from, subscription: {}, ...(filter && { no_filter: null, filter }) });
const at = (position: number, prepare = position): Json => ({
  position: { commit_position: String(position), prepare_position: String(prepare) },
});

async function said(call: ScriptedCall, count: number): Promise<string[]> {
  return (await call.until(count)).map(gist);
}

/** Nothing more has come some turns later. */
async function nothingMore(call: ScriptedCall, count: number): Promise<void> {
  for (let i = 0; i < 10; i++) await turn();
  expect([call.received.length, call.ending]).toEqual([count, null]);
}

async function left(call: ScriptedCall, store: EventStoreInternals): Promise<void> {
  call.cancel();
  expect(await call.ended).toMatchObject({ status: 1 });
  for (let i = 0; i < 5; i++) await turn();
  expect(store.figures().subscriptions).toBe(0);
}

describe('a subscription to a stream', () => {
  it('confirms, gives the history, says so, and goes on', async () => {
    const h = realGrpc({ misses: 0.1 });
    await h.store.append('s', ANY, events(5));
    const call = h.open(READ, [toStream('s', { revision: '2' })]);
    expect(await said(call, 4)).toEqual(['confirmed', '3@s', '4@s', 'caught up']);
    expect((call.received[0] as any).confirmation.subscription_id).toMatch(
      /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
    );
    // Confirmed together with the first page.
    expect(call.blocks.length).toBe(1);
    await h.store.append('s', ANY, events(2));
    expect((await said(call, 6)).slice(4)).toEqual(['5@s', '6@s']);
    await h.store.deleteStream('s', ANY, 'soft');
    await h.store.append('s', ANY, events(1));
    expect((await said(call, 7)).slice(6)).toEqual(['7@s']);
    await left(call, h.store);
  });

  it('from the end, or from behind it, gives what comes', async () => {
    const h = realGrpc();
    await h.store.append('s', ANY, events(2));
    const calls = [
      h.open(READ, [toStream('s', { end: {} })]),
      h.open(READ, [toStream('s', { revision: '18446744073709551615' })]),
      h.open(READ, [toStream('s', { revision: '3' })]),
    ];
    for (const call of calls) expect(await said(call, 2)).toEqual(['confirmed', 'caught up']);
    await h.store.append('s', ANY, events(3));
    expect((await said(calls[0]!, 5)).slice(2)).toEqual(['2@s', '3@s', '4@s']);
    expect((await said(calls[1]!, 5)).slice(2)).toEqual(['2@s', '3@s', '4@s']);
    expect((await said(calls[2]!, 3)).slice(2)).toEqual(['4@s']);
    for (const request of [toStream('s', {}), toStream('s', { revision: '9223372036854775808' })])
      expect(await h.call(READ, request)).toMatchObject({ status: 2, message: UNHANDLED, received: [] });
  });

  it('waits for a stream that is not there, without a word of having caught up unless it began at the end', async () => {
    const h = realGrpc();
    await h.store.append('gone', ANY, events(1));
    await h.store.deleteStream('gone', ANY, 'soft');
    const calls = ['none', 'gone'].map((name) => h.open(READ, [toStream(name, { start: {} })]));
    const end = h.open(READ, [toStream('none', { end: {} })]);
    for (const call of calls) expect(await said(call, 1)).toEqual(['confirmed']);
    await nothingMore(calls[0]!, 1);
    expect(await said(end, 2)).toEqual(['confirmed', 'caught up']);
    for (const name of ['none', 'gone']) await h.store.append(name, ANY, events(1));
    expect(await said(calls[0]!, 2)).toEqual(['confirmed', '0@none']);
    expect(await said(calls[1]!, 2)).toEqual(['confirmed', '1@gone']);
    expect((await said(end, 3)).at(-1)).toBe('0@none');
    await nothingMore(calls[0]!, 2);
  });

  it('ends with the tombstone, behind its event', async () => {
    const h = realGrpc();
    await h.store.append('s', ANY, events(1));
    const call = h.open(READ, [toStream('s', { start: {} })]);
    await said(call, 3);
    await h.store.deleteStream('s', ANY, 'hard');
    const deleted = {
      status: 9,
      message: "Event stream 's' is deleted.",
      trailers: { exception: 'stream-deleted', 'stream-name': 's' },
    };
    expect(await call.ended).toMatchObject(deleted);
    expect(call.received.map(gist)).toEqual(['confirmed', '0@s', 'caught up', '9223372036854775807@s']);
    expect((call.received[3] as any).event.event).toMatchObject({
      metadata: { type: '$streamDeleted', 'content-type': 'application/octet-stream' },
    });
    // Afterwards it ends at once; only from the end there is something to wait for, as the recorded node has it.
    expect(await h.call(READ, toStream('s', { start: {} }))).toMatchObject({ ...deleted, received: [] });
    const end = h.open(READ, [toStream('s', { end: {} })]);
    expect(await said(end, 2)).toEqual(['confirmed', 'caught up']);
    await nothingMore(end, 2);
    await left(end, h.store);
  });

  it('gives a slow reader one block at a time, and says again when it has caught up', async () => {
    const h = realGrpc({ options: { subscriptionPageEvents: 10 } });
    const call = h.open(READ, [toStream('s', { end: {} })]);
    await said(call, 2);
    call.stall();
    for (let i = 0; i < 50; i++) await h.store.append('s', ANY, events(1));
    await turn();
    expect([call.blocks.length, call.overruns]).toEqual([2, 0]);
    call.resume();
    const all = await said(call, 53);
    expect(all.filter((one) => one !== 'caught up')).toEqual([
      'confirmed',
      ...Array.from({ length: 50 }, (_, i) => `${i}@s`),
    ]);
    expect([all.filter((one) => one === 'caught up').length, all.at(-1)]).toEqual([2, 'caught up']);
  });

  it('ends when access is withdrawn, with the next event', async () => {
    const h = securedGrpc();
    await h.store.append('s', ANY, events(1));
    const call = h.open(READ, [toStream('s', { start: {} })], { metadata: AS.plain });
    await said(call, 3);
    await h.store.append('$$s', ANY, [event('{"$acl":{"$r":"ada"}}', { type: '$metadata', isJson: true })]);
    await h.store.append('s', ANY, events(1));
    expect(await call.ended).toMatchObject({ status: 7, message: 'Access Denied' });
    expect(call.received.length).toBe(3);
    expect(await h.call(READ, toAll({ start: {} }), AS.plain)).toMatchObject({ status: 7, received: [] });
  });

  it('ends as the node says when that stops', async () => {
    const h = realGrpc();
    const call = h.open(READ, [toStream('s', { end: {} })]);
    await said(call, 2);
    call.cancel({ status: 14, message: 'Server Is Not Ready', trailers: {} });
    expect(await call.ended).toMatchObject({ status: 14, message: 'Server Is Not Ready' });
  });

  it('resolves links', async () => {
    const h = realGrpc();
    await h.store.append('s', ANY, events(1));
    await h.store.append('l', ANY, [event('0@s', { type: '$>' }), event('5@s', { type: '$>' })]);
    const call = h.open(READ, [toStream('l', { start: {} }, { resolve_links: true })]);
    expect(await said(call, 4)).toEqual(['confirmed', '0@s by 0@l', 'gone by 1@l', 'caught up']);
  });
});

describe('a subscription to $all', () => {
  it('begins behind a position', async () => {
    const h = realGrpc();
    await h.store.append('s', ANY, events(3));
    const { events: all } = await h.store.readAll({ direction: 'forward', from: 'start', count: 9 });
    const { position } = all[1]!;
    expect(await said(h.open(READ, [toAll({ start: {} })]), 5)).toEqual([
      'confirmed',
      '0@s',
      '1@s',
      '2@s',
      'caught up',
    ]);
    for (const prepare of [position, 0])
      expect(await said(h.open(READ, [toAll(at(position, prepare))]), 3)).toEqual(['confirmed', '2@s', 'caught up']);
    const later = [{ end: {} }, at(99_999_999)].map((from) => h.open(READ, [toAll(from)]));
    for (const call of later) expect(await said(call, 2)).toEqual(['confirmed', 'caught up']);
    await h.store.append('t', ANY, events(1));
    for (const call of later) expect(await said(call, 3)).toEqual(['confirmed', 'caught up', '0@t']);
    for (const from of [at(position + 1), at(position, position + 1), {}])
      expect(await h.call(READ, toAll(from))).toMatchObject({ status: 2, message: UNHANDLED, received: [] });
  });

  it('by an index gives its events, those of before and those that come', async () => {
    const h = realGrpc();
    const filter = { stream_identifier: { prefix: ['$idx-ce-w'] }, max: 2, checkpointIntervalMultiplier: 2 };
    await h.store.append('w-1', ANY, events(1));
    await h.store.append('o-1', ANY, events(1));
    const call = h.open(READ, [toAll({ start: {} }, filter)]);
    expect(await said(call, 3)).toEqual(['confirmed', '0@w-1', 'caught up']);
    for (let i = 0; i < 4; i++) await h.store.append('o-1', ANY, events(1));
    const { events: all } = await h.store.readAll({ direction: 'forward', from: 'start', count: 9 });
    expect((await said(call, 4)).slice(3)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^checkpoint (${all
            .slice(-4)
            .map((e) => e.position)
            .join('|')})/`,
        ),
      ),
    ]);
    await h.store.append('w-2', ANY, events(1));
    expect((await said(call, 5)).slice(4)).toEqual(['0@w-2']);
  });

  it('to a view of links gives what comes behind a number, and what is written', async () => {
    const h = realGrpc({ misses: 0.1 });
    for (const name of ['s-1', 't-1', 's-2']) await h.store.append(name, ANY, events(1));
    const { events: all } = await h.store.readAll({ direction: 'forward', from: 'start', count: 9 });
    const call = h.open(READ, [toStream('$ce-s', { revision: String(all[0]!.position) }, { resolve_links: true })]);
    expect(await said(call, 3)).toEqual(['confirmed', `0@s-2 by ${all[2]!.position}@$ce-s`, 'caught up']);
    await h.store.append('t-1', ANY, events(1));
    await h.store.append('s-2', ANY, events(1));
    expect((await said(call, 4)).slice(3)).toEqual([expect.stringMatching(/^1@s-2 by \d+@\$ce-s$/)]);
    await left(call, h.store);
  });

  it('with a filter has checkpoints among its events', async () => {
    const h = realGrpc();
    const write = async (...names: string[]): Promise<void> => {
      for (const name of names) await h.store.append(name, ANY, events(1));
    };
    const none = { stream_identifier: { prefix: ['w'] }, max: 2, checkpointIntervalMultiplier: 2 };
    await write('o', 'o', 'o', 'o', 'w', 'o', 'o', 'w', 'w');
    const { events: all } = await h.store.readAll({ direction: 'forward', from: 'start', count: 9 });
    const positions = all.map(({ position }) => position);
    const call = h.open(READ, [toAll({ start: {} }, none)]);
    expect(await said(call, 7)).toEqual([
      'confirmed',
      `checkpoint ${positions[2]}/0`,
      '0@w',
      '1@w',
      `checkpoint ${positions[7]}/${positions[7]}`,
      '2@w',
      'caught up',
    ]);
    await write('o', 'w', 'o', 'w', 'o');
    const live = (await h.store.readAll({ direction: 'forward', from: 'start', count: 20 })).events
      .slice(9)
      .map(({ position }) => position);
    expect((await said(call, 10)).slice(7)).toEqual(['3@w', `checkpoint ${live[2]}/${live[2]}`, '4@w']);
    // From a checkpoint on nothing is missed and nothing comes again.
    expect(
      (await said(h.open(READ, [toAll(at(positions[2]!, 0), none)]), 9)).filter((one) => one.endsWith('w')),
    ).toEqual(['0@w', '1@w', '2@w', '3@w', '4@w']);
    await left(call, {
      ...h.store,
      figures: () => ({ ...h.store.figures(), subscriptions: h.store.figures().subscriptions - 1 }),
    });
    for (const bad of [
      { ...none, checkpointIntervalMultiplier: 0 },
      { ...none, stream_identifier: { regex: '(' } },
    ])
      expect(await h.call(READ, toAll({ start: {} }, bad))).toMatchObject({
        status: 2,
        message: UNHANDLED,
        received: [],
      });
    for (const bad of [
      { ...none, max: null },
      { ...none, max: 0 },
    ])
      expect(await h.call(READ, toAll({ start: {} }, bad))).toMatchObject({ status: 3, received: [] });
  });
});
