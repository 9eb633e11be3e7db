import { describe, expect, it } from 'vitest';
import { ANY, type StoredEvent } from '../../core/streams/api.ts';
import { timestampText } from '../../core/base/time.ts';
import { encodeText, decodeText } from '../../core/base/text.ts';
import { MARKS_STREAM } from '../../core/streams/format/marks.ts';
import { markEvent, redact, type RedactRequest } from '../../core/streams/redact/redact.ts';
import { codeOf } from '../streams/setup.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { readWholeAll, readWholeStream as readWhole } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { checkErasure } from '../../core/scavenge/erasure/erasure.ts';
import { errorsIn } from './chunk-kit.ts';
import { openWorld, runToEnd, setMetadata, type World } from './control-kit.ts';
import { readRawLog } from './raw-log.ts';

/** Marks of redaction: what readers see, and what a scavenge leaves in the files. */

const MARKER = 'M4RK3R-of-32-bytes-000000000000!';
const ids = new SeededIds(77);
const idOf = (n: number) => `cccccccc-0000-4000-8000-${String(n).padStart(12, '0')}`;

async function write(world: World, stream: string, n: number, secret: string): Promise<void> {
  await world.open.store.append(stream, ANY, [
    {
      id: idOf(n),
      type: 'paid',
      isJson: true,
      data: encodeText(`{"card":"${secret}"}`),
      metadata: encodeText(`{"who":"${secret}", "$correlationId" : "c-${n}","$causationId":"x"}`),
    },
  ]);
}

async function filled(scavenge: object = {}): Promise<World> {
  const world = await openWorld({ scavenge: { repairHistory: false, ...scavenge } });
  for (let n = 0; n < 6; n++) await write(world, 'orders', n, n === 3 ? MARKER : `harmless ${n}`);
  await write(world, 'other', 9, 'harmless');
  return world;
}

function mark(world: World, over: Partial<RedactRequest> = {}): ReturnType<typeof redact> {
  return redact(world.open.store, ids, 'ann', { stream: 'orders', numbers: [3], reason: 'card number', ...over });
}

async function readWholeStream(store: EventStore, stream: string, direction: 'forward' | 'backward', page: number) {
  const read = await readWhole(store, stream, direction, page);
  if ('error' in read) throw new Error(read.error);
  return read;
}

interface Seen {
  readonly number: number;
  readonly isRedacted: boolean;
  readonly data: string;
  readonly metadata: string;
}

function seen({ number, isRedacted, data, metadata }: StoredEvent): Seen {
  return { number, isRedacted, data: decodeText(data), metadata: decodeText(metadata) };
}

/** All that any read shows of the store's streams. */
async function everything({ open: { store } }: World): Promise<readonly Seen[][]> {
  const of = (events: readonly StoredEvent[]) => events.filter(({ stream }) => stream !== MARKS_STREAM).map(seen);
  const stream = await readWholeStream(store, 'orders', 'forward', 2);
  const single: StoredEvent[] = [];
  for (const { number } of stream) single.push(await store.readEvent('orders', number));
  return [
    of(stream),
    of((await readWholeStream(store, 'orders', 'backward', 3)).toReversed()),
    of(single),
    of((await readWholeAll(store, 'forward', 3)).filter((event) => event.stream === 'orders')),
    of((await readWholeAll(store, 'backward', 2)).filter((event) => event.stream === 'orders').toReversed()),
  ];
}

const EMPTY: Seen = {
  number: 3,
  isRedacted: true,
  data: '',
  metadata: '{"$correlationId":"c-3","$causationId":"x"}',
};

async function expectEmpty(world: World, expected: Seen = EMPTY): Promise<void> {
  for (const events of await everything(world)) {
    expect(events).toHaveLength(6);
    expect(events[3]).toEqual(expected);
    for (const [i, event] of events.entries())
      if (i !== 3) expect(event).toMatchObject({ number: i, isRedacted: false, data: `{"card":"harmless ${i}"}` });
  }
}

