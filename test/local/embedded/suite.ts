import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as Embedded from '../../../local/embedded/index.ts';
import { eventStoreTests } from '../../event-store/contract.ts';
import type {
  OpenStoreOptions,
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

  describe.each(PLACES)('an event store in %s', (_kind, place) => {
    let store: Store;
    beforeAll(async () => {
      store = await embedded().openStore(place());
    });
    afterAll(() => store.close());

    eventStoreTests(() => ({
      store,
      codeOf,
      redact: async (stream, version) => {
        await store.redact(stream, { events: [version], reason: 'a test' });
      },
    }));
  });

  describe.each(PLACES)('a store in %s', (kind, place) => {
    let store: Store;
    beforeAll(async () => {
      store = await embedded().openStore(place());
    });
    afterAll(() => store.close());

    test("what can't be meant is refused with a code that is documented", async () => {
      const refusals: readonly (readonly [string, () => Promise<unknown>])[] = [
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
      ];
      for (const [code, work] of refusals) {
        expect([code, await codeOf(work())]).toEqual([code, code]);
        expect(Object.keys(embedded().STORE_ERRORS)).toContain(code);
      }
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
