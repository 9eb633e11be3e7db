import { expect, test } from 'vitest';
import { all, APPEND_BYTES_MAX, expecting, failure } from '../nodes.ts';
import { numbered, take } from './suite.ts';
import type { Suite } from './suite.ts';

/** Appends, reads, metadata and deletes. */
export function streamTests({ lib, isNew, client, stream }: Suite): void {
  const numbers = (events: readonly { readonly event?: { readonly data?: unknown } | undefined }[]): unknown[] =>
    events.map(({ event }) => (event?.data as { readonly n?: unknown } | undefined)?.n);
  const expected = (error: Record<string, any>): unknown[] =>
    isNew ? [error['expectedState'], error['actualState']] : [error['expectedVersion'], error['actualVersion']];

  test('appends in every expected state, and is refused with what was expected and what is there', async () => {
    const name = stream();
    const first = await client().appendToStream(name, numbered(lib, 2), expecting(lib.NO_STREAM));
    expect(first).toMatchObject({ success: true, nextExpectedRevision: 1n });
    expect(first.position!.commit).toBeGreaterThan(0n);
    expect(await client().appendToStream(name, numbered(lib, 1), expecting(1n))).toMatchObject({
      success: true,
      nextExpectedRevision: 2n,
    });
    expect(await client().appendToStream(name, numbered(lib, 1), expecting(lib.STREAM_EXISTS))).toMatchObject({
      nextExpectedRevision: 3n,
    });
    expect(await client().appendToStream(name, numbered(lib, 1), expecting(lib.ANY))).toMatchObject({
      nextExpectedRevision: 4n,
    });
    for (const state of [lib.NO_STREAM, 2n, 40n] as const) {
      const error = await failure(client().appendToStream(name, numbered(lib, 1), expecting(state)));
      expect(error).toBeInstanceOf(lib.WrongExpectedVersionError);
      expect(expected(error)).toEqual([state, 4n]);
      expect(error['streamName']).toBe(name);
    }
    const missing = await failure(client().appendToStream(stream(), numbered(lib, 1), expecting(lib.STREAM_EXISTS)));
    expect([missing instanceof lib.WrongExpectedVersionError, ...expected(missing)]).toEqual([
      true,
      lib.STREAM_EXISTS,
      lib.NO_STREAM,
    ]);
  });

  test('an append that comes again is answered as the first time, and writes nothing', async () => {
    const name = stream();
    const events = numbered(lib, 3);
    const first = await client().appendToStream(name, events, expecting(lib.NO_STREAM));
    expect(await client().appendToStream(name, events, expecting(lib.NO_STREAM))).toEqual(first);
    expect(await all(client().readStream(name))).toHaveLength(3);
  });

  test('text, bytes, metadata, identifiers and times come back as they went', async () => {
    const name = `${stream()} Straße 日本`;
    const id = '3fd9a5a4-7b36-4e5a-9e1c-0a1b2c3d4e5f';
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const before = Date.now();
    await client().appendToStream(name, [
      lib.jsonEvent({
        id,
        type: 'Größe',
        data: { text: 'é 🦅', big: 9_007_199_254_740_991, nested: [{ a: null }] },
        metadata: { by: 'kim', $correlationId: 'c-1' },
      }),
      lib.binaryEvent({ type: 'raw', data: bytes, metadata: Buffer.from([0, 255]) }),
      lib.binaryEvent({ type: 'empty', data: new Uint8Array(0) }),
    ]);
    const [json, binary, empty] = await all(client().readStream(name));
    expect(json!.event).toMatchObject({
      id,
      streamId: name,
      type: 'Größe',
      isJson: true,
      revision: 0n,
      data: { text: 'é 🦅', big: 9_007_199_254_740_991, nested: [{ a: null }] },
      metadata: { by: 'kim', $correlationId: 'c-1' },
    });
    expect(Math.abs(Number(json!.event!.created.getTime()) - before)).toBeLessThan(60_000);
    expect(binary!.event).toMatchObject({ type: 'raw', isJson: false, revision: 1n });
    expect([...(binary!.event!.data as Uint8Array)]).toEqual([...bytes]);
    expect([...(binary!.event!.metadata as Uint8Array)]).toEqual([0, 255]);
    expect([...(empty!.event!.data as Uint8Array)]).toEqual([]);
  });

  test('many events in one append, and many appends at a time', async () => {
    const name = stream();
    expect(
      await client().appendToStream(name, numbered(lib, 1_500), {
        ...expecting(lib.NO_STREAM),
        batchAppendSize: 4_096,
      } as object),
    ).toMatchObject({ nextExpectedRevision: 1_499n });
    expect(numbers(await all(client().readStream(name)))).toEqual(Array.from({ length: 1_500 }, (_, n) => n));
    const other = stream();
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, n) => client().appendToStream(other, numbered(lib, 1, n))),
    );
    expect(results.map(({ nextExpectedRevision }) => Number(nextExpectedRevision)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, n) => n),
    );
    expect(numbers(await all(client().readStream(other))).sort()).toEqual(
      Array.from({ length: 100 }, (_, n) => n).sort(),
    );
  });

  test('credentials with a call take the way of single appends', async () => {
    const name = stream();
    const credentials = { username: 'admin', password: 'changeit' };
    expect(
      await client().appendToStream(name, numbered(lib, 2), { ...expecting(lib.NO_STREAM), credentials }),
    ).toMatchObject({ success: true, nextExpectedRevision: 1n });
    const error = await failure(
      client().appendToStream(name, numbered(lib, 1), { ...expecting(lib.NO_STREAM), credentials }),
    );
    expect([error instanceof lib.WrongExpectedVersionError, ...expected(error)]).toEqual([true, lib.NO_STREAM, 1n]);
    expect(await all(client().readStream(name, { credentials, requiresLeader: true }))).toHaveLength(2);
  });

  test('reads forwards and backwards, from any number, as many as wanted', async () => {
    const name = stream();
    await client().appendToStream(name, numbered(lib, 100));
    const read = async (options: Parameters<ReturnType<typeof client>['readStream']>[1]) =>
      numbers(await all(client().readStream(name, options)));
    expect(await read({ maxCount: 3 })).toEqual([0, 1, 2]);
    expect(await read({ fromRevision: 97n })).toEqual([97, 98, 99]);
    expect(await read({ fromRevision: lib.START, maxCount: 70n })).toHaveLength(70);
    expect(await read({ direction: lib.BACKWARDS, fromRevision: lib.END, maxCount: 3 })).toEqual([99, 98, 97]);
    expect(await read({ direction: lib.BACKWARDS, fromRevision: 1n })).toEqual([1, 0]);
    expect(await read({ fromRevision: 500n })).toEqual([]);
    expect(numbers(await take(client().readStream(name), 40))).toHaveLength(40);
  });

  test('a stream that is not there, one that was deleted, and one that is gone for good', async () => {
    const name = stream();
    expect(await failure(client().readStream(name))).toBeInstanceOf(lib.StreamNotFoundError);
    await client().appendToStream(name, numbered(lib, 2));
    const wrong = await failure(client().deleteStream(name, { expectedRevision: 7n }));
    expect([wrong instanceof lib.WrongExpectedVersionError, ...expected(wrong)]).toEqual([true, 7n, 1n]);
    expect((await client().deleteStream(name, { expectedRevision: 1n })).position!.commit).toBeGreaterThan(0n);
    expect(await failure(client().readStream(name))).toBeInstanceOf(lib.StreamNotFoundError);
    expect(await client().appendToStream(name, numbered(lib, 1, 2), expecting(lib.NO_STREAM))).toMatchObject({
      nextExpectedRevision: 2n,
    });
    expect(numbers(await all(client().readStream(name)))).toEqual([2]);
    await client().tombstoneStream(name, { expectedRevision: lib.ANY });
    for (const what of [
      () => client().appendToStream(name, numbered(lib, 1)),
      () => client().deleteStream(name),
      () => client().tombstoneStream(name),
      () => client().readStream(name),
    ]) {
      const error = await failure(what() as Promise<unknown>);
      expect([error.constructor.name, error['streamName']]).toEqual(['StreamDeletedError', name]);
    }
    const never = stream();
    expect(await failure(client().deleteStream(never))).toBeInstanceOf(lib.WrongExpectedVersionError);
    expect((await client().tombstoneStream(never, { expectedRevision: lib.NO_STREAM })).position).toBeDefined();
  });

  test('metadata of streams, and what they hide', async () => {
    const name = stream();
    expect(await client().getStreamMetadata(name)).toMatchObject({ streamName: name });
    await client().appendToStream(name, numbered(lib, 10));
    const acl = { readRoles: ['$all'], writeRoles: ['$admins', 'admin'] };
    expect(
      await client().setStreamMetadata(
        name,
        { maxCount: 3, maxAge: 86_400, cacheControl: 7, acl, colour: 'blue' } as never,
        expecting(lib.NO_STREAM),
      ),
    ).toMatchObject({ success: true, nextExpectedRevision: 0n });
    const { metadata, metastreamRevision } = await client().getStreamMetadata(name);
    expect(metadata).toMatchObject({
      maxCount: 3,
      maxAge: 86_400,
      cacheControl: 7,
      colour: 'blue',
      acl: { writeRoles: ['$admins', 'admin'] },
    });
    // What these clients call so is the position of the event.
    expect(metastreamRevision).toBeGreaterThan(0n);
    expect(numbers(await all(client().readStream(name)))).toEqual([7, 8, 9]);
    expect(await failure(client().setStreamMetadata(name, { maxCount: 4 }, expecting(lib.NO_STREAM)))).toBeInstanceOf(
      lib.WrongExpectedVersionError,
    );
    await client().setStreamMetadata(name, { truncateBefore: 9 }, expecting(0n));
    expect(numbers(await all(client().readStream(name)))).toEqual([9]);
  });

  test('reads all streams, from either end and from a position, and what a filter takes', async () => {
    const [name, other] = [stream(), stream()];
    const { position } = await client().appendToStream(name, numbered(lib, 30, 0, `${name}-type`));
    await client().appendToStream(other, numbered(lib, 30, 0, `${other}-type`));
    const ours = async (options: Parameters<ReturnType<typeof client>['readAll']>[0]) =>
      (await all(client().readAll(options))).map(({ event }) => `${event!.streamId}/${event!.revision}`);
    const every = await ours({});
    expect(every.filter((id) => id.startsWith(`${name}/`) || id.startsWith(`${other}/`))).toEqual([
      ...Array.from({ length: 30 }, (_, n) => `${name}/${n}`),
      ...Array.from({ length: 30 }, (_, n) => `${other}/${n}`),
    ]);
    expect(await ours({ maxCount: 5, direction: lib.BACKWARDS, fromPosition: lib.END })).toEqual(
      Array.from({ length: 5 }, (_, n) => `${other}/${29 - n}`),
    );
    expect((await ours({ fromPosition: position! }))[0]).toBe(`${name}/29`);
    expect((await ours({ fromPosition: position!, direction: lib.BACKWARDS, maxCount: 1 }))[0]).toBe(`${name}/28`);
    expect(every.some((id) => id.startsWith('$$'))).toBe(true);
    // The older client has filters for subscriptions only.
    if (!isNew) return;
    expect(await ours({ filter: lib.streamNameFilter({ prefixes: [other] }), maxCount: 3 })).toEqual([
      `${other}/0`,
      `${other}/1`,
      `${other}/2`,
    ]);
    expect(await ours({ filter: lib.streamNameFilter({ regex: `^${name}$` }) })).toHaveLength(30);
    expect(await ours({ filter: lib.eventTypeFilter({ prefixes: [`${other}-t`] }) })).toHaveLength(30);
    expect(
      await ours({
        filter: lib.eventTypeFilter({ regex: `^${other}-type$` }),
        direction: lib.BACKWARDS,
        fromPosition: lib.END,
        maxCount: 2,
      }),
    ).toEqual([`${other}/29`, `${other}/28`]);
    expect(
      (await all(client().readAll({ filter: lib.excludeSystemEvents() }))).every(
        ({ event }) => !event!.type.startsWith('$'),
      ),
    ).toBe(true);
  });

  test('links are followed where that is asked for', async () => {
    const [name, links] = [stream(), stream()];
    await client().appendToStream(name, numbered(lib, 2));
    await client().appendToStream(
      links,
      [`1@${name}`, `0@${stream()}`].map((text) => lib.binaryEvent({ type: '$>', data: Buffer.from(text) })),
    );
    const [bare] = await all(client().readStream(links));
    expect([bare!.event!.type, bare!.link]).toEqual(['$>', undefined]);
    const [found, missing] = await all(client().readStream(links, { resolveLinkTos: true }));
    expect([found!.event!.streamId, found!.event!.revision, found!.link!.streamId, found!.link!.revision]).toEqual([
      name,
      1n,
      links,
      0n,
    ]);
    expect([missing!.event, missing!.link!.revision]).toEqual([undefined, 1n]);
  });

  test('what is too large is refused with the size that may be', async () => {
    const name = stream();
    const huge = [lib.binaryEvent({ type: 'huge', data: new Uint8Array(APPEND_BYTES_MAX + 1) })];
    for (const credentials of [undefined, { username: 'admin', password: 'changeit' }]) {
      const error = await failure(
        client().appendToStream(name, huge, credentials === undefined ? {} : { credentials }),
      );
      expect([error.constructor.name, error['maxAppendSize']]).toEqual([
        'MaxAppendSizeExceededError',
        APPEND_BYTES_MAX,
      ]);
    }
    expect(await failure(client().readStream(name))).toBeInstanceOf(lib.StreamNotFoundError);
  });
}
