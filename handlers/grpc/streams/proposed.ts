import type { NewEvent } from '../../../core/streams/api.ts';
import { internText } from '../../../core/base/text.ts';
import { STATUS, GrpcError } from '../call.ts';
import { atEnd, bytes, endOf, endOfElement, MalformedMessage, NO_BYTES, skip, text, uuid } from '../messages/wire.ts';
import type { Reader, Uuid } from '../messages/wire.ts';

/**
 * An event as clients propose it. It is read by hand, not by the generated reader: no map for the two texts that count,
 * no object for the id, and what is read is the event that is appended.
 */
export interface ProposedEvent extends NewEvent {
  /** UUID text with dashes; empty where none was sent, or not in a form that can be one. */
  readonly id: string;
  /** An id was sent, whatever it is. */
  readonly hasId: boolean;
  readonly hasType: boolean;
  readonly hasContentType: boolean;
}

const TYPE = bytesOf('type');
const CONTENT_TYPE = bytesOf('content-type');
const JSON_TYPE = bytesOf('application/json');
const REPLACEMENT = '\ufffd';

/** Reads a ProposedMessage; data and metadata are views of what arrived. */
export function readProposed(reader: Reader, end: number, depth: number): ProposedEvent {
  const event = {
    id: '',
    type: '',
    isJson: false,
    data: NO_BYTES as Uint8Array,
    metadata: NO_BYTES as Uint8Array,
    hasId: false,
    hasType: false,
    hasContentType: false,
  };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: {
        event.id = dashed(readUuid(reader, endOf(reader, depth + 1), depth + 1).text);
        event.hasId = true;
        break;
      }
      case 18:
        readEntry(reader, endOfElement(reader, depth + 1), depth + 1, event);
        break;
      case 26:
        event.metadata = bytes(reader);
        break;
      case 34:
        event.data = bytes(reader);
        break;
      default:
        skip(reader, tag, depth);
    }
  }
  atEnd(reader, end);
  return event;
}

/** Bytes of a UUID as a field that holds its text: tag, length, 36 characters. */
const TEXT_FIELD_BYTES = 38;
const DIGITS_MAX = 127;

/**
 * As the generated reader does, but with one call for all characters of a text of the usual length: each event has an
 * id, and a text that was put together of single characters would have to be copied once more before anything can be
 * done with it.
 */
export function readUuid(reader: Reader, end: number, depth: number): Uuid {
  const { buf, pos: at } = reader;
  if (end - at !== TEXT_FIELD_BYTES || buf[at] !== 18 || buf[at + 1] !== 36) return uuid(reader, end, depth);
  let all = 0;
  for (let i = at + 2; i < end; i++) all |= buf[i]!;
  if (all > DIGITS_MAX) return uuid(reader, end, depth);
  reader.pos = end;
  const text = String.fromCharCode(
    buf[at + 2]!,
    buf[at + 3]!,
    buf[at + 4]!,
    buf[at + 5]!,
    buf[at + 6]!,
    buf[at + 7]!,
    buf[at + 8]!,
    buf[at + 9]!,
    buf[at + 10]!,
    buf[at + 11]!,
    buf[at + 12]!,
    buf[at + 13]!,
    buf[at + 14]!,
    buf[at + 15]!,
    buf[at + 16]!,
    buf[at + 17]!,
    buf[at + 18]!,
    buf[at + 19]!,
    buf[at + 20]!,
    buf[at + 21]!,
    buf[at + 22]!,
    buf[at + 23]!,
    buf[at + 24]!,
    buf[at + 25]!,
    buf[at + 26]!,
    buf[at + 27]!,
    buf[at + 28]!,
    buf[at + 29]!,
    buf[at + 30]!,
    buf[at + 31]!,
    buf[at + 32]!,
    buf[at + 33]!,
    buf[at + 34]!,
    buf[at + 35]!,
    buf[at + 36]!,
    buf[at + 37]!,
  );
  return { text, isStructured: false };
}

/** An entry of the map `metadata`; keys other than the two are passed over. */
function readEntry(
  reader: Reader,
  end: number,
  depth: number,
  event: { type: string; isJson: boolean; hasType: boolean; hasContentType: boolean },
): void {
  let keyAt = 0;
  let keyLength = 0;
  let valueAt = 0;
  let valueLength = 0;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag !== 10 && tag !== 18) {
      skip(reader, tag, depth);
      continue;
    }
    const length = reader.uint32();
    if (tag === 10) [keyAt, keyLength] = [reader.pos, length];
    else [valueAt, valueLength] = [reader.pos, length];
    reader.pos += length;
  }
  atEnd(reader, end);
  const { buf } = reader;
  if (isText(TYPE, buf, keyAt, keyLength)) {
    event.type = textAt(reader, valueAt, valueLength);
    event.hasType = true;
  } else if (isText(CONTENT_TYPE, buf, keyAt, keyLength)) {
    event.isJson = isText(JSON_TYPE, buf, valueAt, valueLength);
    event.hasContentType = true;
  }
}

/** Event types repeat: the same text for the same bytes. What is no UTF-8 is refused. */
function textAt(reader: Reader, at: number, length: number): string {
  const found = internText(reader.buf, at, length);
  if (!found.includes(REPLACEMENT)) return found;
  const behind = reader.pos;
  // Back to the length that stands before the text, which the strict reader wants to see.
  reader.pos = at - lengthBytes(length);
  const strict = text(reader);
  reader.pos = behind;
  return strict;
}

function lengthBytes(length: number): number {
  return length < 0x80 ? 1 : length < 0x4000 ? 2 : length < 0x20_0000 ? 3 : length < 0x1000_0000 ? 4 : 5;
}

function isText(wanted: Uint8Array, buf: Uint8Array, at: number, length: number): boolean {
  if (length !== wanted.length) return false;
  for (let i = 0; i < length; i++) if (buf[at + i] !== wanted[i]) return false;
  return true;
}

function bytesOf(word: string): Uint8Array {
  return new TextEncoder().encode(word);
}

/** A UUID's text with its dashes, which clients may leave out; empty for what can't be one. */
export function dashed(id: string): string {
  if (id.length === 36) return id;
  return id.length === 32
    ? `${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`
    : '';
}

const NO_ID = '00000000-0000-0000-0000-000000000000';
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a text is a UUID with dashes. */
export function isUuid(id: string): boolean {
  return ID.test(id);
}

/**
 * What is wrong with an event, in the words that the recorded server has for it; null for nothing. Ids that have the
 * right length are looked at by the store.
 */
export function faultOf(
  event: ProposedEvent,
): 'no-id' | 'bad-id' | 'zero-id' | 'no-type' | 'no-content-type' | 'empty-type' | null {
  if (!event.hasType) return 'no-type';
  if (!event.hasContentType) return 'no-content-type';
  if (!event.hasId) return 'no-id';
  if (event.id === '') return 'bad-id';
  if (event.id === NO_ID) return 'zero-id';
  return event.type === '' ? 'empty-type' : null;
}

/** What ends a call without more words. */
export function unhandled(): Error {
  return new MalformedMessage('the request is not valid');
}

const REQUIRED = 'type,content-type';

/** Ends a call whose event lacks something. */
export function refuseProposed(fault: NonNullable<ReturnType<typeof faultOf>>): Error {
  if (fault !== 'no-type' && fault !== 'no-content-type') return unhandled();
  const missing = fault === 'no-type' ? 'type' : 'content-type';
  return new GrpcError(STATUS.invalidArgument, `Required Metadata Property '${missing}' is missing`, {
    exception: 'missing-required-metadata-property',
    'required-metadata-properties': REQUIRED,
  });
}
