import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Node.js hangs the reply that has the connection on it. */
type Connection = Socket & { readonly _httpMessage?: ServerResponse | null };
/** How Node.js notes that a reply has told its listeners. */
type Closable = ServerResponse & { _closed?: boolean; destroyed: boolean };

/**
 * Requests of one connection that are worked on at a time. Browsers don't pipeline, and who does wants to save the way to and fro: more at once would only hold replies
 * in memory until those before them have been sent.
 */
export const UNDER_WAY_MAX = 8;

type Begin = (message: IncomingMessage, reply: ServerResponse) => void;

interface Waiting {
  readonly message: IncomingMessage;
  readonly reply: ServerResponse;
}

/**
 * What a connection has pipelined. Node.js gives all requests of one read at once, and takes up to 64 KiB at a time: those beyond the limit wait here in their order, and
 * nothing more is read of the connection until the last of them has begun. So what waits is bounded by what one read brings.
 */
class Pipeline {
  readonly #socket: Connection;
  readonly #begin: Begin;
  readonly #waiting: Waiting[] = [];
  readonly #underWay = new Set<ServerResponse>();

  constructor(socket: Connection, begin: Begin) {
    this.#socket = socket;
    this.#begin = begin;
    // Node.js resumes the connection by itself: behind each request that it has read, for a body, and when replies have been taken.
    socket.on('resume', () => { if (this.#waiting.length > 0) socket.pause(); });
    // Nobody is there to be answered any more.
    socket.once('close', () => {
      this.#waiting.length = 0;
      for (const reply of [...this.#underWay]) end(reply);
    });
  }

  take(message: IncomingMessage, reply: ServerResponse): void {
    // The one that came behind no other.
    if (this.#underWay.size === 0) this.#count(this.#socket._httpMessage!);
    if (this.#underWay.size < UNDER_WAY_MAX) this.#start({ message, reply });
    else if (this.#waiting.push({ message, reply }) === 1) this.#socket.pause();
  }

  #start({ message, reply }: Waiting): void {
    this.#count(reply);
    this.#begin(message, reply);
  }

  #count(reply: ServerResponse): void {
    this.#underWay.add(reply);
    reply.once('close', () => {
      this.#underWay.delete(reply);
      this.#next();
    });
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    if (!this.#socket.writable) {
      // The connection ends with the reply before, so that nobody would learn of what is done for those behind it.
      this.#waiting.length = 0;
      return;
    }
    const next = this.#waiting.shift()!;
    if (this.#waiting.length === 0) this.#socket.resume();
    this.#start(next);
  }
}

/**
 * Tells a reply that its turn will never come. Node.js forgets those that wait where it lets go of the connection: behind a CONNECT, which it closes, and behind an upgrade. What ran
 * for them, such as a subscription, would never end.
 */
function end(reply: Closable): void {
  if (reply._closed === true) return;
  reply.destroyed = true;
  reply._closed = true;
  reply.emit('close');
}

const pipelines = new WeakMap<Socket, Pipeline>();

/** Begins a request, at once or when those before it on its connection let it. One that comes behind no other costs nothing more. */
export function inTurn(message: IncomingMessage, reply: ServerResponse, begin: Begin): void {
  const { socket } = message;
  // A reply has the connection unless another one has it still. Then none waits either.
  if (reply.socket !== null) {
    begin(message, reply);
    return;
  }
  let pipeline = pipelines.get(socket);
  if (pipeline === undefined) {
    pipeline = new Pipeline(socket, begin);
    pipelines.set(socket, pipeline);
  }
  pipeline.take(message, reply);
}
