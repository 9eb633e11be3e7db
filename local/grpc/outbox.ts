import { constants } from 'node:http2';
import type { ServerHttp2Stream } from 'node:http2';
import type { ByteShare } from '../../core/base/byte-budget.ts';
import type { Expected, Flow } from '../http/flow.ts';
import type { SpareBlocks } from './spare-blocks.ts';

/** Longer blocks go to the stream in pieces of so many bytes, so that it shows whether the client takes them. */
const PIECE_BYTES = 65_536;

/** Bytes, and what is done once all of them are on the socket. */
interface Block {
  readonly bytes: Uint8Array;
  readonly onWritten: ((error?: Error | null) => void) | undefined;
}

/** What a call sends: in its order, and only as fast as the client takes it. */
export class Outbox implements Expected {
  /** Messages that were handed in. */
  messages = 0;
  readonly #stream: ServerHttp2Stream;
  readonly #flow: Flow;
  readonly #spares: SpareBlocks;
  /** What `memory` gave last, until it is sent. */
  #given: Uint8Array<ArrayBuffer> | null = null;
  /** What the stream has not been given yet, and how far the first of it has. */
  readonly #blocks: Block[] = [];
  #at = 0;
  #waitingBytes = 0;
  /** The stream has more than it wants to have. */
  #isFull = false;
  #isEnding = false;
  #isClosed = false;
  #share: ByteShare | null = null;
  #taken: Promise<void> | null = null;
  #resolve: (() => void) | null = null;
  #listens = false;

  constructor(stream: ServerHttp2Stream, flow: Flow, spares: SpareBlocks) {
    this.#stream = stream;
    this.#flow = flow;
    this.#spares = spares;
  }

  get isEmpty(): boolean {
    return !this.#isFull;
  }

  /** As in GrpcTransport. */
  memory(bytes: number): Uint8Array {
    return (this.#given = this.#spares.take(this, bytes));
  }

  /** Null where more may be sent at once; else resolves when the client has taken enough, or is gone. */
  send(block: Uint8Array, messages: number): Promise<void> | null {
    this.messages += messages;
    const onWritten = block === this.#given ? this.#giveBack(this.#given) : undefined;
    this.#given = null;
    if (!this.#isFull && block.length <= PIECE_BYTES) {
      if (this.#stream.write(block, onWritten)) return null;
      this.#isFull = true;
    } else {
      this.#blocks.push({ bytes: block, onWritten });
      this.#waitingBytes += block.length;
      if (!this.#isFull) this.#pump();
      if (!this.#isFull) return null;
    }
    return this.#wait();
  }

  /** Behind all that was sent. */
  end(): void {
    if (this.#isFull) this.#isEnding = true;
    else this.#stream.end();
  }

  /** The stream is closed. */
  close(): void {
    this.#isClosed = true;
    this.#given = null;
    this.#spares.drop(this);
    this.#blocks.length = 0;
    this.#waitingBytes = 0;
    this.#letGo();
  }

  /** The client takes nothing. */
  cutOff(): void {
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  #pump(): void {
    const blocks = this.#blocks;
    while (!this.#isFull && blocks.length > 0) {
      const { bytes, onWritten } = blocks[0]!;
      const piece = bytes.subarray(this.#at, this.#at + PIECE_BYTES);
      this.#at += piece.length;
      this.#waitingBytes -= piece.length;
      const isLast = this.#at >= bytes.length;
      if (isLast) {
        blocks.shift();
        this.#at = 0;
      }
      this.#isFull = !this.#stream.write(piece, isLast ? onWritten : undefined);
    }
  }

  /**
   * The last piece of the block has been written, and so have those before it. Where the stream was reset or closed
   * meanwhile, what is said of its writes says nothing of bytes that are on their way: then the memory is left alone.
   */
  #giveBack(block: Uint8Array<ArrayBuffer>): (error?: Error | null) => void {
    return (error) => {
      const isSound = error === null || error === undefined;
      if (isSound && !this.#isClosed && !this.#stream.destroyed && !this.#stream.closed) this.#spares.give(this, block);
    };
  }

  #wait(): Promise<void> {
    if (!this.#listens) {
      this.#listens = true;
      this.#stream.on('drain', () => this.#drained());
    }
    this.#count();
    this.#flow.stalls.expect(this);
    return (this.#taken ??= new Promise((resolve) => {
      this.#resolve = resolve;
    }));
  }

  #drained(): void {
    this.#isFull = false;
    this.#pump();
    if (this.#isFull) {
      this.#count();
      this.#flow.stalls.expect(this);
      return;
    }
    this.#letGo();
    if (this.#isEnding) this.#stream.end();
  }

  #count(): void {
    (this.#share ??= this.#flow.replies.share()).resize(this.#stream.writableLength + this.#waitingBytes);
  }

  #letGo(): void {
    if (this.#share !== null) {
      this.#share.close();
      this.#share = null;
    }
    this.#flow.stalls.done(this);
    const resolve = this.#resolve;
    this.#taken = null;
    this.#resolve = null;
    resolve?.();
  }
}
