import type {
  PersistentSubscriptionToAllSettings,
  PersistentSubscriptionToStreamSettings,
} from '@kurrent/kurrentdb-client';
import { expect, test } from 'vitest';
import { failure } from '../nodes.ts';
import { numbered, told } from './suite.ts';
import type { Suite } from './suite.ts';

/** Persistent subscriptions: groups of consumers that share a stream, or all streams. */
export function persistentTests({ lib, isSecure, client, stream }: Suite): void {
  const ofStream = (changes: Partial<PersistentSubscriptionToStreamSettings> = {}) =>
    lib.persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: lib.START, ...changes });
  const ofAll = (changes: Partial<PersistentSubscriptionToAllSettings> = {}) =>
    lib.persistentSubscriptionToAllSettingsFromDefaults({ startFrom: lib.START, ...changes });
  const made = async (changes: Partial<PersistentSubscriptionToStreamSettings> = {}, count = 0): Promise<string> => {
    const name = stream();
    if (count > 0) await client().appendToStream(name, numbered(lib, count));
    await client().createPersistentSubscriptionToStream(name, 'group', ofStream(changes));
    return name;
  };
  type Consumer = ReturnType<ReturnType<Suite['client']>['subscribeToPersistentSubscriptionToStream']>;
  const infoOf = (name: string) => client().getPersistentSubscriptionToStreamInfo(name, 'group');
  /**
   * Leaving the loop alone would leave the consumer connected, and cancelling at once may overtake what it has
   * answered.
   */
  const leave = async (
    info: () => Promise<{
      readonly stats: { readonly totalInFlightMessages: number };
      readonly connections: readonly unknown[];
    }>,
    consumer: { unsubscribe(): Promise<void> },
  ): Promise<void> => {
    await until(async () => (await info()).stats.totalInFlightMessages === 0);
    await consumer.unsubscribe();
    await until(async () => (await info()).connections.length === 0);
  };
  /**
   * The next `count` events of a consumer, with the retry count of each; `answer` is asked for every one. Then it
   * leaves.
   */
  const consumed = async (
    name: string,
    consumer: Consumer,
    count: number,
    answer: (event: any, n: number) => unknown = (event) => consumer.ack(event),
  ): Promise<string[]> => {
    const out: string[] = [];
    for await (const event of consumer) {
      out.push(`${event.event!.revision}${event.retryCount === 0 ? '' : `r${event.retryCount}`}`);
      await answer(event, out.length);
      if (out.length === count) break;
    }
    await leave(() => infoOf(name), consumer);
    return out;
  };

  test('a group is made, told of, changed and deleted, and what can not be is said as such', async () => {
    const settings = ofStream({
      startFrom: 2n,
      resolveLinkTos: true,
      extraStatistics: true,
      messageTimeout: 4_000,
      maxRetryCount: 3,
      checkPointAfter: 1_500,
      checkPointLowerBound: 5,
      checkPointUpperBound: 50,
      maxSubscriberCount: 4,
      liveBufferSize: 60,
      readBatchSize: 11,
      historyBufferSize: 70,
      consumerStrategyName: lib.PINNED,
    });
    const name = stream();
    await client().createPersistentSubscriptionToStream(name, 'group', settings);
    expect(
      (await failure(client().createPersistentSubscriptionToStream(name, 'group', settings))).constructor.name,
    ).toBe('PersistentSubscriptionExistsError');
    const info = await client().getPersistentSubscriptionToStreamInfo(name, 'group');
    expect(info).toMatchObject({ eventSource: name, groupName: 'group', settings, connections: [] });
    const changed = {
      ...settings,
      maxRetryCount: 9,
      consumerStrategyName: lib.ROUND_ROBIN,
      maxSubscriberCount: lib.UNBOUNDED as 'unbounded',
    };
    await client().updatePersistentSubscriptionToStream(name, 'group', changed);
    expect((await client().getPersistentSubscriptionToStreamInfo(name, 'group')).settings).toMatchObject({
      maxRetryCount: 9,
      consumerStrategyName: 'RoundRobin',
      maxSubscriberCount: 'unbounded',
    });
    await client().deletePersistentSubscriptionToStream(name, 'group');
    for (const what of [
      () => client().deletePersistentSubscriptionToStream(name, 'group'),
      () => client().updatePersistentSubscriptionToStream(name, 'group', settings),
      () => client().getPersistentSubscriptionToStreamInfo(name, 'group'),
      () => client().replayParkedMessagesToStream(name, 'group'),
      () => client().subscribeToPersistentSubscriptionToStream(name, 'group'),
    ])
      expect((await failure(what())).constructor.name).toBe('PersistentSubscriptionDoesNotExistError');
    const failed = await failure(
      client().createPersistentSubscriptionToStream(name, 'group', {
        ...settings,
        readBatchSize: 100,
        historyBufferSize: 100,
      }),
    );
    expect(failed.constructor.name).toBe('PersistentSubscriptionFailedError');
  });

  test('lists of groups', async () => {
    const name = await made();
    await client().createPersistentSubscriptionToStream(name, 'second', ofStream());
    await client().createPersistentSubscriptionToAll(`${name}-all`, ofAll());
    expect((await client().listPersistentSubscriptionsToStream(name)).map(({ groupName }) => groupName).sort()).toEqual(
      ['group', 'second'],
    );
    expect((await client().listPersistentSubscriptionsToAll()).map(({ groupName }) => groupName)).toContain(
      `${name}-all`,
    );
    expect(
      (await client().listAllPersistentSubscriptions()).filter(({ eventSource }) => eventSource === name),
    ).toHaveLength(2);
    expect((await failure(client().listPersistentSubscriptionsToStream(stream()))).constructor.name).toBe(
      'PersistentSubscriptionDoesNotExistError',
    );
    await client().deletePersistentSubscriptionToAll(`${name}-all`);
    expect((await failure(client().getPersistentSubscriptionToAllInfo(`${name}-all`))).constructor.name).toBe(
      'PersistentSubscriptionDoesNotExistError',
    );
  });

  test('history and what is written then are delivered, and acked for good', async () => {
    const name = await made({ checkPointLowerBound: 1, checkPointUpperBound: 1, checkPointAfter: 50 }, 30);
    const consumer = client().subscribeToPersistentSubscriptionToStream(name, 'group', { bufferSize: 10 });
    const received = consumed(name, consumer, 40);
    await told(consumer, 'confirmation');
    await client().appendToStream(name, numbered(lib, 10));
    expect(await received).toEqual(Array.from({ length: 40 }, (_, n) => String(n)));
    await until(async () => (await infoOf(name)).stats.lastCheckpointedEventRevision === 39n);
    const next = client().subscribeToPersistentSubscriptionToStream(name, 'group');
    const more = consumed(name, next, 1);
    await told(next, 'confirmation');
    await client().appendToStream(name, numbered(lib, 1));
    expect(await more).toEqual(['40']);
  });

  test('what is refused is retried, parked, skipped or stopped at, and what was parked comes again when it is replayed', async () => {
    const name = await made({ maxRetryCount: 2 }, 4);
    const consumer = client().subscribeToPersistentSubscriptionToStream(name, 'group', { bufferSize: 20 });
    const actions = [lib.PARK, lib.RETRY, lib.SKIP, lib.STOP] as const;
    const received: string[] = [];
    const done = (async () => {
      for await (const event of consumer) {
        const n = Number(event.event!.revision);
        received.push(`${n}r${event.retryCount}${event.link === undefined ? '' : ' parked'}`);
        if (event.link !== undefined) {
          await consumer.ack(event);
          if (received.filter((text) => text.endsWith('parked')).length === 2) break;
        } else await consumer.nack(actions[n]!, 'because', event);
        // What is refused to the end is parked: then both are called back.
        if (received.length === 6) {
          await until(async () => (await infoOf(name)).stats.parkedMessageCount === 2n);
          await client().replayParkedMessagesToStream(name, 'group');
        }
      }
    })();
    await done;
    await leave(() => infoOf(name), consumer);
    expect(received.slice(0, 6).sort()).toEqual(['0r0', '1r0', '1r1', '1r2', '2r0', '3r0']);
    expect(received.slice(6).sort()).toEqual(['0r0 parked', '1r0 parked']);
  });

  test('a part of what is parked is replayed where that is asked for', async () => {
    const name = await made({}, 3);
    const consumer = client().subscribeToPersistentSubscriptionToStream(name, 'group');
    await consumed(name, consumer, 3, (event) => consumer.nack(lib.PARK, 'later', event));
    await until(async () => (await infoOf(name)).stats.parkedMessageCount === 3n);
    await client().replayParkedMessagesToStream(name, 'group', { stopAt: 2 });
    const again = client().subscribeToPersistentSubscriptionToStream(name, 'group');
    expect(await consumed(name, again, 2)).toEqual(['0', '1']);
  });

  test('what nobody answers in time comes again', async () => {
    const name = await made({ messageTimeout: 200, maxRetryCount: 5 }, 1);
    const consumer = client().subscribeToPersistentSubscriptionToStream(name, 'group');
    expect(await consumed(name, consumer, 3, (event, n) => (n === 3 ? consumer.ack(event) : undefined))).toEqual([
      '0',
      '0r1',
      '0r2',
    ]);
  });

  test.each(['RoundRobin', 'DispatchToSingle', 'Pinned', 'PinnedByCorrelation'])(
    'consumers share what comes: %s',
    async (consumerStrategyName) => {
      const name = await made({ consumerStrategyName });
      const counts = [0, 0, 0];
      const consumers = counts.map(() =>
        client().subscribeToPersistentSubscriptionToStream(name, 'group', { bufferSize: 5 }),
      );
      const seen = new Set<string>();
      const { promise: all, resolve } = Promise.withResolvers<void>();
      for (const [i, consumer] of consumers.entries()) {
        consumer.on('data', (event) => {
          counts[i]!++;
          seen.add(String(event.event!.revision));
          void consumer.ack(event);
          if (seen.size === 60) resolve();
        });
      }
      await Promise.all(consumers.map((consumer) => told(consumer, 'confirmation')));
      await client().appendToStream(name, numbered(lib, 60));
      await all;
      expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(60);
      if (consumerStrategyName === 'RoundRobin') expect(counts.every((count) => count > 0)).toBe(true);
      for (const consumer of consumers) await consumer.unsubscribe();
    },
  );

  test('one consumer too many, and a group that is deleted under its consumer', async () => {
    const name = await made({ maxSubscriberCount: 1 });
    const consumer = client().subscribeToPersistentSubscriptionToStream(name, 'group');
    const end = failure(consumer);
    await told(consumer, 'confirmation');
    expect((await infoOf(name)).connections).toMatchObject([
      {
        connectionName: client().connectionName,
        username: isSecure ? 'admin' : expect.any(String),
        availableSlots: 10,
      },
    ]);
    expect((await failure(client().subscribeToPersistentSubscriptionToStream(name, 'group'))).constructor.name).toBe(
      'PersistentSubscriptionMaximumSubscribersReachedError',
    );
    await client().deletePersistentSubscriptionToStream(name, 'group');
    expect((await end).constructor.name).toBe('PersistentSubscriptionDroppedError');
  });

  test('all streams with a filter, changed, told of, replayed and restarted', async () => {
    const [name, group] = [stream(), `${stream()}-group`];
    await client().appendToStream(stream(), numbered(lib, 5));
    await client().createPersistentSubscriptionToAll(group, ofAll({ checkPointLowerBound: 1 }), {
      filter: lib.streamNameFilter({ prefixes: [name] }),
    });
    expect((await failure(client().createPersistentSubscriptionToAll(group, ofAll()))).constructor.name).toBe(
      'PersistentSubscriptionExistsError',
    );
    await client().updatePersistentSubscriptionToAll(group, ofAll({ maxRetryCount: 7 }));
    expect(await client().getPersistentSubscriptionToAllInfo(group)).toMatchObject({
      eventSource: '$all',
      groupName: group,
      settings: { maxRetryCount: 7 },
    });
    const consumer = client().subscribeToPersistentSubscriptionToAll(group);
    const received: string[] = [];
    const done = (async () => {
      for await (const event of consumer) {
        received.push(`${event.event!.streamId}/${event.event!.revision}`);
        await (received.length === 2 ? consumer.nack(lib.PARK, 'later', event) : consumer.ack(event));
        if (received.length === 3) break;
      }
    })();
    await told(consumer, 'confirmation');
    await client().appendToStream(name, numbered(lib, 3));
    await done;
    await leave(() => client().getPersistentSubscriptionToAllInfo(group), consumer);
    expect(received).toEqual([0, 1, 2].map((n) => `${name}/${n}`));
    await until(async () => (await client().getPersistentSubscriptionToAllInfo(group)).stats.parkedMessageCount === 1n);
    await client().replayParkedMessagesToAll(group);
    const again = client().subscribeToPersistentSubscriptionToAll(group);
    for await (const event of again) {
      expect([event.event!.revision, event.link !== undefined]).toEqual([1n, true]);
      await again.ack(event);
      break;
    }
    await client().restartPersistentSubscriptionSubsystem();
    expect(await client().getPersistentSubscriptionToAllInfo(group)).toMatchObject({ groupName: group });
    await client().deletePersistentSubscriptionToAll(group);
  });

  test('links are followed', async () => {
    const [name, links] = [stream(), stream()];
    await client().appendToStream(name, numbered(lib, 2));
    await client().appendToStream(links, lib.binaryEvent({ type: '$>', data: Buffer.from(`1@${name}`) }));
    await client().createPersistentSubscriptionToStream(links, 'group', ofStream({ resolveLinkTos: true }));
    const consumer = client().subscribeToPersistentSubscriptionToStream(links, 'group');
    for await (const event of consumer) {
      expect([event.event!.streamId, event.event!.revision, event.link!.streamId]).toEqual([name, 1n, links]);
      await consumer.ack(event);
      break;
    }
  });

  if (isSecure)
    test('who may not is refused', async () => {
      const name = await made();
      const nobody = { credentials: { username: 'ops', password: 'wrong' } };
      expect(
        (await failure(client().createPersistentSubscriptionToStream(name, 'other', ofStream(), nobody))).constructor
          .name,
      ).toBe('AccessDeniedError');
      expect(
        (await failure(client().subscribeToPersistentSubscriptionToStream(name, 'group', nobody))).constructor.name,
      ).toBe('AccessDeniedError');
      expect(
        await client().listPersistentSubscriptionsToStream(name, {
          credentials: { username: 'ops', password: 'changeit' },
        }),
      ).toHaveLength(1);
    });
}

/** Asks until it is so: what consumers answer is told to nobody. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise(setImmediate);
}
