import * as net from 'node:net';
import { onTestFinished } from 'vitest';
import type { HttpServer } from '../../../local/http/server.ts';
import { PATH } from './clients.ts';

/** Frames of HTTP/2 made by hand (RFC 9113 section 6), for what no library would send. */

export const FRAME = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
export const CANCEL = 8;
export const REFUSED = 7;
export const END_STREAM = 1;
export const END_HEADERS = 4;
export const ACK = 1;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export const dataFrame = (stream: number, bytes: Uint8Array, flags = 0) => frame(FRAME.data, flags, stream, bytes);
export const resetFrame = (stream: number, code: number) => frame(FRAME.reset, 0, stream, Buffer.of(0, 0, 0, code));
export const settingsFrame = (settings: readonly (readonly [id: number, value: number])[] = []) =>
  frame(
    FRAME.settings,
    0,
    0,
    Buffer.concat(
      settings.map(([id, value]) => {
        const one = Buffer.alloc(6);
        one.writeUInt16BE(id);
        one.writeUInt32BE(value, 2);
        return one;
      }),
    ),
  );

/** Literal fields that are not remembered (RFC 7541 section 6.2.2). */
export function fields(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]));
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  const length: number[] = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    let rest = bytes.length - 127;
    length.push(127);
    for (; rest > 127; rest = Math.floor(rest / 128)) length.push((rest & 127) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

export function callHeaders(
  path = PATH,
  more: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  return [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'a'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ...more,
  ];
}

export const headersFrame = (stream: number, headers = callHeaders(), flags = END_HEADERS) =>
  frame(FRAME.headers, flags, stream, fields(headers));

export interface Seen {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/**
 * A connection on which frames are sent and seen as they are. It has agreed on HTTP/2, and acknowledges settings,
 * nothing else.
 */
export class RawClient {
  readonly socket: net.Socket;
  readonly seen: Seen[] = [];
  readonly closed: Promise<void>;
  #rest: Buffer = Buffer.alloc(0);
  #changed: (() => void)[] = [];

  constructor(socket: net.Socket) {
    this.socket = socket;
    socket.on('data', (part: Buffer) => this.#take(part));
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        resolve();
        this.#tell();
      });
    });
    onTestFinished(() => {
      socket.destroy();
    });
  }

  static async to({ port }: HttpServer, settings: readonly (readonly [number, number])[] = []): Promise<RawClient> {
    const socket = net.connect(port, '127.0.0.1');
    const client = new RawClient(socket);
    await new Promise((resolve) => {
      socket.on('connect', resolve);
    });
    socket.write(PREFACE, 'latin1');
    client.send(settingsFrame(settings));
    await client.has(({ type, flags }) => type === FRAME.settings && flags === 0);
    client.send(frame(FRAME.settings, ACK, 0));
    return client;
  }

  send(...frames: readonly Uint8Array[]): void {
    if (!this.socket.destroyed) this.socket.write(Buffer.concat(frames));
  }

  /** Resolves when such a frame has come; null when the connection was closed before. */
  async has(is: (frame: Seen) => boolean): Promise<Seen | null> {
    for (;;) {
      const found = this.seen.find(is);
      if (found !== undefined) return found;
      if (this.socket.destroyed) return null;
      await new Promise<void>((resolve) => {
        this.#changed.push(resolve);
      });
    }
  }

  #take(part: Buffer): void {
    let bytes = Buffer.concat([this.#rest, part]);
    while (bytes.length >= 9) {
      const end = 9 + bytes.readUIntBE(0, 3);
      if (bytes.length < end) break;
      this.seen.push({
        type: bytes[3]!,
        flags: bytes[4]!,
        stream: bytes.readUInt32BE(5),
        payload: bytes.subarray(9, end),
      });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    this.#tell();
  }

  #tell(): void {
    for (const resolve of this.#changed.splice(0)) resolve();
  }
}
