import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { SkuaError } from '../../core/errors.ts';
import type { Principal } from '../../core/security/principal.ts';
import type { OnBytes } from '../../handlers/http/context.ts';
import { connectionAddress } from './client-address.ts';
import { certificateOfSocket, peerOfSocket } from '../tls/peer.ts';

const NO_BYTES = new Uint8Array(0);

/** Requests whose client waits for `100 Continue` before it sends the body. */
const waiting = new WeakSet<IncomingMessage>();

export function awaitsContinue(message: IncomingMessage): void {
  waiting.add(message);
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
    for (const request of this.#requests) request.abort();
    this.#requests.clear();
  }
}

/** The part of the web platform's `Headers` that handlers use, over the head as Node read it (with `joinDuplicateHeaders`, as the platform does). */
class LocalHeaders {
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

/**
 * The part of the web platform's `Request` that handlers use, over Node's. `url` holds path and query as they arrived, the signal
 * also aborts when the server stops, and `readBytes` takes the place of `arrayBuffer()`, through which a body costs five times as much as
 * all the rest of a request.
 */
export class LocalRequest {
  readonly #message: IncomingMessage;
  readonly #reply: ServerResponse;
  readonly #ending: Ending;
  #signal: AbortSignal | null = null;
  #url: string | null = null;
  #headers: LocalHeaders | null = null;

  constructor(message: IncomingMessage, reply: ServerResponse, ending: Ending) {
    this.#message = message;
    this.#reply = reply;
    this.#ending = ending;
  }

  get method(): string { return this.#message.method!; }

  get headers(): LocalHeaders { return (this.#headers ??= new LocalHeaders(this.#message.headers)); }

  /**
   * Scheme and host, then the target as it was sent. The platform's `URL` would resolve `..` and `%2e%2e` and turn `\` round, so that a
   * proxy in front, which has its own rules for paths, would let pass what it refuses.
   */
  get url(): string {
    return (this.#url ??= urlOf(this.#message));
  }

  /** Aborts when the client goes away before it has the whole reply, or the server stops. Made when first asked for. */
  get signal(): AbortSignal {
    if (this.#signal !== null) return this.#signal;
    const controller = new AbortController();
    this.#signal = controller.signal;
    const end = () => {
      this.#ending.delete(controller);
      if (!this.#reply.writableFinished) controller.abort();
    };
    this.#ending.add(controller);
    if (this.#reply.destroyed) end();
    else this.#reply.once('close', end);
    return this.#signal;
  }

  get socket(): Socket {
    return this.#message.socket;
  }

  get rawHeaders(): readonly string[] { return this.#message.rawHeaders; }

  /** The whole body. Rejects with `body_too_large` beyond `bytesMax` bytes, and with `aborted` when the client goes away or `onBytes` says so. */
  readBytes(bytesMax: number, onBytes?: OnBytes): Promise<Uint8Array> {
    const message = this.#message;
    if (waiting.delete(message)) this.#reply.writeContinue();
    return new Promise((resolve, reject) => {
      // Whoever looks at the caller first may find that it went away meanwhile; nobody would tell any more.
      if (message.destroyed) reject(clientGone());
      // Most bodies come in one piece, and need no list.
      let first: Buffer | null = null;
      let parts: Buffer[] | null = null;
      let total = 0;
      message.on('data', (part: Buffer) => {
        total += part.length;
        // What comes after the limit is read and dropped: a client that is still sending could not see the reply else.
        if (total > bytesMax) reject(tooLarge(bytesMax));
        else if (onBytes?.(part.length) === false) {
          first = parts = null;
          reject(notWanted());
        } else if (first === null) first = part;
        else (parts ??= [first]).push(part);
      });
      message.on('end', () => resolve(parts !== null ? Buffer.concat(parts) : first ?? NO_BYTES));
      // Node reports a client that goes away half way as an error, too.
      message.on('error', () => reject(clientGone()));
    });
  }
}

/** Where the path of a target begins that names scheme and host (RFC 9112 section 3.2.2). */
const AUTHORITY = /^https?:\/\/([^/?]*)/i;
const HOST = /^(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::\d{1,5})?$/i;

function urlOf({ url: target, headers, socket }: IncomingMessage): string {
  const scheme = 'encrypted' in socket ? 'https' : 'http';
  if (target!.startsWith('/')) return `${scheme}://${hostOf(headers.host, socket)}${target!}`;
  const named = AUTHORITY.exec(target!);
  if (named === null) return `${scheme}://${hostOf(headers.host, socket)}/${target!}`;
  const rest = target!.slice(named[0].length);
  return `${scheme}://${hostOf(named[1], socket)}${rest.startsWith('/') ? '' : '/'}${rest}`;
}

/** A host that can stand in a URL, whatever the client says. */
function hostOf(given: string | undefined, { localAddress = 'localhost', localFamily, localPort }: Socket): string {
  if (given === undefined || given === '') return `${localFamily === 'IPv6' ? `[${localAddress}]` : localAddress}:${localPort}`;
  return HOST.test(given) && URL.canParse(`http://${given}/`) ? given : '_invalid_';
}

/** Where the connection of a request comes from; null once it is gone. */
export function addressOf(request: Request): string | null {
  return connectionAddress(socketOf(request));
}

/** The connection of a request, with its address. */
export function socketOf(request: Request): Socket {
  return (request as unknown as LocalRequest).socket;
}

/** The caller whom the connection itself proves by a node's certificate; null for none. */
export function peerOf(request: Request): Principal | null {
  return peerOfSocket((request as unknown as LocalRequest).socket);
}

/** The name in the verified certificate of the connection; null without one. */
export function certificateOf(request: Request): string | null {
  return certificateOfSocket((request as unknown as LocalRequest).socket);
}

/** Names and values of the headers as they arrived, in turn. */
export function rawHeadersOf(request: Request): readonly string[] {
  return (request as unknown as LocalRequest).rawHeaders;
}

/** The connection of a request. */
export function connectionOf(request: Request): object | null {
  return (request as unknown as LocalRequest).socket;
}

/** Reads a body by the direct way where there is one: the handlers' `readBody`. */
export function readBody(request: Request, bytesMax: number, onBytes?: OnBytes): Promise<Uint8Array> {
  return (request as unknown as LocalRequest).readBytes(bytesMax, onBytes);
}

function tooLarge(bytesMax: number): SkuaError {
  return new SkuaError('body_too_large', `The request body exceeds ${bytesMax} bytes. Send fewer events at once.`, { limit: bytesMax });
}

function notWanted(): SkuaError {
  return new SkuaError('aborted', 'The rest of the body is not wanted.');
}

function clientGone(): SkuaError {
  return new SkuaError('aborted', 'The client went away before it had sent the whole request.');
}
