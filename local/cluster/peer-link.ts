import type { Socket } from 'node:net';
import { SkuaError } from '../../core/errors.ts';
import { FRAME_HEAD_BYTES_MAX, FRAME_REPLY_BODY_BYTES_MAX, FRAME_REQUEST_BODY_BYTES_MAX, frameHead, frameHeaders, FrameReader, FrameWriter } from '../http/frames.ts';
import { IDLE_MS } from './peer-agent.ts';
import { failed } from './peer-exchange.ts';
import type { PeerFailure, PeerReply, PeerRequest } from './peer-exchange.ts';

/** Requests without an answer on a link at a time, and the bytes of them; what is more has connections of its own. */
const REQUESTS_MAX = 256;
const BYTES_MAX = 8_388_608;

interface Pending {
  readonly request: PeerRequest;
  readonly bytes: number;
  readonly timer: NodeJS.Timeout;
  readonly resolve: (reply: PeerReply) => void;
  readonly reject: (error: SkuaError) => void;
}

/** Requests to a member over one connection, many at a time (local/http/frames.ts). */
export class PeerLink {
  readonly #socket: Socket;
  readonly #endsMs: number;
  readonly #writer: FrameWriter;
  readonly #reader = new FrameReader(FRAME_REPLY_BODY_BYTES_MAX, (id, head, body) => this.#answered(id, head, body));
  readonly #pending = new Map<number, Pending>();
  /** Those that end requests; members have few, and use each for many. */
  readonly #signals = new Set<AbortSignal>();
  #bytes = 0;
  #nextId = 0;
  /** Requests before this one have been given to the connection. */
  #writtenTo = 0;
  #isRetired = false;

  /** `endsMs`: it takes no more requests then, by the monotonic clock. */
  constructor(socket: Socket, endsMs: number) {
    this.#socket = socket;
    // The agent that made it closes connections that nobody uses; this one is used in another way now.
    socket.removeAllListeners('timeout');
    this.#endsMs = endsMs;
    this.#writer = new FrameWriter(socket, () => {
      this.#writtenTo = this.#nextId;
      this.#closeIfDone();
    });
    socket.setTimeout(IDLE_MS);
    socket.on('timeout', () => this.retire());
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (error) => this.#broke(error));
    // The other side takes no more, and has answered all that it will.
    socket.on('end', () => this.#broke(null));
    socket.on('close', () => this.#broke(null));
  }

  /** Whether it takes requests at all. */
  get isOpen(): boolean { return !this.#isRetired && performance.now() < this.#endsMs; }

  /** Whether this request can go over it now. */
  takes({ body, signal }: PeerRequest): boolean {
    return this.#pending.size < REQUESTS_MAX && this.#bytes < BYTES_MAX && body !== null && body.length <= FRAME_REQUEST_BODY_BYTES_MAX && signal?.aborted !== true;
  }

  /** Errors: `member_silent`; `member_unreachable` where the connection broke before the request was given to it; `bad_request` for headers that are none. */
  send(request: PeerRequest): Promise<PeerReply> {
    const body = typeof request.body === 'string' ? Buffer.from(request.body) : request.body ?? NONE;
    const headers = ['content-length', String(body.length)];
    for (const name in request.headers) headers.push(name, request.headers[name]!);
    return new Promise((resolve, reject) => {
      const id = this.#nextId;
      let bytes: number;
      try {
        bytes = this.#writer.add(id, frameHead(request.method, request.path, headers), body);
      } catch (error) {
        reject(new SkuaError('bad_request', `The request can't be passed on: ${(error as Error).message}.`, {}, error));
        return;
      }
      this.#nextId = id + 1;
      this.#bytes += bytes;
      this.#pending.set(id, { request, bytes, timer: setTimeout(() => this.#giveUp(id, 'time'), request.timeoutMs), resolve, reject });
      if (request.signal !== undefined) this.#heed(request.signal);
    });
  }

  /** Takes no more requests, and closes the connection when those under way are answered. */
  retire(): void {
    this.#isRetired = true;
    this.#closeIfDone();
  }

  /** Nobody waits any more. */
  close(): void {
    this.#broke(null);
  }

  /** One listener for all requests of a signal. */
  #heed(signal: AbortSignal): void {
    if (this.#signals.has(signal)) return;
    this.#signals.add(signal);
    signal.addEventListener('abort', this.#aborted);
  }

  readonly #aborted = (): void => {
    for (const [id, { request: { signal } }] of this.#pending) if (signal?.aborted === true) this.#giveUp(id, 'given-up');
    for (const signal of this.#signals) if (signal.aborted) this.#signals.delete(signal);
  };

  /** Nobody waits for this answer any more. Who does not answer in time is asked anew over another connection, as where each request has its own. */
  #giveUp(id: number, reason: PeerFailure): void {
    const pending = this.#end(id);
    if (pending === undefined) return;
    pending.reject(failed(pending.request.node, reason, 'member_silent', null));
    this.retire();
  }

  #end(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    if (pending === undefined) return undefined;
    clearTimeout(pending.timer);
    this.#pending.delete(id);
    this.#bytes -= pending.bytes;
    return pending;
  }

  #take(chunk: Buffer): void {
    try {
      this.#reader.take(chunk);
    } catch (error) {
      this.#broke(error as Error);
      return;
    }
    if (this.#isRetired) this.#closeIfDone();
  }

  #answered(id: number, head: readonly string[], body: Buffer): void {
    const [status, statusText] = head;
    if (id >= this.#writtenTo || !STATUS.test(status!)) throw new Error('it answers what nobody asked');
    const headers = frameHeaders(head);
    // A copy: it is a view of a buffer in which much else stands.
    this.#end(id)?.resolve({ status: Number(status), statusText: statusText!, headers, body: new Uint8Array(body) });
  }

  #broke(cause: Error | null): void {
    this.#isRetired = true;
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#aborted);
    this.#signals.clear();
    for (const id of this.#pending.keys()) {
      const { request, reject } = this.#end(id)!;
      reject(failed(request.node, 'broken', id < this.#writtenTo ? 'member_silent' : 'member_unreachable', cause));
    }
    this.#socket.destroy();
  }

  #closeIfDone(): void {
    if (this.#isRetired && this.#pending.size === 0 && this.#writer.isEmpty) this.#broke(null);
  }
}

const NONE = new Uint8Array(0);
const STATUS = /^[1-5]\d\d$/;

/** Whether requests with such heads can go over a link at all. */
export function fitsFrame({ method, path, headers }: PeerRequest): boolean {
  let length = method.length + path.length + 1;
  for (const name in headers) length += name.length + headers[name]!.length + 2;
  return length <= FRAME_HEAD_BYTES_MAX;
}
