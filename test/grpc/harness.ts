import { GrpcError, STATUS } from '../../handlers/grpc/call.ts';
import type { Ending, GrpcEnding, GrpcTransport } from '../../handlers/grpc/call.ts';
import { createGrpc } from '../../handlers/grpc.ts';
import type { Grpc } from '../../handlers/grpc.ts';
import type { AppContext } from '../../handlers/http/context.ts';
import type { FlatContext } from '../support/app-context.ts';
import { harness, ORIGIN } from '../handlers/harness.ts';
import { secured } from '../handlers/secured.ts';
import { methodAt, toBytes, toJson, unframed } from './codec.ts';
import type { Json, Method } from './codec.ts';
import { background } from '../../core/base/background.ts';

export interface CallOptions {
  readonly metadata?: Readonly<Record<string, string>>;
  /** The client goes on sending: it half-closes only when the test says so. */
  readonly isOpen?: boolean;
  /** From the beginning on, as after `stall`. */
  readonly isStalled?: boolean;
}

/** A call without a socket: the test is the client, and says when it sends, reads, stalls and leaves. */
export class ScriptedCall implements GrpcTransport {
  readonly path: string;
  readonly request: Request;
  /** What has arrived, as JSON in the form of the recordings; as bytes in `blocks`. */
  readonly received: Json[] = [];
  /** What was handed over in one piece each. */
  readonly blocks: Uint8Array[] = [];
  /** `>` for each message of the client, `<` for each one of the server, `)` for the half-close. */
  order = '';
  /** Blocks that came while the client had no room for more: a sender that waits has at most one under way. */
  overruns = 0;
  /** How the call ended; null while it is under way. */
  ending: Ending | null = null;
  /** Resolves with how the call ended, as the server sees it. */
  ended: Promise<Ending> = Promise.resolve({ httpStatus: 0 });
  readonly #method: Method | null;
  readonly #controller = new AbortController();
  readonly #arrived: Uint8Array[] = [];
  #isHalfClosed = false;
  #reader: { readonly resolve: (message: Uint8Array | null) => void; readonly reject: (error: Error) => void } | null =
    null;
  #stalled: { readonly done: Promise<void>; readonly resume: () => void } | null = null;
  #hasPending = false;
  #waiting: (() => void)[] = [];

  constructor(path: string, { metadata = {}, isStalled = false }: CallOptions = {}) {
    this.path = path;
    this.#method = methodAt(path);
    this.request = new Request(ORIGIN + path, {
      method: 'POST',
      headers: { 'content-type': 'application/grpc', ...metadata },
      signal: this.#controller.signal,
    });
    if (isStalled) this.stall();
  }

  /** Lets the server answer. */
  start(grpc: Grpc): this {
    this.ended = grpc(this).then((ending) => {
      this.ending = ending;
      this.#tell();
      return ending;
    });
    return this;
  }

  // What the server calls.

