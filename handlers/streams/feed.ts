import type { AllPage, StoredEvent, StreamPage } from '../../core/streams/api.ts';
import { decodeText, encodeTexts } from '../../core/text.ts';
import { timestampText } from '../../core/time.ts';
import type { Call } from '../http/context.ts';
import { indent, jsonString, nameString, reindent } from '../http/json-text.ts';
import { feedEtag } from '../http/reply.ts';
import { baseOf, hex16, numberText, positionToken, streamUrl } from '../http/url.ts';

/** Feed documents (http-api.md 2.9): members, order, nulls and links as written there. */

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

/** The document, as bytes: put together as one text first it would be copied three times, each time to fresh memory. */
function feedBytes(call: Call, feed: Feed, level: EmbedLevel, author: string): Uint8Array<ArrayBuffer> {
  const text = (value: string | null): string => value === null ? 'null' : jsonString(value);
  const updated = feed.updated === undefined ? '0001-01-01T00:00:00Z' : timestampText(feed.updated.createdMs, feed.updated.createdTicks);
  const links = feed.links.map(([relation, uri]) => linkObject(uri, relation, 3)).join(`,${indent(2)}`);
  const head = `{\n  "title": ${jsonString(feed.title)},\n  "id": ${jsonString(feed.id)},\n  "updated": "${updated}",\n  "streamId": ${text(feed.streamId)},\n` +
    `  "author": {\n    "name": "${author}"\n  },\n  "headOfStream": ${feed.headOfStream},\n  "selfUrl": ${text(feed.selfUrl)},\n  "eTag": ${text(feed.etag)},\n` +
    `  "links": [${indent(2)}${links}${indent(1)}],\n  "entries": [`;
  const entries = feed.entries.map((event, i) => `${i === 0 ? '' : ','}${indent(2)}${entryText(call, event, level, author, 3)}`);
  return encodeTexts([head, ...entries, `${entries.length === 0 ? '' : indent(1)}]\n}`]);
}

