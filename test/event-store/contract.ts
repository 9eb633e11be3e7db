import { beforeAll, expect, test } from 'vitest';
import { STORE_ERRORS } from '../../local/embedded/embedded-errors.ts';
import type { EventStore, Position, RecordedEvent } from '../../local/event-store/api.ts';

/** A store, ready to be used, and what is not its own to do. */
export interface EventStoreWorld {
  readonly store: EventStore;
  /** The code of what a call rejects with; null for none. */
  codeOf(work: Promise<unknown>): Promise<string | null>;
  redact(stream: string, version: number): Promise<void>;
}

async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const event of events) found.push(event);
  return found;
}

const placed = (total: number) => ({ type: 'Placed', data: { total } });

/**
 * What every event store does, wherever its events are kept: in this process, or with a server that is called. `world`
 * is asked when tests run, and stays the same for all of them.
 */
export function eventStoreTests(world: () => EventStoreWorld): void {
  let store: EventStore;
  let codeOf: EventStoreWorld['codeOf'];
  beforeAll(() => {
    ({ store, codeOf } = world());
  });

  test('keeps events as they were given: JSON values, bytes, and nothing', async () => {
    const id = '9C2F4A1B-7e3d-4b5a-a6c8-d9e0f1a2b3c4';
    const result = await store.append(
      'kept',
      [
        { type: 'Json', data: { ä: [1, null] }, metadata: { by: 'me' }, id },
        { type: 'Bytes', data: Uint8Array.of(0, 255), metadata: Uint8Array.of(254) },
        { type: 'None' },
        { type: 'Null', data: null },
      ],
      { expected: 'none' },
    );
    expect(result).toMatchObject({ version: 3, firstVersion: 0, isRepeat: false });
    const events = await all(store.read('kept'));
    expect(events.map(({ version, type, data, metadata, isJson }) => [version, type, data, metadata, isJson])).toEqual([
      [0, 'Json', { ä: [1, null] }, { by: 'me' }, true],
      [1, 'Bytes', Uint8Array.of(0, 255), Uint8Array.of(254), false],
      [2, 'None', undefined, undefined, false],
      [3, 'Null', null, undefined, true],
    ]);
    expect(events[0]).toMatchObject({ stream: 'kept', id: id.toLowerCase(), isRedacted: false, link: null });
    expect(events.at(-1)!.position).toEqual(result.position);
    expect(events[0]!.createdAt.getFullYear()).toBeGreaterThan(2000);
  });

  test('holds what is expected, in the words of the caller, and knows a repeat', async () => {
    const first = await store.append(
      'expecting',
      { ...placed(1), id: '9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b300' },
      { expected: 'none' },
    );
    expect(
      await store.append(
        'expecting',
        { ...placed(1), id: '9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b300' },
        { expected: 'none' },
      ),
    ).toEqual({ ...first, isRepeat: true });
    await expect(store.append('expecting', placed(2), { expected: 'none' })).rejects.toMatchObject({
      code: 'wrong_expected_version',
      data: { stream: 'expecting', expected: 'none', actual: 0 },
    });
    await expect(store.append('expecting', placed(2), { expected: 7 })).rejects.toMatchObject({
      code: 'wrong_expected_version',
      data: { expected: 7, actual: 0 },
    });
    await expect(store.append('no-such', placed(2), { expected: 'exists' })).rejects.toMatchObject({
      code: 'wrong_expected_version',
      data: { stream: 'no-such', expected: 'exists', actual: null },
    });
    expect(await store.append('expecting', placed(2), { expected: 0 })).toMatchObject({
      version: 1,
      firstVersion: 1,
    });
    expect(await store.append('expecting', placed(3), { expected: 'exists' })).toMatchObject({ version: 2 });
    expect(await all(store.read('expecting'))).toHaveLength(3);
  });

  test('appends to several streams at once or to none', async () => {
    await store.append('of-many-1', placed(1));
    await expect(
      store.appendToStreams([
        { stream: 'of-many-1', events: [placed(2)], expected: 'none' },
        { stream: 'of-many-2', events: [placed(2)] },
      ]),
    ).rejects.toMatchObject({
      code: 'consistency_violation',
      data: { violations: [{ stream: 'of-many-1', expected: 'none', actual: 0 }] },
    });
    expect(await store.info('of-many-2')).toEqual({ stream: 'of-many-2', state: 'none', version: null });
    expect(
      await store.appendToStreams([
        { stream: 'of-many-1', events: [placed(2)], expected: 0 },
        { stream: 'of-many-2', events: [placed(2), placed(3)], expected: 'none' },
      ]),
    ).toMatchObject({
      streams: [
        { stream: 'of-many-1', version: 1 },
        { stream: 'of-many-2', version: 1 },
      ],
      isRepeat: false,
    });
  });

  test('appends on a condition, once the index is there', async () => {
    const condition = { failIfEventsMatch: { items: [{ types: ['Enrolled'] }] } };
    const enrolled = { type: 'Enrolled', data: { student: 7 }, tags: ['course:1'], stream: 'course-1' };
    let first = null;
    while (first === null)
      first = await store.append(enrolled, { condition }).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'index_building' });
        return null;
      });
    expect(first).toMatchObject({ isRepeat: false });
    expect(await all(store.read('course-1'))).toMatchObject([{ metadata: { $tags: ['course:1'] } }]);
    await expect(store.append([enrolled], { condition })).rejects.toMatchObject({
      code: 'condition_failed',
      data: { stream: 'course-1', number: 0 },
    });
    expect(await store.append(enrolled, { condition: { ...condition, after: first.position } })).toMatchObject({
      isRepeat: false,
    });
  });

  test('reads and follows what a condition of several items counts, from behind any number', async () => {
    const made = [
      { type: 'Joined', data: {}, tags: ['room:1', 'student:7'] },
      { type: 'Moved', data: {}, tags: ['student:7'], stream: 'student-7' },
      { type: '$odd', data: {}, tags: ['room:1'] },
      { type: 'Joined', data: {}, tags: ['room:2'] },
    ];
    const { position } = await store.append(made);
    const found = async (options: Parameters<EventStore['readAll']>[0]) =>
      (await all(store.readAll(options))).map(({ type, stream, version }) => `${type} ${version}@${stream}`);
    const items = [{ types: ['Joined'], tags: ['room:1'] }, { tags: ['student:7'] }, { types: ['$odd'] }];
    const all3 = ['Joined 0@dcb', 'Moved 0@student-7', '$odd 1@dcb'];
    expect(await found({ items })).toEqual(all3);
    expect(await found({ items, direction: 'backward', limit: 2 })).toEqual(all3.toReversed().slice(0, 2));
    expect(await found({ items, filter: { on: 'stream', prefixes: ['student'] } })).toEqual([all3[1]]);
    expect((await found({ items: [] })).slice(-4)).toEqual([...all3, 'Joined 2@dcb']);
    expect(await found({ items: [], from: { commit: position.commit - 1, prepare: 0 } })).toEqual(['Joined 2@dcb']);
    await store.setMetadata('student-7', { truncateBefore: 1 });
    expect(await found({ items })).toEqual([all3[0], all3[2]]);
    const ending = new AbortController();
    const seen: string[] = [];
    for await (const { type } of store.subscribe({ items, signal: ending.signal })) {
      seen.push(type);
      if (seen.length === 2) ending.abort();
    }
    expect(seen).toEqual(['Joined', '$odd']);
    for (const wrong of [{ items, tags: ['a'] }, { items: 7 as never }, { items: [{ tags: [''] }] }])
      await expect(all(store.readAll(wrong))).rejects.toMatchObject({ code: 'bad_option' });
  });

  test('reads streams of many pages in both directions, from anywhere, as far as wanted', async () => {
    const count = 600;
    await store.append(
      'long',
      Array.from({ length: count }, (_, i) => placed(i)),
    );
    const versions = async (options?: Parameters<EventStore['read']>[1]) =>
      (await all(store.read('long', options))).map(({ version }) => version);
    const upwards = Array.from({ length: count }, (_, i) => i);
    expect(await versions()).toEqual(upwards);
    expect(await versions({ direction: 'backward' })).toEqual(upwards.toReversed());
    expect(await versions({ from: 598 })).toEqual([598, 599]);
    expect(await versions({ from: 'end' })).toEqual([599]);
    expect(await versions({ from: 1, direction: 'backward' })).toEqual([1, 0]);
    expect(await versions({ from: 10, limit: 300 })).toEqual(upwards.slice(10, 310));
    const everything = await all(store.readAll({ filter: { on: 'stream', prefixes: ['long'] } }));
    expect(everything.map(({ version }) => version)).toEqual(upwards);
    expect(
      (await all(store.readAll({ direction: 'backward', limit: 2, filter: { on: 'stream', pattern: '^lo.g$' } }))).map(
        ({ version }) => version,
      ),
    ).toEqual([599, 598]);
    const at = everything[300]!.position;
    expect(
      (await all(store.readAll({ from: at, limit: 2, filter: { on: 'type', prefixes: ['Placed'] } }))).map(
        ({ version }) => version,
      ),
    ).toEqual([300, 301]);
    expect(
      (await all(store.readAll({ from: at, limit: 2, direction: 'backward' }))).map(({ version }) => version),
    ).toEqual([299, 298]);
  });

  test('reads and follows by category, types, correlation and tags, in both directions, as far as retention shows', async () => {
    const tagged = (type: string, metadata: unknown) => ({ type, data: {}, metadata });
    await store.append('desk-1', [
      tagged('Made', { $correlationId: 'c', $tags: ['wood', 'large'] }),
      tagged('Sold', { $correlationId: 'c', $tags: ['wood'] }),
    ]);
    await store.append('desk-2', tagged('Made', { $correlationId: 'd', $tags: ['large'] }));
    await store.append('chair-1', tagged('Made', { $correlationId: 'c' }));
    const found = async (options: Parameters<EventStore['readAll']>[0]) =>
      (await all(store.readAll(options))).map(({ stream, version }) => `${version}@${stream}`);
    expect(await found({ category: 'desk' })).toEqual(['0@desk-1', '1@desk-1', '0@desk-2']);
    expect(await found({ category: 'desk', direction: 'backward', limit: 2 })).toEqual(['0@desk-2', '1@desk-1']);
    expect(await found({ category: 'desk', types: ['Made', 'Lost'] })).toEqual(['0@desk-1', '0@desk-2']);
    expect(await found({ correlation: 'c' })).toEqual(['0@desk-1', '1@desk-1', '0@chair-1']);
    expect(await found({ tags: ['large', 'wood'] })).toEqual(['0@desk-1']);
    expect(await found({ correlation: 'c', filter: { on: 'stream', prefixes: ['chair'] } })).toEqual(['0@chair-1']);
    await store.setMetadata('desk-1', { maxCount: 1 });
    expect(await found({ category: 'desk' })).toEqual(['1@desk-1', '0@desk-2']);
    expect(await found({ types: ['$metadata'] })).toContain('0@$$desk-1');
    const ending = new AbortController();
    const seen: string[] = [];
    for await (const { stream, version } of store.subscribe({ category: 'desk', signal: ending.signal })) {
      seen.push(`${version}@${stream}`);
      if (seen.length === 2) void store.append('desk-3', tagged('Made', {}));
      if (seen.length === 3) ending.abort();
    }
    expect(seen).toEqual(['1@desk-1', '0@desk-2', '0@desk-3']);
  });

  test('reads and follows views of links, whose versions are positions, and refuses to write them', async () => {
    await store.append('lamp-1', [placed(1), placed(2)]);
    await store.append('lamp-2', placed(3));
    const read = async (options: Parameters<EventStore['read']>[1]) =>
      (await all(store.read('$ce-lamp', { resolveLinks: true, ...options }))).map(({ stream, version, link }) => ({
        is: `${version}@${stream}`,
        at: link!.version,
      }));
    const found = await read({});
    expect(found.map(({ is }) => is)).toEqual(['0@lamp-1', '1@lamp-1', '0@lamp-2']);
    expect(await read({ from: found[1]!.at })).toEqual(found.slice(1));
    expect(await read({ direction: 'backward', limit: 2 })).toEqual(found.toReversed().slice(0, 2));
    expect((await all(store.read('$ce-lamp'))).map(({ type, version }) => [type, version])).toEqual(
      found.map(({ at }) => ['$>', at]),
    );
    const ending = new AbortController();
    const seen: string[] = [];
    for await (const { stream, version } of store.subscribe({
      stream: '$ce-lamp',
      after: found[0]!.at,
      resolveLinks: true,
      signal: ending.signal,
    })) {
      seen.push(`${version}@${stream}`);
      if (seen.length === 2) void store.append('lamp-1', placed(4));
      if (seen.length === 3) ending.abort();
    }
    expect(seen).toEqual(['1@lamp-1', '0@lamp-2', '2@lamp-1']);
    await expect(store.append('$ce-lamp', placed(5))).rejects.toMatchObject({ code: 'stream_is_view' });
    await expect(store.setMetadata('$ce-lamp', { maxCount: 5 })).rejects.toMatchObject({ code: 'stream_is_view' });
    await expect(all(store.read('$ce-none'))).rejects.toMatchObject({ code: 'stream_not_found' });
  });

  test("shows the system's own events only to who asks", async () => {
    await store.setMetadata('shown', { maxCount: 5 });
    const types = async (system: boolean) => new Set((await all(store.readAll({ system }))).map(({ type }) => type[0]));
    expect(await types(false)).not.toContain('$');
    expect(await types(true)).toContain('$');
  });

  test('a subscription delivers history and then what comes, each once, until its signal aborts', async () => {
    await store.append('followed', [placed(1), placed(2)]);
    const ending = new AbortController();
    const seen: number[] = [];
    let caughtUp = 0;
    for await (const { version } of store.subscribe({
      stream: 'followed',
      after: 0,
      signal: ending.signal,
      onCaughtUp: () => {
        caughtUp++;
      },
    })) {
      seen.push(version);
      if (version === 1) void store.append('followed', [placed(3), placed(4)]);
      if (version === 3) ending.abort();
    }
    expect(seen).toEqual([1, 2, 3]);
    expect(caughtUp).toBeGreaterThan(0);
  });

  test('a subscription to all goes on after a position, with a filter', async () => {
    const { position: after } = await store.append('marks-1', placed(1));
    await store.append('other', placed(2));
    await store.append('marks-2', placed(3));
    const ending = new AbortController();
    const seen: RecordedEvent[] = [];
    const checkpoints: Position[] = [];
    for await (const event of store.subscribe({
      after,
      filter: { on: 'stream', prefixes: ['marks-'] },
      signal: ending.signal,
      onCheckpoint: (position) => checkpoints.push(position),
    })) {
      seen.push(event);
      if (seen.length === 1) void store.append('marks-1', placed(4));
      if (seen.length === 2) ending.abort();
    }
    expect(seen.map(({ stream, version }) => [stream, version])).toEqual([
      ['marks-2', 0],
      ['marks-1', 1],
    ]);
  });

  test('a reading that is aborted rejects with the reason', async () => {
    await store.append('aborted', [placed(1), placed(2)]);
    const ending = new AbortController();
    const reason = new Error('enough');
    await expect(
      (async () => {
        for await (const _ of store.read('aborted', { signal: ending.signal })) ending.abort(reason);
      })(),
    ).rejects.toBe(reason);
  });

  test('deletes so that a stream can come back, or for ever', async () => {
    await store.append('soft', [placed(1), placed(2)]);
    await expect(store.delete('soft', { expected: 0 })).rejects.toMatchObject({
      code: 'wrong_expected_version',
      data: { expected: 0, actual: 1 },
    });
    await store.delete('soft', { expected: 1 });
    expect(await codeOf(all(store.read('soft')))).toBe('stream_not_found');
    expect(await store.info('soft')).toEqual({ stream: 'soft', state: 'deleted', version: 1 });
    expect(await store.append('soft', placed(3), { expected: 'none' })).toMatchObject({ version: 2 });
    await store.delete('soft', { hard: true });
    expect(await codeOf(all(store.read('soft')))).toBe('stream_deleted');
    expect(await codeOf(store.append('soft', placed(4)))).toBe('stream_deleted');
    expect(await store.info('soft')).toEqual({ stream: 'soft', state: 'tombstoned', version: null });
    expect(await codeOf(all(store.subscribe({ stream: 'soft' })))).toBe('stream_deleted');
    expect(await codeOf(store.metadata('soft'))).toBe('stream_deleted');
  });

  test("metadata are what was set, with keys of one's own", async () => {
    expect(await store.metadata('limited')).toEqual({ version: null });
    const metadata = {
      maxCount: 2,
      maxAgeSeconds: 3_600,
      truncateBefore: 1,
      cacheControlSeconds: 5,
      access: { read: ['ann'] },
      custom: { owner: { name: 'bo' } },
    };
    await store.setMetadata('limited', metadata, { expected: 'none' });
    expect(await store.metadata('limited')).toEqual({ version: 0, ...metadata });
    await store.append('limited', [placed(1), placed(2), placed(3)]);
    expect((await all(store.read('limited'))).map(({ version }) => version)).toEqual([1, 2]);
    await store.setMetadata('limited', {}, { expected: 0 });
    expect(await store.metadata('limited')).toEqual({ version: 1 });
    await expect(store.setMetadata('limited', { maxCount: -1 })).rejects.toMatchObject({
      code: 'invalid_metadata',
      data: { key: '$maxCount' },
    });
    await expect(store.setMetadata('limited', { custom: { $own: 1 } })).rejects.toMatchObject({
      code: 'invalid_metadata',
      data: { key: '$own' },
    });
    await store.delete('limited');
    expect(await store.metadata('limited')).toEqual({ version: 2 });
  });

  test('links give their targets to who asks', async () => {
    await store.append('target', placed(1));
    await store.append('links', { type: '$>', data: new TextEncoder().encode('0@target') });
    const [link] = await all(store.read('links'));
    expect(link).toMatchObject({ type: '$>', link: null });
    const [resolved] = await all(store.read('links', { resolveLinks: true }));
    expect(resolved).toMatchObject({
      stream: 'target',
      version: 0,
      data: { total: 1 },
      link: { stream: 'links', version: 0, position: link!.position },
    });
  });

  test("what can't be meant is refused with a code that is documented, and changes nothing", async () => {
    const looped: { self?: unknown } = {};
    looped.self = looped;
    const refusals: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['batch_empty', () => store.append('refused', [])],
      ['invalid_event', () => store.append('refused', { type: '' })],
      ['invalid_event', () => store.append('refused', { type: 'X', data: looped })],
      ['invalid_event', () => store.append('refused', { type: 'X', data: () => 1 })],
      ['invalid_event', () => store.append('refused', { type: 'X', id: 'no-uuid' })],
      ['invalid_event', () => store.append('refused', { type: 7 as unknown as string })],
      ['invalid_stream_name', () => store.append('', placed(1))],
      ['invalid_expected_version', () => store.append('refused', placed(1), { expected: 'nothing' as 'none' })],
      ['invalid_expected_version', () => store.append('refused', placed(1), { expected: -1 })],
      ['event_too_large', () => store.append('refused', { type: 'X', data: new Uint8Array(4_194_305) })],
      ['stream_not_found', () => all(store.read('refused'))],
      ['invalid_event_number', () => all(store.read('refused', { from: -1 }))],
      ['invalid_count', () => all(store.read('refused', { limit: 0 }))],
      ['bad_option', () => all(store.read('refused', { direction: 'down' as 'forward' }))],
      ['invalid_position', () => all(store.readAll({ from: { commit: 1, prepare: 1 } }))],
      ['invalid_position', () => all(store.readAll({ from: 5 as unknown as Position }))],
      ['bad_tags', () => store.append('refused', { type: 'X', metadata: { $tags: ['x'.repeat(257)] } })],
      ['bad_option', () => all(store.readAll({ category: 'a-b' }))],
      ['bad_option', () => all(store.readAll({ types: [] }))],
      ['bad_option', () => all(store.readAll({ tags: 'wood' as unknown as string[] }))],
      ['bad_option', () => all(store.subscribe({ correlation: 7 as unknown as string }))],
      ['bad_option', () => all(store.readAll({ filter: { on: 'stream' } }))],
      ['invalid_expression', () => all(store.readAll({ filter: { on: 'stream', pattern: '(' } }))],
      ['unsupported_expression', () => all(store.readAll({ filter: { on: 'stream', pattern: '(?=a)' } }))],
      ['invalid_mark', () => store.append('$redactions', placed(1))],
    ];
    for (const [code, work] of refusals) {
      expect([code, await codeOf(work())]).toEqual([code, code]);
      expect(Object.keys(STORE_ERRORS)).toContain(code);
    }
    expect(await store.info('refused')).toEqual({ stream: 'refused', state: 'none', version: null });
  });

  test('a redacted event reads as empty, and keeps what metadata begin with $', async () => {
    await store.append('struck', [placed(1), { type: 'Paid', data: { card: 7 }, metadata: { who: 'ann', $by: 'x' } }]);
    await world().redact('struck', 1);
    const empty = { version: 1, type: 'Paid', data: undefined, isJson: false, isRedacted: true };
    expect((await all(store.read('struck')))[1]).toMatchObject({ ...empty, metadata: { $by: 'x' } });
    expect((await all(store.readAll({ filter: { on: 'stream', prefixes: ['struck'] } })))[1]).toMatchObject(empty);
    const ending = new AbortController();
    const seen: RecordedEvent[] = [];
    for await (const event of store.subscribe({ stream: 'struck', signal: ending.signal })) {
      seen.push(event);
      if (seen.length === 2) ending.abort();
    }
    expect(seen[1]).toMatchObject(empty);
  });

  test('repeats are known in each way to append', async () => {
    const id = (n: number) => `40000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    const appends = [
      { stream: 'again-1', events: [{ ...placed(1), id: id(1) }], expected: 'none' as const },
      { stream: 'again-2', events: [{ ...placed(2), id: id(2) }] },
    ];
    const first = await store.appendToStreams(appends);
    expect(await store.appendToStreams(appends)).toEqual({ ...first, isRepeat: true });
    const tagged = { ...placed(3), id: id(3), stream: 'again-3', tags: ['again:3'] };
    const condition = { failIfEventsMatch: { items: [] }, after: first.position };
    const noted = await store.append(tagged, { condition });
    expect(await store.append(tagged, { condition })).toEqual({ ...noted, isRepeat: true });
    expect(await all(store.read('again-3'))).toHaveLength(1);
  });

  test('streams may have any name, and events any type', async () => {
    const names = [
      'a/b c?d#e%20f',
      'æøå-日本-🐦',
      "it's:@&=+$,;",
      '-',
      '...',
      '%',
      '+',
      '$odd-1',
      'info',
      '0',
      'x'.repeat(300),
    ];
    for (const name of names) {
      await store.append(name, { type: `a type, of ${name}`, data: name });
      const [event] = await all(store.read(name));
      expect(event).toMatchObject({ stream: name, type: `a type, of ${name}`, data: name });
      expect(await store.info(name)).toEqual({ stream: name, state: 'live', version: 0 });
      await store.setMetadata(name, { custom: { name } });
      expect((await store.metadata(name)).custom).toEqual({ name });
      const found = await all(
        store.readAll({ filter: { on: 'type', prefixes: [`a type, of ${name}`] }, direction: 'backward', limit: 1 }),
      );
      expect(found.map(({ stream }) => stream)).toEqual([name]);
    }
  });

  test('data may be large, and have any bytes and characters', async () => {
    const text = '"\\\n\u0000\u2028é🐦'.repeat(10_000);
    const bytes = Uint8Array.from({ length: 500_001 }, (_, i) => (i * 7919) >> 3);
    for (const event of [
      { type: 'Text', data: { text }, metadata: { text } },
      { type: 'Bytes', data: bytes },
      { type: 'Text', data: 'x'.repeat(300_000), metadata: bytes },
    ])
      await store.append('large', event);
    const check = (events: readonly RecordedEvent[]) => {
      expect(events.map(({ version }) => version)).toEqual([0, 1, 2]);
      expect(events[0]!.data).toEqual({ text });
      expect(events[0]!.metadata).toEqual({ text });
      expect(Buffer.from(bytes).equals(events[1]!.data as Uint8Array)).toBe(true);
      expect(Buffer.from(bytes).equals(events[2]!.metadata as Uint8Array)).toBe(true);
    };
    check(await all(store.read('large')));
    check((await all(store.read('large', { direction: 'backward' }))).toReversed());
    check(await all(store.readAll({ filter: { on: 'stream', prefixes: ['large'] } })));
    const ending = new AbortController();
    const seen: RecordedEvent[] = [];
    for await (const event of store.subscribe({ stream: 'large', signal: ending.signal }))
      if (seen.push(event) === 3) ending.abort();
    check(seen);
  });

  test('many events are appended at once, in order', async () => {
    const count = 3_000;
    const { version } = await store.append(
      'many',
      Array.from({ length: count }, (_, i) => placed(i)),
    );
    expect(version).toBe(count - 1);
    expect((await all(store.read<{ total: number }>('many'))).map(({ data }) => data.total)).toEqual(
      Array.from({ length: count }, (_, i) => i),
    );
    const ending = new AbortController();
    const seen: number[] = [];
    for await (const event of store.subscribe({ stream: 'many', after: 9, signal: ending.signal }))
      if (seen.push(event.version) === count - 10) ending.abort();
    expect(seen).toEqual(Array.from({ length: count - 10 }, (_, i) => i + 10));
  });

  test('a subscription from the end has what comes alone, and one that is left ends', async () => {
    await store.append('ending-1', [placed(1), placed(2)]);
    for (const wanted of [
      { stream: 'ending-1' },
      { category: 'ending' },
      { filter: { on: 'stream', prefixes: ['ending'] } },
    ] as const) {
      let appended = 0;
      const seen: unknown[] = [];
      const options = {
        ...wanted,
        after: 'end' as const,
        onCaughtUp: () => {
          if (appended++ === 0) void store.append('ending-1', { type: 'New', data: wanted });
        },
      };
      for await (const { data } of store.subscribe(options)) {
        seen.push(data);
        break;
      }
      expect(seen).toEqual([wanted]);
    }
  });

  test('a subscription ends with what its callbacks throw', async () => {
    await store.append('thrown-1', [placed(1), placed(2)]);
    const thrown = new Error('thrown');
    const onCaughtUp = () => {
      throw thrown;
    };
    await expect(all(store.subscribe({ category: 'thrown', onCaughtUp }))).rejects.toBe(thrown);
    await expect(all(store.subscribe({ stream: 'thrown-1', onCaughtUp }))).rejects.toBe(thrown);
  });

  test('knows its checkpoints, and those of no other log', async () => {
    await store.append('checked', [placed(1), placed(2)]);
    const [first, last] = await all(store.read('checked'));
    const { checkpoint, end } = await store.checkpoint({ position: last!.position, id: last!.id });
    expect(checkpoint).toMatchObject({ position: last!.position, id: last!.id });
    expect(end).toBeGreaterThan(last!.position.commit);
    const stored = JSON.parse(JSON.stringify(checkpoint)) as typeof checkpoint & {};
    expect(await store.checkpoint({ after: stored })).toMatchObject({ checkpoint: stored });
    expect((await store.checkpoint()).checkpoint!.position.commit).toBeGreaterThan(first!.position.commit);
    const untold = (await store.checkpoint({ position: last!.position })).checkpoint!;
    expect([last!.id, null]).toContain(untold.id);
    expect(await codeOf(store.checkpoint({ after: untold }))).toBeNull();
    await expect(store.checkpoint({ after: { ...stored, id: first!.id } })).rejects.toMatchObject({
      code: 'checkpoint_unknown',
      data: { position: last!.position, why: `another event is there than ${first!.id}` },
    });
    await expect(store.checkpoint({ position: first!.position, id: last!.id })).rejects.toMatchObject({
      code: 'checkpoint_unknown',
    });
    const beyond = { commit: end + 1_000, prepare: end + 1_000 };
    expect(await codeOf(store.checkpoint({ position: beyond }))).toBe('checkpoint_unknown');
    expect(await codeOf(store.checkpoint({ position: first!.position, after: stored }))).toBe('bad_option');
    expect(await codeOf(store.checkpoint({ after: { position: 7 } as never }))).toBe('bad_option');
  });
}
