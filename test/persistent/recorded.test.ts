import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { answerId, checkpointStreamOf, parkedStreamOf } from '../../core/persistent/api.ts';
import type { Delivery, GroupInfo } from '../../core/persistent/api.ts';
import {
  CONFIG_STREAM,
  decodeCheckpoint,
  decodeConfig,
  encodeCheckpoint,
  encodeConfig,
  encodeParkedMetadata,
} from '../../core/persistent/stored-forms.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { StoredEvent } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import { fixturePath, installFiles } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { readTar } from '../support/tar.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { CONNECT, drain, engineOver, readWhole } from './support.ts';

/** Directories of the reference with groups at work, and what its client was told and got (test/fixtures/README.md). */

interface Recorded {
  readonly said?: Record<
    string,
    readonly {
      readonly number: string;
      readonly retry: number;
      readonly ofEvent: string;
      readonly stream: string;
      readonly link?: { readonly stream: string; readonly number: string };
    }[]
  >;
  readonly [key: string]: unknown;
}
interface RecordedInfo {
  readonly eventSource: string;
  readonly groupName: string;
  readonly status: string;
  readonly settings: Record<string, unknown>;
  readonly stats: Record<string, unknown>;
  readonly error?: string;
}

const recorded = (name: string) =>
  JSON.parse(readFileSync(fixturePath(`subscriptions/subscriptions-${name}.json`), 'utf8')) as Recorded;

async function open(name: string) {
  const storage = new MemoryStorage();
  await installFiles(
    storage,
    readTar(gunzipSync(readFileSync(fixturePath(`subscriptions/subscriptions-${name}.tar.gz`)))),
  );
  const clock = new ManualClock(TEST_NOW_MS + 86_400_000);
  const store = (await openTestStore({ storage, clock })).store;
  return { store, ...engineOver(store, { clock }) };
}

/** What the client was told, in the names of ours, without what depends on when it was asked. */
function toldOf(info: RecordedInfo) {
  const { settings: s, stats } = info;
  const position = (stats['lastCheckpointedEventPosition'] ?? null) as { commit: string; prepare: string } | null;
  const start = info.eventSource === '$all' ? { start: 'C:0/P:0', end: 'C:-1/P:-1' } : { start: '0', end: '-1' };
  return {
    stream: info.eventSource,
    group: info.groupName,
    startFrom: start[s['startFrom'] as 'start'] ?? s['startFrom'],
    settings: {
      resolveLinks: s['resolveLinkTos'],
      extraStatistics: s['extraStatistics'],
      messageTimeoutMs: s['messageTimeout'],
      maxRetryCount: s['maxRetryCount'],
      checkpointAfterMs: s['checkPointAfter'],
      minCheckpointCount: s['checkPointLowerBound'],
      maxCheckpointCount: s['checkPointUpperBound'],
      maxSubscriberCount: s['maxSubscriberCount'] === 'unbounded' ? 0 : s['maxSubscriberCount'],
      liveBufferSize: s['liveBufferSize'],
      readBatchSize: s['readBatchSize'],
      historyBufferSize: s['historyBufferSize'],
      strategy: s['consumerStrategyName'],
    },
    parkedMessageCount: Number(stats['parkedMessageCount']),
    lastCheckpointedPosition:
      position === null
        ? (stats['lastCheckpointedEventRevision'] ?? null)
        : `C:${position.commit}/P:${position.prepare}`,
  };
}

function told({ stream, group, startFrom, settings, parkedMessageCount, lastCheckpointedPosition }: GroupInfo) {
  return { stream, group, startFrom, settings, parkedMessageCount, lastCheckpointedPosition };
}

const shown = ({ event, retryCount }: Delivery) => ({
  number: String((event.link ?? event).number),
  ofEvent: String(event.number),
  stream: event.stream,
  retry: retryCount,
  ...(event.link !== null && { link: { stream: event.link.stream, number: String(event.link.number) } }),
});
const saidOf = (said: NonNullable<Recorded['said']>[string]) =>
  said.map(({ number, ofEvent, stream, retry, link }) => ({
    number,
    ofEvent,
    stream,
    retry,
    ...(link !== undefined && { link }),
  }));

