import { SkuaError } from '../../core/base/errors.ts';
import type { AllFilter, EventAccess, EventQuery } from '../../core/streams/api.ts';
import { checkQuery } from '../../core/streams/event-query/event-query.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call } from '../http/context.ts';
import { checkReader, checkStream, eventAccess } from './access.ts';
import { badRequest, filterForDecisions, itemsOf, jsonIn } from './condition-items.ts';

/** What is read of all streams, and by which right. */

/** Its access list decides about `$all` as a whole; events in it are not looked at one by one. */
export const ALL_STREAM = '$all';
/** Parameter by which the system's own events are left out. */
export const EXCLUDE_SYSTEM = 'exclude-system-events';
/** Parameter with the items of a condition, as JSON: just what it counts is read. */
const ITEMS = 'items';

export interface AllReading {
  readonly filter: AllFilter | undefined;
  /** With a query: each event goes by the list of its stream. Else `$all` as a whole has been asked. */
  readonly access: EventAccess | undefined;
  /** By the filter of a route of its own. */
  readonly isFiltered: boolean;
  /** What links to other pages have behind them: the query, or nothing. */
  readonly search: string;
  /** Throws, or rejects, once the caller may read no more: asked again for each part of a long reply. */
  check(): void | Promise<void>;
}

/**
 * Asks for the right to read. `filterOf` is asked only once the caller is known to be allowed to: compiling an
 * expression is work for others.
 */
export async function allReading(
  call: Call,
  app: App,
  filterOf: ((call: Call, app: App) => Promise<AllFilter>) | null,
): Promise<AllReading> {
  const asked = wantedOf(call);
  const query = filterOf === null ? asked : null;
  const excludeSystemEvents = queryOf(call, EXCLUDE_SYSTEM)?.toLowerCase() === 'true';
  // With a query, what is asked for each page is asked where the page is read.
  if (query !== null)
    return {
      filter: { on: 'stream', ...query, excludeSystemEvents },
      access: eventAccess(call, app),
      isFiltered: false,
      search: searchOf(call, query.query ?? {}, excludeSystemEvents),
      check: () => {},
    };
  await checkStream(call, app, 'read', ALL_STREAM);
  const onAll: AllFilter | undefined = excludeSystemEvents ? { on: 'type', excludeSystemEvents } : undefined;
  return {
    filter: filterOf === null ? onAll : { ...(await filterOf(call, app)), ...asked },
    access: undefined,
    isFiltered: filterOf !== null,
    search: filterOf === null ? searchOf(call, {}, excludeSystemEvents) : '',
    check: () => checkReader(call, app, ALL_STREAM),
  };
}

/** What the address asks for; null where it asks for nothing. Throws `bad_request`. */
function wantedOf(call: Call): Pick<AllFilter, 'query' | 'forDecisions'> | null {
  const query = eventQuery(call);
  const items = one(call, ITEMS);
  if (items === undefined) return query && { query };
  if (query !== null) throw badRequest('items stand alone: give types and tags within them');
  const { on: _, ...wanted } = filterForDecisions(itemsOf(jsonIn(items, ITEMS)));
  if (wanted.query !== undefined) checkQuery(wanted.query);
  return wanted;
}

function eventQuery(call: Call): EventQuery | null {
  const category = one(call, 'category');
  const correlation = one(call, 'correlation');
  const types = each(call, 'eventType');
  const tags = each(call, 'tag');
  if (category === undefined && correlation === undefined && types === undefined && tags === undefined) return null;
  const query: EventQuery = {
    ...(category !== undefined && { category }),
    ...(types !== undefined && { types }),
    ...(correlation !== undefined && { correlation }),
    ...(tags !== undefined && { tags }),
  };
  checkQuery(query);
  return query;
}

function each(call: Call, name: string): string[] | undefined {
  const value = call.query[name];
  return value === undefined || Array.isArray(value) ? value : [value];
}

function one(call: Call, name: string): string | undefined {
  const values = each(call, name);
  if (values !== undefined && values.length > 1)
    throw new SkuaError('bad_request', `${name} is there ${values.length} times: give it once.`);
  return values?.[0];
}

function searchOf(
  call: Call,
  { category, types = [], correlation, tags = [] }: EventQuery,
  excludeSystemEvents: boolean,
): string {
  const parts = new URLSearchParams();
  const items = one(call, ITEMS);
  if (items !== undefined) parts.append(ITEMS, items);
  if (category !== undefined) parts.append('category', category);
  for (const type of types) parts.append('eventType', type);
  if (correlation !== undefined) parts.append('correlation', correlation);
  for (const tag of tags) parts.append('tag', tag);
  if (excludeSystemEvents) parts.append(EXCLUDE_SYSTEM, 'true');
  const text = parts.toString();
  return text === '' ? '' : `?${text}`;
}