/** Names of the files that hold the marker. */
async function filesWithMarker({ storage }: World): Promise<string[]> {
  const found: string[] = [];
  for (const name of await storage.list('')) {
    const file = await storage.open(name, 'read');
    const bytes = Buffer.from(await file.read(0, file.size));
    await file.close();
    if (bytes.includes(MARKER)) found.push(name);
  }
  return found;
}

describe('a marked event', () => {
  it('reads as empty at once, after a restart, and after a scavenge, which removes its content', async () => {
    const world = await filled();
    const before = (await readRawLog(world.storage)).find(
      ({ prepare }) => prepare?.stream === 'orders' && prepare.number === 3,
    )!;
    expect(await mark(world)).toMatchObject({
      stream: 'orders',
      events: [{ number: 3, id: idOf(3), wasRedacted: false }],
    });
    await expectEmpty(world);
    expect(await filesWithMarker(world)).not.toEqual([]);
    await world.open.close();
    const again = await openWorld({
      storage: world.storage,
      states: world.states,
      seed: 2,
      scavenge: { repairHistory: false },
    });
    await expectEmpty(again);
    expect((await again.open.scavenger.explain('orders')).marked).toEqual({
      count: 1,
      bytes:
        `{"card":"${MARKER}"}{"who":"${MARKER}", "$correlationId" : "c-3","$causationId":"x"}`.length -
        EMPTY.metadata.length,
    });
    await runToEnd(again);
    expect(again.open.scavenger.last()).toMatchObject({ result: 'Success' });
    await expectEmpty(again);
    expect(await filesWithMarker(again)).toEqual([]);
    expect((await again.open.scavenger.explain('orders')).marked).toBeUndefined();
    const after = (await readRawLog(again.storage)).find(
      ({ prepare }) => prepare?.stream === 'orders' && prepare.number === 3,
    )!;
    expect([after.position, after.bytes.length]).toEqual([before.position, before.bytes.length]);
    await again.open.close();
    expect(await errorsIn(again.storage)).toEqual([]);
    const last = await openWorld({ storage: again.storage, seed: 3, scavenge: { repairHistory: false } });
    await expectEmpty(last);
    await last.open.close();
  });

  it('is not rewritten once more, not even where nothing is remembered of the first run', async () => {
    const world = await filled({ disableMerging: true });
    await mark(world);
    await runToEnd(world);
    const first = async ({ storage }: World) =>
      (await storage.list('')).find((name) => name.startsWith('chunk-000000'));
    expect(await first(world)).toBe('chunk-000000.000001');
    await world.open.close();
    const fresh = await openWorld({
      storage: world.storage,
      seed: 2,
      scavenge: { repairHistory: false, disableMerging: true },
    });
    await runToEnd(fresh);
    expect(await first(fresh)).toBe('chunk-000000.000001');
    await fresh.open.close();
  });

  it('loses the metadata that are named, before and after a scavenge', async () => {
    const world = await filled();
    await mark(world, { metadata: ['$correlationId'] });
    const expected = { ...EMPTY, metadata: '{"$causationId":"x"}' };
    await expectEmpty(world, expected);
    await runToEnd(world);
    await expectEmpty(world, expected);
    await mark(world, { metadata: ['$causationId'] });
    await expectEmpty(world, { ...EMPTY, metadata: '' });
    await runToEnd(world);
    await expectEmpty(world, { ...EMPTY, metadata: '' });
    await world.open.close();
  });

  it('is found by its id, through links, and gets one mark only', async () => {
    const world = await filled();
    const { store } = world.open;
    await store.append('links', ANY, [
      { id: idOf(50), type: '$>', isJson: false, data: encodeText('3@orders'), metadata: new Uint8Array(0) },
    ]);
    expect(await mark(world, { numbers: [], ids: [idOf(3).toUpperCase()] })).toMatchObject({ events: [{ number: 3 }] });
    expect(await mark(world)).toMatchObject({ events: [{ number: 3, wasRedacted: true }], position: null });
    expect(seen(await store.readEvent('links', 0, true))).toEqual(EMPTY);
    expect(store.redactions.count).toBe(1);
    expect((await readWholeStream(store, MARKS_STREAM, 'forward', 5)).length).toBe(1);
    await world.open.close();
  });
});

