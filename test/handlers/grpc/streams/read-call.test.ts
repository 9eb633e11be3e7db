import { describe, expect, it } from 'vitest';
import { ByteBudget } from '../../../../core/base/byte-budget.ts';
import { ANY } from '../../../../core/streams/api.ts';
import type { Json } from '../../../grpc/codec.ts';
import { securedGrpc } from '../../../grpc/harness.ts';
import { event, events, setMetadata } from '../../../streams/setup.ts';
import { Random } from '../../../support/random.ts';
import { AS } from '../../secured.ts';
import { stream } from './kit.ts';
import { FakeSecurity } from '../../../support/fake-security.ts';
import { gist, READ, readOf, realGrpc, streamRead } from './read-kit.ts';

const UNHANDLED = 'Exception was thrown by handler.';
const ALL_ONES = '18446744073709551615';
const range = (from: number, to: number, name = 's'): string[] =>
  Array.from({ length: Math.abs(to - from) }, (_, i) => `${from < to ? from + i : from - i}@${name}`);

describe('reading a stream', () => {
  it('gives all that is asked for, a block for each page', async () => {
    const h = realGrpc({ misses: 0.05 });
    await h.store.append('s', ANY, events(1_300));
    for (const [from, more, wanted] of [
      [{ start: {} }, { count: ALL_ONES }, range(0, 1_300)],
      [{ start: {} }, { count: '1200' }, range(0, 1_200)],
      [{ revision: '1290' }, { count: '50' }, range(1_290, 1_300)],
      [{ revision: '5000' }, { count: '5' }, []],
      [{ end: {} }, { count: '1299', read_direction: 'Backwards' }, range(1_299, 0)],
      [{ revision: '5000' }, { count: '2', read_direction: 'Backwards' }, range(1_299, 1_297)],
      [{ start: {} }, { count: '2', read_direction: 'Backwards' }, ['0@s']],
    ] as [Json, Json, string[]][]) {
      const call = h.open(READ, [streamRead('s', from, more)]);
      expect(await call.ended).toMatchObject({ status: 0 });
      expect(call.received.map(gist)).toEqual(wanted);
      expect(call.blocks.length).toBeLessThanOrEqual(Math.ceil(wanted.length / 512));
    }
  });

  it('gives all of it whatever the sizes, in blocks of at most one event more than a page', async () => {
    const h = realGrpc();
    const random = new Random(5);
    for (let i = 0; i < 60; i++)
      await h.store.append(
        's',
        ANY,
        Array.from({ length: 10 }, () =>
          event('x'.repeat(random.chance(i % 20 < 5 ? 0.3 : 0.01) ? random.int(10_000, 300_000) : random.int(0, 100))),
        ),
      );
    for (const [more, wanted] of [
      [{ stream: { ...stream('s'), start: {} } }, range(0, 600)],
      [{ stream: { ...stream('s'), end: {} }, read_direction: 'Backwards' }, range(599, -1)],
      [{ all: { end: {} }, read_direction: 'Backwards' }, range(599, -1)],
    ] as [Json, string[]][]) {
      const call = h.open(READ, [readOf({ ...more, count: ALL_ONES })]);
      await call.ended;
      expect(call.received.map(gist)).toEqual(wanted);
      expect(Math.max(...call.blocks.map(({ length }) => length))).toBeLessThan(440_000);
      // Neither one by one after a large event, nor all at once.
      expect([call.blocks.length > 20, call.blocks.length < 200]).toEqual([true, true]);
    }
  });

  it('says of what kind an id is to be', async () => {
    const h = realGrpc();
    await h.store.append('other', ANY, events(1));
    await h.store.append('s', ANY, [
      event('{}', { id: '6f1b2c3d-4e5f-4a6b-8c7d-9e8f7a6b5c4d', isJson: true, metadata: Buffer.from('{"m":1}') }),
    ]);
    const first = async (option: Json): Promise<any> =>
      ((await h.call(READ, streamRead('s', { start: {} }, { count: '1', uuid_option: option }))).received[0] as any)
        .event;
    const { event: recorded, commit_position: position } = await first({ string: {} });
    expect(recorded).toMatchObject({
      id: { string: '6f1b2c3d-4e5f-4a6b-8c7d-9e8f7a6b5c4d' },
      metadata: { type: 'thing', created: '17000000000000000', 'content-type': 'application/json' },
      custom_metadata: Buffer.from('{"m":1}').toString('base64'),
      commit_position: position,
    });
    for (const option of [{ structured: {} }, {}])
      expect((await first(option)).event.id).toEqual({
        structured: {
          most_significant_bits: String(0x6f1b2c3d4e5f4a6bn),
          least_significant_bits: String(BigInt.asIntN(64, 0x8c7d9e8f7a6b5c4dn)),
        },
      });
    expect(
      await h.call(READ, {
        options: { ...(readOf({ count: '1' })['options'] as Json), uuid_option: null, all: { start: {} } },
      }),
    ).toMatchObject({ status: 3, received: [] });
  });

  it('tells what is not there from what was deleted, hidden or never named', async () => {
    const h = realGrpc();
    for (const name of ['gone', 'hidden', 'dead']) await h.store.append(name, ANY, events(4));
    await h.store.deleteStream('gone', ANY, 'soft');
    await h.store.deleteStream('dead', ANY, 'hard');
    await setMetadata(h.store, 'hidden', '{"$tb":3}');
    const read = async (name: string, more: Json = {}, from: Json = { start: {} }) =>
      h.call(READ, streamRead(name, from, { count: '9', ...more }));
    for (const name of ['none', 'gone', '$all'])
      expect([name, (await read(name)).status, (await read(name)).received.map(gist)]).toEqual([
        name,
        0,
        ['not found'],
      ]);
    for (const name of ['dead', '$$dead'])
      expect(await read(name)).toMatchObject({
        status: 9,
        message: `Event stream '${name}' is deleted.`,
        trailers: { exception: 'stream-deleted', 'stream-name': name },
        received: [],
      });
    expect((await read('hidden')).received.map(gist)).toEqual(['3@hidden']);
    expect(await read('')).toMatchObject({ status: 7, message: 'Access Denied' });
    expect(await read('s', { count: '0' })).toMatchObject({ status: 2, message: 'Unexpected ReadStreamResult: Error' });
    expect(await read('none', {}, { end: {} })).toMatchObject({
      status: 2,
      message: 'Unexpected ReadStreamResult: Error',
    });
  });

  it('says with compatibility where the stream begins and ends', async () => {
    const h = realGrpc();
    await h.store.append('s', ANY, events(100));
    const read = async (from: Json, more: Json = {}) =>
      (
        await h.call(READ, streamRead('s', from, { count: '3', control_option: { compatibility: 1 }, ...more }))
      ).received.map(gist);
    const last = JSON.stringify({ last_stream_position: '99' });
    const first = (number: number): string => JSON.stringify({ first_stream_position: String(number) });
    expect(await read({ start: {} })).toEqual(['0@s', '1@s', '2@s', last]);
    expect(await read({ revision: '100' })).toEqual([last]);
    expect(await read({ revision: '500' })).toEqual([first(100), last]);
    await setMetadata(h.store, 's', '{"$tb":60}');
    expect(await read({ start: {} })).toEqual([first(60), '60@s', '61@s', '62@s', last]);
    expect(await read({ revision: '40' }, { count: '30' })).toEqual([...range(60, 90), last]);
    expect(await read({ revision: '61' }, { read_direction: 'Backwards' })).toEqual(['61@s', '60@s', last]);
    await setMetadata(h.store, 's', '{"$maxAge":1}');
    await h.clock.advance(5_000);
    expect(await read({ start: {} }, { count: '90' })).toEqual([first(100), last]);
  });

  it('lets others have their turn while it passes over what has expired', async () => {
    let turns = 0;
    const h = realGrpc(
      { options: { expiredScanEventsMax: 64 } },
      {
        clock: {
          nowMs: () => 0,
          monotonicMs: () => 0,
          sleep: async () => {},
          yield: async () => {
            turns++;
          },
        },
      },
    );
    await setMetadata(h.store, 's', '{"$maxAge":1}');
    await h.store.append('s', ANY, events(3_000));
    await h.clock.advance(5_000);
    await h.store.append('s', ANY, events(1));
    expect((await h.call(READ, streamRead('s', { start: {} }, { count: '5' }))).received.map(gist)).toEqual(['3000@s']);
    expect(turns).toBeGreaterThan(10);
  });

  it('resolves links, and gives away nothing that the reader may not see', async () => {
    const h = securedGrpc();
    const write = (name: string, type: string, data: string) => h.store.append(name, ANY, [event(data, { type })]);
    for (const name of ['open', 'closed']) await write(name, 'made', '{}');
    await h.store.append('$$closed', ANY, [event('{"$acl":{"$r":"ada"}}', { type: '$metadata', isJson: true })]);
    for (const data of ['0@open', '7@open', '0@closed', '7@closed', 'no link']) await write('l', '$>', data);
    const read = async (as: { readonly authorization: string }, resolves: boolean) =>
      (await h.call(READ, streamRead('l', { start: {} }, { count: '9', resolve_links: resolves }), as)).received.map(
        gist,
      );
    expect(await read(AS.plain, false)).toEqual(range(0, 5, 'l'));
    expect(await read(AS.plain, true)).toEqual(['0@open by 0@l', 'gone by 1@l', 'gone by 2@l', 'gone by 3@l', '4@l']);
    expect(await read(AS.admin, true)).toEqual([
      '0@open by 0@l',
      'gone by 1@l',
      '0@closed by 2@l',
      'gone by 3@l',
      '4@l',
    ]);
  });
});

