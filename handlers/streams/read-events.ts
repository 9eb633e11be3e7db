import { SkuaError } from '../../core/base/errors.ts';
import { PAGE_EVENTS_MAX } from '../../core/streams/api.ts';
import type { PageOptions, StoredEvent, StreamPage } from '../../core/streams/api.ts';
import { isViewName } from '../../core/streams/format/names.ts';
import { readLink } from '../../core/streams/link-views/link-views.ts';
import { EventDocument } from './event-document.ts';
import { embedLevelOf, embedsPayloads, olderPage, streamFeed } from './atom-feed.ts';
import type { EmbedLevel } from './atom-feed.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { checkRequireLeader, integer64, longPollSecondsOf, resolveLinksOf } from '../http/http-headers.ts';
import { JsonBytes, written } from '../http/json-bytes.ts';
import { indent, jsonString } from '../http/json-text.ts';
import { EVENT_KINDS, FEED_KINDS, HEAD_KINDS, negotiate } from '../http/negotiate.ts';
import type { Representation } from '../http/negotiate.ts';
import { changing, document, empty, etagOf, matchesEtag, unchanging } from '../http/reply.ts';
import type { Caching } from '../http/reply.ts';
import { counted, hold } from '../http/room.ts';
import { atOnce } from '../http/turns.ts';
import { baseOf, decodeSegment, escapeName, prefixOf, SLASH_HINT } from '../http/url.ts';
import { heldRead } from './long-poll.ts';
import { checkReading, oneWithoutForbidden, readAllowed, viewAccess, withoutForbidden } from './access.ts';
import { pageLines, streamLines } from './event-lines.ts';
import { subscribeToStream } from './subscribe-events.ts';

/** Events of a feed whose size is not given. */
export const PAGE_EVENTS_DEFAULT = 20;

export const streamHead: Handler = (call, app) => {
  const chosen = negotiate(call, HEAD_KINDS);
  const stream = decodeSegment(call.params['stream']!);
  checkRequireLeader(call.request.headers);
  if (chosen.kind === 'lines')
    return streamLines(call, app, stream, resolveLinksOf(call.request.headers, true), chosen);
  if (chosen.kind === 'live') return subscribeToStream(call, app, stream, resolveLinksOf(call.request.headers, true));
  return backwardPage(call, app, stream, 'head', PAGE_EVENTS_DEFAULT, true, chosen);
};

export const streamBackward: Handler = (call, app) => {
  const { stream = '', event = '', count = '' } = call.params;
  const chosen = negotiate(call, FEED_KINDS);
  return backwardPage(call, app, decodeSegment(stream), event, countOf(count), true, chosen);
};

export const streamForward: Handler = (call, app) => {
  const { stream = '', event = '', count = '' } = call.params;
  const chosen = negotiate(call, FEED_KINDS);
  return forwardPage(call, app, decodeSegment(stream), event, countOf(count), true, chosen);
};

export const singleEvent: Handler = (call, app) => {
  const { stream = '', event = '' } = call.params;
  const chosen = negotiate(call, EVENT_KINDS);
  return eventReply(call, app, decodeSegment(stream), event, true, chosen);
};

/** A page going backward from a number or `head`. `resolves`: whether links are resolved when no header says. */
export async function backwardPage(
  call: Call,
  app: App,
  stream: string,
  event: string,
  count: number,
  resolves: boolean,
  chosen: Representation,
): Promise<Reply> {
  await checkReading(call, app, stream);
  const redactions = app.store.redactions.version;
  const isHead = event === 'head';
  const from = isHead ? 'end' : numberOf(event);
  if (chosen.kind === 'description') return described(call, app, stream, chosen);
  const resolveLinks = readHeaders(call, resolves);
  const level = embedLevelOf(queryOf(call, 'embed'));
  const page = await app.store.readStream(stream, {
    direction: 'backward',
    from,
    count,
    resolveLinks,
    access: viewAccess(call, app, stream),
    ...pageOptions(call, app, chosen, level),
  });
  if (resolveLinks) await withoutForbidden(call, app, page.events);
  if (chosen.kind === 'lines') return pageLines(call, app, page.events, chosen, olderPage(call, page, count));
  const isFixed = !isHead && page.from <= page.lastEventNumber;
  const caching = isFixed
    ? unchanging(app)
    : changing(app, etagOf(versionOf(page), chosen, redactions), page.metadata.cacheControl);
  return feedReply(call, app, caching, chosen, () =>
    streamFeed(call, page, { direction: 'backward', isHead, count }, level, chosen.author),
  );
}

