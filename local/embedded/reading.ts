import { isSkuaError } from '../../core/base/errors.ts';
import type {
  AllFilter,
  AllPosition,
  EventQuery as CoreQuery,
  EventStore,
  StoredEvent,
} from '../../core/streams/api.ts';
import { checkQuery } from '../../core/streams/event-query/event-query.ts';
import { expressionOf } from '../../handlers/streams/expression.ts';
import type {
  EventQuery,
  Filter,
  ReadAllOptions,
  ReadOptions,
  RecordedEvent,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
} from './api.ts';
import {
  checkDirection,
  checkedItems,
  checkedPosition,
  checkedQuery,
  checkFilter,
  checkLimit,
} from '../event-store/given.ts';
import { inWords } from '../event-store/words.ts';
import { recordedEvent } from './embedded-events.ts';

/** Events and bytes that are read at once. */
const PAGE_EVENTS = 256;
const PAGE_BYTES = 1_048_576;

/** Throws `store_closed` where the store is. */
type CheckOpen = () => void;

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
      orNext: options.items !== undefined,
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

/**
 * What readers don't ask for is not delivered: the system writes more events than most programs, and of a filter that
 * wants none of them a page says nothing. Types that are named are asked for.
 */
async function filterOf({
  filter,
  system = false,
  ...wanted
}: {
  readonly filter?: Filter;
  readonly system?: boolean;
} & EventQuery): Promise<{ filter?: AllFilter }> {
  const { items } = wanted;
  const query = items === undefined ? queryOf(wanted) : queryOfItems(wanted);
  const decisions = items === undefined ? {} : { forDecisions: true };
  const excludeSystemEvents = !system && query?.types === undefined && items === undefined;
  if (filter === undefined) {
    if (query === null && items === undefined) return system ? {} : { filter: { on: 'type', excludeSystemEvents } };
    return { filter: { on: 'type', excludeSystemEvents, ...decisions, ...(query !== null && { query }) } };
  }
  checkFilter(filter);
  const { on, prefixes, pattern } = filter;
  return {
    filter: {
      on,
      ...(prefixes !== undefined && { prefixes }),
      ...(pattern !== undefined && { regex: await expressionOf(pattern, OWNER) }),
      excludeSystemEvents,
      ...decisions,
      ...(query !== null && { query }),
    },
  };
}

/** Null where nothing is asked for. */
function queryOf(wanted: EventQuery): CoreQuery | null {
  const query = checkedQuery(wanted);
  return query === null ? null : checked(query);
}

function queryOfItems(wanted: EventQuery): CoreQuery | null {
  const anyOf = checkedItems(wanted);
  return anyOf === null ? null : checked({ anyOf });
}

function checked(query: CoreQuery): CoreQuery {
  try {
    checkQuery(query);
  } catch (error) {
    throw isSkuaError(error) ? inWords(error) : error;
  }
  return query;
}

/** What is compiled for stores of this process, apart from what is for a server's requests. */
const OWNER = {};
