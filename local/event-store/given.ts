import { SkuaError } from '../../core/base/errors.ts';
import type { EventQuery, Expected, Filter, NewEvent, Position, TaggedEvent } from './api.ts';
import { isRecord } from './values.ts';

/** What programs give to a store, looked at before anything is done with it: the same whatever the store is. */

/** Prefixes of a filter. */
const PREFIXES_MAX = 1_000;
/** Where events lie that name no stream. */
const TAGGED_STREAM = 'dcb';
const WORDS: ReadonlySet<unknown> = new Set(['any', 'none', 'exists'] satisfies Expected[]);

/** Throws `invalid_expected_version`. */
export function checkedExpected(expected: Expected = 'any'): Expected {
  if (WORDS.has(expected) || (typeof expected === 'number' && Number.isSafeInteger(expected) && expected >= 0))
    return expected;
  throw new SkuaError(
    'invalid_expected_version',
    `'${String(expected)}' is not a valid expectation: give the version of the last event, or any, none or exists.`,
    { expected },
  );
}

/** One or more. Throws `batch_empty`. */
export function checkedList<T extends NewEvent>(events: T | readonly T[]): readonly T[] {
  const list = Array.isArray(events) ? (events as readonly T[]) : [events as T];
  if (list.length === 0) throw new SkuaError('batch_empty', 'There are no events to append: give one or more.');
  return list;
}

/** An event whose payloads are JSON text or bytes. Of neither where there are none. */
export interface GivenEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string | Uint8Array | undefined;
  readonly metadata: string | Uint8Array | undefined;
}

/** The event, with an id if it has none. Throws `invalid_event`. */
export function givenEvent(event: NewEvent, index: number): GivenEvent {
  const { type, data, metadata, id = newId() } = event ?? {};
  // Of another type a store would look at its length, or at its bytes.
  if (typeof type !== 'string' || typeof id !== 'string')
    throw invalidEvent(index, 'needs a type, and an id that is a string');
  return { id, type, data: payload(data, index, 'data'), metadata: payload(metadata, index, 'metadata') };
}

/** A page that came over plain HTTP has no `randomUUID`. */
function newId(): string {
  if (crypto.randomUUID !== undefined) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20]].map(([from, to]) => hex.slice(from, to)).join('-');
}

function payload(value: unknown, index: number, what: string): string | Uint8Array | undefined {
  if (value === undefined) return undefined;
  // The caller may write to its own bytes while these wait.
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
  return text;
}

function invalidEvent(index: number, why: string): SkuaError {
  return new SkuaError('invalid_event', `Event ${index} ${why}.`, { index });
}

/** Each event with its stream, and with its tags in its metadata. Throws as `checkedList` and `givenEvent`. */
export function taggedEvents(
  events: TaggedEvent | readonly TaggedEvent[],
): { readonly stream: string; readonly event: GivenEvent }[] {
  return checkedList(events).map((tagged, index) => {
    const { stream = TAGGED_STREAM, tags = [], ...event } = tagged ?? {};
    if (tags.length > 0 && event.metadata !== undefined && !isRecord(event.metadata))
      throw invalidEvent(index, 'has tags, so its metadata must be an object');
    const metadata = tags.length === 0 ? event.metadata : { ...(event.metadata as object | undefined), $tags: tags };
    return { stream, event: givenEvent({ ...event, metadata }, index) };
  });
}

export function checkDirection(direction: string): void {
  if (direction !== 'forward' && direction !== 'backward')
    throw new SkuaError('bad_option', `direction is '${direction}'; it must be forward or backward.`, {
      option: 'direction',
      value: direction,
    });
}

/** Throws `invalid_count`. */
export function checkLimit(limit: number): void {
  if (limit !== Number.POSITIVE_INFINITY && (!Number.isSafeInteger(limit) || limit < 1))
    throw new SkuaError('invalid_count', `limit is ${limit}; it must be a whole number of 1 or more.`, { limit });
}

/** Throws `invalid_position`. */
export function checkedPosition(place: Position | 'start' | 'end'): Position | 'start' | 'end' {
  if (
    place === 'start' ||
    place === 'end' ||
    (Number.isSafeInteger(place?.commit) && Number.isSafeInteger(place.prepare))
  )
    return place;
  throw new SkuaError(
    'invalid_position',
    'A position is start, end, or the position of an event: { commit, prepare }.',
    {},
  );
}

/** Throws `bad_option`. */
export function checkFilter({ on, prefixes, pattern }: Filter): void {
  if (on !== 'stream' && on !== 'type') throw badFilter(`on is '${String(on)}'; it must be stream or type`);
  if ((prefixes === undefined) === (pattern === undefined)) throw badFilter('give it either prefixes or a pattern');
  if (
    prefixes !== undefined &&
    (!Array.isArray(prefixes) ||
      prefixes.length === 0 ||
      prefixes.length > PREFIXES_MAX ||
      prefixes.some((prefix) => typeof prefix !== 'string' || prefix === ''))
  )
    throw badFilter(`prefixes must be 1 to ${PREFIXES_MAX} non-empty strings`);
}

function badFilter(why: string): SkuaError {
  return new SkuaError('bad_option', `The filter can't be used: ${why}.`, { option: 'filter' });
}

/** What is asked for by category, types, correlation and tags; null for nothing of these. Throws `bad_option`. */
export function checkedQuery({ category, types, correlation, tags }: EventQuery): EventQuery | null {
  if (category === undefined && types === undefined && correlation === undefined && tags === undefined) return null;
  return {
    ...(category !== undefined && { category: text('category', category) }),
    ...(types !== undefined && { types: texts('types', types) }),
    ...(correlation !== undefined && { correlation: text('correlation', correlation) }),
    ...(tags !== undefined && { tags: texts('tags', tags) }),
  };
}

/** The items of a query; null where all events are asked for, as without items or with one that asks for nothing. */
export function checkedItems({ items, ...others }: EventQuery): NonNullable<EventQuery['items']> | null {
  if (!Array.isArray(items)) throw new SkuaError('bad_option', 'items must be an array.', { option: 'items' });
  if (checkedQuery(others) !== null)
    throw new SkuaError('bad_option', 'items stand alone: give types and tags within them.', { option: 'items' });
  const checked = (items as NonNullable<EventQuery['items']>).map((item) => ({
    ...((item.types ?? []).length > 0 && { types: texts('types', item.types) }),
    ...((item.tags ?? []).length > 0 && { tags: texts('tags', item.tags) }),
  }));
  return checked.length === 0 || checked.some((item) => Object.keys(item).length === 0) ? null : checked;
}

function text(option: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw new SkuaError('bad_option', `${option} must be a string.`, { option });
}

function texts(option: string, value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new SkuaError('bad_option', `${option} must be an array of one or more strings.`, { option });
  return value.map((each) => text(option, each));
}
