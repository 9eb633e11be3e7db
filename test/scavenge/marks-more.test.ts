import { describe, expect, it } from 'vitest';
import { encodeText } from '../../core/base/text.ts';
import { guidFromText } from '../../core/base/guid.ts';
import { FLAG_COMMITTED, FLAG_DATA, FLAG_JSON, FLAG_STREAM_DELETE } from '../../core/log/format/records.ts';
import { encodePrepare, prepareFrameBytes, TOMBSTONE } from '../../core/log/format/records.ts';
import { ANY } from '../../core/streams/api.ts';
import { MARKS_STREAM } from '../../core/streams/format/marks.ts';
import { markEvent, redact } from '../../core/streams/redact/redact.ts';
import { openTestLog } from '../log/kit.ts';
import type { FaultyStorage } from '../support/faulty-storage.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { openWorld, runToEnd, type World } from './control-kit.ts';
import { contentOf, filesWith, linkTo, MARKER, paid, readEveryWay } from './marks-kit.ts';
import { readRawLog } from './raw-log.ts';

/** Marks of redaction: when they begin to count, for which run, and what another program can't do to them. */

const ids = new SeededIds(78);
const SCAVENGE = { repairHistory: false, disableMerging: true };
const idOf = (n: number): string => `ffffffff-0000-4000-8000-${String(n).padStart(12, '0')}`;
const EMPTY = `redacted  {"$correlationId":"c-${idOf(1)}","$causationId":"x"}`;

async function filled(): Promise<World> {
  const world = await openWorld({ scavenge: SCAVENGE });
  for (let n = 0; n < 3; n++) await world.open.store.append('orders', ANY, [paid(idOf(n), n === 1 ? MARKER : 'no')]);
  await world.open.store.append('links', ANY, [linkTo(idOf(10), 'orders', 1)]);
  return world;
}

function mark({ open: { store } }: World): Promise<unknown> {
  return redact(store, ids, 'ann', { stream: 'orders', numbers: [1], reason: 'a card' });
}

async function again({ open, storage, states }: World, seed: number): Promise<World> {
  await open.close();
  return openWorld({ storage, states, seed, scavenge: SCAVENGE });
}

async function shown({ open: { store } }: World): Promise<Set<string>> {
  const ways = await readEveryWay(store, ['orders', 'links'], 'links');
  expect(ways.size).toBe(11);
  return new Set([...ways.values()].map((contents) => contents.get('1@orders') ?? 'nothing'));
}

interface RawEvent {
  readonly stream: string;
  readonly number: number;
  readonly flags: number;
  readonly data: string;
}

/** As another program may write them: nothing is checked. The store is closed. */
async function writeRaw(storage: FaultyStorage, events: readonly RawEvent[]): Promise<void> {
  const log = await openTestLog(storage);
  for (const { stream, number, flags, data } of events) {
    const id = new Uint8Array(16);
    guidFromText(idOf(500 + (number % 100)), id, 0);
    const parts = [encodeText(stream), encodeText('$metadata'), encodeText(data)] as const;
    const out = new Uint8Array(prepareFrameBytes(parts[0].length, parts[1].length, parts[2].length, 0));
    encodePrepare(out, 0, {
      position: log.end,
      flags: flags | 6 | FLAG_COMMITTED,
      transactionPosition: log.end,
      transactionOffset: 0,
      expectedVersion: number - 1,
      stream: parts[0],
      eventId: id,
      correlationId: new Uint8Array(16),
      timestampMs: TEST_NOW_MS,
      timestampTicks: 0,
      eventType: parts[1],
      data: parts[2],
      metadata: new Uint8Array(0),
    });
    await log.append(out);
  }
  await log.close();
}

