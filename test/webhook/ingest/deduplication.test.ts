import { deliveryEventId } from '../../../core/webhook/ingest/delivery.ts';
import { mirrorId } from '../../../core/webhook/ingest/delivery-notes.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { DeliveryMemory } from '../../../core/webhook/ingest/delivery-memory.ts';
import type { StreamAccess } from '../../../core/security/api.ts';
import type { Store } from '../../../core/store/store.ts';
import { events, setUp } from '../../streams/setup.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import { dataOf, DELIVERIES, FakeActive, noteAsBefore, openRig, REJECTIONS, until } from './kit.ts';
import type { Rig } from './kit.ts';

const by = (id: string) => ({ headers: { 'x-github-delivery': id } });

async function idle(rig: Rig): Promise<void> {
  await rig.active.stop('parcels');
}

describe('one delivery', () => {
  test('is written once, and its script runs once', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    expect(await rig.send({ stream: 'a', n: 1 }, by('d-1'))).toBe(202);
    await until(async () => (await rig.read('a')).length === 1);
    expect(await rig.send({ stream: 'a', n: 2 }, by('d-1'))).toBe(202);
    expect(await rig.send({ stream: 'b', n: 3 }, by('d-1'))).toBe(202);
    await idle(rig);
    expect((await rig.read('a')).map(dataOf)).toEqual([{ stream: 'a', n: 1 }]);
    expect(await rig.read('b')).toEqual([]);
    expect(rig.sandbox.calls.length).toBe(1);
    expect(rig.meter.counts.get('eventstore_webhook_calls_total parcels duplicate')).toBe(2);
    const [note] = await rig.read(DELIVERIES);
    expect(dataOf(note!)).toEqual({ deliveryId: 'd-1', stream: 'a', type: 'WebhookReceived' });
    expect(mirrorId(note!.id)).toBe((await rig.read('a'))[0]!.id);
  });

  test('is shared by calls that come while it is under way', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    const statuses = await Promise.all(Array.from({ length: 50 }, (_, n) => rig.send({ stream: 'a', n }, by('d-1'))));
    expect(new Set(statuses)).toEqual(new Set([201]));
    expect(rig.sandbox.calls.length).toBe(1);
    expect((await rig.read('a')).map(dataOf)).toEqual([{ stream: 'a', n: 0 }]);
  });

  test('that was refused can come again', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    expect(await rig.send({}, by('d-1'))).toBe(400);
    expect(await rig.send({ stream: 'a' }, by('d-1'))).toBe(202);
    await idle(rig);
    expect((await rig.read('a')).length).toBe(1);
  });

  test.each([
    [
      'another connector',
      async (rig: Rig) => {
        rig.active.start('letters');
        await rig.send({ stream: 'a' }, { ...by('d-1'), connectorId: 'letters' });
      },
    ],
    [
      'the same connector created again',
      async (rig: Rig) => {
        await rig.active.stop('parcels');
        await hide(rig, DELIVERIES);
        rig.active.start('parcels', {}, [], 7);
        await rig.send({ stream: 'a' }, by('d-1'));
      },
    ],
    [
      'another delivery',
      async (rig: Rig) => {
        await rig.send({ stream: 'a' }, by('d-2'));
      },
    ],
    [
      '72 hours later',
      async (rig: Rig) => {
        await until(async () => (await rig.read('a')).length === 1);
        rig.clock.setNow(TEST_NOW_MS + 72 * 3_600_000 + 2_000);
        await rig.send({ stream: 'c' }, by('d-1'));
      },
    ],
    [
      'no deduplication',
      async (rig: Rig) => {
        await rig.active.stop('parcels');
        rig.active.start('parcels', { deduplication: { enabled: false, header: null, maxAgeMs: 1_000, maxCount: 1 } });
        await rig.send({ stream: 'a' }, by('d-1'));
      },
    ],
  ])('is another one: %s', async (_name, again) => {
    const rig = await openRig();
    rig.active.start('parcels');
    await rig.send({ stream: 'a' }, by('d-1'));
    await again(rig);
    await rig.ingest.close();
    expect((await rig.read('a')).length + (await rig.read('c')).length).toBe(2);
  });

  async function hide(rig: Rig, stream: string): Promise<void> {
    await rig.opened.store.deleteStream(stream, -2, 'soft');
  }

  test('is forgotten when too many came behind it', async () => {
    const rig = await openRig();
    rig.active.start('parcels', {
      waitForWrite: true,
      deduplication: { enabled: true, header: null, maxAgeMs: 3_600_000, maxCount: 3 },
    });
    for (const id of ['1', '2', '3', '4']) await rig.send({ stream: `s-${id}` }, by(id));
    for (const id of ['4', '3', '2', '1']) await rig.send({ stream: 'again' }, by(id));
    await idle(rig);
    expect((await rig.read('again')).length).toBe(1);
    expect((await rig.opened.store.streamInfo(DELIVERIES)).metadata).toEqual({ maxCount: 3, maxAge: 3_600 });
  });

  test('goes where a better script sends it after a stream refused it for good', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    await rig.opened.store.deleteStream('gone', -2, 'hard');
    expect(await rig.send({ stream: 'gone' }, by('d-1'))).toBe(422);
    expect(await rig.send({ stream: 'here' }, by('d-1'))).toBe(201);
    expect((await rig.read('here')).length).toBe(1);
    expect((await rig.read(DELIVERIES)).map(({ type }) => type)).toEqual(['$webhook-delivery']);
    await until(async () => (await rig.read(REJECTIONS)).length === 1);
    expect((await rig.read(REJECTIONS)).map(dataOf)).toMatchObject([
      { status: 422, deliveryId: 'd-1', reason: expect.stringContaining('stream_deleted') },
    ]);
  });
});

