import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';

/** What became of a call of a function. */
export type Outcome =
  | { readonly kind: 'result'; readonly value: unknown }
  /** The handler threw, or the function could not be loaded. */
  | { readonly kind: 'error'; readonly type: string; readonly message: string }
  | { readonly kind: 'timed-out' }
  /** The process ended during the call. */
  | { readonly kind: 'crashed'; readonly reason: string };

/** Largest result in bytes that the platform takes. */
const RESULT_BYTES_MAX = 6 * 1_048_576;
const ROUTE = /^\/2018-06-01\/runtime\/(?:invocation\/(next)|invocation\/([\w-]+)\/(response|error)|init\/(error))$/;

interface Call {
  readonly id: string;
  readonly event: string;
  readonly timeoutMs: number;
  readonly settle: (outcome: Outcome) => void;
}

/**
 * The runtime interface of the platform (version 2018-06-01) for one process: it asks for calls and gives back their
 * results. Only on the loopback address. One call at a time, as there.
 */
export class RuntimeInterface {
  readonly #server: http.Server;
  #current: Call | null = null;
  #waiting: Call | null = null;
  #next: http.ServerResponse | null = null;
  /** Why no call can be made any more. */
  #ended: Outcome | null = null;

  constructor() {
    this.#server = http.createServer((request, reply) => {
      this.#serve(request, reply).catch(() => request.socket.destroy());
    });
  }

  /** Value of `AWS_LAMBDA_RUNTIME_API`. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Only when none is under way. */
  invoke(event: unknown, timeoutMs: number): Promise<Outcome> {
    if (this.#current !== null || this.#waiting !== null) throw new Error('A call is under way.');
    if (this.#ended !== null) return Promise.resolve(this.#ended);
    return new Promise((resolve) => {
      this.#waiting = { id: randomUUID(), event: JSON.stringify(event), timeoutMs, settle: resolve };
      this.#hand();
    });
  }

  /** The process has ended, or will be: the outcome of the call under way, and of every later one. */
  end(outcome: Outcome): void {
    this.#ended ??= outcome;
    const call = this.#current ?? this.#waiting;
    this.#current = this.#waiting = null;
    call?.settle(outcome);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  #hand(): void {
    const call = this.#waiting;
    const reply = this.#next;
    if (call === null || reply === null) return;
    this.#waiting = this.#next = null;
    this.#current = call;
    reply.writeHead(200, {
      'content-type': 'application/json',
      'lambda-runtime-aws-request-id': call.id,
      'lambda-runtime-deadline-ms': String(Date.now() + call.timeoutMs),
      'lambda-runtime-invoked-function-arn': 'arn:aws:lambda:local:000000000000:function:skua',
    });
    reply.end(call.event);
  }

  async #serve(request: http.IncomingMessage, reply: http.ServerResponse): Promise<void> {
    const [, next, id, kind, init] = ROUTE.exec(request.url ?? '') ?? [];
    if (next !== undefined && request.method === 'GET') {
      this.#next = reply;
      return this.#hand();
    }
    const body = await bodyOf(request);
    if (body === null) return void reply.writeHead(413).end();
    if (init !== undefined) {
      this.end(errorOf(body));
    } else {
      const call = this.#current;
      // An answer to a call that was given up counts no more.
      if (kind === undefined || call === null || call.id !== id)
        return void reply.writeHead(id === undefined ? 404 : 400).end();
      this.#current = null;
      call.settle(kind === 'error' ? errorOf(body) : { kind: 'result', value: JSON.parse(body) });
    }
    reply.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"OK"}');
  }
}

function errorOf(body: string): Outcome {
  const { errorType = 'Error', errorMessage = '' } = JSON.parse(body) as { errorType?: string; errorMessage?: string };
  return { kind: 'error', type: errorType, message: errorMessage };
}

async function bodyOf(request: http.IncomingMessage): Promise<string | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length <= RESULT_BYTES_MAX) pieces.push(piece);
  }
  return length > RESULT_BYTES_MAX ? null : Buffer.concat(pieces).toString('utf8');
}