  read(): Uint8Array | null | Promise<Uint8Array | null> {
    if (this.#controller.signal.aborted) return Promise.reject(over());
    const next = this.#arrived.shift();
    if (next !== undefined) return next;
    if (this.#isHalfClosed) return null;
    if (this.#reader !== null) throw new Error('two readers of one call');
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  guarded(work: () => Promise<unknown>): void {
    background(work());
  }

  memory(bytes: number): Uint8Array {
    // Whatever a sender leaves unwritten shows.
    return new Uint8Array(bytes).fill(0xee);
  }

  send(block: Uint8Array): Promise<void> | null {
    if (this.#controller.signal.aborted) return null;
    if (this.#hasPending) this.overruns++;
    this.blocks.push(block);
    for (const message of unframed(block)) {
      this.received.push(this.#method === null ? {} : toJson(this.#method.response, message));
      this.order += '<';
    }
    this.#tell();
    if (this.#stalled === null) return null;
    this.#hasPending = true;
    return this.#stalled.done;
  }

  // What the client does.

  push(...messages: readonly Json[]): this {
    return this.pushBytes(
      ...messages.map((message) =>
        this.#method === null ? new Uint8Array(0) : toBytes(this.#method.request, message),
      ),
    );
  }

  pushBytes(...messages: readonly Uint8Array[]): this {
    for (const message of messages) {
      this.order += '>';
      const reader = this.#reader;
      this.#reader = null;
      if (reader === null) this.#arrived.push(message);
      else reader.resolve(message);
    }
    return this;
  }

  halfClose(): this {
    if (this.#isHalfClosed) return this;
    this.#isHalfClosed = true;
    this.order += ')';
    this.#reader?.resolve(null);
    this.#reader = null;
    return this;
  }

  /** The client leaves, or the node stops, which then says how the call ends. */
  cancel(reason?: GrpcEnding): void {
    this.#controller.abort(reason);
    this.#reader?.reject(over());
    this.#reader = null;
    this.resume();
  }

  /** From here on the client takes nothing. */
  stall(): void {
    if (this.#stalled !== null) return;
    let resume = (): void => {};
    const done = new Promise<void>((resolve) => {
      resume = resolve;
    });
    this.#stalled = { done, resume };
  }

  resume(): void {
    this.#hasPending = false;
    this.#stalled?.resume();
    this.#stalled = null;
  }

  /** Resolves once so many messages are there, or the call has ended. */
  async until(count: number): Promise<readonly Json[]> {
    while (this.received.length < count && this.ending === null)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    return this.received;
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

function over(): GrpcError {
  return new GrpcError(STATUS.cancelled, 'The call is over.');
}

/** What a client saw of a call from its beginning to its end. */
export interface Seen {
  readonly status: number;
  readonly message: string;
  /** Those of a `-bin` name as base64. */
  readonly trailers: Record<string, string>;
  readonly received: readonly Json[];
}

export async function seenOf(call: ScriptedCall): Promise<Seen> {
  const ending = await call.ended;
  if ('httpStatus' in ending)
    return { status: -1, message: `HTTP ${ending.httpStatus}`, trailers: {}, received: call.received };
  const trailers = Object.entries(ending.trailers)
    .map(([name, value]) => [name, typeof value === 'string' ? value : Buffer.from(value).toString('base64')] as const)
    .filter(([, value]) => value !== '');
  return {
    status: ending.status,
    message: ending.message,
    trailers: Object.fromEntries(trailers),
    received: call.received,
  };
}

export interface GrpcClient {
  readonly grpc: Grpc;
  /** A call that has begun with these messages; half-closed unless it stays open. */
  open(path: string, requests?: readonly Json[], options?: CallOptions): ScriptedCall;
  /** A call to its end. */
  call(path: string, request: Json | readonly Json[], metadata?: Readonly<Record<string, string>>): Promise<Seen>;
}

export function clientOf(grpc: Grpc): GrpcClient {
  const open = (path: string, requests: readonly Json[] = [], options: CallOptions = {}): ScriptedCall => {
    const call = new ScriptedCall(path, options).push(...requests);
    if (options.isOpen !== true) call.halfClose();
    return call.start(grpc);
  };
  return {
    grpc,
    open,
    call: (path, request, metadata = {}) =>
      seenOf(open(path, Array.isArray(request) ? (request as readonly Json[]) : [request as Json], { metadata })),
  };
}

export function clientFor(context: AppContext): GrpcClient {
  return clientOf(createGrpc(context));
}

/** HTTP and gRPC over one model of the store, without users, or with those of `secured` (`AS` has their metadata). */
export function grpcHarness(context: Partial<FlatContext> = {}) {
  const h = harness(context);
  return { ...h, ...clientFor(h.context) };
}

export function securedGrpc(context: Partial<FlatContext> = {}) {
  const h = secured(context);
  return { ...h, ...clientFor(h.context) };
}