describe('a restart', () => {
  test('behind a delivery: its note tells that the event was written, whatever became of its stream and of the ids that the store remembers', async () => {
    const before = setUp();
    const first = await openRig({ opened: before as unknown as Store, clock: before.clock });
    first.active.start('parcels', { waitForWrite: true });
    for (let i = 0; i < 5; i++) await first.send({ stream: 'a', n: 1 }, by(`d-${i}`));
    await first.opened.store.deleteStream('a', -2, 'soft');
    const second = await openRig({
      opened: setUp({ from: before, options: { recentIds: 1 } }) as unknown as Store,
      clock: before.clock,
      seed: 2,
    });
    second.active.start('parcels', { waitForWrite: true });
    for (let i = 0; i < 5; i++) expect(await second.send({ stream: 'b' }, by(`d-${i}`))).toBe(201);
    expect(await second.read('a')).toEqual([]);
    expect(await second.read('b')).toEqual([]);
    expect(second.sandbox.calls).toEqual([]);
  });

  test('a note that nobody understands is none', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    await rig.send({ stream: 'a' }, by('d-1'));
    const [note] = await rig.read(DELIVERIES);
    await rig.opened.store.deleteStream(DELIVERIES, -2, 'soft');
    await rig.opened.store.append(DELIVERIES, -2, [
      { id: note!.id, type: '$webhook-delivery', isJson: true, data: Buffer.from('[]'), metadata: new Uint8Array(0) },
    ]);
    await rig.active.stop('parcels');
    rig.active.start('parcels', { waitForWrite: true });
    expect(await rig.send({ stream: 'b' }, by('d-1'))).toBe(201);
    expect((await rig.read('b')).length).toBe(1);
  });
});

