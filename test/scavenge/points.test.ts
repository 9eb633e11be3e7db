import { expect, test } from 'vitest';
import { notAhead } from '../../core/scavenge/points/points.ts';
import { ANY } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { append, CHUNK_BYTES, checkpointOf, eventsOf, openWorld, runToEnd, setMetadata } from './control-kit.ts';

/** Scavenge points. */

const EMPTY = new Uint8Array(0);
const chunkOf = (position: number) => Math.floor(position / CHUNK_BYTES);
const point = (over: object = {}) => ({
  id: '10000000-0000-4000-8000-000000000001',
  type: '$scavengePoint',
  isJson: true,
  data: encodeText('{}'),
  metadata: EMPTY,
  ...over,
});

test.each([
  [undefined, '{}'],
  [0, '{}'],
  [2000, '{\n  "threshold": 2000\n}'],
  [-1, '{\n  "threshold": -1\n}'],
])('a threshold of %s is stored as %j', async (threshold, text) => {
  const world = await openWorld();
  await runToEnd(world, threshold === undefined ? {} : { threshold });
  const [event] = await eventsOf(world.open, '$scavengePoints');
  expect(event).toMatchObject({ number: 0, type: '$scavengePoint', isJson: true });
  expect(decodeText(event!.data)).toBe(text);
  expect(event!.metadata).toHaveLength(0);
  expect(checkpointOf(world)!.point).toMatchObject({
    position: event!.preparePosition,
    eventNumber: 0,
    threshold: threshold ?? 0,
  });
  await world.open.close();
});

test('EffectiveNow is the time of the record, to the tick', async () => {
  const world = await openWorld({ nowMs: Date.UTC(2026, 10, 22) + 0.4567 });
  await runToEnd(world);
  const [event] = await eventsOf(world.open, '$scavengePoints');
  expect(checkpointOf(world)!.point).toMatchObject({
    effectiveNowMs: event!.createdMs,
    effectiveNowTicks: event!.createdTicks,
  });
  expect(event!.createdTicks).toBeGreaterThan(4_000);
  await world.open.close();
});

test('a point ends its chunk, whoever writes it', async () => {
  const world = await openWorld();
  const { store } = world.open;
  const before = await append(world.open, 's', 'thing', EMPTY);
  expect(before).toBe(0);
  const { position } = await store.append('$scavengePoints', ANY, [point()]);
  expect(chunkOf(store.end)).toBe(chunkOf(position) + 1);
  expect(store.end % CHUNK_BYTES).toBe(0);
  await world.open.close();
});

test.each([
  ['another stream', 's', [point()]],
  ['another type', '$scavengePoints', [point({ type: '$other' })]],
  ['several events', '$scavengePoints', [point(), point({ id: '10000000-0000-4000-8000-000000000002' })]],
])('%s ends no chunk', async (_what, stream, events) => {
  const world = await openWorld();
  const { position } = await world.open.store.append(stream, ANY, events);
  expect(chunkOf(world.open.store.end)).toBe(chunkOf(position));
  await world.open.close();
});

test('a repeat of the same request ends no further chunk', async () => {
  const world = await openWorld();
  const { store } = world.open;
  await store.append('$scavengePoints', -1, [point()]);
  const { end } = store;
  expect(await store.append('$scavengePoints', -1, [point()])).toMatchObject({ isRepeat: true });
  expect(store.end).toBe(end);
  await world.open.close();
});

test('the point of an administrator is used, with its threshold', async () => {
  const world = await openWorld();
  await world.open.store.append('$scavengePoints', ANY, [point({ data: encodeText('{"threshold":3}') })]);
  await runToEnd(world, { threshold: 9 });
  expect(checkpointOf(world)).toMatchObject({ stage: 'Done', point: { eventNumber: 0, threshold: 3 } });
  await runToEnd(world, { threshold: 9 });
  expect(checkpointOf(world)).toMatchObject({ stage: 'Done', point: { eventNumber: 1, threshold: 9 } });
  await world.open.close();
});

test.each([
  ['another type', { type: 'note' }],
  ['no JSON', { data: encodeText('nonsense') }],
  ['no object', { data: encodeText('7') }],
  ['a threshold that is no number', { data: encodeText('{"threshold":"2"}') }],
  ['a threshold beyond 32 bits', { data: encodeText('{"threshold":4294967296}') }],
])('an event of %s at the end of the stream fails the run', async (_what, over) => {
  const world = await openWorld();
  await world.open.store.append('$scavengePoints', ANY, [point(over)]);
  await runToEnd(world);
  expect(world.open.scavenger.last()).toMatchObject({
    result: 'Errored',
    error: expect.stringMatching(/^Error while scavenging DB: .*\$scavengePoints.*\.$/) as string,
  });
  await world.open.close();
});

test('a stream of points whose events have all expired counts as one without a point', async () => {
  const world = await openWorld();
  await world.open.store.append('$scavengePoints', ANY, [point()]);
  await setMetadata(world.open, '$scavengePoints', { $maxAge: 60 });
  await world.clock.advance(120_000);
  await runToEnd(world, { syncOnly: true });
  expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
  expect(checkpointOf(world)).toBeNull();
  await world.open.close();
});

test('its time, as it counts for a run, is not ahead of the clock', () => {
  const ahead = { position: 1, eventNumber: 0, effectiveNowMs: 1_000, effectiveNowTicks: 7, threshold: 0 };
  expect(notAhead(ahead, 1_001)).toBe(ahead);
  expect(notAhead(ahead, 1_000.5)).toBe(ahead);
  expect(notAhead(ahead, 1_000)).toEqual({ position: 1, eventNumber: 0, effectiveNowMs: 1_000, threshold: 0 });
  expect(notAhead(ahead, 900.25)).toEqual({ ...ahead, effectiveNowMs: 900, effectiveNowTicks: 2_500 });
});
