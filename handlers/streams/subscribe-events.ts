import { SkuaError } from '../../core/base/errors.ts';
import { encodeText } from '../../core/base/text.ts';
import type { AllFilter, AllPosition, StoredEvent, SubscriptionMessage } from '../../core/streams/api.ts';
import { commonHeaders, VARY } from '../http/reply.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Reply } from '../http/context.ts';
import { isOnePiece, positionText, writeLine, writeLinePieces } from './atom-feed.ts';
import { parsePosition } from './event-lines.ts';
import { integer64 } from '../http/http-headers.ts';
import { JsonBytes, written } from '../http/json-bytes.ts';
import { numberText } from '../http/url.ts';
import { outcomeOf, problemText } from '../http/problem-document.ts';
import { checkReader, checkStream, oneWithoutForbidden } from './access.ts';

/**
 * Server-sent events. Each event is an unnamed message (so that `onmessage` gets all types) with its number, or `C/P`
 * in `$all`, as `id`. `?from=` names the first event wanted, here as everywhere (`?from=end`: the first that comes);
 * `Last-Event-ID` the last one that was seen, behind which it goes on. Without either reading starts at the beginning.
 * `event: caught-up` marks the end of the history, and `event: checkpoint` how far a filter has been without finding
 * anything; both have an id, so that a client that comes back does not read all that again. `event: error` carries a
 * problem document and is the last one.
 */

/** A comment keeps idle connections from being cut. */
const IDLE_COMMENT_MS = 15_000;

export async function subscribeToStream(call: Call, app: App, stream: string, resolveLinks: boolean): Promise<Reply> {
  await checkStream(call, app, 'read', stream);
  const after = streamPosition(startOf(call));
  const info = await app.store.streamInfo(stream);
  if (info.isTombstoned) throw new SkuaError('stream_deleted', `Stream '${stream}' is hard-deleted.`, { stream });
  const subscribe = (signal: AbortSignal) =>
    app.store.subscribeToStream(stream, {
      after,
      resolveLinks,
      signal,
      share: app.server.replyShareOf?.(call.request),
    });
  return live<number>(call, app, {
    stream,
    subscribe,
    idOf: (event) => numberText((event.link ?? event).number),
    placeText: numberText,
  });
}

export function subscribeToAll(call: Call, app: App, resolveLinks: boolean, filter: AllFilter | undefined): Reply {
  const { text, isInclusive } = startOf(call);
  const after = text === null ? 'start' : text === 'end' ? 'end' : parsePosition(text);
  const subscribe = (signal: AbortSignal) =>
    app.store.subscribeToAll({
      after,
      isInclusive,
      resolveLinks,
      signal,
      share: app.server.replyShareOf?.(call.request),
      ...(filter && { filter }),
    });
  return live<AllPosition>(call, app, {
    stream: '$all',
    subscribe,
    idOf: positionText,
    placeText: ({ commit, prepare }) => `${commit}/${prepare}`,
  });
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
  /** Whose access list is asked again for each event: it may change while the subscription goes on. */
  readonly stream: string;
  subscribe(signal: AbortSignal): AsyncIterable<SubscriptionMessage<Place>>;
  idOf(event: StoredEvent): string;
  placeText(place: Place): string;
}

function live<Place>(call: Call, app: App, source: Source<Place>): Reply {
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, call.request.signal]);
  const messages = source.subscribe(signal)[Symbol.asyncIterator]();
  let lastSentMs = app.world.clock.monotonicMs();
  /** What has not been sent of the message under way. */
  let rest: Iterator<Uint8Array> | null = null;
  /** The reader has taken everything. */
  let isWaiting = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // What fails here ends the reply.
        comments(controller).catch((error: unknown) => controller.error(error));
      },
      async pull(controller) {
        const piece = rest?.next();
        if (piece !== undefined && piece.done !== true) {
          controller.enqueue(piece.value);
          return;
        }
        rest = null;
        isWaiting = true;
        const text = await nextText(messages, source, call, app);
        isWaiting = false;
        if (signal.aborted) return;
        lastSentMs = app.world.clock.monotonicMs();
        if (text.content.length > 0)
          controller.enqueue(typeof text.content === 'string' ? encodeText(text.content) : text.content);
        rest = text.rest;
        if (text.isLast) {
          ending.abort();
          controller.close();
        }
      },
      async cancel() {
        ending.abort();
        rest = null;
        await messages.return?.();
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
      await messages.return?.();
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

interface Piece {
  readonly content: string | Uint8Array;
  /** Behind the content, of what is too long to be made at once. */
  readonly rest: Iterator<Uint8Array> | null;
  readonly isLast: boolean;
}

/** Behind the `id` of a large event. */
function* restOf(event: StoredEvent): Generator<Uint8Array, void, undefined> {
  const out = new JsonBytes();
  for (const pieces = writeLinePieces(out, event); pieces.next().done !== true;) yield out.take();
  out.text('\n\n');
  yield out.take();
}

async function nextText<Place>(
  messages: AsyncIterator<SubscriptionMessage<Place>>,
  { stream, idOf, placeText }: Source<Place>,
  call: Call,
  app: App,
): Promise<Piece> {
  try {
    const next = await messages.next();
    if (next.done === true) return { content: '', rest: null, isLast: true };
    if (next.value.kind === 'caught-up')
      return {
        content: `event: caught-up\n${next.value.after === null ? '' : `id: ${placeText(next.value.after)}\n`}data: {}\n\n`,
        rest: null,
        isLast: false,
      };
    await checkReader(call, app, stream);
    if (next.value.kind === 'checkpoint')
      return {
        content: `event: checkpoint\nid: ${placeText(next.value.after)}\ndata: {}\n\n`,
        rest: null,
        isLast: false,
      };
    const event = await oneWithoutForbidden(call, app, next.value.event);
    const start = `id: ${idOf(event)}\ndata: `;
    if (!isOnePiece(event)) return { content: start, rest: restOf(event), isLast: false };
    const content = written((out) => {
      out.text(start);
      writeLine(out, event);
      out.text('\n\n');
    });
    return { content, rest: null, isLast: false };
  } catch (error) {
    const known = error instanceof SkuaError ? error : null;
    if (known === null || outcomeOf(known.code).status === 500)
      app.world.log.error('subscription failed', { path: call.path, error });
    const problem =
      known ?? new SkuaError('io_error', 'The subscription failed inside the server. Reconnect to resume.');
    return {
      content: `event: error\ndata: ${problemText(problem, outcomeOf(problem.code).reason)}\n\n`,
      rest: null,
      isLast: true,
    };
  }
}
