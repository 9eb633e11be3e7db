import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import { expect, test } from 'vitest';
import * as google from '../../handlers/grpc/messages/google.ts';
import * as streams from '../../handlers/grpc/messages/streams.ts';
import * as streamsV2 from '../../handlers/grpc/messages/streams-v2.ts';
import * as users from '../../handlers/grpc/messages/users.ts';
import {
  ALL_ONES,
  BEYOND,
  decode,
  DEPTH_MAX,
  encode,
  frame,
  MalformedMessage,
  NO_BYTES,
  PREFIX_BYTES,
  TEXTS_MAX,
} from '../../handlers/grpc/messages/wire.ts';
import type { Reader, Uuid, Writer } from '../../handlers/grpc/messages/wire.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { MethodShape } from '../../handlers/grpc/call.ts';
import { readBatchChunk } from '../../handlers/grpc/streams/batch-messages.ts';
import { bySize } from '../support/run-size.ts';
import { Random } from '../support/random.ts';
import { PROTOS, toBytes, toJson, unframed } from './codec.ts';
import type { Json } from './codec.ts';

interface Ours {
  readonly type: protobuf.Type;
  /** Absent where only clients read it. */
  readonly read?: (reader: Reader, end: number, depth: number) => unknown;
  /** Absent where only clients write it. */
  readonly write?: (message: never, writer: Writer) => void;
}

const UUID = 'event_store.client.UUID';
const MESSAGES = fileURLToPath(new URL('../../handlers/grpc/messages', import.meta.url));
const modules = new Map(
  await Promise.all(
    readdirSync(MESSAGES).map(
      async (name) => [name, (await import(join(MESSAGES, name))) as Record<string, never>] as const,
    ),
  ),
);

function typesIn(space: protobuf.NamespaceBase): protobuf.Type[] {
  return space.nestedArray.flatMap((item) =>
    item instanceof protobuf.Type ? [item, ...typesIn(item)] : item instanceof protobuf.Namespace ? typesIn(item) : [],
  );
}

function nameIn(type: protobuf.Type): string {
  return type.parent instanceof protobuf.Type ? nameIn(type.parent) + type.name : type.name;
}

/**
 * By the full name of a message the function of a method that reads or writes it, which may be one of another message
 * with the same fields.
 */
const OF_METHODS = new Map<string, Pick<Ours, 'read' | 'write'>>();
for (const module of modules.values()) {
  for (const [name, value] of Object.entries(
    module as Record<
      string,
      { readonly name: string; readonly methods: Readonly<Record<string, MethodShape<never, never>>> }
    >,
  )) {
    if (!name.endsWith('Service')) continue;
    for (const [method, { readRequest, writeResponse }] of Object.entries(value.methods)) {
      const { resolvedRequestType, resolvedResponseType } = PROTOS.lookupService(value.name).methods[
        method
      ]!.resolve() as protobuf.Method;
      OF_METHODS.set(resolvedRequestType!.fullName, {
        ...OF_METHODS.get(resolvedRequestType!.fullName),
        read: readRequest,
      });
      OF_METHODS.set(resolvedResponseType!.fullName, {
        ...OF_METHODS.get(resolvedResponseType!.fullName),
        write: writeResponse,
      });
    }
  }
}

/**
 * Every message of the .proto files that has a function; identifiers have theirs in `wire.ts`, and are seen within
 * others.
 */
const OURS: readonly Ours[] = typesIn(PROTOS)
  .filter(({ fullName }) => !fullName.startsWith(`.${UUID}`))
  .map((type) => {
    const file = type.filename!.replace(/^.*\/(.*)\.proto$/, '$1');
    const module = modules.get(`${file}.ts`) ?? {};
    return {
      type,
      read: module[`read${nameIn(type)}`],
      write: module[`write${nameIn(type)}`],
      ...OF_METHODS.get(type.fullName),
    } as Ours;
  })
  .filter(({ read, write }) => read !== undefined || write !== undefined);

/** The two largest safe integers stand for others (`wire.ts`). */
const UINT64 = [
  '1',
  '127',
  '128',
  '4294967295',
  '4294967296',
  '9007199254740989',
  '9223372036854775807',
  '18446744073709551615',
];
const INT64 = ['1', '-1', '127', '-128', '2147483648', '-4294967297', '9007199254740991', '-9007199254740991'];
const EVERY_INT64 = [...INT64, '9223372036854775807', '-9223372036854775808', '1311768467463790320'];
const TEXTS = [
  'a',
  'order-7',
  'Straße am Fluß',
  '日本 🦅',
  '\u0000',
  '\uFEFFmark',
  'x'.repeat(47),
  'é'.repeat(24),
  'y'.repeat(48),
  `${'z'.repeat(60)}ü`,
];