describe('notes of earlier versions, which came before their events', () => {
  const ELSEWHERE = { waitForWrite: true, script: 'const route = () => ({ stream: "elsewhere" });' };
  const event = (id: string, data: string, type = 'WebhookReceived') => ({
    id,
    type,
    isJson: true,
    data: Buffer.from(data),
    metadata: new Uint8Array(0),
  });

  test('without its event: that goes where the note says, with the data of the new call and a note of its own', async () => {
    const rig = await openRig();
    rig.active.start('parcels', ELSEWHERE);
    await noteAsBefore(rig, 'd-1', 'a');
    expect(await rig.send({ n: 2 }, by('d-1'))).toBe(201);
    expect(await rig.send({ n: 3 }, by('d-1'))).toBe(201);
    expect((await rig.read('a')).map(dataOf)).toEqual([{ n: 2 }]);
    expect(await rig.read('elsewhere')).toEqual([]);
    expect((await rig.read(DELIVERIES)).map((note) => dataOf(note)['after'])).toEqual([-1, undefined]);
    expect(rig.sandbox.calls).toEqual([]);
  });

  test.each([
    ['stands behind the number in the note', async () => {}],
    [
      'is hidden by now',
      async (rig: Rig) => {
        await rig.opened.store.append('$$a', -2, [
          event('00000000-0000-4000-8000-000000000001', '{"$tb":1}', '$metadata'),
        ]);
      },
    ],
  ])('whose event %s', async (_name, then) => {
    const rig = await openRig();
    rig.active.start('parcels', ELSEWHERE);
    await rig.opened.store.append('a', -2, [event(await noteAsBefore(rig, 'd-1', 'a'), '{"n":1}')]);
    await then(rig);
    expect(await rig.send({ n: 2 }, by('d-1'))).toBe(201);
    expect((await rig.opened.store.streamInfo('a')).lastEventNumber).toBe(0);
    expect(await rig.read('elsewhere')).toEqual([]);
  });

  test('whose event stands far behind the number in the note, or is not there', async () => {
    const before = setUp();
    const first = await openRig({ opened: before as unknown as Store, clock: before.clock });
    first.active.start('parcels');
    const id = await noteAsBefore(first, 'd-1', 'a');
    await noteAsBefore(first, 'd-2', 'a');
    await before.store.append('a', -2, events(3_000));
    await before.store.append('a', -2, [{ ...events(1)[0]!, id }]);
    await before.store.append('a', -2, events(3_000));
    const second = await openRig({
      opened: setUp({ from: before, options: { recentIds: 1 } }) as unknown as Store,
      clock: before.clock,
      seed: 2,
    });
    second.active.start('parcels', ELSEWHERE);
    for (const delivery of ['d-1', 'd-2', 'd-1', 'd-2']) expect(await second.send({}, by(delivery))).toBe(201);
    expect((await second.opened.store.streamInfo('a')).lastEventNumber).toBe(6_001);
    expect(await second.read('elsewhere')).toEqual([]);
  });

  test('that was withdrawn counts as none', async () => {
    const rig = await openRig();
    rig.active.start('parcels', ELSEWHERE);
    await noteAsBefore(rig, 'd-1', 'a');
    await rig.opened.store.append(DELIVERIES, -2, [
      event('00000000-0000-4000-8000-000000000001', '{"number":0}', '$webhook-delivery-withdrawn'),
    ]);
    expect(await rig.send({}, by('d-1'))).toBe(201);
    expect([(await rig.read('a')).length, (await rig.read('elsewhere')).length]).toEqual([0, 1]);
  });
});

describe('deliveries that wait together', () => {
  /** Sends the first alone, and the others while it is being written. */
  async function together(rig: Rig, bodies: readonly object[]): Promise<number[]> {
    let open = () => {};
    let isOpen = false;
    rig.gated.gate = (stream) =>
      stream.startsWith('$') || isOpen
        ? null
        : new Promise((resolve) => {
            open = resolve;
          });
    const first = rig.send({ stream: 'first' }, by('first'));
    await until(() => rig.sandbox.calls.length === 1);
    const others = bodies.map((body, i) => rig.send(body, by(`d-${i}`)));
    await until(() => rig.sandbox.calls.length === 1 + bodies.length);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    isOpen = true;
    open();
    return Promise.all([first, ...others]);
  }

  test('are one commit, in their order', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    let commits = 0;
    rig.gated.refuse = (stream) => {
      if (stream === DELIVERIES) commits++;
      return null;
    };
    const bodies = Array.from({ length: 50 }, (_, n) => ({ stream: `s-${n % 3}`, n }));
    expect(new Set(await together(rig, bodies))).toEqual(new Set([201]));
    expect(commits).toBe(2);
    const { events } = await rig.opened.store.readAll({
      direction: 'forward',
      from: 'start',
      count: 1_000,
      filter: { on: 'stream', prefixes: ['s-'] },
    });
    expect(events.map((each) => dataOf(each)['n'])).toEqual(bodies.map(({ n }) => n));
    expect((await rig.read(DELIVERIES)).map((note) => dataOf(note)['deliveryId'])).toEqual([
      'first',
      ...bodies.map(({ n }) => `d-${n}`),
    ]);
  });

  test('of which some are refused for good: the others are written, and each once', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    for (const gone of ['gone-0', 'gone-1']) await rig.opened.store.deleteStream(gone, -2, 'hard');
    const bodies = Array.from({ length: 60 }, (_, n) => ({ stream: n % 4 === 2 ? `gone-${n % 3}` : `s-${n % 3}`, n }));
    const isGone = ({ stream }: { stream: string }) => stream === 'gone-0' || stream === 'gone-1';
    expect(await together(rig, bodies)).toEqual([201, ...bodies.map((body) => (isGone(body) ? 422 : 201))]);
    const names = [...new Set(bodies.filter((body) => !isGone(body)).map(({ stream }) => stream))];
    for (const name of names)
      expect((await rig.read(name)).map((each) => dataOf(each)['n'])).toEqual(
        bodies.filter(({ stream }) => stream === name).map(({ n }) => n),
      );
    expect((await rig.read(DELIVERIES)).length).toBe(1 + bodies.filter((body) => !isGone(body)).length);
    expect(rig.meter.counts.get('eventstore_webhook_losses_total parcels')).toBe(bodies.filter(isGone).length);
  });

  test('of which one came under a lead that is over: it alone is refused', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    const refuses = () => new SkuaError('not_leader', 'No longer.');
    const send = rig.ingest.receive.bind(rig.ingest);
    rig.ingest.receive = (call, signalOf) =>
      send(call.headers.get('x-github-delivery') === 'd-3' ? { ...call, authorize: refuses } : call, signalOf);
    expect(
      await together(
        rig,
        Array.from({ length: 9 }, () => ({ stream: 'a' })),
      ),
    ).toEqual([201, 201, 201, 201, 503, 201, 201, 201, 201, 201]);
  });

  test('of which the event of one is there without a note: it is written once, and counts as written', async () => {
    const rig = await openRig();
    const connector = rig.active.start('parcels', { waitForWrite: true });
    await rig.opened.store.append('a', -2, [{ ...events(1)[0]!, id: deliveryEventId(nodeKeys, connector, 'd-1') }]);
    expect(
      await together(
        rig,
        Array.from({ length: 4 }, (_, n) => ({ stream: n === 1 ? 'a' : 'b' })),
      ),
    ).toEqual([201, 201, 201, 201, 201]);
    expect([(await rig.read('a')).length, (await rig.read('b')).length]).toEqual([1, 3]);
  });

  test('are no more than a commit may have bytes', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    const sizes: number[] = [];
    const { appendToStreams } = rig.opened.store;
    rig.opened.store.appendToStreams = (writes, options) => {
      sizes.push(writes.length - 1);
      return appendToStreams.call(rig.opened.store, writes, options);
    };
    expect(
      new Set(
        await together(
          rig,
          Array.from({ length: 5 }, () => ({ stream: 'a', x: 'x'.repeat(2_000_000) })),
        ),
      ),
    ).toEqual(new Set([201]));
    expect(sizes).toEqual([1, 3, 2]);
  });
});

