import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { AllFilter, AllPosition, EventStore, StoredEvent } from '../../core/streams/api.ts';
import { expressionOf } from '../../handlers/streams/expression.ts';
import type {
  Filter,
  Position,
  ReadAllOptions,
  ReadOptions,
  RecordedEvent,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
} from './api.ts';
import { recordedEvent } from './embedded-events.ts';

/** Events and bytes that are read at once. */
const PAGE_EVENTS = 256;
const PAGE_BYTES = 1_048_576;
/** Prefixes of a filter. */
const PREFIXES_MAX = 1_000;

/** Throws `store_closed` where the store is. */
export type CheckOpen = () => void;

export async function* readStream<D, M>(
  store: EventStore,
  checkOpen: CheckOpen,
  stream: string,
  options: ReadOptions = {},
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  const { direction = 'forward', limit = Number.POSITIVE_INFINITY, resolveLinks = false, signal } = options;
  checkDirection(direction);
  checkLimit(limit);
  const isForward = direction === 'forward';
  const { from: first = isForward ? 'start' : 'end' } = options;
  let from: number | 'end' = first === 'start' ? 0 : first;
  for (let left = limit; left > 0;) {
    signal?.throwIfAborted();
    checkOpen();
    const page = await store.readStream(stream, {
      direction,
      from,
      count: Math.min(left, PAGE_EVENTS),
      bytesMax: PAGE_BYTES,
      resolveLinks,
    });
    for (const event of page.events) {
      signal?.throwIfAborted();
      left--;
      yield recordedEvent(store.redactions.shown(event));
    }
    if (page.isEnd || page.nextEventNumber < 0) return;
    from = page.nextEventNumber;
  }
}

export async function* readAllStreams<D, M>(
  store: EventStore,
  checkOpen: CheckOpen,
  options: ReadAllOptions = {},
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  const { direction = 'forward', limit = Number.POSITIVE_INFINITY, resolveLinks = false, signal } = options;
  checkDirection(direction);
  checkLimit(limit);
  const filter = await filterOf(options);
  let from: AllPosition | 'start' | 'end' = options.from ?? (direction === 'forward' ? 'start' : 'end');
  for (let left = limit; left > 0;) {
    signal?.throwIfAborted();
    checkOpen();
    const page = await store.readAll({
      direction,
      from: checkedPosition(from),
      count: Math.min(left, PAGE_EVENTS),
      bytesMax: PAGE_BYTES,
      resolveLinks,
      ...filter,
    });
    for (const event of page.events) {
      signal?.throwIfAborted();
      left--;
      yield recordedEvent(store.redactions.shown(event));
    }
    if (page.isEnd) return;
    from = page.next;
  }
}

export async function* followStream<D, M>(
  store: EventStore,
  checkOpen: CheckOpen,
  options: SubscribeToStreamOptions,
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  const { stream, after = 'start', resolveLinks = false, signal, onCaughtUp } = options;
  checkOpen();
  for await (const message of store.subscribeToStream(stream, {
    after: after === 'start' ? -1 : after,
    resolveLinks,
    ...(signal !== undefined && { signal }),
  })) {
    if (signal?.aborted === true) return;
    if (message.kind === 'event') yield recordedEvent(message.event);
    else if (message.kind === 'caught-up') onCaughtUp?.();
  }
}

export async function* followAll<D, M>(
  store: EventStore,
  checkOpen: CheckOpen,
  options: SubscribeToAllOptions,
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  const { after = 'start', resolveLinks = false, signal, onCaughtUp, onCheckpoint } = options;
  const filter = await filterOf(options);
  checkOpen();
  for await (const message of store.subscribeToAll({
    after: checkedPosition(after),
    resolveLinks,
    ...filter,
    ...(signal !== undefined && { signal }),
  })) {
    if (signal?.aborted === true) return;
    if (message.kind === 'event') yield recordedEvent(message.event);
    else if (message.kind === 'checkpoint') onCheckpoint?.(message.after);
    else onCaughtUp?.();
  }
}

/** The last event of a stream, or null where there is none. */
export async function lastEvent(store: EventStore, stream: string): Promise<StoredEvent | null> {
  try {
    return await store.readEvent(stream, 'last');
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'event_not_found')) return null;
    throw error;
  }
}

function checkDirection(direction: string): void {
  if (direction !== 'forward' && direction !== 'backward')
    throw new SkuaError('bad_option', `direction is '${direction}'; it must be forward or backward.`, {
      option: 'direction',
      value: direction,
    });
}

function checkLimit(limit: number): void {
  if (limit !== Number.POSITIVE_INFINITY && (!Number.isSafeInteger(limit) || limit < 1))
    throw new SkuaError('invalid_count', `limit is ${limit}; it must be a whole number of 1 or more.`, { limit });
}

function checkedPosition(place: Position | 'start' | 'end'): Position | 'start' | 'end' {
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

/**
 * What readers don't ask for is not delivered: the system writes more events than most programs, and of a filter that
 * wants none of them a page says nothing.
 */
async function filterOf({
  filter,
  system = false,
}: {
  readonly filter?: Filter;
  readonly system?: boolean;
}): Promise<{ filter?: AllFilter }> {
  if (filter === undefined) return system ? {} : { filter: { on: 'type', excludeSystemEvents: true } };
  const { on, prefixes, pattern } = filter;
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
  return {
    filter: {
      on,
      ...(prefixes !== undefined && { prefixes }),
      ...(pattern !== undefined && { regex: await expressionOf(pattern, OWNER) }),
      excludeSystemEvents: !system,
    },
  };
}

/** What is compiled for stores of this process, apart from what is for a server's requests. */
const OWNER = {};

function badFilter(why: string): SkuaError {
  return new SkuaError('bad_option', `The filter can't be used: ${why}.`, { option: 'filter' });
}