/** A page going forward from a number, held by a long poll when it starts behind the last event. */
export async function forwardPage(
  call: Call,
  app: App,
  stream: string,
  event: string,
  count: number,
  resolves: boolean,
  chosen: Representation,
): Promise<Reply> {
  await checkReading(call, app, stream);
  const redactions = app.store.redactions.version;
  const from = numberOf(event);
  if (chosen.kind === 'description') return described(call, app, stream, chosen);
  const resolveLinks = readHeaders(call, resolves);
  const level = embedLevelOf(queryOf(call, 'embed'));
  const access = viewAccess(call, app, stream);
  const page = await heldRead(call, app, {
    seconds: longPollSecondsOf(call.request.headers),
    read: () =>
      readAllowed(call, app, stream, () =>
        app.store.readStream(stream, {
          direction: 'forward',
          from,
          count,
          resolveLinks,
          access,
          ...pageOptions(call, app, chosen, level),
        }),
      ),
    isWaiting: (read) => (read.hasGaps === true ? read.isEnd && read.events.length === 0 : from > read.lastEventNumber),
    arrival: (signal) => app.store.waitForStream(stream, signal),
    // What is written need not be anything of a view.
    endsAtOnce: !isViewName(stream),
  });
  if (resolveLinks) await withoutForbidden(call, app, page.events);
  if (chosen.kind === 'lines') return pageLines(call, app, page.events, chosen);
  const isFixed = page.hasGaps === true ? page.events.length === count : from + count - 1 <= page.lastEventNumber;
  const caching = isFixed
    ? unchanging(app)
    : changing(app, etagOf(versionOf(page), chosen, redactions), page.metadata.cacheControl);
  return feedReply(call, app, caching, chosen, () =>
    streamFeed(call, page, { direction: 'forward', isHead: false, count }, level, chosen.author),
  );
}

/** What tells a page from another one at the same address: what is hidden of a view changes without its last event. */
function versionOf({ hasGaps, lastEventNumber, events }: StreamPage): number | string {
  if (hasGaps !== true) return lastEventNumber;
  const numbers = [events[0], events.at(-1)].map((event) => (event === undefined ? 0 : (event.link ?? event).number));
  return [lastEventNumber, events.length, ...numbers].join('-');
}

/** How much a page may hold for its answer, on whose account, and whether the answer shows data of events. */
export function pageOptions(call: Call, app: App, chosen: Representation, level: EmbedLevel): PageOptions {
  return {
    bytesMax: app.options.readPageBytesMax,
    payloads: chosen.kind === 'lines' || embedsPayloads(level),
    share: app.server.replyShareOf?.(call.request),
    ...(chosen.kind !== 'lines' && { addressBytes: baseOf(call).length }),
  };
}

/** What can be written in slices, so that others have their turn between two of them where it is long. */
interface Sliced {
  readonly isLong: boolean;
  write(out: JsonBytes): Generator<void, void, undefined>;
}

/** The feed, or 304 where the caller has it already. */
export function feedReply(
  call: Call,
  app: App,
  caching: Caching,
  chosen: Representation,
  feed: () => Sliced,
): Reply | Promise<Reply> {
  if (caching.etag !== null && matchesEtag(call.request, caching.etag)) return empty(call, 304, 'Not Modified');
  return slicedReply(call, app, feed(), chosen, caching);
}

/**
 * 200 with the document. Errors: `too_busy` where it becomes much longer than what it is made of, and there is no room
 * for it; `aborted` once the client is gone.
 */
export function slicedReply(
  call: Call,
  app: App,
  content: Sliced,
  chosen: Representation,
  caching: Caching,
): Reply | Promise<Reply> {
  if (!content.isLong)
    return document(
      call,
      counted(
        call,
        app,
        written((out) => atOnce(content.write(out))),
      ),
      chosen.contentType,
      caching,
    );
  return longReply(call, app, content, chosen, caching);
}

async function longReply(
  call: Call,
  app: App,
  content: Sliced,
  chosen: Representation,
  caching: Caching,
): Promise<Reply> {
  call.isLong = true;
  const out = new JsonBytes();
  const share = app.server.replyShareOf?.(call.request);
  const source = share?.heldBytes ?? 0;
  await app.turns.run(call.countedAs, content.write(out), () => {
    hold(share, out.length, source);
    if (share?.isClosed === true) throw new SkuaError('aborted', 'The client disconnected.');
  });
  hold(share, out.length, source);
  return document(call, out.take(), chosen.contentType, caching);
}

export function described(call: Call, app: App, stream: string, chosen: Representation): Reply {
  return document(
    call,
    descriptionText(stream, chosen, prefixOf(call)),
    chosen.contentType,
    changing(app, null),
    'Description Document',
  );
}