test('what is read of the notes of another instance while a list is on its way counts as unseen by that list', async () => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  let meanwhile: (() => Promise<void>) | null = null;
  const authorizeWrite = async () => {
    const now = meanwhile;
    meanwhile = null;
    await now?.();
    return null;
  };
  const one = await openRig({ clock, access: { check: async () => {}, authorizeWrite } as unknown as StreamAccess });
  const two = await openRig({ clock, opened: one.opened, seed: 9 });
  for (const [rig, stream] of [
    [one, 'one'],
    [two, 'two'],
  ] as const)
    rig.active.start('parcels', { waitForWrite: true, script: `const route = () => ({ stream: "${stream}" });` });
  for (const rig of [one, two]) await rig.send({}, by('d-0'));
  meanwhile = async () => {
    expect(await two.send({}, by('d-1'))).toBe(201);
    expect(await one.send({}, by('d-0'))).toBe(201);
  };
  expect(await one.send({}, by('d-1'))).toBe(201);
  expect([(await one.read('one')).length, (await one.read('two')).length]).toEqual([1, 1]);
});

test('two instances write each delivery once', async () => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const one = await openRig({ clock });
  const two = await openRig({ clock, opened: one.opened, seed: 9 });
  for (const [i, rig] of [one, two].entries())
    rig.active.start('parcels', {
      waitForWrite: true,
      script: `const route = ({ body }) => ({ stream: \`\${body.stream}-${i}\` });`,
    });
  const random = new Random(3);
  const calls = random.shuffle(Array.from({ length: 600 }, (_, i) => i % 200));
  const statuses = await Promise.all(
    calls.map((n) => random.pick([one, two]).send({ stream: `s-${n % 7}`, n }, by(`d-${n}`))),
  );
  expect(new Set(statuses)).toEqual(new Set([201]));
  const written: unknown[] = [];
  for (let i = 0; i < 14; i++)
    written.push(...(await one.read(`s-${i >> 1}-${i & 1}`)).map((event) => dataOf(event)['n']));
  expect(written.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 200 }, (_, n) => n));
});

