import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { AllPage, StoredEvent, StreamPage } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { secondsText, timestampText } from '../../core/base/time.ts';
import type { Call } from '../http/context.ts';
import type { JsonBytes } from '../http/json-bytes.ts';
import { indent, jsonString, nameBytes } from '../http/json-text.ts';
import { feedEtag } from '../http/reply.ts';
import { baseOf, hex16, numberText, positionToken, streamUrl } from '../http/url.ts';
import { LONG_BYTES, payloadBytes, Payloads, prepareContent, writeContent } from './event-payloads.ts';

/** Feed documents: members, order, nulls and links as the reference has them. */

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

/** An entry of a feed: an event, and what a persistent subscription says of it. */
export interface FeedEntry {
  readonly event: StoredEvent;
  readonly competing: Competing | null;
}

/** What is around the payloads of an entry counts as so many bytes. */
const ENTRY_BYTES = 1_024;

/** A document that is written when it is known that it is wanted. */
export class FeedDocument {
  readonly #head: string;
  readonly #entries: Entries;
  /** In the order in which they are shown. */
  readonly #shown: readonly FeedEntry[];
  /** Whether it takes so long to write that others have to have their turn meanwhile. */
  readonly isLong: boolean;

  /** `head` ends where the entries begin, which stand in an array. */
  constructor(head: string, entries: Entries, shown: readonly FeedEntry[]) {
    this.#head = head;
    this.#entries = entries;
    this.#shown = shown;
    let bytes = ENTRY_BYTES * shown.length;
    if (embedsPayloads(entries.level)) for (const { event } of shown) bytes += payloadBytes(event);
    this.isLong = bytes > LONG_BYTES;
  }

