import { mirrorId } from '../../../core/webhook/ingest/delivery-notes.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MemoryStorage } from '../../../core/ports/memory-storage.ts';
import { SkuaError } from '../../../core/errors.ts';
import { DeliveryMemory } from '../../../core/webhook/ingest/delivery-memory.ts';
import type { OpenStore } from '../../../core/store/open-store.ts';
import { events, setUp } from '../../streams/setup.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import { dataOf, DELIVERIES, FakeActive, openRig, REJECTIONS, until } from './kit.ts';
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
    expect(dataOf(note!)).toMatchObject({ deliveryId: 'd-1', stream: 'a', type: 'WebhookReceived', after: -1, settled: 0 });
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
    ['another connector', async (rig: Rig) => { rig.active.start('letters'); await rig.send({ stream: 'a' }, { ...by('d-1'), connectorId: 'letters' }); }],
    ['the same connector created again', async (rig: Rig) => { await rig.active.stop('parcels'); await hide(rig, DELIVERIES); rig.active.start('parcels', {}, [], 7); await rig.send({ stream: 'a' }, by('d-1')); }],
    ['another delivery', async (rig: Rig) => { await rig.send({ stream: 'a' }, by('d-2')); }],
    ['72 hours later', async (rig: Rig) => { await until(async () => (await rig.read('a')).length === 1); rig.clock.setNow(TEST_NOW_MS + 72 * 3_600_000 + 2_000); await rig.send({ stream: 'c' }, by('d-1')); }],
    ['no deduplication', async (rig: Rig) => { await rig.active.stop('parcels'); rig.active.start('parcels', { deduplication: { enabled: false, header: null, maxAgeMs: 1_000, maxCount: 1 } }); await rig.send({ stream: 'a' }, by('d-1')); }],
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
    rig.active.start('parcels', { waitForWrite: true, deduplication: { enabled: true, header: null, maxAgeMs: 3_600_000, maxCount: 3 } });
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
    expect(await rig.send({ stream: 'gone' }, by('d-1'))).toBe(500);
    expect(await rig.send({ stream: 'here' }, by('d-1'))).toBe(201);
    expect((await rig.read('here')).length).toBe(1);
    expect((await rig.read(DELIVERIES)).map(({ type }) => type)).toEqual(['$webhook-delivery', '$webhook-delivery-withdrawn', '$webhook-delivery']);
    expect((await rig.read(REJECTIONS)).map(dataOf)).toMatchObject([{ status: 500, deliveryId: 'd-1', reason: expect.stringContaining('stream_deleted') }]);
  });
});

