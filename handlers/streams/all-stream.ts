import { SkuaError } from '../../core/base/errors.ts';
import type { AllFilter, AllPage, AllPosition, ReadAllOptions } from '../../core/streams/api.ts';
import { allFeed, embedLevelOf, olderPageOfAll } from './atom-feed.ts';
import { changing, etagOf, unchanging } from '../http/reply.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { longPollSecondsOf } from '../http/http-headers.ts';
import { heldRead } from './long-poll.ts';
import { expressionOf } from './expression.ts';
import { FEED_KINDS, HEAD_KINDS, negotiate } from '../http/negotiate.ts';
import type { Representation } from '../http/negotiate.ts';
import { withoutForbidden } from './access.ts';
import { ALL_STREAM, type AllReading, allReading, EXCLUDE_SYSTEM } from './all-reading.ts';
import { allLines, pageLines, parsePosition } from './event-lines.ts';
import { countOf, described, feedReply, PAGE_EVENTS_DEFAULT, pageOptions, readHeaders } from './read-events.ts';
import { subscribeToAll } from './subscribe-events.ts';

/** Most prefixes in one filter. */
export const FILTER_PREFIXES_MAX = 1_000;

export const allHead: Handler = (call, app) => headOf(call, app, null);
export const allBackward: Handler = (call, app) => pageOf(call, app, 'backward', null);
export const allForward: Handler = (call, app) => pageOf(call, app, 'forward', null);
export const filteredHead: Handler = (call, app) => headOf(call, app, filterOf);
export const filteredBackward: Handler = (call, app) => pageOf(call, app, 'backward', filterOf);
export const filteredForward: Handler = (call, app) => pageOf(call, app, 'forward', filterOf);

/** Null for the routes that have no filter of their own. */
type FilterOf = ((call: Call, app: App) => Promise<AllFilter>) | null;

async function headOf(call: Call, app: App, filtered: FilterOf): Promise<Reply> {
  const chosen = negotiate(call, HEAD_KINDS);
  const reading = await allReading(call, app, filtered);
  if (chosen.kind === 'lines') return allLines(call, app, readHeaders(call, false), reading, chosen);
  if (chosen.kind === 'live') return subscribeToAll(call, app, readHeaders(call, false), reading);
  return backward(call, app, 'head', PAGE_EVENTS_DEFAULT, reading, chosen);
}

async function pageOf(call: Call, app: App, direction: 'forward' | 'backward', filtered: FilterOf): Promise<Reply> {
  const chosen = negotiate(call, FEED_KINDS);
  const reading = await allReading(call, app, filtered);
  const { position = '' } = call.params;
  const count = countOf(call.params['count'] ?? '');
  return direction === 'forward'
    ? forward(call, app, position, count, reading, chosen)
    : backward(call, app, position, count, reading, chosen);
}

async function backward(
  call: Call,
  app: App,
  token: string,
  count: number,
  reading: AllReading,
  chosen: Representation,
): Promise<Reply> {
  const redactions = app.store.redactions.version;
  const isHead = token === 'head';
  const from = isHead ? 'end' : tokenPosition(token);
  if (chosen.kind === 'description') return described(call, app, ALL_STREAM, chosen);
  const resolveLinks = readHeaders(call, false);
  const level = embedLevelOf(queryOf(call, 'embed'));
  const page = await app.store.readAll({
    direction: 'backward',
    from,
    count,
    resolveLinks,
    ...pageOptions(call, app, chosen, level),
    ...wanted(reading),
  });
  if (resolveLinks) await withoutForbidden(call, app, page.events);
  if (chosen.kind === 'lines') {
    // A filter of its own route stands in the query of the caller, who repeats it.
    const older = reading.isFiltered ? null : olderPageOfAll(call, page, count, reading.search);
    return pageLines(call, app, page.events, chosen, older);
  }
  const isFixed = from !== 'end' && from.commit <= page.lastCommitPosition;
  const caching = isFixed ? unchanging(app) : changing(app, etagOf(versionOf(page, reading), chosen, redactions));
  const asked = {
    direction: 'backward',
    isHead,
    count,
    token: isHead ? null : token.toUpperCase(),
    isFiltered: reading.isFiltered,
    search: reading.search,
  } as const;
  return feedReply(call, app, caching, chosen, () => allFeed(call, page, asked, level, chosen.author));
}

