import protobuf from 'protobufjs/minimal.js';
import type { Long, Reader, Writer } from 'protobufjs';
import { SkuaError } from '../../../core/base/errors.ts';
import { TOMBSTONE } from '../../../core/log/format/records.ts';

export type { Reader, Writer } from 'protobufjs';

/** Messages within messages; deeper ones are refused. */
export const DEPTH_MAX = 64;
/**
 * Each element of a list, and each entry of a map, takes memory and time however short it is, so it has to come with so
 * many bytes of its message. What clients send of small events has one for 26.
 */
const ELEMENT_BYTES = 16;
/**
 * A message within a message: half as many, since an event with an id of numbers has five messages, three of them
 * elements, in 77 bytes.
 */
const MESSAGE_BYTES = 8;
/** Shorter messages may hold what fits. */
const FREE_BYTES = 1_024;
/** The shortest element has two bytes. */
const FREE_COST = (FREE_BYTES / 2) * ELEMENT_BYTES;
/** Elements that one message may hold in all, however long it is. */
export const ELEMENTS_MAX = 524_288;
/** Texts of a list, such as groups and prefixes: no request takes more of them. What takes fewer says so by itself. */
export const TEXTS_MAX = 1_024;
/** Bytes before each message: whether it is compressed, and its length. */
export const PREFIX_BYTES = 5;
/** What an unsigned number of 64 bits is whose bits are all set: it means an end, or nothing. */
export const ALL_ONES = -1;
/** What is beyond every number and position that there can be, and not the number of a tombstone. */
export const BEYOND = TOMBSTONE - 1;

/** An identifier, as text in the form in which it came: nothing has been checked. */
export interface Uuid {
  readonly text: string;
  readonly isStructured: boolean;
}

/** A message without fields. */
export interface Nothing {}

const NOTHING: Nothing = {};

export const NO_BYTES = new Uint8Array(0);

/** What does not parse as the message that was expected. */
export class MalformedMessage extends Error {}

/** Bytes that the elements and messages still to come in the message that is being decoded may count for. */
let costLeft = 0;

/** Throws MalformedMessage, and `bad_request` for more elements than so many bytes can mean. */
export function decode<T>(bytes: Uint8Array, read: (reader: Reader, end: number, depth: number) => T): T {
  const reader = new protobuf.Reader(bytes);
  costLeft = Math.min(FREE_COST + Math.max(0, bytes.length - FREE_BYTES), ELEMENTS_MAX * ELEMENT_BYTES);
  try {
    return read(reader, bytes.length, 0);
  } catch (error) {
    throw error instanceof MalformedMessage || error instanceof SkuaError
      ? error
      : new MalformedMessage(String((error as Error).message), { cause: error });
  }
}

/** A message that is being read. */
export type Open<T> = {
  -readonly [Name in keyof T]: T[Name] extends readonly (infer One)[]
    ? One[]
    : T[Name] extends ReadonlyMap<string, infer One>
      ? Map<string, One>
      : T[Name];
};

/** Reads a message that holds its fields by their tags; they are told the depth of what lies within. */
export function reader<T>(
  empty: () => T,
  fields: { readonly [tag: number]: (message: T, reader: Reader, depth: number) => void },
) {
  return (reader: Reader, end: number, depth: number): T => {
    const message = empty();
    while (reader.pos < end) {
      const tag = reader.uint32();
      const field = fields[tag];
      if (field === undefined) skip(reader, tag, depth);
      else field(message, reader, depth + 1);
    }
    atEnd(reader, end);
    return message;
  };
}

export function encode<T>(message: T, write: (message: T, writer: Writer) => void): Uint8Array {
  const writer = protobuf.Writer.create();
  write(message, writer);
  return writer.finish();
}

/** A message with its prefix, as transports send it. */
export function frame<T>(message: T, write: (message: T, writer: Writer) => void): Uint8Array {
  // Room for the prefix, so that the bytes are sent from where they are written.
  const writer: Writer = protobuf.Writer.create().fixed32(0).uint32(0);
  write(message, writer);
  const out = writer.finish(true);
  const length = out.length - PREFIX_BYTES;
  out[1] = length >>> 24;
  out[2] = length >>> 16;
  out[3] = length >>> 8;
  out[4] = length;
  return out;
}

/** Where a message within a message ends. */
export function endOf(reader: Reader, depth: number): number {
  return endBy(reader, depth, MESSAGE_BYTES);
}

/** Where one ends that is an element of a list. */
export function endOfElement(reader: Reader, depth: number): number {
  return endBy(reader, depth, ELEMENT_BYTES);
}

