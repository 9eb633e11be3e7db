import { StreamGone, VersionConflict } from './emmett-connection.ts';
import type { Connection, Expected, IncomingEvent } from './emmett-connection.ts';
import { SkuaEventStoreError } from './emmett-errors.ts';
import type { LineDocument, PageDocument } from '../../handlers/documents/streams.ts';
import type { ProblemDocument } from '../../handlers/documents/problem.ts';
import type { HttpSource } from './api.ts';

/** Longest time of one request in milliseconds, unless the caller says otherwise. */
const REQUEST_MS_MAX = 30_000;
/** Attempts at one request, the first one included, as long as its failures are of the kind that passes. */
const ATTEMPTS_MAX = 5;
/**
 * Milliseconds before the second attempt, where the reply does not say how long; twice as many before each further one.
 */
const PAUSE_MS = 100;
/** Longest wait between two attempts in milliseconds, whatever the reply says. */
const PAUSE_MS_MAX = 5_000;
/** Events that are asked for at once. */
const PAGE_EVENTS_MAX = 1_000;
/** Characters of a reply that is no problem document which an error shows. */
const SHOWN_LENGTH_MAX = 200;

/**
 * Statuses that pass: too many calls, a function that failed or took too long, a server that is not ready or whose
 * storage does not answer.
 */
const PASSING = new Set([429, 502, 503, 504]);

/** What HTTP says of a stream that is expected. */
const EXPECTED = { none: '-1', any: '-2', exists: '-4' } as const;

/** A failure that passes: the same request may be sent again. */
class Passing extends Error {
  readonly failure: SkuaEventStoreError;
  /** Milliseconds to wait for, if the reply says so. */
  readonly waitMs: number | null;

  constructor(failure: SkuaEventStoreError, waitMs: number | null) {
    super(failure.message, { cause: failure });
    this.failure = failure;
    this.waitMs = waitMs;
  }
}

/**
 * Over HTTP with `fetch`, as functions are reached; they have no other door. A request that failed in passing is sent
 * again: reads change nothing, and an append is known by its ids, so that it is written once.
 */
export function httpConnection(source: HttpSource): Connection {
  const call = callerOf(source);
  const pathOf = (stream: string): string => `/streams/${encodeURIComponent(stream)}`;

  /** One page; how many events it had, or null where there is no such stream. */
  async function readPage(
    stream: string,
    from: bigint,
    count: number,
    each: (event: IncomingEvent) => void,
  ): Promise<number | null> {
    const reply = await call('GET', `${pathOf(stream)}?from=${from}&limit=${count}`, {
      accept: 'application/x-ndjson',
      'es-resolvelinktos': 'false',
    });
    if (!reply.ok) {
      if (await isAbsent(reply)) return null;
      throw await failureOf(reply);
    }
    let seen = 0;
    for await (const text of linesOf(reply)) {
      const line = JSON.parse(text) as LineDocument;
      each({
        id: line.eventId,
        type: line.eventType,
        version: BigInt(line.eventNumber),
        position: BigInt(line.position.split('/', 1)[0]!),
        data: line.isJson ? jsonOf(line.data) : line.isRedacted ? undefined : await bytesOf(stream, line.eventNumber),
        metadata: jsonOf(line.metaData),
      });
      seen++;
    }
    return seen;
  }

  /** Lines have no bytes in them that are no JSON. Undefined where the event is gone meanwhile. */
  async function bytesOf(stream: string, version: number): Promise<Uint8Array | undefined> {
    const reply = await call('GET', `${pathOf(stream)}/${version}`, {
      accept: 'application/octet-stream',
      'es-resolvelinktos': 'false',
    });
    if (reply.ok) return new Uint8Array(await reply.arrayBuffer());
    if (await isAbsent(reply)) return undefined;
    throw await failureOf(reply);
  }

  return {
    async read(stream, from, limit, each) {
      let next = from;
      let left = limit;
      let page = PAGE_EVENTS_MAX;
      let isThere = false;
      const isTheirs = { now: false };
      const deliver = (event: IncomingEvent): void => {
        isTheirs.now = true;
        each(event);
        isTheirs.now = false;
        next = event.version + 1n;
        if (left !== undefined) left--;
      };
      for (let attempt = 1; left !== 0n;) {
        const count = left === undefined || left > page ? page : Number(left);
        const begun = next;
        try {
          const seen = await readPage(stream, next, count, deliver);
          // Deleted between two pages: what was read is what there was.
          if (seen === null) return isThere;
          isThere = true;
          if (seen < count) return true;
          attempt = 1;
        } catch (error) {
          if (isTheirs.now) throw error;
          const { code } = error as SkuaEventStoreError;
          if (code === 'reply_too_large' && page > 1) {
            page = Math.ceil(Math.min(page, count) / 2);
            continue;
          }
          const passing = passingOf(error);
          if (passing === null) throw error;
          if (next > begun) attempt = 1;
          if (attempt >= ATTEMPTS_MAX) throw passing.failure;
          await pause(passing, attempt++);
        }
      }
      return true;
    },

    async lastVersion(stream) {
      return again(async () => {
        const reply = await call('GET', `${pathOf(stream)}/head/backward/1?embed=none`, {
          accept: 'application/vnd.eventstore.atom+json',
          'es-resolvelinktos': 'false',
        });
        if (!reply.ok) {
          if (await isAbsent(reply)) return null;
          throw await failureOf(reply);
        }
        // The page of the head has one.
        const { eTag } = (await reply.json()) as PageDocument;
        return BigInt(eTag!.split(';', 1)[0]!);
      });
    },

    async append(stream, events, expected) {
      const body = JSON.stringify(
        events.map(({ id, type, data, metadata }) => ({ eventId: id, eventType: type, data, metadata })),
      );
      const headers = {
        'content-type': 'application/vnd.eventstore.events+json',
        'es-expectedversion': wireOf(expected),
      };
      return again(async () => {
        const reply = await call('POST', pathOf(stream), headers, body);
        if (reply.status !== 201) throw await failureOf(reply);
        await reply.body?.cancel();
        const first = /\/(\d+)$/.exec(reply.headers.get('location') ?? '')?.[1];
        if (first === undefined) throw unexpected(reply, 'it names no event');
        return { version: BigInt(first) + BigInt(events.length) - 1n, position: null };
      });
    },
  };
}

