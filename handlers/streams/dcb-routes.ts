import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { newId } from '../../core/ports/ids.ts';
import { attributeMembers, tagsOf, TAGS_NAME } from '../../core/attributes/format/attribute-texts.ts';
import {
  type AllFilter,
  type AllPosition,
  ANY,
  type AppendCondition,
  type ConditionItem,
  type NewEvent,
  PAGE_EVENTS_MAX,
  type StoredEvent,
  type StreamWrite,
} from '../../core/streams/api.ts';
import type { DcbAppended, DcbEvent } from '../documents/dcb.ts';
import { readJson } from '../http/body.ts';
import { goneOf, queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { checkRequireLeader, isUsableEventId } from '../http/http-headers.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { jsonReply, POSITION_HEADER } from '../http/reply.ts';
import { hold, inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { baseOf } from '../http/url.ts';
import { DCB_DOCS } from '../openapi/dcb-paths.ts';
import { authorizeWrites, checkReader, checkStream } from './access.ts';
import { ALL_STREAM } from './all-reading.ts';
import { badRequest, filterForDecisions, isObject, isTexts, itemsOf, jsonIn } from './condition-items.ts';
import { WHOLE_BODY_BYTES_MAX } from './posted-events.ts';

/** Appends on a condition, and the reads that decisions stand on, as the test suite of dcb.events speaks to a store. */

/** Where events lie that name no stream. */
const DCB_STREAM = 'dcb';
/** Events of one answer. */
const READ_EVENTS_MAX = 65_536;
/** Bytes of events that are read, and become text, at once; one that is larger comes alone. */
const PART_BYTES = 131_072;
const MICROSECONDS = 1_000;

/**
 * POST `/dcb/append`. A condition counts events whatever their lists say, so it asks for the right to read all, before
 * anything is read.
 */
const append: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  checkRequireLeader(call.request.headers);
  await checkStream(call, app, 'read', ALL_STREAM);
  const startMs = app.world.clock.monotonicMs();
  const { writes, condition } = await askedOf(call, app);
  // The body may have taken its time.
  await checkReader(call, app, ALL_STREAM);
  const authorized = await authorizeWrites(call, app, writes);
  const tookMicroseconds = (): number => Math.ceil((app.world.clock.monotonicMs() - startMs) * MICROSECONDS);
  try {
    const { position, isRepeat } = await app.store.appendToStreams(authorized, { condition });
    return line(call, {
      durationInMicroseconds: tookMicroseconds(),
      appendConditionFailed: false,
      position,
      isRepeat,
    } satisfies DcbAppended);
  } catch (error) {
    if (!isSkuaError(error, 'condition_failed')) throw error;
    const { stream, number, position } = error.data;
    return line(call, {
      durationInMicroseconds: tookMicroseconds(),
      appendConditionFailed: true,
      matched: { stream, number, position },
    } satisfies DcbAppended);
  }
};

function line(call: Call, appended: DcbAppended): Reply {
  const reply = jsonReply(call, appended);
  return { ...reply, body: `${JSON.stringify(appended)}\n` };
}

interface Asked {
  readonly writes: readonly StreamWrite[];
  readonly condition: AppendCondition | undefined;
}

async function askedOf(call: Call, app: App): Promise<Asked> {
  const body = await readJson(call, app, Math.min(WHOLE_BODY_BYTES_MAX, app.options.bodyBytesMax));
  if (!isObject(body)) throw badRequest('the body must be an object with events, and maybe a condition');
  const { events, condition } = body;
  const list = Array.isArray(events) ? (events as unknown[]) : [events];
  return {
    writes: list.map((event) => writeOf(event, app)),
    condition: condition === undefined || condition === null ? undefined : conditionOf(condition),
  };
}

function writeOf(event: unknown, app: App): StreamWrite {
  if (!isObject(event)) throw badRequest('an event must be an object with a type');
  const { type, tags = [], data, metadata = {}, id, stream = DCB_STREAM } = event;
  if (typeof type !== 'string' || type === '') throw badRequest('an event must have a type');
  if (typeof stream !== 'string' || stream.startsWith('$'))
    throw badRequest(
      'stream must be a name that does not begin with $: metadata and settings have routes of their own',
    );
  if (!isTexts(tags)) throw badRequest('tags must be an array of texts');
  if (!isObject(metadata)) throw badRequest('metadata must be an object');
  if (id !== undefined && (typeof id !== 'string' || !isUsableEventId(id))) throw badRequest('id must be a UUID');
  const text = data === undefined ? '' : typeof data === 'string' ? data : JSON.stringify(data);
  const all = tags.length === 0 ? metadata : { ...metadata, [TAGS_NAME]: tags };
  const written: NewEvent = {
    id: id ?? newId(app.world.ids),
    type,
    isJson: isJsonText(text),
    data: encodeText(text),
    metadata: Object.keys(all).length === 0 ? new Uint8Array(0) : encodeText(JSON.stringify(all)),
  };
  return { stream, expectedVersion: ANY, events: [written] };
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export function conditionOf(condition: unknown): AppendCondition {
  if (!isObject(condition)) throw badRequest('a condition must be an object with failIfEventsMatch');
  const { failIfEventsMatch, after } = condition;
  if (after !== undefined && after !== null && !Number.isSafeInteger(after))
    throw badRequest('after must be a position, as events have it');
  return {
    failIfEventsMatch: { items: itemsIn(failIfEventsMatch) },
    ...(typeof after === 'number' && { after }),
  };
}

function itemsIn(query: unknown): readonly ConditionItem[] {
  if (!isObject(query)) throw badRequest('a query must be an object such as {"items": [{"types": [], "tags": []}]}');
  return itemsOf(query['items'] ?? []);
}

interface ReadOptions {
  /** A position, or where an answer ended within a transaction, as its `Link` says. */
  readonly from: number | AllPosition | null;
  /** Infinite where none is given. */
  readonly limit: number;
  readonly isBackward: boolean;
}

/** GET `/dcb/read?query=…&options=…`. */
const read: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  checkRequireLeader(call.request.headers);
  await checkStream(call, app, 'read', ALL_STREAM);
  const filter = filterForDecisions(itemsIn(jsonIn(queryOf(call, 'query'), 'query') ?? {}));
  const options = optionsOf(jsonIn(queryOf(call, 'options'), 'options') ?? {});
  const { text, lookedTo, next } = await readText(call, app, filter, options);
  const reply = jsonReply(call, {});
  return {
    ...reply,
    headers: {
      ...reply.headers,
      [POSITION_HEADER]: String(lookedTo),
      ...(next !== null && { link: `<${urlOf(call, next)}>; rel="next"` }),
    },
    body: `${text}\n`,
  } satisfies Reply;
};

function urlOf(call: Call, options: NextOptions): string {
  const search = new URLSearchParams({ query: queryOf(call, 'query') ?? '{}', options: JSON.stringify(options) });
  return `${baseOf(call)}${call.path}?${search.toString()}`;
}

function optionsOf(options: unknown): ReadOptions {
  if (!isObject(options)) throw badRequest('options must be an object such as {"from": 0, "limit": 10}');
  const { from = null, limit = null, backwards = false } = options;
  const within = typeof from === 'string' ? WITHIN.exec(from) : null;
  if (from !== null && within === null && !(Number.isSafeInteger(from) && (from as number) >= 0))
    throw badRequest('from must be a position, as events have it');
  if (limit !== null && !(Number.isSafeInteger(limit) && (limit as number) >= 1))
    throw badRequest('limit must be 1 or more');
  if (typeof backwards !== 'boolean') throw badRequest('backwards must be true or false');
  return {
    from: within === null ? (from as number | null) : { commit: Number(within[1]), prepare: Number(within[2]) },
    limit: (limit as number | null) ?? Infinity,
    isBackward: backwards,
  };
}

/** Commit and prepare position. */
const WITHIN = /^(\d{1,15})\/(\d{1,15})$/;

/** Of the read that goes on where one ended. */
interface NextOptions {
  readonly from: number | string;
  readonly limit?: number;
}

interface ReadEvents {
  readonly text: string;
  readonly lookedTo: number;
  /** Null where there is nothing more of what was asked for. */
  readonly next: NextOptions | null;
}

/**
 * Events one part after the other until there are enough, the log ends, or the answer is as large as one may be. A
 * forward read has looked up to where it ended, a backward one from the end of the log that it began at: there older
 * events that were left out would never count, so it is whole, or refused with `page_too_large`.
 */
async function readText(
  call: Call,
  app: App,
  filter: AllFilter,
  { from, limit, isBackward }: ReadOptions,
): Promise<ReadEvents> {
  const { readPageBytesMax } = app.options;
  const share = app.server.replyShareOf?.(call.request);
  const parts: string[] = [];
  let count = 0;
  let bytes = 0;
  let at: AllPosition | 'start' | 'end' = startOf(from, isBackward);
  let lookedTo = -1;
  const isGone = goneOf(call, app);
  for (;;) {
    if (isGone()) throw new SkuaError('aborted', 'Nobody waits for the answer any more.');
    await checkReader(call, app, ALL_STREAM);
    const page = await app.store.readAll({
      direction: isBackward ? 'backward' : 'forward',
      from: at,
      count: Math.min(limit - count, READ_EVENTS_MAX - count, PAGE_EVENTS_MAX),
      orNext: true,
      filter,
      bytesMax: Math.min(PART_BYTES, readPageBytesMax - bytes),
    });
    if (isBackward && lookedTo < 0) lookedTo = page.from.commit - 1;
    if (page.events.length > 0) {
      const write = (): string => page.events.map((event) => textOf(app.store.redactions.shown(event))).join(',');
      call.isLong ||= parts.length > 0;
      const part = call.isLong ? await app.turns.slice(call.countedAs, write) : write();
      parts.push(part);
      bytes += part.length;
      hold(share, bytes, 0);
    }
    count += page.events.length;
    at = page.next;
    if (!isBackward) lookedTo = page.next.commit - 1;
    const isWhole = page.isEnd || count >= limit;
    if (!isWhole && count < READ_EVENTS_MAX && bytes < readPageBytesMax) continue;
    if (!isWhole && isBackward) throw tooLarge(readPageBytesMax);
    // An explicit transaction may have more events than an answer, and all of them its one commit position.
    const { commit, prepare } = page.next;
    const place = prepare > 0 ? `${commit}/${prepare}` : commit;
    const next = isWhole ? null : { from: place, ...(limit !== Infinity && { limit: limit - count }) };
    return { text: `[${parts.join(',')}]`, lookedTo, next };
  }
}

function tooLarge(limit: number): SkuaError {
  return new SkuaError(
    'page_too_large',
    `An answer has at most ${READ_EVENTS_MAX} events and about ${limit} bytes: give a smaller limit, or read forward.`,
    { limit },
  );
}

/** `from` is inclusive in both directions. */
function startOf(from: ReadOptions['from'], isBackward: boolean): AllPosition | 'start' | 'end' {
  if (from === null) return isBackward ? 'end' : 'start';
  if (typeof from !== 'number') return from;
  return isBackward ? { commit: from + 1, prepare: from + 1 } : { commit: from, prepare: 0 };
}

function textOf({ type, stream, number, id, position, data, metadata, isRedacted }: StoredEvent): string {
  const tags = tagsOf(attributeMembers(metadata)?.tags);
  const event: DcbEvent = { type, tags, data: decodeText(data), position, stream, number, id };
  return JSON.stringify(isRedacted ? { ...event, isRedacted } : event);
}

export const DCB_ROUTES = area({ tag: 'Streams', offBy: 'disableAtomPub', heedsRequiresLeader: true }, [
  {
    path: '/dcb/append',
    methods: 'POST, OPTIONS',
    operations: { POST: operation('stream', 'writes', append, DCB_DOCS.append) },
  },
  {
    path: '/dcb/read',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('stream', 'here', inRoom(read), DCB_DOCS.read) },
  },
]);
