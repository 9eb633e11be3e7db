import { expect, test } from 'vitest';
import { encodeSetting, SETTING_STREAM, SETTING_TYPE } from '../../core/attributes/format/setting.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { encodeText } from '../../core/base/text.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { listAll, type ObjectStore } from '../../core/ports/object-store.ts';
import type { ObjectInstance } from '../../core/shared-log/api.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { commitKey } from '../../core/shared-log/format/object-keys.ts';
import { objectSource } from '../../core/shared-log/overlay/overlay.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { ANY } from '../../core/streams/api.ts';
import { decodeMarks } from '../../core/streams/format/marks-table.ts';
import { redact } from '../../core/streams/redact/redact.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { idleTick, MINUTE_MS } from './erasure-kit.ts';
import { OPTIONS } from './scavenge-kit.ts';
import { compactionTick, eventsOf, manifestOf, uuid, worldOf } from './tick-kit.ts';

/** Redaction of an event of a log in a bucket: every instance shows it empty, however it learnt of the log. */

const MARKER = 'M4RK3R-of-32-bytes-111111111111!';
/** The hour that objects stay, and twice what a writer may know too little of the boundary. */
const GONE_AFTER_MINUTES = 72;

class Bucket {
  readonly clock = new AutoClock();
  readonly objects = new MemoryObjects({ clock: this.clock });
  readonly ids = new SeededIds(3);
  #seed = 100;

