import { SkuaError } from '../../core/base/errors.ts';
import type { AllFilter, AllPosition, PageOptions, RedactionView, StoredEvent } from '../../core/streams/api.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Reply } from '../http/context.ts';
import { integer64 } from '../http/http-headers.ts';
import { JsonBytes } from '../http/json-bytes.ts';
import type { Representation } from '../http/negotiate.ts';
import { changing, document } from '../http/reply.ts';
import { checkStream, readAllowed, withoutForbidden } from './access.ts';
import { isOnePiece, writeLine, writeLinePieces } from './atom-feed.ts';

/**
 * NDJSON: one event a line, oldest first unless a backward page was asked for. A page route gives its page; the routes
 * of a whole stream give everything from `?from=` (inclusive; the beginning without it), at most `?limit=` events, to
 * the end as it is when they get there.
 */

/** Events read at once behind an endless reply, and their bytes. */
const LINES_PAGE_EVENTS = 256;
const LINES_PAGE_BYTES = 1_048_576;

/** The lines of a page that has been read. */
export function pageLines(call: Call, app: App, events: StoredEvent[], chosen: Representation): Reply {
  return document(call, streamText(app, [events].values()), chosen.contentType, changing(app, null));
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
  await checkStream(call, app, 'read', stream);
  const from = startNumber(call);
  const limit = limitOf(call);
  const read = async (at: number, count: number) => {
    const page = await readAllowed(call, app, stream, () =>
      app.store.readStream(stream, { direction: 'forward', from: at, count, resolveLinks, ...blockOptions(call, app) }),
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
      if (page.isEnd || left <= 0) return;
    }
  }
  return document(call, streamText(app, lines()), chosen.contentType, changing(app, null));
}

/** `$all` from a position on. */
export async function allLines(
  call: Call,
  app: App,
  resolveLinks: boolean,
  filter: AllFilter | undefined,
  chosen: Representation,
): Promise<Reply> {
  const from = startPosition(call) ?? 'start';
  const limit = limitOf(call);
  const read = async (at: AllPosition | 'start', count: number) => {
    const page = await readAllowed(call, app, '$all', () =>
      app.store.readAll({
        direction: 'forward',
        from: at,
        count,
        resolveLinks,
        ...blockOptions(call, app),
        ...(filter && { filter }),
      }),
    );
    if (resolveLinks) await withoutForbidden(call, app, page.events);
    return page;
  };
  const first = await read(from, Math.min(limit, LINES_PAGE_EVENTS));
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

function startNumber(call: Call): number {
  const text = queryOf(call, 'from');
  if (text === undefined || text === '') return 0;
  const number = integer64(text);
  if (number === null || number < 0) throw new SkuaError('invalid_event_number', `'${text}' is not valid event number`);
  return number;
}

function startPosition(call: Call): AllPosition | null {
  const text = queryOf(call, 'from');
  return text === undefined || text === '' ? null : parsePosition(text);
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
