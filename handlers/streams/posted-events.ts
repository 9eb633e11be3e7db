import type { ByteShare } from '../../core/base/byte-budget.ts';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { EVENT_BYTES_MAX } from '../../core/streams/api.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { decodeText } from '../../core/base/text.ts';
import { isUsableEventId } from '../http/http-headers.ts';
import { Growth, JsonReader, reindent, reindentSlices, SLICE_LENGTH } from '../http/json-text.ts';
import { atOnce } from '../http/turns.ts';
import type { Turns } from '../http/turns.ts';

/** Posted arrays of events. */

export const NO_BYTES = new Uint8Array(0);

/**
 * Bodies that are taken apart in one stretch have at most so many bytes: room for an event of the largest size in
 * Base64.
 */
export const WHOLE_BODY_BYTES_MAX = 8_388_608;

/** Bytes to store and whether they are JSON. */
interface Content {
  readonly bytes: Uint8Array;
  readonly isJson: boolean;
}

const NOTHING: Content = { bytes: NO_BYTES, isJson: false };

function invalid(hint: string): SkuaError {
  return new SkuaError('bad_json', 'Write request body invalid.', { hint });
}

/** Longer bodies are taken apart in slices, in bytes. */
const LONG_BODY_BYTES = 262_144;

/**
 * The events of a batch body; a promise of them where it is long. Throws `bad_json` with the reference's own texts,
 * `hint` saying what is wrong and where.
 */
export function parseBatch(
  body: Uint8Array,
  turns: Turns,
  caller: string | null,
  shareOf?: () => ByteShare | undefined,
): NewEvent[] | Promise<NewEvent[]> {
  if (body.length <= LONG_BODY_BYTES) return atOnce(eventsOf(new JsonReader(decodeText(body)), ALL_AT_ONCE));
  return parseLong(body, turns, caller, shareOf?.());
}

async function parseLong(
  body: Uint8Array,
  turns: Turns,
  caller: string | null,
  share?: ByteShare,
): Promise<NewEvent[]> {
  // What becomes of the body is in memory beside it: its text, and the events.
  await share?.grow(2 * body.length);
  const text = await turns.run(caller, decodeSlices(body));
  const events = await turns.run(
    caller,
    eventsOf(new JsonReader(text), SLICE_LENGTH, (length) => share?.resize(Math.max(share.heldBytes, length))),
  );
  share?.resize(events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0));
  return events;
}

/** Bytes that are decoded in one stretch. */
const DECODED_BYTES = 1_048_576;

function* decodeSlices(bytes: Uint8Array): Generator<void, string, undefined> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; at += DECODED_BYTES) {
    parts.push(decoder.decode(bytes.subarray(at, at + DECODED_BYTES), { stream: true }));
    yield;
  }
  // What `+` puts together is slower to walk through.
  parts.push(decoder.decode());
  return parts.join('');
}

/** Characters that are written in the time in which one is read. */
const WRITTEN_PER_READ = 8;

const ALL_AT_ONCE = Number.POSITIVE_INFINITY;

/**
 * Yields whenever it has read `slice` characters or more. `onStored` is then called with the characters that are stored
 * so far.
 */
function* eventsOf(
  reader: JsonReader,
  slice: number,
  onStored?: (length: number) => void,
): Generator<void, NewEvent[], undefined> {
  const events: NewEvent[] = [];
  const growth = new Growth();
  const draft = new Draft();
  const isQuick = slice === ALL_AT_ONCE || reader.hasCheapStrings;
  try {
    if (!reader.take(91)) throw invalid('The body must be a JSON array of events.');
    if (!reader.take(93)) {
      let stop = slice;
      do {
        draft.clear();
        reader.expect(123);
        if (!reader.take(125)) {
          do {
            if (reader.peek() !== 34) reader.fail('a member name was expected');
            const name = isQuick ? reader.string() : yield* stringSlices(reader, slice);
            reader.expect(58);
            const member = MEMBERS.get(name) ?? MEMBERS.get(name.toLowerCase());
            const next = reader.peek();
            if (next === 34 && member !== undefined) {
              const text = isQuick ? reader.string() : yield* stringSlices(reader, slice);
              if (text.length > EVENT_BYTES_MAX && !HAS_MEMBERS.test(text)) throw tooLarge(events.length, text.length);
              draft.setText(
                member,
                text,
                text.length > slice && HAS_MEMBERS.test(text)
                  ? jsonOrText(text, yield* reindentSlices(text, 0, growth, false))
                  : contentOf(member, text, growth),
              );
              continue;
            }
            const isStored = (member === 'data' || member === 'metadata') && (next === 123 || next === 91);
            if (isStored) reader.begin(0, growth, false, EVENT_BYTES_MAX);
            else reader.beginSkipped();
            let isInSlices = false;
            while (!reader.goOn(reader.at + slice)) {
              isInSlices = true;
              yield;
            }
            if (isStored) {
              if (reader.length > EVENT_BYTES_MAX) throw tooLarge(events.length, reader.length);
              growth.add(reader.sourceLength, reader.length);
              draft[member] = { bytes: isInSlices ? reader.bytes() : encodePooled(reader.out), isJson: true };
            } else if (member !== undefined) draft.setNothing(member, next, events.length);
          } while (reader.take(44));
          reader.expect(125);
        }
        events.push(draft.toEvent(events.length));
        if (reader.at + growth.writtenLength / WRITTEN_PER_READ < stop) continue;
        onStored?.(growth.writtenLength);
        yield;
        stop = reader.at + growth.writtenLength / WRITTEN_PER_READ + slice;
      } while (reader.take(44));
      reader.expect(93);
    }
    reader.end();
  } catch (error) {
    if (isSkuaError(error, 'bad_json') && error.message.startsWith('The JSON text'))
      throw invalid(String(error.data.hint));
    throw error;
  }
  if (events.length === 0) throw invalid('The array has no events.');
  return events;
}

