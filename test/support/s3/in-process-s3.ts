/**
 * A small S3 server inside the test's process, on 127.0.0.1: the part of the protocol that Skua uses, conditional
 * creation and checksums included, with faults. Signatures are not checked. Faults are chosen for each request by a
 * hook:
 *
 * - `before`: the connection is cut, or an error answered, before the request has its effect.
 * - `after`: it has its effect, and then the connection is cut or an error answered: a lost reply.
 * - `stall`: no answer ever comes. `truncate`: the reply's body ends early. `wait`: everything happens later.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorReply, performS3 } from './s3-operations.ts';
import type { S3Reply, S3Request, S3State } from './s3-operations.ts';

export interface S3Fault {
  readonly moment?: 'before' | 'after';
  readonly action:
    | 'drop'
    | 'stall'
    | 'truncate'
    | 'none'
    | { readonly status: number; readonly code: string; readonly headers?: Record<string, string> };
  /** The request waits for this first. */
  readonly wait?: Promise<void>;
}

export type S3FaultHook = (request: S3Request, n: number) => S3Fault | undefined;

export class InProcessS3 {
  readonly state: S3State = { buckets: new Map(), uploads: new Map(), uploadsBegun: 0 };
  /** Every request, in order of arrival. */
  readonly requests: S3Request[] = [];
  readonly #server: Server;
  #hook: S3FaultHook | undefined;
  #reply: ((request: S3Request) => S3Reply | undefined) | undefined;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(() => request.socket.destroy());
    });
  }

  static async start(): Promise<InProcessS3> {
    const s3 = new InProcessS3();
    await new Promise<void>((resolve, reject) => {
      s3.#server.once('error', reject);
      s3.#server.listen(0, '127.0.0.1', resolve);
    });
    return s3;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Chooses the fault of each request, counted from 1 since this call; undefined ends that. */
  faultWhen(hook: S3FaultHook | undefined): void {
    let n = 0;
    this.#hook = hook === undefined ? undefined : (request) => hook(request, ++n);
  }

  /** These faults meet the next requests, one each. */
  faultNext(...faults: S3Fault[]): void {
    this.faultWhen(() => faults.shift());
  }

  /** Answers of the test's own, in place of the request's effect. */
  replyWhen(choose: ((request: S3Request) => S3Reply | undefined) | undefined): void {
    this.#reply = choose;
  }

  /** Keys of a bucket, for looking past the client. */
  keys(bucket: string): string[] {
    return [...(this.state.buckets.get(bucket)?.keys() ?? [])].sort();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const url = new URL(incoming.url ?? '/', 'http://s3');
    const [, bucket = '', ...key] = url.pathname.split('/').map(decodeURIComponent);
    const request: S3Request = {
      method: incoming.method ?? 'GET',
      bucket,
      key: key.join('/'),
      query: url.searchParams,
      headers: incoming.headers,
      body: Buffer.concat(pieces),
    };
    this.requests.push(request);
    const fault = this.#hook?.(request, 0);
    await fault?.wait;
    if (fault === undefined || fault.action === 'none') return send(response, request, this.#perform(request));
    if (fault.action === 'stall') return;
    if (fault.action === 'truncate') return sendCut(response, this.#perform(request));
    if (fault.moment === 'after') this.#perform(request);
    if (fault.action === 'drop') incoming.socket.destroy();
    else send(response, request, errorReply(fault.action.status, fault.action.code, fault.action.headers));
  }

  #perform(request: S3Request): S3Reply {
    if (request.headers['authorization'] === undefined) return errorReply(403, 'AccessDenied');
    return this.#reply?.(request) ?? performS3(this.state, request);
  }
}

function send(response: ServerResponse, request: S3Request, reply: S3Reply): void {
  const body = Buffer.from(reply.body ?? '');
  response.writeHead(reply.status, {
    'x-amz-request-id': 'test',
    ...reply.headers,
    ...(reply.status !== 204 && { 'content-length': String(body.length) }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Half of what was announced, then the end of the connection. */
function sendCut(response: ServerResponse, reply: S3Reply): void {
  const body = Buffer.from(reply.body ?? '');
  response.writeHead(reply.status, { ...reply.headers, 'content-length': String(body.length) });
  response.write(body.subarray(0, body.length >> 1), () => response.socket?.destroy());
}