async function forward(
  call: Call,
  app: App,
  token: string,
  count: number,
  reading: AllReading,
  chosen: Representation,
): Promise<Reply> {
  const redactions = app.store.redactions.version;
  const from = tokenPosition(token);
  if (chosen.kind === 'description') return described(call, app, ALL_STREAM, chosen);
  const resolveLinks = readHeaders(call, false);
  const level = embedLevelOf(queryOf(call, 'embed'));
  const page = await heldRead(call, app, {
    seconds: longPollSecondsOf(call.request.headers),
    read: async () => {
      await reading.check();
      return app.store.readAll({
        direction: 'forward',
        from,
        count,
        resolveLinks,
        ...pageOptions(call, app, chosen, level),
        ...wanted(reading),
      });
    },
    isWaiting: (read) => read.isEnd && read.events.length === 0,
    // Only the end as it was before the read counts: what came during it has been read.
    arrival: (signal) => app.store.waitForLog(app.store.end, signal),
    endsAtOnce: false,
  });
  if (resolveLinks) await withoutForbidden(call, app, page.events);
  if (chosen.kind === 'lines') return pageLines(call, app, page.events, chosen);
  const caching =
    page.events.length === count
      ? unchanging(app)
      : changing(app, etagOf(versionOf(page, reading), chosen, redactions));
  const asked = {
    direction: 'forward',
    isHead: false,
    count,
    token: token.toUpperCase(),
    isFiltered: reading.isFiltered,
    search: reading.search,
  } as const;
  return feedReply(call, app, caching, chosen, () => allFeed(call, page, asked, level, chosen.author));
}

function wanted({ filter, access }: AllReading): Pick<ReadAllOptions, 'filter' | 'access'> {
  return { ...(filter && { filter }), access };
}

/**
 * What tells a page from another one at the same address. What retention hides from a query changes without anything
 * being written: then other events come first or last, or fewer.
 */
function versionOf({ lastCommitPosition, events }: AllPage, { search }: AllReading): number | string {
  if (search === '') return lastCommitPosition;
  const places = [events[0], events.at(-1)].map((event) => event?.preparePosition ?? 0);
  return [lastCommitPosition, events.length, ...places].join('-');
}

function tokenPosition(token: string): AllPosition {
  if (token.length !== 32) throw new SkuaError('invalid_position', `Invalid position argument: ${token}`);
  const { commit, prepare } = parsePosition(token);
  // Links carry a prepare half that means "after every record of this commit"; no prepare lies behind its commit.
  return { commit, prepare: Math.min(prepare, commit) };
}

/**
 * The filter of `/streams/$all/filtered` from its query parameters. Throws `bad_request`, and what `expressionOf` does.
 */
async function filterOf(call: Call, app: App): Promise<AllFilter> {
  const context = queryOf(call, 'context')?.toLowerCase();
  if (context !== 'streamid' && context !== 'eventtype')
    throw new SkuaError('bad_request', 'Invalid context please provide one of the following: StreamId, EventType.');
  const type = queryOf(call, 'type')?.toLowerCase();
  if (type !== 'prefix' && type !== 'regex')
    throw new SkuaError('bad_request', 'Invalid type please provide one of the following: Prefix, Regex.');
  const data = queryOf(call, 'data');
  if (!data)
    throw new SkuaError(
      'bad_request',
      'Invalid data please provide a comma-separated list of prefixes or a regular expression.',
    );
  const on = context === 'streamid' ? 'stream' : 'type';
  const excludeSystemEvents = queryOf(call, EXCLUDE_SYSTEM)?.toLowerCase() === 'true';
  if (type === 'regex') return { on, regex: await expressionOf(data, app), excludeSystemEvents };
  const prefixes = data.split(',').filter((prefix) => prefix !== '');
  if (prefixes.length === 0 || prefixes.length > FILTER_PREFIXES_MAX)
    throw new SkuaError('bad_request', `Invalid data please provide 1 to ${FILTER_PREFIXES_MAX} prefixes.`);
  return { on, prefixes, excludeSystemEvents };
}
