import { describe, expect, test } from 'vitest';
import { DEFAULT_SETTINGS, parkedStreamOf } from '../../../core/persistent/api.ts';
import { CONFIG_BODY_BYTES_MAX } from '../../../handlers/persistent/config.ts';
import { FakeSubscriptions } from '../../support/fake-subscriptions.ts';
import { numbered, ORIGIN } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const AT = '/subscriptions/jobs/workers';
const URL_OF = `${ORIGIN}${AT}`;
const DONE = { reason: '', result: 'Success' };
const ID = '00000000-0000-4000-8000-000000000001';

function world() {
  const subscriptions = new FakeSubscriptions();
  const h = secured({ subscriptions });
  const order = (method: string, path: string, body: unknown = null, who: Record<string, string> = AS.ops) =>
    h.send(method, path, { ...who, ...JSON_TYPE }, body === null ? null : JSON.stringify(body));
  const told = () => subscriptions.calls.at(-1);
  return { ...h, subscriptions, order, told };
}

describe('the life of a group', () => {
  test('made with what clients send where nothing is said, told of, changed in one thing, deleted', async () => {
    const h = world();
    const made = await h.order('PUT', AT, {});
    expect([made.status, made.headers.get('location'), made.json()]).toEqual([201, URL_OF, DONE]);
    expect(h.told()).toEqual(['create', 'jobs', 'workers', { settings: DEFAULT_SETTINGS, from: 'start' }, 'olga']);
    expect((await h.order('PUT', AT, {})).status).toBe(409);
    expect((await h.order('POST', AT, { MaxRetryCount: 3, startPosition: '-1' })).json()).toEqual(DONE);
    expect(h.told()).toEqual([
      'update',
      'jobs',
      'workers',
      { settings: { ...DEFAULT_SETTINGS, maxRetryCount: 3 }, from: 'end' },
      'olga',
    ]);
    expect((await h.order('DELETE', AT)).json()).toEqual(DONE);
    for (const [method, path] of [
      ['POST', AT],
      ['DELETE', AT],
      ['GET', `${AT}/info`],
      ['GET', AT],
      ['POST', `${AT}/replayParked`],
      ['GET', '/subscriptions/jobs'],
    ] as const) {
      const reply = await h.order(method, path, method === 'POST' ? {} : null);
      expect([reply.status, reply.json().code], path).toEqual([404, 'persistent_subscription_not_found']);
    }
    expect((await h.order('GET', '/subscriptions/jobs', null)).json().detail).toBe(
      'Stream jobs has no persistent subscription.',
    );
  });

  test('with every setting', async () => {
    const h = world();
    const body = {
      resolveLinktos: true,
      startPosition: '12',
      messageTimeoutMilliseconds: 0,
      extraStatistics: true,
      maxRetryCount: 1,
      bufferSize: 40,
      liveBufferSize: 50,
      readBatchSize: 10,
      checkPointAfterMilliseconds: 500,
      minCheckPointCount: 2,
      maxCheckPointCount: 5,
      maxSubscriberCount: 7,
      namedConsumerStrategy: 'Pinned',
      unheard: 1,
      preferRoundRobin: null,
    };
    await h.order('PUT', AT, body);
    expect(h.told()).toEqual([
      'create',
      'jobs',
      'workers',
      {
        from: 12,
        settings: {
          resolveLinks: true,
          extraStatistics: true,
          messageTimeoutMs: 0,
          checkpointAfterMs: 500,
          maxRetryCount: 1,
          minCheckpointCount: 2,
          maxCheckpointCount: 5,
          maxSubscriberCount: 7,
          liveBufferSize: 50,
          readBatchSize: 10,
          historyBufferSize: 40,
          strategy: 'Pinned',
        },
      },
      'olga',
    ]);
    const { unheard: _, preferRoundRobin: __, ...kept } = body;
    expect((await h.get(`${AT}/info`, undefined, AS.plain)).json().config).toEqual({
      ...kept,
      startFrom: 12,
      preferRoundRobin: false,
    });
  });

  test.each([
    [{ startFrom: -1 }, 'end'],
    [{ startFrom: 5 }, 5],
    [{ startPosition: 'C:900/P:800' }, { commit: 900, prepare: 800 }],
    [{ startPosition: 'C:-1/P:-1' }, 'end'],
    [{ startPosition: '9223372036854775807' }, Number.MAX_SAFE_INTEGER],
  ])('from %j', async (body, from) => {
    const h = world();
    await h.order('PUT', AT, body);
    expect((h.told()![3] as { from: unknown }).from).toEqual(from);
  });

  test('with the strategy as clients of long ago name it', async () => {
    const h = world();
    for (const [preferRoundRobin, strategy] of [
      [true, 'RoundRobin'],
      [false, 'DispatchToSingle'],
    ] as const) {
      await h.order('PUT', `/subscriptions/jobs/${String(preferRoundRobin)}`, { preferRoundRobin });
      expect(h.told()![3]).toMatchObject({ settings: { strategy } });
    }
  });

  test.each([
    [{ bufferSize: 0 }, 400],
    [{ liveBufferSize: 0 }, 400],
    [{ readBatchSize: 0 }, 400],
    [{ bufferSize: 20, readBatchSize: 20 }, 400],
    [{ maxRetryCount: 1.5 }, 400],
    [{ maxRetryCount: '3' }, 400],
    [{ resolveLinktos: 1 }, 400],
    [{ startPosition: 'x' }, 400],
    [{ startPosition: 3 }, 400],
    [{ startFrom: -2 }, 400],
    [{ namedConsumerStrategy: 7 }, 400],
    [{ maxSubscriberCount: 3_000_000_000 }, 400],
    [[], 400],
    ['x'.repeat(CONFIG_BODY_BYTES_MAX), 413],
  ])('not with %.40j', async (body, status) => {
    const h = world();
    expect((await h.order('PUT', AT, body)).status).toBe(status);
    expect(h.subscriptions.calls).toEqual([]);
  });

  test('of $all is looked at and changed, and made over gRPC', async () => {
    const h = world();
    const all = '/subscriptions/$all/everything';
    expect((await h.order('PUT', all, {})).status).toBe(400);
    await h.subscriptions.create(
      '$all',
      'everything',
      { settings: DEFAULT_SETTINGS, from: { commit: 9, prepare: 9 } },
      'ada',
    );
    h.subscriptions.more = { lastKnownPosition: 'C:12/P:12', lastCheckpointedPosition: null, startFrom: 'C:9/P:9' };
    expect((await h.get('/subscriptions/%24all/everything/info', undefined, AS.plain)).json()).toMatchObject({
      eventStreamId: '$all',
      config: { startPosition: 'C:9/P:9' },
      lastKnownEventPosition: 'C:12/P:12',
      lastKnownEventNumber: -1,
      lastCheckpointedEventPosition: null,
      lastProcessedEventNumber: -1,
    });
    expect((await h.order('POST', all, { maxRetryCount: 1 })).status).toBe(200);
  });
});

