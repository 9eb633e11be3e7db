import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { failureOf, Passing, shownFailure, unexpected, unreachable } from './client-errors.ts';

/** Requests: to one address after the other, again where they failed in passing, and no longer than they may take. */

/** Attempts at one request, beside one at each further address, as long as its failures are of the kind that passes. */
const ATTEMPTS_MAX = 5;
/**
 * Milliseconds before the second round of addresses, where no server says how long; twice as many before each further
 * one.
 */
const PAUSE_MS = 100;
/** Longest wait between two attempts in milliseconds, whatever a server says. */
export const PAUSE_MS_MAX = 10_000;
/** Characters of the longest reply that is taken as a whole: metadata of 4 MiB, each character escaped. */
const REPLY_LENGTH_MAX = 33_554_432;

export interface Timing {
  /** Resolves early when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** From 0 to 1. */
  random(): number;
}

interface CallerOptions {
  /** Where to send to, and what goes along to there. */
  readonly places: readonly { readonly root: string; readonly headers: Readonly<Record<string, string>> }[];
  readonly timeoutMs: number;
  readonly send: (url: string, init: RequestInit) => Promise<Response>;
  readonly timing: Timing;
}

export interface Asked {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export class Caller {
  readonly #options: CallerOptions;
  readonly #closing = new AbortController();
  /** Of the address that is asked next. */
  #place = 0;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  get timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  close(): void {
    this.#closing.abort();
  }

  /** Throws `store_closed`, or the signal's reason. */
  check(signal: AbortSignal | undefined): void {
    if (this.#closing.signal.aborted) throw closed();
    signal?.throwIfAborted();
  }

  /** One attempt, which has to be ended. */
  begin(asked: Asked, signal: AbortSignal | undefined): Attempt {
    const { places, send, timeoutMs } = this.#options;
    const place = this.#place;
    const { root, headers } = places[place]!;
    return new Attempt(
      place,
      (init) => send(`${root}${asked.path}`, { ...init, headers: { ...asked.headers, ...headers } }),
      asked,
      timeoutMs,
      [this.#closing.signal, ...(signal === undefined ? [] : [signal])],
    );
  }

  /** What an error is for the caller, unless the same may be tried again. */
  passingOf(error: unknown, signal: AbortSignal | undefined): Passing {
    this.check(signal);
    if (error instanceof Passing) return error;
    if (isSkuaError(error)) throw error;
    if (error instanceof SyntaxError) throw unexpected(200, error.message);
    return unreachable(`The server did not answer, or broke off (${reasonOf(error)})`, error);
  }

  /** Waits before the next attempt, the first of which was number 1. Throws the failure where there were too many. */
  async pause(
    { place }: Attempt,
    passing: Passing,
    attempt: number,
    signal: AbortSignal | undefined,
    attemptsMax: number = ATTEMPTS_MAX,
  ): Promise<void> {
    const { length } = this.#options.places;
    if (attempt >= attemptsMax + length - 1) throw shownFailure(passing);
    // Calls that fail together at one address all go on to the next.
    if (this.#place === place) this.#place = (place + 1) % length;
    const round = Math.floor(attempt / length);
    // Another address may answer at once.
    if (attempt % length !== 0) return;
    const ms = Math.min(passing.waitMs ?? PAUSE_MS * 2 ** Math.min(round - 1, 20), PAUSE_MS_MAX);
    await this.sleep(ms, signal);
  }

  /** Up to half as long again, so that clients that were cut off together don't come back together. */
  async sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { sleep, random } = this.#options.timing;
    await sleep(ms * (1 + random() / 2), AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]));
    this.check(signal);
  }

  /** The reply as a whole, of the first attempt that did not fail in passing. */
  async whole(
    asked: Asked,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly text: string; readonly headers: Headers }> {
    for (let attempt = 1; ; attempt++) {
      this.check(signal);
      const one = this.begin(asked, signal);
      try {
        const { headers } = await one.reply();
        return { text: await one.text(), headers };
      } catch (error) {
        await this.pause(one, this.passingOf(error, signal), attempt, signal);
      } finally {
        one.end();
      }
    }
  }

  /** The same as a JSON value. */
  async value<T>(asked: Asked, signal: AbortSignal | undefined): Promise<T> {
    const { text } = await this.whole({ ...asked, headers: { accept: 'application/json', ...asked.headers } }, signal);
    return jsonOf(text) as T;
  }
}

/** Throws `unexpected_reply`. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unexpected(200, 'it is no JSON');
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

function closed(): SkuaError {
  return new SkuaError('store_closed', 'The client is closed: connect again.');
}

/** A request that is sent once, and what comes of it, piece by piece. */
export class Attempt {
  /** Of its address. */
  readonly place: number;
  readonly #send: (init: RequestInit) => Promise<Response>;
  readonly #asked: Asked;
  readonly #ending = new AbortController();
  readonly #signal: AbortSignal;
  #timeoutMs: number;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;

  constructor(
    place: number,
    send: (init: RequestInit) => Promise<Response>,
    asked: Asked,
    timeoutMs: number,
    signals: readonly AbortSignal[],
  ) {
    this.place = place;
    this.#send = send;
    this.#asked = asked;
    this.#timeoutMs = timeoutMs;
    this.#signal = AbortSignal.any([this.#ending.signal, ...signals]);
  }

  /** The reply, where it is a success; else throws what it says. From then on it may be silent for `timeoutMs`. */
  async reply(timeoutMs: number = this.#timeoutMs): Promise<Response> {
    const { method, body } = this.#asked;
    const response = await this.#inTime(
      this.#send({
        method,
        ...(body !== undefined && { body }),
        signal: this.#signal,
        // A login is for the addresses that it was given for.
        redirect: 'manual',
      }),
    );
    this.#reader = response.body?.getReader() ?? null;
    if (!response.ok) throw failureOf(response.status, response.headers, await this.text());
    this.#timeoutMs = timeoutMs;
    return response;
  }

  /** The next piece of the reply; null at its end. */
  async next(): Promise<Uint8Array | null> {
    if (this.#reader === null) return null;
    const { done, value } = await this.#inTime(this.#reader.read());
    return done ? null : value;
  }

  async text(): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for (let piece = await this.next(); piece !== null; piece = await this.next()) {
      text += decoder.decode(piece, { stream: true });
      if (text.length > REPLY_LENGTH_MAX) throw unexpected(200, `it is longer than ${REPLY_LENGTH_MAX} characters`);
    }
    return text + decoder.decode();
  }

  /** Lets go of the connection. */
  end(): void {
    this.#reader?.cancel().catch(() => {});
    this.#ending.abort();
  }

  /** Also where whoever sends the requests does not heed signals. */
  #inTime<T>(work: Promise<T>): Promise<T> {
    const signal = this.#signal;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => stop(() => reject(unreachable(`The server was silent for ${this.#timeoutMs} ms`))),
        this.#timeoutMs,
      );
      const onAbort = (): void => stop(() => reject(signal.reason as Error));
      function stop(then: () => void): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        then();
      }
      signal.addEventListener('abort', onAbort);
      work.then(
        (value) => stop(() => resolve(value)),
        (error: unknown) => stop(() => reject(error as Error)),
      );
      if (signal.aborted) onAbort();
    });
  }
}
