import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../../../core/base/errors.ts';
import { statusOf } from '../../../../handlers/grpc/streams/batch-errors.ts';
import type { App } from '../../../../handlers/http/context.ts';
import { toBytes } from '../../../grpc/codec.ts';
import type { Json } from '../../../grpc/codec.ts';
import { grpcHarness, securedGrpc } from '../../../grpc/harness.ts';
import { AS } from '../../secured.ts';
import { audited } from '../audited.ts';
import { BATCH, chunkOf, idOf, proposed, stream } from './kit.ts';

const SECONDS = (seconds: number): Json => ({ deadline: { seconds: String(seconds) } });
const options = (name: string, more: Json = { any: {}, ...SECONDS(10) }): Json => ({
  options: { ...stream(name), ...more },
});
/** A whole append in one chunk. */
const whole = (
  correlation: number,
  name: string,
  events: readonly Json[] = [proposed(correlation)],
  more?: Json,
): Json => chunkOf(correlation, events, { ...options(name, more), is_final: true });
/** What a response says, by name. */
const gist = (response: Json): string => {
  const { correlation_id: id, success, error } = response as any;
  const of =
    id === undefined
      ? '?'
      : id.string === undefined
        ? `structured ${id.structured.least_significant_bits ?? 0}`
        : Number(id.string.slice(-12));
  return `${of} ${success !== undefined ? `at ${success.current_revision ?? 'nothing'}` : error.message}`;
};

