import { STATUS_CODES } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ByteShare } from '../../core/base/byte-budget.ts';
import type { Reply, ReplyBody } from '../../handlers/http/context.ts';
import { isSharedBody } from '../../handlers/http/shared-body.ts';
import { Reader } from './flow.ts';
import type { Flow } from './flow.ts';

/** What is written of a reply. Headers are names and values in turn. */
export interface Parts {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly string[];
  readonly body: ReplyBody | null;
}

/**
 * The part of the web platform's `Response` that those between handlers and socket look at: they measure, trace and
 * log.
 */
class LocalResponse {
  readonly reply: Reply;
  #headers: Headers | null = null;

  constructor(reply: Reply) {
    this.reply = reply;
  }

  get status(): number {
    return this.reply.status;
  }
  get statusText(): string {
    return this.reply.statusText;
  }
  get headers(): Headers {
    return (this.#headers ??= new Headers(this.reply.headers));
  }
}

/**
 * A response that keeps the plain parts of a reply, which go to the socket as they are: the platform's own costs as
 * much as all the rest of a small request.
 */
export function toResponse(reply: Reply): Response {
  return new LocalResponse(reply) as unknown as Response;
}

/** Longer bodies go to the socket in pieces of so many bytes, so that it shows whether the client takes them. */
const PIECE_BYTES = 65_536;

/** What bounds a reply. */
interface Bounds {
  readonly flow: Flow;
  /** The reply's share of what all replies may hold. */
  readonly replyShare: ByteShare;
}

/**
 * Writes a reply. The promise, if there is one, ends with a body that comes bit by bit, and rejects when that fails.
 */
export function sendReply(
  reply: ServerResponse,
  response: Response | LocalResponse,
  bounds: Bounds,
): Promise<void> | void {
  const { status, statusText, headers, body } = partsOfResponse(response);
  reply.writeHead(status, statusText, headers as string[]);
  if (body instanceof ReadableStream) return stream(reply, body as ReadableStream<Uint8Array>, bounds);
  const whole = body as string | Uint8Array | null | undefined;
  if (whole != null && whole.length > PIECE_BYTES && reply.req.method !== 'HEAD') return sendLong(reply, whole, bounds);
  reply.end(whole ?? undefined);
  // Usually the socket has taken it all by now.
  if (!reply.writableFinished) expectReader(reply, bounds.flow);
}

async function sendLong(reply: ServerResponse, body: string | Uint8Array, { flow, replyShare }: Bounds): Promise<void> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  // What it was made of has been let go.
  replyShare.resize(isSharedBody(bytes) ? 0 : bytes.length);
  let isTaken = true;
  for (let at = 0; at < bytes.length && !reply.destroyed; at += PIECE_BYTES) {
    if (!isTaken) await drained(reply, flow);
    isTaken = reply.write(bytes.subarray(at, at + PIECE_BYTES));
  }
  reply.end();
  if (!reply.writableFinished) expectReader(reply, flow);
}

/** What has been handed to the socket as a whole must be taken in time, too. */
function expectReader(reply: ServerResponse, { stalls }: Flow): void {
  if (reply.destroyed) return;
  const reader = new Reader(reply);
  stalls.expect(reader);
  reply.once('close', () => stalls.done(reader));
}

/** What is written of a response, whichever code made it. */
function partsOfResponse(response: Response | LocalResponse): Parts {
  const parts = response instanceof LocalResponse ? partsOf(response.reply) : partsOfPlatform(response);
  return parts.statusText === '' ? { ...parts, statusText: STATUS_CODES[parts.status] ?? '' } : parts;
}

function partsOf({ status, statusText, headers: given, body }: Reply): Parts {
  const headers: string[] = [];
  for (const name in given) headers.push(name, given[name]!);
  if (typeof body === 'string' && given['content-type'] === undefined)
    headers.push('content-type', 'text/plain; charset=UTF-8');
  const length =
    body === null || body instanceof ReadableStream
      ? null
      : typeof body === 'string'
        ? Buffer.byteLength(body)
        : body.byteLength;
  if (length !== null && given['content-length'] === undefined) headers.push('content-length', String(length));
  return { status, statusText, headers, body };
}