function* stringSlices(reader: JsonReader, slice: number): Generator<void, string, undefined> {
  let text = reader.part(reader.at + slice);
  while (reader.isInString) {
    yield;
    text += reader.part(reader.at + slice);
  }
  return text;
}

type Member = 'id' | 'type' | 'data' | 'metadata';

const MEMBERS: ReadonlyMap<string, Member> = new Map([
  ['eventId', 'id'],
  ['eventType', 'type'],
  ['data', 'data'],
  ['metadata', 'metadata'],
  ['eventid', 'id'],
  ['eventtype', 'type'],
] as const);

/** What was read of an event. */
class Draft {
  id: string | null = null;
  type: string | null = null;
  data = NOTHING;
  metadata = NOTHING;

  clear(): void {
    this.id = this.type = null;
    this.data = this.metadata = NOTHING;
  }

  /** `content` is what data and metadata become of the text. */
  setText(member: Member, text: string, content: Content): void {
    if (member === 'id' || member === 'type') this[member] = text;
    else this[member] = content;
  }

  /** `first` is what a value begins by that says nothing. */
  setNothing(member: Member, first: number, index: number): void {
    if (member === 'data' || member === 'metadata') this[member] = NOTHING;
    else if (first === 110) this[member] = null;
    else throw invalid(`The eventId and the eventType of event ${index} must be strings.`);
  }

  toEvent(index: number): NewEvent {
    const { id, type, data, metadata } = this;
    if (!id)
      throw new SkuaError('bad_request', "Empty eventId provided. (Parameter 'eventId')", {
        hint: noId(index),
      });
    if (!isUsableEventId(id)) {
      if (/^[0-]+$/.test(id))
        throw new SkuaError('bad_request', "Empty eventId provided. (Parameter 'eventId')", {
          hint: noId(index),
        });
      throw invalid(`The eventId of event ${index} is not a UUID.`);
    }
    if (!type)
      throw new SkuaError('bad_request', "Empty eventType provided. (Parameter 'eventType')", {
        hint: `Event ${index} of the array has no type: give it an eventType.`,
      });
    return { id, type, isJson: data.isJson, data: data.bytes, metadata: metadata.bytes };
  }
}

function noId(index: number): string {
  return `Event ${index} of the array has no id: give it a UUID as eventId, the same one in each repeat.`;
}

/** The same error as of the store, which would be given a text that is let go while it is read. */
function tooLarge(index: number, size: number): SkuaError {
  return new SkuaError(
    'event_too_large',
    `Event ${index} has more than ${EVENT_BYTES_MAX} bytes of data and metadata: store large content elsewhere and refer to it.`,
    { index, size, limit: EVENT_BYTES_MAX },
  );
}

const HAS_MEMBERS = /^\s*[[{]/;

/**
 * Objects and arrays are stored re-serialised (see `eventsOf`); a string is stored as JSON if it holds such, else as
 * its text; anything else is nothing.
 */
function contentOf(member: Member, text: string, growth: Growth): Content {
  if (text === '' || member === 'id' || member === 'type') return NOTHING;
  const parsed = HAS_MEMBERS.test(text) ? reindent(text, 0, growth) : null;
  return parsed === null ? { bytes: encodePooled(text), isJson: false } : { bytes: encodePooled(parsed), isJson: true };
}

function jsonOrText(text: string, json: Uint8Array | null): Content {
  return { bytes: json ?? encodePooled(text), isJson: json !== null };
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