/** What one field may hold that is not its default. */
function valueOf(field: protobuf.Field, random: Random, depth: number): unknown {
  const { resolvedType } = field;
  if (resolvedType instanceof protobuf.Enum)
    return random.chance(0.1)
      ? 77
      : random.pick(Object.entries(resolvedType.values).filter(([, value]) => value !== 0 || field.partOf !== null))[0];
  if (resolvedType instanceof protobuf.Type) return messageOf(resolvedType, random, depth + 1);
  const isInUuid = field.parent!.fullName.startsWith(`.${UUID}`);
  switch (field.type) {
    case 'bool':
      return true;
    case 'int32':
      return random.pick([1, -1, 2_147_483_647, -2_147_483_648, random.int(1, 100_000)]);
    case 'uint32':
      return random.pick([1, 127, 128, 4_294_967_295, random.int(1, 100_000)]);
    case 'double':
      return random.pick([1, -1.5, 1e300, 5e-324, random.next()]);
    case 'uint64':
      return random.chance(0.5) ? random.pick(UINT64) : String(random.next());
    case 'int64':
      return isInUuid ? random.pick(EVERY_INT64) : random.pick(INT64);
    case 'sint64':
      return random.pick(INT64);
    case 'string':
      return isInUuid
        ? random.pick(['00000000-0000-4000-8000-00000000001f', 'no identifier', 'x'])
        : random.pick(TEXTS);
    case 'bytes':
      return Buffer.from(random.bytes(random.pick([1, 3, 48, 300]))).toString('base64');
    default:
      throw new Error(`no value for ${field.type}`);
  }
}

/** A message with some of its fields, as JSON; deep ones get few. */
function messageOf(type: protobuf.Type, random: Random, depth = 0): Json {
  const message: Json = {};
  const isUuid = type.fullName === `.${UUID}`;
  const chosen = new Map(
    type.oneofsArray.map((oneof) => [oneof, isUuid || random.chance(0.7) ? random.pick(oneof.fieldsArray) : null]),
  );
  for (const field of type.fieldsArray) {
    if (
      field.partOf === null
        ? !random.chance(depth > 4 ? 0.1 : 0.6)
        : chosen.get(field.partOf) !== field || (depth > 8 && field.resolvedType instanceof protobuf.Type && !isUuid)
    )
      continue;
    if (field.map)
      message[field.name] = Object.fromEntries(
        Array.from({ length: random.int(1, 3) }, (_, i) => [
          `${random.pick(TEXTS)}${i}`,
          valueOf(field, random, depth),
        ]),
      );
    else if (field.repeated)
      message[field.name] = Array.from({ length: random.int(1, 3) }, () => valueOf(field, random, depth));
    else message[field.name] = valueOf(field, random, depth);
  }
  return message;
}

/** A message of the other codec as ours has it. */
function asOurs(type: protobuf.Type, json: Json): object {
  return Object.fromEntries(
    type.fieldsArray.map((field) => [protobuf.util.camelCase(field.name), fieldAsOurs(field, json[field.name])]),
  );
}

function fieldAsOurs(field: protobuf.Field, value: Json[string] | undefined): unknown {
  if (field.map)
    return new Map(Object.entries<Json[string]>(value ?? {}).map(([key, one]) => [key, oneAsOurs(field, one)]));
  if (field.repeated) return (value ?? []).map((one: Json[string]) => oneAsOurs(field, one));
  if (value !== undefined) return oneAsOurs(field, value);
  if (field.partOf !== null || field.hasPresence || field.resolvedType instanceof protobuf.Type) return undefined;
  return field.type === 'bool' ? false : field.type === 'string' ? '' : field.type === 'bytes' ? NO_BYTES : 0;
}

function oneAsOurs({ resolvedType, type }: protobuf.Field, value: Json[string]): unknown {
  if (resolvedType instanceof protobuf.Enum) return resolvedType.values[value] ?? value;
  if (resolvedType?.fullName === `.${UUID}`) return uuidAsOurs(value);
  if (resolvedType instanceof protobuf.Type) return asOurs(resolvedType, value);
  if (type === 'bytes') return new Uint8Array(Buffer.from(value, 'base64'));
  if (type === 'uint64')
    return value === '18446744073709551615' ? ALL_ONES : value === '9223372036854775807' ? TOMBSTONE : Number(value);
  return type.endsWith('64') ? Number(value) : value;
}

