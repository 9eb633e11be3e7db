import type { RecordedEvent, SubscribeToAllOptions, SubscribeToStreamOptions } from '../event-store/api.ts';
import { checkedPosition } from '../event-store/given.ts';
import { type Caller, PAUSE_MS_MAX } from './caller.ts';
import { failureIn, unexpected, unreachable } from './client-errors.ts';
import { lineOf, linesOf, type Message, messagesOf, positionOf, recordedLine } from './client-lines.ts';
import { allPath, pathOf, placeText, readHeaders, withQuery } from './client-reading.ts';

/**
 * Subscriptions: server-sent events, of which each says its place by an id. A reply that ends or breaks off is followed
 * by the next, behind the last id that came; that of functions ends whenever it has caught up.
 */

const LIVE = 'text/event-stream';
/** A server that has nothing to say sends a comment every 15 s: one that is silent for longer is gone. */
const SILENT_MS_MAX = 45_000;
/**
 * Attempts in a row without a sign of life, once a subscription has begun: with the longest pauses some fifteen
 * minutes.
 */
const ATTEMPTS_MAX = 100;
/** Milliseconds before a reply that has ended well is followed by the next, unless it says how long. */
const AGAIN_MS = 1_000;

export function followCalled<D, M>(
  caller: Caller,
  options: SubscribeToStreamOptions | SubscribeToAllOptions = {},
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  if (options.stream !== undefined) {
    const { stream, after = 'start' } = options;
    return follow(caller, options, undefined, () => ({
      path: pathOf(stream),
      search: new URLSearchParams(after === 'end' ? { from: after } : {}),
      ...(typeof after === 'number' && { seen: String(after) }),
    }));
  }
  const { after = 'start' } = options;
  return follow(caller, options, options.onCheckpoint, () => {
    const search = new URLSearchParams();
    const path = allPath(options, search);
    const place = placeText(checkedPosition(after));
    if (place === 'end') search.append('from', place);
    return { path, search, ...(place !== 'start' && place !== 'end' && { seen: place }) };
  });
}

interface Beginning {
  readonly path: string;
  readonly search: URLSearchParams;
  /** The id behind which to begin. */
  readonly seen?: string;
}

async function* follow<D, M>(
  caller: Caller,
  options: SubscribeToStreamOptions | SubscribeToAllOptions,
  onCheckpoint: SubscribeToAllOptions['onCheckpoint'],
  beginning: () => Beginning,
): AsyncGenerator<RecordedEvent<D, M>, void, undefined> {
  const { signal, onCaughtUp } = options;
  let isLive = false;
  try {
    for await (const { event, id, data } of messages(caller, options, beginning())) {
      if (event === '' && data !== '') {
        isLive = false;
        yield recordedLine(lineOf(data));
        if (isAborted(signal)) return;
      } else if (event === 'checkpoint' && id !== '') onCheckpoint?.(positionOf(id));
      else if (event === 'caught-up') {
        // The next replies of functions say so again.
        if (!isLive) onCaughtUp?.();
        isLive = true;
      }
    }
  } catch (error) {
    if (!isAborted(signal)) throw error;
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** The messages of one reply after the other. */
async function* messages(
  caller: Caller,
  { resolveLinks = false, signal }: SubscribeToStreamOptions | SubscribeToAllOptions,
  { path, search, seen: first }: Beginning,
): AsyncGenerator<Message, void, undefined> {
  let seen = first;
  let failed = 0;
  let hasBegun = false;
  for (;;) {
    caller.check(signal);
    const attempt = caller.begin(
      {
        method: 'GET',
        path: withQuery(path, search),
        headers: { ...readHeaders(LIVE, resolveLinks), ...(seen !== undefined && { 'last-event-id': seen }) },
      },
      signal,
    );
    try {
      const { status, headers } = await attempt.reply(Math.max(caller.timeoutMs, SILENT_MS_MAX));
      if (headers.get('content-type')?.startsWith(LIVE) !== true) throw unexpected(status, 'it is no subscription');
      let waitMs = AGAIN_MS;
      let isEmpty = true;
      for await (const message of messagesOf(linesOf(attempt))) {
        const { event, id, data, retryMs } = message;
        if (retryMs !== null) waitMs = Math.min(retryMs, PAUSE_MS_MAX);
        if (event === 'error') throw failureIn(data);
        if (event === '' && id === '' && data === '') continue;
        failed = 0;
        hasBegun = true;
        isEmpty = false;
        if (id !== '') seen = id;
        yield message;
      }
      if (isEmpty) throw unreachable('The reply ended without a message');
      await caller.sleep(waitMs, signal);
    } catch (error) {
      await caller.pause(
        attempt,
        caller.passingOf(error, signal),
        ++failed,
        signal,
        hasBegun ? ATTEMPTS_MAX : undefined,
      );
    } finally {
      attempt.end();
    }
  }
}
