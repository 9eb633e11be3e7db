import { createServer, STATUS_CODES } from 'node:http';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server as TlsServer } from 'node:https';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Log } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { startOption } from '../cli/started-by.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { CountedCall } from './call-limits.ts';
import { CONNECTIONS_MAX, limitConnections } from './connection-limits.ts';
import type { ConnectionLimitParts } from './connection-limits.ts';
import { Flow } from './flow.ts';
import { divide } from './first-bytes.ts';
import { Guard, guardedMessages } from './guard.ts';
import type { Owner } from './guard.ts';
import { asHttp1 } from './over-http2.ts';
import { Pipelines } from './request-pipeline.ts';
import { refuseMalformed, REQUEST_LINE_BYTES_MAX, sendReply } from './send-reply.ts';
import { awaitsContinue, Ending, LocalRequest, REQUEST_TARGET } from './http-request.ts';
import type { Serving } from './http-request.ts';
import { serverContext } from '../tls/certificate-set.ts';
import type { CertificateSet } from '../tls/certificate-set.ts';
import { guardHandshakes } from '../tls/handshakes.ts';
import type { Handshakes } from '../tls/handshakes.ts';

const PORT_MAX = 65_535;
/** Longest head of a request in bytes; beyond it 431. */
const HEAD_BYTES_MAX = 32_768;
/** Idle connections are kept this long: longer than proxies keep theirs, so that those close first. */
const KEEP_ALIVE_MS = 75_000;
/** While the server stops, connections that have become idle are closed this often. */
const CLOSE_IDLE_MS = 20;

interface Patience {
  /** A client that has not sent its headers, or its whole request, after this long is cut off with 408. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** How often that is looked at. */
  readonly checkMs: number;
  /** A TLS handshake that takes longer is cut off. */
  readonly handshakeMs: number;
}

const PATIENCE: Patience = { headersMs: 20_000, requestMs: 120_000, checkMs: 5_000, handshakeMs: 10_000 };

export type Fetch = (request: Request) => Response | Promise<Response>;

export interface HttpServerOptions {
  readonly hostname: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly fetch: Fetch;
  readonly log: Log;
  /** HTTPS with these certificates; left out, plain HTTP. `formerNamesMs`: as for `guardHandshakes`. */
  readonly tls?: { readonly certificates: CertificateSet; readonly formerNamesMs?: number };
  readonly patience?: Partial<Patience>;
  /** False: neither the server nor its connections keep the process alive. Default true. */
  readonly keepsProcess?: boolean;
  /** Left out, connections are bounded together only. */
  readonly limits?: ConnectionLimitParts;
  /** What bounds the bytes of requests and replies; left out, one with the usual limits. */
  readonly flow?: Flow;
  /** What bounds pipelined requests; left out, one with the usual limit. */
  readonly pipelines?: Pipelines;
  /** Takes the connections that speak HTTP/2; left out, none are taken. */
  readonly http2?: (parts: Http2Parts) => Http2Side;
}

/** What the HTTP/2 side has of the server. */
export interface Http2Parts {
  readonly flow: Flow;
  readonly guard: Guard;
  /** How long a request may take to arrive. */
  readonly requestMs: number;
  /** Answers a request as if it had come over HTTP/1.1. `fields` are names and values of its headers in turn. */
  respond(
    stream: ServerHttp2Stream,
    socket: Socket,
    counted: CountedCall,
    headers: IncomingHttpHeaders,
    fields: readonly string[],
  ): void;
}

export interface Http2Side {
  /** A connection that has said that it speaks HTTP/2, with its first bytes unread. */
  take(socket: Socket): void;
  /**
   * Ends the calls that are under way, as a stop does, and waits at most `graceMs` until all clients know of it. Their
   * connections stay.
   */
  endCalls(graceMs: number): Promise<void>;
  /** As for the server. */
  stop(graceMs: number): Promise<boolean>;
}

export interface HttpServer {
  readonly url: string;
  readonly port: number;
  /** Open connections. */
  connections(): Promise<number>;
  /** New connections see these certificates from now on; those that exist go on as they began. Only with `tls`. */
  setCertificates(certificates: CertificateSet): void;
  /**
   * Aborts the signal of every request that is under way, as `stop` does, and waits at most `graceMs` until calls of
   * gRPC are over and their clients know of it. The server and its connections go on.
   */
  interrupt(graceMs: number): Promise<void>;
  /**
   * Takes no new connections, aborts the signal of every request (which ends long polls and subscriptions), and waits
   * for the requests under way, at most `graceMs`. True when all ended by themselves.
   */
  stop(graceMs: number): Promise<boolean>;
}