describe('a restart', () => {
  /** Notes without their events: what a crash between the two leaves. */
  async function crashed(then: (rig: Rig) => Promise<unknown> = async () => {}) {
    const storage = new MemoryStorage();
    const first = await openRig({ storage });
    first.active.start('parcels');
    first.gated.gate = (stream) => (stream.startsWith('$') ? null : new Promise(() => {}));
    await first.send({ stream: 'a', n: 1 }, by('d-1'));
    await until(async () => (await first.read(DELIVERIES)).length === 1);
    await then(first);
    await first.opened.close();
    const rig = await openRig({ storage, seed: 2 });
    rig.active.start('parcels', { waitForWrite: true, script: 'const route = () => ({ stream: "elsewhere" });' });
    return rig;
  }

  test('between note and event: the event goes where the note says, with the data of the new call', async () => {
    const rig = await crashed();
    expect(await rig.send({ n: 2 }, by('d-1'))).toBe(201);
    expect(await rig.send({ n: 3 }, by('d-1'))).toBe(201);
    expect((await rig.read('a')).map(dataOf)).toEqual([{ n: 2 }]);
    expect(await rig.read('elsewhere')).toEqual([]);
    expect(rig.sandbox.calls).toEqual([]);
  });

  test.each([
    ['the event stands behind the number in the note', async () => {}],
    ['the event is hidden by now', async (rig: Rig) => { await rig.opened.store.append('$$a', -2, [{ id: '00000000-0000-4000-8000-000000000001', type: '$metadata', isJson: true, data: Buffer.from('{"$tb":1}'), metadata: new Uint8Array(0) }]); }],
  ])('behind the event: %s', async (_name, then) => {
    const rig = await crashed(async (first) => {
      const [note] = await first.read(DELIVERIES);
      await first.opened.store.append('a', -2, [{ id: mirrorId(note!.id), type: 'WebhookReceived', isJson: true, data: Buffer.from('{"n":1}'), metadata: new Uint8Array(0) }]);
      await then(first);
    });
    expect(await rig.send({ n: 2 }, by('d-1'))).toBe(201);
    expect((await rig.opened.store.streamInfo('a')).lastEventNumber).toBe(0);
  });

  test('behind the event, when the store itself remembers no ids: the event is found in its stream', async () => {
    const before = setUp();
    const first = await openRig({ opened: before as unknown as OpenStore, clock: before.clock });
    first.active.start('parcels', { waitForWrite: true });
    // One note, so that no later one tells that its event was written.
    await first.send({ stream: 'a', n: 1 }, by('d-1'));
    await before.store.append('a', -2, events(3_000));
    const second = await openRig({ opened: setUp({ from: before, options: { recentIds: 1 } }) as unknown as OpenStore, clock: before.clock, seed: 2 });
    second.active.start('parcels', { waitForWrite: true });
    expect(await second.send({ stream: 'b', n: 2 }, by('d-1'))).toBe(201);
    expect((await second.opened.store.streamInfo('a')).lastEventNumber).toBe(3_000);
    expect(await second.read('b')).toEqual([]);
  });

  test('an event that stands far behind the number in its note is found, and one that is not there is written', async () => {
    const before = setUp();
    const first = await openRig({ opened: before as unknown as OpenStore, clock: before.clock });
    first.active.start('parcels');
    first.gated.gate = (stream) => (stream.startsWith('$') ? null : new Promise(() => {}));
    await first.send({ stream: 'a', n: 1 }, by('d-1'));
    await first.send({ stream: 'a', n: 2 }, by('d-2'));
    await until(async () => (await first.read(DELIVERIES)).length === 2);
    const [note] = await first.read(DELIVERIES);
    await before.store.append('a', -2, events(3_000));
    await before.store.append('a', -2, [{ ...events(1)[0]!, id: mirrorId(note!.id) }]);
    await before.store.append('a', -2, events(3_000));
    const second = await openRig({ opened: setUp({ from: before, options: { recentIds: 1 } }) as unknown as OpenStore, clock: before.clock, seed: 2 });
    second.active.start('parcels', { waitForWrite: true });
    for (const id of ['d-1', 'd-2', 'd-1', 'd-2']) expect(await second.send({ stream: 'b' }, by(id))).toBe(201);
    expect((await second.opened.store.streamInfo('a')).lastEventNumber).toBe(6_001);
    expect(await second.read('b')).toEqual([]);
  });

  test('later notes tell that the event was written, whatever became of its stream', async () => {
    const storage = new MemoryStorage();
    const first = await openRig({ storage });
    first.active.start('parcels', { waitForWrite: true });
    for (let i = 0; i < 5; i++) await first.send({ stream: 'a' }, by(`d-${i}`));
    await first.opened.store.deleteStream('a', -2, 'soft');
    await first.opened.close();
    // The last one has no later note, and its stream tells nothing: the store itself knows the id.
    const second = await openRig({ storage, seed: 2 });
    second.active.start('parcels', { waitForWrite: true });
    for (let i = 0; i < 5; i++) expect(await second.send({ stream: 'b' }, by(`d-${i}`))).toBe(201);
    expect(await second.read('a')).toEqual([]);
    expect(await second.read('b')).toEqual([]);
  });

  test('a note that nobody understands is none', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { waitForWrite: true });
    await rig.send({ stream: 'a' }, by('d-1'));
    const [note] = await rig.read(DELIVERIES);
    await rig.opened.store.deleteStream(DELIVERIES, -2, 'soft');
    await rig.opened.store.append(DELIVERIES, -2, [{ id: note!.id, type: '$webhook-delivery', isJson: true, data: Buffer.from('[]'), metadata: new Uint8Array(0) }]);
    await rig.active.stop('parcels');
    rig.active.start('parcels', { waitForWrite: true });
    expect(await rig.send({ stream: 'b' }, by('d-1'))).toBe(201);
    expect((await rig.read('b')).length).toBe(1);
  });
});