describe('reading $all', () => {
  const read = async (h: ReturnType<typeof realGrpc>, all: Json, more: Json = {}) =>
    h.call(READ, readOf({ all, count: '3', ...more }));
  const at = (commit: number | string, prepare: number | string = commit): Json => ({
    position: { commit_position: String(commit), prepare_position: String(prepare) },
  });

  it('begins at a record, and nowhere else', async () => {
    const h = realGrpc();
    await h.store.append('s', ANY, events(4));
    const { events: all } = await h.store.readAll({ direction: 'forward', from: 'start', count: 9 });
    const { position } = all[1]!;
    const seen = async (from: Json, more?: Json) => (await read(h, from, more)).received.map(gist);
    const backwards = { read_direction: 'Backwards' };
    expect(await seen({ start: {} })).toEqual(['0@s', '1@s', '2@s']);
    for (const from of [at(position), at(position, 0)]) expect(await seen(from)).toEqual(['1@s', '2@s', '3@s']);
    expect(await seen(at(position), backwards)).toEqual(['0@s']);
    for (const from of [{ end: {} }, at(ALL_ONES)])
      expect([await seen(from), await seen(from, backwards)]).toEqual([[], ['3@s', '2@s', '1@s']]);
    expect([await seen(at(99_999_999)), await seen({ start: {} }, backwards)]).toEqual([[], []]);
    for (const [from, more] of [
      [at(position + 1)],
      [at(position + 1), backwards],
      [at('9223372036854775807'), backwards],
    ] as [Json, Json?][])
      expect(await read(h, from, more)).toMatchObject({ status: 2, message: 'Unexpected ReadAllResult: Error' });
    for (const from of [at(position, position + 1), at('9223372036854775808'), at(ALL_ONES, 5), at(5, ALL_ONES), {}])
      expect(await read(h, from)).toMatchObject({ status: 2, message: UNHANDLED });
    expect(await read(h, { start: {} }, { count: '0' })).toMatchObject({ status: 3 });
  });

  it('filters by names and types, whatever lies between', async () => {
    const h = realGrpc();
    for (let i = 0; i < 40; i++)
      await h.store.append(`s-${i % 4}`, ANY, [event('', { type: `t${i % 3}` }), event('', { type: '$sys' })]);
    const seen = async (filter: Json, more: Json = {}) =>
      h.call(
        READ,
        readOf({ all: { start: {} }, count: '2', no_filter: null, filter: { count: {}, ...filter }, ...more }),
      );
    const gists = async (filter: Json, more?: Json) => (await seen(filter, more)).received.map(gist);
    expect(await gists({ stream_identifier: { prefix: ['s-3', 's-2'] } })).toEqual(['0@s-2', '1@s-2']);
    expect(await gists({ stream_identifier: { regex: '-[13]$' }, max: 1 }, { count: '4' })).toEqual([
      '0@s-1',
      '1@s-1',
      '0@s-3',
      '1@s-3',
    ]);
    expect(await gists({ event_type: { regex: '^[^$]', prefix: ['$'] } })).toEqual(['0@s-0', '0@s-1']);
    expect(await gists({ event_type: { prefix: [''] } })).toEqual(['0@s-0', '1@s-0']);
    expect(await gists({ event_type: {} })).toEqual([]);
    expect(await seen({ event_type: { regex: '(' } })).toMatchObject({ status: 2, message: UNHANDLED });
    for (const bad of [
      { event_type: { regex: '(?=a)' } },
      { event_type: { regex: `(${'a'.repeat(900)}){30}` } },
      { event_type: { prefix: Array.from({ length: 1_001 }, () => 'p') } },
      { event_type: { prefix: ['t'] }, max: 0, count: undefined },
    ])
      expect((await seen(bad)).status).toBe(3);
    expect((await seen({ max: 7, count: undefined, checkpointIntervalMultiplier: 2 })).message).toBe(
      `'{ "max": 7, "checkpointIntervalMultiplier": 2 }' is not a valid EventStore.Client.Streams.ReadReq+Types+Options+Types+FilterOptions`,
    );
    expect((await seen({ count: null, stream_identifier: { prefix: ['s'] } })).message).toBe(
      `'None' is not a valid EventStore.Client.Streams.ReadReq+Types+Options+Types+FilterOptions+WindowOneofCase`,
    );
  });
});