describe('a mark', () => {
  it('counts from when it is durable, and not where it could not be written', async () => {
    const world = await filled();
    const whole = await shown(world);
    expect([...whole].join()).toContain(MARKER);
    let during: Promise<Set<string>> | null = null;
    world.storage.failWhen((op, path) => {
      if (op !== 'writeAt' || !path.startsWith('chunk-')) return undefined;
      during ??= shown(world);
      return 'disk_full';
    });
    await expect(mark(world)).rejects.toMatchObject({ code: 'disk_full' });
    world.storage.failWhen(undefined);
    expect(await during).toEqual(whole);
    expect(await shown(world)).toEqual(whole);
    expect(world.open.store.redactions.count).toBe(0);
    await mark(world);
    expect(await shown(world)).toEqual(new Set([EMPTY]));
    await world.open.close();
  });

  it('behind the point of a run is applied by the next one', async () => {
    const world = await filled();
    world.jobs.hook = async (name) => {
      if (name === 'scavenge.calculate') await mark(world);
    };
    await runToEnd(world, { threshold: -1 });
    world.jobs.hook = null;
    expect(await shown(world)).toEqual(new Set([EMPTY]));
    expect(await world.storage.list('')).toContain('chunk-000000.000001');
    expect(await filesWith(world.storage, MARKER)).toEqual(['chunk-000000.000001']);
    await runToEnd(world);
    expect(await shown(world)).toEqual(new Set([EMPTY]));
    expect(await filesWith(world.storage, MARKER)).toEqual([]);
    await world.open.close();
  });

  it('has no effect on a stream of the store, nor on metadata of streams', async () => {
    const world = await filled();
    const { store } = world.open;
    const targets = [
      ['$own', 'thing', '{"a":1}'],
      ['$$orders', '$metadata', '{"$maxCount":9}'],
    ] as const;
    for (const [i, [stream, type, data]] of targets.entries()) {
      const event = { id: idOf(60 + i), type, isJson: true, data: encodeText(data), metadata: new Uint8Array(0) };
      await store.append(stream, ANY, [event]);
      const { id, preparePosition: position } = await store.readEvent(stream, 0);
      await store.append(MARKS_STREAM, ANY, [
        markEvent(ids, { stream, number: 0, id, position, by: 'x', reason: 'x', keys: [] }),
      ]);
    }
    for (let run = 0; run < 2; run++) {
      for (const [stream, , data] of targets)
        expect(contentOf(await store.readEvent(stream, 0)), stream).toBe(`whole ${data} `);
      await runToEnd(world, { threshold: -1 });
      expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
    }
    await world.open.close();
  });
});

describe('what another program wrote of the stream of marks', () => {
  it.each<[string, readonly RawEvent[]]>([
    [
      'metadata that let none be seen',
      [
        {
          stream: `$$${MARKS_STREAM}`,
          number: 0,
          flags: FLAG_DATA | FLAG_JSON,
          data: '{"$maxCount":1,"$tb":99,"$maxAge":1}',
        },
      ],
    ],
    [
      'metadata that delete it',
      [
        {
          stream: `$$${MARKS_STREAM}`,
          number: 0,
          flags: FLAG_DATA | FLAG_JSON,
          data: '{"$tb":9223372036854775807}',
        },
      ],
    ],
    ['a tombstone', [{ stream: MARKS_STREAM, number: TOMBSTONE, flags: FLAG_STREAM_DELETE, data: '' }]],
  ])('hides no mark: %s', async (_, events) => {
    let world = await filled();
    await mark(world);
    await world.open.store.append(MARKS_STREAM, ANY, [
      markEvent(ids, { stream: 'no', number: 0, id: idOf(99), position: 1, by: 'x', reason: 'x', keys: [] }),
    ]);
    await world.open.close();
    await writeRaw(world.storage, events);
    world = await openWorld({ storage: world.storage, states: world.states, seed: 2, scavenge: SCAVENGE });
    for (let run = 0; run < 3; run++) {
      expect(world.open.store.redactions.count).toBe(2);
      expect(await shown(world)).toEqual(new Set([EMPTY]));
      await runToEnd(world, { threshold: -1 });
      expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
      world = await again(world, 3 + run);
    }
    const marks = (await readRawLog(world.storage)).filter(
      ({ prepare }) => prepare?.stream === MARKS_STREAM && !prepare.isTombstone,
    );
    expect(marks).toHaveLength(2);
    expect(await filesWith(world.storage, MARKER)).toEqual([]);
    // An index that is built anew from what the scavenges left has them, too.
    await world.open.close();
    await world.storage.remove('index/indexmap');
    const rebuilt = await openWorld({ storage: world.storage, seed: 9, scavenge: SCAVENGE });
    expect(rebuilt.open.store.redactions.count).toBe(2);
    expect(await shown(rebuilt)).toEqual(new Set([EMPTY]));
    await rebuilt.open.close();
  });
});
