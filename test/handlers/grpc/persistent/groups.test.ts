import { describe, expect, test } from 'vitest';
import { grpcHarness } from '../../../grpc/harness.ts';
import { AS } from '../../secured.ts';
import { AT, DENIED, DONE, kit, SETTINGS, streamNamed, UNHANDLED } from './kit.ts';

const STREAM = { stream_identifier: streamNamed('ps-1') };
const KEPT = {
  resolveLinks: false,
  extraStatistics: false,
  messageTimeoutMs: 1500,
  checkpointAfterMs: 500,
  maxRetryCount: 2,
  minCheckpointCount: 1,
  maxCheckpointCount: 5,
  maxSubscriberCount: 0,
  liveBufferSize: 50,
  readBatchSize: 10,
  historyBufferSize: 40,
  strategy: 'RoundRobin',
};

describe('a group is made', () => {
  const LAST = '18446744073709551615';

  test.each([
    ['from the start', { stream: { ...STREAM, start: {} } }, 'ps-1', 'start'],
    ['from the end', { stream: { ...STREAM, end: {} } }, 'ps-1', 'end'],
    ['from a number', { stream: { ...STREAM, revision: '3' } }, 'ps-1', 3],
    ['from the number that means the end', { stream: { ...STREAM, revision: LAST } }, 'ps-1', 'end'],
    ['as clients of long ago ask for it', { ...STREAM, settings: { ...SETTINGS, revision: '2' } }, 'ps-1', 2],
    ['of the whole log', { all: { start: {} } }, '$all', 'start'],
    ['of what is written from now on', { all: { end: {}, no_filter: {} } }, '$all', 'end'],
    [
      'of the log from a position',
      { all: { position: { commit_position: '900', prepare_position: '800' } } },
      '$all',
      { commit: 900, prepare: 800 },
    ],
    [
      'of the log from the position that means the end',
      { all: { position: { commit_position: LAST, prepare_position: LAST } } },
      '$all',
      'end',
    ],
  ])('%s', async (_, options, stream, from) => {
    const h = kit();
    expect(await h.create({ group_name: 'g', settings: SETTINGS, ...options })).toEqual(DONE);
    expect(h.subscriptions.calls).toEqual([
      ['create', stream, 'g', { settings: KEPT, from, filter: undefined }, 'olga'],
    ]);
    expect(h.entries).toMatchObject([
      { action: 'subscription.create', outcome: 'success', target: `${stream}::g`, user: 'olga' },
    ]);
  });

  test.each([
    [
      { stream_identifier: { prefix: ['a', 'b'] }, max: 32 },
      { on: 'stream', prefixes: ['a', 'b'] },
    ],
    [
      { event_type: { regex: '^x', prefix: ['a'] }, count: {} },
      { on: 'type', expression: '^x' },
    ],
    [
      { event_type: {}, count: {} },
      { on: 'type', prefixes: [] },
    ],
  ])('with the filter %j', async (filter, kept) => {
    const h = kit();
    await h.create({ all: { start: {}, filter }, group_name: 'g', settings: SETTINGS });
    expect(h.subscriptions.calls[0]![3]).toEqual({ settings: KEPT, from: 'start', filter: kept });
  });

  test.each([
    [{ max: 32 }, 'filter'],
    [{ event_type: { regex: 'x' } }, 'window'],
  ])('not with the filter %j', async (filter, missing) => {
    expect(await kit().create({ all: { start: {}, filter }, group_name: 'g', settings: SETTINGS })).toMatchObject({
      status: 3,
      message: `'None' is not a valid ${missing}`,
    });
  });

  test('with times in ticks, with none, and with a strategy by its number', async () => {
    const h = kit();
    const made = async (settings: object) => {
      await h.create({ stream: { ...STREAM, start: {} }, group_name: String(h.subscriptions.calls.length), settings });
      return (h.subscriptions.calls.at(-1)![3] as { settings: object }).settings;
    };
    expect(
      await made({
        message_timeout_ticks: '15000000',
        checkpoint_after_ticks: '10000000',
        named_consumer_strategy: 'Pinned',
      }),
    ).toMatchObject({ messageTimeoutMs: 1500, checkpointAfterMs: 1000, strategy: 'Pinned' });
    expect(await made({})).toMatchObject({
      messageTimeoutMs: 0,
      checkpointAfterMs: 2_147_483_647,
      strategy: 'DispatchToSingle',
    });
    expect(
      await made({
        consumer_strategy: 'PinnedByCorrelation',
        named_consumer_strategy: 'Pinned',
        resolve_links: true,
        extra_statistics: true,
        max_subscriber_count: 4,
      }),
    ).toMatchObject({
      strategy: 'PinnedByCorrelation',
      resolveLinks: true,
      extraStatistics: true,
      maxSubscriberCount: 4,
    });
  });

  test('not where something is missing, or means nothing', async () => {
    const h = kit();
    expect(await h.create(undefined as never)).toMatchObject(UNHANDLED);
    for (const options of [
      { stream: { ...STREAM, start: {} } },
      { settings: SETTINGS },
      { stream: { ...STREAM }, settings: SETTINGS },
      { stream: { start: {} }, settings: SETTINGS },
      { all: {}, settings: SETTINGS },
      { stream: { ...STREAM, revision: '9223372036854775808' }, settings: SETTINGS },
      { all: { position: { commit_position: '1', prepare_position: '2' } }, settings: SETTINGS },
    ])
      expect(await h.create({ group_name: 'g', ...options }), JSON.stringify(options)).toEqual(UNHANDLED);
    expect(
      await h.create({
        stream: { stream_identifier: streamNamed('$all'), start: {} },
        group_name: 'g',
        settings: SETTINGS,
      }),
    ).toMatchObject({ status: 2 });
    expect(h.subscriptions.calls).toEqual([]);
  });
});

