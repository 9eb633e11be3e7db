import { SkuaError } from '../../core/base/errors.ts';
import { encodeText } from '../../core/base/text.ts';
import type { ByteShare } from '../../core/base/byte-budget.ts';
import type { AllPosition, RedactionView, StoredEvent, SubscriptionPage } from '../../core/streams/api.ts';
import { isViewName } from '../../core/streams/format/names.ts';
import { commonHeaders, VARY } from '../http/reply.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Reply } from '../http/context.ts';
import type { AllReading } from './all-reading.ts';
import { isOnePiece, positionText, writeLine, writeLinePieces } from './atom-feed.ts';
import { parsePosition } from './event-lines.ts';
import { integer64 } from '../http/http-headers.ts';
import { JsonBytes, written } from '../http/json-bytes.ts';
import { numberText } from '../http/url.ts';
import { outcomeOf, problemText } from '../http/problem-document.ts';
import { checkReader, checkReading, viewAccess, withoutForbidden } from './access.ts';

/**
 * Server-sent events. Each event is an unnamed message (so that `onmessage` gets all types) with its number, or `C/P`
 * in `$all`, as `id`. `?from=` names the first event wanted, here as everywhere (`?from=end`: the first that comes);
 * `Last-Event-ID` the last one that was seen, behind which it goes on. Without either reading starts at the beginning.
 * `event: caught-up` marks the end of the history, and `event: checkpoint` how far a filter has been without finding
 * anything; both have an id, so that a client that comes back does not read all that again. `event: error` carries a
 * problem document and is the last one.
 */

/**
 * Bytes of events that a subscription reads at once, behind at least one. They are written at once and let go, so that
 * of a client that takes nothing no more is held than the text of so many; it goes on from its position in the log.
 */
export const LIVE_BLOCK_BYTES = 16_384;
/** A comment keeps idle connections from being cut. */
const IDLE_COMMENT_MS = 15_000;

export async function subscribeToStream(call: Call, app: App, stream: string, resolveLinks: boolean): Promise<Reply> {
  await checkReading(call, app, stream);
  const access = viewAccess(call, app, stream);
  const after = streamPosition(startOf(call));
  const isView = isViewName(stream);
  if (!isView && (await app.store.streamInfo(stream)).isTombstoned)
    throw new SkuaError('stream_deleted', `Stream '${stream}' is hard-deleted.`, { stream });
  const options = { after, resolveLinks, access, ...blockOptions(call, app) };
  return live<number>(call, app, {
    // Of a view the caller is looked at where its page is read.
    check: () => (isView ? undefined : checkReader(call, app, stream)),
    share: options.share,
    follow: (signal) => app.store.followStream(stream, { ...options, signal }),
    idOf: (event) => numberText((event.link ?? event).number),
    placeText: numberText,
  });
}

export function subscribeToAll(
  call: Call,
  app: App,
  resolveLinks: boolean,
  { filter, access, check }: AllReading,
): Reply {
  const { text, isInclusive } = startOf(call);
  const after = text === null ? 'start' : text === 'end' ? 'end' : parsePosition(text);
  const options = {
    after,
    isInclusive,
    resolveLinks,
    access,
    ...blockOptions(call, app),
    ...(filter && { filter }),
  } as const;
  return live<AllPosition>(call, app, {
    check,
    share: options.share,
    follow: (signal) => app.store.followAll({ ...options, signal }),
    idOf: positionText,
    placeText: ({ commit, prepare }) => `${commit}/${prepare}`,
  });
}

function blockOptions(call: Call, app: App): { readonly bytesMax: number; readonly share: ByteShare | undefined } {
  return {
    bytesMax: Math.min(LIVE_BLOCK_BYTES, app.options.readPageBytesMax),
    share: app.server.replyShareOf?.(call.request),
  };
}

interface Start {
  /** Null for the beginning. */
  readonly text: string | null;
  /** It names the first event wanted, not the last one seen. */
  readonly isInclusive: boolean;
}

/** A client that reconnects sends `Last-Event-ID`; it knows better than the address it first used. */
function startOf(call: Call): Start {
  const seen = call.request.headers.get('last-event-id');
  return seen ? { text: seen, isInclusive: false } : { text: queryOf(call, 'from') || null, isInclusive: true };
}

/** The number behind which to begin; -1, which `caught-up` of a stream without events has, for the beginning. */
function streamPosition({ text, isInclusive }: Start): number | 'end' {
  if (text === null) return -1;
  if (text === 'end') return 'end';
  const number = integer64(text);
  if (number === null || number < (isInclusive ? 0 : -1))
    throw new SkuaError('invalid_event_number', `'${text}' is not valid event number`);
  return isInclusive ? number - 1 : number;
}

