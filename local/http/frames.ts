import type { Duplex } from 'node:stream';

/**
 * Requests between members, and their answers, over one connection: each is a frame, whose number says which answer is whose. An exchange of HTTP
 * for each of them costs more than all that is done with it.
 *
 * | bytes | what |
 * |---|---|
 * | 4 | bytes of all that follows |
 * | 4 | number of the request |
 * | 4 | bytes of the head |
 * | head | lines of Latin-1: method and target, or status and reason; then name and value of each header |
 * | rest | body |
 */
export const FRAMES_PROTOCOL = 'skua-frames';
export const FRAMES_PATH = '/cluster/frames';

const LENGTH_BYTES = 4;
/** Length, number, length of the head. */
const FIXED_BYTES = 12;
/** Longest head in bytes, as that of a request over HTTP. */
export const FRAME_HEAD_BYTES_MAX = 32_768;
/** Longest body of a request; a longer one has a connection of its own, so that others need not wait behind it. */
export const FRAME_REQUEST_BODY_BYTES_MAX = 65_536;
/** Longest body of an answer. */
export const FRAME_REPLY_BODY_BYTES_MAX = 1_048_576;

/** What a header can hold (RFC 9110 section 5.5). */
const FIELD_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/;
const HEAD_TEXT = /^[\t\n\x20-\x7e\x80-\xff]*$/;

type OnFrame = (id: number, head: readonly string[], body: Buffer) => void;

/** Cuts what arrives into frames. Memory is taken for one frame at a time, and only for one that may be as long as it says. */
export class FrameReader {
  readonly #bytesMax: number;
  readonly #onFrame: OnFrame;
  /** A frame that has not arrived as a whole, and how much of it is there. */
  #frame: Buffer | null = null;
  #filled = 0;
  /** Less than the length of a frame. */
  #rest: Buffer | null = null;

  constructor(bodyBytesMax: number, onFrame: OnFrame) {
    this.#bytesMax = FIXED_BYTES - LENGTH_BYTES + FRAME_HEAD_BYTES_MAX + bodyBytesMax;
    this.#onFrame = onFrame;
  }

  /** Errors: one that says what is wrong with what has come; nothing that comes later means anything then. */
  take(chunk: Buffer): void {
    let bytes = chunk;
    let at = 0;
    if (this.#frame !== null) {
      at = chunk.copy(this.#frame, this.#filled);
      this.#filled += at;
      if (this.#filled < this.#frame.length) return;
      const frame = this.#frame;
      this.#frame = null;
      this.#read(frame, 0, frame.length);
    } else if (this.#rest !== null) {
      bytes = Buffer.concat([this.#rest, chunk]);
      this.#rest = null;
    }
    while (bytes.length - at >= LENGTH_BYTES) {
      const length = bytes.readUInt32LE(at);
      if (length < FIXED_BYTES - LENGTH_BYTES || length > this.#bytesMax) throw new Error(`a frame says that it has ${length} bytes`);
      const end = at + LENGTH_BYTES + length;
      if (end > bytes.length) {
        this.#frame = Buffer.allocUnsafeSlow(LENGTH_BYTES + length);
        this.#filled = bytes.copy(this.#frame, 0, at);
        return;
      }
      this.#read(bytes, at, end);
      at = end;
    }
    if (at < bytes.length) this.#rest = Buffer.from(bytes.subarray(at));
  }

  #read(bytes: Buffer, at: number, end: number): void {
    const headBytes = bytes.readUInt32LE(at + 8);
    const body = at + FIXED_BYTES + headBytes;
    if (headBytes > FRAME_HEAD_BYTES_MAX || body > end) throw new Error(`the head of a frame says that it has ${headBytes} bytes`);
    const head = bytes.toString('latin1', at + FIXED_BYTES, body);
    if (!HEAD_TEXT.test(head)) throw new Error('the head of a frame is no text');
    this.#onFrame(bytes.readUInt32LE(at + 4), head.split('\n'), bytes.subarray(body, end));
  }
}

interface Waiting { readonly id: number; readonly head: string; readonly body: Uint8Array | null; readonly bytes: number }

/** Writes frames, those of one turn of the process together: a call of the system for each would cost more than the rest. */
export class FrameWriter {
  readonly #connection: Duplex;
  readonly #onWritten: () => void;
  readonly #run: (work: () => void) => void;
  #waiting: Waiting[] = [];
  #bytes = 0;

  /** `onWritten` is called after each write, when all that was added has been given to the connection. `run` runs each write, which nobody waits for. */
  constructor(connection: Duplex, onWritten: () => void = () => {}, run: (work: () => void) => void = (work) => work()) {
    this.#connection = connection;
    this.#onWritten = onWritten;
    this.#run = run;
  }

  get isEmpty(): boolean { return this.#waiting.length === 0; }

  /** Gives the bytes of the frame. Errors: one for a head that is none. */
  add(id: number, head: string, body: Uint8Array | null): number {
    if (head.length > FRAME_HEAD_BYTES_MAX) throw new Error(`the head of a frame has ${head.length} characters`);
    const bytes = FIXED_BYTES + head.length + (body?.length ?? 0);
    this.#waiting.push({ id, head, body, bytes });
    this.#bytes += bytes;
    if (this.#waiting.length === 1) setImmediate(this.#run, this.#write);
    return bytes;
  }

  readonly #write = (): void => {
    const buffer = Buffer.allocUnsafe(this.#bytes);
    let at = 0;
    for (const { id, head, body, bytes } of this.#waiting) {
      buffer.writeUInt32LE(bytes - LENGTH_BYTES, at);
      buffer.writeUInt32LE(id, at + 4);
      buffer.writeUInt32LE(head.length, at + 8);
      buffer.write(head, at + FIXED_BYTES, 'latin1');
      if (body !== null) buffer.set(body, at + FIXED_BYTES + head.length);
      at += bytes;
    }
    this.#waiting = [];
    this.#bytes = 0;
    if (!this.#connection.destroyed) this.#connection.write(buffer);
    this.#onWritten();
  };
}

/** The lines of a head, one behind the other. Errors: one for what can't stand in a line. */
export function frameHead(first: string, second: string, headers: readonly string[]): string {
  let head = `${line(first)}\n${line(second)}`;
  for (const text of headers) head += `\n${line(text)}`;
  return head;
}

function line(text: string): string {
  if (!FIELD_TEXT.test(text)) throw new Error('a header holds what no header can');
  return text;
}

/** Name and value in turn, from the third line of a head on. Errors: one for a name without a value, or what is no name. */
export function frameHeaders(head: readonly string[]): Record<string, string> {
  if (head.length < 2 || head.length % 2 !== 0) throw new Error(`the head of a frame has ${head.length} lines`);
  const headers = Object.create(null) as Record<string, string>;
  for (let i = 2; i < head.length; i += 2) {
    const name = head[i]!;
    if (!HEADER_NAME.test(name)) throw new Error('the head of a frame names no header');
    headers[name] = head[i + 1]!;
  }
  return headers;
}

/** A token in lower case (RFC 9110 section 5.6.2). */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
