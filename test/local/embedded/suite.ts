import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as Embedded from '../../../local/embedded/index.ts';
import type {
  OpenStoreOptions,
  Position,
  RecordedEvent,
  RedactOptions,
  RedactResult,
  Store,
} from '../../../local/embedded/index.ts';

/**
 * What `skua/embedded` promises, for the sources and for the packed package alike. `embedded` is asked when tests run.
 */
export function storeTests(embedded: () => typeof Embedded): void {
  let folder: string;
  let folders = 0;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'skua-embedded-'));
  });
  afterAll(async () => rm(folder, { recursive: true, force: true }));

  const directory = () => path.join(folder, String(++folders));
  const PLACES: readonly (readonly [string, () => OpenStoreOptions])[] = [
    ['memory', () => ({ memory: true })],
    ['directory', () => ({ directory: directory(), chunkBytes: 1_048_576 })],
    ['bucket', () => ({ bucket: directory(), chunkBytes: 1_048_576 })],
  ];

  async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
    const found: T[] = [];
    for await (const event of events) found.push(event);
    return found;
  }

  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: unknown) =>
        embedded().isSkuaError(error) && error instanceof embedded().SkuaError ? error.code : String(error),
    );
  const placed = (total: number) => ({ type: 'Placed', data: { total } });

  describe.each(PLACES)('a store in %s', (kind, place) => {
    let store: Store;
    beforeAll(async () => {
      store = await embedded().openStore(place());
    });
    afterAll(() => store.close());

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
      expect(
        events.map(({ version, type, data, metadata, isJson }) => [version, type, data, metadata, isJson]),
      ).toEqual([
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

    test('reads streams of many pages in both directions, from anywhere, as far as wanted', async () => {
      const count = 600;
      await store.append(
        'long',
        Array.from({ length: count }, (_, i) => placed(i)),
      );
      const versions = async (options?: Parameters<Store['read']>[1]) =>
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
        (
          await all(store.readAll({ direction: 'backward', limit: 2, filter: { on: 'stream', pattern: '^lo.g$' } }))
        ).map(({ version }) => version),
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

    test("shows the system's own events only to who asks", async () => {
      await store.setMetadata('shown', { maxCount: 5 });
      const types = async (system: boolean) =>
        new Set((await all(store.readAll({ system }))).map(({ type }) => type[0]));
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
        ['bad_option', () => all(store.readAll({ filter: { on: 'stream' } }))],
        ['invalid_expression', () => all(store.readAll({ filter: { on: 'stream', pattern: '(' } }))],
        ['unsupported_expression', () => all(store.readAll({ filter: { on: 'stream', pattern: '(?=a)' } }))],
        ['bad_option', () => store.proveErased({})],
        ['bad_option', () => store.proveErased({ events: ['x'] })],
        ['bad_option', () => store.backup({ to: '' })],
        ['bad_option', () => store.backup({ to: directory(), key: Uint8Array.of(1) })],
        ['stream_not_found', () => store.explain('refused')],
        ['bad_option', () => store.scavenge({ threads: 0 })],
        ['bad_option', () => store.redact('refused', { reason: 'r' })],
        ['bad_option', () => store.redact('refused', { events: [0], reason: '' })],
        ['bad_option', () => store.redact('refused', { events: [0] } as unknown as RedactOptions)],
        ['stream_not_found', () => store.redact('refused', { events: [0], reason: 'r' })],
        ['not_redactable', () => store.redact('$redactions', { events: [0], reason: 'r' })],
        ['invalid_mark', () => store.append('$redactions', placed(1))],
      ];
      for (const [code, work] of refusals) {
        expect([code, await codeOf(work())]).toEqual([code, code]);
        expect(Object.keys(embedded().STORE_ERRORS)).toContain(code);
      }
      expect(await store.info('refused')).toEqual({ stream: 'refused', state: 'none', version: null });
    });

    test('a redacted event reads as empty at once, and a scavenge removes its content', async () => {
      const secret = `secret ${'of one card '.repeat(9)}`;
      const metadata = { who: secret, $correlationId: 'c-1', $causationId: 'c-0' };
      await store.append('paid', [placed(1), { type: 'Paid', data: { secret }, metadata }, placed(3)]);
      const [, { id }] = (await all(store.read('paid'))) as [RecordedEvent, RecordedEvent];
      const wanted = { ids: [id], reason: 'card number', metadata: ['$causationId'] };
      const shown = await store.redact('paid', { ...wanted, preview: true });
      expect(shown).toMatchObject({ stream: 'paid', events: [{ version: 1, id, type: 'Paid', wasRedacted: false }] });
      const [{ dataBytes, metadataBytes }] = shown.events as [RedactResult['events'][number]];
      expect([dataBytes, metadataBytes]).toEqual(
        [{ secret }, metadata].map((value) => Buffer.byteLength(JSON.stringify(value))),
      );
      expect(shown.position).toBeNull();
      expect((await all(store.read('paid')))[1]).toMatchObject({ data: { secret }, isRedacted: false });

      const done = await store.redact('paid', wanted);
      expect(done.events).toEqual(shown.events);
      const [mark] = await all(store.read('$redactions', { direction: 'backward', limit: 1 }));
      expect(mark!.position).toEqual(done.position);
      expect(mark!.data).toMatchObject({ stream: 'paid', number: 1, id, reason: 'card number', by: 'embedded' });
      const empty = { version: 1, data: undefined, metadata: { $correlationId: 'c-1' }, isRedacted: true };
      const check = async () => {
        const events = await all(store.read('paid'));
        expect(events.map(({ data, isRedacted }) => [data, isRedacted])).toEqual([
          [placed(1).data, false],
          [undefined, true],
          [placed(3).data, false],
        ]);
        expect(events[1]).toMatchObject({ ...empty, id, type: 'Paid' });
        expect((await all(store.readAll())).find((event) => event.id === id)).toMatchObject(empty);
      };
      await check();
      await store.scavenge();
      await check();
      expect(await codeOf(store.redact('paid', { events: [7], reason: 'r' }))).toBe('event_not_found');
      expect(await store.redact('paid', { events: [1], reason: 'r' })).toMatchObject({
        events: [{ version: 1, wasRedacted: true }],
        position: null,
      });
    });

    test('a scavenge frees what is deleted, and it is proved; what stays is read as before', async () => {
      const secret = Array.from({ length: 20 }, (_, i) => ({
        type: 'Secret',
        data: { text: `secret-${i}-`.repeat(500) },
      }));
      await store.append('secrets', secret);
      const [{ id }] = (await all(store.read('secrets', { limit: 1 }))) as [RecordedEvent];
      await store.append('stays', placed(1));
      await store.delete('secrets', { hard: true });
      expect(await store.proveErased({ stream: 'secrets' })).toMatchObject({ isErased: false, isKnown: true });
      expect(await store.proveErased({ events: [id] })).toMatchObject({ isErased: false });
      const explanation = await store.explain('secrets');
      expect(explanation.removed.reduce((sum, { count }) => sum + count, 0)).toBe(20);
      expect(explanation.removed[0]!.rule).toBe('tombstone');
      const result = await store.scavenge({ onProgress: () => {} });
      expect(result.bytesFreed).toBeGreaterThan(80_000);
      expect(await all(store.read('stays'))).toHaveLength(1);
      const proof = await store.proveErased({ stream: 'secrets', events: [id] });
      expect(proof.isKnown).toBe(true);
      if (kind === 'bucket') {
        expect(result.goneBy!.getTime()).toBeGreaterThan(Date.now());
        expect(proof.findings.every(({ kind: what, file }) => what === 'residue' || !/manifest/.test(file))).toBe(true);
      } else {
        expect(result.goneBy).toBeNull();
        expect(proof).toMatchObject({ isErased: true, traces: 0 });
      }
      expect(proof.files).toBeGreaterThan(0);
      expect(proof.residues).toBeGreaterThan(0);
      expect(await store.proveErased({ stream: 'never-was' })).toMatchObject({ isErased: true, isKnown: false });
    });

    test('one that is ended by its signal, before or meanwhile, rejects with the reason, and the next one goes on', async () => {
      const reason = new Error('later');
      await expect(store.scavenge({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      await expect(store.proveErased({ stream: 'stays', signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      await expect(store.backup({ to: directory(), signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      const running = store.scavenge();
      expect(await codeOf(store.scavenge())).toBe('scavenge_in_progress');
      await running;
    });

    test('a backup holds it all, and a second one only what is new', async () => {
      const to = directory();
      const key = new Uint8Array(32).fill(7);
      const first = await store.backup({ to, key });
      expect(first.bytesNew).toBeGreaterThan(0);
      const second = await store.backup({ to, key });
      expect(second.id).not.toBe(first.id);
      expect(second.bytesNew).toBeLessThan(first.bytesNew);
      expect(await codeOf(store.backup({ to }))).toBe('repository_key');
    });
  });

  test('a directory is there again when it is opened again, and is locked meanwhile', async () => {
    const at = directory();
    {
      await using store = await embedded().openStore({ directory: at, chunkBytes: 1_048_576 });
      await store.append('lasting', placed(1));
      expect(await codeOf(embedded().openStore({ directory: at }))).toBe('directory_locked');
    }
    await using store = await embedded().openStore({ directory: at });
    expect((await all(store.read('lasting'))).map(({ data }) => data)).toEqual([{ total: 1 }]);
    expect((await readFile(path.join(at, 'writer.chk'))).length).toBe(8);
  });

  test('what is open ends when the store closes', async () => {
    const store = await embedded().openStore({ memory: true });
    await store.append('open', placed(1));
    const following = all(store.subscribe({ stream: 'open' }));
    const reading = store.read('open')[Symbol.asyncIterator]();
    await reading.next();
    const codes = [codeOf(following)];
    await store.close();
    await store.close();
    for (const call of [
      () => store.append('open', placed(2)),
      () => all(store.read('open')),
      () => all(store.readAll()),
      () => all(store.subscribe()),
      () => store.delete('open'),
      () => store.info('open'),
      () => store.metadata('open'),
      () => store.setMetadata('open', {}),
      () => store.scavenge(),
      () => store.explain('open'),
      () => store.proveErased({ stream: 'open' }),
      () => store.backup({ to: directory() }),
      () => store.appendToStreams([]),
    ])
      codes.push(codeOf(call()));
    expect(new Set(await Promise.all(codes))).toEqual(new Set(['store_closed']));
  });

  test('where the store lies has to be said, once', async () => {
    for (const options of [
      {},
      { memory: false },
      { memory: true, directory: 'x' },
      { directory: '' },
      { bucket: 'ftp://x' },
      { memory: true, chunkBytes: 1 },
      { memory: true, cacheBytes: 1.5 },
    ]) {
      expect(await codeOf(embedded().openStore(options as unknown as OpenStoreOptions)), JSON.stringify(options)).toBe(
        'bad_option',
      );
    }
  });

  test('the log tells who asks for it', async () => {
    const entries: string[] = [];
    await using _store = await embedded().openStore({
      memory: true,
      onLog: ({ level, message }) => entries.push(`${level} ${message}`),
    });
    expect(entries.length).toBeGreaterThan(0);
  });
}