/** One event by number, or the newest. A link whose target is gone counts as absent. */
async function eventReply(
  call: Call,
  app: App,
  stream: string,
  event: string,
  resolves: boolean,
  chosen: Representation,
): Promise<Reply> {
  await checkReading(call, app, stream);
  const redactions = app.store.redactions.version;
  const isHead = event === 'head';
  const number = isHead ? 'last' : numberOf(event);
  const resolveLinks = readHeaders(call, resolves);
  const share = app.server.replyShareOf?.(call.request);
  const access = viewAccess(call, app, stream);
  const found = await oneWithoutForbidden(
    call,
    app,
    await (access === undefined
      ? app.store.readEvent(stream, number, resolveLinks, share)
      : readLink(app.store, stream, number, { resolveLinks, share, access })),
  );
  if (found.linkTargetMissing)
    throw new SkuaError(
      'event_not_found',
      `Event ${event} of stream '${stream}' is a link, and the event it points to is gone.`,
      { stream },
    );
  if (!isHead) return representEvent(call, app, found, chosen, unchanging(app));
  const { metadata } = await app.store.streamInfo(stream);
  return representEvent(
    call,
    app,
    found,
    chosen,
    changing(app, etagOf((found.link ?? found).number, chosen, redactions), metadata.cacheControl),
  );
}

export function representEvent(
  call: Call,
  app: App,
  event: StoredEvent,
  chosen: Representation,
  caching: Caching,
): Reply | Promise<Reply> {
  if (chosen.kind === 'binary')
    return document(call, counted(call, app, new Uint8Array(event.data)), chosen.contentType, caching);
  const form = chosen.kind === 'atom' ? 'entry' : chosen.kind === 'event' ? 'content' : 'data';
  const content = new EventDocument(call, event, form, chosen.author);
  const text = content.text();
  return text === null
    ? slicedReply(call, app, content, chosen, caching)
    : document(call, counted(call, app, text), chosen.contentType, caching);
}

/** Headers every read understands. Returns whether links are to be resolved. */
export function readHeaders(call: Call, resolves: boolean): boolean {
  checkRequireLeader(call.request.headers);
  return resolveLinksOf(call.request.headers, resolves);
}

/** What begins with a letter is more likely a part of the name than a number. */
function slashHint(text: string): { readonly hint?: string } {
  return /^[a-z]/i.test(text) && text !== 'head' ? { hint: SLASH_HINT } : {};
}

/** An event number in a path. Throws `invalid_event_number`. */
export function numberOf(text: string): number {
  const number = integer64(text);
  if (number === null || number < 0)
    throw new SkuaError('invalid_event_number', `'${decodeSegment(text)}' is not valid event number`, slashHint(text));
  return number;
}

/** A page size in a path. Throws `invalid_count`, `page_too_large`. */
export function countOf(text: string): number {
  const count = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (count === 0 || count > 2_147_483_647)
    throw new SkuaError(
      'invalid_count',
      `'${decodeSegment(text)}' is not valid count. Should be positive integer`,
      slashHint(text),
    );
  if (count > PAGE_EVENTS_MAX)
    throw new SkuaError('page_too_large', `Read size too big, should be less than ${PAGE_EVENTS_MAX} items`, {
      limit: PAGE_EVENTS_MAX,
    });
  return count;
}

/**
 * GET `/streams/$scavenges/{scavengeId}/{event}/{count}`: the events of one run backward, which are kept in the stream
 * `$scavenges-{scavengeId}`. Paging links lead to that stream itself.
 */
export const scavengeHistory: Handler = (call, app) => {
  const { scavenge = '', event = '', count = '' } = call.params;
  const chosen = negotiate(call, FEED_KINDS);
  return backwardPage(call, app, `$scavenges-${decodeSegment(scavenge)}`, event, countOf(count), true, chosen);
};

/** The description document of a stream; only for requests that ask for its media type. */
function descriptionText(stream: string, asked: Representation, prefix: string): string {
  const family = asked.mediaType.includes('.kurrent.') ? 'kurrent' : 'eventstore';
  const link = (types: readonly string[]): string => {
    const list = types.map((type) => `${indent(4)}"${type}"`).join(',');
    return `{${indent(3)}"href": "${prefix}/streams/${escapeName(stream)}",${indent(3)}"supportedContentTypes": [${list}${indent(3)}]${indent(2)}}`;
  };
  return (
    `{\n  "title": ${jsonString(`Description document for '${stream}'`)},\n` +
    '  "description": "The description document will be presented when no accept header is present or it was requested",\n' +
    `  "_links": {\n    "self": ${link([asked.mediaType])},\n` +
    `    "stream": ${link([`application/vnd.${family}.atom+json`, 'application/json', 'application/x-ndjson', 'text/event-stream'])},\n` +
    '    "streamSubscription": null\n  }\n}'
  );
}
