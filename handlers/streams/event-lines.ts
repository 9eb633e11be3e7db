import { SkuaError } from '../../core/base/errors.ts';
import type { AllPosition, PageOptions, RedactionView, StoredEvent } from '../../core/streams/api.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Reply } from '../http/context.ts';
import { integer64 } from '../http/http-headers.ts';
import { JsonBytes } from '../http/json-bytes.ts';
import type { Representation } from '../http/negotiate.ts';
import { changing, document } from '../http/reply.ts';
import { checkReading, readAllowed, viewAccess, withoutForbidden } from './access.ts';
import type { AllReading } from './all-reading.ts';
import { isOnePiece, writeLine, writeLinePieces } from './atom-feed.ts';

/**
 * NDJSON: one event a line, oldest first unless a backward page or `?direction=backward` was asked for. A page route
 * gives its page; the routes of a whole stream give everything from `?from=` (inclusive, but backward in `$all`; where
 * the direction begins without it) or behind `?after=` (`$all`), at most `?limit=` events, to the end as it is when
 * they get there.
 */

/** Events read at once behind an endless reply, and their bytes. */
const LINES_PAGE_EVENTS = 256;
const LINES_PAGE_BYTES = 1_048_576;

/** The lines of a page that has been read. `older`: where a backward page leads on, in the header `Link`. */
export function pageLines(
  call: Call,
  app: App,
  events: StoredEvent[],
  chosen: Representation,
  older: string | null = null,
): Reply {
  const reply = document(call, streamText(app, [events].values()), chosen.contentType, changing(app, null));
  return older === null ? reply : { ...reply, headers: { ...reply.headers, link: `<${older}>; rel="next"` } };
}

/**
 * A stream from an event number on. The first page is read before the reply begins, so that a missing stream is a 404.
 */
export async function streamLines(
  call: Call,
  app: App,
  stream: string,
  resolveLinks: boolean,
  chosen: Representation,
): Promise<Reply> {
  await checkReading(call, app, stream);
  const access = viewAccess(call, app, stream);
  const direction = directionOf(call);
  const from = startNumber(call, direction);
  const limit = limitOf(call);
  const read = async (at: number | 'end', count: number) => {
    const page = await readAllowed(call, app, stream, () =>
      app.store.readStream(stream, {
        direction,
        from: at,
        count,
        resolveLinks,
        access,
        ...blockOptions(call, app),
      }),
    );
    if (resolveLinks) await withoutForbidden(call, app, page.events);
    return page;
  };
  const first = await read(from, Math.min(limit, LINES_PAGE_EVENTS));
  async function* lines(): AsyncGenerator<StoredEvent[]> {
    let left = limit;
    for (let page = first; ; page = await read(page.nextEventNumber, Math.min(left, LINES_PAGE_EVENTS))) {
      left -= page.events.length;
      yield page.events;
      if (page.isEnd || page.nextEventNumber < 0 || left <= 0) return;
    }
  }
  return document(call, streamText(app, lines()), chosen.contentType, changing(app, null));
}

/** `$all` from a position on. */
export async function allLines(
  call: Call,
  app: App,
  resolveLinks: boolean,
  { filter, access, check }: AllReading,
  chosen: Representation,
): Promise<Reply> {
  const direction = directionOf(call);
  const after = afterOf(call);
  const from = after ?? startPosition(call, direction);
  const limit = limitOf(call);
  const read = async (at: AllPosition | 'start' | 'end', count: number) => {
    await check();
    const page = await app.store.readAll({
      direction,
      from: at,
      count,
      resolveLinks,
      access,
      ...blockOptions(call, app),
      ...(filter && { filter }),
      // A position to which a decision looked is the place of no event, as a rule.
      ...(filter?.forDecisions === true && { orNext: true }),
    });
    if (resolveLinks) await withoutForbidden(call, app, page.events);
    return page;
  };
  const first = await read(from, Math.min(after === null ? limit : limit + 1, LINES_PAGE_EVENTS));
  if (after !== null) {
    const [event] = first.events;
    if (event !== undefined && isAt(event.link ?? event, after)) first.events.shift();
    else first.events.length = Math.min(first.events.length, limit);
  }
  async function* lines(): AsyncGenerator<StoredEvent[]> {
    let left = limit;
    for (let page = first; ; page = await read(page.next, Math.min(left, LINES_PAGE_EVENTS))) {
      left -= page.events.length;
      yield page.events;
      if (page.isEnd || left <= 0) return;
    }
  }
  return document(call, streamText(app, lines()), chosen.contentType, changing(app, null));
}

