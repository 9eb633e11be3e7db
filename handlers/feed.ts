import { timestampText } from '../core/time.ts';
import { SkuaError } from '../core/errors.ts';
import type { AllPage, StoredEvent, StreamPage } from '../core/streams/api.ts';
import { feedEtag } from './etag.ts';
import { entryText, linkObject } from './entry.ts';
import type { EmbedLevel } from './embed.ts';
import { indent, jsonString } from './json-text.ts';
import { baseOf, hex16, positionToken, streamUrl } from './links.ts';
import type { Call } from './context.ts';

/** Feed documents (http-api.md 2.9): members, order, nulls and links as written there. */

/** Largest data and metadata in one feed document; a reader asks for a smaller page, or for NDJSON, which is streamed. */
export const FEED_BYTES_MAX = 134_217_728;

/** What was asked for. */
export interface PageRequest {
  readonly direction: 'forward' | 'backward';
  /** The page was asked for as the head. */
  readonly isHead: boolean;
  readonly count: number;
}

interface Feed {
  readonly title: string;
  readonly id: string;
  readonly streamId: string | null;
  readonly headOfStream: boolean;
  readonly selfUrl: string | null;
  readonly etag: string | null;
  /** Pairs of relation and address. */
  readonly links: readonly (readonly [string, string])[];
  /** Newest first. */
  readonly entries: readonly StoredEvent[];
  readonly updated: StoredEvent | undefined;
}

function feedText(call: Call, feed: Feed, level: EmbedLevel, author: string): string {
  checkSize(feed.entries, level);
  const text = (value: string | null): string => value === null ? 'null' : jsonString(value);
  const updated = feed.updated === undefined ? '0001-01-01T00:00:00Z' : timestampText(feed.updated.createdMs, feed.updated.createdTicks);
  const links = feed.links.map(([relation, uri]) => linkObject(uri, relation, 3)).join(`,${indent(2)}`);
  const entries = feed.entries.map((event) => entryText(call, event, level, author, 3)).join(`,${indent(2)}`);
  return `{\n  "title": ${jsonString(feed.title)},\n  "id": ${jsonString(feed.id)},\n  "updated": "${updated}",\n  "streamId": ${text(feed.streamId)},\n` +
    `  "author": {\n    "name": "${author}"\n  },\n  "headOfStream": ${feed.headOfStream},\n  "selfUrl": ${text(feed.selfUrl)},\n  "eTag": ${text(feed.etag)},\n` +
    `  "links": [${indent(2)}${links}${indent(1)}],\n  "entries": ${entries === '' ? '[]' : `[${indent(2)}${entries}${indent(1)}]`}\n}`;
}

function checkSize(events: readonly StoredEvent[], level: EmbedLevel): void {
  if (level === 'none' || level === 'rich') return;
  let bytes = 0;
  for (const event of events) bytes += event.data.length + event.metadata.length;
  if (bytes > FEED_BYTES_MAX) throw new SkuaError('page_too_large', `The events of this page hold more than ${FEED_BYTES_MAX} bytes. Ask for fewer events, or for application/x-ndjson.`, { limit: FEED_BYTES_MAX });
}

/** The feed of one page of a stream. */
export function streamFeed(call: Call, page: StreamPage, asked: PageRequest, level: EmbedLevel, author: string): string {
  const url = streamUrl(call, page.stream);
  const { count: n } = asked;
  const { from, lastEventNumber: last } = page;
  const links: [string, string][] = [['self', url], ['first', `${url}/head/backward/${n}`]];
  const isForward = asked.direction === 'forward';
  if (isForward) {
    if (from > 0) links.push(['last', `${url}/0/forward/${n}`], ['next', `${url}/${from - 1}/backward/${n}`]);
    if (page.events.length > 0 || !page.isEnd) links.push(['previous', `${url}/${Math.min(from + n - 1, last) + 1}/forward/${n}`]);
  } else {
    // A page that passed over expired events leads on to where there is something again, not through each of them.
    const older = page.events.length > 0 ? from - n : Math.min(from - n, page.nextEventNumber);
    if (!page.isEnd && older >= 0) links.push(['last', `${url}/0/forward/${n}`], ['next', `${url}/${older}/backward/${n}`]);
    links.push(['previous', `${url}/${Math.min(from, last) + 1}/forward/${n}`]);
  }
  links.push(['metadata', `${url}/metadata`]);
  return feedText(call, {
    title: `Event stream '${page.stream}'`, id: url, streamId: page.stream,
    headOfStream: isForward ? page.isEnd : asked.isHead,
    selfUrl: isForward ? null : url,
    etag: asked.isHead ? feedEtag(last) : null,
    links, entries: isForward ? page.events.toReversed() : page.events, updated: page.events[0],
  }, level, author);
}

/** Half of a position that stands for "after every record of this commit". */
const AFTER_ALL = '7FFFFFFFFFFFFFFF';

/** The feed of one page of `$all`. `token` is the position that was asked for, null for the head. */
export function allFeed(call: Call, page: AllPage, asked: PageRequest & { readonly token: string | null; readonly isFiltered: boolean }, level: EmbedLevel, author: string): string {
  const url = `${baseOf(call)}/streams/%24all${asked.isFiltered ? '/filtered' : ''}`;
  const n = asked.count;
  const start = asked.token ?? positionToken(page.from);
  const links: [string, string][] = [['self', url], ['first', `${url}/head/backward/${n}`]];
  const last: [string, string] = ['last', `${url}/${'0'.repeat(32)}/forward/${n}`];
  if (asked.direction === 'forward') {
    const first = page.events[0];
    const older = first === undefined ? hex16(page.from.commit) + AFTER_ALL : positionToken({ commit: first.position, prepare: first.preparePosition });
    if (/[^0]/.test(start)) links.push(last, ['next', `${url}/${older}/backward/${n}`]);
    if (first !== undefined || !page.isEnd) links.push(['previous', `${url}/${positionToken({ commit: page.next.commit, prepare: 0 })}/forward/${n}`]);
  } else {
    if (!page.isEnd) links.push(last, ['next', `${url}/${positionToken(page.next)}/backward/${n}`]);
    links.push(['previous', `${url}/${start}/forward/${n}`]);
  }
  if (!asked.isFiltered) links.push(['metadata', `${url}/metadata`]);
  const entries = asked.direction === 'forward' ? page.events.toReversed() : page.events;
  return feedText(call, { title: 'All events', id: url, streamId: null, headOfStream: false, selfUrl: null, etag: null, links, entries, updated: entries[0] }, level, author);
}
