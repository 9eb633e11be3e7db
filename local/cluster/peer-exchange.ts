import { request as httpRequest } from 'node:http';
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import { decodeText } from '../../core/base/text.ts';

/** Bytes of a reply. */
const REPLY_BYTES_MAX = 33_554_432;
/** Bytes of an error's document that are looked at. */
const PROBLEM_BYTES_MAX = 16_384;

export interface PeerRequest {
  readonly node: NodeAddress;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** By lower-cased name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | null;
  /**
   * `member`: this member's own request, as the system user. `caller`: a request that is passed on, as the user that
   * its own `Authorization` names; the header `skua-forwarded` must be among the headers.
   */
  readonly as: 'member' | 'caller';
  /** From the call to the end of the reply, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** A request that may arrive twice is sent again where a connection that had been idle broke without an answer. */
  readonly isRepeatable?: boolean;
}

export interface PeerReply {
  readonly status: number;
  readonly statusText: string;
  /** By lower-cased name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

/**
 * Why a call failed, in the data of `member_unreachable` and `member_silent`: `refused` (connection refused), `name`
 * (unknown), `route`, `certificate`, `time`, `given-up` (by the signal), `broken` (the connection ended). The process
 * there is gone where it is `refused` or `broken`, and only slow or far where it is another.
 */
export type PeerFailure = 'refused' | 'name' | 'route' | 'certificate' | 'time' | 'given-up' | 'broken';

/** One request over one connection. */
export class Exchange {
  readonly reply: Promise<PeerReply>;
  readonly #to: PeerRequest;
  readonly #request: ClientRequest;
  readonly #timer: NodeJS.Timeout;
  #resolve!: (reply: PeerReply) => void;
  #reject!: (error: SkuaError) => void;
  #isOver = false;
  /** Null while there is no connection that is connected. */
  #socket: Socket | null = null;
  #writtenBefore = 0;

  constructor(to: PeerRequest, agent: Agent, headers: Readonly<Record<string, string>>, deadlineMs: number) {
    this.#to = to;
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const body = typeof to.body === 'string' ? Buffer.from(to.body) : to.body;
    const length =
      body === null && (to.method === 'GET' || to.method === 'HEAD')
        ? {}
        : { 'content-length': String(body?.length ?? 0) };
    const request = httpRequest({
      agent,
      host: to.node.address,
      port: to.node.port,
      method: to.method,
      path: to.path,
      headers: { ...headers, ...length },
    });
    this.#request = request;
    this.#timer = setTimeout(() => this.#fail('time', null), Math.max(1, deadlineMs - performance.now()));
    request.on('error', (error) => this.#fail(this.#socket === null ? reasonOf(error) : 'broken', error));
    request.on('socket', (socket) => {
      this.#socket = socket;
      this.#writtenBefore = socket.bytesWritten;
    });
    request.on('response', (message) => this.#read(message));
    to.signal?.addEventListener('abort', this.#abort);
    if (to.signal?.aborted === true) this.#abort();
    else if (body === null) request.end();
    else request.end(body);
  }

  /** The connection had been idle before. */
  get wasReused(): boolean {
    return this.#request.reusedSocket;
  }

  #read(message: IncomingMessage): void {
    const parts: Buffer[] = [];
    let bytes = 0;
    message.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes > REPLY_BYTES_MAX) this.#fail('broken', new Error(`the reply has more than ${REPLY_BYTES_MAX} bytes`));
      else parts.push(part);
    });
    // Also where it is cut off: then it is not complete.
    message.on('close', () => {
      if (!message.complete) this.#fail('broken', null);
    });
    message.on('error', (error) => this.#fail('broken', error));
    message.on('end', () => {
      if (!this.#end()) return;
      // A copy: the parts are views of buffers in which much else may stand.
      const body = new Uint8Array(bytes);
      let at = 0;
      for (const part of parts) {
        body.set(part, at);
        at += part.length;
      }
      this.#resolve({
        status: message.statusCode!,
        statusText: message.statusMessage ?? '',
        headers: headersOf(message),
        body,
      });
    });
  }

  readonly #abort = (): void => this.#fail('given-up', null);

  #fail(reason: PeerFailure, cause: Error | null): void {
    if (!this.#end()) return;
    const socket = this.#socket;
    const hasArrived = socket !== null && socket.bytesWritten !== this.#writtenBefore;
    this.#request.destroy();
    this.#reject(failed(this.#to.node, reason, hasArrived ? 'member_silent' : 'member_unreachable', cause));
  }

  /** False where it is over already. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#to.signal?.removeEventListener('abort', this.#abort);
    return true;
  }
}

const WORDS: Readonly<Record<PeerFailure, string>> = {
  refused: 'connection refused',
  name: 'its host name does not resolve',
  route: 'it is unreachable',
  certificate: 'its certificate, or ours, is not that of a member',
  time: 'it did not answer in time',
  'given-up': 'the request was cancelled',
  broken: 'the connection broke',
};

export function failed(
  node: NodeAddress,
  reason: PeerFailure,
  code: 'member_silent' | 'member_unreachable',
  cause: Error | null,
): SkuaError {
  const details = cause === null ? '' : ` (${cause.message})`;
  const outcome = code === 'member_silent' ? 'It may have received the request.' : 'It has not received the request.';
  return new SkuaError(
    code,
    `The request to the member ${nodeKey(node)} failed: ${WORDS[reason]}${details}. ${outcome}`,
    { node: nodeKey(node), reason, isBroken: reason === 'broken' },
    cause ?? undefined,
  );
}

const REASONS: Readonly<Record<string, PeerFailure>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'name',
  EAI_AGAIN: 'name',
  EAI_NODATA: 'name',
  EAI_NONAME: 'name',
  ETIMEDOUT: 'time',
  ECONNRESET: 'broken',
  EPIPE: 'broken',
  EPROTO: 'certificate',
};

/** Why there is no connection. */
function reasonOf(error: Error): PeerFailure {
  if (isSkuaError(error, 'certificate_invalid')) return 'certificate';
  const code = (error as NodeJS.ErrnoException).code ?? '';
  // What TLS calls things by: CERT_HAS_EXPIRED, SELF_SIGNED_CERT_IN_CHAIN, UNABLE_TO_VERIFY_LEAF_SIGNATURE, ERR_SSL_...
  return REASONS[code] ?? (/CERT|SSL|TLS|SIGNATURE/.test(code) ? 'certificate' : 'route');
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const joined: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name]!;
    joined[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return joined;
}

/** The code of an answer that is an error, where it says one. */
export function codeOf({ status, body }: PeerReply): string | null {
  if (status < 400 || body.length > PROBLEM_BYTES_MAX) return null;
  try {
    const { code } = JSON.parse(decodeText(body)) as { readonly code?: unknown };
    return typeof code === 'string' ? code.slice(0, 64) : null;
  } catch {
    return null;
  }
}

/** The member says that we prove to be none. Nothing was done then. */
export function isUnknownMember(reply: PeerReply): boolean {
  return reply.status === 401 && codeOf(reply) === 'not_a_member';
}
