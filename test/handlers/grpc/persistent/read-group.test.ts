import { describe, expect, test } from 'vitest';
import { TOMBSTONE } from '../../../../core/log/format/records.ts';
import type { StoredEvent } from '../../../../core/streams/api.ts';
import { encodeText } from '../../../../core/base/text.ts';
import type { Json } from '../../../grpc/codec.ts';
import { AS } from '../../secured.ts';
import { AT, DENIED, kit, streamNamed, UNHANDLED } from './kit.ts';

const OF_G = { stream_identifier: streamNamed('ps-1'), group_name: 'g' };

function eventAt(number: number, more: Partial<StoredEvent> = {}): StoredEvent {
  return {
    stream: 'ps-1',
    number,
    type: 'tested',
    id: `00000000-0000-4000-8000-0000000090${String(number).padStart(2, '0')}`,
    isJson: true,
    isRedacted: false,
    data: encodeText('{"a":1}'),
    metadata: new Uint8Array(0),
    position: 25_073_855 + 107 * number,
    preparePosition: 25_073_855 + 107 * number,
    createdMs: 1_795_252_367_827,
    createdTicks: 86 + number,
    link: null,
    linkTargetMissing: false,
    ...more,
  };
}

/** A link of the stream `links` to this event. */
function linkTo(event: StoredEvent, number = 0): StoredEvent {
  return eventAt(number, {
    stream: 'links',
    type: '$>',
    id: `48dbc2ee-1111-4222-8333-4444555566${String(number).padStart(2, '0')}`,
    isJson: false,
    data: encodeText(`${event.number}@${event.stream}`),
    position: 900 + number,
    preparePosition: 890 + number,
  });
}

async function connected(options: Json = OF_G, who: Record<string, string> = AS.ops) {
  const h = kit();
  await h.group('ps-1', 'g');
  const call = h.open(options, who);
  return {
    ...h,
    reader: call,
    answers: () => h.subscriptions.answers,
    give: (...events: StoredEvent[]) => h.subscriptions.give('ps-1', 'g', events),
  };
}

const READ = `${AT}/Read`;
const numbersOf = (messages: readonly Json[]) =>
  messages.slice(1).map(({ event }) => Number(event.event.stream_revision ?? 0));

