import { randomUUID } from 'node:crypto';
import * as http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../core/ports/clock.ts';
import { HTTP_TIMEOUT_SECONDS, TICK_PERIOD_SECONDS, TICK_TIMEOUT_SECONDS } from '../../infra/aws/function-limits.ts';
import { functionOf } from '../../infra/aws/paths.ts';
import type { HttpFunctionName } from '../../infra/aws/paths.ts';
import { bundled } from '../../infra/runtime/version.ts';
import { FunctionPool } from './function-pool.ts';
import type { Outcome } from './runtime-interface.ts';

export type FunctionName = HttpFunctionName | 'tick';
export const FUNCTION_NAMES: readonly FunctionName[] = ['webhook', 'admin', 'streams', 'tick'];

const HTTP_TIMEOUT_MS = HTTP_TIMEOUT_SECONDS * 1_000;
const TICK_TIMEOUT_MS = TICK_TIMEOUT_SECONDS * 1_000;
const TICK_PERIOD_MS = TICK_PERIOD_SECONDS * 1_000;

interface ServeOptions {
  /** Path of the module of a function. */
  readonly moduleOf: (name: FunctionName) => string;
  readonly port: number;
  /** Environment of the functions. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Processes of one function at most. */
  readonly instancesMax: number;
  readonly clock: Clock;
  /** Gets what functions write, and what goes wrong with them. */
  readonly onOutput: (name: FunctionName, text: string) => void;
  /** False: the tick runs only when it is asked for. */
  readonly ticks: boolean;
}

export interface ServedFunctions {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the functions on the loopback address, each request as the event that the platform would make of it. */
export async function serveFunctions(options: ServeOptions): Promise<ServedFunctions> {
  const served = new Served(options);
  await served.listen();
  return served;
}

class Served implements ServedFunctions {
  readonly #options: ServeOptions;
  readonly #pools: Readonly<Record<FunctionName, FunctionPool>>;
  readonly #server: http.Server;
  readonly #stopping = new AbortController();
  #ticking: Promise<Outcome | null> | null = null;
  #timer: Promise<void> = Promise.resolve();

  constructor(options: ServeOptions) {
    this.#options = options;
    const poolOf = (name: FunctionName) => {
      const module = options.moduleOf(name);
      return new FunctionPool(
        {
          name,
          folder: path.dirname(module),
          command: [process.execPath, '--enable-source-maps', bootstrapFile(), module, name],
          onOutput: (text) => options.onOutput(name, text),
          env: options.env,
          // Two ticks do no harm, but nothing is gained by a second one either.
        },
        name === 'tick' ? 1 : options.instancesMax,
      );
    };
    this.#pools = {
      webhook: poolOf('webhook'),
      admin: poolOf('admin'),
      streams: poolOf('streams'),
      tick: poolOf('tick'),
    };
    this.#server = http.createServer((request, reply) => {
      this.#serve(request, reply).catch((error: unknown) => {
        options.onOutput(functionOf(request.url ?? '/'), `${String(error)}\n`);
        reply.destroy();
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#options.port, '127.0.0.1', resolve);
    });
    if (this.#options.ticks) this.#timer = this.#tickAgainAndAgain();
  }

  async #serve(request: http.IncomingMessage, reply: http.ServerResponse): Promise<void> {
    const requestPath = (request.url ?? '/').split('?', 1)[0]!;
    if (requestPath === '/tick') return this.#serveTick(request, reply);
    const body = await bodyOf(request);
    if (body === null) return sendProblem(reply, 413, 'The body is larger than the platform accepts.');
    const outcome = await this.#pools[functionOf(requestPath)].invoke(
      httpEventOf(request, body, this.#options.clock.nowMs()),
      HTTP_TIMEOUT_MS,
    );
    if (outcome?.kind === 'result') return sendResult(reply, outcome.value);
    this.#complain(functionOf(requestPath), outcome);
    // What a function URL answers.
    if (outcome === null) sendProblem(reply, 429, 'Too many calls wait for this function.');
    else
      sendProblem(
        reply,
        outcome.kind === 'timed-out' ? 504 : 502,
        'The function did not answer. See its output for the reason.',
      );
  }

  async #serveTick(request: http.IncomingMessage, reply: http.ServerResponse): Promise<void> {
    if (request.method !== 'POST') return sendProblem(reply, 405, 'POST runs a tick.');
    request.resume();
    const outcome = await this.tick();
    if (outcome?.kind === 'result')
      sendResult(reply, {
        statusCode: 200,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(outcome.value),
      });
    else sendProblem(reply, 502, 'The tick failed. See its output for the reason.');
  }

  tick(): Promise<Outcome | null> {
    this.#ticking ??= this.#tick().finally(() => {
      this.#ticking = null;
    });
    return this.#ticking;
  }

  async #tick(): Promise<Outcome | null> {
    const outcome = await this.#pools.tick.invoke(scheduledEvent(this.#options.clock.nowMs()), TICK_TIMEOUT_MS);
    if (outcome?.kind !== 'result') this.#complain('tick', outcome);
    return outcome;
  }

  async #tickAgainAndAgain(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#options.clock.sleep(TICK_PERIOD_MS, signal);
      if (!signal.aborted) await this.tick();
    }
  }

  #complain(name: FunctionName, outcome: Outcome | null): void {
    if (this.#stopping.signal.aborted) return;
    const what =
      outcome === null
        ? 'too many calls wait'
        : outcome.kind === 'error'
          ? `${outcome.type}: ${outcome.message}`
          : outcome.kind === 'crashed'
            ? `its process ended with ${outcome.reason}`
            : 'it took too long';
    this.#options.onOutput(name, `The function ${name} failed: ${what}\n`);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    await Promise.all(FUNCTION_NAMES.map((name) => this.#pools[name].close()));
    await this.#timer;
  }
}

