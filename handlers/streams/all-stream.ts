import { SkuaError } from '../../core/base/errors.ts';
import type { AllFilter, AllPosition } from '../../core/streams/api.ts';
import { allFeed, embedLevelOf } from './atom-feed.ts';
import { changing, etagOf, unchanging } from '../http/reply.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { longPollSecondsOf } from '../http/http-headers.ts';
import { heldRead } from './long-poll.ts';
import { expressionOf } from './expression.ts';
import { FEED_KINDS, HEAD_KINDS, negotiate } from '../http/negotiate.ts';
import type { Representation } from '../http/negotiate.ts';
import { checkStream, readAllowed, withoutForbidden } from './access.ts';
import { allLines, pageLines, parsePosition } from './event-lines.ts';
import { countOf, described, feedReply, PAGE_EVENTS_DEFAULT, pageOptions, readHeaders } from './read-events.ts';
import { subscribeToAll } from './subscribe-events.ts';

/** Most prefixes in one filter. */
export const FILTER_PREFIXES_MAX = 1_000;

/** Its access list decides about `$all` as a whole; events in it are not looked at one by one. */
const ALL_STREAM = '$all';

export const allHead: Handler = (call, app) => headOf(call, app, unfiltered);
export const allBackward: Handler = (call, app) => pageOf(call, app, 'backward', unfiltered);
export const allForward: Handler = (call, app) => pageOf(call, app, 'forward', unfiltered);
export const filteredHead: Handler = (call, app) => headOf(call, app, filterOf);
export const filteredBackward: Handler = (call, app) => pageOf(call, app, 'backward', filterOf);
export const filteredForward: Handler = (call, app) => pageOf(call, app, 'forward', filterOf);

/** Asked only once the caller is known to be allowed to read: compiling an expression is work for others. */
type FilterOf = (call: Call, app: App) => Promise<AllFilter> | undefined;

const unfiltered: FilterOf = () => undefined;

async function headOf(call: Call, app: App, filtered: FilterOf): Promise<Reply> {
  const chosen = negotiate(call, HEAD_KINDS);
  await checkStream(call, app, 'read', ALL_STREAM);
  const filter = await filtered(call, app);
  if (chosen.kind === 'lines') return allLines(call, app, readHeaders(call, false), filter, chosen);
  if (chosen.kind === 'live') return subscribeToAll(call, app, readHeaders(call, false), filter);
  return backward(call, app, 'head', PAGE_EVENTS_DEFAULT, filter, chosen);
}

async function pageOf(call: Call, app: App, direction: 'forward' | 'backward', filtered: FilterOf): Promise<Reply> {
  const chosen = negotiate(call, FEED_KINDS);
  await checkStream(call, app, 'read', ALL_STREAM);
  const filter = await filtered(call, app);
  const { position = '' } = call.params;
  const count = countOf(call.params['count'] ?? '');
  return direction === 'forward'
    ? forward(call, app, position, count, filter, chosen)
    : backward(call, app, position, count, filter, chosen);
}

async function backward(
  call: Call,
  app: App,
  token: string,
  count: number,
  filter: AllFilter | undefined,
  chosen: Representation,
): Promise<Reply> {
  const redactions = app.store.redactions.count;
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
    ...(filter && { filter }),
  });
  if (resolveLinks) await withoutForbidden(call, app, page.events);
  if (chosen.kind === 'lines') return pageLines(call, app, page.events, chosen);
  const isFixed = from !== 'end' && from.commit <= page.lastCommitPosition;
  const caching = isFixed ? unchanging(app) : changing(app, etagOf(page.lastCommitPosition, chosen, redactions));
  const asked = {
    direction: 'backward',
    isHead,
    count,
    token: isHead ? null : token.toUpperCase(),
    isFiltered: filter !== undefined,
  } as const;
  return feedReply(call, app, caching, chosen, () => allFeed(call, page, asked, level, chosen.author));
}

async function forward(
  call: Call,
  app: App,
  token: string,
  count: number,
  filter: AllFilter | undefined,
  chosen: Representation,
): Promise<Reply> {
  const redactions = app.store.redactions.count;
  const from = tokenPosition(token);
  if (chosen.kind === 'description') return described(call, app, ALL_STREAM, chosen);
  const resolveLinks = readHeaders(call, false);
  const level = embedLevelOf(queryOf(call, 'embed'));
  const page = await heldRead(call, app, {
    seconds: longPollSecondsOf(call.request.headers),
    read: () =>
      readAllowed(call, app, ALL_STREAM, () =>
        app.store.readAll({
          direction: 'forward',
          from,
          count,
          resolveLinks,
          ...pageOptions(call, app, chosen, level),
          ...(filter && { filter }),
        }),
      ),
    isWaiting: (read) => read.isEnd && read.events.length === 0,
    // Only the end as it was before the read counts: what came during it has been read.
    arrival: (signal) => app.store.waitForLog(app.store.end, signal),
    endsAtOnce: false,
  });
  if (resolveLinks) await withoutForbidden(call, app, page.events);
  if (chosen.kind === 'lines') return pageLines(call, app, page.events, chosen);
  const caching =
    page.events.length === count ? unchanging(app) : changing(app, etagOf(page.lastCommitPosition, chosen, redactions));
  const asked = {
    direction: 'forward',
    isHead: false,
    count,
    token: token.toUpperCase(),
    isFiltered: filter !== undefined,
  } as const;
  return feedReply(call, app, caching, chosen, () => allFeed(call, page, asked, level, chosen.author));
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
  const excludeSystemEvents = queryOf(call, 'exclude-system-events')?.toLowerCase() === 'true';
  if (type === 'regex') return { on, regex: await expressionOf(data, app), excludeSystemEvents };
  const prefixes = data.split(',').filter((prefix) => prefix !== '');
  if (prefixes.length === 0 || prefixes.length > FILTER_PREFIXES_MAX)
    throw new SkuaError('bad_request', `Invalid data please provide 1 to ${FILTER_PREFIXES_MAX} prefixes.`);
  return { on, prefixes, excludeSystemEvents };
}