  world(objects: ObjectStore = this.objects) {
    return worldOf(objects, this.clock, this.#seed++);
  }
  open(): Promise<ObjectInstance> {
    return openObjectStore(this.world(), OPTIONS);
  }
  async fill({ store }: ObjectInstance): Promise<void> {
    for (let i = 0; i < 4; i++) {
      await store.append('orders', ANY, [
        {
          id: uuid(this.ids),
          type: 'paid',
          isJson: true,
          data: encodeText(`{"card":"${i === 2 ? MARKER : i}"}`),
          metadata: encodeText(`{"who":"${i === 2 ? MARKER : i}","$correlationId":"c"}`),
        },
      ]);
      await store.append('other', ANY, eventsOf(this.ids, 1, 500));
    }
  }
  redact({ store }: ObjectInstance) {
    return redact(store, this.ids, 'ann', { stream: 'orders', numbers: [2], reason: 'a card' });
  }
  async withMarker(): Promise<string[]> {
    const found: string[] = [];
    for await (const { key } of listAll(this.objects, ''))
      if (Buffer.from((await this.objects.get(key))!).includes(MARKER)) found.push(key);
    return found;
  }
}

async function shown({ store }: ObjectInstance): Promise<string> {
  const event = await store.readEvent('orders', 2);
  const { events } = await store.readAll({ direction: 'forward', from: 'start', count: 100, resolveLinks: false });
  const all = events.find(({ stream, number }) => stream === 'orders' && number === 2)!;
  return [event, all]
    .map(
      ({ isRedacted, data, metadata }) =>
        `${isRedacted} ${Buffer.from(data).toString()} ${Buffer.from(metadata).toString()}`,
    )
    .join('|');
}

const EMPTY = 'true  {"$correlationId":"c"}|true  {"$correlationId":"c"}';

test('is seen by instances that follow the tail, begin with it, begin with files, or missed the commit', async () => {
  const bucket = new Bucket();
  await compactionTick(bucket.world());
  const writer = await bucket.open();
  // Without attribute indexes, so that it is the marks that raise the format.
  const setting = encodeSetting({ names: false, correlations: false, tags: false });
  await writer.store.append(SETTING_STREAM, ANY, [
    { ...eventsOf(bucket.ids, 1, 0)[0]!, type: SETTING_TYPE, isJson: true, data: setting },
  ]);
  await bucket.fill(writer);
  const warm = await bucket.open();
  const asleep = await bucket.open();
  expect(await shown(asleep)).toContain(MARKER);
  const before = await bucket.open();
  await bucket.redact(writer);
  expect(await shown(writer)).toBe(EMPTY);
  expect(await shown(warm)).toBe(EMPTY);
  const cold = await bucket.open();
  expect(await shown(cold)).toBe(EMPTY);
  expect((await manifestOf(bucket.objects)).format).toBe(1);
  await compactionTick(bucket.world());
  expect((await manifestOf(bucket.objects)).format).toBe(2);
  const fromFiles = await bucket.open();
  expect(await shown(fromFiles)).toBe(EMPTY);
  // The commits go, so that these two have to go on from the manifest.
  for (let number = 1; number < 20; number++) await bucket.objects.remove([commitKey(number)]);
  bucket.clock.advance(10 * MINUTE_MS);
  expect(await shown(asleep)).toBe(EMPTY);
  expect(await shown(before)).toBe(EMPTY);
  await fromFiles.store.append('orders', ANY, eventsOf(bucket.ids, 1, 10));
  await compactionTick(bucket.world());
  // An instance that knows the mark and misses a commit once more has it once.
  for (let number = 1; number < 30; number++) await bucket.objects.remove([commitKey(number)]);
  bucket.clock.advance(10 * MINUTE_MS);
  for (const instance of [writer, warm, asleep]) {
    expect(await shown(instance)).toBe(EMPTY);
    expect(instance.store.redactions.count).toBe(1);
  }
  expect((await manifestOf(bucket.objects)).format).toBe(2);
  expect(await shown(await bucket.open())).toBe(EMPTY);
});

test('all marks are in the table, in whichever tick they came to it', async () => {
  const bucket = new Bucket();
  await compactionTick(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer);
  for (const number of [2, 0, 3]) {
    await redact(writer.store, bucket.ids, 'ann', { stream: 'orders', numbers: [number], reason: 'a card' });
    await compactionTick(bucket.world());
  }
  for (let number = 1; number < 30; number++) await bucket.objects.remove([commitKey(number)]);
  const { store } = await bucket.open();
  expect(store.redactions.count).toBe(3);
  const { events } = await store.readStream('orders', { direction: 'forward', from: 0, count: 9 });
  expect(events.map(({ isRedacted }) => isRedacted)).toEqual([true, false, true, true]);
});

test('is in no object any more when a scavenge has run and its time is over', async () => {
  const bucket = new Bucket();
  await compactionTick(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer);
  await compactionTick(bucket.world());
  await bucket.redact(writer);
  await startScavenge(bucket.world());
  await writer.close();
  expect(await bucket.withMarker()).not.toEqual([]);
  for (let minute = 1; minute <= GONE_AFTER_MINUTES; minute++) {
    await idleTick(bucket.objects, bucket.clock, 1_000 + minute);
    bucket.clock.advance(MINUTE_MS);
  }
  expect((await manifestOf(bucket.objects)).scavenge).toMatchObject({ state: 'ended', result: 'Success' });
  expect(await bucket.withMarker()).toEqual([]);
  const reader = await bucket.open();
  expect(await shown(reader)).toBe(EMPTY);
  await reader.close();
});

test('a table of marks that is damaged, or gone, opens nothing', async () => {
  const bucket = new Bucket();
  await compactionTick(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer);
  await bucket.redact(writer);
  await compactionTick(bucket.world());
  const { files } = await manifestOf(bucket.objects);
  const { key } = files.find(({ name }) => name === 'redactions')!;
  const bytes = (await bucket.objects.get(key!))!.slice();
  bytes[20]! ^= 1;
  await bucket.objects.put(key!, bytes);
  const codeOf = (error: unknown) => (isSkuaError(error) ? error.code : String(error));
  expect(await bucket.open().catch(codeOf)).toBe('log_corrupt');
  await bucket.objects.remove([key!]);
  expect(await bucket.open().catch(codeOf)).toBe('log_corrupt');
});

test('is told by what a backup takes of the bucket, wherever its mark lies', async () => {
  const bucket = new Bucket();
  await compactionTick(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer);
  const told = async (): Promise<number> => {
    const source = await objectSource(bucket.world(), OPTIONS, new MemoryStorage());
    const { content } = source.snapshot.files.find(({ kind }) => kind === 'redactions') ?? {};
    await source.release();
    return content === undefined ? 0 : decodeMarks('', content, nodeDigests).positions.length;
  };
  expect(await told()).toBe(0);
  await bucket.redact(writer);
  expect(await told()).toBe(1);
  await compactionTick(bucket.world());
  expect(await told()).toBe(1);
  await redact(writer.store, bucket.ids, 'ann', { stream: 'orders', numbers: [0], reason: 'a card' });
  expect(await told()).toBe(2);
  await writer.close();
});