describe('reading by an index', () => {
  const byIndex = (prefix: string[], more: Json = {}): Json =>
    readOf({
      all: { start: {} },
      count: '9',
      no_filter: null,
      filter: { count: {}, stream_identifier: { prefix } },
      ...more,
    });

  it('gives the events of a category or a type, and refuses more than one', async () => {
    const h = realGrpc();
    for (const name of ['s-1', 't-1', 's', 's-2'])
      await h.store.append(name, ANY, [event('', { type: 'a' }), event('', { type: 'b' })]);
    await setMetadata(h.store, 's-2', '{"$tb":1}');
    const gists = async (prefix: string[], more?: Json) =>
      (await h.call(READ, byIndex(prefix, more))).received.map(gist);
    expect(await gists(['$idx-ce-s'])).toEqual(['0@s-1', '1@s-1', '0@s', '1@s', '1@s-2']);
    expect(await gists(['$idx-ce-s'], { count: '2', all: { end: {} }, read_direction: 'Backwards' })).toEqual([
      '1@s-2',
      '1@s',
    ]);
    expect(await gists(['$idx-et-b'])).toEqual(['1@s-1', '1@t-1', '1@s', '1@s-2']);
    for (const prefix of [['$idx-ce-s', '$idx-ce-t'], ['$idx-ce-s', 's'], ['$idx-ce-'], ['$idx-et-'], ['$idx-none']])
      expect(await h.call(READ, byIndex(prefix))).toMatchObject({ status: 3, received: [] });
    // Of types it is a prefix like any other.
    const ofTypes = { filter: { count: {}, event_type: { prefix: ['$idx-ce-s'] } } };
    expect(await gists([], ofTypes)).toEqual([]);
  });

  it('asks the list of each stream, and not that of $all', async () => {
    const h = securedGrpc();
    for (const name of ['s-1', 's-2']) await h.store.append(name, ANY, events(1));
    await h.store.append('$$s-2', ANY, [event('{"$acl":{"$r":"olga"}}', { type: '$metadata', isJson: true })]);
    const seen = async (who: Readonly<Record<string, string>>) => {
      const { status, received } = await h.call(READ, byIndex(['$idx-ce-s']), { ...who });
      return [status, ...received.map(gist)];
    };
    expect(await seen(AS.plain)).toEqual([0, '0@s-1']);
    expect(await seen(AS.ops)).toEqual([0, '0@s-1', '0@s-2']);
    expect(await seen(AS.admin)).toEqual([0, '0@s-1', '0@s-2']);
    expect(await seen(AS.anonymous)).toEqual([7]);
    expect((await h.call(READ, byIndex(['s']), { ...AS.plain })).status).toBe(7);
  });
});

