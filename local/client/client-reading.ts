import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { LineDocument } from '../../handlers/documents/streams.ts';
import type { EventQuery, Filter, Position, ReadAllOptions, ReadOptions, RecordedEvent } from '../event-store/api.ts';
import {
  checkDirection,
  checkedItems,
  checkedPosition,
  checkedQuery,
  checkFilter,
  checkLimit,
} from '../event-store/given.ts';
import type { Caller } from './caller.ts';
import { lineOf, linesOf, recordedLine } from './client-lines.ts';

/** Readings that are loops: lines of as many events as one request asks for, and on behind the last one that came. */

/** Events that are asked for at once. */
const PAGE_EVENTS = 1_000;
const NOT_IN_PATHS: ReadonlySet<string> = new Set(['.', '..']);

/** Throws `invalid_stream_name` for a name that no path can have. */
export function pathOf(stream: string): string {
  if (typeof stream !== 'string' || stream === '' || stream === '$$')
    throw invalidName(stream, 'is empty: name a stream');
  if (/\p{Surrogate}/u.test(stream)) throw invalidName(stream, 'is not valid Unicode: remove the lone surrogate');
  if (NOT_IN_PATHS.has(stream)) throw invalidName(stream, "can't be used in URLs: choose another");
  // It is read as all streams, which a store without a server has no stream for.
  if (stream === '$all')
    throw new SkuaError('stream_not_found', "There is no stream '$all': readAll has all events.", { stream });
  return `/streams/${encodeURIComponent(stream)}`;
}

function invalidName(stream: unknown, why: string): SkuaError {
  return new SkuaError('invalid_stream_name', `The stream name '${String(stream)}' ${why}.`, {});
}

export function withQuery(path: string, search: URLSearchParams): string {
  return `${search}` === '' ? path : `${path}?${search}`;
}

export function readHeaders(accept: string, resolveLinks: boolean): Readonly<Record<string, string>> {
  return { accept, 'es-resolvelinktos': String(resolveLinks) };
}

export function readCalled<D, M>(
  caller: Caller,
  stream: string,
  options: ReadOptions = {},
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  const { direction = 'forward', from } = options;
  const step = direction === 'forward' ? 1 : -1;
  return readLines(caller, () => pathOf(stream), new URLSearchParams(), options, {
    first: () => (from === undefined ? {} : { from: String(from) }),
    behind: (line) => {
      const next = line.positionEventNumber + step;
      return next < 0 ? null : { from: String(next) };
    },
  });
}

export function readAllCalled<D, M>(
  caller: Caller,
  options: ReadAllOptions = {},
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  const { direction = 'forward', from } = options;
  const search = new URLSearchParams();
  return readLines(caller, () => allPath(options, search), search, options, {
    first: () => (from === undefined ? {} : { from: placeText(checkedPosition(from)) }),
    // Backward a place stands for what is before it.
    behind: ({ position }) => (direction === 'forward' ? { after: position } : { from: position }),
  });
}

export function placeText(place: Position | 'start' | 'end'): string {
  return typeof place === 'string' ? place : `${place.commit}/${place.prepare}`;
}

/** The path of all events that are wanted; `search` is told which. Throws `bad_option`. */
export function allPath(
  { filter, system = false, ...wanted }: EventQuery & { readonly filter?: Filter; readonly system?: boolean },
  search: URLSearchParams,
): string {
  const { items } = wanted;
  const query = items === undefined ? checkedQuery(wanted) : null;
  if (items !== undefined) search.append('items', JSON.stringify(checkedItems(wanted) ?? []));
  if (query?.category !== undefined) search.append('category', query.category);
  for (const type of query?.types ?? []) search.append('eventType', type);
  if (query?.correlation !== undefined) search.append('correlation', query.correlation);
  for (const tag of query?.tags ?? []) search.append('tag', tag);
  // Types that are named are asked for.
  if (!system && query?.types === undefined && items === undefined) search.append('exclude-system-events', 'true');
  if (filter === undefined) return '/streams/%24all';
  checkFilter(filter);
  const { on, prefixes, pattern = patternOf(prefixes!) } = filter;
  search.append('context', on === 'stream' ? 'streamid' : 'eventtype');
  search.append('type', pattern === null ? 'prefix' : 'regex');
  search.append('data', pattern ?? prefixes!.join(','));
  return '/streams/%24all/filtered';
}

/** Prefixes travel with commas between them: those that have one themselves as an expression. */
function patternOf(prefixes: readonly string[]): string | null {
  if (!prefixes.some((prefix) => prefix.includes(','))) return null;
  return `^(?:${prefixes.map((prefix) => prefix.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})`;
}

/** Parameters by which a request says where it begins. */
type Start = Readonly<Record<string, string>>;

interface Walk {
  first(): Start;
  /** Where to go on behind an event; null where there is nothing. */
  behind(line: LineDocument): Start | null;
}

async function* readLines<D, M>(
  caller: Caller,
  path: () => string,
  search: URLSearchParams,
  {
    direction = 'forward',
    limit = Number.POSITIVE_INFINITY,
    resolveLinks = false,
    signal,
  }: ReadOptions | ReadAllOptions,
  { first, behind }: Walk,
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  checkDirection(direction);
  checkLimit(limit);
  const root = path();
  let start: Start | null = first();
  let left = limit;
  let page = PAGE_EVENTS;
  let failed = 0;
  while (start !== null && left > 0) {
    caller.check(signal);
    const count = Math.min(left, page);
    const params = new URLSearchParams([...search, ...Object.entries({ ...start, direction, limit: String(count) })]);
    const attempt = caller.begin(
      { method: 'GET', path: withQuery(root, params), headers: readHeaders('application/x-ndjson', resolveLinks) },
      signal,
    );
    let seen = 0;
    try {
      await attempt.reply();
      for await (const text of linesOf(attempt)) {
        const line = lineOf(text);
        seen++;
        left--;
        start = behind(line);
        failed = 0;
        caller.check(signal);
        yield recordedLine(line);
      }
      if (seen < count) return;
    } catch (error) {
      // A function can't answer with as much as that.
      if (isSkuaError(error, 'reply_too_large') && count > 1) page = Math.ceil(count / 2);
      else await caller.pause(attempt, caller.passingOf(error, signal), ++failed, signal);
    } finally {
      attempt.end();
    }
  }
}