describe('failures name the group', () => {
  test('that is there, or can not be', async () => {
    const h = kit();
    await h.group('ps-1', 'g');
    expect(await h.group('ps-1', 'g')).toEqual({
      status: 6,
      message: 'Subscription group g on stream ps-1 exists.',
      trailers: { exception: 'persistent-subscription-exists', 'stream-name': 'ps-1', 'group-name': 'g' },
      received: [],
    });
    expect(await h.group('ps-1', 'x', { consumer_strategy: 'Nonsense' })).toEqual({
      status: 13,
      message: "Subscription group x on stream ps-1 failed: 'Consumer strategy Nonsense does not exist.'",
      trailers: {
        exception: 'persistent-subscription-failed',
        'stream-name': 'ps-1',
        'group-name': 'x',
        reason: 'Consumer strategy Nonsense does not exist.',
      },
      received: [],
    });
  });

  test.each([
    ['Update', { stream: { ...STREAM, start: {} }, settings: SETTINGS }],
    ['Delete', STREAM],
    ['GetInfo', STREAM],
    ['ReplayParked', { ...STREAM, no_limit: {} }],
    ['TruncateParked', { ...STREAM, no_limit: {} }],
  ])('that is not there, of %s', async (method, options) => {
    const { consumer_strategy: _, ...settings } = SETTINGS;
    expect(
      await kit().ask(method, { group_name: 'nope', ...options, ...('settings' in options && { settings }) }),
    ).toEqual({
      status: 5,
      message: 'Subscription group nope on stream ps-1 does not exist.',
      trailers: { exception: 'persistent-subscription-does-not-exist', 'stream-name': 'ps-1', 'group-name': 'nope' },
      received: [],
    });
  });
});

