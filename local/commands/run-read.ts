import { EventEmitter } from 'node:events';
import type { LineDocument } from '../../handlers/documents/streams.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { coloursFor, EXIT, line, shown } from '../../infra/runtime/io.ts';
import type { ExitCode, Io, Output } from '../../infra/runtime/io.ts';
import { systemClock } from '../../infra/system-clock.ts';
import type { Input } from '../cli/command.ts';
import { NodeClient } from '../cli/node-client.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { failureIn, Passing } from '../client/client-errors.ts';
import { messagesOf } from '../client/client-lines.ts';
import { linesIn, linesReply, olderOf, pathOf, queryOf, tokenOf } from './found-events.ts';
import type { readOptions } from './read-options.ts';

/** Events that are asked for at once, going backward. */
const PAGE_EVENTS = 200;
/** Before a subscription that ended is begun again where it was. */
const AGAIN_MS = 1_000;
/** Characters of data that a line shows. */
const DATA_CHARACTERS = 200;

const LINES = 'application/x-ndjson';
const LIVE = 'text/event-stream';

export async function runRead(
  { options, positionals }: Input<typeof readOptions>,
  io: Io,
  againMs = AGAIN_MS,
): Promise<ExitCode> {
  const { from, backward, follow, limit, json } = options;
  const stream = positionals[0] ?? null;
  const query = queryOf(options);
  const isAll = stream === null || stream === '$all';
  if (stream === null && query.size === 0)
    throw new UsageError('Say what to read: a STREAM, $all, or --category, --type, --tag or --correlation.');
  if (!isAll && query.size > 0)
    throw new UsageError('--category, --type, --tag and --correlation select from all streams: leave STREAM out.');
  if (backward && follow) throw new UsageError('--follow waits for newer events and --backward shows older: give one.');
  if (from === 'end' && !follow) throw new UsageError('--from end shows new events only: add --follow.');
  const node = NodeClient.of(options, io.env);
  const interrupt = listenForInterrupt('', io);
  const closed = new AbortController();
  whenClosed(io.stdout, () => closed.abort());
  const signal = AbortSignal.any([interrupt.signal, closed.signal]);
  const asked: Asked = { node, path: pathOf(stream), query, from, isAll, limit, signal };
  const show = json ? (text: string) => line(io.stdout, text) : plainly(io, isAll);
  try {
    const events = follow ? followed(asked, io, againMs) : backward ? newestFirst(asked) : oldestFirst(asked);
    let count = 0;
    for await (const text of events) {
      show(text);
      if (++count === limit) break;
    }
    if (count === 0 && !json) line(io.stderr, 'No events match.');
  } catch (error) {
    // Ctrl+C is how one ends what goes on for ever, and a reader that closed its end has had enough.
    if (!signal.aborted || (interrupt.signal.aborted && !follow)) throw error;
  } finally {
    interrupt.release();
  }
  return EXIT.ok;
}

interface Asked {
  readonly node: NodeClient;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly from: string | null;
  readonly isAll: boolean;
  readonly limit: number;
  readonly signal: AbortSignal;
}

function begunAt(query: URLSearchParams, from: string | null): URLSearchParams {
  const whole = new URLSearchParams(query);
  if (from !== null) whole.append('from', from);
  return whole;
}

async function* oldestFirst({ node, path, query, from, limit, signal }: Asked): AsyncGenerator<string> {
  const whole = begunAt(query, from);
  whole.append('limit', String(limit));
  yield* linesIn(await linesReply(node, `${path}?${whole}`, LINES, signal));
}

async function* newestFirst({ node, path, query, from, isAll, limit, signal }: Asked): AsyncGenerator<string> {
  const search = query.size === 0 ? '' : `?${query}`;
  let place = from === null ? 'head' : isAll ? tokenOf(from) : from;
  for (const count = Math.min(limit, PAGE_EVENTS); ;) {
    const reply = await linesReply(
      node,
      `${path}/${encodeURIComponent(place)}/backward/${count}${search}`,
      LINES,
      signal,
    );
    yield* linesIn(reply);
    const older = olderOf(reply);
    if (older === null) return;
    place = older;
  }
}

/** A subscription, begun again where it was when the node ended it, or itself ended and is started again. */
async function* followed({ node, path, query, from, signal }: Asked, io: Io, againMs: number): AsyncGenerator<string> {
  const whole = begunAt(query, from);
  let seen = '';
  let hasBegun = false;
  let isTold = false;
  for (;;) {
    try {
      const headers = seen === '' ? {} : { 'last-event-id': seen };
      const reply = await linesReply(node, `${path}?${whole}`, LIVE, signal, headers);
      hasBegun = true;
      isTold = false;
      for await (const { event, id, data } of messagesOf(linesIn(reply))) {
        if (event === 'error') throw endOf(data);
        if (event === '' && data !== '') yield data;
        if (id !== '') seen = id;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof CommandError) {
        if (!hasBegun || error.exitCode !== EXIT.unreachable) throw error;
        if (!isTold) line(io.stderr, `${error.message} It is asked again until Ctrl+C.`);
        isTold = true;
      }
    }
    await systemClock.sleep(againMs, signal);
    if (signal.aborted) return;
  }
}

function endOf(text: string): Passing | CommandError {
  const failure = failureIn(text);
  return failure instanceof Passing ? failure : new CommandError(failure.code, failure.message, EXIT.failed);
}

function plainly(io: Io, isAll: boolean): (text: string) => void {
  const { bold, dim } = coloursFor(io.stdout, io.env);
  return (text) => {
    const event = JSON.parse(text) as LineDocument;
    const { position, updated, positionEventNumber, positionStreamId, eventType, data } = event;
    const place = shown(`${positionEventNumber}@${positionStreamId}`);
    const start = data === null ? '' : shown(data.slice(0, DATA_CHARACTERS).replaceAll(/\s+/g, ' '));
    const cut = data !== null && data.length > DATA_CHARACTERS ? '…' : '';
    line(
      io.stdout,
      `${isAll ? `${dim(position)}  ` : ''}${dim(updated)}  ${place}  ${bold(shown(eventType))}  ${start}${cut}`.trimEnd(),
    );
  };
}

/** `skua read … | head`: a pipe whose reader has gone says so once. */
function whenClosed(output: Output, then: () => void): void {
  const raw = output.behind ?? output;
  if (raw instanceof EventEmitter) raw.once('error', then);
}
