import * as http2 from 'node:http2';
import type {
  ServerHttp2Stream,
  ServerOptions as SessionOptions,
  ServerHttp2Session,
  IncomingHttpHeaders,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { addressGroup } from '../../core/base/address-group.ts';
import { SharedLimit } from '../../core/base/shared-limit.ts';
import { STATUS } from '../../handlers/grpc/call.ts';
import type { GrpcEnding } from '../../handlers/grpc/call.ts';
import type { Grpc } from '../../handlers/grpc.ts';
import { CallLimits } from '../http/call-limits.ts';
import type { CallLimitOptions, CountedCall } from '../http/call-limits.ts';
import { connectionAddress } from '../http/client-address.ts';
import type { Http2Parts, Http2Side } from '../http/server.ts';
import { Beginnings } from './beginnings.ts';
import type { Beginner } from './beginnings.ts';
import { isGrpc, trailersOf } from './grpc-headers.ts';
import { StreamCall } from './stream-call.ts';
import { SpareBlocks } from './spare-blocks.ts';
import type { CallWatch } from './watch.ts';

/** Connections that have no room to begin are looked at again after so long. */
const NO_ROOM_MS = 5;
/** Calls under way on one connection, of which each takes some kilobytes; a client learns of it and waits. */
const STREAMS_MAX = 128;
/**
 * A call whose client sends nothing of its first message for so long while it is waited for is ended; behind that
 * message a client may be silent for hours.
 */
const FIRST_MESSAGE_MS = 10_000;
/**
 * Calls that are not read on at a time, of all callers: the library holds up to 192 KiB of each, a window and a buffer
 * of its own.
 */
const PAUSED_MAX = 1_024;
/** Names and values of the headers of a call, in bytes, and how many: the same as over HTTP/1.1. */
const HEADER_BYTES_MAX = 32_768;
const HEADER_PAIRS_MAX = 128;
/**
 * Longer headers are kept as long as their call, and count: so many bytes of them may be there for all callers, whose
 * addresses share them.
 */
const HEADERS_FREE_BYTES = 2_048;
const HEADERS_BYTES_MAX = 67_108_864;
/** What a client may send ahead on one stream, in bytes. */
const STREAM_WINDOW_BYTES = 131_072;
/** And on a connection, all streams together. */
const CONNECTION_WINDOW_BYTES = 1_048_576;
/**
 * What a connection may make the library hold, in megabytes: headers, frames that wait, answers to pings and settings.
 */
const SESSION_MEGABYTES_MAX = 10;
/**
 * Streams that are reset: so many at once, and so many a second from then on; a connection with more of them is closed.
 */
const RESETS_BURST = 1_000;
const RESETS_PER_SECOND = 33;
/** Frames that break the rules, and streams beyond the limit: a connection with more of them is closed. */
const INVALID_FRAMES_MAX = 100;
const REJECTED_STREAMS_MAX = 100;

const OPTIONS: SessionOptions = {
  maxSessionMemory: SESSION_MEGABYTES_MAX,
  maxHeaderListPairs: HEADER_PAIRS_MAX,
  maxSessionInvalidFrames: INVALID_FRAMES_MAX,
  maxSessionRejectedStreams: REJECTED_STREAMS_MAX,
  streamResetBurst: RESETS_BURST,
  streamResetRate: RESETS_PER_SECOND,
  settings: {
    maxConcurrentStreams: STREAMS_MAX,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxHeaderListSize: HEADER_BYTES_MAX,
    enablePush: false,
  },
};

/** Connections are looked at so many times within an interval of KeepAliveInterval. */
const LOOKS = 4;
const LOOK_MS_MAX = 5_000;

const BUSY: GrpcEnding = { status: STATUS.unavailable, message: 'Server Is Too Busy', trailers: {} };
const NOT_READY: GrpcEnding = { status: STATUS.unavailable, message: 'Server Is Not Ready', trailers: {} };

export interface GrpcOptions {
  /** Answers calls, as they come. */
  readonly grpc: Grpc;
  readonly log: Log;
  readonly meter?: Meter;
  readonly watches?: readonly CallWatch[];
  /**
   * A connection from which nothing comes for so long is asked whether it lives (option KeepAliveInterval), and has so
   * long to answer (KeepAliveTimeout).
   */
  readonly keepAliveIntervalMs?: number;
  readonly keepAliveTimeoutMs?: number;
  /** Left out, the usual ones. */
  readonly limits?: CallLimitOptions & {
    readonly pausedMax?: number;
    readonly firstMessageMs?: number;
    readonly headersBytesMax?: number;
    readonly waitingMax?: number;
  };
}

interface Connection extends Beginner {
  readonly session: ServerHttp2Session;
  readonly socket: Socket;
  /** By what its calls count until their callers are known. */
  readonly address: string;
  readonly calls: Set<StreamCall>;
  /** What is no gRPC. */
  readonly requests: Map<ServerHttp2Stream, CountedCall>;
  /** Bytes that had come when it was looked at last, and when that had changed. */
  heardBytes: number;
  heardMs: number;
  /** Since when an answer to a ping is waited for; null for none. */
  askedMs: number | null;
  /** The time for it was over when it was looked at last. */
  isLate: boolean;
}

/** A connection that has not begun. */
interface Taken {
  readonly socket: Socket;
  readonly address: string;
}

/** The connections that speak HTTP/2: calls of gRPC, and what else comes over them, which is plain HTTP. */
export function http2Side(options: GrpcOptions): (parts: Http2Parts) => Http2Side {
  return (parts) => new Connections(options, parts);
}

class Connections implements Http2Side {
  readonly #options: GrpcOptions;
  readonly #parts: Http2Parts;
  readonly #serving: ConstructorParameters<typeof StreamCall>[5];
  readonly #intervalMs: number;
  readonly #timeoutMs: number;
  readonly #firstMessageMs: number;
  readonly #limits: CallLimits;
  readonly #headers: SharedLimit;
  readonly #beginnings: Beginnings;
  /** Connections that have come in this turn of the process, and in those before it. */
  readonly #taken: Taken[] = [];
  readonly #connections = new Set<Connection>();
  #looking: NodeJS.Timeout | undefined;
  /** Of calls whose end is waited for. */
  readonly #closing = new Map<StreamCall, () => void>();
  #isStopping = false;

  constructor(options: GrpcOptions, parts: Http2Parts) {
    this.#options = options;
    this.#parts = parts;
    const {
      pausedMax = PAUSED_MAX,
      firstMessageMs = FIRST_MESSAGE_MS,
      headersBytesMax = HEADERS_BYTES_MAX,
      waitingMax,
      ...limits
    } = options.limits ?? {};
    this.#limits = new CallLimits(limits);
    this.#headers = new SharedLimit(headersBytesMax);
    this.#beginnings = new Beginnings(waitingMax);
    this.#firstMessageMs = firstMessageMs;
    this.#serving = {
      paused: new SharedLimit(pausedMax),
      flow: parts.flow,
      spares: new SpareBlocks(),
      guard: parts.guard,
      watches: options.watches ?? [],
      requestMs: parts.requestMs,
    };
    this.#intervalMs = options.keepAliveIntervalMs ?? 10_000;
    this.#timeoutMs = options.keepAliveTimeoutMs ?? 10_000;
  }

  take(socket: Socket): void {
    if (!this.#isStopping)
      this.#looking ??= setInterval(
        () => this.#look(),
        Math.min(this.#intervalMs, this.#timeoutMs, LOOK_MS_MAX) / LOOKS,
      ).unref();
    this.#taken.push({ socket, address: addressGroup(connectionAddress(socket)) });
    if (this.#taken.length === 1) setImmediate(() => this.#takeNext());
  }

  /**
   * What its client has sent comes in one read, up to as many streams as a connection may have: it stays unread until
   * there is room for so many of its address.
   */
  #takeNext(): void {
    const at = this.#taken.findIndex(
      ({ socket, address }) => socket.destroyed || this.#beginnings.hasRoom(address, STREAMS_MAX),
    );
    if (at >= 0) {
      const [{ socket, address }] = this.#taken.splice(at, 1) as [Taken];
      if (!socket.destroyed) this.#parts.guard.run(socket, () => this.#take(socket, address));
    }
    if (this.#taken.length === 0) return;
    if (at >= 0) setImmediate(() => this.#takeNext());
    else setTimeout(() => this.#takeNext(), NO_ROOM_MS);
  }

  #take(socket: Socket, address: string): void {
    // As a server of HTTP/1.1 lets a connection be, half open: without this, one that its client has closed at once
    // would stay until a ping is not answered.
    socket.allowHalfOpen = false;
    const session = http2.performServerHandshake(socket, OPTIONS) as ServerHttp2Session;
    const connection: Connection = {
      session,
      socket,
      address,
      refusedInRow: 0,
      calls: new Set(),
      requests: new Map(),
      heardBytes: 0,
      heardMs: performance.now(),
      askedMs: null,
      isLate: false,
    };
    this.#connections.add(connection);
    this.#parts.guard.session(session, socket);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, fields: string[]) =>
      this.#stream(connection, stream, headers, fields),
    );
    // What breaks the rules ends the connection; the library tells the client.
    session.on('error', (error: Error) => {
      this.#options.log.debug('an HTTP/2 connection failed', { address: socket.remoteAddress, reason: error.message });
      // Until it is written, a trace holds what was called: here the library's own session, which for want of a
      // client's ACK of its settings would keep session and error for ever.
      error.stack = error.message;
    });
    session.on('close', () => {
      this.#connections.delete(connection);
      this.#beginnings.forget(connection);
    });
    if (this.#isStopping) session.close();
  }

  async stop(graceMs: number): Promise<boolean> {
    this.#isStopping = true;
    clearInterval(this.#looking);
    this.#beginnings.stop();
    for (const { socket, address } of this.#taken.splice(0)) if (!socket.destroyed) this.#take(socket, address);
    const ended = [...this.#connections].map((connection) => {
      const closed = new Promise<void>((resolve) => {
        connection.session.once('close', resolve);
      });
      for (const call of connection.calls) call.stop();
      connection.session.close();
      return closed;
    });
    let isForced = false;
    const grace = setTimeout(() => {
      isForced = true;
      for (const connection of this.#connections) cutOff(connection);
    }, graceMs);
    await Promise.all(ended);
    clearTimeout(grace);
    return !isForced;
  }

  async endCalls(graceMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    const calls = [...this.#connections].flatMap((connection) => [...connection.calls]);
    const closed = Promise.all(
      calls.map(
        (call) =>
          new Promise<void>((resolve) => {
            this.#closing.set(call, resolve);
            call.stop();
          }),
      ),
    );
    // What answers a ping has read all that came before it.
    const told = () =>
      Promise.all(
        [...this.#connections].map(
          ({ session }) =>
            new Promise<void>((resolve) => {
              if (session.destroyed || !session.ping(() => resolve())) resolve();
            }),
        ),
      );
    await Promise.race([closed.then(told), late]);
    clearTimeout(timer);
    for (const call of calls) this.#closing.delete(call);
  }

  #stream(
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    fields: readonly string[],
  ): void {
    if (this.#beginnings.tryBegin(connection)) this.#begin(connection, stream, headers, fields);
    else if (
      !this.#beginnings.wait(connection, () =>
        this.#parts.guard.run(stream, () => this.#begin(connection, stream, headers, fields)),
      )
    ) {
      // Clients do it again over another connection. What has come over this one goes on to its end; the library passes
      // over what else comes.
      stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
      if (connection.session.closed) return;
      connection.session.close();
      this.#options.meter?.count('eventstore_http_connections_refused_total', 1, { limit: 'streams' });
      this.#options.log.debug('an HTTP/2 connection was asked to close: too many streams of its address are waiting', {
        address: connection.address,
      });
    }
  }

  #begin(
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    fields: readonly string[],
  ): void {
    // Reset in the same breath.
    if (stream.destroyed || stream.closed) return;
    const isCall = headers[':method'] === 'POST' && isGrpc(headers['content-type']);
    const { address } = connection;
    const headersBytes = lengthOf(fields);
    const isLong = headersBytes > HEADERS_FREE_BYTES;
    const counted =
      (isCall && this.#isStopping) || (isLong && !this.#headers.admits(address, headersBytes))
        ? null
        : this.#limits.begin(address);
    if (counted === null) {
      connection.refusedInRow++;
      stream.respond(
        isCall
          ? trailersOf(this.#isStopping ? NOT_READY : BUSY, {
              ':status': '200',
              'content-type': 'application/grpc',
              'content-length': '0',
            })
          : { ':status': 503, 'content-length': '0' },
        { endStream: true },
      );
      return;
    }
    if (isLong) this.#headers.take(address, headersBytes);
    // Before anything that could fail.
    stream.on('close', () => {
      counted.end();
      noteEnd(connection, stream);
      if (isLong) this.#headers.giveBack(address, headersBytes);
    });
    if (isCall) this.#call(connection, stream, counted, headers[':path'] ?? '', fields);
    else this.#request(connection, stream, counted, headers, fields);
  }

  #call(
    { socket, calls }: Connection,
    stream: ServerHttp2Stream,
    counted: CountedCall,
    path: string,
    fields: readonly string[],
  ): void {
    const call = new StreamCall(stream, socket, counted, path, fields, this.#serving, () => {
      calls.delete(call);
      this.#closing.get(call)?.();
    });
    calls.add(call);
    this.#parts.guard.run(stream, () =>
      this.#options.grpc(call).then(
        (ending) => call.finish(ending),
        (error: unknown) => {
          this.#options.log.error('a gRPC call failed', { path, error });
          call.finish({ status: STATUS.unknown, message: 'Exception was thrown by handler.', trailers: {} });
        },
      ),
    );
  }

  #request(
    { socket, requests }: Connection,
    stream: ServerHttp2Stream,
    counted: CountedCall,
    headers: IncomingHttpHeaders,
    fields: readonly string[],
  ): void {
    requests.set(stream, counted);
    stream.on('close', () => requests.delete(stream));
    this.#parts.respond(stream, socket, counted, headers, fields);
  }

  /** Finds the clients that are gone, and those that do not send what they owe. */
  #look(): void {
    const nowMs = performance.now();
    const owedMs = nowMs - this.#serving.requestMs;
    const firstMs = nowMs - this.#firstMessageMs;
    for (const connection of this.#connections)
      this.#parts.guard.run(connection.socket, () => this.#lookAt(connection, nowMs, owedMs, firstMs));
  }

  #lookAt(connection: Connection, nowMs: number, owedMs: number, firstMs: number): void {
    for (const call of connection.calls) if (call.owesSince(owedMs, firstMs)) call.tooSlow();
    for (const [stream, { sinceMs }] of connection.requests)
      if (sinceMs < owedMs && !stream.readableEnded) stream.close(http2.constants.NGHTTP2_CANCEL);
    const { session, socket } = connection;
    if (session.destroyed) {
      // It broke the rules, and what the library still tells it may never be taken.
      if (connection.isLate) cutOff(connection);
      connection.isLate = true;
    } else if (socket.bytesRead !== connection.heardBytes) {
      connection.heardBytes = socket.bytesRead;
      connection.heardMs = nowMs;
      connection.askedMs = null;
    } else if (connection.askedMs !== null) {
      if (nowMs - connection.askedMs < this.#timeoutMs) return;
      // An answer that came while this process stood still is read before the next look.
      if (connection.isLate) cutOff(connection);
      connection.isLate = true;
    } else if (nowMs - connection.heardMs >= this.#intervalMs) {
      connection.askedMs = nowMs;
      connection.isLate = false;
      session.ping((error) => {
        if (error !== null) return;
        connection.heardMs = performance.now();
        connection.askedMs = null;
      });
    }
  }
}

/** An answer that is a failure alone is a refusal; none at all, as the client has gone, tells nothing. */
function noteEnd(connection: Connection, { sentHeaders }: ServerHttp2Stream): void {
  if (sentHeaders === undefined) return;
  const isRefused = Number(sentHeaders[':status']) >= 400 || (sentHeaders['grpc-status'] ?? '0') !== '0';
  connection.refusedInRow = isRefused ? connection.refusedInRow + 1 : 0;
}

function lengthOf(fields: readonly string[]): number {
  let length = 0;
  for (const text of fields) length += text.length;
  return length;
}

/**
 * The library waits for what it still writes before it lets go of the connection, which over TLS may be for ever once
 * the client has reset it.
 */
function cutOff({ session, socket }: Connection): void {
  session.destroy();
  socket.destroy();
}
