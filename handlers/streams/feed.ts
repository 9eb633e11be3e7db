import { SkuaError } from '../../core/errors.ts';
import type { AllPage, StoredEvent, StreamPage } from '../../core/streams/api.ts';
import { decodeText } from '../../core/text.ts';
import { timestampText } from '../../core/time.ts';
import type { Call } from '../http/context.ts';
import { indent, jsonString, reindent } from '../http/json-text.ts';
import { feedEtag } from '../http/reply.ts';
import { baseOf, hex16, numberText, positionToken, streamUrl } from '../http/url.ts';

/** Feed documents (http-api.md 2.9): members, order, nulls and links as written there. */

/** Largest data and metadata in one feed document; a reader asks for a smaller page, or for NDJSON, which is streamed. */
const FEED_BYTES_MAX = 134_217_728;

/** What was asked for. */
interface PageRequest {
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

/** One entry of a feed, or a single event as an entry (http-api.md 2.9 to 2.11). */

/** `{ uri, relation, type }`, its members at `depth`. */
function linkObject(uri: string, relation: string, depth: number): string {
  const before = indent(depth);
  return `{${before}"uri": ${jsonString(uri)},${before}"relation": "${relation}",${before}"type": null${indent(depth - 1)}}`;
}

/** Where a link whose target is gone pointed: `number@stream`. */
function targetOf(event: StoredEvent): { readonly number: string; readonly stream: string } {
  const match = /^(\d+)@([^]+)$/.exec(decodeText(event.data));
  return match === null ? { number: numberText(event.number), stream: event.stream } : { number: match[1]!, stream: match[2]! };
}

/** The entry's text, its members at `depth`. A resolved link shows its target, with the time and the type of the link. */
export function entryText(call: Call, event: StoredEvent, level: EmbedLevel, author: string, depth: number): string {
  const before = indent(depth);
  const inner = indent(depth + 1);
  const shown = event.linkTargetMissing ? targetOf(event) : { number: numberText(event.number), stream: event.stream };
  const place = event.link ?? event;
  const uri = `${streamUrl(call, shown.stream)}/${shown.number}`;
  const isPlain = event.link === null && !event.linkTargetMissing;
  const rich = level === 'none' || level === 'content' || event.linkTargetMissing ? '' : richMembers(event, level, before, ': ');
  const content = level === 'content' && isPlain && event.isJson ? contentObject(event, depth + 1) : 'null';
  return `{${rich}${before}"title": ${jsonString(`${shown.number}@${shown.stream}`)},${before}"id": ${jsonString(uri)},` +
    `${before}"updated": "${timestampText(place.createdMs, place.createdTicks)}",${before}"author": {${inner}"name": "${author}"${before}},` +
    `${before}"summary": ${jsonString(place.type)},${before}"retryCount": null,${before}"content": ${content},` +
    `${before}"links": [${inner}${linkObject(uri, 'edit', depth + 2)},${inner}${linkObject(uri, 'alternate', depth + 2)}${before}]${indent(depth - 1)}}`;
}

/** How much of an event a feed entry carries (http-api.md 2.10). */
type EmbedLevel = 'none' | 'content' | 'rich' | 'body' | 'pretty' | 'tryharder';

const LEVELS: ReadonlyMap<string, EmbedLevel> = new Map([
  ['content', 'content'], ['rich', 'rich'], ['body', 'body'], ['pretty', 'pretty'], ['prettybody', 'pretty'], ['tryharder', 'tryharder'],
]);

/** The level named by `?embed=`, in any case; anything else embeds nothing. */
export function embedLevelOf(value: string | undefined): EmbedLevel {
  return value === undefined ? 'none' : LEVELS.get(value.toLowerCase()) ?? 'none';
}

/** Text of a member that may be null. */
function stringOrNull(text: string | null): string {
  return text === null ? 'null' : jsonString(text);
}

/** JSON text of the event's data, and whether it counts as JSON, at a level. */
function dataOf(event: StoredEvent, level: EmbedLevel): { readonly data: string | null; readonly isJson: boolean } {
  if (level === 'rich' || (!event.isJson && level !== 'tryharder')) return { data: null, isJson: event.isJson };
  const text = decodeText(event.data);
  if (level === 'body') return { data: text, isJson: true };
  const pretty = text === '' ? '' : reindent(text);
  return { data: pretty ?? text, isJson: event.isJson || pretty !== null };
}

/** Metadata as text; null when there is none. */
function metadataOf(event: StoredEvent, level: EmbedLevel): string | null {
  if (level === 'rich' || event.metadata.length === 0) return null;
  const text = decodeText(event.metadata);
  return level === 'body' ? text : reindent(text) ?? text;
}

/**
 * The members of the levels from `rich` on, each followed by a comma and begun by `before`. `eventNumber` and
 * `streamId` describe the event itself, `position…` the place in the stream that was read.
 */
export function richMembers(event: StoredEvent, level: EmbedLevel, before: string, colon: string): string {
  const { data, isJson } = dataOf(event, level);
  const place = event.link ?? event;
  const linkMetadata = event.link === null || level === 'rich' ? null : metadataOf(event.link, level) ?? '';
  // Below `body` the reference does not look at metadata and says that there is none.
  const hasMetadata = level !== 'rich' && event.metadata.length > 0;
  const hasLinkMetadata = level !== 'rich' && event.link !== null && event.link.metadata.length > 0;
  return `${before}"eventId"${colon}"${event.id}",${before}"eventType"${colon}${jsonString(event.type)},${before}"eventNumber"${colon}${numberText(event.number)},` +
    `${before}"data"${colon}${stringOrNull(data)},${before}"metaData"${colon}${stringOrNull(metadataOf(event, level))},${before}"linkMetaData"${colon}${stringOrNull(linkMetadata)},` +
    `${before}"streamId"${colon}${jsonString(event.stream)},${before}"isJson"${colon}${isJson},${before}"isMetaData"${colon}${hasMetadata},` +
    `${before}"isLinkMetaData"${colon}${hasLinkMetadata},${before}"isRedacted"${colon}${event.isRedacted},` +
    `${before}"positionEventNumber"${colon}${numberText(place.number)},${before}"positionStreamId"${colon}${jsonString(place.stream)},`;
}

/** Bytes as a JSON value at `depth`: parsed and indented if they are JSON, else as one string. */
export function jsonValue(bytes: Uint8Array, isJson: boolean, depth: number): string {
  const text = decodeText(bytes);
  return (isJson && text !== '' ? reindent(text, depth) : null) ?? jsonString(text);
}

/** The event as an object with its data and metadata as JSON, its members at `depth` (http-api.md 2.10 `content`, 2.11 `event+json`). */
export function contentObject(event: StoredEvent, depth: number): string {
  const before = indent(depth);
  return `{${before}"eventStreamId": ${jsonString(event.stream)},${before}"eventNumber": ${numberText(event.number)},${before}"eventType": ${jsonString(event.type)},` +
    `${before}"eventId": "${event.id}",${before}"data": ${jsonValue(event.data, event.isJson, depth)},` +
    `${before}"metadata": ${jsonValue(event.metadata, true, depth)}${indent(depth - 1)}}`;
}