function endBy(reader: Reader, depth: number, cost: number): number {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new MalformedMessage('a message ends too early');
  if (depth > DEPTH_MAX) throw new MalformedMessage(`messages nested more than ${DEPTH_MAX} deep`);
  if ((costLeft -= cost) < 0) throw tooMany(`more lists and messages than its ${reader.len} bytes can hold`);
  return end;
}

function tooMany(what: string): SkuaError {
  return new SkuaError(
    'bad_request',
    `The message holds ${what}. Send less at once: at most one element for ${ELEMENT_BYTES} bytes, ${ELEMENTS_MAX} in all, and ${TEXTS_MAX} texts in a list.`,
  );
}

export function atEnd(reader: Reader, end: number): void {
  if (reader.pos !== end) throw new MalformedMessage('a field reaches beyond its message');
}

/**
 * An unsigned number of 64 bits: ALL_ONES, TOMBSTONE for 2^63-1, BEYOND for what lies beyond the safe integers, and NaN
 * for what is no number of an event and no position (2^63 to 2^64-2).
 */
export function uint64(reader: Reader): number {
  const { high, low } = reader.uint64() as unknown as Long;
  const top = high >>> 0;
  const rest = low >>> 0;
  if (top < 0x20_0000) return Math.min(top * 4_294_967_296 + rest, BEYOND);
  if (top === 0xffff_ffff && rest === 0xffff_ffff) return ALL_ONES;
  if (top >= 0x8000_0000) return Number.NaN;
  return top === 0x7fff_ffff && rest === 0xffff_ffff ? TOMBSTONE : BEYOND;
}

/** The inverse of `uint64`. */
export function writeUint64(writer: Writer, value: number): void {
  if (value === ALL_ONES) writer.uint64(LONG_ALL_ONES);
  else if (value === TOMBSTONE) writer.uint64(LONG_TOMBSTONE);
  else writer.uint64(value);
}

const LONG_ALL_ONES = { low: -1, high: -1, unsigned: true } as unknown as Long;
const LONG_TOMBSTONE = { low: -1, high: 0x7fff_ffff, unsigned: true } as unknown as Long;

/** A signed number of 64 bits, rounded where it is no safe integer. */
export function int64(reader: Reader): number {
  const { high, low } = reader.int64() as unknown as Long;
  return high * 4_294_967_296 + (low >>> 0);
}

export function sint64(reader: Reader): number {
  const { high, low } = reader.sint64() as unknown as Long;
  return high * 4_294_967_296 + (low >>> 0);
}

/** Exact also beyond the safe integers, where it is a bigint. */
export function writeInt64(writer: Writer, value: number | bigint): void {
  if (typeof value === 'number') writer.int64(value);
  else
    writer.int64({
      low: Number(BigInt.asIntN(32, value)),
      high: Number(BigInt.asIntN(32, value >> 32n)),
      unsigned: false,
    } as unknown as Long);
}

