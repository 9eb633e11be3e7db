import type { StoredEvent } from '../../../core/streams/api.ts';
import { parseLink } from '../../../core/streams/format/links.ts';
import { LINK_TYPE } from '../../../core/streams/format/names.ts';
import { PREFIX_BYTES } from '../messages/wire.ts';
import { BINARY_FIELD, createdLength, JSON_FIELD, putCreated, streamFields, typeFields } from './fields.ts';
import { halvesLength, putHalves, putVarint, varintLength } from './varint.ts';

/** How the client wants its events. */
export interface EventForm {
  /** Ids as two numbers, not as text. */
  readonly isStructured: boolean;
  readonly resolvesLinks: boolean;
}

/** The field `id` with a text: four bytes of tags and lengths, and 36 characters. */
const TEXT_ID_BYTES = 40;
/** The same with two numbers: what comes before these. */
const STRUCTURED_HEAD_BYTES = 4;
/** A field of this number that has a length, or is a number. */
const FIELD = {
  id: 0x0a,
  structured: 0x0a,
  mostSignificant: 0x08,
  leastSignificant: 0x10,
  text: 0x12,
  revision: 0x18,
  prepare: 0x20,
  commit: 0x28,
  customMetadata: 0x3a,
  data: 0x42,
  event: 0x0a,
  link: 0x12,
  position: 0x18,
  noPosition: 0x22,
  retryCount: 0x28,
} as const;

/**
 * For each event the bytes of its message, of its `event` and of its `link`, 0 for what is absent. Of use only while a
 * block is made.
 */
const lengths: number[] = [];

/**
 * Events as messages with their prefixes, one behind the other: ReadResp with an `event`, of `Streams`, or of
 * persistent subscriptions, where each comes with the count of its repetitions. All reading goes through here, so there
 * are no objects in between: lengths are added up first, then all bytes are written, once, to where they are sent from.
 * Every byte is, for `memory` may give some that have been used.
 */
export function eventBlock(
  events: readonly StoredEvent[],
  form: EventForm,
  retryCounts: readonly number[] | null = null,
  memory: (bytes: number) => Uint8Array = (bytes) => new Uint8Array(bytes),
): Uint8Array {
  lengths.length = 0;
  let total = 0;
  for (let i = 0; i < events.length; i++) {
    const event = events[i]!;
    const link = linkOf(event, form.resolvesLinks);
    const shownLength = link === event ? 0 : recordedLength(event, form.isStructured);
    const linkLength = link === null ? 0 : recordedLength(link, form.isStructured);
    const { position } = link ?? event;
    let length = fieldLength(shownLength) + fieldLength(linkLength) + (position < 0 ? 2 : 1 + varintLength(position));
    if (retryCounts !== null) length += 1 + varintLength(retryCounts[i]!);
    lengths.push(length, shownLength, linkLength);
    total += PREFIX_BYTES + fieldLength(length);
  }
  const out = memory(total);
  for (let i = 0, at = 0; i < events.length; i++) {
    const event = events[i]!;
    at = putPrefix(out, at, fieldLength(lengths[3 * i]!));
    at = putTagged(out, at, FIELD.event, lengths[3 * i]!);
    at = putEvent(out, at, event, lengths[3 * i + 1]!, lengths[3 * i + 2]!, form.isStructured);
    if (retryCounts !== null) at = putTagged(out, at, FIELD.retryCount, retryCounts[i]!);
  }
  return out;
}

/**
 * What is sent as `link`: the link by which an event was reached, or one whose target is gone, or may not be read. What
 * is no link, whatever its type, is an event.
 */
function linkOf(event: StoredEvent, resolvesLinks: boolean): StoredEvent | null {
  if (event.link !== null) return event.link;
  return resolvesLinks && event.type === LINK_TYPE && parseLink(event.data) !== null ? event : null;
}

/** Bytes of a field with so many, none for an absent one. */
function fieldLength(length: number): number {
  return length === 0 ? 0 : 1 + varintLength(length) + length;
}

function numberLength(value: number): number {
  return value === 0 ? 0 : 1 + varintLength(value);
}

/** Bytes of a RecordedEvent. */
function recordedLength(event: StoredEvent, isStructured: boolean): number {
  return (
    (isStructured ? STRUCTURED_HEAD_BYTES + structuredLength(event.id) : TEXT_ID_BYTES) +
    streamFields.of(event.stream).length +
    numberLength(event.number) +
    numberLength(event.preparePosition) +
    numberLength(event.position) +
    typeFields.of(event.type).length +
    createdLength(event.createdMs, event.createdTicks) +
    (event.isJson ? JSON_FIELD : BINARY_FIELD).length +
    fieldLength(event.metadata.length) +
    fieldLength(event.data.length)
  );
}