describe('a mark that another program wrote', () => {
  const wrong = async (world: World, position: number): Promise<void> => {
    const mark = { stream: 'orders', number: 0, id: idOf(99), position, by: 'x', reason: 'x', keys: [] };
    await world.open.store.append(MARKS_STREAM, ANY, [markEvent(ids, mark)]);
  };

  it.each([
    ['within a record', 300],
    ['behind the last record of its chunk', 65_500],
    ['behind the end of the log', 9 * 65_536],
    ['in no log', Number.MAX_SAFE_INTEGER],
  ])('%s keeps no scavenge from its end', async (_, position) => {
    const world = await filled({ disableMerging: true });
    await mark(world);
    await wrong(world, position);
    for (let run = 0; run < 2; run++) {
      await runToEnd(world);
      expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
      await expectEmpty(world);
    }
    expect(await filesWithMarker(world)).toEqual([]);
    await world.open.close();
  });
});

describe('the last event of a deleted stream', () => {
  it('is not shown again, neither by its mark nor by metadata that a later run meets', async () => {
    const world = await filled({ disableMerging: true });
    const { store } = world.open;
    await mark(world, { numbers: [5] });
    await store.deleteStream('orders', ANY, 'soft');
    const all = async () =>
      (await readWholeAll(store, 'forward', 9)).filter(({ stream }) => stream === 'orders').map(seen);
    await runToEnd(world);
    expect(await all()).toEqual([]);
    await setMetadata(world.open, 'orders', {});
    await runToEnd(world, { threshold: -1 });
    expect(await all()).toEqual([]);
    await world.open.close();
  });
});

describe('the metadata that a mark names', () => {
  it('stay in a record until a run has that mark before its point, and go with the next one', async () => {
    const world = await filled();
    await mark(world);
    const metadataInFile = async () =>
      (await readRawLog(world.storage)).find(({ prepare }) => prepare?.stream === 'orders' && prepare.number === 3)!
        .prepare!.metadataBytes;
    world.jobs.hook = async (name, _args, nth) => {
      if (name === 'scavenge.accumulate' && nth === 1) await mark(world, { metadata: ['$causationId'] });
    };
    await runToEnd(world);
    expect(world.jobs.ran).toContain('scavenge.accumulate');
    expect(await metadataInFile()).toBe(EMPTY.metadata.length);
    const fewer = { ...EMPTY, metadata: '{"$correlationId":"c-3"}' };
    await expectEmpty(world, fewer);
    await runToEnd(world);
    expect(await metadataInFile()).toBe(fewer.metadata.length);
    await expectEmpty(world, fewer);
    await world.open.close();
  });

  it('are those of the event with its id, and not of another one that was at its place', async () => {
    const world = await filled();
    const { position } = (await mark(world)).events[0]!;
    const other = { stream: 'orders', number: 3, id: idOf(99), position, by: 'x', reason: 'x', keys: ['$causationId'] };
    await world.open.store.append(MARKS_STREAM, ANY, [markEvent(ids, other)]);
    await expectEmpty(world);
    await runToEnd(world);
    await expectEmpty(world);
    const raw = (await readRawLog(world.storage)).find(
      ({ prepare }) => prepare?.stream === 'orders' && prepare.number === 3,
    );
    expect(raw!.prepare!.metadataBytes).toBe(EMPTY.metadata.length);
    await world.open.close();
  });
});

