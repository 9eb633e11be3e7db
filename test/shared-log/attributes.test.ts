import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { AttributeSetting } from '../../core/attributes/api.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { ATTRIBUTE_TABLE_NAME } from '../../core/shared-log/format/manifest-attributes.ts';
import { verifyObjects } from '../../core/shared-log/verify/verify.ts';
import { objectSource } from '../../core/shared-log/overlay/overlay.ts';
import type { ObjectInstance } from '../../core/shared-log/api.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY, type EventQuery } from '../../core/streams/api.ts';
import { FOOTER_BYTES, MD5_BYTES } from '../../core/index/format/table-format.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { Random } from '../support/random.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import {
  anyEvent,
  everything,
  expectAnswers,
  expectTables,
  forgetAttributes,
  found,
  isAskedFor,
  positionsInTables,
  STREAMS,
  writeSetting,
} from './attributes-kit.ts';
import { AutoClock } from './auto-clock.ts';
import { expectNamedFiles, expectScavenged, OPTIONS, scavengeable } from './scavenge-kit.ts';
import {
  beginLog,
  CHUNK_BYTES,
  compactionTick,
  exportDirectory,
  manifestOf,
  runTick,
  setMetadata,
  worldOf,
} from './tick-kit.ts';

/** Attribute indexes of a log in a bucket: ticks write their tables, and instances have what lies behind them. */

const ALL: AttributeSetting = { names: true, correlations: true, tags: true };

/** Time that passes with each look at it, so that a tick has an end. */
class PassingClock extends AutoClock {
  readonly #passingMs: number;

  /** Of an hour that a tick has. */
  constructor(passingMs = 400_000) {
    super();
    this.#passingMs = passingMs;
  }

  override monotonicMs(): number {
    this.advance(this.#passingMs);
    return super.monotonicMs();
  }
}

class Bucket {
  readonly clock = new AutoClock();
  readonly objects = new MemoryObjects({ clock: this.clock });
  readonly ids = new SeededIds(7);
  #seed = 1;