describe('a directory of the reference', () => {
  test.each([
    ['1', recorded('2')['infoAfterStart'], ['$all::mails']],
    ['3-killed', recorded('4')['infoAfterTheKill'], ['$all::mails']],
    ['4', recorded('4')['infoBeforeStop'], []],
  ])('%s brings its groups with their settings, checkpoints and parked messages', async (name, after, moved) => {
    const { engine, clock } = await open(name);
    engine.start();
    await engine.list();
    await clock.advance(0);
    const infos = await engine.list();
    const expected = Object.values(after as Record<string, RecordedInfo>).filter(({ error }) => error === undefined);
    const strip = (info: { lastCheckpointedPosition: unknown; stream: string; group: string }) =>
      moved.includes(`${info.stream}::${info.group}`) ? { ...info, lastCheckpointedPosition: 'moves by itself' } : info;
    const byName = <T extends { stream: unknown; group: unknown }>(list: readonly T[]) =>
      list.toSorted((a, b) => (`${a.stream}::${a.group}` < `${b.stream}::${b.group}` ? -1 : 1));
    expect(byName(infos.map(told).map(strip))).toEqual(byName(expected.map(toldOf).map(strip)));
    // Read ahead as far as theirs.
    const buffered = (stream: string, group: string) =>
      infos.find((info) => info.stream === stream && info.group === group)?.readBufferCount;
    for (const { eventSource, groupName, stats } of expected)
      if (!moved.includes(`${eventSource}::${groupName}`))
        expect(`${groupName} ${buffered(eventSource, groupName)}`).toBe(
          `${groupName} ${String(stats['readBufferCount'])}`,
        );
    await engine.stop();
  });

  test('goes on where its checkpoints say, message by message as with the reference', async () => {
    const { engine, clock } = await open('1');
    engine.start();
    const { said } = recorded('2');
    for (const [name, stream, group] of [
      ['workers', 'jobs', 'workers'],
      ['pinned', 'jobs', 'pinned'],
      ['single', 'jobs', 'single'],
      ['correlation', 'mails', 'by-correlation'],
      ['links', 'links', 'resolved'],
      ['all', '$all', 'mails'],
    ] as const) {
      const consumer = await engine.connect(stream, group, CONNECT);
      let left = said![name]!.length;
      const got = await drain(consumer, clock, ({ event }) => {
        if (left-- > 0) consumer.ack([answerId(event)]);
      });
      expect(got.slice(0, said![name]!.length).map(shown), name).toEqual(saidOf(said![name]!));
      consumer.close();
    }
    await engine.stop();
  });

  test('replays parked messages and parks them again in the recorded forms', async () => {
    const { engine, clock, store } = await open('1');
    engine.start();
    const consumer = await engine.connect('jobs', 'workers', CONNECT);
    await drain(consumer, clock, ({ event }) => {
      consumer.ack([answerId(event)]);
    });
    await engine.replayParked('jobs', 'workers', 3);
    const got = await drain(consumer, clock, ({ event }) => {
      if (event.number === 13) consumer.nack([answerId(event)], 'Park', 'again');
      else consumer.ack([answerId(event)]);
    });
    const { replayedThree } = recorded('2');
    expect(got.map(shown)).toEqual(saidOf(replayedThree as NonNullable<Recorded['said']>[string]));
    await clock.advance(300);
    const after = await open('2');
    const parked = parkedStreamOf('jobs', 'workers');
    expect((await readWhole(store, parked)).map(formOf)).toEqual((await readWhole(after.store, parked)).map(formOf));
    expect((await readWhole(store, `$$${parked}`)).map(formOf)).toEqual(
      (await readWhole(after.store, `$$${parked}`)).map(formOf),
    );
    expect((await engine.info('jobs', 'workers')).parkedMessageCount).toBe(5);
    await engine.stop();
  });

  test('gets an update and a deletion in the recorded forms', async () => {
    const { engine, store } = await open('3-killed');
    const after = await open('4');
    engine.start();
    const info = await engine.info('jobs', 'pinned');
    await engine.update(
      'jobs',
      'pinned',
      {
        settings: {
          ...info.settings,
          maxRetryCount: 9,
          liveBufferSize: 500,
          readBatchSize: 20,
          historyBufferSize: 500,
          strategy: 'RoundRobin',
        },
        from: 5,
      },
      'system',
    );
    await engine.delete('jobs', 'single', 'system');
    const ours = await readWhole(store, CONFIG_STREAM);
    const theirs = await readWhole(after.store, CONFIG_STREAM);
    expect(ours.map(formOf)).toEqual(theirs.map(formOf));
    for (const stream of [
      checkpointStreamOf('jobs', 'single'),
      `$$${checkpointStreamOf('jobs', 'single')}`,
      `$$${parkedStreamOf('jobs', 'single')}`,
    ]) {
      expect((await readWhole(store, stream)).map(formOf), stream).toEqual(
        (await readWhole(after.store, stream)).map(formOf),
      );
    }
    // A checkpoint that was reached goes before another start.
    await expect(engine.info('jobs', 'pinned')).resolves.toMatchObject({
      lastCheckpointedPosition: '60',
      startFrom: '5',
    });
    await expect(engine.info('jobs', 'single')).rejects.toMatchObject({
      code: 'persistent_subscription_not_found',
      message: 'Subscription group single on stream jobs does not exist.',
    });
    await engine.stop();
  });

  test.each(['1', '2', '3-killed', '4'])(
    '%s: every event that the reference wrote is one that ours would write',
    async (name) => {
      const { store } = await open(name);
      let seen = 0;
      for (let from: 'start' | { commit: number; prepare: number } = 'start'; ;) {
        const page = await store.readAll({ direction: 'forward', from, count: 1_000 });
        for (const event of page.events) seen += checkForm(event);
        if (page.isEnd) break;
        from = page.next;
      }
      expect(seen).toBeGreaterThan(30);
    },
  );
});