describe('a view of links', () => {
  it('gives links whose numbers are positions, resolved or not, from any of them', async () => {
    const h = realGrpc();
    for (const name of ['s-1', 't-1', 's', 's-2']) await h.store.append(name, ANY, events(1));
    const { events: all } = await h.store.readAll({ direction: 'forward', from: 'start', count: 9 });
    const [first, , , last] = all.map(({ position }) => position);
    const gists = async (from: Json, more: Json = {}) =>
      (await h.call(READ, streamRead('$ce-s', from, { count: '9', ...more }))).received.map(gist);
    expect(await gists({ start: {} })).toEqual([`${first}@$ce-s`, `${last}@$ce-s`]);
    expect(await gists({ end: {} }, { read_direction: 'Backwards', resolve_links: true })).toEqual([
      `0@s-2 by ${last}@$ce-s`,
      `0@s-1 by ${first}@$ce-s`,
    ]);
    expect(await gists({ revision: '7' })).toEqual([`${last}@$ce-s`]);
    expect(await gists({ revision: String(last! + 1) })).toEqual([]);
    expect((await h.call(READ, streamRead('$ce-none', { start: {} }, { count: '9' }))).received.map(gist)).toEqual([
      'not found',
    ]);
  });

  it('asks the list of each stream that it points to', async () => {
    const security = new FakeSecurity({ streamInfo: (name) => h.store.streamInfo(name) });
    security.add('kim', 'kim:pass', []);
    security.add('ada', 'ada-pass', ['$admins']);
    const h = realGrpc({}, { security });
    for (const name of ['s-1', 's-2']) await h.store.append(name, ANY, events(1));
    await setMetadata(h.store, 's-2', '{"$acl":{"$r":"olga"}}');
    const seen = async (who: Readonly<Record<string, string>>) => {
      const asked = streamRead('$ce-s', { start: {} }, { count: '9', resolve_links: true });
      const { status, received } = await h.call(READ, asked, { ...who });
      return [status, ...received.map((each) => gist(each).split(' ')[0])];
    };
    expect(await seen(AS.plain)).toEqual([0, '0@s-1']);
    expect(await seen(AS.admin)).toEqual([0, '0@s-1', '0@s-2']);
    expect(await seen(AS.anonymous)).toEqual([7]);
  });
});