  world(objects = this.objects as ConstructorParameters<typeof CountingObjects>[0]) {
    return worldOf(objects, this.clock, this.#seed++);
  }

  open(objects?: ConstructorParameters<typeof CountingObjects>[0]): Promise<ObjectInstance> {
    // So that an index is asked also where little lies behind.
    return openObjectStore(this.world(objects), { ...OPTIONS, streams: { readThroughBytes: 0 } });
  }

  async fill({ store }: ObjectInstance, random: Random, appends: number, bytes = 0): Promise<void> {
    for (let i = 0; i < appends; i++)
      await store.append(random.pick(STREAMS), ANY, [
        anyEvent(random, this.ids, bytes),
        anyEvent(random, this.ids, bytes),
      ]);
  }
}

const states = ({ figures }: ObjectInstance): string[] => figures().attributes.map(({ state }) => state);

test.each(seedsFrom(1, bySize(5, 20, 200)))('queries find what a look at everything finds, seed %i', async (seed) => {
  const random = new Random(seed);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const instances = [await bucket.open(), await bucket.open()];
  for (let step = 0; step < 24; step++) {
    const one = random.int(0, instances.length - 1);
    const instance = instances[one]!;
    const choice = random.int(1, 10);
    if (choice <= 5) await bucket.fill(instance, random, random.int(1, 6), random.int(0, 3_000));
    else if (choice <= 7) {
      await compactionTick(bucket.world(), random.chance(0.5) ? { ownBytesMax: random.int(1, 40_000) } : {});
      await expectTables(bucket.objects, await everything(instance.store));
    } else if (choice === 8) {
      await instance.close();
      instances[one] = await bucket.open();
    } else if (choice === 9)
      await writeSetting(instance.store, bucket.ids, {
        names: random.chance(0.7),
        correlations: random.chance(0.7),
        tags: random.chance(0.7),
      });
    else if (random.chance(0.3)) await forgetAttributes(bucket.world());
    else bucket.clock.advance(400_000);
    await expectAnswers(random.pick(instances).store, random, 2);
  }
  for (const instance of instances) await instance.close();
});

test('an instance has all indexes of the log from the tail alone, from files, and where a manifest takes the tail in', async () => {
  const random = new Random(1);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  const reader = await bucket.open();
  await bucket.fill(writer, random, 10);
  await expectAnswers(reader.store, random);
  expect(states(reader)).toEqual(['live', 'off', 'off']);
  await writeSetting(writer.store, bucket.ids, ALL);
  await bucket.fill(writer, random, 10);
  await expectAnswers(reader.store, random);
  // What is switched on behind events is there when a tick has built it.
  expect(states(reader)).toEqual(['live', 'building', 'building']);
  await compactionTick(bucket.world());
  await bucket.fill(writer, random, 3);
  bucket.clock.advance(400_000);
  await expectAnswers(reader.store, random);
  const cold = await bucket.open();
  for (const each of [writer, reader, cold]) {
    await expectAnswers(each.store, random);
    const { end } = each.store;
    expect(each.figures().attributes).toEqual(
      ['names', 'correlations', 'tags'].map((name) => expect.objectContaining({ name, state: 'live', coveredTo: end })),
    );
  }
  const { format, attributes, logEnd } = await expectTables(bucket.objects, await everything(cold.store));
  expect({ format, attributes }).toEqual({
    format: 3,
    attributes: { names: { coveredTo: logEnd }, correlations: { coveredTo: logEnd }, tags: { coveredTo: logEnd } },
  });
  // Switched off it goes, and the last one takes the format along.
  await writeSetting(writer.store, bucket.ids, { names: false, correlations: false, tags: false });
  expect(states(writer)).toEqual(['off', 'off', 'off']);
  await compactionTick(bucket.world());
  expect(await manifestOf(bucket.objects)).toMatchObject({ format: 1, attributes: {} });
  expect((await manifestOf(bucket.objects)).files.filter(({ name }) => name.startsWith('attributes'))).toEqual([]);
  for (const each of [writer, reader, cold]) {
    await expectAnswers(each.store, random);
    await each.close();
  }
});

test('an index that is new for an old log is built over several ticks, and a tick at rest asks for nothing more', async () => {
  const random = new Random(2);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer, random, 40, 12_000);
  await compactionTick(bucket.world());
  await forgetAttributes(bucket.world());
  let all = await everything(writer.store);
  const covered: number[] = [];
  for (let ticks = 0; ; ticks++) {
    expect(ticks).toBeLessThan(30);
    const { outcome } = await compactionTick({ ...bucket.world(), clock: new PassingClock() });
    if (outcome === 'idle') break;
    const { attributes, logEnd } = await expectTables(bucket.objects, all);
    covered.push(attributes!.names!.coveredTo);
    const cold = await bucket.open();
    await expectAnswers(cold.store, random, 2);
    expect(cold.figures().attributes[0]).toMatchObject({
      state: covered.at(-1)! < logEnd ? 'building' : 'live',
      coveredTo: covered.at(-1)!,
    });
    await cold.close();
    // New commits come meanwhile.
    if (ticks < 2) await bucket.fill(writer, random, 1);
    all = await everything(writer.store);
  }
  expect(covered.length).toBeGreaterThan(3);
  expect(covered).toEqual(covered.toSorted((a, b) => a - b));
  const counting = new CountingObjects(bucket.objects);
  expect((await compactionTick(bucket.world(counting))).outcome).toBe('idle');
  const { lists, gets, puts } = counting.counts();
  expect({ lists, puts }).toEqual({ lists: 2, puts: 0 });
  expect(gets).toBeLessThanOrEqual(3);
  await writer.close();
});

test.each(['damaged', 'gone'])(
  'a tick goes on where an old chunk is %s that an index is to be built of',
  async (what) => {
    const bucket = new Bucket();
    await beginLog(bucket.world());
    const writer = await bucket.open();
    const random = new Random(14);
    await bucket.fill(writer, random, 40, 12_000);
    await compactionTick(bucket.world());
    await forgetAttributes(bucket.world());
    const { chunks } = await manifestOf(bucket.objects);
    const { key } = chunks[2]!;
    if (what === 'gone') await bucket.objects.remove([key]);
    else {
      const bytes = (await bucket.objects.get(key))!.slice();
      await bucket.objects.put(key, bytes.fill(0xff, 128, bytes.length - 128));
    }
    const covered: number[] = [];
    const entries: number[] = [];
    for (let ticks = 0; ticks < 3; ticks++) {
      await bucket.fill(writer, random, 1);
      const { outcome, hasMore } = await compactionTick(bucket.world());
      expect({ outcome, hasMore }).toEqual({ outcome: 'published', hasMore: false });
      covered.push((await manifestOf(bucket.objects)).attributes!.names!.coveredTo);
      entries.push((await positionsInTables(bucket.objects, 'names')).length);
    }
    // What lies before that chunk is taken in, and once.
    expect(Math.floor(covered[0]! / CHUNK_BYTES)).toBe(1);
    expect(covered).toEqual(covered.map(() => covered[0]));
    expect(entries[0]).toBeGreaterThan(0);
    expect(entries).toEqual(entries.map(() => entries[0]));
    const { scavengeId } = await startScavenge(bucket.world());
    const { scavenge } = await runTick(bucket.world());
    expect(scavenge).toMatchObject({ scavengeId });
    await writer.close();
  },
);

test('index tables are merged while an index of an old log is built', async () => {
  const random = new Random(2);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer, random, 200, 12_000);
  await compactionTick(bucket.world());
  await forgetAttributes(bucket.world());
  for (let ticks = 0; ticks < 2; ticks++) {
    await bucket.fill(writer, random, 1);
    await compactionTick({ ...bucket.world(), clock: new PassingClock(60_000) });
    const { files, attributes, logEnd } = await manifestOf(bucket.objects);
    expect(attributes!.names!.coveredTo).toBeLessThan(logEnd);
    const tables = files.filter(({ name }) => /^index\/[0-9a-f-]{36}$/.test(name));
    expect(tables.length).toBeGreaterThan(0);
    expect(tables.length).toBeLessThanOrEqual(2);
  }
  await writer.close();
});

