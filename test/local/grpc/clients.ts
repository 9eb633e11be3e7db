import * as http2 from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { onTestFinished } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import { GrpcError, OK } from '../../../handlers/grpc/call.ts';
import type { Ending, GrpcTransport } from '../../../handlers/grpc/call.ts';
import { http2Side } from '../../../local/grpc/connections.ts';
import type { GrpcOptions } from '../../../local/grpc/connections.ts';
import type { HttpServer, HttpServerOptions } from '../../../local/http/server.ts';
import { serve } from '../tls/clients.ts';

export const PATH = '/parcels.Tracking/Follow';

export function framed(text: string | Uint8Array): Buffer {
  const bytes = Buffer.from(text);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/**
 * A server whose calls are answered by `answer`; what that throws ends the call. `requestMs` is the patience with what
 * is sent over HTTP/2 alone: with a short one for the beginnings of connections, too, a machine that stands still would
 * decide.
 */
export function serveGrpc(
  answer: (call: GrpcTransport) => Promise<Ending | void> | Ending | void,
  options: Partial<HttpServerOptions> = {},
  { requestMs, ...grpc }: Partial<GrpcOptions> & { readonly requestMs?: number } = {},
): Promise<HttpServer> {
  const run = async (call: GrpcTransport): Promise<Ending> => {
    try {
      return (await answer(call)) ?? OK;
    } catch (error) {
      return error instanceof GrpcError ? error.ending : { status: 2, message: String(error), trailers: {} };
    }
  };
  const side = http2Side({ log: silentLog, grpc: run, ...grpc });
  return serve({ http2: (parts) => side({ ...parts, ...(requestMs !== undefined && { requestMs }) }), ...options });
}

/** All messages of a client, sent back one by one. */
export async function echo(call: GrpcTransport): Promise<void> {
  for (let message = await call.read(); message !== null; message = await call.read()) await call.send(framed(message));
}

export function connect(
  { url }: Pick<HttpServer, 'url'>,
  options: http2.SecureClientSessionOptions = {},
): ClientHttp2Session {
  const session = http2.connect(url, options);
  session.on('error', () => {});
  onTestFinished(() => {
    session.destroy();
  });
  return session;
}

/** One call as a client sees it. */
export class ClientCall {
  readonly stream: ClientHttp2Stream;
  headers: IncomingHttpHeaders | null = null;
  trailers: IncomingHttpHeaders | null = null;
  readonly ended: Promise<void>;
  readonly #parts: Buffer[] = [];
  #changed: () => void = () => {};

  constructor(session: ClientHttp2Session, path = PATH, metadata: Record<string, string | string[]> = {}) {
    this.stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...metadata,
    });
    this.stream.on('response', (headers) => {
      this.headers = headers;
    });
    this.stream.on('trailers', (trailers) => {
      this.trailers = trailers;
    });
    this.stream.on('error', () => {});
    this.stream.on('data', (part: Buffer) => {
      this.#parts.push(part);
      this.#changed();
    });
    this.ended = new Promise((resolve) => {
      this.stream.on('close', resolve);
    });
  }

  /** Texts of the messages that have arrived. */
  get texts(): string[] {
    const bytes = Buffer.concat(this.#parts);
    const texts: string[] = [];
    for (let at = 0; at + 5 <= bytes.length;) {
      const end = at + 5 + bytes.readUInt32BE(at + 1);
      texts.push(bytes.toString('utf8', at + 5, end));
      at = end;
    }
    return texts;
  }

  get receivedBytes(): number {
    return this.#parts.reduce((sum, { length }) => sum + length, 0);
  }
  get status(): number | null {
    return Number((this.trailers ?? this.headers)?.['grpc-status'] ?? Number.NaN);
  }
  get message(): string {
    return String((this.trailers ?? this.headers)?.['grpc-message'] ?? '');
  }

  /** Resolves when as many messages have arrived. */
  async has(count: number): Promise<void> {
    while (this.texts.length < count)
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
  }
}

/** A call that sends these messages and its half-close, when it has ended. */
export async function called(
  session: ClientHttp2Session,
  texts: readonly string[],
  metadata: Record<string, string | string[]> = {},
  path = PATH,
): Promise<ClientCall> {
  const call = new ClientCall(session, path, metadata);
  call.stream.end(Buffer.concat(texts.map(framed)));
  await call.ended;
  return call;
}