describe('a group is', () => {
  test('changed', async () => {
    const h = kit();
    await h.group('ps-1', 'g');
    const { consumer_strategy: _, ...settings } = SETTINGS;
    expect(
      await h.ask('Update', {
        stream: { ...STREAM, revision: '1' },
        group_name: 'g',
        settings: { ...settings, named_consumer_strategy: 'Pinned' },
      }),
    ).toEqual(DONE);
    expect(h.subscriptions.calls.at(-1)).toEqual([
      'update',
      'ps-1',
      'g',
      { settings: { ...KEPT, strategy: 'Pinned' }, from: 1 },
      'olga',
    ]);
    expect(h.entries.at(-1)).toMatchObject({ action: 'subscription.update', target: 'ps-1::g' });
  });

  test('deleted', async () => {
    const h = kit();
    await h.create({ all: { start: {} }, group_name: 'g', settings: SETTINGS });
    expect(await h.ask('Delete', { all: {}, group_name: 'g' })).toEqual(DONE);
    expect(h.entries.at(-1)).toMatchObject({ action: 'subscription.delete', target: '$all::g' });
    expect(await h.ask('Delete', { all: {}, group_name: 'g' })).toMatchObject({ status: 5 });
  });

  test('told of in all its numbers', async () => {
    const h = kit();
    await h.group('ps-1', 'g', { max_subscriber_count: 3, resolve_links: true, extra_statistics: true });
    const reader = h.open({ ...STREAM, group_name: 'g' });
    await reader.until(1);
    h.subscriptions.more = { parkedMessageCount: 11 };
    expect((await h.ask('GetInfo', { ...STREAM, group_name: 'g' }, AS.plain)).received).toEqual([
      {
        subscription_info: {
          event_source: 'ps-1',
          group_name: 'g',
          status: 'Live',
          average_per_second: 4,
          total_items: '9',
          count_since_last_measurement: '6',
          last_checkpointed_event_position: '8',
          last_known_event_position: '9',
          resolve_link_tos: true,
          start_from: '0',
          message_timeout_milliseconds: 1500,
          extra_statistics: true,
          max_retry_count: 2,
          live_buffer_size: 50,
          buffer_size: 40,
          read_batch_size: 10,
          check_point_after_milliseconds: 500,
          min_check_point_count: 1,
          max_check_point_count: 5,
          read_buffer_count: 1,
          live_buffer_count: '2',
          retry_buffer_count: 3,
          total_in_flight_messages: 4,
          outstanding_messages_count: 5,
          named_consumer_strategy: 'RoundRobin',
          max_subscriber_count: 3,
          parked_message_count: '11',
          connections: [
            {
              username: 'olga',
              average_items_per_second: 4,
              total_items: '9',
              count_since_last_measurement: '6',
              observed_measurements: [{ key: 'Mean', value: '7' }],
              available_slots: 3,
              connection_name: '<unknown>',
            },
          ],
        },
      },
    ]);
    h.subscriptions.more = { lastCheckpointedPosition: null, lastKnownPosition: null };
    const [{ subscription_info: info }] = (await h.ask('GetInfo', { ...STREAM, group_name: 'g' })).received as [
      { subscription_info: object },
    ];
    expect(info).not.toHaveProperty('last_known_event_position');
    reader.cancel();
  });

  test('listed with the others, or with those of its stream', async () => {
    const h = kit();
    expect((await h.ask('List', { list_all_subscriptions: {} }, AS.plain)).received).toEqual([{}]);
    await h.group('ps-1', 'a');
    await h.group('ps-2', 'b');
    await h.create({ all: { start: {} }, group_name: 'c', settings: SETTINGS });
    const names = async (options: object) =>
      ((await h.ask('List', options)).received[0] as { subscriptions: { group_name: string }[] }).subscriptions.map(
        ({ group_name }) => group_name,
      );
    expect(await names({ list_all_subscriptions: {} })).toEqual(['a', 'b', 'c']);
    expect(await names({ list_for_stream: { stream: streamNamed('ps-2') } })).toEqual(['b']);
    expect(await names({ list_for_stream: { all: {} } })).toEqual(['c']);
    expect(await h.ask('List', { list_for_stream: { stream: streamNamed('nothing') } })).toEqual({
      status: 5,
      message: 'Subscription group  on stream nothing does not exist.',
      trailers: { exception: 'persistent-subscription-does-not-exist', 'stream-name': 'nothing' },
      received: [],
    });
    expect(await h.ask('List', {})).toEqual(UNHANDLED);
  });

  test.each([
    ['ReplayParked', 'replayParked', 'subscription.replay-parked'],
    ['TruncateParked', 'truncateParked', 'subscription.truncate-parked'],
  ])('told what to do with what is parked: %s', async (method, told, action) => {
    const h = kit();
    await h.group('ps-1', 'g');
    const asked = { ...STREAM, group_name: 'g' };
    expect(await h.ask(method, { ...asked, no_limit: {} })).toEqual(DONE);
    expect(await h.ask(method, { ...asked, stop_at: '17' })).toEqual(DONE);
    expect(h.subscriptions.calls.slice(1)).toEqual([
      [told, 'ps-1', 'g', null],
      [told, 'ps-1', 'g', 17],
    ]);
    expect(await h.ask(method, asked)).toEqual(UNHANDLED);
    expect(await h.ask(method, { ...asked, stop_at: '-1' })).toMatchObject({
      status: 13,
      trailers: { exception: 'persistent-subscription-failed' },
    });
    expect(h.entries.slice(1)).toMatchObject([
      { action, target: 'ps-1::g', details: { stopAt: null } },
      { action, details: { stopAt: 17 } },
      { outcome: 'failed' },
      { outcome: 'failed' },
    ]);
  });

  test('begun anew with all others, asked for by way of two services', async () => {
    const h = kit();
    for (const path of [
      `${AT}/RestartSubsystem`,
      '/event_store.client.operations.Operations/RestartPersistentSubscriptions',
    ]) {
      expect(await h.call(path, {}, AS.plain)).toEqual(DENIED);
      expect(await h.call(path, {}, AS.ops)).toEqual(DONE);
    }
    expect(h.subscriptions.calls).toEqual([['restart'], ['restart']]);
    expect(h.told().filter(([, outcome]) => outcome === 'success')).toEqual([
      ['subscription.restart', 'success', null],
      ['subscription.restart', 'success', null],
    ]);
  });
});

describe('rights', () => {
  test.each(['Create', 'Update', 'Delete', 'ReplayParked', 'TruncateParked'])('%s is for operators', async (method) => {
    const h = kit();
    for (const who of [AS.anonymous, AS.plain])
      expect(
        await h.ask(
          method,
          { ...(method === 'Create' || method === 'Update' ? { stream: STREAM } : STREAM), group_name: 'g' },
          who,
        ),
      ).toEqual(DENIED);
    expect(h.subscriptions.calls).toEqual([]);
    expect(h.entries.map(({ outcome, target }) => [outcome, target])).toEqual([
      ['refused', null],
      ['refused', null],
    ]);
  });

  test.each([
    ['GetInfo', { ...STREAM, group_name: 'g' }],
    ['List', { list_all_subscriptions: {} }],
  ])('%s is for everybody with a user', async (method, options) => {
    const h = kit();
    await h.group('ps-1', 'g');
    expect(await h.ask(method, options, AS.anonymous)).toEqual(DENIED);
    expect(await h.ask(method, options, AS.plain)).toMatchObject({ status: 0 });
  });

  test('where there are no groups there is no service', async () => {
    expect(await grpcHarness().open(`${AT}/List`, [{}]).ended).toEqual({ httpStatus: 404 });
  });
});