function putEvent(
  out: Uint8Array,
  from: number,
  event: StoredEvent,
  shownLength: number,
  linkLength: number,
  isStructured: boolean,
): number {
  let at = from;
  if (shownLength > 0) at = putRecorded(out, putTagged(out, at, FIELD.event, shownLength), event, isStructured);
  const link = event.link ?? event;
  if (linkLength > 0) at = putRecorded(out, putTagged(out, at, FIELD.link, linkLength), link, isStructured);
  const { position } = linkLength > 0 ? link : event;
  return position < 0 ? putTagged(out, at, FIELD.noPosition, 0) : putTagged(out, at, FIELD.position, position);
}

function putRecorded(out: Uint8Array, from: number, event: StoredEvent, isStructured: boolean): number {
  let at = isStructured ? putStructuredId(out, from, event.id) : putTextId(out, from, event.id);
  at = putBytes(out, at, streamFields.of(event.stream));
  at = putNumber(out, at, FIELD.revision, event.number);
  at = putNumber(out, at, FIELD.prepare, event.preparePosition);
  at = putNumber(out, at, FIELD.commit, event.position);
  at = putBytes(out, at, typeFields.of(event.type));
  at = putCreated(out, at, event.createdMs, event.createdTicks);
  at = putBytes(out, at, event.isJson ? JSON_FIELD : BINARY_FIELD);
  if (event.metadata.length > 0)
    at = putBytes(out, putTagged(out, at, FIELD.customMetadata, event.metadata.length), event.metadata);
  if (event.data.length > 0) at = putBytes(out, putTagged(out, at, FIELD.data, event.data.length), event.data);
  return at;
}

/** What comes before a message: not compressed, and its length. */
function putPrefix(out: Uint8Array, at: number, length: number): number {
  out[at] = 0;
  out[at + 1] = length >>> 24;
  out[at + 2] = length >>> 16;
  out[at + 3] = length >>> 8;
  out[at + 4] = length;
  return at + PREFIX_BYTES;
}

function putTagged(out: Uint8Array, at: number, tag: number, value: number): number {
  out[at] = tag;
  return putVarint(out, at + 1, value);
}

function putNumber(out: Uint8Array, at: number, tag: number, value: number): number {
  return value === 0 ? at : putTagged(out, at, tag, value);
}

/** Fewer bytes than this are copied quicker one by one. */
const COPIED_BYTES_MIN = 24;

function putBytes(out: Uint8Array, at: number, bytes: Uint8Array): number {
  const { length } = bytes;
  if (length < COPIED_BYTES_MIN) for (let i = 0; i < length; i++) out[at + i] = bytes[i]!;
  else out.set(bytes, at);
  return at + length;
}

function putTextId(out: Uint8Array, at: number, id: string): number {
  out[at] = FIELD.id;
  out[at + 1] = TEXT_ID_BYTES - 2;
  out[at + 2] = FIELD.text;
  out[at + 3] = TEXT_ID_BYTES - 4;
  for (let i = 0; i < 36; i++) out[at + 4 + i] = id.charCodeAt(i);
  return at + TEXT_ID_BYTES;
}

/** The four words of an id; of use only until the next one is taken apart. */
const words = new Int32Array(4);

function takeApart(id: string): void {
  for (let at = 0, digit = 0; at < 36; at++) {
    const code = id.charCodeAt(at);
    if (code === 45) continue;
    words[digit >> 3] = (words[digit >> 3]! << 4) | (code < 58 ? code - 48 : (code | 32) - 87);
    digit++;
  }
}

function structuredLength(id: string): number {
  takeApart(id);
  return halfLength(words[0]!, words[1]!) + halfLength(words[2]!, words[3]!);
}

function putStructuredId(out: Uint8Array, at: number, id: string): number {
  const length = structuredLength(id);
  out[at] = FIELD.id;
  out[at + 1] = length + 2;
  out[at + 2] = FIELD.structured;
  out[at + 3] = length;
  const least = putHalf(out, at + STRUCTURED_HEAD_BYTES, FIELD.mostSignificant, words[0]!, words[1]!);
  return putHalf(out, least, FIELD.leastSignificant, words[2]!, words[3]!);
}

function halfLength(high: number, low: number): number {
  return high === 0 && low === 0 ? 0 : 1 + halvesLength(high, low);
}

function putHalf(out: Uint8Array, at: number, tag: number, high: number, low: number): number {
  if (high === 0 && low === 0) return at;
  out[at] = tag;
  return putHalves(out, at + 1, high, low);
}
