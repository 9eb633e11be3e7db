import { describe, expect, it } from 'vitest';
import { ANY, type EventStore, type StoredEvent } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { layer } from '../../core/streams/layer/layer.ts';
import { redact } from '../../core/streams/redact/redact.ts';
import { Redactions } from '../../core/streams/redactions/redactions.ts';
import { createApp } from '../../handlers/app.ts';
import { engineOver, CONNECT, settings } from '../persistent/support.ts';
import { contextOf } from '../support/app-context.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { setUp } from './setup.ts';

/** What was read before a mark, and is given away after it. */

const SECRET = 'M4RK3R-of-32-bytes-000000000000!';
const ids = new SeededIds(5);

async function filled(count = 3): Promise<{ store: EventStore; clock: ManualClock }> {
  const { store, clock } = setUp();
  const events = Array.from({ length: count }, (_, n) => ({
    id: `11000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    type: 'paid',
    isJson: true,
    data: encodeText(`"${SECRET}"`),
    metadata: encodeText(`{"who":"${SECRET}","$correlationId":"c","$causationId":"x"}`),
  }));
  await store.append('s', ANY, events);
  return { store, clock };
}

const appOver = (store: EventStore, clock: ManualClock) =>
  createApp(
    contextOf({
      store,
      clock,
      ids,
      scavenger: new FakeScavenger(),
      log: silentLog,
      meter: silentMeter,
      security: null,
      node: null,
    }),
  );

const mark = (store: EventStore, metadata: readonly string[] = [], numbers: readonly number[] = [0, 1, 2]) =>
  redact(store, ids, 'ann', { stream: 's', numbers, reason: 'r', metadata });
const seen = ({ isRedacted, data, metadata }: StoredEvent) => [isRedacted, decodeText(data), decodeText(metadata)];
const EMPTY = [true, '', '{"$correlationId":"c","$causationId":"x"}'];

/** The group has read ahead as far as it goes. */
const settled = async () => {
  for (let turn = 0; turn < 60; turn++)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
};

describe('an event that was marked since it was read', () => {
  it('is shown as it reads now', async () => {
    const { store } = await filled();
    const before = await store.readEvent('s', 1);
    expect(store.redactions.shown(before)).toBe(before);
    await mark(store);
    const now = await store.readEvent('s', 1);
    expect(seen(now)).toEqual(EMPTY);
    expect(store.redactions.shown(before)).toEqual(now);
    expect(store.redactions.shown(now)).toEqual(now);
    // A second mark hides more.
    await mark(store, ['$causationId']);
    expect(seen(store.redactions.shown(now))).toEqual([true, '', '{"$correlationId":"c"}']);
  });

  it('is hidden behind a link, and a link that is marked leads nowhere', async () => {
    const { store } = await filled();
    const link = { id: '12000000-0000-4000-8000-000000000000', type: '$>', isJson: false };
    await store.append('l', ANY, [{ ...link, data: encodeText('1@s'), metadata: new Uint8Array(0) }]);
    const resolved = await store.readEvent('l', 0, true);
    await mark(store);
    expect(seen(store.redactions.shown(resolved))).toEqual(EMPTY);
    expect(store.redactions.shown(resolved).link).toBe(resolved.link);
    await redact(store, ids, 'ann', { stream: 'l', numbers: [0], reason: 'r' });
    expect(store.redactions.shown(resolved)).toMatchObject({ stream: 'l', link: null, isRedacted: true });
  });

  it('is one that a mark can be for', async () => {
    const { store } = await filled(1);
    const event = await store.readEvent('s', 0);
    const marks = new Redactions();
    marks.add({ position: event.preparePosition, id: event.id, keys: [] }, 9_000);
    expect(marks.shown(event).isRedacted).toBe(true);
    for (const other of [
      { id: '11000000-0000-4000-8000-000000000009' },
      { preparePosition: event.preparePosition + 1 },
      { position: event.position + 1 },
      { number: TOMBSTONE },
      { stream: '$s' },
    ])
      expect(marks.shown({ ...event, ...other }).isRedacted).toBe(false);
  });

  it('comes empty from subscriptions that have read ahead', async () => {
    const { store } = await filled();
    const ending = new AbortController();
    const { signal } = ending;
    const readers = [
      store.subscribeToStream('s', { after: -1, signal })[Symbol.asyncIterator](),
      store
        .subscribeToAll({ after: 'start', signal, filter: { on: 'stream', prefixes: ['s'] } })
        [Symbol.asyncIterator](),
    ];
    const next = async (reader: (typeof readers)[number]) => {
      const { value } = await reader.next();
      if (value?.kind !== 'event') throw new Error(`not an event: ${value?.kind}`);
      return seen(value.event);
    };
    for (const reader of readers) expect((await next(reader))[0]).toBe(false);
    await mark(store);
    for (const reader of readers) expect([await next(reader), await next(reader)]).toEqual([EMPTY, EMPTY]);
    ending.abort();
  });

  it.each(['connected', 'not taken', 'without a connection'])('comes empty from a group: %s', async (how) => {
    const { store } = await filled();
    const { engine } = engineOver(store);
    engine.start();
    await engine.create('s', 'g', { settings: settings(), from: 'start' }, 'admin');
    await settled();
    const consumer = how === 'not taken' ? await engine.connect('s', 'g', CONNECT) : null;
    await mark(store);
    const deliveries =
      how === 'without a connection'
        ? await engine.take('s', 'g', 3)
        : await (consumer ?? (await engine.connect('s', 'g', CONNECT))).next();
    expect(deliveries.map(({ event }) => seen(event))).toEqual([EMPTY, EMPTY, EMPTY]);
    await engine.stop();
  });

  it('is empty in lines that a client takes in its own time', async () => {
    const { store, clock } = await filled(300);
    const app = appOver(store, clock);
    const reply = await app(
      new Request('http://127.0.0.1:2113/streams/s', { headers: { accept: 'application/x-ndjson' } }),
    );
    const reader = reply.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    const first = decodeText((await reader.read()).value!);
    const sent = first.split('\n').length;
    // The page has 256 events, and the first piece ends within it.
    expect(sent).toBeLessThan(250);
    await mark(
      store,
      [],
      Array.from({ length: 256 - sent }, (_, n) => sent + n),
    );
    let rest = '';
    for (let part = await reader.read(); part.done !== true; part = await reader.read()) rest += decodeText(part.value);
    const lines = (first + rest).trim().split('\n');
    expect(lines).toHaveLength(300);
    const redacted = lines.map((line) => (JSON.parse(line) as { isRedacted: boolean }).isRedacted);
    expect(redacted).toEqual(redacted.map((_, n) => n >= sent && n < 256));
    expect(lines.slice(sent, 256).filter((line) => line.includes(SECRET))).toEqual([]);
  });

  it('is empty among server-sent events that a client takes in its own time', async () => {
    const { store, clock } = await filled(2);
    const { events } = await store.readStream('s', { direction: 'forward', from: 0, count: 2 });
    // Too large to be sent with the one before.
    const page = [events[0]!, { ...events[1]!, data: encodeText(`"${SECRET.repeat(9_000)}"`) }];
    const held = layer(store, {
      follow: async function* <T>() {
        yield { events: page, checkpoints: [], isCaughtUp: true, after: null } as T;
      },
    });
    const app = appOver(held, clock);
    const reply = await app(
      new Request('http://127.0.0.1:2113/streams/s', { headers: { accept: 'text/event-stream' } }),
    );
    const reader = reply.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    expect(decodeText((await reader.read()).value!)).toContain(SECRET);
    await mark(store, [], [1]);
    let rest = '';
    for (let part = await reader.read(); part.done !== true; part = await reader.read()) rest += decodeText(part.value);
    expect(rest).toContain('"isRedacted":true');
    expect(rest).not.toContain(SECRET);
  });
});

describe('the version of redactions, which ETags have', () => {
  it('grows with each mark, also one that hides more of an event, and is the same after all of them were read again', async () => {
    const { store } = await filled();
    const versions = [store.redactions.version];
    for (const metadata of [[], ['$causationId'], ['$causationId', '$correlationId']]) {
      await mark(store, metadata, [1]);
      versions.push(store.redactions.version);
    }
    expect(versions).toEqual([0, 1, 2, 3]);
    expect(store.redactions.count).toBe(1);
    const again = Redactions.of(store.redactions.columns(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER));
    expect(again).toMatchObject({ count: 1, version: 3 });
  });

  it.each(['/streams/s', '/streams/s/head/backward/20'])(
    'is in the ETag of %s, so that no caller keeps the content',
    async (path) => {
      const { store, clock } = await filled();
      const app = appOver(store, clock);
      const get = (etag = '') =>
        app(
          new Request(`http://127.0.0.1:2113${path}`, {
            headers: { accept: 'application/json', ...(etag !== '' && { 'if-none-match': etag }) },
          }),
        );
      const etag = (await get()).headers.get('etag')!;
      expect((await get(etag)).status).toBe(304);
      await mark(store);
      const after = await get(etag);
      expect([after.status, (await after.text()).includes(SECRET)]).toEqual([200, false]);
      expect((await get(after.headers.get('etag')!)).status).toBe(304);
    },
  );
});