function wireOf(expected: Expected): string {
  return typeof expected === 'bigint' ? String(expected) : EXPECTED[expected];
}

type Call = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
) => Promise<Response>;

function callerOf({ url, credentials, timeoutMs = REQUEST_MS_MAX, fetch: send = fetch }: HttpSource): Call {
  const base = new URL(url);
  const { username, password } = credentials ?? {
    username: decodeURIComponent(base.username),
    password: decodeURIComponent(base.password),
  };
  const authorization =
    username === '' ? {} : { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
  const root = `${base.origin}${base.pathname.endsWith('/') ? base.pathname.slice(0, -1) : base.pathname}`;
  return async (method, path, headers, body) => {
    try {
      return await send(`${root}${path}`, {
        method,
        headers: { ...headers, ...authorization },
        ...(body !== undefined && { body }),
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (error) {
      throw new Passing(unreachable(error), null);
    }
  };
}

/** Sends a request until it is answered, or failed in passing too often. */
async function again<T>(request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request();
    } catch (error) {
      const passing = passingOf(error);
      if (passing === null) throw error;
      if (attempt >= ATTEMPTS_MAX) throw passing.failure;
      await pause(passing, attempt);
    }
  }
}

async function pause({ waitMs }: Passing, attempt: number): Promise<void> {
  const ms = Math.min(waitMs ?? PAUSE_MS * 2 ** (attempt - 1), PAUSE_MS_MAX);
  if (ms > 0)
    await new Promise((resolve) => {
      setTimeout(resolve, ms);
    });
}

/**
 * The failure, if it passes: those that replies say, and those of a connection that breaks off or takes too long in the
 * middle of a reply, which `fetch` has errors of its own for.
 */
function passingOf(error: unknown): Passing | null {
  if (error instanceof Passing) return error;
  const name = error instanceof Error ? error.name : '';
  return error instanceof TypeError || name === 'TimeoutError' || name === 'AbortError'
    ? new Passing(unreachable(error), null)
    : null;
}

function unreachable(cause: unknown): SkuaEventStoreError {
  return new SkuaEventStoreError(
    'unreachable',
    503,
    'The server did not answer. It is not known whether a write succeeded: repeat it with the same messageId in its metadata.',
    cause,
  );
}

function unexpected({ status }: Response, why: string): SkuaEventStoreError {
  return new SkuaEventStoreError(
    'unexpected_reply',
    502,
    `The reply with status ${status} is not from an event store: ${why}. Check the address.`,
  );
}

/**
 * Whether the reply says that there is no such stream, or event; any other 404 is of something else that listens there.
 */
async function isAbsent(reply: Response): Promise<boolean> {
  return reply.status === 404 && /^(?:stream|event)_not_found$/.test((await problemOf(reply.clone())).code);
}

/** What a reply that is no success is for the caller. */
async function failureOf(reply: Response): Promise<Error> {
  const { code, detail } = await problemOf(reply);
  const failure =
    code === ''
      ? unexpected(reply, detail === '' ? 'it has no text' : detail)
      : new SkuaEventStoreError(code, reply.status, detail);
  if (code === 'wrong_expected_version') {
    const current = BigInt(reply.headers.get('es-currentversion') ?? -1);
    return new VersionConflict(current < 0n ? null : current, failure);
  }
  if (code === 'stream_deleted') return new StreamGone(failure);
  if (!PASSING.has(reply.status) || code === 'too_many_failures') return failure;
  const seconds = reply.headers.get('retry-after');
  return new Passing(failure, seconds !== null && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1_000 : null);
}

async function problemOf(reply: Response): Promise<Record<'code' | 'detail', string>> {
  const text = await reply.text();
  try {
    const { code, detail } = JSON.parse(text) as Partial<ProblemDocument>;
    if (typeof code === 'string') return { code, detail: String(detail) };
  } catch {
    // No problem document.
  }
  return { code: '', detail: text.slice(0, SHOWN_LENGTH_MAX) };
}

/** Lines of a reply as they come. */
async function* linesOf({ body }: Response): AsyncGenerator<string> {
  let rest = '';
  for await (const text of body!.pipeThrough(new TextDecoderStream())) {
    rest += text;
    if (!text.includes('\n')) continue;
    const lines = rest.split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== '') yield rest;
}

/** The JSON value, or the bytes of a text that is none. */
function jsonOf(text: string | null): unknown {
  if (text === null || text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return new TextEncoder().encode(text);
  }
}
