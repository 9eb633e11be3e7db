import { constants } from 'node:http2';
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { ByteShare, Sender, ShareOwner } from '../../core/base/byte-budget.ts';
import type { SharedLimit } from '../../core/base/shared-limit.ts';
import { GrpcError, STATUS } from '../../handlers/grpc/call.ts';
import type { Ending, GrpcEnding, GrpcTransport } from '../../handlers/grpc/call.ts';
import type { CountedCall } from '../http/call-limits.ts';
import type { Expected, Flow } from '../http/flow.ts';
import type { Guard } from '../http/guard.ts';
import { timeoutOf, trailersOf } from './grpc-headers.ts';
import { countMessages, Messages } from './grpc-messages.ts';
import { Outbox } from './outbox.ts';
import { CallRequest } from './grpc-request.ts';
import type { SpareBlocks } from './spare-blocks.ts';
import type { CallWatch, WatchedCall } from './watch.ts';

/** While a method reads nothing, so many bytes of its messages are taken, and what a window holds beyond them. */
const UNREAD_BYTES_MAX = 65_536;
/** A smaller piece that has to wait is copied out of the block in which it arrived with others. */
const COPIED_BYTES_MAX = 4_096;
/** Longest time that a timer can measure. */
const TIMER_MS_MAX = 2_147_483_647;
/**
 * A deadline that is at least so far away is kept to the next multiple of so many milliseconds: the client keeps to its
 * own, and is not waiting any more.
 */
const ROUNDED_MS_MIN = 1_000;
const ROUNDED_TO_MS = 100;

const NOT_READY: GrpcEnding = { status: STATUS.unavailable, message: 'Server Is Not Ready', trailers: {} };
const LATE: GrpcEnding = { status: STATUS.deadlineExceeded, message: 'Deadline Exceeded', trailers: {} };
const SLOW: GrpcEnding = {
  status: STATUS.deadlineExceeded,
  message: 'The request did not arrive in time.',
  trailers: {},
};
const GONE: GrpcEnding = { status: STATUS.cancelled, message: 'Call canceled by the client.', trailers: {} };
const BUSY: GrpcEnding = { status: STATUS.unavailable, message: 'Server Is Too Busy', trailers: {} };
const CUT: GrpcEnding = { status: STATUS.internal, message: 'Incomplete message.', trailers: {} };

const HEAD: OutgoingHttpHeaders = { ':status': 200, 'content-type': 'application/grpc' };
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const ALONE = { endStream: true, sendDate: false };

/** What the calls of a server have in common. */
export interface Serving {
  /**
   * Calls that are not read on. What the library holds of each is a window and a buffer of its own, which no limit
   * counts.
   */
  readonly paused: SharedLimit;
  readonly flow: Flow;
  readonly spares: SpareBlocks;
  readonly guard: Guard;
  readonly watches: readonly CallWatch[];
  /** A request that has to be whole, and each message that has begun, may take so long. */
  readonly requestMs: number;
}

interface Waiter {
  resolve(message: Uint8Array | null): void;
  reject(error: GrpcError): void;
}

/** One call of gRPC over one stream of HTTP/2. */
export class StreamCall implements GrpcTransport, WatchedCall, ShareOwner, Expected, Sender {
  readonly path: string;
  readonly request: Request;
  received = 0;
  readonly #counted: CountedCall;
  readonly #stream: ServerHttp2Stream;
  readonly #serving: Serving;
  readonly #messages = new Messages();
  readonly #outbox: Outbox;
  readonly #watches: ((ending: Ending | null) => void)[];
  #share: ByteShare | null = null;
  #replyShare: ByteShare | null = null;
  #controller: AbortController | null = null;
  #deadline: NodeJS.Timeout | null = null;
  #waiter: Waiter | null = null;
  /** Since when the client owes what is waited for; NaN where it owes nothing. */
  #owedMs = Number.NaN;
  /** Since when anything of the first message is waited for; NaN where it is not. */
  #firstMs = Number.NaN;
  #hasAll: boolean;
  /** Bytes of the message that was read last. */
  #lastBytes = 0;
  /** Why the stream is not read on: there is no room for more, or no reader takes what there is. */
  #waitsForRoom = false;
  #waitsForReader = false;
  #isPaused = false;
  /** For whom the pause counts. */
  #pausedFor = '';
  #isReading = false;
  /** No client waits for an answer any more, or the answer has been given. */
  #isOver = false;
  /** Why the call can't be read any more. */
  #failure: GrpcEnding | null = null;
  #isStopping = false;