function partsOfPlatform({ status, statusText, headers, body }: Response): Parts {
  return { status, statusText, headers: [...headers].flat(), body };
}

/** Hands the pieces on as the client takes them. A client that goes away cancels the body. */
async function stream(
  reply: ServerResponse,
  body: ReadableStream<Uint8Array>,
  { flow, replyShare }: Bounds,
): Promise<void> {
  const reader = body.getReader();
  const cancel = () => {
    reader.cancel().catch(() => {});
  };
  if (reply.destroyed || reply.req.method === 'HEAD') {
    cancel();
    reply.end();
    return;
  }
  reply.on('close', cancel);
  // Node holds the head back until there is a body; a client that subscribes to something quiet should know that it
  // worked.
  reply.flushHeaders();
  try {
    let sinceTurn = 0;
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      if (!reply.write(piece.value) && !reply.destroyed) await drained(reply, flow);
      // A client that takes everything at once would let no other client have a turn.
      sinceTurn += piece.value.length;
      if (sinceTurn < PIECE_BYTES) continue;
      sinceTurn = 0;
      await flow.turns.take(replyShare.caller);
    }
    reply.end();
    if (!reply.writableFinished) expectReader(reply, flow);
  } finally {
    reply.off('close', cancel);
  }
}

function drained(reply: ServerResponse, { stalls }: Flow): Promise<void> {
  return new Promise((resolve) => {
    const reader = new Reader(reply);
    stalls.expect(reader);
    const end = () => {
      stalls.done(reader);
      reply.off('drain', end);
      reply.off('close', end);
      resolve();
    };
    reply.on('drain', end);
    reply.on('close', end);
  });
}

/** Longest request line in bytes; beyond it 414. */
export const REQUEST_LINE_BYTES_MAX = 8_192;

/** So long a refused client may still read the answer; a connection cut off at once would take it away. */
const LINGER_MS = 1_000;

type ClientError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer };
/** Node.js hangs the reply under way on its connection. */
type Connection = Duplex & { readonly _httpMessage?: ServerResponse | null };

/** The reply of HTTP/1.1 that has not ended on a connection; null for none. */
export function replyUnderWay(connection: Connection): ServerResponse | null {
  return connection._httpMessage ?? null;
}

const refused = new WeakSet<Connection>();

/**
 * What the parser could not read, or what came too slowly, never becomes a request; the answer is written to the bare
 * connection. Where a reply is under way it must not be torn: one that was begun, or belongs to an earlier request,
 * ends first.
 */
export function refuseMalformed(error: ClientError, connection: Connection): void {
  if (error.code === 'ECONNRESET') {
    connection.destroy();
    return;
  }
  // Everything more that such a client sends is an error again. Its answer is on the way, and its end is near.
  if (refused.has(connection)) return;
  if (!connection.writable) {
    connection.destroy();
    return;
  }
  const underWay = replyUnderWay(connection);
  // A client that has ended in the middle of a request reads no reply to one before it, which may take for ever.
  if (underWay !== null && error.code === 'HPE_INVALID_EOF_STATE') {
    connection.destroy();
    return;
  }
  if (underWay !== null && underWay.req.complete && !underWay.writableFinished) {
    refused.add(connection);
    underWay.once('finish', () => connection.end());
    return;
  }
  if (underWay?.headersSent === true) {
    connection.destroy();
    return;
  }
  const status = statusOf(error);
  refused.add(connection);
  connection.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  const linger = setTimeout(() => connection.destroy(), LINGER_MS).unref();
  connection.once('close', () => clearTimeout(linger));
}

function statusOf({ code, rawPacket }: ClientError): number {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return isLongRequestLine(rawPacket) ? 414 : 431;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 408;
    default:
      return 400;
  }
}

function isLongRequestLine(packet: Buffer | undefined): boolean {
  return (
    packet !== undefined && /^[A-Z]+ [^\r\n]{8192}/.test(packet.toString('latin1', 0, REQUEST_LINE_BYTES_MAX + 64))
  );
}