/** What is followed, and how it is read. */
interface Source<Place> {
  /** The access list is asked again for each page: it may change while the subscription goes on. */
  check(): void | Promise<void>;
  /** What the pages, and the text made of them, are counted in. */
  readonly share: ByteShare | undefined;
  follow(signal: AbortSignal): AsyncIterable<SubscriptionPage<Place>>;
  idOf(event: StoredEvent): string;
  placeText(place: Place): string;
}

function live<Place>(call: Call, app: App, source: Source<Place>): Reply {
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, call.request.signal]);
  const pieces = piecesOf(call, app, source, signal);
  let lastSentMs = app.world.clock.monotonicMs();
  /** The reader has taken everything. */
  let isWaiting = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // What fails here ends the reply.
        comments(controller).catch((error: unknown) => controller.error(error));
      },
      async pull(controller) {
        isWaiting = true;
        const piece = await pieces.next();
        isWaiting = false;
        if (signal.aborted) return;
        lastSentMs = app.world.clock.monotonicMs();
        if (piece.done !== true) {
          controller.enqueue(piece.value);
          return;
        }
        ending.abort();
        controller.close();
      },
      async cancel() {
        ending.abort();
        await pieces.return();
      },
      // Nothing is read before the reader has taken what there was.
    },
    { highWaterMark: 0 },
  );
  async function comments(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    for (;;) {
      await app.world.clock.sleep(lastSentMs + IDLE_COMMENT_MS - app.world.clock.monotonicMs(), signal);
      if (signal.aborted) break;
      if (app.world.clock.monotonicMs() < lastSentMs + IDLE_COMMENT_MS) continue;
      lastSentMs = app.world.clock.monotonicMs();
      // A reader that does not keep up needs no sign of life.
      if (isWaiting) controller.enqueue(encodeText(':\n\n'));
    }
    // The client is gone: the stream is not read any more, and only has to let go of what it holds.
    if (!ending.signal.aborted) {
      ending.abort();
      controller.close();
      await pieces.return();
    }
  }
  const headers = {
    ...commonHeaders(call.methods),
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, private',
    vary: VARY,
    'x-accel-buffering': 'no',
  };
  return { status: 200, statusText: 'OK', headers, body };
}

async function* piecesOf<Place>(
  call: Call,
  app: App,
  source: Source<Place>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const page of source.follow(signal)) {
      const { events, checkpoints, isCaughtUp, after } = page;
      if (events.length > 0 || checkpoints.length > 0) await source.check();
      await withoutForbidden(call, app, events);
      yield* textOf(page, source, app.store.redactions);
      // A piece of its own, by which a function finds the end of its reply.
      if (isCaughtUp)
        yield encodeText(`event: caught-up\n${after === null ? '' : `id: ${source.placeText(after)}\n`}data: {}\n\n`);
    }
  } catch (error) {
    const known = error instanceof SkuaError ? error : null;
    if (known === null || outcomeOf(known.code).status === 500)
      app.world.log.error('subscription failed', { path: call.path, error });
    const problem =
      known ?? new SkuaError('io_error', 'The subscription failed inside the server. Reconnect to resume.');
    yield encodeText(`event: error\ndata: ${problemText(problem, outcomeOf(problem.code).reason)}\n\n`);
  }
}

/**
 * A page as text: one block, but for what is too long to be made at once. The events of a block are let go before it is
 * sent: they are views of what was read around them, and would keep all that for a client that takes nothing.
 */
function* textOf<Place>(
  { events, checkpoints }: SubscriptionPage<Place>,
  { share, idOf, placeText }: Source<Place>,
  redactions: RedactionView,
): Generator<Uint8Array, void, undefined> {
  // Some may have been redacted while lists of access were read, or the client took what came before.
  const at = (place: number): StoredEvent | undefined => {
    const read = events[place];
    return read === undefined ? undefined : redactions.shown(read);
  };
  let i = 0;
  let said = 0;
  const block = (out: JsonBytes) => {
    for (; ; i++) {
      for (; said < checkpoints.length && checkpoints[said]!.behind <= i; said++)
        out.text(`event: checkpoint\nid: ${placeText(checkpoints[said]!.after)}\ndata: {}\n\n`);
      const event = at(i);
      if (event === undefined || !isOnePiece(event)) return;
      out.text(`id: ${idOf(event)}\ndata: `);
      writeLine(out, event);
      out.text('\n\n');
    }
  };
  for (;;) {
    const bytes = written(block);
    const isLast = i === events.length;
    if (isLast) {
      events.length = 0;
      share?.resize(bytes.length);
    }
    if (bytes.length > 0) yield bytes;
    if (isLast) return;
    const large = at(i++)!;
    const out = new JsonBytes();
    out.text(`id: ${idOf(large)}\ndata: `);
    for (const pieces = writeLinePieces(out, large); pieces.next().done !== true;) yield out.take();
    out.text('\n\n');
    yield out.take();
  }
}