/** Bytes that a long reply reads at once, on its own account: it holds them until the client has taken all. */
function blockOptions(call: Call, app: App): PageOptions {
  return {
    bytesMax: Math.min(LINES_PAGE_BYTES, app.options.readPageBytesMax),
    share: app.server.replyShareOf?.(call.request),
  };
}

/** Lines are handed on in pieces of about this many bytes. */
const PIECE_BYTES = 65_536;

/**
 * Writes the lines of events, and stops whenever a piece is full. The events are let go in the end: the next ones are
 * read before a caller could let go of these.
 */
function* linesOf(out: JsonBytes, events: StoredEvent[], redactions: RedactionView): Generator<void, void, undefined> {
  for (const read of events) {
    // Others may have been redacted while the client took the last piece.
    const event = redactions.shown(read);
    if (isOnePiece(event)) writeLine(out, event);
    else
      for (const pieces = writeLinePieces(out, event); pieces.next().done !== true;)
        if (out.length >= PIECE_BYTES) yield;
    out.text('\n');
    if (out.length >= PIECE_BYTES) yield;
  }
  events.length = 0;
}

type Direction = 'forward' | 'backward';

function directionOf(call: Call): Direction {
  const text = queryOf(call, 'direction') || 'forward';
  if (text !== 'forward' && text !== 'backward')
    throw new SkuaError('bad_request', `direction is '${text}': it must be forward or backward.`);
  return text;
}

function startNumber(call: Call, direction: Direction): number | 'end' {
  const text = queryOf(call, 'from') || (direction === 'forward' ? 'start' : 'end');
  if (text === 'start') return 0;
  if (text === 'end') return text;
  const number = integer64(text);
  if (number === null || number < 0) throw new SkuaError('invalid_event_number', `'${text}' is not valid event number`);
  return number;
}

function startPosition(call: Call, direction: Direction): AllPosition | 'start' | 'end' {
  const text = queryOf(call, 'from') || (direction === 'forward' ? 'start' : 'end');
  return text === 'start' || text === 'end' ? text : parsePosition(text);
}

/** Behind which event the lines begin; it need not be one that a filter wants. */
function afterOf(call: Call): AllPosition | null {
  const text = queryOf(call, 'after');
  return text === undefined || text === '' ? null : parsePosition(text);
}

function isAt({ position, preparePosition }: StoredEvent, { commit, prepare }: AllPosition): boolean {
  return position === commit && preparePosition === prepare;
}

/** A `$all` position: `C/P` in decimal, or 32 hex digits. Throws `invalid_position`. */
export function parsePosition(text: string): AllPosition {
  const decimal = /^(\d{1,16})\/(\d{1,16})$/.exec(text);
  if (decimal !== null) return { commit: clamp(Number(decimal[1])), prepare: clamp(Number(decimal[2])) };
  if (!/^[0-7][0-9a-f]{15}[0-7][0-9a-f]{15}$/i.test(text))
    throw new SkuaError('invalid_position', `Invalid position argument: ${text}`);
  return { commit: clamp(Number.parseInt(text.slice(0, 16), 16)), prepare: clamp(Number.parseInt(text.slice(16), 16)) };
}

/** No log reaches positions beyond the safe integers; halves up to 2^63-1 are used as "after everything". */
function clamp(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

function limitOf(call: Call): number {
  const text = queryOf(call, 'limit');
  if (text === undefined || text === '') return Number.POSITIVE_INFINITY;
  if (!/^\d{1,15}$/.test(text) || Number(text) === 0)
    throw new SkuaError('invalid_count', `'${text}' is not valid limit. Should be positive integer`);
  return Number(text);
}

/** A body from the lines of one read after another, made only as fast as it is read. */
function streamText(
  { store: { redactions } }: App,
  reads: AsyncIterator<StoredEvent[]> | Iterator<StoredEvent[]>,
): ReadableStream<Uint8Array> {
  const out = new JsonBytes();
  let lines: Iterator<void> | null = null;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        while (lines === null || lines.next().done === true) {
          const read = await reads.next();
          if (read.done === true) {
            if (out.length > 0) controller.enqueue(out.take());
            controller.close();
            return;
          }
          lines = linesOf(out, read.value, redactions);
        }
        controller.enqueue(out.take());
      },
      async cancel() {
        lines = null;
        await reads.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