function sendProblem(reply: http.ServerResponse, status: number, detail: string): void {
  sendResult(reply, {
    statusCode: status,
    headers: { 'content-type': 'application/problem+json; charset=utf-8' },
    body: JSON.stringify({ title: http.STATUS_CODES[status], detail }),
  });
}

/** Beside this file, and in an installed package beside what this is bundled in, where the build puts a copy. */
function bootstrapFile(): string {
  return fileURLToPath(bundled('./function-bootstrap.mjs') ?? new URL('bootstrap.mjs', import.meta.url));
}

/** Largest body in bytes that a function URL takes. */
const EVENT_BODY_BYTES_MAX = 6 * 1_048_576;

/** Null for a body beyond the limit. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length <= EVENT_BODY_BYTES_MAX) pieces.push(piece);
  }
  return length > EVENT_BODY_BYTES_MAX ? null : Buffer.concat(pieces);
}

/** Text goes as it is, everything else as Base64; the platform decides by the content type too. */
const TEXT = /^(?:text\/|application\/(?:json|javascript|xml|x-www-form-urlencoded)(?:;|$))/i;

/** The event of a function URL (payload format 2.0) for a request. */
function httpEventOf(request: IncomingMessage, body: Buffer, nowMs: number) {
  const url = request.url ?? '/';
  const [rawPath, rawQueryString] = url.includes('?')
    ? [url.slice(0, url.indexOf('?')), url.slice(url.indexOf('?') + 1)]
    : [url, ''];
  const [host, port] = (request.headers.host ?? 'localhost').split(':');
  const { cookie, ...given } = request.headers;
  // The platform ends TLS and says where the request went; here it went to this port.
  const headers: Record<string, string> = { 'x-forwarded-proto': 'http', 'x-forwarded-port': port ?? '80' };
  for (const [name, value] of Object.entries(given))
    if (value !== undefined && !(name in headers)) headers[name] = Array.isArray(value) ? value.join(',') : value;
  const isText = TEXT.test(headers['content-type'] ?? '');
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath,
    rawQueryString,
    headers,
    ...(cookie !== undefined && { cookies: cookie.split(/;\s*/) }),
    ...(rawQueryString !== '' && { queryStringParameters: Object.fromEntries(new URLSearchParams(rawQueryString)) }),
    requestContext: {
      accountId: 'anonymous',
      apiId: 'local',
      domainName: host ?? 'localhost',
      domainPrefix: 'local',
      requestId: randomUUID(),
      routeKey: '$default',
      stage: '$default',
      http: {
        method: request.method ?? 'GET',
        path: rawPath,
        protocol: 'HTTP/1.1',
        sourceIp: request.socket.remoteAddress ?? '127.0.0.1',
        userAgent: headers['user-agent'] ?? '',
      },
      time: new Date(nowMs).toISOString(),
      timeEpoch: nowMs,
    },
    ...(body.length > 0 && { body: body.toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: body.length > 0 && !isText,
  };
}

/** The event with which a schedule calls the tick. */
function scheduledEvent(nowMs: number) {
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: '000000000000',
    time: new Date(nowMs).toISOString(),
    region: 'local',
    resources: ['arn:aws:events:local:000000000000:rule/skua-tick'],
    detail: {},
  };
}

interface HttpResult {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  readonly cookies?: readonly string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

/** Sends what a function gave back, by the platform's rules. */
function sendResult(reply: ServerResponse, value: unknown): void {
  const { statusCode = 200, headers = {}, cookies, body = '', isBase64Encoded = false } = (value ?? {}) as HttpResult;
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8');
  for (const [name, header] of Object.entries(headers)) reply.setHeader(name, String(header));
  if (cookies !== undefined) reply.setHeader('set-cookie', cookies);
  if (statusCode !== 204 && statusCode !== 304) reply.setHeader('content-length', bytes.length);
  reply.writeHead(statusCode);
  reply.end(reply.req.method === 'HEAD' ? undefined : bytes);
}