/** An event without what differs from run to run. */
function formOf({ type, isJson, data, metadata, number }: StoredEvent) {
  const text = (bytes: Uint8Array) => decodeText(bytes).replace(/"(added|updated)": "[^"]+"/, '"$1": "then"');
  return { type, isJson, number, data: text(data), metadata: text(metadata) };
}

function checkForm(event: StoredEvent): number {
  const text = decodeText(event.data);
  if (event.stream === CONFIG_STREAM) {
    const { updatedBy } = JSON.parse(text) as { updatedBy: string };
    expect(
      decodeText(encodeConfig(decodeConfig(event.data), 0, updatedBy)).replace('1970-01-01T00:00:00+00:00', 'then'),
    ).toBe(text.replace(/"updated": "[^"]+"/, '"updated": "then"'));
  } else if (event.stream.endsWith('-checkpoint') && !event.stream.startsWith('$$')) {
    expect(decodeText(encodeCheckpoint(decodeCheckpoint(event.data)!))).toBe(text);
    expect(event).toMatchObject({ type: 'SubscriptionCheckpoint', isJson: true });
  } else if (event.stream.endsWith('-parked') && !event.stream.startsWith('$$')) {
    const { reason, subscriptionEventNumber = 0 } = JSON.parse(decodeText(event.metadata)) as {
      reason: string;
      subscriptionEventNumber?: number;
    };
    expect(
      decodeText(encodeParkedMetadata(0, reason, subscriptionEventNumber)).replace('1970-01-01T00:00:00+00:00', 'then'),
    ).toBe(formOf(event).metadata);
  } else return 0;
  return 1;
}