describe('what is asked for', () => {
  it('must be one of the combinations that there are', async () => {
    const h = realGrpc();
    const one = streamRead('s', { start: {} }, {})['options'] as Json;
    const all = readOf({ all: { start: {} } })['options'] as Json;
    const filter = { event_type: { prefix: ['p'] }, count: {} };
    for (const [options, words] of [
      [one, 'Stream, None, Forwards, NoFilter'],
      [{ ...one, count: '1', no_filter: null }, 'Stream, Count, Forwards, None'],
      [{ ...one, count: '1', no_filter: null, filter }, 'Stream, Count, Forwards, Filter'],
      [{ ...one, subscription: {}, read_direction: 'Backwards' }, 'Stream, Subscription, Backwards, NoFilter'],
      [{ ...one, count: '1', read_direction: 7 }, 'Stream, Count, 7, NoFilter'],
      [{ ...all, subscription: {}, read_direction: 'Backwards' }, 'All, Subscription, Backwards, NoFilter'],
      [{ ...all, count: '1', no_filter: null }, 'All, Count, Forwards, None'],
    ] as [Json, string][])
      expect(await h.call(READ, { options })).toMatchObject({
        status: 3,
        message: `The combination of (${words}) is invalid.`,
      });
    expect(await h.call(READ, readOf({ count: '1' }))).toMatchObject({
      status: 3,
      message: "'None' is not a valid EventStore.Client.Streams.ReadReq+Types+Options+StreamOptionOneofCase",
    });
    for (const request of [
      {},
      readOf({ stream: { start: {} }, count: '1' }),
      streamRead('s', {}, { count: '1' }),
      streamRead('s', { revision: '9223372036854775808' }, { count: '1' }),
    ])
      expect(await h.call(READ, request)).toMatchObject({ status: 2, message: UNHANDLED });
  });

  it('may be read, and is asked for again while reading goes on', async () => {
    const h = securedGrpc();
    await h.store.append('s', ANY, events(1_100));
    const one = streamRead('s', { start: {} }, { count: '1' });
    for (const as of [AS.anonymous])
      expect(await h.call(READ, one, as)).toMatchObject({
        status: 7,
        message: 'Access Denied',
        trailers: { exception: 'access-denied' },
      });
    for (const as of [AS.plain, AS.ops])
      expect(await h.call(READ, readOf({ all: { start: {} }, count: '1' }), as)).toMatchObject({ status: 7 });
    // Whether it exists is nobody's business, nor what else may be wrong.
    expect(await h.call(READ, streamRead('$none', { start: {} }, {}), AS.plain)).toMatchObject({ status: 7 });
    const call = h.open(READ, [streamRead('s', { start: {} }, { count: '2000' })], {
      metadata: AS.plain,
      isStalled: true,
    });
    await call.until(1);
    await h.store.append('$$s', ANY, [event('{"$acl":{"$r":"ada"}}', { type: '$metadata', isJson: true })]);
    call.resume();
    expect(await call.ended).toMatchObject({ status: 7, message: 'Access Denied' });
    expect(call.blocks.length).toBe(1);
  });
});

