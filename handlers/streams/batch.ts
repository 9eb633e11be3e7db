import { isSkuaError, SkuaError } from '../../core/errors.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { decodeText } from '../../core/text.ts';
import { isUsableEventId } from '../http/headers.ts';
import { JsonReader, reindent } from '../http/json-text.ts';

/** Posted arrays of events (http-api.md 2.4). */

export const NO_BYTES = new Uint8Array(0);

/** Bytes to store and whether they are JSON. */
interface Content {
  readonly bytes: Uint8Array;
  readonly isJson: boolean;
}

const NOTHING: Content = { bytes: NO_BYTES, isJson: false };

function invalid(hint: string): SkuaError {
  return new SkuaError('bad_json', 'Write request body invalid.', { hint });
}

/** The events of a batch body. Throws `bad_json` with the reference's own texts, `hint` saying what is wrong and where. */
export function parseBatch(body: Uint8Array): NewEvent[] {
  const reader = new JsonReader(decodeText(body));
  const events: NewEvent[] = [];
  try {
    if (!reader.take(91)) throw invalid('The body must be a JSON array of events.');
    if (!reader.take(93)) {
      do events.push(parseEvent(reader, events.length)); while (reader.take(44));
      reader.expect(93);
    }
    reader.end();
  } catch (error) {
    if (isSkuaError(error, 'bad_json') && error.message.startsWith('The JSON text')) throw invalid(String(error.data['hint']));
    throw error;
  }
  if (events.length === 0) throw invalid('The array holds no event.');
  return events;
}

function parseEvent(reader: JsonReader, index: number): NewEvent {
  let id: string | null = null;
  let type: string | null = null;
  let data = NOTHING;
  let metadata = NOTHING;
  reader.expect(123);
  if (!reader.take(125)) {
    do {
      if (reader.peek() !== 34) reader.fail('a member name was expected');
      const name = reader.string();
      reader.expect(58);
      switch (MEMBERS.get(name) ?? MEMBERS.get(name.toLowerCase())) {
        case 'id': id = textOrNull(reader, index); break;
        case 'type': type = textOrNull(reader, index); break;
        case 'data': data = content(reader); break;
        case 'metadata': metadata = content(reader); break;
        default: skip(reader);
      }
    } while (reader.take(44));
    reader.expect(125);
  }
  if (!id) throw new SkuaError('bad_request', "Empty eventId provided. (Parameter 'eventId')", { hint: `Event ${index} of the array.` });
  if (!isUsableEventId(id)) {
    if (/^[0-]+$/.test(id)) throw new SkuaError('bad_request', "Empty eventId provided. (Parameter 'eventId')", { hint: `Event ${index} of the array.` });
    throw invalid(`The eventId of event ${index} is not a UUID.`);
  }
  if (!type) throw new SkuaError('bad_request', "Empty eventType provided. (Parameter 'eventType')", { hint: `Event ${index} of the array.` });
  return { id, type, isJson: data.isJson, data: data.bytes, metadata: metadata.bytes };
}

const MEMBERS: ReadonlyMap<string, 'id' | 'type' | 'data' | 'metadata'> = new Map([
  ['eventId', 'id'], ['eventType', 'type'], ['data', 'data'], ['metadata', 'metadata'],
  ['eventid', 'id'], ['eventtype', 'type'],
] as const);

function skip(reader: JsonReader): void {
  reader.copy(0);
  reader.out = '';
}

function textOrNull(reader: JsonReader, index: number): string | null {
  const next = reader.peek();
  if (next === 34) return reader.string();
  skip(reader);
  if (next !== 110) throw invalid(`The eventId and the eventType of event ${index} must be strings.`);
  return null;
}

/** Objects and arrays are stored re-serialised; a string is stored as JSON if it holds such, else as its text; anything else is nothing. */
function content(reader: JsonReader): Content {
  const next = reader.peek();
  if (next === 123 || next === 91) {
    reader.out = '';
    reader.copy(0);
    return { bytes: encodePooled(reader.out), isJson: true };
  }
  if (next !== 34) {
    skip(reader);
    return NOTHING;
  }
  const text = reader.string();
  if (text === '') return NOTHING;
  const parsed = /^\s*[[{]/.test(text) ? reindent(text) : null;
  return parsed === null ? { bytes: encodePooled(text), isJson: false } : { bytes: encodePooled(parsed), isJson: true };
}

/** Bytes are taken from blocks of this size. */
const BLOCK_BYTES = 65_536;
/** Longer texts, in UTF-16 units, get bytes of their own: a unit takes up to three bytes. */
const POOLED_LENGTH_MAX = 8_192;

const encoder = new TextEncoder();
let block = new Uint8Array(BLOCK_BYTES);
let at = 0;

/**
 * UTF-8 of a text as a view of a shared block, which is several times cheaper than an array of its own for each event.
 * A block is never written twice: when it is full another takes its place, and it goes when its last view does.
 */
function encodePooled(text: string): Uint8Array {
  if (text.length > POOLED_LENGTH_MAX) return encoder.encode(text);
  if (at + text.length * 3 > BLOCK_BYTES) {
    block = new Uint8Array(BLOCK_BYTES);
    at = 0;
  }
  const start = at;
  at += encoder.encodeInto(text, block.subarray(start)).written;
  return block.subarray(start, at);
}
