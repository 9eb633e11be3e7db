import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { onTestFinished } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import type { Reply, ReplyBody } from '../../../handlers/http/context.ts';
import { toResponse } from '../../../local/http/send-reply.ts';
import type { HttpServer, HttpServerOptions } from '../../../local/http/server.ts';
import { startServer } from '../../../local/http/server.ts';

/** A server on a free port, with TLS where certificates are given. It ends with the test. */
export async function serve(options: Partial<HttpServerOptions>): Promise<HttpServer> {
  const server = await startServer({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response('ok'),
    log: silentLog,
    ...options,
  });
  onTestFinished(async () => {
    await server.stop(100);
  });
  return server;
}

/** What a node answers with: the plain parts of a reply (`toResponse`). */
export const PlainResponse = class {
  constructor(body: ReplyBody | Uint8Array | null, init: Partial<Reply> = {}) {
    return toResponse({ status: 200, statusText: '', headers: {}, ...init, body: body as ReplyBody | null });
  }
} as unknown as new (body: ReplyBody | Uint8Array | null, init?: Partial<Reply>) => Response;

export interface Answer {
  readonly status: number;
  readonly reason: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** Serial number of the certificate on the connection; null without TLS. */
  readonly serial: string | null;
  readonly isResumed: boolean;
}

/** A request by a real client, which trusts the given authority and checks the name. */
export function call(server: HttpServer, options: https.RequestOptions = {}, body?: string | Buffer): Promise<Answer> {
  const isTls = server.url.startsWith('https:');
  return new Promise((resolve, reject) => {
    const request = (isTls ? https : http).request(
      { host: '127.0.0.1', port: server.port, path: '/', ...options },
      (reply) => {
        const parts: Buffer[] = [];
        const socket = reply.socket as tls.TLSSocket;
        const serial = isTls ? socket.getPeerCertificate().serialNumber : null;
        const isResumed = isTls && socket.isSessionReused();
        reply.on('data', (part: Buffer) => parts.push(part));
        reply.on('end', () =>
          resolve({
            status: reply.statusCode!,
            reason: reply.statusMessage!,
            headers: reply.headers,
            body: Buffer.concat(parts).toString(),
            serial,
            isResumed,
          }),
        );
        reply.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** A bare connection, encrypted where the server wants that. */
export function open(
  server: HttpServer,
  options: tls.ConnectionOptions & net.NetConnectOpts = {} as never,
): Promise<net.Socket> {
  const isTls = server.url.startsWith('https:');
  return new Promise((resolve, reject) => {
    const where = { host: '127.0.0.1', port: server.port, ...options };
    const socket: net.Socket = isTls
      ? tls.connect({ ...where, rejectUnauthorized: false }, () => resolve(socket))
      : net.connect(where, () => resolve(socket));
    socket.on('error', reject);
    onTestFinished(() => {
      socket.destroy();
    });
  });
}

/** All that comes until the connection ends. */
export function received(socket: net.Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (part: Buffer) => {
      text += part.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
  });
}
