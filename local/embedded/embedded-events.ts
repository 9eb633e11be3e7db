import { type DataOf, type ErrorCode, isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { ANY, NO_STREAM, STREAM_EXISTS } from '../../core/streams/api.ts';
import type { AppendResult as StoredAppend, NewEvent as BytesEvent, StoredEvent } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import type { AppendResult, Expected, NewEvent, Position, RecordedEvent } from './api.ts';
import type { Conflict } from './embedded-errors.ts';

/** Between the bytes of the store and what a program works with. */

const NOTHING = new Uint8Array(0);
const WORDS: Readonly<Record<string, number>> = { any: ANY, none: NO_STREAM, exists: STREAM_EXISTS };

/** Throws `invalid_expected_version`. */
export function expectedNumber(expected: Expected = 'any'): number {
  const number = typeof expected === 'number' ? expected : WORDS[expected];
  if (number === undefined || !Number.isSafeInteger(number) || (typeof expected === 'number' && expected < 0)) {
    throw new SkuaError(
      'invalid_expected_version',
      `'${String(expected)}' is not a valid expectation: give the version of the last event, or any, none or exists.`,
      { expected },
    );
  }
  return number;
}

/** Throws `batch_empty` and `invalid_event`. */
export function bytesEvents(events: NewEvent | readonly NewEvent[]): BytesEvent[] {
  const list = Array.isArray(events) ? (events as readonly NewEvent[]) : [events as NewEvent];
  if (list.length === 0) throw new SkuaError('batch_empty', 'There are no events to append: give one or more.');
  return list.map(bytesEvent);
}

function bytesEvent(event: NewEvent, index: number): BytesEvent {
  const { type, data, metadata, id = crypto.randomUUID() } = event ?? {};
  // Of another type the core would look at its length, or at its bytes.
  if (typeof type !== 'string' || typeof id !== 'string')
    throw invalidEvent(index, 'needs a type, and an id that is a string');
  const isJson = data !== undefined && !(data instanceof Uint8Array);
  return { id, type, isJson, data: payload(data, index, 'data'), metadata: payload(metadata, index, 'metadata') };
}

function payload(value: unknown, index: number, what: string): Uint8Array {
  if (value === undefined) return NOTHING;
  // The caller may write to its own bytes while these wait for the disk.
  if (value instanceof Uint8Array) return value.slice();
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw invalidEvent(
      index,
      `has ${what} that is not JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (text === undefined) throw invalidEvent(index, `has ${what} that is not JSON: a ${typeof value}`);
  return encodeText(text);
}

function invalidEvent(index: number, why: string): SkuaError {
  return new SkuaError('invalid_event', `Event ${index} ${why}.`, { index });
}

export function positionAt(position: number): Position {
  return { commit: position, prepare: position };
}

export function appendResult({ firstEventNumber, lastEventNumber, position, isRepeat }: StoredAppend): AppendResult {
  return { version: lastEventNumber, firstVersion: firstEventNumber, position: positionAt(position), isRepeat };
}

/** What was expected and what was there, in the words of the caller. */
export function inWords(error: unknown): unknown {
  // The data have words here, which the core's own have not.
  if (isSkuaError(error, 'wrong_expected_version'))
    return new SkuaError<ErrorCode>(error.code, error.message, worded(error.data), error);
  if (isSkuaError(error, 'bad_request')) return new SkuaError('bad_option', error.message, error.data, error);
  if (isSkuaError(error, 'consistency_violation'))
    return new SkuaError<ErrorCode>(
      error.code,
      error.message,
      { violations: error.data.violations.map(worded) },
      error,
    );
  return error;
}

function worded({ stream, expected, actual }: DataOf<'wrong_expected_version'>): Conflict {
  return { stream, expected: wordOf(expected), actual: actual >= 0 ? actual : null };
}

function wordOf(expected: number): Expected {
  switch (expected) {
    case ANY:
      return 'any';
    case NO_STREAM:
      return 'none';
    case STREAM_EXISTS:
      return 'exists';
    default:
      return expected;
  }
}

/** An event of its own: nothing of it is a view of cached bytes. */
export function recordedEvent<Data, Metadata>(event: StoredEvent): RecordedEvent<Data, Metadata> {
  const { stream, number, type, id, isRedacted, link } = event;
  const data = isRedacted ? UNSEEN : valueOf(event.data, event.isJson);
  const metadata = valueOf(event.metadata, true);
  return {
    stream,
    version: number,
    type,
    id,
    data: data.value as Data,
    // Of a redacted event what was kept is JSON; other bytes are what a tool has written over it.
    metadata: (isRedacted && !metadata.isJson ? undefined : metadata.value) as Metadata,
    isJson: data.isJson,
    isRedacted,
    position: placeOf(event),
    createdAt: new Date(event.createdMs),
    link: link === null ? null : { stream: link.stream, version: link.number, position: placeOf(link) },
  };
}

function placeOf({ position, preparePosition }: StoredEvent): Position {
  return { commit: position, prepare: preparePosition };
}

interface Value {
  readonly value: unknown;
  readonly isJson: boolean;
}

const UNSEEN: Value = { value: undefined, isJson: false };

/** What others have marked as JSON need not be any. */
function valueOf(bytes: Uint8Array, mayBeJson: boolean): Value {
  if (bytes.length === 0) return UNSEEN;
  if (mayBeJson) {
    try {
      return { value: JSON.parse(decodeText(bytes)), isJson: true };
    } catch {
      // Then these are bytes.
    }
  }
  return { value: bytes.slice(), isJson: false };
}