/** Starts to listen. Rejects with a CommandError when the address can't be used. */
export async function startServer(options: HttpServerOptions): Promise<HttpServer> {
  const ending = new Ending();
  const flow = options.flow ?? new Flow();
  const guard = new Guard({
    log: options.log,
    meter: options.limits?.meter ?? silentMeter,
    clock: options.limits?.clock ?? systemClock,
  });
  const { server, handshakes } = create(options, guard);
  const serving: Serving = { ending, flow, guard };
  if (options.limits === undefined) server.maxConnections = CONNECTIONS_MAX;
  else limitConnections(server, handshakes === null, options.limits);
  if (options.keepsProcess === false) {
    server.unref();
    server.on('connection', (socket: Socket) => socket.unref());
  }
  const fresh = new FreshConnections(server, handshakes === null ? 'connection' : 'secureConnection');
  const respondTo = (owner: Owner, message: IncomingMessage, reply: ServerResponse) =>
    guard.run(owner, () => answer(message, reply, options, serving));
  const begin = (message: IncomingMessage, reply: ServerResponse) => respondTo(message.socket, message, reply);
  const pipelines = options.pipelines ?? new Pipelines();
  const respond = (message: IncomingMessage, reply: ServerResponse) => {
    fresh.used(message.socket);
    pipelines.inTurn(message, reply, begin);
  };
  server.on('request', respond);
  server.on('checkContinue', (message: IncomingMessage, reply: ServerResponse) => {
    awaitsContinue(message);
    respond(message, reply);
  });
  // Node.js would answer these at once, past the limits of what is pipelined.
  server.on('checkExpectation', respond);
  server.on('clientError', refuseMalformed);
  const { headersMs, requestMs } = { ...PATIENCE, ...options.patience };
  const http2 =
    options.http2?.({
      flow,
      requestMs,
      guard,
      respond: (stream, socket, counted, headers, fields) => {
        const { message, reply, awaits } = asHttp1(stream, socket, counted, headers, fields);
        if (awaits) awaitsContinue(message);
        respondTo(stream, message, reply);
      },
    }) ?? null;
  if (http2 !== null) {
    divide(server, handshakes === null, {
      patienceMs: headersMs,
      soon: (socket, run) => {
        setImmediate(() => guard.run(socket, run));
      },
      late: (socket) => refuseMalformed(Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket),
      http2: (socket) => {
        fresh.used(socket);
        http2.take(socket);
      },
    });
  }
  await listen(server, options);
  const { address, family, port } = server.address() as AddressInfo;
  const url = `${handshakes === null ? 'http' : 'https'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  return {
    url,
    port,
    connections: () =>
      new Promise((resolve) => {
        server.getConnections((error, count) => resolve(error === null ? count : 0));
      }),
    setCertificates: (certificates) => {
      if (handshakes === null) throw new Error('A server without TLS has no certificates to set.');
      handshakes.setCertificates(certificates);
    },
    interrupt: async (graceMs) => {
      ending.interrupt();
      await http2?.endCalls(graceMs);
    },
    stop: (graceMs) => {
      const stopped = Promise.all([stop(server, ending, graceMs), http2?.stop(graceMs)]).then((all) => {
        flow.stalls.close();
        return all.every((isClean) => isClean !== false);
      });
      handshakes?.abort();
      fresh.abort();
      return stopped;
    },
  };
}

function create(
  { tls, patience, log, http2 }: HttpServerOptions,
  guard: Guard,
): { server: Server; handshakes: Handshakes | null } {
  const { headersMs, requestMs, checkMs, handshakeMs } = { ...PATIENCE, ...patience };
  const limits: ServerOptions = {
    maxHeaderSize: HEAD_BYTES_MAX,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: checkMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
    requireHostHeader: false,
    joinDuplicateHeaders: true,
    ...guardedMessages(guard),
  };
  if (tls === undefined) {
    const server = createServer(limits);
    guard.server(server);
    return { server, handshakes: null };
  }
  // A client without a certificate, or with one that proves nothing, is accepted all the same: credentials may follow.
  const server: TlsServer = createTlsServer({
    ...limits,
    ...serverContext(tls.certificates),
    handshakeTimeout: handshakeMs,
    rejectUnauthorized: false,
    ...(http2 !== undefined && { ALPNProtocols: ['h2', 'http/1.1'] }),
  });
  guard.server(server);
  return { server, handshakes: guardHandshakes(server, tls.certificates, log, tls.formerNamesMs) };
}

async function answer(
  message: IncomingMessage,
  reply: ServerResponse,
  options: HttpServerOptions,
  serving: Serving,
): Promise<void> {
  let request: LocalRequest | null = null;
  try {
    const target = message.url!;
    if (target.length + message.method!.length + ' HTTP/1.1'.length + 1 > REQUEST_LINE_BYTES_MAX)
      return refuse(reply, 414);
    if (!REQUEST_TARGET.test(target) || hasNoHost(message)) return refuse(reply, 400);
    if (expectsElse(message)) return refuse(reply, 417);
    request = new LocalRequest(message, reply, serving);
    const response = await options.fetch(request as unknown as Request);
    request.letGoOfBody();
    await sendReply(reply, response, request);
  } catch (error) {
    options.log.error('request failed', { method: message.method, path: message.url, error });
    if (reply.headersSent) reply.destroy();
    else refuse(reply, 500);
  } finally {
    request?.letGoOfBody();
  }
}

/** HTTP/1.1 demands one (RFC 9112 section 3.2). */
function hasNoHost({ httpVersionMajor, httpVersionMinor, headers }: IncomingMessage): boolean {
  return httpVersionMajor === 1 && httpVersionMinor === 1 && headers.host === undefined;
}

/** Something else than `100 Continue`, which no client can be sure of getting. */
function expectsElse({ httpVersionMajor, httpVersionMinor, headers: { expect } }: IncomingMessage): boolean {
  return (
    expect !== undefined &&
    httpVersionMajor === 1 &&
    httpVersionMinor === 1 &&
    !/(?:^|\W)100-continue(?:$|\W)/i.test(expect)
  );
}

function refuse(reply: ServerResponse, status: number): void {
  reply.writeHead(status, STATUS_CODES[status], [
    'content-length',
    '0',
    'connection',
    'close',
    'x-content-type-options',
    'nosniff',
  ]);
  reply.end();
}

function listen(server: Server, { hostname, port }: HttpServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, hostname, port)));
    server.listen({ host: hostname, port, backlog: 1_024 }, resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, hostname: string, port: number): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new CommandError(
        'port_in_use',
        `Port ${port} of ${hostname} is in use by another process. Stop that one, or choose another port: \`${startOption(`--node-port ${port < PORT_MAX ? port + 1 : 0}`)}\` (0 takes any free one).`,
        EXIT.unreachable,
      );
    case 'EACCES':
      return new CommandError(
        'port_denied',
        `The system does not allow this user to listen on port ${port}. Choose a port above 1023: \`${startOption('--node-port 2113')}\`.`,
        EXIT.unreachable,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new CommandError(
        'address_not_available',
        `${hostname} is not an address of this machine. Choose another one with --node-ip.`,
        EXIT.unreachable,
      );
    default:
      return new CommandError(
        'listen_failed',
        `Listening on ${hostname}:${port} failed: ${error.message}. Choose another address with --node-ip and --node-port.`,
        EXIT.unreachable,
      );
  }
}

async function stop(server: Server, ending: Ending, graceMs: number): Promise<boolean> {
  let isForced = false;
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  ending.abort();
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_MS);
  const grace = setTimeout(() => {
    isForced = true;
    server.closeAllConnections();
  }, graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(grace);
  return !isForced;
}

/**
 * Connections on which no request has begun, such as those that browsers and balancers open in advance. Node.js does
 * not count them as idle, so that each would hold up the end of the server.
 */
class FreshConnections {
  readonly #sockets = new Set<Socket>();

  constructor(server: Server, event: 'connection' | 'secureConnection') {
    server.on(event, (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** A request has begun. */
  used(socket: Socket): void {
    this.#sockets.delete(socket);
  }

  abort(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