/** A view of what arrived: whoever keeps it keeps all that arrived with it. */
export function bytes(reader: Reader): Uint8Array {
  const length = reader.uint32();
  const start = reader.pos;
  if (start + length > reader.len) throw new MalformedMessage('bytes end too early');
  reader.pos += length;
  return reader.buf.subarray(start, reader.pos);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What is no UTF-8 is no text (the specification of proto3). */
export function text(reader: Reader): string {
  const length = reader.uint32();
  const start = reader.pos;
  const end = start + length;
  const { buf } = reader;
  if (end > reader.len) throw new MalformedMessage('a text ends too early');
  reader.pos = end;
  if (length === UUID_TEXT_BYTES) {
    const id = uuidText(buf, start);
    if (id !== null) return id;
  } else if (length < SHORT_TEXT_BYTES) {
    let out = '';
    let at = start;
    for (; at < end && buf[at]! < 128; at++) out += String.fromCharCode(buf[at]!);
    if (at === end) return out;
  }
  try {
    return utf8.decode(buf.subarray(start, end));
  } catch (error) {
    throw new MalformedMessage('a text is no UTF-8', { cause: error });
  }
}

/** An element of a list of texts. */
export function addText(reader: Reader, into: string[]): void {
  if ((costLeft -= ELEMENT_BYTES) < 0 || into.length === TEXTS_MAX) throw tooMany('more texts than it can mean');
  into.push(text(reader));
}

/** Shorter texts are decoded by hand, which is quicker. */
const SHORT_TEXT_BYTES = 48;
/** Every event has a text of this length. */
const UUID_TEXT_BYTES = 36;

/**
 * A text of as many characters as an identifier has, made at once and not one by one, in a third of the time; null
 * where it is not of one byte each.
 */
function uuidText(b: Uint8Array, a: number): string | null {
  let all = 0;
  for (let i = a; i < a + UUID_TEXT_BYTES; i++) all |= b[i]!;
  if (all > 127) return null;
  return String.fromCharCode(
    b[a]!,
    b[a + 1]!,
    b[a + 2]!,
    b[a + 3]!,
    b[a + 4]!,
    b[a + 5]!,
    b[a + 6]!,
    b[a + 7]!,
    b[a + 8]!,
    b[a + 9]!,
    b[a + 10]!,
    b[a + 11]!,
    b[a + 12]!,
    b[a + 13]!,
    b[a + 14]!,
    b[a + 15]!,
    b[a + 16]!,
    b[a + 17]!,
    b[a + 18]!,
    b[a + 19]!,
    b[a + 20]!,
    b[a + 21]!,
    b[a + 22]!,
    b[a + 23]!,
    b[a + 24]!,
    b[a + 25]!,
    b[a + 26]!,
    b[a + 27]!,
    b[a + 28]!,
    b[a + 29]!,
    b[a + 30]!,
    b[a + 31]!,
    b[a + 32]!,
    b[a + 33]!,
    b[a + 34]!,
    b[a + 35]!,
  );
}

export const readNothing = reader(() => NOTHING, {});

export function writeNothing(_message: Nothing, _writer: Writer): void {}

export function skip(reader: Reader, tag: number, depth: number): void {
  reader.skipType(tag & 7, depth, tag >>> 3);
}

/** An entry of a map of texts. */
export function textEntry(reader: Reader, into: Map<string, string>, depth: number): void {
  const end = endOfElement(reader, depth);
  let key = '';
  let value = '';
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) key = text(reader);
    else if (tag === 18) value = text(reader);
    else skip(reader, tag, depth);
  }
  atEnd(reader, end);
  into.set(key, value);
}

export function writeTextEntries(writer: Writer, field: number, entries: ReadonlyMap<string, string>): void {
  for (const [key, value] of entries)
    writer
      .uint32((field << 3) | 2)
      .fork()
      .uint32(10)
      .string(key)
      .uint32(18)
      .string(value)
      .ldelim();
}

/** `UUID`. An unset one has an empty text. */
export function uuid(reader: Reader, end: number, depth: number): Uuid {
  let found: Uuid = NO_UUID;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) found = structured(reader, depth + 1);
    else if (tag === 18) found = { text: text(reader), isStructured: false };
    else skip(reader, tag, depth);
  }
  atEnd(reader, end);
  return found;
}

const NO_UUID: Uuid = { text: '', isStructured: false };

function structured(reader: Reader, depth: number): Uuid {
  const end = endOf(reader, depth);
  let text = ['0000000000000000', '0000000000000000'];
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 8 || tag === 16) {
      const { high, low } = reader.int64() as unknown as Long;
      const digits = hex32(high) + hex32(low);
      text = tag === 8 ? [digits, text[1]!] : [text[0]!, digits];
    } else skip(reader, tag, depth);
  }
  atEnd(reader, end);
  const digits = text[0]! + text[1]!;
  return {
    text: `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`,
    isStructured: true,
  };
}

function hex32(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0');
}

/** Writes what `uuid` reads, as a field; a text of 36 characters where it is structured. */
export function writeUuid({ text: id, isStructured }: Uuid, writer: Writer): void {
  if (!isStructured) {
    writer.uint32(18).string(id);
    return;
  }
  const digits = id.replaceAll('-', '');
  writer.uint32(10).fork();
  const half = (at: number) => ({
    high: Number.parseInt(digits.slice(at, at + 8), 16) | 0,
    low: Number.parseInt(digits.slice(at + 8, at + 16), 16) | 0,
    unsigned: false,
  });
  const [most, least] = [half(0), half(16)];
  if (most.high !== 0 || most.low !== 0) writer.uint32(8).int64(most as unknown as Long);
  if (least.high !== 0 || least.low !== 0) writer.uint32(16).int64(least as unknown as Long);
  writer.ldelim();
}

/** An entry of a map of messages: with its message it counts as one element. */
export function messageEntry<T>(
  reader: Reader,
  into: Map<string, T>,
  read: (reader: Reader, end: number, depth: number) => T,
  depth: number,
): void {
  const end = endOf(reader, depth);
  let key = '';
  let value: T | undefined;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) key = text(reader);
    else if (tag === 18) value = read(reader, endOf(reader, depth + 1), depth + 1);
    else skip(reader, tag, depth);
  }
  atEnd(reader, end);
  into.set(key, value ?? read(reader, reader.pos, depth));
}
