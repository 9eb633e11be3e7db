import { afterEach, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { AccessLists } from '../../../core/security/stream-access/stream-access.ts';
import type { Store } from '../../../core/store/store.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { encodeText } from '../../../core/base/text.ts';
import { createConnectors } from '../../../core/webhook/connectors/connectors.ts';
import { createIngest } from '../../../core/webhook/ingest/ingest.ts';
import { SealedSecrets } from '../../../core/security/sealed-secrets/sealed-secrets.ts';
import { Deadline } from '../../../infra/aws/functions/deadline.ts';
import { confirmedConnectors, confirmedIngest } from '../../../infra/aws/functions/function-webhooks.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { worldOf } from '../../shared-log/tick-kit.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../../support/test-store.ts';
import { base64, FakeSandbox, settings } from '../connectors/kit.ts';
import { callOf, dataOf, FakeActive, noteAsBefore, openRig, REJECTIONS, until } from './kit.ts';
import type { Rig } from './kit.ts';

/**
 * Connectors write as `connector:{id}`, in no group: what `$w` of a stream, or the defaults, keep them from is not
 * written.
 */

let opened: Store | null = null;
afterEach(async () => {
  await opened?.close();
  opened = null;
});

let made = 0;
const event = (type: string, value: unknown) => ({
  id: `40000000-0000-4000-8000-${String(++made).padStart(12, '0')}`,
  type,
  isJson: true,
  data: encodeText(JSON.stringify(value)),
  metadata: new Uint8Array(0),
});
const allow = (store: EventStore, stream: string, writers: readonly string[]) =>
  store.append(`$$${stream}`, ANY, [event('$metadata', { $acl: { $w: writers } })]);
const listsOf = (store: EventStore, clock: ManualClock) =>
  new AccessLists({ store, clock, log: silentLog, meter: silentMeter, allowAnonymous: false });

async function rigged(): Promise<Rig> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  opened = await openTestStore({ storage: new MemoryStorage(), clock, verifyChunks: false });
  return openRig({ clock, opened, access: listsOf(opened.store, clock) });
}

test.each([true, false])(
  'what its list denies is answered as an invalid stream and noted, waiting for the write: %s',
  async (waitForWrite) => {
    const rig = await rigged();
    rig.active.start('parcels', { waitForWrite });
    const good = waitForWrite ? 201 : 202;
    expect(await rig.send({ stream: 'free' })).toBe(good);
    for (const [writers, status] of [
      [['olga'], 500],
      [['$ops'], 500],
      [['$admins'], 500],
      [[], 500],
      [['connector:letters'], 500],
      [['connector:parcels'], good],
      [['$all'], good],
    ] as const) {
      await allow(rig.opened.store, 'payroll', writers);
      expect([writers, await rig.send({ stream: 'payroll', writers })]).toEqual([writers, status]);
    }
    await rig.ingest.close();
    expect((await rig.read('payroll')).map((each) => dataOf(each)['writers'])).toEqual([
      ['connector:parcels'],
      ['$all'],
    ]);
    const notes = (await rig.read(REJECTIONS)).map(dataOf);
    expect(notes.map(({ status }) => status)).toEqual([500, 500, 500, 500, 500]);
    expect(notes[0]!['reason']).toMatch(/may not write to the stream "payroll".*connector:parcels/);
    expect(rig.meter.counts.get('eventstore_webhook_calls_total parcels refused-stream')).toBe(5);
    expect(rig.meter.counts.get('eventstore_webhook_losses_total parcels')).toBeUndefined();
  },
);

test('what the defaults deny, too', async () => {
  const rig = await rigged();
  rig.active.start('parcels', { waitForWrite: true });
  await rig.opened.store.append('$settings', ANY, [event('update', { $userStreamAcl: { $r: '$all', $w: '$ops' } })]);
  expect(await rig.send({ stream: 'orders' })).toBe(500);
  await allow(rig.opened.store, 'orders', ['connector:parcels']);
  expect(await rig.send({ stream: 'orders' })).toBe(201);
  await rig.ingest.close();
});

test.each([
  [false, 202],
  [true, 500],
] as const)(
  'a list that is written between the question and the event decides; the loss is noted, waiting for the write: %s',
  async (waitForWrite, status) => {
    const rig = await rigged();
    rig.active.start('parcels', { waitForWrite });
    let isClosed = false;
    rig.gated.gate = async (stream) => {
      if (stream !== 'payroll' || isClosed) return;
      isClosed = true;
      await allow(rig.opened.store, 'payroll', ['ada']);
    };
    const headers = { 'webhook-id': 'first' };
    expect(await rig.send({ stream: 'payroll' }, { headers })).toBe(status);
    await rig.ingest.close();
    expect(await rig.read('payroll')).toEqual([]);
    const notes = (await rig.read(REJECTIONS)).map(dataOf);
    expect(notes).toMatchObject([{ status, reason: expect.stringContaining('access_denied'), deliveryId: 'first' }]);
    expect(rig.meter.counts.get('eventstore_webhook_losses_total parcels')).toBe(1);
  },
);

