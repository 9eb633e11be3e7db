import { SkuaError } from '../../core/base/errors.ts';
import {
  EVENT_BYTES_MAX,
  EVENT_TYPE_LENGTH_MAX,
  PAGE_EVENTS_MAX,
  STREAM_NAME_LENGTH_MAX,
} from '../../core/streams/api.ts';
import { isModelMetadata } from './model-metadata.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import type { AllFilter, AllPosition, EventQuery, NewEvent, StoredEvent } from '../../core/streams/api.ts';

/** Checks and errors of the model store. */

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function compare(event: StoredEvent, at: AllPosition): number {
  return event.position - at.commit || event.preparePosition - at.prepare;
}

export function matches(event: StoredEvent, filter: AllFilter | undefined): boolean {
  if (filter === undefined) return true;
  if (filter.query !== undefined && !isAskedFor(filter.query, event)) return false;
  const text = filter.on === 'stream' ? event.stream : event.type;
  if (filter.excludeSystemEvents === true && event.type.startsWith('$')) return false;
  if (filter.regex !== undefined) return filter.regex.test(text);
  return filter.prefixes === undefined || filter.prefixes.some((prefix) => text.startsWith(prefix));
}

/** Whether an event is what a query asks for, in the plainest words. */
export function isAskedFor({ category, types, correlation, tags }: EventQuery, event: StoredEvent): boolean {
  const { stream, type, metadata } = event;
  if (category !== undefined && (stream.startsWith('$') || stream.split('-')[0] !== category)) return false;
  if (types !== undefined && !types.includes(type)) return false;
  let members: { $correlationId?: unknown; $tags?: unknown } = {};
  try {
    members = Object(JSON.parse(decodeText(metadata)));
  } catch {}
  if (correlation !== undefined && members.$correlationId !== correlation) return false;
  const { $tags } = members;
  return tags === undefined || tags.every((tag) => Array.isArray($tags) && $tags.slice(0, 64).includes(tag));
}

/** Names that can be asked for. */
export function checkName(stream: string): void {
  if (stream === '' || stream === '$$' || !stream.isWellFormed())
    throw new SkuaError('invalid_stream_name', `'${stream}' can't be a stream's name.`);
}

/** Names that can be written to. */
export function checkNewName(stream: string): void {
  checkName(stream);
  const isReserved = stream === '.' || stream === '..' || stream === '$all' || stream.startsWith('$mem-');
  if (isReserved || stream.length > STREAM_NAME_LENGTH_MAX || [...stream].some((c) => c < ' ' || c === '\u007f'))
    throw new SkuaError('invalid_stream_name', `'${stream}' can't be a new stream's name.`);
  if (stream.startsWith('$$$$'))
    throw new SkuaError('access_denied', `'${stream}' would describe metadata.`, { stream });
}

/** Numbers that an event can have. */
export function checkNumber(number: number): void {
  if (!Number.isSafeInteger(number) || number < 0)
    throw new SkuaError('invalid_event_number', `${number} is no event number.`);
}

/** Bytes of one write. */
export function checkBytes(events: readonly NewEvent[], limit: number): void {
  const size = events.reduce((sum, { data }) => sum + data.length, 0);
  if (size > limit) throw new SkuaError('batch_too_large', `A write may hold ${limit} bytes.`, { size, limit });
}

export function checkEvent(event: NewEvent, index: number): void {
  if (!UUID.test(event.id) || /^[0-]*$/.test(event.id)) throw new SkuaError('invalid_event', 'An event needs an id.');
  if (event.type === '' || !event.type.isWellFormed() || event.type.length > EVENT_TYPE_LENGTH_MAX)
    throw new SkuaError('invalid_event', 'An event needs a type.');
  let tags: unknown;
  try {
    tags = Object(JSON.parse(decodeText(event.metadata))).$tags;
  } catch {}
  if (Array.isArray(tags) && (tags.length > 64 || tags.some((tag) => encodeText(String(tag)).length > 256)))
    throw new SkuaError('bad_tags', 'An event may have 64 tags of 256 bytes.', { index, tags: 64, bytes: 256 });
  const size = event.data.length + event.metadata.length;
  if (size > EVENT_BYTES_MAX)
    throw new SkuaError('event_too_large', `An event may hold ${EVENT_BYTES_MAX} bytes.`, {
      index,
      size,
      limit: EVENT_BYTES_MAX,
    });
}

/** Refuses metadata that could not be read as what they were meant to be. */
export function checkMeaning(stream: string, events: readonly NewEvent[]): void {
  if (!stream.startsWith('$$') || stream === '$$') return;
  for (const { data, isJson } of events)
    if (!isModelMetadata(data, isJson))
      throw new SkuaError('invalid_metadata', `These can't be the metadata of '${stream.slice(2)}'.`, {
        stream,
        key: null,
      });
}

export function checkCount(count: number): void {
  if (!Number.isSafeInteger(count) || count < 1) throw new SkuaError('invalid_count', `${count} is no page size.`);
  if (count > PAGE_EVENTS_MAX) throw new SkuaError('page_too_large', `A page has at most ${PAGE_EVENTS_MAX} events.`);
}

export function deleted(stream: string): SkuaError {
  return new SkuaError('stream_deleted', `Stream '${stream}' is hard-deleted.`, { stream });
}

export function conflict(stream: string, expected: number, actual: number): SkuaError {
  return new SkuaError(
    'wrong_expected_version',
    `Stream '${stream}' is at version ${actual}, not ${expected}. Read it again and retry.`,
    { stream, expected, actual },
  );
}

/** Expected versions that mean nothing: below -4, and -3. */
export function checkExpectedForm(expected: number): void {
  if (!Number.isSafeInteger(expected) || expected < -4 || expected === -3)
    throw new SkuaError('invalid_expected_version', `${expected} is no expected version.`, { expected });
}