/** Answers are right without the index, and after a tick with it. Closes both instances. */
async function expectRebuilt(
  bucket: Bucket,
  writer: ObjectInstance,
  cold: ObjectInstance,
  random: Random,
): Promise<void> {
  await expectAnswers(cold.store, random);
  await compactionTick(bucket.world());
  await expectTables(bucket.objects, await everything(writer.store));
  await expectNamedFiles(bucket.objects);
  await expectAnswers(cold.store, random);
  await cold.close();
  await writer.close();
}

test('a table that is gone or damaged is built anew', async () => {
  const random = new Random(3);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  await writeSetting(writer.store, bucket.ids, ALL);
  await bucket.fill(writer, random, 30);
  await compactionTick(bucket.world());
  const { files } = await manifestOf(bucket.objects);
  const tables = files.filter(
    ({ name }) => /^attributes\/(names|tags)\/[^.]*$/.test(name) && !name.endsWith('indexmap'),
  );
  expect(tables).toHaveLength(2);
  await bucket.objects.remove([tables[0]!.key!]);
  await bucket.objects.put(tables[1]!.key!, new Uint8Array(tables[1]!.sizeBytes));
  await bucket.fill(writer, random, 3);
  const cold = await bucket.open();
  const codes: unknown[] = [];
  for (let tries = 0; tries < 3; tries++) {
    const query: EventQuery = { category: 'a', tags: ['x'] };
    await found(cold.store, query, 'forward', 5).catch((error: unknown) =>
      codes.push(isSkuaError(error) && error.code),
    );
  }
  // The first search that meets each says so, and after that it is done without.
  expect(codes.sort()).toEqual(['index_corrupt', 'log_corrupt']);
  await expectRebuilt(bucket, writer, cold, random);
});