describe('BatchAppend', () => {
  it('takes chunks of many appends in any order, and answers each when it is done', async () => {
    const h = grpcHarness();
    const call = h.open(BATCH, [
      chunkOf(1, [proposed(1)], options('a')),
      chunkOf(2, [proposed(2)], options('b')),
      chunkOf(1, [proposed(3)], {}),
      chunkOf(2, [proposed(4)]),
      chunkOf(1, []),
      whole(3, 'a', [], { stream_position: '7' }),
      whole(4, 'a', [proposed(5)], { stream_position: '1', ...SECONDS(5) }),
    ]);
    await call.ended;
    expect(call.ending).toMatchObject({ status: 0 });
    expect(call.received.map(gist).sort()).toEqual(['1 at 1', '2 at 1', '3 WrongExpectedVersion', '4 at 2']);
    const { events } = await h.store.readStream('a', { direction: 'forward', from: 0, count: 9 });
    expect(events.map(({ id }) => id)).toEqual([idOf(1), idOf(3), idOf(5)]);
    expect(call.received.find((one) => gist(one).startsWith('2 '))).toMatchObject({
      correlation_id: { string: idOf(2) },
      ...stream('b'),
    });
  });

  it('keeps the order of appends to one stream, sends answers in blocks, and stays open', async () => {
    const h = grpcHarness();
    const call = h.open(
      BATCH,
      Array.from({ length: 64 }, (_, i) => whole(i + 1, 's')),
      { isOpen: true },
    );
    await call.until(64);
    expect(call.received.map(gist)).toEqual(Array.from({ length: 64 }, (_, i) => `${i + 1} at ${i}`));
    expect(call.blocks.length).toBeLessThan(8);
    expect(call.ending).toBe(null);
    call.push(whole(65, 's'));
    expect(gist((await call.until(65))[64]!)).toBe('65 at 64');
    call.halfClose();
    expect(await call.ended).toMatchObject({ status: 0 });
  });

  it('gives an append up when its time is over before its last chunk, also after the half-close', async () => {
    const h = grpcHarness();
    const call = h.open(
      BATCH,
      [
        chunkOf(1, [proposed(1)], options('s', { any: {}, ...SECONDS(1) })),
        chunkOf(2, [proposed(2)], options('s', { any: {}, ...SECONDS(60) })),
      ],
      { isOpen: true },
    );
    await h.clock.advance(999);
    expect(call.received).toEqual([]);
    await h.clock.advance(1);
    expect(call.received.map(gist)).toEqual(['structured -9223372036854775807 Timeout']);
    // It is not known any more.
    call.push(chunkOf(1, [proposed(3)])).halfClose();
    await h.clock.advance(999);
    expect(call.ending).toBe(null);
    await h.clock.advance(1);
    expect(await call.ended).toMatchObject({ status: 0 });
    expect(call.received.map(gist)).toEqual([
      'structured -9223372036854775807 Timeout',
      'structured -9223372036854775806 Timeout',
    ]);
    expect(h.clock.sleeping).toBe(0);
    expect(await h.store.streamInfo('s')).toMatchObject({ lastEventNumber: -1 });
    const late = await h.call(BATCH, [
      whole(4, 's', [proposed(4)], { any: {}, deadline: {} }),
      whole(5, 's', [proposed(5)], { any: {}, deadline_21_10_0: { seconds: String(h.clock.nowMs() / 1_000 - 10) } }),
    ]);
    expect(late.received.map(gist)).toEqual(['4 Timeout', '5 Timeout']);
  });

  it('names what is wrong with a chunk, and goes on with the others', async () => {
    const h = grpcHarness({ options: { appendBytesMax: 10 } });
    await h.store.deleteStream('gone', -2, 'hard');
    const text = (response: Json | undefined): string =>
      Buffer.from((response as any).error.details.value, 'base64')
        .subarray(2)
        .toString();
    const call = h.open(BATCH, [
      { ...options('s'), is_final: true },
      { correlation_id: { string: 'x' }, ...options('s'), is_final: true },
      chunkOf(1, [proposed(1)], { options: { any: {} }, is_final: true }),
      whole(2, 's', [proposed(2)], SECONDS(1)),
      whole(3, 's', [proposed(3, '', { metadata: { type: 't' } })], { any: {}, ...SECONDS(1) }),
      whole(4, 's', [{ metadata: { type: 't', 'content-type': 'x' } }], { any: {}, ...SECONDS(1) }),
      chunkOf(5, [proposed(5)]),
      whole(6, 's', [proposed(6, 'x'.repeat(11))]),
      chunkOf(7, [proposed(7, 'x'.repeat(6))], options('s')),
      chunkOf(7, [proposed(8, 'x'.repeat(6))]),
      chunkOf(7, []),
      whole(8, 'gone'),
      whole(9, ''),
      whole(10, 's'),
      whole(11, 's', [proposed(11)], { no_stream: {} }),
    ]);
    await call.until(11);
    const all = call.received;
    expect(all.slice(0, 6).map(text)).toEqual([
      "Value cannot be null. (Parameter 'dto')",
      'Unrecognized Guid format.',
      'Object reference not set to an instance of an object.',
      expect.stringContaining('BatchAppendReq+Types+Options+ExpectedStreamPositionOneofCase'),
      'The given key was not present in the dictionary.',
      "Value cannot be null. (Parameter 'dto')",
    ]);
    expect(all.slice(6).map(gist).sort()).toEqual(
      [
        '6 MaximumAppendSizeExceeded',
        '7 MaximumAppendSizeExceeded',
        '8 StreamDeleted',
        '9 AccessDenied',
        '10 at 0',
        '11 WrongExpectedVersion',
      ].sort(),
    );
    // Two of the malformed ones are open still, until their time is over.
    expect(call.ending).toBe(null);
    await h.clock.advance(1_000);
    expect(await call.ended).toMatchObject({ status: 0 });
    expect(call.received.slice(12).map(gist)).toEqual([
      'structured -9223372036854775805 Timeout',
      'structured -9223372036854775804 Timeout',
    ]);
  });

  it('does not keep an append open whose stream has a name that is too long, and repeats that once', async () => {
    const h = grpcHarness();
    const name = 'n'.repeat(1_025);
    const wrong = [proposed(2, '', { metadata: { type: 't' } })];
    const { received } = await h.call(BATCH, [
      chunkOf(1, [proposed(1)], options(name)),
      ...Array.from({ length: 20 }, () => chunkOf(1, wrong, {})),
      whole(2, 's'),
    ]);
    expect(received.map(gist)).toEqual(['1 BadRequest', '2 at 0']);
  });

  it('answers in the form of the id that was sent, and finds chunks by the id whatever its form', async () => {
    const h = grpcHarness();
    const structured = {
      structured: { most_significant_bits: '16384', least_significant_bits: '-9223372036854775807' },
    };
    const { received } = await h.call(BATCH, [
      chunkOf(1, [proposed(1)], options('s')),
      { correlation_id: structured, is_final: true },
    ]);
    expect(received).toMatchObject([{ correlation_id: structured, success: { current_revision: '0' } }]);
    expect((received[0] as any).correlation_id.string).toBe(undefined);
  });

  it('asks for each append who may write', async () => {
    const h = securedGrpc();
    const { received } = await h.call(
      BATCH,
      [whole(1, '$sys'), whole(2, 's'), chunkOf(3, [], options('$sys')), chunkOf(3, [])],
      AS.plain,
    );
    expect(received.map(gist).sort()).toEqual(['1 AccessDenied', '2 at 0', '3 AccessDenied']);
  });

  it('reads the events of a chunk only for who may write them, and refuses one that holds more than its bytes can mean', async () => {
    const h = securedGrpc();
    const of = (name: string, events: Uint8Array): Uint8Array =>
      Buffer.concat([toBytes('event_store.client.streams.BatchAppendReq', whole(1, name, [])), events]);
    // An event that ends within its id.
    const malformed = Uint8Array.of(26, 2, 10, 9);
    const refused = h
      .open(BATCH, [], { isOpen: true, metadata: AS.plain })
      .pushBytes(of('$sys', malformed))
      .halfClose();
    expect([await refused.ended, refused.received.map(gist)]).toMatchObject([{ status: 0 }, ['1 AccessDenied']]);
    const letIn = h.open(BATCH, [], { isOpen: true, metadata: AS.plain }).pushBytes(of('s', malformed)).halfClose();
    expect([await letIn.ended, letIn.received]).toMatchObject([{ status: 2 }, []]);
    const dense = h
      .open(BATCH, [], { isOpen: true, metadata: AS.plain })
      .pushBytes(of('s', Buffer.alloc(1_048_000, Buffer.from([26, 0]))))
      .halfClose();
    expect(await dense.ended).toMatchObject({
      status: 3,
      message: expect.stringMatching(/at most one element for 16 bytes/),
    });
  });

  it('ends when its user is another than when it began, and writes nothing more', async () => {
    const h = securedGrpc();
    let isChanged = false;
    Object.assign(h.security.authenticator, { hasChanged: () => (isChanged ? Promise.resolve(true) : false) });
    const call = h.open(BATCH, [whole(1, 's')], { isOpen: true, metadata: AS.plain });
    expect((await call.until(1)).map(gist)).toEqual(['1 at 0']);
    isChanged = true;
    call.push(whole(2, 's'));
    expect(await call.ended).toMatchObject({ status: 7, trailers: { exception: 'access-denied' } });
    expect(await h.store.streamInfo('s')).toMatchObject({ lastEventNumber: 0 });
  });

  it('tells the audit of each append by which rights are changed', async () => {
    const h = audited();
    const metadata = (n: number, data: string): Json =>
      proposed(n, data, { metadata: { type: '$metadata', 'content-type': 'application/json' } });
    for (const chunk of [
      whole(1, 's'),
      whole(2, '$$s', [metadata(2, '{"$acl":{"$r":"ann"}}')]),
      whole(3, '$$s', [metadata(3, '{"$maxCount":5}')]),
      whole(4, '$$s', [metadata(4, '{"$maxCount":6}')]),
    ])
      await h.call(BATCH, [chunk], AS.admin);
    await h.call(BATCH, [whole(5, '$settings')], AS.plain);
    expect(h.entries.map(({ action, outcome, target, details }) => [action, outcome, target, details])).toEqual([
      ['access-list.change', 'success', 's', { read: ['ann'] }],
      ['access-list.change', 'success', 's', { removed: true }],
      ['access-list.change', 'refused', '$settings', null],
    ]);
  });

  it('ends as a whole where another member leads, and is refused one by one where the store is busy', async () => {
    const h = grpcHarness();
    const append = h.store.append.bind(h.store);
    let error: SkuaError | null = new SkuaError('too_busy', 'No.');
    h.store.append = (...args) => (error === null ? append(...args) : Promise.reject(error));
    const call = h.open(BATCH, [whole(1, 's')], { isOpen: true });
    expect((await call.until(1))[0]).toMatchObject({ error: { message: 'Server Is Busy' } });
    error = new SkuaError('commit_outcome_unknown', 'Who knows.');
    call.push(whole(2, 's'));
    expect(gist((await call.until(2))[1]!)).toBe('2 Timeout');
    error = new SkuaError('not_leader', 'Elsewhere.');
    call.push(whole(3, 's'));
    expect(await call.ended).toMatchObject({ status: 14, message: 'No leader info available in response' });
  });

  it('reads no more of a client that takes no answers, and bounds what is open', async () => {
    const h = grpcHarness();
    const call = h.open(BATCH, [], { isOpen: true, isStalled: true });
    for (let i = 0; i < 50; i++) {
      call.push(whole(i, 's'));
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    expect(call.received.length).toBeLessThan(5);
    call.resume();
    await call.until(50);
    call.push(...Array.from({ length: 1_030 }, (_, i) => chunkOf(100 + i, [], options('s'))));
    await call.until(56);
    expect(call.received.slice(50).every((one) => (one as any).error.message === 'Server Is Busy')).toBe(true);
    call.cancel();
    await call.ended;
    expect(h.clock.sleeping).toBe(0);
  });
});

it('logs what fails, but not where its call is over', () => {
  const logged: unknown[] = [];
  const app = {
    world: {
      log: {
        error: (_text: string, { error }: { error: unknown }) => {
          logged.push(error);
        },
      },
    },
  } as unknown as App;
  const unforeseen = new Error('unforeseen');
  for (const error of [new SkuaError('aborted', 'The call is over.'), unforeseen]) statusOf(error, app, 's', []);
  expect(logged).toEqual([unforeseen]);
});