  /** Yields behind each of its slices. */
  *write(out: JsonBytes): Generator<void, void, undefined> {
    out.text(this.#head);
    let isFirst = true;
    let stop = LONG_BYTES;
    for (const { event, competing } of this.#shown) {
      if (payloadBytes(event) > LONG_BYTES) yield* this.#entries.prepare(event);
      out.text(`${isFirst ? '' : ','}${indent(2)}`);
      this.#entries.write(out, event, competing);
      isFirst = false;
      if (out.length < stop) continue;
      yield;
      stop = out.length + LONG_BYTES;
    }
    out.text(`${isFirst ? '' : indent(1)}]\n}`);
  }
}

function feedDocument(call: Call, feed: Feed, level: EmbedLevel, author: string): FeedDocument {
  const text = (value: string | null): string => (value === null ? 'null' : jsonString(value));
  const updated =
    feed.updated === undefined
      ? '0001-01-01T00:00:00Z'
      : timestampText(feed.updated.createdMs, feed.updated.createdTicks);
  const links = feed.links.map(([relation, uri]) => linkObject(uri, relation, 3)).join(`,${indent(2)}`);
  const head =
    `{\n  "title": ${jsonString(feed.title)},\n  "id": ${jsonString(feed.id)},\n  "updated": "${updated}",\n  "streamId": ${text(feed.streamId)},\n` +
    `  "author": {\n    "name": "${author}"\n  },\n  "headOfStream": ${feed.headOfStream},\n  "selfUrl": ${text(feed.selfUrl)},\n  "eTag": ${text(feed.etag)},\n` +
    `  "links": [${indent(2)}${links}${indent(1)}],\n  "entries": [`;
  return new FeedDocument(
    head,
    new Entries(call, level, author, 3),
    feed.entries.map((event) => ({ event, competing: null })),
  );
}

/** The feed of one page of a stream. */
export function streamFeed(
  call: Call,
  page: StreamPage,
  asked: PageRequest,
  level: EmbedLevel,
  author: string,
): FeedDocument {
  const url = streamUrl(call, page.stream);
  const { count: n } = asked;
  const { from, lastEventNumber: last } = page;
  const links: [string, string][] = [
    ['self', url],
    ['first', `${url}/head/backward/${n}`],
  ];
  const isForward = asked.direction === 'forward';
  if (isForward) {
    // A page that passed over expired events leads on behind what it shows, or behind where it looked, not through each
    // of them.
    const hasJumped =
      page.hasGaps === true || page.isCut || page.events.length > 0 || page.metadata.maxAge !== undefined;
    if (from > 0) links.push(['last', `${url}/0/forward/${n}`], ['next', `${url}/${from - 1}/backward/${n}`]);
    if (page.events.length > 0 || !page.isEnd)
      links.push([
        'previous',
        `${url}/${hasJumped ? page.nextEventNumber : Math.min(from + n - 1, last) + 1}/forward/${n}`,
      ]);
  } else {
    const older = olderPage(call, page, n);
    if (older !== null) links.push(['last', `${url}/0/forward/${n}`], ['next', older]);
    links.push(['previous', `${url}/${Math.min(from, last) + 1}/forward/${n}`]);
  }
  links.push(['metadata', `${url}/metadata`]);
  return feedDocument(
    call,
    {
      title: `Event stream '${page.stream}'`,
      id: url,
      streamId: page.stream,
      headOfStream: isForward ? page.isEnd : asked.isHead,
      selfUrl: isForward ? null : url,
      etag: asked.isHead ? feedEtag(last) : null,
      links,
      entries: isForward ? page.events.toReversed() : page.events,
      updated: page.events[0],
    },
    level,
    author,
  );
}

/** Where a backward page of a stream leads on; null at its oldest event. */
export function olderPage(call: Call, page: StreamPage, count: number): string | null {
  const { from, nextEventNumber, isCut, isEnd, hasGaps = false, events } = page;
  // A page that passed over expired events leads on to where there is something again, not through each of them.
  const older =
    isCut || hasGaps ? nextEventNumber : events.length > 0 ? from - count : Math.min(from - count, nextEventNumber);
  return isEnd || older < 0 ? null : `${streamUrl(call, page.stream)}/${older}/backward/${count}`;
}

/** The same of `$all`; `search` is the query that the next page needs, too. */
export function olderPageOfAll(call: Call, page: AllPage, count: number, search: string): string | null {
  return page.isEnd ? null : `${baseOf(call)}/streams/%24all/${positionToken(page.next)}/backward/${count}${search}`;
}

/** Half of a position that stands for "after every record of this commit". */
const AFTER_ALL = '7FFFFFFFFFFFFFFF';

/** The feed of one page of `$all`. `token` is the position that was asked for, null for the head. */
export function allFeed(
  call: Call,
  page: AllPage,
  asked: PageRequest & { readonly token: string | null; readonly isFiltered: boolean; readonly search: string },
  level: EmbedLevel,
  author: string,
): FeedDocument {
  const url = `${baseOf(call)}/streams/%24all${asked.isFiltered ? '/filtered' : ''}`;
  const { search } = asked;
  const n = `${asked.count}${search}`;
  const start = asked.token ?? positionToken(page.from);
  const links: [string, string][] = [
    ['self', url + search],
    ['first', `${url}/head/backward/${n}`],
  ];
  const last: [string, string] = ['last', `${url}/${'0'.repeat(32)}/forward/${n}`];
  if (asked.direction === 'forward') {
    const first = page.events[0];
    const older =
      first === undefined
        ? hex16(page.from.commit) + AFTER_ALL
        : positionToken({ commit: first.position, prepare: first.preparePosition });
    if (/[^0]/.test(start)) links.push(last, ['next', `${url}/${older}/backward/${n}`]);
    // Only within an explicit transaction the second half says something.
    const { commit, prepare } = page.next;
    if (first !== undefined || !page.isEnd)
      links.push([
        'previous',
        `${url}/${positionToken({ commit, prepare: prepare < commit ? prepare : 0 })}/forward/${n}`,
      ]);
  } else {
    if (!page.isEnd) links.push(last, ['next', `${url}/${positionToken(page.next)}/backward/${n}`]);
    links.push(['previous', `${url}/${start}/forward/${n}`]);
  }
  if (!asked.isFiltered) links.push(['metadata', `${url}/metadata`]);
  const entries = asked.direction === 'forward' ? page.events.toReversed() : page.events;
  return feedDocument(
    call,
    {
      title: 'All events',
      id: url + search,
      streamId: null,
      headOfStream: false,
      selfUrl: null,
      etag: null,
      links,
      entries,
      updated: entries[0],
    },
    level,
    author,
  );
}

/** One entry of a feed, or a single event as an entry. */

/** `{ uri, relation, type }`, its members at `depth`. */
export function linkObject(uri: string, relation: string, depth: number): string {
  return `{${indent(depth)}"uri": ${jsonString(uri)}${linkRest(relation, depth)}`;
}

/** What stands in it behind the address. */
function linkRest(relation: string, depth: number): string {
  const before = indent(depth);
  return `,${before}"relation": "${relation}",${before}"type": null${indent(depth - 1)}}`;
}

/** Where a link whose target is gone pointed: `number@stream`. */
function targetOf(event: StoredEvent): { readonly number: string; readonly stream: string } {
  const match = /^(\d+)@([^]+)$/.exec(decodeText(event.data));
  return match === null
    ? { number: numberText(event.number), stream: event.stream }
    : { number: match[1]!, stream: match[2]! };
}

/**
 * What an entry of a persistent subscription has beside the event: how often it was sent again, and where to answer it.
 */
export interface Competing {
  readonly retryCount: number;
  /** Pairs of relation and address. */
  readonly links: readonly (readonly [string, string])[];
}

const QUOTE = encodeText('"');
const NULL = encodeText('null');

/**
 * Entries of one document, their members at `depth`. What is the same in each is made once. A resolved link shows its
 * target, with the time and the type of the link.
 */
export class Entries {
  readonly level: EmbedLevel;
  readonly #call: Call;
  readonly #payloads = new Payloads();
  readonly #depth: number;
  readonly #names: RichNames;
  /** What stands between the values of an entry, in turn. */
  readonly #title: Uint8Array;
  readonly #id: Uint8Array;
  readonly #updated: Uint8Array;
  readonly #summary: Uint8Array;
  readonly #retryCount: Uint8Array;
  readonly #content: Uint8Array;
  readonly #edit: Uint8Array;
  readonly #alternate: Uint8Array;
  readonly #links: Uint8Array;
  readonly #end: Uint8Array;
  /** The address of a stream as the beginning of a literal. */
  readonly #urls = new Map<string, Uint8Array>();