test('a table of a newer format is done without, and built anew', async () => {
  const random = new Random(13);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer, random, 30);
  await compactionTick(bucket.world());
  const { files } = await manifestOf(bucket.objects);
  const file = files.find(({ name }) => ATTRIBUTE_TABLE_NAME.test(name))!;
  await bucket.objects.put(file.key!, newer((await bucket.objects.get(file.key!))!));
  await bucket.fill(writer, random, 3);
  const cold = await bucket.open();
  // The first search that meets it may say so, and after that it is done without.
  const query: EventQuery = { category: 'a' };
  await found(cold.store, query, 'forward', 5).catch((error: unknown) =>
    expect(error).toMatchObject({ code: 'index_corrupt' }),
  );
  await expectRebuilt(bucket, writer, cold, random);
});

/** As a newer program might write it: of another version, and sound. */
function newer(table: Uint8Array): Uint8Array {
  const out = table.slice();
  const body = out.subarray(0, -MD5_BYTES);
  body[1]!++;
  body[body.length - FOOTER_BYTES + 1]!++;
  out.set(createHash('md5').update(body).digest(), body.length);
  return out;
}

test('a backup of the bucket leaves them out, and a check of it looks at them', async () => {
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  await writeSetting(writer.store, bucket.ids, ALL);
  await bucket.fill(writer, new Random(4), 10);
  await compactionTick(bucket.world());
  // What lies in the tail has no entries in tables yet.
  await bucket.fill(writer, new Random(4), 2);
  const wrong = async (): Promise<unknown[]> => {
    const found: unknown[] = [];
    for await (const each of verifyObjects({ world: bucket.world(), options: OPTIONS, scratch: new MemoryStorage() }))
      if (each.kind === 'finding') found.push(each.code);
    return found;
  };
  expect(await wrong()).toEqual([]);
  const table = (await manifestOf(bucket.objects)).files.find(({ name }) => ATTRIBUTE_TABLE_NAME.test(name))!;
  const bytes = (await bucket.objects.get(table.key!))!.slice();
  bytes[140]! ^= 1;
  await bucket.objects.put(table.key!, bytes);
  expect(await wrong()).toContain('attribute_index_damaged');
  const source = await objectSource(bucket.world(), OPTIONS, new MemoryStorage());
  const paths = source.snapshot.files.map(({ path }) => path);
  expect(paths).toContain('index/indexmap');
  expect(paths.filter((path) => path.startsWith('attributes'))).toEqual([]);
  await source.release();
  await writer.close();
});

test('a tick that dies after any call leaves what was, or what is', async () => {
  const random = new Random(5);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  await bucket.fill(writer, random, 12);
  await writeSetting(writer.store, bucket.ids, ALL);
  await compactionTick(bucket.world());
  await bucket.fill(writer, random, 12);
  const all = await everything(writer.store);
  await writer.close();
  let isWhole = false;
  let n = 0;
  for (; !isWhole; n++) {
    expect(n).toBeLessThan(150);
    const objects = bucket.objects.fork();
    const faulty = new FaultyObjects(objects, { seed: n });
    faulty.crashAfter(n);
    isWhole = await compactionTick(bucket.world(faulty)).then(
      () => true,
      () => false,
    );
    for (const isNext of [false, true]) {
      if (isNext) await compactionTick(bucket.world(objects));
      await expectNamedFiles(objects);
      const { attributes, logEnd } = await expectTables(objects, all);
      for (const name of ['names', 'correlations', 'tags'] as const) expect(attributes![name]!.coveredTo).toBe(logEnd);
    }
    const cold = await bucket.open(objects);
    await expectAnswers(cold.store, random, 1);
    expect(states(cold)).toEqual(['live', 'live', 'live']);
    await cold.close();
  }
  expect(n).toBeGreaterThan(15);
});

