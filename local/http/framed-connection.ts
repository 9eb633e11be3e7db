import type { Socket } from 'node:net';
import type { Log } from '../../core/ports/log.ts';
import type { Expected } from './flow.ts';
import { FRAME_REPLY_BODY_BYTES_MAX, FRAME_REQUEST_BODY_BYTES_MAX, frameHead, FrameReader, FrameWriter } from './frames.ts';
import { FramedRequest } from './framed-request.ts';
import { partsOfResponse } from './reply.ts';
import type { Serving } from './request.ts';

/** Requests of a connection that are worked on at a time: no more is read then. Members send half as many (local/cluster/peer-link.ts). */
const UNDER_WAY_MAX = 512;
/** A connection on which nothing comes and nothing is worked on for so long is closed; members close theirs long before. */
const IDLE_MS = 75_000;
/** So long the other side has to close a connection that this one has ended. */
const LINGER_MS = 1_000;

export interface FramedParts extends Serving {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly log: Log;
}

/** A connection of a member that has proved to be one, over which it passes on requests (frames.ts). They are answered in the order in which they are done. */
export class FramedConnection implements Expected {
  readonly #socket: Socket;
  readonly #parts: FramedParts;
  readonly #reader: FrameReader;
  readonly #writer: FrameWriter;
  readonly #underWay = new Set<FramedRequest>();
  #isEnding = false;
  /** The other side does not take what is written. */
  #isFull = false;

  constructor(socket: Socket, parts: FramedParts) {
    this.#socket = socket;
    this.#parts = parts;
    this.#reader = new FrameReader(FRAME_REQUEST_BODY_BYTES_MAX, (id, head, body) => this.#begin(id, head, body));
    this.#writer = new FrameWriter(socket, () => this.#written(), (work) => parts.guard.run(socket, work));
    // The limits of HTTP are for requests that have not come as a whole, and it cuts off what is idle.
    socket.removeAllListeners('timeout');
    socket.setTimeout(IDLE_MS);
    socket.on('timeout', () => { if (this.#underWay.size === 0) this.cutOff(); });
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('drain', () => this.#drained());
    // Members don't close one half: who says no more waits for no answers either.
    socket.on('end', () => this.cutOff());
    socket.on('close', () => this.#closed());
  }

  /** Takes no more requests, and closes the connection when those under way are answered. */
  end(): void {
    this.#isEnding = true;
    this.#endIfDone();
  }

  cutOff(): void {
    this.#socket.destroy();
  }

  /** Bytes that came before this object was there, and then those that come. */
  start(head: Buffer): void {
    if (head.length > 0) this.#take(head);
    this.#socket.resume();
  }

  #take(chunk: Buffer): void {
    // What comes behind the end was certainly not worked on, but the other side can't know.
    if (this.#socket.destroyed || this.#isEnding) return;
    try {
      this.#reader.take(chunk);
    } catch (error) {
      this.#parts.log.warn('a member sent what is no request; its connection is closed', { address: this.#socket.remoteAddress, reason: (error as Error).message });
      this.cutOff();
      return;
    }
    this.#readOnOrNot();
  }

  #begin(id: number, head: readonly string[], body: Buffer): void {
    const request = new FramedRequest(this.#socket, head, body, this.#parts);
    this.#underWay.add(request);
    this.#parts.guard.run(this.#socket, () => this.#answer(id, request));
  }

  async #answer(id: number, request: FramedRequest): Promise<void> {
    const { fetch, log } = this.#parts;
    try {
      const response = await fetch(request as unknown as Request);
      const { status, statusText, headers, body } = partsOfResponse(response);
      const bytes = body instanceof ReadableStream ? await wholeOf(body as ReadableStream<Uint8Array>) : typeof body === 'string' ? Buffer.from(body) : body ?? null;
      if (bytes !== null && bytes.length > FRAME_REPLY_BODY_BYTES_MAX) throw new Error(`the answer has ${bytes.length} bytes`);
      this.#writer.add(id, frameHead(String(status), statusText, headers), bytes);
    } catch (error) {
      log.error('request failed', { method: request.method, path: request.url, error });
      this.#writer.add(id, frameHead('500', 'Internal Server Error', ['content-length', '0']), null);
    }
    this.#underWay.delete(request);
    request.end(true);
  }

  #written(): void {
    if (this.#socket.writableNeedDrain && !this.#isFull) {
      this.#isFull = true;
      this.#parts.flow.stalls.expect(this);
    }
    this.#readOnOrNot();
    this.#endIfDone();
  }

  #drained(): void {
    this.#isFull = false;
    this.#parts.flow.stalls.done(this);
    this.#readOnOrNot();
    this.#endIfDone();
  }

  #readOnOrNot(): void {
    if (this.#isFull || this.#underWay.size >= UNDER_WAY_MAX) this.#socket.pause();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  #endIfDone(): void {
    const socket = this.#socket;
    if (!this.#isEnding || this.#underWay.size > 0 || !this.#writer.isEmpty || socket.writableEnded || socket.destroyed) return;
    socket.end();
    const linger = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    socket.once('close', () => clearTimeout(linger));
  }

  #closed(): void {
    this.#parts.flow.stalls.done(this);
    for (const request of this.#underWay) request.end();
  }
}

/** What comes bit by bit has no place between frames: it is short, or no answer. */
async function wholeOf(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    // Leaving the loop cancels the body.
    if (bytes > FRAME_REPLY_BODY_BYTES_MAX) throw new Error(`the answer has more than ${FRAME_REPLY_BODY_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