function uuidAsOurs({ string = '', structured }: Json): Uuid {
  if (structured === undefined) return { text: string, isStructured: false };
  const digits = ['most', 'least']
    .map((half) =>
      BigInt.asUintN(64, BigInt(structured[`${half}_significant_bits`] ?? 0))
        .toString(16)
        .padStart(16, '0'),
    )
    .join('');
  return { text: digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), isStructured: true };
}

/** What ours reads, with bytes of one kind. */
function readBy(read: NonNullable<Ours['read']>, bytes: Uint8Array): unknown {
  return JSON.parse(JSON.stringify(decode(bytes, read), plain));
}

function plain(_: string, value: unknown): unknown {
  if (value instanceof Map) return [...value];
  if (typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer' && 'data' in value)
    return value.data;
  return value instanceof Uint8Array
    ? [...value]
    : typeof value === 'number' && !Number.isFinite(value)
      ? String(value)
      : value;
}

test('every method of the .proto files has its functions, and most messages go one way', () => {
  expect(OURS.length).toBeGreaterThan(120);
  expect(OURS.filter(({ read, write }) => read !== undefined && write !== undefined).length).toBeLessThan(
    OURS.length / 4,
  );
});

test('what another codec writes, ours reads, and the other way round: nothing is lost and nothing is added', () => {
  const random = new Random(2001);
  for (const { type, read, write } of OURS) {
    for (let round = 0; round < bySize(20, 200, 2_000); round++) {
      const bytes = toBytes(type, messageOf(type, random));
      const json = toJson(type, bytes);
      const message = asOurs(type, json);
      if (read !== undefined)
        expect(readBy(read, bytes), type.fullName).toEqual(JSON.parse(JSON.stringify(message, plain)));
      if (write === undefined) continue;
      const written = encode(message as never, write);
      expect(toJson(type, written), type.fullName).toEqual(json);
      expect(unframed(frame(message as never, write)).map((one) => [...one])).toEqual([[...written]]);
    }
  }
});

test('defaults that were sent are the same as none where a field has no presence, and unknown fields change nothing wherever they stand', () => {
  const random = new Random(2002);
  // Fields 1000 to 1003 with each type of the wire, and a group with one in it.
  const unknown = Buffer.from(
    'c03e01' + 'c93e0102030405060708' + 'd23e03616263' + 'dd3e01020304' + 'e33e' + 'c03e01' + 'e43e',
    'hex',
  );
  for (const { type, read } of OURS) {
    for (let round = 0; round < 5 && read !== undefined; round++) {
      const json = messageOf(type, random);
      const bytes = toBytes(type, json);
      const defaults = type.fieldsArray.filter(
        (field) =>
          field.partOf === null && !field.repeated && !field.map && !field.hasPresence && !(field.name in json),
      );
      const zeros = Buffer.concat(
        defaults.map((field) =>
          Buffer.from([
            ...new protobuf.Writer()
              .uint32(
                (field.id << 3) | protobuf.types.basic[field.resolvedType === null ? (field.type as 'bool') : 'int32']!,
              )
              .finish(),
            ...Buffer.alloc(field.type === 'double' ? 8 : 1),
          ]),
        ),
      );
      expect(readBy(read, Buffer.concat([unknown, bytes, zeros, unknown])), type.fullName).toEqual(readBy(read, bytes));
    }
  }
});

test('of the members of a oneof the last one counts', () => {
  const stream = toBytes('event_store.client.streams.ReadReq.Options', {
    stream: { start: {} },
    count: '7',
    filter: { max: 1 },
  });
  const all = toBytes('event_store.client.streams.ReadReq.Options', {
    all: { end: {} },
    subscription: {},
    no_filter: {},
  });
  const last = decode(Buffer.concat([stream, all]), streams.readReadReqOptions);
  expect([last.stream, last.count, last.filter]).toEqual([undefined, undefined, undefined]);
  expect([last.all?.end, last.subscription, last.noFilter]).toEqual([{}, {}, {}]);
  const first = decode(Buffer.concat([all, stream]), streams.readReadReqOptions);
  expect([first.all, first.subscription, first.noFilter, first.count]).toEqual([undefined, undefined, undefined, 7]);
});

test('numbers of 64 bits at their edges', () => {
  const revision = (value: string): number | undefined =>
    decode(
      toBytes('event_store.client.streams.ReadReq.Options.StreamOptions', { revision: value }),
      streams.readReadReqOptionsStreamOptions,
    ).revision;
  const edges: readonly (readonly [string, number])[] = [
    ['0', 0],
    ['4294967295', 4_294_967_295],
    ['4294967296', 4_294_967_296],
    ['9007199254740989', 9_007_199_254_740_989],
    ['9007199254740991', BEYOND],
    ['9007199254740992', BEYOND],
    ['9007199254740993', BEYOND],
    ['9223372036854775806', BEYOND],
    ['9223372036854775807', TOMBSTONE],
    ['9223372036854775808', Number.NaN],
    ['18446744073709551614', Number.NaN],
    ['18446744073709551615', ALL_ONES],
  ];
  for (const [text, expected] of edges) expect(revision(text), text).toBe(expected);
  const seconds = (value: string): number | bigint =>
    decode(toBytes('google.protobuf.Timestamp', { seconds: value }), google.readTimestamp).seconds;
  for (const text of ['0', '-1', '9007199254740991', '-9007199254740991'])
    expect(seconds(text), text).toBe(Number(text));
  for (const text of ['9223372036854775807', '-9223372036854775808']) {
    expect(seconds(text), text).toBeCloseTo(Number(text), -3);
    expect(
      toJson('google.protobuf.Timestamp', encode({ seconds: BigInt(text), nanos: 0 }, google.writeTimestamp)),
    ).toEqual({ seconds: text });
  }
});

test('what is cut off anywhere, or has a byte changed, is read or refused as malformed, and nothing else happens', () => {
  const random = new Random(2003);
  let refused = 0;
  const tryIt = ({ type, read }: Ours, bytes: Uint8Array): void => {
    try {
      decode(bytes, read!);
    } catch (error) {
      if (!(error instanceof MalformedMessage))
        throw new Error(`${type.fullName}: ${Buffer.from(bytes).toString('hex')}`, { cause: error });
      refused++;
    }
  };
  for (const ours of OURS.filter(({ read }) => read !== undefined)) {
    for (let round = 0; round < bySize(3, 20, 200); round++) {
      const bytes = toBytes(ours.type, messageOf(ours.type, random));
      const step = Math.max(1, Math.floor(bytes.length / 60));
      for (let length = 0; length < bytes.length; length += step) tryIt(ours, bytes.subarray(0, length));
      for (let change = 0; change < 30 && bytes.length > 0; change++) {
        const other = bytes.slice();
        other[random.int(0, other.length - 1)] = random.next();
        tryIt(ours, other);
      }
      tryIt(ours, random.bytes(random.int(1, 200)));
    }
  }
  expect(refused).toBeGreaterThan(1_000);
});

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const readAppend = streams.readAppendReq;

test.each([
  ['a message longer than what arrived', '0a 7f'],
  ['a message of 4 GiB', '0a ff ff ff ff 0f'],
  ['a length of 64 bits', '0a ff ff ff ff ff ff ff ff ff 01'],
  ['a number that does not end', '0a ff ff ff ff ff ff ff ff ff ff ff ff'],
  ['bytes longer than their message', '12 03 22 7f 00'],
  ['a text longer than its message', '12 06 12 04 0a 7f 61 61'],
  ['field 0', '00 00'],
  ['a type of the wire that there is not', '0f 00'],
  ['the end of a group that was not begun', '1c'],
  ['a group that does not end', '1b'],
  ['a text that is no UTF-8', '12 08 12 06 0a 01 61 12 01 ff'],
  ['a text that is half a pair', '12 0a 12 08 0a 01 61 12 03 ed a0 80'],
  ['a long text that is no UTF-8', `12 3a 12 38 0a 01 61 12 33 ${'61'.repeat(50)}c3`],
])('malformed: %s', (_, bytes) => {
  expect(() => decode(hex(bytes), readAppend)).toThrow(MalformedMessage);
});

test('bytes may be anything, also what is no UTF-8', () => {
  const { proposedMessage } = decode(hex('12 04 22 02 ff fe'), readAppend);
  expect([...proposedMessage!.data]).toEqual([0xff, 0xfe]);
});

test('messages within messages have a limit, and so have groups within groups and the number of messages in one', () => {
  const lists = (depth: number): Uint8Array => {
    let json: Json = { null_value: 'NULL_VALUE' };
    for (let i = 0; i < depth; i++) json = { list_value: { values: [json] } };
    return toBytes('google.protobuf.Value', json);
  };
  // A list within a list is two messages deeper.
  expect(decode(lists(DEPTH_MAX / 2), google.readValue)).toMatchObject({ listValue: {} });
  expect(() => decode(lists(DEPTH_MAX / 2 + 1), google.readValue)).toThrow(/deep/);
  expect(() => decode(Buffer.alloc(100_000, 0x1b), google.readValue)).toThrow(MalformedMessage);
});

test('a message holds at most one element for each 16 bytes beyond the first 1 024, however they are hidden', () => {
  const times = (count: number, ...bytes: number[]): Buffer => Buffer.alloc(count * bytes.length, Buffer.from(bytes));
  const within = (tag: number, bytes: Buffer): Uint8Array =>
    encode(bytes, (all, writer) => writer.uint32(tag).bytes(all));
  const batch = (bytes: Uint8Array) => decode(bytes, streams.readBatchAppendReq);
  expect(batch(times(512, 26, 0)).proposedMessages).toHaveLength(512);
  // An event of 16 bytes, over and over.
  const dense = [26, 14, 34, 12, ...Array<number>(12).fill(1)];
  expect(batch(times(10_000, ...dense)).proposedMessages).toHaveLength(10_000);
  const refused = { code: 'bad_request' };
  expect(() => batch(times(10_000, 26, 12, 34, 10, ...Array<number>(10).fill(1)))).toThrow(
    expect.objectContaining(refused),
  );
  // 1 MB of empty records: lists, maps, messages that replace one another, and in the readers by hand.
  expect(() => batch(times(524_000, 26, 0))).toThrow(expect.objectContaining(refused));
  expect(() => batch(within(26, times(500_000, 18, 0)) as Buffer)).toThrow(expect.objectContaining(refused));
  expect(() => batch(times(500_000, 18, 0))).toThrow(expect.objectContaining(refused));
  expect(() => decode(times(500_000, 26, 0), readBatchChunk)).toThrow(expect.objectContaining(refused));
  expect(() => decode(within(26, times(500_000, 18, 0)), readBatchChunk).events).toThrow(
    expect.objectContaining(refused),
  );
  expect(() => decode(times(500_000, 18, 0), streamsV2.readAppendRequest)).toThrow(expect.objectContaining(refused));
  expect(() => decode(within(18, times(500_000, 18, 0)), streamsV2.readAppendRequest)).toThrow(
    expect.objectContaining(refused),
  );
});

test('a list of texts, such as groups or prefixes, has a limit, whatever the length of its message', () => {
  const groups = (count: number) =>
    encode(Array<string>(count).fill('a group of those that there are'), (all, writer) => {
      for (const one of all) writer.uint32(34).string(one);
    });
  expect(decode(groups(TEXTS_MAX), users.readCreateReqOptions).groups).toHaveLength(TEXTS_MAX);
  expect(() => decode(groups(TEXTS_MAX + 1), users.readCreateReqOptions)).toThrow(
    expect.objectContaining({ code: 'bad_request' }),
  );
});

test('what the official client sends of the smallest events is far from the limit, with ids as texts and as numbers', () => {
  const event = (id: Json): Json => ({
    id,
    metadata: { type: 't', 'content-type': 'application/json' },
    data: Buffer.from('{}').toString('base64'),
  });
  for (const id of [
    { string: '8c6cd8a5-4a0a-4bfa-b2a6-0d22d3b5a3c1' },
    { structured: { most_significant_bits: '-8327641523658375174', least_significant_bits: '-5576417283916372511' } },
  ]) {
    const bytes = toBytes('event_store.client.streams.BatchAppendReq', {
      proposed_messages: Array<Json>(5_000).fill(event(id)),
    });
    expect(decode(bytes, readBatchChunk).events).toHaveLength(5_000);
  }
});

test('a message is framed with its length', () => {
  const block = frame({ text: 'x'.repeat(300) }, ({ text }, writer) => writer.uint32(10).string(text));
  expect([...block.subarray(0, PREFIX_BYTES)]).toEqual([0, 0, 0, 1, 47]);
  expect(block).toHaveLength(PREFIX_BYTES + 303);
});