test('10 000 redeliveries, out of order and concurrent, with a restart and another script in between, write each event once', async () => {
  const storage = new MemoryStorage();
  const random = new Random(17);
  const DELIVERED = 1_500;
  const calls = random.shuffle(Array.from({ length: 10_000 }, (_, i) => i % DELIVERED));
  let rig = await openRig({ storage, seed: 1 });
  const scripts = [
    'const route = ({ body }) => ({ stream: `one-${body.n % 10}` });',
    'const route = ({ body }) => ({ stream: `two-${body.n % 10}` });',
  ];
  for (let part = 0; part < 4; part++) {
    // A change of the script without a restart, a restart, and a restart on a node that did not stop in an orderly way.
    const active = part === 1 ? rig.active : new FakeActive();
    if (part === 1) await rig.active.stop('parcels');
    else if (part > 1) {
      // What is accepted and not yet written ends with the node.
      if (part === 2) await rig.ingest.close();
      else await until(async () => (await rig.read(DELIVERIES)).length === new Set(calls.slice(0, part * 2_500)).size);
      await rig.opened.close();
      rig = await openRig({ storage, seed: part + 1, active });
    } else rig = await openRig({ clock: rig.clock, opened: rig.opened, active, seed: 50 });
    rig.active.start('parcels', { script: scripts[part % 2]! });
    const mine = calls.slice(part * 2_500, (part + 1) * 2_500);
    for (let i = 0; i < mine.length; i += 64) {
      const statuses = await Promise.all(mine.slice(i, i + 64).map((n) => rig.send({ n }, by(`d-${n}`))));
      expect(new Set(statuses)).toEqual(new Set([202]));
    }
  }
  await rig.ingest.close();
  const written: number[] = [];
  for (let i = 0; i < 10; i++)
    for (const stream of [`one-${i}`, `two-${i}`])
      written.push(...(await rig.read(stream)).map((event) => Number(dataOf(event)['n'])));
  expect(written.sort((a, b) => a - b)).toEqual(Array.from({ length: DELIVERED }, (_, n) => n));
});

test('a delivery whose note can not be written is not written either', async () => {
  const rig = await openRig();
  rig.active.start('parcels', { waitForWrite: true });
  rig.gated.refuse = (stream) => (stream === DELIVERIES ? new SkuaError('writer_stopped', 'Stopped.') : null);
  expect(await rig.send({ stream: 'a' }, by('d-1'))).toBe(503);
  rig.gated.refuse = () => null;
  expect(await rig.read('a')).toEqual([]);
  expect(await rig.send({ stream: 'a' }, by('d-1'))).toBe(201);
});

describe('the memory of deliveries', () => {
  test('agrees with a list', () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('add' as const),
        key: fc.integer({ min: 0, max: 40 }),
        skip: fc.integer({ min: 0, max: 2 }),
      }),
      fc.record({
        kind: fc.constantFrom('withdraw' as const, 'expire' as const),
        key: fc.integer({ min: 0, max: 300 }),
        skip: fc.constant(0),
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.array(step, { maxLength: 200 }), (max, steps) => {
        const memory = new DeliveryMemory(max);
        let model: { number: number; key: number }[] = [];
        let next = 0;
        for (const { kind, key, skip } of steps) {
          if (kind === 'add') {
            next += skip;
            // Few different low halves: the table must cope with keys that meet.
            memory.add(next, key, key % 3, next);
            model.push({ number: next, key });
            next++;
            model = model.filter(({ number }) => number >= next - max);
          } else if (kind === 'withdraw') {
            memory.withdraw(key);
            model = model.filter(({ number }) => number !== key);
          } else {
            memory.expire(key);
            model = model.filter(({ number }) => number >= key);
          }
        }
        for (let key = 0; key <= 40; key++) {
          const wanted = model
            .filter((each) => each.key === key)
            .map(({ number }) => number)
            .reverse();
          const found: number[] = [];
          for (let at = memory.find(key, key % 3, Infinity); at >= 0; at = memory.find(key, key % 3, at))
            found.push(at);
          expect(found).toEqual(wanted);
        }
      }),
      { seed: 7, numRuns: 300 },
    );
  });

  test('grows to what it may hold and no further', () => {
    const memory = new DeliveryMemory(5_000);
    for (let n = 0; n < 20_000; n++) memory.add(n, n * 7, n * 13, n);
    expect([memory.first, memory.next]).toEqual([15_000, 20_000]);
    for (let n = 15_000; n < 20_000; n++) expect(memory.find(n * 7, n * 13, Infinity)).toBe(n);
    expect(memory.find(14_999 * 7, 14_999 * 13, Infinity)).toBe(-1);
  });
});