test('a cold read by category takes few requests, however many ticks there were', async () => {
  const random = new Random(6);
  const bucket = new Bucket();
  await beginLog(bucket.world());
  const writer = await bucket.open();
  for (let tick = 0; tick < 12; tick++) {
    for (let i = 0; i < 40; i++)
      await writer.store.append(
        `${i % 20 === 7 ? 'rare' : 'often'}-${random.int(1, 500)}`,
        ANY,
        Array.from({ length: 20 }, () => anyEvent(random, bucket.ids, 40)),
      );
    await compactionTick(bucket.world());
  }
  const expected = await found(writer.store, { category: 'rare' }, 'forward', 1_000);
  expect(expected).toHaveLength(480);
  for (const direction of ['forward', 'backward'] as const) {
    const counting = new CountingObjects(bucket.objects);
    const cold = await bucket.open(counting);
    const page = await cold.store.readAll({
      direction,
      from: direction === 'forward' ? 'start' : 'end',
      count: 20,
      filter: { on: 'stream', query: { category: 'rare' } },
    });
    const wanted = direction === 'forward' ? expected.slice(0, 20) : expected.slice(-20).toReversed();
    expect(page.events.map(({ position }) => position)).toEqual(wanted);
    const { gets, lists } = counting.counts();
    expect(gets + lists).toBeLessThanOrEqual(14);
    await cold.close();
  }
  await writer.close();
});

test('a scavenge takes the entries of removed records away, in one tick or in many', async () => {
  for (const ownBytesMax of [1, 201_326_592]) {
    const clock = new AutoClock();
    const { base, scavengeId, universe } = await scavengeable(clock, true);
    expect((await manifestOf(base)).format).toBe(3);
    for (let ticks = 0; ; ticks++) {
      expect(ticks).toBeLessThan(60);
      const { scavenge } = await runTick(worldOf(base, clock, 20 + ticks), { settings: { ownBytesMax } });
      if (scavenge?.state === 'ended') break;
    }
    const directory = await exportDirectory(base);
    const there = new Set((await readRawLog(directory)).map(({ position }) => position));
    expect([...universe.keys()].filter((position) => !there.has(position)).length).toBeGreaterThan(20);
    const positions = await positionsInTables(base, 'names');
    expect(positions.filter((position) => !there.has(position))).toEqual([]);
    await expectScavenged(base, clock, scavengeId, universe, 900);
    const instance = await openObjectStore(worldOf(base, clock, 901), { ...OPTIONS, streams: { readThroughBytes: 0 } });
    expect(instance.figures().attributes[0]).toMatchObject({ state: 'live', coveredTo: instance.store.end });
    const wanted = (await everything(instance.store)).filter((event) => isAskedFor({ category: 'short' }, event));
    expect(await found(instance.store, { category: 'short' }, 'backward', 1)).toEqual(
      wanted.map(({ position }) => position).toReversed(),
    );
    await instance.close();
  }
});

test.each([false, true])(
  'an instance that knows no stream yet hides what their rules hide, with hard deletes: %s',
  async (hasDeletes) => {
    const random = new Random(8);
    const bucket = new Bucket();
    await beginLog(bucket.world());
    const writer = await bucket.open();
    const { store } = writer;
    const append = (stream: string) =>
      store.append(
        stream,
        ANY,
        Array.from({ length: 3 }, () => anyEvent(random, bucket.ids)),
      );
    for (const name of ['plain', 'short', 'soft', 'hard', 'late']) await append(`a-${name}`);
    await setMetadata(store, bucket.ids, 'a-short', { $maxCount: 1 });
    await store.deleteStream('a-soft', ANY, 'soft');
    if (hasDeletes) await store.deleteStream('a-hard', ANY, 'hard');
    const expected = ['plain', 'plain', 'plain', 'short', ...(hasDeletes ? [] : ['hard', 'hard', 'hard'])];
    for (const isCompacted of [false, true]) {
      if (isCompacted) {
        await compactionTick(bucket.world());
        // Rules that came behind the files.
        await setMetadata(store, bucket.ids, 'a-late', { $maxCount: 2 });
      }
      const cold = await bucket.open();
      const filter = { on: 'stream', query: { category: 'a' } } as const;
      const { events } = await cold.store.readAll({ direction: 'forward', from: 'start', count: 99, filter });
      const late = Array.from({ length: isCompacted ? 2 : 3 }, () => 'late');
      expect(events.map(({ stream }) => stream.slice(2))).toEqual([...expected, ...late]);
      await cold.close();
    }
    await writer.close();
  },
);