  constructor(call: Call, level: EmbedLevel, author: string, depth: number) {
    const before = indent(depth);
    const inner = indent(depth + 1);
    const uri = `{${indent(depth + 2)}"uri": `;
    this.#call = call;
    this.level = level;
    this.#depth = depth;
    this.#names = richNames(before, ': ');
    this.#title = encodeText(`${before}"title": "`);
    this.#id = encodeText(`,${before}"id": `);
    this.#updated = encodeText(`,${before}"updated": "`);
    this.#summary = encodeText(`",${before}"author": {${inner}"name": "${author}"${before}},${before}"summary": `);
    this.#retryCount = encodeText(`,${before}"retryCount": `);
    this.#content = encodeText(`,${before}"content": `);
    this.#edit = encodeText(`,${before}"links": [${inner}${uri}`);
    this.#alternate = encodeText(`${linkRest('edit', depth + 2)},${inner}${uri}`);
    this.#links = encodeText(linkRest('alternate', depth + 2));
    this.#end = encodeText(`${before}]${indent(depth - 1)}}`);
  }

  write(out: JsonBytes, event: StoredEvent, competing: Competing | null = null): void {
    const { level } = this;
    const shown = event.linkTargetMissing
      ? targetOf(event)
      : { number: numberText(event.number), stream: event.stream };
    const place = event.link ?? event;
    const url = this.#urlOf(shown.stream);
    out.text('{');
    if (level !== 'none' && level !== 'content' && !event.linkTargetMissing)
      writeRich(out, event, level, this.#names, this.#payloads);
    out.raw(this.#title);
    out.text(shown.number);
    out.text('@');
    // Without its first quote, which stands before the number.
    out.raw(nameBytes(shown.stream), 1);
    out.raw(this.#id);
    writeUri(out, url, shown.number);
    out.raw(this.#updated);
    writeTime(out, place);
    out.raw(this.#summary);
    out.raw(nameBytes(place.type));
    out.raw(this.#retryCount);
    out.text(String(competing?.retryCount ?? null));
    out.raw(this.#content);
    if (level === 'content' && event.link === null && !event.linkTargetMissing && event.isJson)
      writeContent(out, event, this.#depth + 1, this.#payloads);
    else out.raw(NULL);
    out.raw(this.#edit);
    writeUri(out, url, shown.number);
    out.raw(this.#alternate);
    writeUri(out, url, shown.number);
    out.raw(this.#links);
    for (const [relation, to] of competing?.links ?? [])
      out.text(`,${indent(this.#depth + 1)}${linkObject(to, relation, this.#depth + 2)}`);
    out.raw(this.#end);
  }

  /** Makes the long parts of an event to text, in slices; `write` follows. */
  *prepare(event: StoredEvent): Generator<void, void, undefined> {
    const { level } = this;
    if (level === 'none' || level === 'rich') return;
    if (level === 'content') {
      if (event.isJson && event.link === null) yield* prepareContent(event, this.#depth + 1, this.#payloads);
      return;
    }
    const isIndented = level !== 'body';
    if (event.isJson || level === 'tryharder') yield* this.#payloads.makeLiteral(event.data, isIndented);
    yield* this.#payloads.makeLiteral(event.metadata, isIndented);
    if (event.link !== null) yield* this.#payloads.makeLiteral(event.link.metadata, isIndented);
  }

  #urlOf(stream: string): Uint8Array {
    let url = this.#urls.get(stream);
    if (url === undefined) {
      url = encodeText(`${jsonString(streamUrl(this.#call, stream)).slice(0, -1)}/`);
      this.#urls.set(stream, url);
    }
    return url;
  }
}

function writeUri(out: JsonBytes, url: Uint8Array, number: string): void {
  out.raw(url);
  out.text(number);
  out.raw(QUOTE);
}

/** As `timestampText`. */
function writeTime(out: JsonBytes, { createdMs, createdTicks }: StoredEvent): void {
  const seconds = Math.floor(createdMs / 1_000);
  let fraction = (createdMs - seconds * 1_000) * 10_000 + createdTicks;
  out.text(secondsText(seconds));
  if (fraction > 0) {
    let count = 7;
    for (; fraction % 10 === 0; fraction /= 10) count--;
    out.text('.');
    out.digits(fraction, count);
  }
  out.text('Z');
}

/** How much of an event a feed entry carries. */
export type EmbedLevel = 'none' | 'content' | 'rich' | 'body' | 'pretty' | 'tryharder';

const LEVELS: ReadonlyMap<string, EmbedLevel> = new Map([
  ['content', 'content'],
  ['rich', 'rich'],
  ['body', 'body'],
  ['pretty', 'pretty'],
  ['prettybody', 'pretty'],
  ['tryharder', 'tryharder'],
]);

/** The level named by `?embed=`, in any case; anything else embeds nothing. */
export function embedLevelOf(value: string | undefined): EmbedLevel {
  return value === undefined ? 'none' : (LEVELS.get(value.toLowerCase()) ?? 'none');
}

/** Whether entries of a level show data or metadata of events. */
export function embedsPayloads(level: EmbedLevel): boolean {
  return level !== 'none' && level !== 'rich';
}

/** Metadata as a string. */
function writeMetadata(out: JsonBytes, bytes: Uint8Array, level: EmbedLevel, payloads: Payloads): void {
  if (level === 'body') payloads.writeLiteral(out, bytes);
  else payloads.writeIndented(out, bytes);
}

/** The names of the members of the levels from `rich` on, with all that stands between two values. */
interface RichNames {
  readonly id: Uint8Array;
  readonly type: Uint8Array;
  readonly number: Uint8Array;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  readonly linkMetadata: Uint8Array;
  readonly stream: Uint8Array;
  /**
   * From `isJson` to the value of `positionEventNumber`, for each of the sixteen ways in which the four flags between
   * can be.
   */
  readonly flags: readonly Uint8Array[];
  readonly placeStream: Uint8Array;
  readonly end: Uint8Array;
}

/** In the order of their bits. */
const FLAGS: readonly string[] = ['isJson', 'isMetaData', 'isLinkMetaData', 'isRedacted'];

/** Made once for each depth at which entries stand, of which there are few. */
const namesMade = new Map<string, RichNames>();

/** Each name begins by `before`, and is followed by `colon`. */
function richNames(before: string, colon: string): RichNames {
  let names = namesMade.get(before);
  if (names === undefined) {
    const member = (name: string, start = ''): Uint8Array => encodeText(`${start},${before}"${name}"${colon}`);
    names = {
      id: encodeText(`${before}"eventId"${colon}"`),
      type: member('eventType', '"'),
      number: member('eventNumber'),
      data: member('data'),
      metadata: member('metaData'),
      linkMetadata: member('linkMetaData'),
      stream: member('streamId'),
      flags: Array.from({ length: 16 }, (_, bits) =>
        encodeText(
          `${FLAGS.map((name, bit) => `,${before}"${name}"${colon}${(bits & (1 << bit)) !== 0}`).join('')},${before}"positionEventNumber"${colon}`,
        ),
      ),
      placeStream: member('positionStreamId'),
      end: encodeText(','),
    };
    namesMade.set(before, names);
  }
  return names;
}

/**
 * The members of the levels from `rich` on, each followed by a comma. `eventNumber` and `streamId` describe the event
 * itself, `position…` its position in the stream that was read.
 */
function writeRich(out: JsonBytes, event: StoredEvent, level: EmbedLevel, names: RichNames, payloads: Payloads): void {
  let { isJson } = event;
  writeBeginning(out, event, names);
  if (level === 'rich' || (!isJson && level !== 'tryharder')) out.raw(NULL);
  else if (level === 'body') payloads.writeLiteral(out, event.data);
  else if (payloads.writeIndented(out, event.data)) isJson = true;
  out.raw(names.metadata);
  if (level === 'rich' || event.metadata.length === 0) out.raw(NULL);
  else writeMetadata(out, event.metadata, level, payloads);
  out.raw(names.linkMetadata);
  if (level === 'rich' || event.link === null) out.raw(NULL);
  else writeMetadata(out, event.link.metadata, level, payloads);
  writeEnd(out, event, level, isJson, names);
}

/** The rich members up to the value of `data`. */
function writeBeginning(out: JsonBytes, event: StoredEvent, names: RichNames): void {
  out.raw(names.id);
  out.text(event.id);
  out.raw(names.type);
  out.raw(nameBytes(event.type));
  out.raw(names.number);
  writeNumber(out, event.number);
  out.raw(names.data);
}

/** And those behind the value of `linkMetaData`. */
function writeEnd(out: JsonBytes, event: StoredEvent, level: EmbedLevel, isJson: boolean, names: RichNames): void {
  const place = event.link ?? event;
  out.raw(names.stream);
  out.raw(nameBytes(event.stream));
  // Below `body` the reference does not look at metadata and says that there is none.
  const hasMetadata = level !== 'rich' && event.metadata.length > 0;
  const hasLinkMetadata = level !== 'rich' && event.link !== null && event.link.metadata.length > 0;
  out.raw(
    names.flags[(isJson ? 1 : 0) | (hasMetadata ? 2 : 0) | (hasLinkMetadata ? 4 : 0) | (event.isRedacted ? 8 : 0)]!,
  );
  writeNumber(out, place.number);
  out.raw(names.placeStream);
  out.raw(nameBytes(place.stream));
  out.raw(names.end);
}

/** As `numberText`. */
function writeNumber(out: JsonBytes, number: number): void {
  if (number === TOMBSTONE) out.text(numberText(number));
  else out.number(number);
}

/** Data and metadata beyond this many bytes are made to text in pieces of about as many. */
const PIECE_BYTES = 32_768;

/** Whether the line of an event is made in one piece. */
export function isOnePiece({ data, metadata, link }: StoredEvent): boolean {
  return data.length + metadata.length + (link === null ? 0 : link.metadata.length) <= PIECE_BYTES;
}

/** Lines are not indented, and long ones made in pieces of their own. */
const NO_PAYLOADS = new Payloads();
const LINE_NAMES = richNames('', ':');
const UPDATED = encodeText('"updated":"');
const POSITION = encodeText('","position":"');
const QUOTE_END = encodeText('"');
const LINE_END = encodeText('}');
const EVENT_UPDATED = encodeText(',"eventUpdated":"');
const EVENT_POSITION = encodeText('","eventPosition":"');
const DATA_BYTES = encodeText(',"dataBase64":"');
const METADATA_BYTES = encodeText(',"metaDataBase64":"');

/**
 * One event as one line of JSON: the members of `embed=body`, then `updated` and `position`, and what else there is.
 * For NDJSON and server-sent events.
 */
export function writeLine(out: JsonBytes, event: StoredEvent): void {
  out.text('{');
  writeRich(out, event, 'body', LINE_NAMES, NO_PAYLOADS);
  writePlaces(out, event);
  if (hasBytes(event)) for (const pieces = writeBytes(out, event); pieces.next().done !== true;);
  out.raw(LINE_END);
}

/**
 * The same in pieces, so that nothing else has to wait until all of a large event is text, and a slow reader keeps no
 * more than a piece of that.
 */
export function* writeLinePieces(out: JsonBytes, event: StoredEvent): Generator<void, void, undefined> {
  out.text('{');
  writeBeginning(out, event, LINE_NAMES);
  yield* writePieces(out, event.isJson ? event.data : null);
  out.raw(LINE_NAMES.metadata);
  yield* writePieces(out, event.metadata.length === 0 ? null : event.metadata);
  out.raw(LINE_NAMES.linkMetadata);
  yield* writePieces(out, event.link === null ? null : event.link.metadata);
  writeEnd(out, event, 'body', event.isJson, LINE_NAMES);
  writePlaces(out, event);
  if (hasBytes(event)) yield* writeBytes(out, event);
  out.raw(LINE_END);
}

function writePlaces(out: JsonBytes, event: StoredEvent): void {
  writePlace(out, event.link ?? event, UPDATED, POSITION);
  if (event.link !== null) writePlace(out, event, EVENT_UPDATED, EVENT_POSITION);
}

/** Whether there is what a line shows no text of that would be all. */
function hasBytes({ isJson, isRedacted, data, metadata }: StoredEvent): boolean {
  return !isRedacted && ((!isJson && data.length > 0) || isNoJson(metadata));
}

function* writeBytes(out: JsonBytes, event: StoredEvent): Generator<void, void, undefined> {
  if (!event.isJson && event.data.length > 0) yield* writeBase64(out, event.data, DATA_BYTES);
  if (isNoJson(event.metadata)) yield* writeBase64(out, event.metadata, METADATA_BYTES);
}

function writePlace(out: JsonBytes, place: StoredEvent, updated: Uint8Array, position: Uint8Array): void {
  out.raw(updated);
  writeTime(out, place);
  out.raw(position);
  out.number(place.position);
  out.text('/');
  out.number(place.preparePosition);
  out.raw(QUOTE_END);
}

/** Characters with which a JSON value can begin, and white space. */
const JSON_BEGINS: ReadonlySet<number> = new Set(encodeText('{["-0123456789tfn \n\r\t'));

/** What begins as no JSON value does: of such the text that a line shows need not be all. */
function isNoJson(bytes: Uint8Array): boolean {
  return bytes.length > 0 && !JSON_BEGINS.has(bytes[0]!);
}

/** Bytes that are written in one stretch; a multiple of three, as those of a text in Base64 must be. */
const BYTES_PIECE = 49_152;

function* writeBase64(out: JsonBytes, bytes: Uint8Array, name: Uint8Array): Generator<void, void, undefined> {
  out.raw(name);
  for (let at = 0; at < bytes.length; at += BYTES_PIECE) {
    out.base64(bytes, at, Math.min(at + BYTES_PIECE, bytes.length));
    yield;
  }
  out.raw(QUOTE_END);
}

/** Bytes as a JSON string, or `null`. */
function* writePieces(out: JsonBytes, bytes: Uint8Array | null): Generator<void, void, undefined> {
  if (bytes === null) return out.raw(NULL);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  out.raw(QUOTE);
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    out.text(
      jsonString(
        decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: at + PIECE_BYTES < bytes.length }),
      ).slice(1, -1),
    );
    yield;
  }
  out.raw(QUOTE);
}

/**
 * Position of an event in `$all` as text: commit and prepare position. It is the `id` of server-sent events of `$all`.
 */
export function positionText(event: StoredEvent): string {
  const place = event.link ?? event;
  return `${place.position}/${place.preparePosition}`;
}