describe('a consumer', () => {
  test('is confirmed, and gets events in the form of the recordings', async () => {
    const { reader, give } = await connected();
    give(eventAt(0), eventAt(1, { isJson: false, metadata: encodeText('{"m":2}') }));
    expect(await reader.until(3)).toEqual([
      { subscription_confirmation: { subscription_id: 'ps-1::g' } },
      {
        event: {
          event: {
            id: { string: '00000000-0000-4000-8000-000000009000' },
            stream_identifier: streamNamed('ps-1'),
            prepare_position: '25073855',
            commit_position: '25073855',
            metadata: { type: 'tested', created: '17952523678270086', 'content-type': 'application/json' },
            data: 'eyJhIjoxfQ==',
          },
          commit_position: '25073855',
          retry_count: 0,
        },
      },
      {
        event: {
          event: {
            id: { string: '00000000-0000-4000-8000-000000009001' },
            stream_identifier: streamNamed('ps-1'),
            stream_revision: '1',
            prepare_position: '25073962',
            commit_position: '25073962',
            metadata: { type: 'tested', created: '17952523678270087', 'content-type': 'application/octet-stream' },
            custom_metadata: 'eyJtIjoyfQ==',
            data: 'eyJhIjoxfQ==',
          },
          commit_position: '25073962',
          retry_count: 0,
        },
      },
    ]);
    reader.cancel();
  });

  test('gets what was redacted while it was on its way without its content, also behind a link', async () => {
    const { reader, give, store } = await connected();
    const [own, target] = [eventAt(0), eventAt(1)];
    for (const { preparePosition: position, id } of [own, target]) store.redactions.add({ position, id, keys: [] }, 9);
    give(own, { ...target, link: linkTo(target) }, eventAt(2));
    const sent = (await reader.until(4)).slice(1).map(({ event }) => event);
    expect(sent.map(({ event, link }) => [event.data, link?.data])).toEqual([
      [undefined, undefined],
      [undefined, expect.any(String)],
      ['eyJhIjoxfQ==', undefined],
    ]);
    // A resolved event has the positions of its link.
    expect(sent[1].commit_position).toBe('900');
    reader.cancel();
  });

  test('gets ids in the structured form where it asks for that, or for none', async () => {
    for (const uuid_option of [{ structured: {} }, {}]) {
      const { reader, give } = await connected({ ...OF_G, uuid_option });
      give(eventAt(0));
      expect((await reader.until(2))[1]!['event'].event.id).toEqual({
        structured: { most_significant_bits: '16384', least_significant_bits: '-9223372036854738944' },
      });
      reader.cancel();
    }
  });

  test('gets what a link leads to, with the positions of the link; a link alone where that leads nowhere; and how often it was sent', async () => {
    const { reader, subscriptions } = await connected(OF_G, AS.admin);
    const target = eventAt(3);
    const link = linkTo(target);
    subscriptions.give(
      'ps-1',
      'g',
      [
        { ...target, link },
        { ...linkTo(target, 1), linkTargetMissing: true },
      ],
      2,
    );
    const [, { event: resolved }, { event: alone }] = (await reader.until(3)) as [Json, Json, Json];
    expect([
      resolved.event.prepare_position,
      resolved.event.commit_position,
      resolved.event.stream_revision,
      resolved.commit_position,
      resolved.retry_count,
    ]).toEqual(['890', '900', '3', '900', 2]);
    expect(resolved.link).toMatchObject({
      id: { string: link.id },
      stream_identifier: streamNamed('links'),
      metadata: { type: '$>' },
    });
    expect(alone).toMatchObject({ link: { stream_revision: '1' }, commit_position: '901' });
    expect(alone).not.toHaveProperty('event');
    reader.cancel();
  });

  test('gets the event that ends a stream', async () => {
    const { reader, give } = await connected();
    give(eventAt(0, { number: TOMBSTONE, type: '$streamDeleted' }));
    expect((await reader.until(2))[1]!['event'].event.stream_revision).toBe('9223372036854775807');
    reader.cancel();
  });

  test('has at most its buffer in hand, and gets more for what it answers', async () => {
    const { reader, give, answers } = await connected();
    give(...Array.from({ length: 5 }, (_, i) => eventAt(i)));
    await reader.until(4);
    expect(numbersOf(reader.received)).toEqual([0, 1, 2]);
    reader.push({ ack: { ids: [{ string: eventAt(0).id }, { string: eventAt(1).id.replaceAll('-', '') }] } });
    expect(numbersOf(await reader.until(6))).toEqual([0, 1, 2, 3, 4]);
    reader.push({
      nack: {
        ids: [{ structured: { most_significant_bits: '16384', least_significant_bits: '-9223372036854738942' } }],
        action: 'Park',
        reason: 'bad',
      },
    });
    for (const action of ['Unknown', 'Retry', 'Skip', 'Stop'])
      reader.push({ nack: { ids: [{ string: 'nothing' }], action } });
    reader.push({ options: OF_G });
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    reader.cancel();
    await reader.ended;
    expect(answers()).toEqual([
      ['ack', [eventAt(0).id, eventAt(1).id]],
      ['nack', [eventAt(2).id], 'Park', 'bad'],
      ...['Unknown', 'Retry', 'Skip', 'Stop'].map((action) => ['nack', [''], action, '']),
    ]);
  });

  test('goes on after its half-close', async () => {
    const { reader, give } = await connected();
    await reader.until(1);
    reader.halfClose();
    give(eventAt(0));
    await reader.until(2);
    expect(reader.ending).toBeNull();
    reader.cancel();
    await reader.ended;
  });

  test('is known by its user, its name and where it calls from', async () => {
    const { reader, subscriptions } = await connected(OF_G, { ...AS.ops, 'connection-name': 'x'.repeat(300) });
    await reader.until(1);
    expect(subscriptions.calls.at(-1)).toMatchObject([
      'connect',
      'ps-1',
      'g',
      { bufferSize: 3, username: 'olga', connectionName: 'x'.repeat(256), from: '' },
    ]);
    reader.cancel();
  });

  test('that takes nothing holds one block', async () => {
    const { reader, give, subscriptions } = await connected({ ...OF_G, buffer_size: 100 });
    await reader.until(1);
    reader.stall();
    give(...Array.from({ length: 40 }, (_, i) => eventAt(i, { data: new Uint8Array(20_000) })));
    await reader.until(2);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(reader.blocks).toHaveLength(2);
    expect(reader.blocks[1]!.length).toBeLessThan(100_000);
    reader.resume();
    await reader.until(41);
    expect(reader.overruns).toBe(0);
    reader.cancel();
    await reader.ended;
    expect((await subscriptions.info('ps-1', 'g')).connections).toEqual([]);
  });
});