test('two instances write each delivery once', async () => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const one = await openRig({ clock });
  const two = await openRig({ clock, opened: one.opened, seed: 9 });
  for (const rig of [one, two]) rig.active.start('parcels', { waitForWrite: true });
  const random = new Random(3);
  const calls = random.shuffle(Array.from({ length: 600 }, (_, i) => i % 200));
  const statuses = await Promise.all(calls.map((n) => random.pick([one, two]).send({ stream: `s-${n % 7}`, n }, by(`d-${n}`))));
  expect(new Set(statuses)).toEqual(new Set([201]));
  const written: unknown[] = [];
  for (let i = 0; i < 7; i++) written.push(...(await one.read(`s-${i}`)).map((event) => dataOf(event)['n']));
  expect(written.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 200 }, (_, n) => n));
});

test('10 000 redeliveries, out of order and concurrent, with a restart and another script in between, write each event once', async () => {
  const storage = new MemoryStorage();
  const random = new Random(17);
  const DELIVERED = 1_500;
  const calls = random.shuffle(Array.from({ length: 10_000 }, (_, i) => i % DELIVERED));
  let rig = await openRig({ storage, seed: 1 });
  const scripts = ['const route = ({ body }) => ({ stream: `one-${body.n % 10}` });', 'const route = ({ body }) => ({ stream: `two-${body.n % 10}` });'];
  for (let part = 0; part < 4; part++) {
    // A change of the script without a restart, a restart, and a restart on a node that did not stop in an orderly way.
    const active = part === 1 ? rig.active : new FakeActive();
    if (part === 1) await rig.active.stop('parcels');
    else if (part > 1) {
      if (part === 2) await rig.ingest.close();
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
  for (let i = 0; i < 10; i++) for (const stream of [`one-${i}`, `two-${i}`]) written.push(...(await rig.read(stream)).map((event) => Number(dataOf(event)['n'])));
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
      fc.record({ kind: fc.constant('add' as const), key: fc.integer({ min: 0, max: 40 }), skip: fc.integer({ min: 0, max: 2 }) }),
      fc.record({ kind: fc.constantFrom('withdraw' as const, 'settle' as const, 'expire' as const), key: fc.integer({ min: 0, max: 300 }), skip: fc.constant(0) }),
    );
    fc.assert(fc.property(fc.integer({ min: 1, max: 60 }), fc.array(step, { maxLength: 200 }), (max, steps) => {
      const memory = new DeliveryMemory(max);
      let model: { number: number; key: number; isSettled: boolean }[] = [];
      let next = 0;
      for (const { kind, key, skip } of steps) {
        if (kind === 'add') {
          next += skip;
          // Few different low halves: the table must cope with keys that meet.
          memory.add(next, key, key % 3, next);
          model.push({ number: next, key, isSettled: false });
          next++;
          model = model.filter(({ number }) => number >= next - max);
        } else if (kind === 'withdraw') {
          memory.withdraw(key);
          model = model.filter(({ number }) => number !== key);
        } else if (kind === 'settle') {
          memory.settle(key);
          for (const each of model) if (each.number === key) each.isSettled = true;
        } else {
          memory.expire(key);
          model = model.filter(({ number }) => number >= key);
        }
      }
      for (let key = 0; key <= 40; key++) {
        const wanted = model.filter((each) => each.key === key).map(({ number }) => number).reverse();
        const found: number[] = [];
        for (let at = memory.find(key, key % 3, Infinity); at >= 0; at = memory.find(key, key % 3, at)) found.push(at);
        expect(found).toEqual(wanted);
      }
      for (const { number, isSettled } of model) expect(memory.isSettled(number)).toBe(isSettled);
    }), { seed: 7, numRuns: 300 });
  });

  test('grows to what it may hold and no further', () => {
    const memory = new DeliveryMemory(5_000);
    for (let n = 0; n < 20_000; n++) memory.add(n, n * 7, n * 13, n);
    expect([memory.first, memory.next]).toEqual([15_000, 20_000]);
    for (let n = 15_000; n < 20_000; n++) expect(memory.find(n * 7, n * 13, Infinity)).toBe(n);
    expect(memory.find(14_999 * 7, 14_999 * 13, Infinity)).toBe(-1);
  });
});
