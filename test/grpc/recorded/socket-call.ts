import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import type { Ending } from '../../../handlers/grpc/call.ts';
import { methodAt, toBytes, toJson, unframed } from '../codec.ts';
import type { Json, Method } from '../codec.ts';
import type { ClientCall } from './replay.ts';

/**
 * A client with a shorter deadline gets nothing of its request away before that is over. Otherwise a quick answer is in
 * time or too late by how busy the machine is.
 */
const SENDS_FROM_MS = 100;

/** A call over a connection, as its client sees it. */
export class SocketCall implements ClientCall {
  readonly received: Json[] = [];
  ending: Ending | null = null;
  readonly #method: Method | null;
  readonly #stream: ClientHttp2Stream;
  readonly #sends: boolean;
  #rest: Buffer = Buffer.alloc(0);

  constructor(
    session: ClientHttp2Session,
    path: string,
    metadata: Readonly<Record<string, string>>,
    deadlineMs: number | null,
  ) {
    this.#method = methodAt(path);
    this.#sends = deadlineMs === null || deadlineMs >= SENDS_FROM_MS;
    this.#stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...(deadlineMs !== null && { 'grpc-timeout': `${deadlineMs}m` }),
      ...metadata,
    });
    let last: IncomingHttpHeaders = {};
    this.#stream.on('response', (headers) => {
      last = headers;
    });
    this.#stream.on('trailers', (trailers) => {
      last = { ...trailers, ':status': last[':status'] };
    });
    this.#stream.on('data', (part: Buffer) => {
      this.#take(part);
    });
    this.#stream.on('error', () => {});
    this.#stream.on('close', () => {
      this.ending ??= endingOf(last);
    });
    // Clients look at the clock themselves, too.
    if (deadlineMs !== null)
      setTimeout(() => {
        this.#late();
      }, deadlineMs);
  }

  #late(): void {
    this.ending ??= { status: 4, message: 'Deadline exceeded', trailers: {} };
    this.cancel();
  }

  #take(part: Buffer): void {
    this.#rest = this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part]);
    let whole = 0;
    while (this.#rest.length >= whole + 5 && this.#rest.length >= whole + 5 + this.#rest.readUInt32BE(whole + 1))
      whole += 5 + this.#rest.readUInt32BE(whole + 1);
    for (const message of unframed(this.#rest.subarray(0, whole)))
      this.received.push(this.#method === null ? {} : toJson(this.#method.response, message));
    this.#rest = this.#rest.subarray(whole);
  }

  push(...messages: readonly Json[]): void {
    this.pushBytes(
      ...messages.map((message) =>
        this.#method === null ? new Uint8Array(0) : toBytes(this.#method.request, message),
      ),
    );
  }

  pushBytes(...messages: readonly Uint8Array[]): void {
    if (!this.#sends) return;
    for (const message of messages) {
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(message.length, 1);
      this.#stream.write(prefix);
      this.#stream.write(message);
    }
  }

  halfClose(): void {
    if (this.#sends) this.#stream.end();
  }

  cancel(): void {
    this.ending ??= { httpStatus: 0 };
    // `close` would half-close first, and the server go on with what it has.
    this.#stream.destroy();
  }
}

function endingOf(headers: IncomingHttpHeaders): Ending {
  const { ':status': httpStatus = 0, 'grpc-status': status, 'grpc-message': message = '' } = headers;
  if (status === undefined) return { httpStatus: Number(httpStatus) };
  const trailers = Object.entries(headers).filter(
    ([name]) =>
      !name.startsWith(':') &&
      !name.startsWith('grpc-') &&
      !['content-type', 'content-length', 'date', 'server'].includes(name),
  );
  return {
    status: Number(status),
    message: decodeURIComponent(String(message)),
    trailers: Object.fromEntries(trailers.map(([name, value]) => [name, decodeURIComponent(String(value))])),
  };
}