describe('groups are told of', () => {
  async function three() {
    const h = world();
    for (const path of ['jobs/a', 'jobs/b', 'mails/c']) await h.order('PUT', `/subscriptions/${path}`, {});
    return h;
  }

  test('in a list, with where to look further', async () => {
    const h = await three();
    const [first, ...more] = (await h.get('/subscriptions', undefined, AS.plain)).json();
    expect(first).toEqual({
      links: [{ href: `${ORIGIN}/subscriptions/jobs/a/info`, rel: 'detail' }],
      eventStreamId: 'jobs',
      groupName: 'a',
      parkedMessageUri: `${ORIGIN}/streams/%24persistentsubscription-jobs%3A%3Aa-parked`,
      getMessagesUri: `${ORIGIN}/subscriptions/jobs/a/1`,
      status: 'Live',
      averageItemsPerSecond: 4.6,
      totalItemsProcessed: 9,
      lastProcessedEventNumber: 8,
      lastCheckpointedEventPosition: '8',
      lastKnownEventNumber: 9,
      lastKnownEventPosition: '9',
      connectionCount: 0,
      totalInFlightMessages: 4,
      parkedMessageCount: 0,
      startPosition: '0',
    });
    expect(more).toHaveLength(2);
    expect(
      (await h.get('/subscriptions/jobs', undefined, AS.plain))
        .json()
        .map(({ groupName }: { groupName: string }) => groupName),
    ).toEqual(['a', 'b']);
  });

  test('in pages', async () => {
    const h = await three();
    const page = (await h.get('/subscriptions?offset=1&count=1', undefined, AS.plain)).json();
    expect(page).toMatchObject({
      links: [{ href: `${ORIGIN}/subscriptions?offset=1&count=1`, rel: 'self' }],
      offset: 1,
      count: 1,
      total: 3,
      subscriptions: [{ groupName: 'b' }],
    });
    expect((await h.get('/subscriptions?count=2', undefined, AS.plain)).json()).toMatchObject({ offset: 0, count: 2 });
    for (const query of ['offset=-1', 'count=0', 'count=x', 'offset=9999999999'])
      expect((await h.get(`/subscriptions?${query}`, undefined, AS.plain)).status).toBe(400);
  });

  test('in all their numbers, with their consumers', async () => {
    const h = await three();
    await h.subscriptions.connect('jobs', 'a', {
      bufferSize: 5,
      username: 'kim',
      connectionName: 'test',
      from: '192.0.2.1',
    });
    const details = (await h.get('/subscriptions/jobs/a/info', undefined, AS.plain)).json();
    expect(details).toMatchObject({
      links: [{ rel: 'detail' }, { rel: 'replayParked', href: `${ORIGIN}/subscriptions/jobs/a/replayParked` }],
      countSinceLastMeasurement: 6,
      readBufferCount: 1,
      liveBufferCount: 2,
      retryBufferCount: 3,
      outstandingMessagesCount: 5,
      connectionCount: 1,
    });
    expect(details.connections).toEqual([
      {
        from: '192.0.2.1',
        username: 'kim',
        averageItemsPerSecond: 4.6,
        totalItemsProcessed: 9,
        countSinceLastMeasurement: 6,
        extraStatistics: [{ key: 'Mean', value: 7 }],
        availableSlots: 5,
        inFlightMessages: 0,
        connectionName: 'test',
      },
    ]);
  });

  test('also those of a stream that is named like a command', async () => {
    const h = await three();
    await h.order('PUT', '/subscriptions/restart/g', {});
    expect((await h.get('/subscriptions/restart', undefined, AS.plain)).json()).toMatchObject([
      { eventStreamId: 'restart' },
    ]);
    expect((await h.order('POST', '/subscriptions/restart')).json()).toEqual(DONE);
    expect(h.told()).toEqual(['restart']);
  });
});