/** The feed of one page of a stream. */
export function streamFeed(call: Call, page: StreamPage, asked: PageRequest, level: EmbedLevel, author: string): Uint8Array<ArrayBuffer> {
  const url = streamUrl(call, page.stream);
  const { count: n } = asked;
  const { from, lastEventNumber: last } = page;
  const links: [string, string][] = [['self', url], ['first', `${url}/head/backward/${n}`]];
  const isForward = asked.direction === 'forward';
  if (isForward) {
    // A page that passed over expired events leads on behind what it shows, or behind where it looked, not through each of them.
    const hasJumped = page.isCut || page.events.length > 0 || page.metadata.maxAge !== undefined;
    if (from > 0) links.push(['last', `${url}/0/forward/${n}`], ['next', `${url}/${from - 1}/backward/${n}`]);
    if (page.events.length > 0 || !page.isEnd) links.push(['previous', `${url}/${hasJumped ? page.nextEventNumber : Math.min(from + n - 1, last) + 1}/forward/${n}`]);
  } else {
    // A page that passed over expired events leads on to where there is something again, not through each of them.
    const older = page.isCut ? page.nextEventNumber : page.events.length > 0 ? from - n : Math.min(from - n, page.nextEventNumber);
    if (!page.isEnd && older >= 0) links.push(['last', `${url}/0/forward/${n}`], ['next', `${url}/${older}/backward/${n}`]);
    links.push(['previous', `${url}/${Math.min(from, last) + 1}/forward/${n}`]);
  }
  links.push(['metadata', `${url}/metadata`]);
  return feedBytes(call, {
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
export function allFeed(call: Call, page: AllPage, asked: PageRequest & { readonly token: string | null; readonly isFiltered: boolean }, level: EmbedLevel, author: string): Uint8Array<ArrayBuffer> {
  const url = `${baseOf(call)}/streams/%24all${asked.isFiltered ? '/filtered' : ''}`;
  const n = asked.count;
  const start = asked.token ?? positionToken(page.from);
  const links: [string, string][] = [['self', url], ['first', `${url}/head/backward/${n}`]];
  const last: [string, string] = ['last', `${url}/${'0'.repeat(32)}/forward/${n}`];
  if (asked.direction === 'forward') {
    const first = page.events[0];
    const older = first === undefined ? hex16(page.from.commit) + AFTER_ALL : positionToken({ commit: first.position, prepare: first.preparePosition });
    if (/[^0]/.test(start)) links.push(last, ['next', `${url}/${older}/backward/${n}`]);
    // Only within an explicit transaction the second half says something.
    const { commit, prepare } = page.next;
    if (first !== undefined || !page.isEnd) links.push(['previous', `${url}/${positionToken({ commit, prepare: prepare < commit ? prepare : 0 })}/forward/${n}`]);
  } else {
    if (!page.isEnd) links.push(last, ['next', `${url}/${positionToken(page.next)}/backward/${n}`]);
    links.push(['previous', `${url}/${start}/forward/${n}`]);
  }
  if (!asked.isFiltered) links.push(['metadata', `${url}/metadata`]);
  const entries = asked.direction === 'forward' ? page.events.toReversed() : page.events;
  return feedBytes(call, { title: 'All events', id: url, streamId: null, headOfStream: false, selfUrl: null, etag: null, links, entries, updated: entries[0] }, level, author);
}

/** One entry of a feed, or a single event as an entry (http-api.md 2.9 to 2.11). */

/** `{ uri, relation, type }`, its members at `depth`. */
export function linkObject(uri: string, relation: string, depth: number): string {
  return linkOf(jsonString(uri), relation, indent(depth), indent(depth - 1));
}

/** The same with the address as JSON. */
function linkOf(uri: string, relation: string, before: string, end: string): string {
  return `{${before}"uri": ${uri},${before}"relation": "${relation}",${before}"type": null${end}}`;
}

/** Where a link whose target is gone pointed: `number@stream`. */
function targetOf(event: StoredEvent): { readonly number: string; readonly stream: string } {
  const match = /^(\d+)@([^]+)$/.exec(decodeText(event.data));
  return match === null ? { number: numberText(event.number), stream: event.stream } : { number: match[1]!, stream: match[2]! };
}

/** What an entry of a persistent subscription has beside the event: how often it was sent again, and where to answer it. */
export interface Competing {
  readonly retryCount: number;
  /** Pairs of relation and address. */
  readonly links: readonly (readonly [string, string])[];
}

/** The entry's text, its members at `depth`. A resolved link shows its target, with the time and the type of the link. */
export function entryText(call: Call, event: StoredEvent, level: EmbedLevel, author: string, depth: number, competing: Competing | null = null): string {
  const before = indent(depth);
  const inner = indent(depth + 1);
  const deepest = indent(depth + 2);
  const shown = event.linkTargetMissing ? targetOf(event) : { number: numberText(event.number), stream: event.stream };
  const place = event.link ?? event;
  // The literals of names, which repeat, with what comes before and behind them put into their quotes.
  const uri = `${nameString(streamUrl(call, shown.stream)).slice(0, -1)}/${shown.number}"`;
  const title = `"${shown.number}@${nameString(shown.stream).slice(1)}`;
  const isPlain = event.link === null && !event.linkTargetMissing;
  const rich = level === 'none' || level === 'content' || event.linkTargetMissing ? '' : richMembers(event, level, before, ': ');
  const content = level === 'content' && isPlain && event.isJson ? contentObject(event, depth + 1) : 'null';
  return [
    '{', rich, before, '"title": ', title, ',', before, '"id": ', uri,
    ',', before, '"updated": "', timestampText(place.createdMs, place.createdTicks), '",', before, '"author": {', inner, '"name": "', author, '"', before, '},',
    before, '"summary": ', nameString(place.type), ',', before, '"retryCount": ', String(competing?.retryCount ?? null), ',', before, '"content": ', content, ',',
    before, '"links": [', inner, linkOf(uri, 'edit', deepest, inner), ',', inner, linkOf(uri, 'alternate', deepest, inner),
    ...(competing?.links ?? []).map(([relation, to]) => `,${inner}${linkObject(to, relation, depth + 2)}`), before, ']', indent(depth - 1), '}',
  ].join('');
}

/** How much of an event a feed entry carries (http-api.md 2.10). */
export type EmbedLevel = 'none' | 'content' | 'rich' | 'body' | 'pretty' | 'tryharder';

const LEVELS: ReadonlyMap<string, EmbedLevel> = new Map([
  ['content', 'content'], ['rich', 'rich'], ['body', 'body'], ['pretty', 'pretty'], ['prettybody', 'pretty'], ['tryharder', 'tryharder'],
]);

/** The level named by `?embed=`, in any case; anything else embeds nothing. */
export function embedLevelOf(value: string | undefined): EmbedLevel {
  return value === undefined ? 'none' : LEVELS.get(value.toLowerCase()) ?? 'none';
}

/** Whether entries of a level show data or metadata of events. */
export function embedsPayloads(level: EmbedLevel): boolean {
  return level !== 'none' && level !== 'rich';
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

/** The names of the members of the levels from `rich` on, with all that stands between two values. */
interface RichNames {
  readonly id: string;
  readonly type: string;
  readonly number: string;
  readonly data: string;
  readonly metadata: string;
  readonly linkMetadata: string;
  readonly stream: string;
  readonly isJson: string;
  readonly isMetadata: string;
  readonly isLinkMetadata: string;
  readonly isRedacted: string;
  readonly placeNumber: string;
  readonly placeStream: string;
  readonly end: string;
}

/** Made once for each depth at which entries stand, of which there are few. */
const namesMade = new Map<string, RichNames>();

/** Each name begins by `before`, and is followed by `colon`. */
function richNames(before: string, colon: string): RichNames {
  let names = namesMade.get(before);
  if (names === undefined) {
    const member = (name: string): string => `,${before}"${name}"${colon}`;
    names = {
      id: `${before}"eventId"${colon}"`, type: `"${member('eventType')}`, number: member('eventNumber'), data: member('data'), metadata: member('metaData'), linkMetadata: member('linkMetaData'),
      stream: member('streamId'), isJson: member('isJson'), isMetadata: member('isMetaData'), isLinkMetadata: member('isLinkMetaData'), isRedacted: member('isRedacted'),
      placeNumber: member('positionEventNumber'), placeStream: member('positionStreamId'), end: ',',
    };
    namesMade.set(before, names);
  }
  return names;
}

/**
 * The members of the levels from `rich` on, each followed by a comma and begun by `before`. `eventNumber` and
 * `streamId` describe the event itself, `position…` the place in the stream that was read. Here and in `entryText` pieces
 * are joined at once: text that is added piece by piece is walked through piece by piece again when it is sent.
 */
function richMembers(event: StoredEvent, level: EmbedLevel, before: string, colon: string): string {
  const { data, isJson } = dataOf(event, level);
  const linkMetadata = event.link === null || level === 'rich' ? null : metadataOf(event.link, level) ?? '';
  const names = richNames(before, colon);
  return [
    ...richBeginning(event, names), stringOrNull(data), names.metadata, stringOrNull(metadataOf(event, level)),
    names.linkMetadata, stringOrNull(linkMetadata), ...richEnd(event, level, isJson, names),
  ].join('');
}

/** The rich members up to the value of `data`. */
function richBeginning(event: StoredEvent, names: RichNames): string[] {
  return [names.id, event.id, names.type, nameString(event.type), names.number, numberText(event.number), names.data];
}

/** And those behind the value of `linkMetaData`. */
function richEnd(event: StoredEvent, level: EmbedLevel, isJson: boolean, names: RichNames): string[] {
  const place = event.link ?? event;
  // Below `body` the reference does not look at metadata and says that there is none.
  const hasMetadata = level !== 'rich' && event.metadata.length > 0;
  const hasLinkMetadata = level !== 'rich' && event.link !== null && event.link.metadata.length > 0;
  return [
    names.stream, nameString(event.stream), names.isJson, String(isJson), names.isMetadata, String(hasMetadata), names.isLinkMetadata, String(hasLinkMetadata),
    names.isRedacted, String(event.isRedacted), names.placeNumber, numberText(place.number), names.placeStream, nameString(place.stream), names.end,
  ];
}

/** Data and metadata beyond this many bytes are made to text in pieces of about as many. */
const PIECE_BYTES = 32_768;

/** Whether the line of an event is made in one piece. */
export function isOnePiece({ data, metadata, link }: StoredEvent): boolean {
  return data.length + metadata.length + (link === null ? 0 : link.metadata.length) <= PIECE_BYTES;
}

/** One event as one line of JSON: the members of `embed=body`, then `updated` and `position`. For NDJSON and server-sent events. */
export function eventLine(event: StoredEvent): string {
  return `{${richMembers(event, 'body', '', ':')}${lineEnd(event)}`;
}

/** The same in pieces, so that nothing else has to wait until all of a large event is text, and a slow reader keeps no more than a piece of that. */
export function* eventLinePieces(event: StoredEvent): Generator<string, void, undefined> {
  const names = richNames('', ':');
  yield `{${richBeginning(event, names).join('')}`;
  yield* textPieces(event.isJson ? event.data : null);
  yield names.metadata;
  yield* textPieces(event.metadata.length === 0 ? null : event.metadata);
  yield names.linkMetadata;
  yield* textPieces(event.link === null ? null : event.link.metadata);
  yield `${richEnd(event, 'body', event.isJson, names).join('')}${lineEnd(event)}`;
}

function lineEnd(event: StoredEvent): string {
  const place = event.link ?? event;
  return `"updated":"${timestampText(place.createdMs, place.createdTicks)}","position":"${positionText(event)}"}`;
}

/** Bytes as a JSON string, or `null`. */
function* textPieces(bytes: Uint8Array | null): Generator<string, void, undefined> {
  if (bytes === null) {
    yield 'null';
    return;
  }
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  yield '"';
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    yield jsonString(decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: at + PIECE_BYTES < bytes.length })).slice(1, -1);
  }
  yield '"';
}

/** Position of an event in `$all` as text: commit and prepare position. It is the `id` of server-sent events of `$all`. */
export function positionText(event: StoredEvent): string {
  const place = event.link ?? event;
  return `${place.position}/${place.preparePosition}`;
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
