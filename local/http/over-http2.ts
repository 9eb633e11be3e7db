import type { IncomingHttpHeaders as Headers, IncomingMessage, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { CountedCall } from './call-limits.ts';

/** Headers that are about a connection of HTTP/1.1 (RFC 9113 section 8.2.2). */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

interface AsHttp1 {
  readonly message: IncomingMessage;
  readonly reply: ServerResponse;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly awaits: boolean;
}

/**
 * A request over HTTP/2 and its reply in the shape of those of Node's HTTP/1.1 server, so that one code answers both.
 * The library has such classes, too: theirs put a stand-in in the place of the socket, by which the code can't find
 * what is known of a connection, and keep the first of headers that came twice.
 */
export function asHttp1(
  stream: ServerHttp2Stream,
  socket: Socket,
  counted: CountedCall,
  headers: IncomingHttpHeaders,
  fields: readonly string[],
): AsHttp1 {
  const message = new Message(stream, socket, counted, headers, fields);
  return {
    message: message as unknown as IncomingMessage,
    reply: new StreamReply(stream, message) as unknown as ServerResponse,
    awaits: message.headers['expect']?.toLowerCase() === '100-continue',
  };
}

class Message {
  readonly socket: Socket;
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Headers;
  readonly #stream: ServerHttp2Stream;
  readonly #counted: CountedCall;

  constructor(
    stream: ServerHttp2Stream,
    socket: Socket,
    counted: CountedCall,
    headers: IncomingHttpHeaders,
    fields: readonly string[],
  ) {
    this.#stream = stream;
    this.#counted = counted;
    this.socket = socket;
    this.method = headers[':method'] ?? '';
    this.url = headers[':path'] ?? '';
    const { raw, joined } = withoutPseudo(fields);
    const authority = headers[':authority'];
    this.rawHeaders = authority === undefined || joined['host'] !== undefined ? raw : ['host', authority, ...raw];
    this.headers = authority === undefined ? joined : { ...joined, host: authority };
  }

  get destroyed(): boolean {
    return this.#stream.destroyed;
  }
  get complete(): boolean {
    return this.#stream.readableEnded;
  }
  /** Names the caller: the request counts for that caller from now on. Errors: `too_busy`. */
  calledBy(caller: string): void {
    this.#counted.calledBy(caller);
  }
  /** Ends this request, and no other of the connection. */
  cutOff(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }
  pause(): void {
    this.#stream.pause();
  }
  resume(): void {
    this.#stream.resume();
  }

  on(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.on(event === 'error' ? 'aborted' : event, listener);
    return this;
  }
}

/** Without what HTTP/2 puts in the place of the request line; what came more than once is joined as over HTTP/1.1. */
function withoutPseudo(fields: readonly string[]): { raw: string[]; joined: Headers } {
  const raw: string[] = [];
  const joined: Record<string, string> = Object.create(null) as Record<string, string>;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!;
    if (name.startsWith(':')) continue;
    const value = fields[i + 1]!;
    raw.push(name, value);
    const before = joined[name];
    joined[name] = before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`;
  }
  return { raw, joined };
}

class StreamReply {
  readonly req: Message;
  readonly #stream: ServerHttp2Stream;
  #head: OutgoingHttpHeaders | null = null;

  constructor(stream: ServerHttp2Stream, message: Message) {
    this.#stream = stream;
    this.req = message;
  }

  get socket(): Socket | null {
    return this.#stream.destroyed ? null : this.req.socket;
  }
  get destroyed(): boolean {
    return this.#stream.destroyed;
  }
  get headersSent(): boolean {
    return this.#head !== null;
  }
  get writableFinished(): boolean {
    return this.#stream.writableFinished;
  }

  /** Names and values in turn. HTTP/2 has no words behind the number of a status. */
  writeHead(status: number, _text: string, headers: readonly string[]): void {
    const head: Record<string, string | string[]> = { ':status': String(status) };
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!.toLowerCase();
      if (OF_CONNECTION.has(name)) continue;
      const before = head[name];
      head[name] =
        before === undefined ? headers[i + 1]! : [...(Array.isArray(before) ? before : [before]), headers[i + 1]!];
    }
    this.#head = head;
  }

  writeContinue(): void {
    if (this.#canSend) this.#stream.additionalHeaders({ ':status': '100' });
  }

  flushHeaders(): void {
    if (this.#canSend && !this.#stream.headersSent) this.#stream.respond(this.#head!, { endStream: this.#isHead });
  }

  write(piece: Uint8Array): boolean {
    this.flushHeaders();
    return this.#canSend && !this.#isHead ? this.#stream.write(piece) : true;
  }

  end(body?: string | Uint8Array): void {
    const stream = this.#stream;
    if (this.#canSend && !stream.headersSent && (body === undefined || body.length === 0 || this.#isHead))
      stream.respond(this.#head!, { endStream: true });
    else if (this.#canSend) {
      this.flushHeaders();
      stream.end(body);
    }
    // A client that still sends learns that its stream is closed.
    if (!stream.readableEnded) stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR));
  }

  destroy(): void {
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  on(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.on(event, listener);
    return this;
  }

  once(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.once(event, listener);
    return this;
  }

  off(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.off(event, listener);
    return this;
  }

  get #isHead(): boolean {
    return this.req.method === 'HEAD';
  }
  get #canSend(): boolean {
    return !this.#stream.destroyed && !this.#stream.closed;
  }
}
