import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { Transform } from 'node:stream';
import type { BodyEncoder, Coding } from '../../handlers/http/context.ts';

/** Bodies up to this length are compressed in one piece. */
const WHOLE_BYTES_MAX = 1_048_576;
/** Longer ones block by block. */
const BLOCK_BYTES = 65_536;
/**
 * Replies that are compressed block by block at once; beyond that they go out as they are. Each of those that go on for
 * long holds 64 KiB.
 */
export const COMPRESSED_REPLIES_MAX = 256;

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

const { constants } = zlib;
const GZIP = { level: 5 };
/** What goes on for hours must not hold much: a window of 8 KiB and as much again for its index. */
const LIVE_GZIP = { level: 5, windowBits: 13, memLevel: 6 };
const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 4,
    [constants.BROTLI_PARAM_LGWIN]: 18,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
};
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_windowLog]: 18 } };

const WHOLE: Readonly<Record<Coding, (bytes: Uint8Array) => Promise<Buffer>>> = {
  gzip: (bytes) => promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.gzip)(bytes, GZIP),
  deflate: (bytes) => promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.deflate)(bytes, GZIP),
  br: (bytes) => promisify<Uint8Array, zlib.BrotliOptions, Buffer>(zlib.brotliCompress)(bytes, BROTLI),
  zstd: (bytes) => promisify<Uint8Array, zlib.ZstdOptions, Buffer>(zlib.zstdCompress)(bytes, ZSTD),
};

type Flushing = Transform & { flush(done: () => void): void };

function transformOf(coding: Coding, isLive: boolean): Flushing {
  switch (coding) {
    case 'gzip':
      return zlib.createGzip(isLive ? LIVE_GZIP : GZIP);
    case 'deflate':
      return zlib.createDeflate(isLive ? LIVE_GZIP : GZIP);
    case 'br':
      return zlib.createBrotliCompress(BROTLI);
    case 'zstd':
      return zlib.createZstdCompress(ZSTD);
  }
}

/** Compresses in threads of Node's pool. */
export class ReplyCompression implements BodyEncoder {
  readonly codings: ReadonlySet<Coding> = new Set<Coding>(['zstd', 'br', 'gzip', 'deflate']);
  readonly liveCodings: ReadonlySet<Coding> = new Set<Coding>(['gzip', 'deflate']);
  readonly #max: number;
  #open = 0;

  constructor(max = COMPRESSED_REPLIES_MAX) {
    this.#max = max;
  }

  /** Replies that are being compressed block by block. */
  get open(): number {
    return this.#open;
  }

  encode(
    body: Body,
    coding: Coding,
    isLive: boolean,
  ): Promise<Uint8Array<ArrayBuffer>> | ReadableStream<Uint8Array> | null {
    if (!(body instanceof ReadableStream) && body.length <= WHOLE_BYTES_MAX)
      return WHOLE[coding](Buffer.from(body as string)) as Promise<Uint8Array<ArrayBuffer>>;
    if (this.#open >= this.#max) return null;
    this.#open++;
    return compressed(
      body instanceof ReadableStream ? piecesOf(body) : blocksOf(body),
      transformOf(coding, isLive),
      isLive,
      () => {
        this.#open--;
      },
    );
  }
}

/** A body made only as fast as it is read, block by block; where it goes on, each block comes out at once. */
function compressed(
  blocks: AsyncIterator<Uint8Array, void, void>,
  transform: Flushing,
  isLive: boolean,
  release: () => void,
): ReadableStream<Uint8Array> {
  let parts: Uint8Array[] = [];
  let isReleased = false;
  const end = () => {
    if (!isReleased) release();
    isReleased = true;
    transform.destroy();
  };
  transform.on('data', (part: Uint8Array) => parts.push(part));
  let failure: Error | null = null;
  let onFailure: (error: Error) => void = () => {};
  transform.on('error', (error) => {
    failure = error;
    onFailure(error);
  });
  // One promise a step: a race against one that lives as long as the reply would hold on to every step.
  const step = (begin: (done: () => void) => void) =>
    new Promise<void>((resolve, reject) => {
      if (failure !== null) return reject(failure);
      onFailure = reject;
      begin(resolve);
    });
  const written = (block: Uint8Array) =>
    step((done) => {
      transform.write(block, () => {
        if (!isLive) done();
      });
      if (isLive) transform.flush(done);
    });
  const ended = () =>
    step((done) => {
      transform.once('end', done);
      transform.end();
    });
  const take = (): Uint8Array => {
    // What the stream still holds is told to its listener, which has it last then.
    while (transform.read() !== null) {
      /* taken */
    }
    const taken = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    parts = [];
    return taken;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          for (;;) {
            const block = await blocks.next();
            // The reader has gone while there was nothing to read.
            if (isReleased) return;
            await (block.done === true ? ended() : written(block.value));
            const bytes = take();
            if (bytes.length > 0) controller.enqueue(bytes);
            if (block.done === true) {
              end();
              controller.close();
              return;
            }
            if (bytes.length > 0) return;
          }
        } catch (error) {
          end();
          throw error;
        }
      },
      async cancel() {
        end();
        await blocks.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Of a stream; leaving early cancels it. */
function piecesOf(body: ReadableStream<Uint8Array>): AsyncIterator<Uint8Array, void, void> {
  const reader = body.getReader();
  return {
    async next() {
      const { done, value } = await reader.read();
      return done ? { done: true, value: undefined } : { done: false, value };
    },
    async return() {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

/** Of a long text or array; no pair of halves of a character is parted. */
async function* blocksOf(body: string | Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  for (let at = 0; at < body.length;) {
    let end = Math.min(at + BLOCK_BYTES, body.length);
    if (typeof body === 'string') {
      if (end < body.length && (body.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
      yield Buffer.from(body.slice(at, end));
    } else yield body.subarray(at, end);
    at = end;
  }
}