test('where a leader decides by more than the list, both decide', async () => {
  const rig = await rigged();
  rig.active.start('parcels', { waitForWrite: true });
  const asked: string[] = [];
  const byLeader = (refuses: boolean) => () => {
    asked.push(refuses ? 'refused' : 'allowed');
    return refuses ? new SkuaError('not_leader', 'No longer.') : null;
  };
  const send = (stream: string, refuses: boolean) =>
    rig.ingest.receive(
      { ...callOf({ stream }, rig.clock), authorize: byLeader(refuses) },
      () => new AbortController().signal,
    );
  expect(await send('payroll', false)).toBe(201);
  expect(await send('payroll', true)).not.toBe(201);
  let isClosed = false;
  rig.gated.gate = async (stream) => {
    if (stream !== 'payroll' || isClosed) return;
    isClosed = true;
    await allow(rig.opened.store, 'payroll', ['ada']);
  };
  expect(await send('payroll', false)).toBe(500);
  await rig.ingest.close();
  expect(asked.slice(0, 2)).toEqual(['allowed', 'refused']);
  expect(await rig.read('payroll')).toHaveLength(1);
});

test('defaults that change while a write is tried again are asked anew', async () => {
  const rig = await rigged();
  rig.active.start('parcels');
  let attempts = 0;
  const { store } = rig.opened;
  rig.gated.refuse = (stream) => (stream === 'orders' && attempts++ === 0 ? new SkuaError('too_busy', 'Busy.') : null);
  rig.gated.gate = async (stream) => {
    if (stream === 'orders' && attempts === 0)
      await store.append('$settings', ANY, [event('update', { $userStreamAcl: { $w: '$ops' } })]);
  };
  expect(await rig.send({ stream: 'orders' })).toBe(202);
  await until(async () => {
    await rig.clock.advance(1_000);
    return (await rig.read(REJECTIONS)).length + (await rig.read('orders')).length > 0;
  });
  expect(await rig.read('orders')).toEqual([]);
  expect(attempts).toBe(2);
  await rig.ingest.close();
});

test('a note of an earlier version counts for the script, and not for the list', async () => {
  const rig = await rigged();
  rig.active.start('parcels', { waitForWrite: true });
  await noteAsBefore(rig, 'again', 'payroll');
  await allow(rig.opened.store, 'payroll', ['ada']);
  expect(await rig.send({ stream: 'free' }, { headers: { 'webhook-id': 'again' } })).toBe(500);
  expect(await rig.read('free')).toEqual([]);
  expect(await rig.read('payroll')).toEqual([]);
  await rig.ingest.close();
});

test('a trial says so', async () => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  opened = await openTestStore({ storage: new MemoryStorage(), clock, verifyChunks: false });
  const { store } = opened;
  const connectors = createConnectors({
    store,
    access: listsOf(store, clock),
    clock,
    ids: new SeededIds(5),
    log: silentLog,
    sandbox: new FakeSandbox(),
    secrets: new SealedSecrets(nodeKeys, ['token']),
  });
  await connectors.create(
    'parcels',
    null,
    settings({ routingScript: base64('const route = ({ body }) => ({ stream: body.stream ?? "none" });') }),
  );
  await allow(store, 'payroll', ['olga', 'connector:letters']);
  const tried = (connectorId: string, stream: string, more?: Parameters<typeof connectors.test>[2]) =>
    connectors.test(connectorId, { body: JSON.stringify({ stream }), headers: {}, query: {} }, more);
  expect(await tried('parcels', 'payroll')).toMatchObject({
    outcome: 'failed',
    stream: 'payroll',
    error: expect.stringContaining('connector:parcels'),
  });
  expect(await tried('parcels', 'free')).toMatchObject({ outcome: 'routed', error: null });
  expect(
    await tried(
      'letters',
      'payroll',
      settings({ routingScript: base64('const route = () => ({ stream: "payroll" });') }),
    ),
  ).toMatchObject({ outcome: 'routed' });
  await connectors.close();
});

test('in a function, whose store others write to, a list that another process wrote decides', async () => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const objects = new MemoryObjects({ clock });
  const [own, other] = [
    await openObjectStore(worldOf(objects, clock, 2)),
    await openObjectStore(worldOf(objects, clock, 3)),
  ];
  const source = new FakeActive();
  const deadline = new Deadline();
  deadline.begin(() => 20_000);
  const parts = {
    store: own.store,
    access: listsOf(own.store, clock),
    sandbox: new FakeSandbox(),
    keys: nodeKeys,
    clock,
    ids: new SeededIds(7),
    log: silentLog,
    meter: silentMeter,
  };
  const ingest = confirmedIngest(createIngest({ ...parts, active: confirmedConnectors(source, deadline) }), source);
  source.start('parcels');
  const send = (body: unknown) => ingest.receive(callOf(body, clock), () => new AbortController().signal);
  expect(await send({ stream: 'payroll', n: 0 })).toBe(202);
  await allow(other.store, 'payroll', ['ada']);
  expect(await send({ stream: 'payroll', n: 1 })).toBe(500);
  await allow(other.store, 'payroll', ['connector:parcels']);
  expect(await send({ stream: 'payroll', n: 2 })).toBe(202);
  const { events } = await other.store.readStream('payroll', { direction: 'forward', from: 0, count: 10 });
  expect(events.map((each) => dataOf(each)['n'])).toEqual([0, 2]);
  await own.close();
  await other.close();
});
