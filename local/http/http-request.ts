import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ByteShare, Sender, ShareOwner } from '../../core/base/byte-budget.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { Principal } from '../../core/security/api.ts';
import type { OnBytes } from '../../handlers/http/context.ts';
import { HOST_LENGTH_MAX, NO_HOST } from '../../handlers/http/url.ts';
import { connectionAddress, ownAddress } from './client-address.ts';
import { boundRest } from './rest-of-body.ts';
import { certificateOfSocket, peerOfSocket } from '../tls/peer.ts';
import type { Expected, Flow } from './flow.ts';
import type { Guard } from './guard.ts';

const NO_BYTES = new Uint8Array(0);

/** Requests whose client waits for `100 Continue` before it sends the body. */
const waiting = new WeakSet<IncomingMessage>();

export function awaitsContinue(message: IncomingMessage): void {
  waiting.add(message);
}

/** What the requests of a server have in common. */
export interface Serving {
  readonly ending: Ending;
  readonly flow: Flow;
  readonly guard: Guard;
}

/** Aborts the requests under way that have asked for a signal; others end by themselves soon enough. */
export class Ending {
  readonly #requests = new Set<AbortController>();
  #isEnding = false;

  add(request: AbortController): void {
    if (this.#isEnding) request.abort();
    else this.#requests.add(request);
  }

  delete(request: AbortController): void {
    this.#requests.delete(request);
  }

  abort(): void {
    this.#isEnding = true;
    this.interrupt();
  }

  /** Ends what is under way, and nothing that comes. */
  interrupt(): void {
    for (const request of this.#requests) request.abort();
    this.#requests.clear();
  }
}

/**
 * The part of the web platform's `Headers` that handlers use, over the head as Node read it (with
 * `joinDuplicateHeaders`, as the platform does).
 */
export class LocalHeaders {
  readonly #headers: IncomingHttpHeaders;

  constructor(headers: IncomingHttpHeaders) {
    this.#headers = headers;
  }

  get(name: string): string | null {
    const value: unknown = this.#headers[name.toLowerCase()];
    return typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : null;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  *[Symbol.iterator](): Iterator<[string, string]> {
    for (const name of Object.keys(this.#headers)) yield [name, this.get(name)!];
  }
}

/** What servers give to handlers as a `Request`, and what this module tells of it. */
export interface ServedRequest {
  readonly socket: Socket;
  readonly rawHeaders: readonly string[];
  readonly replyShare: ByteShare;
  readonly plainHost: string | null;
  /** The client waits for the answer no more. */
  readonly isGone: boolean;
  /**
   * Names the caller: all that the request takes of what is shared counts for that caller from now on. Errors:
   * `too_busy`.
   */
  calledBy(caller: string): void;
  readBytes(bytesMax: number, onBytes?: OnBytes): Promise<Uint8Array>;
}

/**
 * The part of the web platform's `Request` that handlers use, over Node's. `url` holds path and query as they arrived,
 * the signal also aborts when the server stops, and `readBytes` takes the place of `arrayBuffer()`, through which a
 * body costs five times as much as all the rest of a request.
 */
export class LocalRequest implements ServedRequest, ShareOwner, Expected, Sender {
  readonly #message: IncomingMessage;
  readonly #reply: ServerResponse;
  readonly #serving: Serving;
  #signal: AbortSignal | null = null;
  #url: string | null = null;
  #headers: LocalHeaders | null = null;
  #replyShare: ByteShare | null = null;
  #bodyShare: ByteShare | null = null;
  #caller: string | null = null;
  /** Refuses the body that is being read. */
  #refuse: (error: unknown) => void = () => {};

  constructor(message: IncomingMessage, reply: ServerResponse, serving: Serving) {
    this.#message = message;
    this.#reply = reply;
    this.#serving = serving;
  }

  get flow(): Flow {
    return this.#serving.flow;
  }

  calledBy(caller: string): void {
    (this.#message as IncomingMessage & Partial<Pick<ServedRequest, 'calledBy'>>).calledBy?.(caller);
    this.#caller = caller;
  }

  /** What the reply holds in memory. It is given back when the client has taken the reply, or is gone. */
  get replyShare(): ByteShare {
    return (this.#replyShare ??= this.#serving.flow.replies.share(this, this.#caller));
  }

  /** A reply whose turn on its connection never came is not told when that is closed. */
  get isGone(): boolean {
    return this.#reply.destroyed || this.#message.socket.destroyed;
  }

  onFirstUse(share: ByteShare): void {
    const reply = this.#reply;
    const { socket } = this.#message;
    // A reply whose turn on its connection never came is not told when that is closed.
    const end = () => {
      reply.off('close', end);
      socket.off('close', end);
      share.close();
    };
    reply.on('close', end);
    socket.on('close', end);
  }

  cutOff(): void {
    const message = this.#message as IncomingMessage & { cutOff?(): void };
    // Over HTTP/2 a request ends alone.
    if (message.cutOff === undefined) message.socket.destroy();
    else message.cutOff();
  }

  makeWay(refusal: SkuaError): void {
    this.#serving.guard.run(this.#message.socket, () => this.#refuse(refusal));
  }

  /**
   * The body has been worked on, or is not wanted: its bytes count no more, and what still comes of it is dropped, up
   * to a bound.
   */
  letGoOfBody(): void {
    if (!this.#reply.headersSent) boundRest(this.#message, this.#reply);
    if (this.#bodyShare === null) return;
    this.#bodyShare.close();
    this.flow.stalls.done(this);
  }

  get method(): string {
    return this.#message.method!;
  }

  get headers(): LocalHeaders {
    return (this.#headers ??= new LocalHeaders(this.#message.headers));
  }

  /**
   * Scheme and host, then the target as it was sent. The platform's `URL` would resolve `..` and `%2e%2e` and turn `\`
   * round, so that a proxy in front, which has its own rules for paths, would let pass what it refuses.
   */
  get url(): string {
    return (this.#url ??= urlOf(this.#message));
  }

  /** Aborts when the client goes away before it has the whole reply, or the server stops. Made when first asked for. */
  get signal(): AbortSignal {
    if (this.#signal !== null) return this.#signal;
    const controller = new AbortController();
    this.#signal = controller.signal;
    const { ending } = this.#serving;
    const end = () => {
      ending.delete(controller);
      if (!this.#reply.writableFinished) controller.abort();
    };
    ending.add(controller);
    if (this.#reply.destroyed) end();
    else this.#reply.once('close', end);
    return this.#signal;
  }

  get socket(): Socket {
    return this.#message.socket;
  }

  get rawHeaders(): readonly string[] {
    return this.#message.rawHeaders;
  }

  get plainHost(): string | null {
    const {
      httpVersionMajor,
      headers: { host },
      socket,
    } = this.#message;
    return httpVersionMajor !== 1 || 'encrypted' in socket ? null : host || null;
  }

  /**
   * The whole body. Its bytes count as they arrive; while all bodies together have too many, this one is not read on.
   * Errors: `body_too_large` beyond `bytesMax` bytes, `too_busy` after too long a wait, `aborted` when the client goes
   * away or `onBytes` says so.
   */
  readBytes(bytesMax: number, onBytes?: OnBytes): Promise<Uint8Array> {
    const message = this.#message;
    const share = (this.#bodyShare ??= this.#serving.flow.uploads.share(
      null,
      this.#caller,
      onBytes === undefined ? this : null,
    ));
    if (waiting.delete(message)) this.#reply.writeContinue();
    return new Promise((resolve, reject) => {
      // The client may have gone away while its credentials were checked; no event would report that any more.
      if (message.destroyed) reject(clientGone());
      // Most bodies come in one piece, and need no list.
      let first: Buffer | null = null;
      let parts: Buffer[] | null = null;
      let total = 0;
      // What comes after a refusal is read and dropped: a client that is still sending could not see the reply else.
      let isRefused = false;
      const refuse = (error: unknown) => {
        isRefused = true;
        first = null;
        parts = null;
        share.release();
        reject(error as Error);
      };
      this.#refuse = refuse;
      message.on('data', (part: Buffer) => {
        if (isRefused || share.isClosed) return;
        total += part.length;
        if (total > bytesMax) {
          refuse(tooLarge(bytesMax));
          return;
        }
        if (onBytes?.(part.length) === false) {
          refuse(notWanted());
          return;
        }
        if (first === null) first = part;
        else (parts ??= [first]).push(part);
        if (total > share.smallBytes) this.flow.stalls.expect(this);
        if (share.add(part.length)) share.readOn();
        else this.#readOnInTurn(share, refuse);
      });
      message.on('end', () => {
        this.flow.stalls.done(this);
        share.whole();
        const body = parts !== null ? Buffer.concat(parts) : (first ?? NO_BYTES);
        first = null;
        parts = null;
        resolve(body);
      });
      // Node reports a client that goes away half way as an error, too.
      message.on('error', () => {
        this.flow.stalls.done(this);
        refuse(clientGone());
      });
    });
  }

  /** Leaves what comes to the socket, and so to the client, until there is room for it. */
  #readOnInTurn(share: ByteShare, refuse: (error: unknown) => void): void {
    const message = this.#message;
    message.pause();
    this.flow.stalls.done(this);
    share.pause();
    share
      .room()
      .then(() => {
        share.readOn();
        if (share.heldBytes > share.smallBytes) this.flow.stalls.expect(this);
      }, refuse)
      .finally(() => message.resume());
  }
}

/** What a target can be. A fragment is no part of one, and programs differ in where they end the path before it. */
export const REQUEST_TARGET = /^(?:\/[^#]*|\*|https?:\/\/[^/#][^#]*)$/i;

/** Where the path of a target begins that names scheme and host (RFC 9112 section 3.2.2). */
const AUTHORITY = /^https?:\/\/([^/?]*)/i;
const HOST = /^(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::\d{1,5})?$/i;

/** As `LocalRequest.url` gives it. */
function urlOf({ url: target, headers, socket }: Pick<IncomingMessage, 'url' | 'headers' | 'socket'>): string {
  const scheme = 'encrypted' in socket ? 'https' : 'http';
  if (target!.startsWith('/')) return `${scheme}://${hostOf(headers.host, socket)}${target!}`;
  const named = AUTHORITY.exec(target!);
  if (named === null) return `${scheme}://${hostOf(headers.host, socket)}/${target!}`;
  const rest = target!.slice(named[0].length);
  return `${scheme}://${hostOf(named[1], socket)}${rest.startsWith('/') ? '' : '/'}${rest}`;
}

/** The last host that was found to be one. */
let lastHost = '';

/** A host that can stand in a URL, whatever the client says. */
export function hostOf(given: string | undefined, socket: Socket): string {
  if (given === undefined || given === '') {
    const address = ownAddress(socket) ?? 'localhost';
    return `${address.includes(':') ? `[${address}]` : address}:${socket.localPort}`;
  }
  // One request after the other names the same.
  if (given === lastHost) return given;
  if (given.length > HOST_LENGTH_MAX || !HOST.test(given) || !URL.canParse(`http://${given}/`)) return NO_HOST;
  return (lastHost = given);
}

/** Where the connection of a request comes from; null once it is gone. */
export function addressOf(request: Request): string | null {
  return connectionAddress(socketOf(request));
}

/** As `ServerSide.localAddressOf`. */
export function localAddressOf(request: Request): string | null {
  return ownAddress(socketOf(request));
}

/** The connection of a request, with its address. */
export function socketOf(request: Request): Socket {
  return (request as unknown as ServedRequest).socket;
}

/** The caller whom the connection itself proves by a node's certificate; null for none. */
export function peerOf(request: Request): Principal | null {
  return peerOfSocket((request as unknown as ServedRequest).socket);
}

/** The name in the verified certificate of the connection; null without one. */
export function certificateOf(request: Request): string | null {
  return certificateOfSocket((request as unknown as ServedRequest).socket);
}

/** Names and values of the headers as they arrived, in turn. */
export function rawHeadersOf(request: Request): readonly string[] {
  return (request as unknown as ServedRequest).rawHeaders;
}

/** As `ServerSide.isGone`. */
export function isGone(request: Request): boolean {
  return (request as unknown as ServedRequest).isGone;
}

/** As `ServerSide.plainHostOf`. */
export function plainHostOf(request: Request): string | null {
  return (request as unknown as ServedRequest).plainHost;
}

/** The connection of a request. */
export function connectionOf(request: Request): object | null {
  return (request as unknown as ServedRequest).socket;
}

/** What the reply to a request holds of the bytes that all replies may. */
export function replyShareOf(request: Request): ByteShare {
  return (request as unknown as ServedRequest).replyShare;
}

/** Gives the request its caller. Errors: `too_busy`. */
export function calledBy(request: Request, caller: string): void {
  (request as unknown as ServedRequest).calledBy(caller);
}

/** Reads a body by the direct way where there is one: the handlers' `readBody`. */
export function readBody(request: Request, bytesMax: number, onBytes?: OnBytes): Promise<Uint8Array> {
  return (request as unknown as ServedRequest).readBytes(bytesMax, onBytes);
}

function tooLarge(bytesMax: number): SkuaError {
  return new SkuaError('body_too_large', `The request body exceeds ${bytesMax} bytes. Send fewer events at once.`, {
    limit: bytesMax,
  });
}

function notWanted(): SkuaError {
  return new SkuaError('aborted', 'The rest of the body is not needed.');
}

function clientGone(): SkuaError {
  return new SkuaError('aborted', 'The client disconnected before it had sent the whole request.');
}