describe('a call ends', () => {
  test.each([
    ['deleted', 'Delete'],
    ['changed', 'Update'],
    ['begun anew', 'RestartSubsystem'],
  ])('when its group is %s', async (_, method) => {
    const h = await connected();
    await h.reader.until(1);
    if (method === 'RestartSubsystem') await h.call(`${AT}/RestartSubsystem`, {}, AS.ops);
    else
      await h.ask(
        method,
        method === 'Delete'
          ? OF_G
          : { stream: { stream_identifier: streamNamed('ps-1'), start: {} }, group_name: 'g', settings: {} },
      );
    expect(await h.reader.ended).toEqual({
      status: 1,
      message: 'Subscription group g on stream ps-1 was dropped.',
      trailers: { exception: 'persistent-subscription-dropped', 'stream-name': 'ps-1', 'group-name': 'g' },
    });
  });

  test('with what is no message, and its consumer with it', async () => {
    const { reader, subscriptions } = await connected();
    await reader.until(1);
    reader.pushBytes(Uint8Array.of(0xff));
    expect(await reader.ended).toMatchObject({ status: 2 });
    expect((await subscriptions.info('ps-1', 'g')).connections).toEqual([]);
  });

  test('when the client leaves, and its consumer with it', async () => {
    const { reader, subscriptions } = await connected();
    await reader.until(1);
    expect((await subscriptions.info('ps-1', 'g')).connections).toHaveLength(1);
    reader.cancel();
    await reader.ended;
    expect((await subscriptions.info('ps-1', 'g')).connections).toEqual([]);
  });

  test('when the right to read is taken away', async () => {
    const h = await connected(OF_G, AS.plain);
    await h.reader.until(1);
    await h.send(
      'POST',
      '/streams/ps-1/metadata',
      { ...AS.admin, 'content-type': 'application/json', 'es-eventid': h.id(), 'es-eventtype': '$metadata' },
      '{"$acl":{"$r":"ada"}}',
    );
    h.give(eventAt(0));
    expect(await h.reader.ended).toMatchObject({ status: 7, trailers: { exception: 'access-denied' } });
    expect(h.reader.received).toHaveLength(1);
  });
});

describe('a call does not begin', () => {
  const refused = async (options: Json, who: Record<string, string> = AS.ops) => {
    const { reader } = await connected(options, who);
    const ending = await reader.ended;
    return { ...ending, received: reader.received };
  };

  test('of a group that is not there, or full', async () => {
    expect(await refused({ ...OF_G, group_name: 'nope' })).toMatchObject({
      status: 5,
      trailers: { exception: 'persistent-subscription-does-not-exist' },
    });
    const h = await connected();
    await h.group('ps-1', 'one', { max_subscriber_count: 1 });
    const first = h.open({ ...OF_G, group_name: 'one' });
    await first.until(1);
    expect(await h.open({ ...OF_G, group_name: 'one' }).ended).toEqual({
      status: 9,
      message: 'Maximum subscriptions reached for subscription group one on stream ps-1.',
      trailers: { exception: 'maximum-subscribers-reached', 'stream-name': 'ps-1', 'group-name': 'one' },
    });
    first.cancel();
    h.reader.cancel();
  });

  test('without what it needs', async () => {
    for (const options of [{ ...OF_G, uuid_option: null }, { group_name: 'g' }])
      expect(await refused(options)).toMatchObject(UNHANDLED);
    const { call } = kit();
    expect(await call(READ, { ack: { ids: [] } }, AS.ops)).toEqual(UNHANDLED);
    expect(await call(READ, [], AS.ops)).toEqual(UNHANDLED);
  });

  test('for who has no user, or may not read the stream', async () => {
    expect(await refused(OF_G, AS.anonymous)).toEqual(DENIED);
    expect(await refused({ all: {}, group_name: 'g' }, AS.plain)).toEqual(DENIED);
    // Whoever has none is told before the call says for which group.
    const silent = kit().openCall(READ, [], { isOpen: true });
    expect(await silent.ended).toMatchObject({ status: 7 });
  });
});

test('a link to what the caller may not read stays a link, and does not tell whether there is anything', async () => {
  const h = await connected(OF_G, AS.plain);
  await h.send(
    'POST',
    '/streams/secret/metadata',
    { ...AS.admin, 'content-type': 'application/json', 'es-eventid': h.id(), 'es-eventtype': '$metadata' },
    '{"$acl":{"$r":"ada"}}',
  );
  const target = eventAt(3, { stream: 'secret' });
  const missing = { ...linkTo(target, 1), linkTargetMissing: true };
  h.give({ ...target, link: linkTo(target) }, missing);
  const [, first, second] = (await h.reader.until(3)) as [Json, Json, Json];
  for (const { event } of [first, second]) {
    expect(event.link.stream_identifier).toEqual(streamNamed('links'));
    expect(event).not.toHaveProperty('event');
  }
  // Others of the group may be allowed to.
  expect(missing.linkTargetMissing).toBe(true);
  h.reader.cancel();
});