describe('messages', () => {
  async function taken(count: number, query = '', accept?: string) {
    const h = world();
    await h.send(
      'POST',
      '/streams/jobs',
      { ...AS.admin, 'content-type': 'application/vnd.eventstore.events+json' },
      JSON.stringify(numbered(4).map((data) => ({ eventId: h.id(), eventType: 'made', data }))),
    );
    await h.order('PUT', AT, {});
    const { events } = await h.store.readStream('jobs', { direction: 'forward', from: 0, count: 10 });
    h.subscriptions.give('jobs', 'workers', events, 2);
    return { ...h, events, reply: await h.get(`${AT}/${count}${query}`, accept, AS.plain) };
  }

  test('come as entries, newest first, each with where to answer it', async () => {
    const { reply, events } = await taken(2, '?embed=body');
    const feed = reply.json();
    const ids = events.slice(0, 2).map(({ id }) => id);
    expect(reply.headers.get('cache-control')).toContain('no-cache');
    expect({ ...feed, entries: [] }).toEqual({
      title: "Messages for 'jobs/workers'",
      id: URL_OF,
      updated: '2031-04-02T09:15:30Z',
      author: { name: 'EventStore' },
      headOfStream: false,
      entries: [],
      links: [
        { uri: `${URL_OF}/ack?ids=${ids.join()}`, relation: 'ackAll', type: null },
        { uri: `${URL_OF}/nack?ids=${ids.join()}`, relation: 'nackAll', type: null },
        { uri: `${URL_OF}/2`, relation: 'previous', type: null },
        { uri: URL_OF, relation: 'self', type: null },
      ],
    });
    expect(
      feed.entries.map(({ title, retryCount, data }: Record<string, string>) => [title, retryCount, JSON.parse(data!)]),
    ).toEqual([
      ['1@jobs', 2, { n: 1 }],
      ['0@jobs', 2, { n: 0 }],
    ]);
    expect(feed.entries[1].links.slice(2)).toEqual([
      { uri: `${URL_OF}/ack/${ids[0]}`, relation: 'ack', type: null },
      { uri: `${URL_OF}/nack/${ids[0]}`, relation: 'nack', type: null },
    ]);
  });

  test('come one at a time where no number is given, in the families of names that clients ask for, and not at all', async () => {
    const h = await taken(1, '', 'application/vnd.kurrent.competingatom+json');
    expect(h.reply.headers.get('content-type')).toBe('application/vnd.kurrent.competingatom+json; charset=utf-8');
    expect(h.reply.json()).toMatchObject({ author: { name: 'Kurrent' }, entries: [{ title: '0@jobs' }] });
    expect((await h.get(AT, 'application/vnd.eventstore.competingatom+json', AS.plain)).json().entries).toMatchObject([
      { title: '1@jobs' },
    ]);
    await h.get(`${AT}/100`, undefined, AS.plain);
    const none = (await h.get(AT, undefined, AS.plain)).json();
    expect([none.entries, none.updated, none.links.map(({ relation }: { relation: string }) => relation)]).toEqual([
      [],
      '0001-01-01T00:00:00Z',
      ['previous', 'self'],
    ]);
    for (const count of ['0', '101', 'x', '-1'])
      expect((await h.get(`${AT}/${count}`, undefined, AS.plain)).status).toBe(400);
    expect((await h.get(AT, 'application/vnd.eventstore.atom+json', AS.plain)).status).toBe(406);
  });

  test('are answered one by one, or many at once', async () => {
    const h = await taken(1);
    const OTHER = ID.replace(/1$/, '2');
    for (const [path, told] of [
      [`/ack/${ID}`, ['ack', [ID]]],
      [`/ack?ids=${ID},${OTHER}`, ['ack', [ID, OTHER]]],
      [`/nack/${ID}?action=park`, ['nack', [ID], 'Park', '']],
      [`/nack?ids=${ID}&action=RETRY`, ['nack', [ID], 'Retry', '']],
      [`/nack/${ID}?action=skip`, ['nack', [ID], 'Skip', '']],
      [`/nack/${ID}?action=stop`, ['nack', [ID], 'Stop', '']],
      [`/nack/${ID}`, ['nack', [ID], 'Unknown', '']],
    ] as const) {
      expect((await h.send('POST', AT + path, AS.plain)).status).toBe(202);
      expect(h.told()).toEqual(told);
    }
    const many = Array.from({ length: 1_001 }, () => ID).join();
    for (const path of [
      '/ack/x',
      '/ack',
      '/ack?ids=',
      `/ack?ids=${ID},x`,
      `/ack?ids=${many}`,
      `/nack/${ID}?action=burn`,
    ])
      expect((await h.send('POST', AT + path, AS.plain)).status, path.slice(0, 60)).toBe(400);
    expect(h.subscriptions.answers).toHaveLength(7);
  });

  test('are sent again, all of them or up to a number', async () => {
    const h = await taken(1);
    expect((await h.order('POST', `${AT}/replayParked`)).json()).toEqual(DONE);
    expect(h.told()).toEqual(['replayParked', 'jobs', 'workers', null]);
    await h.order('POST', `${AT}/replayParked?stopAt=17`);
    expect(h.told()).toEqual(['replayParked', 'jobs', 'workers', 17]);
    for (const stopAt of ['-1', 'x', ''])
      expect((await h.order('POST', `${AT}/replayParked?stopAt=${stopAt}`)).status).toBe(400);
  });

  test('come anew from where the group is told to begin', async () => {
    const h = await taken(1);
    for (const [text, from] of [
      ['start', 'start'],
      ['end', 'end'],
      ['7', 7],
      ['C:9/P:8', { commit: 9, prepare: 8 }],
    ] as const) {
      expect((await h.order('POST', `${AT}/reset?from=${text}`)).json()).toEqual(DONE);
      expect(h.told()).toEqual(['reset', 'jobs', 'workers', from, 'olga']);
    }
    for (const query of ['', '?from=', '?from=x'])
      expect((await h.order('POST', `${AT}/reset${query}`)).status).toBe(400);
  });

  test('that are parked are seen by who may read their stream', async () => {
    const h = await taken(1);
    await h.send(
      'POST',
      `/streams/${encodeURIComponent(parkedStreamOf('jobs', 'workers'))}`,
      { ...AS.admin, 'content-type': 'application/vnd.eventstore.events+json' },
      JSON.stringify([
        { eventId: h.id(), eventType: '$>', data: '2@jobs' },
        { eventId: h.id(), eventType: '$>', data: '3@jobs' },
      ]),
    );
    const other = await h.send('GET', '/subscriptions/viewparkedmessages/jobs/others/head/backward/5', AS.admin);
    expect([other.status, other.json().code]).toEqual([404, 'persistent_subscription_not_found']);
    const at = (rest: string, who: Record<string, string> = AS.plain) =>
      h.get(`/subscriptions/viewparkedmessages/jobs/workers/${rest}?embed=body`, undefined, who);
    const titles = async (rest: string) => (await at(rest)).json().entries.map(({ title }: { title: string }) => title);
    expect(await titles('head/backward/5')).toEqual(['3@jobs', '2@jobs']);
    expect(await titles('0/forward/1')).toEqual(['2@jobs']);
    expect((await at('head/forward/5')).status).toBe(400);
    await h.send(
      'POST',
      '/streams/jobs/metadata',
      { ...AS.admin, ...JSON_TYPE, 'es-eventid': h.id(), 'es-eventtype': '$metadata' },
      '{"$acl":{"$r":"ada"}}',
    );
    expect([(await at('head/backward/5')).status, (await at('head/backward/5', AS.admin)).status]).toEqual([403, 200]);
  });
});

test('reading for a group takes the right to read its stream; of links it shows what the caller may see', async () => {
  const h = world();
  await h.order('PUT', AT, {});
  await h.send(
    'POST',
    '/streams/jobs/metadata',
    { ...AS.admin, ...JSON_TYPE, 'es-eventid': h.id(), 'es-eventtype': '$metadata' },
    '{"$acl":{"$r":"$ops"}}',
  );
  for (const [method, path] of [
    ['GET', AT],
    ['POST', `${AT}/ack/${ID}`],
    ['POST', `${AT}/nack/${ID}`],
  ] as const) {
    expect((await h.send(method, path, AS.plain)).status).toBe(403);
    expect((await h.send(method, path, AS.anonymous)).status).toBe(401);
    expect((await h.send(method, path, AS.ops)).status).toBeLessThan(300);
  }
});