describe('a slow reader', () => {
  it('holds one block, and what is under way ends with it', async () => {
    const budget = new ByteBudget(
      {
        of: 'replies',
        totalBytes: 4_000_000,
        reserveBytes: 1_000_000,
        smallBytes: 262_144,
        waitersMax: 10,
        waitMs: 1_000,
      },
      realGrpc().clock,
    );
    const share = budget.share();
    const h = realGrpc({}, { replyShareOf: () => share });
    for (let i = 0; i < 4; i++)
      await h.store.append(
        's',
        ANY,
        Array.from({ length: 300 }, () => event('x'.repeat(1_000))),
      );
    const call = h.open(READ, [streamRead('s', { start: {} }, { count: ALL_ONES })], { isStalled: true });
    for (let i = 1; i <= 3; i++) {
      await call.until((i - 1) * 110 + 1);
      expect([
        call.blocks.length,
        call.overruns,
        budget.heldBytes > 0,
        budget.heldBytes <= 262_144,
        call.blocks[i - 1]!.length <= 300_000,
      ]).toEqual([i, 0, true, true, true]);
      call.resume();
      call.stall();
    }
    call.cancel();
    expect(await call.ended).toMatchObject({ status: 1 });
    expect(call.received.length).toBeLessThan(1_200);
    share.close();
    expect(budget.heldBytes).toBe(0);
  });
});
