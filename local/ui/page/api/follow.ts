import { send } from './client.ts';
import { connection } from './connection.ts';
import { ApiError, errorOf } from './problem.ts';

/** Long replies: a stream as it grows (server-sent events), and all that it holds (NDJSON). */

/** What follows is told, in the order of the stream. */
export interface Follower<Event> {
  /** Events that came together. The next ones are read when this has returned (or its promise resolved), so that a flood waits at the node. */
  events(events: readonly Event[]): void | Promise<void>;
  /** The end of the history is reached; what comes now is new. `id` names the place. */
  caughtUp?(id: string): void;
  /** A filter has been as far as this without finding anything. */
  checkpoint?(id: string): void;
  /** It goes on by itself after errors that pass; `null` when it does. Others end it. */
  failed?(error: ApiError | null, isEnd: boolean): void;
}

const RETRY_MS = 1_000;
const RETRY_MS_MAX = 15_000;

/**
 * Follows what a path such as `/streams/orders?from=end` sends, until the signal ends it; resolves then. Interrupted, it goes on behind
 * the last event that was seen.
 */
export async function follow<Event>(path: string, follower: Follower<Event>, signal: AbortSignal): Promise<void> {
  let seen: string | null = null;
  for (let wait = RETRY_MS; !signal.aborted; wait = Math.min(wait * 2, RETRY_MS_MAX)) {
    try {
      const response = await send('GET', path, undefined, { signal, timeoutMs: FOREVER_MS, headers: { accept: 'text/event-stream', ...(seen !== null && { 'last-event-id': seen }) } });
      follower.failed?.(null, false);
      for await (const messages of messagesOf(response)) {
        wait = RETRY_MS;
        const events: Event[] = [];
        for (const { event, id, data } of messages) {
          if (event === 'error') throw new ApiError(codeOf(data), detailOf(data));
          if (id !== '') seen = id;
          if (event === '') events.push(JSON.parse(data) as Event);
          else {
            if (events.length > 0) await follower.events(events.splice(0));
            if (event === 'caught-up') follower.caughtUp?.(id);
            else if (event === 'checkpoint') follower.checkpoint?.(id);
          }
        }
        if (events.length > 0) await follower.events(events);
        if (signal.aborted) return;
      }
    } catch (thrown) {
      if (signal.aborted) return;
      const error = thrown instanceof TypeError ? new ApiError('unreachable', 'The connection was cut.') : errorOf(thrown);
      const isEnd = !error.isPassing;
      follower.failed?.(error, isEnd);
      if (isEnd) return;
    }
    await pause(wait, signal);
    while (connection.peek() !== 'ok' && !signal.aborted) await pause(RETRY_MS, signal);
  }
}

/** Longer than anybody looks at a page; setTimeout takes no more. */
const FOREVER_MS = 2 ** 31 - 1;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

interface Message {
  /** Empty for what is an event of the stream. */
  readonly event: string;
  readonly id: string;
  readonly data: string;
}

/** The messages of server-sent events, as many at a time as came together. */
async function* messagesOf(response: Response): AsyncGenerator<Message[]> {
  let event = '';
  let id = '';
  let data: string[] = [];
  for await (const lines of linesOf(response)) {
    const messages: Message[] = [];
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) messages.push({ event: event === 'message' ? '' : event, id, data: data.join('\n') });
        event = '';
        data = [];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
      if (name === 'data') data.push(value);
      else if (name === 'event') event = value;
      else if (name === 'id') id = value;
    }
    if (messages.length > 0) yield messages;
  }
}

/** The lines of a body, as many at a time as came together; the last one may lack its end. */
async function* linesOf(response: Response): AsyncGenerator<string[]> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  // Pieces of a line that has not ended are put together once: an event may have megabytes.
  let begun: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = value.split('\n');
      begun.push(parts[0]!);
      if (parts.length === 1) continue;
      const lines = [begun.join(''), ...parts.slice(1, -1)];
      begun = [parts.at(-1)!];
      yield lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
    }
    const last = begun.join('');
    if (last !== '') yield [last];
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** What a path holds, line by line of NDJSON, as many at a time as came together. Leaving the loop ends the request. */
export async function* lines<T>(path: string, signal?: AbortSignal, headers: Readonly<Record<string, string>> = {}): AsyncGenerator<T[]> {
  const response = await send('GET', path, undefined, { timeoutMs: FOREVER_MS, headers: { accept: 'application/x-ndjson', ...headers }, ...(signal !== undefined && { signal }) });
  for await (const some of linesOf(response)) yield some.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
}

function codeOf(text: string): string {
  return memberOf(text, 'code') ?? 'failed';
}

function detailOf(text: string): string {
  return memberOf(text, 'detail') ?? memberOf(text, 'title') ?? 'The node ended it.';
}

function memberOf(text: string, name: string): string | null {
  try {
    const value = (JSON.parse(text) as Record<string, unknown>)[name];
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}