  constructor(
    stream: ServerHttp2Stream,
    socket: Socket,
    counted: CountedCall,
    path: string,
    fields: readonly string[],
    serving: Serving,
    onClose: () => void,
  ) {
    this.#stream = stream;
    this.#counted = counted;
    this.#serving = serving;
    this.path = path;
    const request = new CallRequest(socket, fields, this);
    this.request = request as unknown as Request;
    this.#hasAll = stream.endAfterHeaders;
    this.#outbox = new Outbox(stream, serving.flow, serving.spares);
    this.#watches = serving.watches.map((watch) => watch(this));
    // Behind all that could fail.
    stream.on('close', () => {
      onClose();
      this.#closed();
    });
    const timeoutMs = timeoutOf(request.headers.get('grpc-timeout'));
    if (timeoutMs !== null && timeoutMs <= TIMER_MS_MAX)
      this.#deadline = setTimeout(tooLate, roundedUp(timeoutMs), this).unref();
  }

  /** Aborts when no client waits for an answer any more, and when the node stops. Made when first asked for. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#isOver || this.#isStopping) this.#controller.abort(this.#failure ?? (this.#isOver ? GONE : NOT_READY));
    }
    return this.#controller.signal;
  }

  /** What pages of events hold while they are made into messages. */
  get replyShare(): ByteShare {
    return (this.#replyShare ??= this.#serving.flow.replies.share(this, this.#counted.caller));
  }
  get isGone(): boolean {
    return this.#isOver;
  }
  get sent(): number {
    return this.#outbox.messages;
  }
  /**
   * @internal Whether the client has owed something since before this time, or anything at all since before `firstMs`.
   */
  owesSince(timeMs: number, firstMs: number): boolean {
    return this.#owedMs < timeMs || this.#firstMs < firstMs;
  }

  /** Names the caller: the call counts for that caller from now on. Errors: `too_busy`. */
  calledBy(caller: string): void {
    if (!this.#isOver) this.#counted.calledBy(caller);
  }

  onFirstUse(share: ByteShare): void {
    if (this.#isOver) share.close();
  }

  read(isOwed = false): Uint8Array | null | Promise<Uint8Array | null> {
    if (!this.#isReading) this.#listen();
    const message = this.#next();
    if (message !== undefined) return message;
    if (isOwed || this.#messages.heldBytes > 0) this.#owedMs = performance.now();
    if (this.received === 0 && this.#messages.heldBytes === 0) this.#firstMs = performance.now();
    // What is here may be the beginning of a long message.
    if (this.#waitsForReader) this.#readOn();
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#expectMore();
    });
  }

  memory(bytes: number): Uint8Array {
    return this.#outbox.memory(bytes);
  }

  send(block: Uint8Array): Promise<void> | null {
    const stream = this.#stream;
    // A stream is closed a moment before its events report that.
    if (this.#isOver || stream.destroyed || stream.closed) return null;
    if (!stream.headersSent) stream.respond(HEAD, WITH_TRAILERS);
    return this.#outbox.send(block, countMessages(block));
  }

  guarded(work: () => Promise<unknown>): void {
    this.#serving.guard.run(this.#stream, work);
  }

  /** The method has ended. */
  finish(ending: Ending): void {
    if (this.#isOver) return;
    // What the end of the node has cancelled is to be tried again elsewhere.
    if (
      this.#isStopping &&
      'status' in ending &&
      ending.status === STATUS.cancelled &&
      Object.keys(ending.trailers).length === 0
    )
      this.#end(NOT_READY);
    else this.#end(ending);
  }

  /**
   * The node stops: a call that waits for the client, or for something to happen, waits no more. What is under way goes
   * on to its end.
   */
  stop(): void {
    if (this.#isOver || this.#isStopping) return;
    this.#isStopping = true;
    this.#controller?.abort(NOT_READY);
    if (this.#waiter !== null) this.#stopReading(NOT_READY);
  }

  /** @internal Its deadline has passed. */
  late(): void {
    this.#serving.guard.run(this.#stream, () => this.#fail(LATE));
  }

  /** The client has not sent in time what it owed. */
  tooSlow(): void {
    this.#fail(SLOW);
  }

  /** Others need the room of its message, which comes too slowly. */
  makeWay(): void {
    this.#serving.guard.run(this.#stream, () => this.#fail(BUSY));
  }

  /** It sends nothing of a large message. */
  cutOff(): void {
    this.#serving.guard.run(this.#stream, () => this.#fail(SLOW));
  }

  #listen(): void {
    this.#isReading = true;
    const stream = this.#stream;
    if (this.#hasAll || stream.destroyed) return;
    stream.on('data', (piece: Buffer) => this.#arrived(piece));
    stream.on('end', () => {
      // A stream that was reset with no reason ends like this, too, and its request is not whole.
      if (stream.aborted) return;
      this.#hasAll = true;
      this.#serving.flow.stalls.done(this);
      this.#share?.whole();
      this.#serve();
    });
  }

  #arrived(piece: Buffer): void {
    if (this.#isOver || this.#failure !== null) return;
    this.#firstMs = Number.NaN;
    const messages = this.#messages;
    const share = (this.#share ??= this.#serving.flow.uploads.share(null, this.#counted.caller, this));
    const hasRoom = share.add(piece.length);
    messages.add(
      this.#waiter === null && piece.length < COPIED_BYTES_MAX && piece.buffer.byteLength > 4 * piece.length
        ? new Uint8Array(piece)
        : piece,
    );
    if (this.#waiter !== null) this.#serve();
    if (this.#isOver) return;
    const { heldBytes } = messages;
    if (heldBytes > share.smallBytes) this.#serving.flow.stalls.expect(this);
    if (!hasRoom && !this.#waitsForRoom) this.#goOnInTurn(share);
    if (this.#waiter === null && heldBytes > UNREAD_BYTES_MAX) this.#waitsForReader = true;
    if (this.#waitsForRoom || this.#waitsForReader) this.#pause();
    else if (heldBytes > 0) {
      if (Number.isNaN(this.#owedMs)) this.#owedMs = performance.now();
      this.#expectMore();
    }
  }

  /** Leaves what comes to the stream, and so to the client, until there is room for it. */
  #goOnInTurn(share: ByteShare): void {
    this.#waitsForRoom = true;
    share.room().then(
      () => {
        this.#waitsForRoom = false;
        if (this.#messages.heldBytes > share.smallBytes) this.#serving.flow.stalls.expect(this);
        this.#resume();
      },
      () => this.#fail(BUSY),
    );
  }

  /** A message that a reader waits for has not arrived whole. */
  #expectMore(): void {
    if (this.#waiter !== null && !this.#isPaused && this.#messages.heldBytes > 0) this.#share?.readOn();
  }

  #pause(): void {
    this.#owedMs = Number.NaN;
    this.#serving.flow.stalls.done(this);
    this.#share?.pause();
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#stream.pause();
    this.#pausedFor = this.#counted.caller ?? this.#counted.address;
    const { paused } = this.#serving;
    const isAdmitted = paused.admits(this.#pausedFor, 1);
    paused.take(this.#pausedFor);
    if (!isAdmitted) this.#fail(BUSY);
  }

  #readOn(): void {
    this.#waitsForReader = false;
    this.#resume();
  }

  #resume(): void {
    if (!this.#isPaused || this.#waitsForRoom || this.#waitsForReader) return;
    this.#unpause();
    this.#expectMore();
    this.#stream.resume();
  }

  #unpause(): void {
    if (this.#isPaused) this.#serving.paused.giveBack(this.#pausedFor);
    this.#isPaused = false;
  }

  /** Gives the reader what there is. */
  #serve(): void {
    const waiter = this.#waiter;
    if (waiter === null) return;
    let message: Uint8Array | null | undefined;
    try {
      message = this.#next();
    } catch (error) {
      this.#waiter = null;
      waiter.reject(error as GrpcError);
      return;
    }
    if (message === undefined) return;
    this.#waiter = null;
    waiter.resolve(message);
  }

  /** The next message; null behind the last one, undefined where it has not arrived. */
  #next(): Uint8Array | null | undefined {
    if (this.#failure !== null) throw errorOf(this.#failure);
    const message = this.#nextMessage();
    if (message !== null) {
      this.received++;
      this.#owedMs = Number.NaN;
      this.#lastBytes = message.length;
      this.#count();
      if (this.#waitsForReader && this.#messages.heldBytes <= UNREAD_BYTES_MAX) this.#readOn();
      return message;
    }
    if (this.#hasAll) {
      if (this.#messages.heldBytes > 0) throw errorOf((this.#failure = CUT));
      this.#owedMs = Number.NaN;
      return null;
    }
    if (this.#isOver || this.#isStopping) throw errorOf(this.#isOver ? GONE : NOT_READY);
    return undefined;
  }

  #nextMessage(): Uint8Array | null {
    try {
      return this.#messages.next();
    } catch (error) {
      if (error instanceof GrpcError) this.#failure = error.ending;
      throw error;
    }
  }

  #count(): void {
    this.#share?.whole();
    this.#share?.resize(this.#messages.heldBytes + this.#lastBytes);
  }

  /** Nothing more is read; what waits for it learns why. */
  #stopReading(why: GrpcEnding): void {
    this.#failure ??= why;
    const waiter = this.#waiter;
    this.#waiter = null;
    waiter?.reject(errorOf(why));
  }

  /** Ends the call from here, whatever the method does. */
  #fail(why: GrpcEnding): void {
    if (this.#isOver) return;
    this.#stopReading(why);
    const controller = this.#controller;
    this.#end(why);
    controller?.abort(why);
  }

  /** Tells the client how the call ended, behind all that was sent. */
  #end(ending: Ending): void {
    this.#isOver = true;
    this.#letGo();
    const stream = this.#stream;
    if (!stream.destroyed && !stream.closed) {
      if (!this.#hasAll) this.#dropRest();
      if (!stream.headersSent) {
        stream.respond(
          'httpStatus' in ending
            ? { ':status': ending.httpStatus, 'content-length': '0' }
            : trailersOf(ending, { ':status': '200', 'content-type': 'application/grpc', 'content-length': '0' }),
          ALONE,
        );
        if (!this.#hasAll) stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR));
      } else if (ending !== LATE || this.#outbox.isEmpty) {
        stream.once('wantTrailers', () => this.#sendTrailers('httpStatus' in ending ? NOT_READY : ending));
        this.#outbox.end();
      } else stream.close(constants.NGHTTP2_CANCEL);
    }
    this.#tellWatches(ending);
  }

  #sendTrailers(ending: GrpcEnding): void {
    this.#stream.sendTrailers(trailersOf(ending));
    // The library sends the trailers a moment later; a client that still sends then learns that its stream is closed.
    if (!this.#hasAll) setImmediate(() => this.#stream.close(constants.NGHTTP2_NO_ERROR));
  }

  /** What the client still sends is dropped. */
  #dropRest(): void {
    this.#stream.removeAllListeners('data');
    this.#stream.resume();
  }

  #closed(): void {
    this.#outbox.close();
    if (this.#isOver) return;
    this.#isOver = true;
    this.#letGo();
    this.#stopReading(GONE);
    this.#controller?.abort(GONE);
    this.#tellWatches(null);
  }

  #letGo(): void {
    this.#unpause();
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#owedMs = Number.NaN;
    this.#firstMs = Number.NaN;
    this.#serving.flow.stalls.done(this);
    this.#share?.close();
    this.#replyShare?.close();
  }

  #tellWatches(ending: Ending | null): void {
    for (const watch of this.#watches) watch(ending);
  }
}

function errorOf({ status, message, trailers }: GrpcEnding): GrpcError {
  return new GrpcError(status, message, trailers);
}

function tooLate(call: StreamCall): void {
  call.late();
}

/**
 * Timers of one length share a list of the library's; clients send what is left of a round time, so that each call
 * would have a list of its own.
 */
function roundedUp(timeoutMs: number): number {
  return timeoutMs < ROUNDED_MS_MIN
    ? timeoutMs
    : Math.min(TIMER_MS_MAX, Math.ceil(timeoutMs / ROUNDED_TO_MS) * ROUNDED_TO_MS);
}
