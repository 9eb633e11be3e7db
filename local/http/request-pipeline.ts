import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressGroup } from '../../core/base/address-group.ts';
import { SharedLimit } from '../../core/base/shared-limit.ts';
import { connectionAddress } from './client-address.ts';
import { replyUnderWay } from './send-reply.ts';

/** Node.js hangs the parser on the connection. */
type Connection = Socket & { readonly parser?: { onIncoming: (message: { upgrade: boolean }) => number } | null };
/** How Node.js notes that a reply has called its listeners. */
type Closable = ServerResponse & { _closed?: boolean; destroyed: boolean };

/**
 * Requests of one connection that are worked on at a time. Browsers don't pipeline, and a client that does wants to
 * save the way to and fro: more at once would only hold replies in memory until those before them have been sent.
 */
export const UNDER_WAY_MAX = 8;

/**
 * What pipelined requests may hold of all connections together, by address. One read of 64 KiB may bring 2 600 of them,
 * for which Node.js makes 6 MB of objects in one go, and takes as long to let go of them: few connections at once may
 * do that. An ordinary request counts some kilobytes, and those that come behind no other count nothing.
 */
const HELD_BYTES_MAX = 16_777_216;
/**
 * For this long a request that no client waits for any more still counts: to let go of it takes the process as long as
 * it took to make it, and a client that closes connections may open others.
 */
const DROPPED_MS = 2_000;
/** What one counts besides its head. */
const REQUEST_BYTES = 2_048;

type Begin = (message: IncomingMessage, reply: ServerResponse) => void;

interface Waiting {
  readonly message: IncomingMessage;
  readonly reply: ServerResponse;
  /** What it holds. */
  readonly bytes: number;
}

/**
 * What a connection has pipelined. Node.js gives all requests of one read at once, and takes up to 64 KiB at a time:
 * those beyond the limit wait here in their order, and nothing more is read of the connection until the last of them
 * has begun. So what waits is bounded by what one read brings.
 */
class Pipeline {
  readonly #socket: Connection;
  readonly #begin: Begin;
  readonly #held: SharedLimit;
  readonly #address: string;
  readonly #waiting: Waiting[] = [];
  readonly #underWay = new Set<ServerResponse>();

  constructor(socket: Connection, begin: Begin, held: SharedLimit) {
    this.#socket = socket;
    this.#begin = begin;
    this.#held = held;
    this.#address = addressGroup(connectionAddress(socket));
    // Node.js resumes the connection by itself: behind each request that it has read, for a body, and when replies have
    // been taken.
    socket.on('resume', () => {
      if (this.#waiting.length > 0) socket.pause();
    });
    // There is no client to answer any more.
    socket.once('close', () => {
      this.#drop();
      for (const reply of this.#underWay) end(reply);
    });
  }

  take(message: IncomingMessage, reply: ServerResponse): void {
    // The one that came behind no other.
    if (this.#underWay.size === 0) this.#count(replyUnderWay(this.#socket)!, 0);
    const bytes = REQUEST_BYTES + headBytes(message);
    if (this.#socket.destroyed || !this.#held.tryTake(this.#address, bytes)) {
      this.#refuse();
      return;
    }
    if (this.#underWay.size < UNDER_WAY_MAX) this.#start({ message, reply, bytes });
    else if (this.#waiting.push({ message, reply, bytes }) === 1) this.#socket.pause();
  }

  /** There is no room: the connection ends, and nothing more is made of what was read of it. */
  #refuse(): void {
    const { parser } = this.#socket;
    if (parser != null) parser.onIncoming = stop;
    this.#socket.destroy();
  }

  #drop(): void {
    const held = this.#waiting.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#waiting.length = 0;
    if (held > 0) setTimeout(() => this.#held.giveBack(this.#address, held), DROPPED_MS).unref();
  }

  #start({ message, reply, bytes }: Waiting): void {
    this.#count(reply, bytes);
    this.#begin(message, reply);
  }

  #count(reply: ServerResponse, bytes: number): void {
    this.#underWay.add(reply);
    reply.once('close', () => {
      this.#underWay.delete(reply);
      this.#held.giveBack(this.#address, bytes);
      this.#next();
    });
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    if (!this.#socket.writable) {
      // The connection ends with the reply before, so that no client would learn of what is done for the requests
      // behind it.
      this.#drop();
      return;
    }
    const next = this.#waiting.shift()!;
    if (this.#waiting.length === 0) this.#socket.resume();
    this.#start(next);
  }
}

/**
 * Tells a reply that its turn will never come. Node.js forgets those that wait where it lets go of the connection:
 * behind a CONNECT, which it closes, and behind an upgrade. What ran for them, such as a subscription, would never end.
 */
function end(reply: Closable): void {
  if (reply._closed === true) return;
  reply.destroyed = true;
  reply._closed = true;
  reply.emit('close');
}

/** The length of a head, roughly. */
function headBytes({ url, rawHeaders }: IncomingMessage): number {
  let bytes = url!.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/**
 * The parser takes the next request for an upgrade, and reads no further: Node.js lets go of the connection, which has
 * ended.
 */
function stop(message: { upgrade: boolean }): number {
  message.upgrade = true;
  return 2;
}

/** What the connections of a server have pipelined. */
export class Pipelines {
  readonly #held: SharedLimit;
  readonly #pipelines = new WeakMap<Socket, Pipeline>();

  constructor(heldBytesMax = HELD_BYTES_MAX) {
    this.#held = new SharedLimit(heldBytesMax);
  }

  /** What pipelined requests hold now. */
  get heldBytes(): number {
    return this.#held.held;
  }

  /**
   * Begins a request, at once or when those before it on its connection let it. One that comes behind no other costs
   * nothing more.
   */
  inTurn(message: IncomingMessage, reply: ServerResponse, begin: Begin): void {
    const { socket } = message;
    // A reply has the connection unless another one has it still. Then none waits either.
    if (reply.socket !== null) {
      begin(message, reply);
      return;
    }
    let pipeline = this.#pipelines.get(socket);
    if (pipeline === undefined) {
      pipeline = new Pipeline(socket, begin, this.#held);
      this.#pipelines.set(socket, pipeline);
    }
    pipeline.take(message, reply);
  }
}
