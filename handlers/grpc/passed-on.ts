import { decodeBase64, encodeBase64 } from '../../core/base64.ts';
import { SkuaError } from '../../core/errors.ts';
import { decodeText, encodeText } from '../../core/text.ts';
import type { Reply } from '../http/context.ts';
import { STATUS } from './call.ts';
import type { Ending, GrpcTransport } from './call.ts';
import { PREFIX_BYTES } from './messages/wire.ts';
import { background } from '../../core/background.ts';

/** Calls on their way between members: a request of HTTP with all messages of the client, and a reply with all of the leader's and how the call ended. */

export const GRPC_TYPE = 'application/grpc';
/** How many bytes at the end of a reply say how the call ended, as JSON: trailers may be longer than a header can be. */
const ENDING_HEADER = 'skua-grpc-ending';
/** Room at first for the messages of a call. */
const ROOM_FIRST = 1_024;

/** Messages one behind the other with their prefixes. */
export class MessageBlock {
  #bytes = new Uint8Array(ROOM_FIRST);
  #length = 0;

  get length(): number { return this.#length; }
  get bytes(): Uint8Array { return this.#bytes.subarray(0, this.#length); }

  add(message: Uint8Array): void {
    const end = this.#length + PREFIX_BYTES + message.length;
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      larger.set(this.bytes);
      this.#bytes = larger;
    }
    new DataView(this.#bytes.buffer).setUint32(this.#length + 1, message.length);
    this.#bytes.set(message, this.#length + PREFIX_BYTES);
    this.#length = end;
  }
}

/** What `MessageBlock` has joined, one by one: there may be millions of them in one body. Errors: `bad_request`. */
export function* unframed(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length;) {
    const end = at + PREFIX_BYTES > bytes.length ? Number.NaN : at + PREFIX_BYTES + view.getUint32(at + 1);
    if (!(end <= bytes.length) || bytes[at] !== 0) throw new SkuaError('bad_request', 'These are no messages of gRPC with their prefixes.');
    yield bytes.subarray(at + PREFIX_BYTES, end);
    at = end;
  }
}

/** A call whose messages have all arrived. */
export class ArrivedCall implements GrpcTransport {
  readonly path: string;
  readonly request: Request;
  readonly #messages: Iterator<Uint8Array, void, void>;
  readonly #send: (block: Uint8Array) => Promise<void> | null;

  constructor({ path, request }: Pick<GrpcTransport, 'path' | 'request'>, bytes: Uint8Array, send: (block: Uint8Array) => Promise<void> | null) {
    this.path = path;
    this.request = request;
    this.#messages = unframed(bytes);
    this.#send = send;
  }

  read(): Uint8Array | null { return this.#messages.next().value ?? null; }
  send(block: Uint8Array): Promise<void> | null { return this.#send(block); }
  guarded(work: () => Promise<unknown>): void { background(work()); }
}

/** What the member that leads answers to the one that passed a call on. */
export function replyOf(ending: Ending, blocks: readonly Uint8Array[]): Reply {
  const trailers = 'httpStatus' in ending ? {} : Object.fromEntries(Object.entries(ending.trailers).map(([name, value]) => [name, typeof value === 'string' ? value : encodeBase64(value)]));
  const text = encodeText(JSON.stringify({ ...ending, trailers }));
  const body = new Uint8Array(blocks.reduce((sum, { length }) => sum + length, text.length));
  let at = 0;
  for (const block of [...blocks, text]) {
    body.set(block, at);
    at += block.length;
  }
  return { status: 200, statusText: 'OK', headers: { 'content-type': GRPC_TYPE, 'content-length': String(body.length), [ENDING_HEADER]: String(text.length) }, body };
}

/** The inverse of `replyOf`. A reply that is none comes from a member that has no gRPC, or from what stands before it. */
export function answerOf({ status, headers, body }: Pick<Reply, 'status' | 'headers' | 'body'>): { readonly ending: Ending; readonly block: Uint8Array } {
  const length = Number(headers[ENDING_HEADER] ?? Number.NaN);
  if (!(body instanceof Uint8Array) || !(length <= body.length)) {
    return { ending: { status: STATUS.unavailable, message: `The member that leads has answered with status ${status}, and not to a call of gRPC: it is of an older version, or does not take more.`, trailers: {} }, block: new Uint8Array(0) };
  }
  const block = body.subarray(0, body.length - length);
  const { httpStatus, status: code, message, trailers } = JSON.parse(decodeText(body.subarray(block.length))) as { httpStatus?: number; status: number; message: string; trailers: Record<string, string> };
  if (httpStatus !== undefined) return { ending: { httpStatus }, block };
  return { ending: { status: code, message, trailers: Object.fromEntries(Object.entries(trailers).map(([name, value]) => [name, name.endsWith('-bin') ? decodeBase64(value) ?? '' : value])) }, block };
}