describe('the search for what remains', () => {
  it('takes a redacted event for residue, and its mark; before a scavenge its record is a trace', async () => {
    const world = await filled();
    await mark(world);
    let marks: unknown[] = [];
    const search = async (): Promise<{ traces: number; redacted: number; what: string[] }> => {
      const found: string[] = [];
      const run = checkErasure({ storage: world.storage, events: [idOf(3)] });
      for (;;) {
        const next = await run.next();
        if (next.done === true) return { traces: next.value.traces, redacted: next.value.redacted, what: found };
        if (next.value.kind !== 'progress' && next.value.mark !== undefined) marks = [next.value.mark];
        if (next.value.kind !== 'progress') found.push(`${next.value.kind}: ${next.value.what}`);
      }
    };
    expect(await search()).toMatchObject({ traces: 1, redacted: 0 });
    const [written] = await readWholeStream(world.open.store, MARKS_STREAM, 'forward', 9);
    const time = timestampText(written!.createdMs, 0);
    expect(marks).toEqual([{ stream: 'orders', number: 3, by: 'ann', reason: 'card number', time }]);
    await runToEnd(world);
    expect(await search()).toEqual({
      traces: 0,
      redacted: 1,
      what: expect.arrayContaining([
        `residue: the id of event ${idOf(3)}, number 3 in stream 'orders', in its record, whose content a scavenge has removed`,
        `residue: the id of event ${idOf(3)}, in the mark that redacts it`,
      ]) as string[],
    });
    await world.open.close();
  });
});

describe('refused', () => {
  it('is what has no content of its own, and what decides what is shown', async () => {
    const world = await filled();
    const { store } = world.open;
    await store.append('$$orders', ANY, [
      {
        id: idOf(60),
        type: '$metadata',
        isJson: true,
        data: encodeText('{"$maxCount":9}'),
        metadata: new Uint8Array(0),
      },
    ]);
    const refusal = (over: Partial<RedactRequest>) => codeOf(mark(world, over));
    expect(await refusal({ stream: '$$orders', numbers: [0] })).toBe('not_redactable');
    expect(await refusal({ stream: MARKS_STREAM, numbers: [0] })).toBe('not_redactable');
    expect(await refusal({ numbers: [99] })).toBe('event_not_found');
    expect(await refusal({ stream: 'none' })).toBe('stream_not_found');
    expect(await refusal({ numbers: [], ids: [idOf(99)] })).toBe('event_not_found');
    expect(await refusal({ reason: ' ' })).toBe('bad_request');
    expect(await refusal({ numbers: [] })).toBe('bad_request');
    expect(await refusal({ ids: [idOf(3)] })).toBe('bad_request');
    expect(await refusal({ metadata: ['who'] })).toBe('bad_request');
    expect(store.redactions.count).toBe(0);
    const any = { id: idOf(70), type: 'x', isJson: true, data: encodeText('{}'), metadata: new Uint8Array(0) };
    expect(await codeOf(store.append(MARKS_STREAM, ANY, [any]))).toBe('invalid_mark');
    expect(await codeOf(store.appendToStreams([{ stream: MARKS_STREAM, expectedVersion: ANY, events: [any] }]))).toBe(
      'invalid_mark',
    );
    expect(await codeOf(store.append(`$$${MARKS_STREAM}`, ANY, [any]))).toBe('access_denied');
    for (const kind of ['soft', 'hard'] as const)
      expect(await codeOf(store.deleteStream(MARKS_STREAM, ANY, kind))).toBe('access_denied');
    await world.open.close();
  });

  it('no mark reaches an event of another id at its position', async () => {
    const world = await filled({ disableMerging: true });
    const event = await world.open.store.readEvent('orders', 2);
    await mark(world);
    const [markEvent] = await readWholeStream(world.open.store, MARKS_STREAM, 'forward', 1);
    const data = JSON.parse(decodeText(markEvent!.data)) as Record<string, unknown>;
    await world.open.store.append(MARKS_STREAM, ANY, [
      {
        id: idOf(80),
        type: '$redaction',
        isJson: true,
        data: encodeText(JSON.stringify({ ...data, position: event.preparePosition })),
        metadata: new Uint8Array(0),
      },
    ]);
    await expectEmpty(world);
    await runToEnd(world);
    await expectEmpty(world);
    // The first chunk has lost what it had to lose: what remains weighs nothing, when all marks are met again.
    expect(await world.storage.list('')).toContain('chunk-000000.000001');
    await world.open.close();
    const fresh = await openWorld({
      storage: world.storage,
      seed: 2,
      scavenge: { repairHistory: false, disableMerging: true },
    });
    await runToEnd(fresh);
    expect(await fresh.storage.list('')).toContain('chunk-000000.000001');
    await fresh.open.close();
  });
});
