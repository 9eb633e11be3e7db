import type { ByteBudget, ByteShare } from '../../../core/base/byte-budget.ts';
import { STREAM_NAME_LENGTH_MAX } from '../../../core/streams/api.ts';
import type { AppendResult, Authorize } from '../../../core/streams/api.ts';
import { checkWritableName } from '../../../core/streams/format/names.ts';
import type { Audited } from '../../http/context.ts';
import { authorizeWrite, checkCaller, checkStream } from '../../streams/access.ts';
import { auditWrite, noteMetadata } from '../../streams/audit-write.ts';
import { GrpcError, inTurn, LONG_MESSAGE_BYTES } from '../call.ts';
import type { GrpcCall, GrpcMethod } from '../call.ts';
import { StreamsService } from '../messages/streams.ts';
import type { BatchAppendReqOptions, BatchAppendResp, BatchAppendRespStatus } from '../messages/streams.ts';
import { decode, encode, frame, writeUuid } from '../messages/wire.ts';
import type { Uuid } from '../messages/wire.ts';
import { badRequest, BUSY, endsCall, FAULT_TEXTS, sizeExceeded, statusOf, TIMEOUT } from './batch-errors.ts';
import { AnswerBlock, readBatchChunk } from './batch-messages.ts';
import type { BatchChunk } from './batch-messages.ts';
import { checkTarget, expectedOf, nameOf } from './expectation.ts';
import { AppendSize, EVENT_OVERHEAD_BYTES } from './stream-limits.ts';
import { sendRefusal } from './refusal.ts';
import { dashed, faultOf, isUuid } from './proposed.ts';
import type { ProposedEvent } from './proposed.ts';

const { BatchAppend } = StreamsService.methods;
const CHOICE = 'BatchAppendReq+Types+Options+ExpectedStreamPositionOneofCase';

/** Longest time in milliseconds for which an append may stay open, as in the reference; clients may ask for less. */
const WRITE_TIMEOUT_MS = 2_000;
/** Appends of one call that may be open, waiting for more of their events; the next one is refused. */
const OPEN_APPENDS_MAX = 1_024;
/** Appends of one call that may be on their way to the log; beyond them nothing more of the call is read. */
const APPENDS_IN_FLIGHT_MAX = 1_024;

/** BatchAppend: many appends over one call, each answered when it is done. */
export function batchAppendMethod(budget: ByteBudget): GrpcMethod {
  return {
    path: BatchAppend.path,
    place: 'here',
    access: 'stream',
    isUnary: false,
    run: (call) => new BatchCall(call, budget).run(),
  };
}

/** An append whose last chunk has not come yet. */
interface OpenAppend {
  readonly key: string;
  readonly correlationId: Uuid;
  readonly stream: string;
  readonly streamName: Uint8Array;
  expected: number;
  events: ProposedEvent[];
  readonly size: AppendSize;
  readonly timeoutMs: number;
  /** Bytes that it holds. */
  held: number;
  /** Set once it stays open for later chunks. */
  timer: AbortController | null;
}

class BatchCall {
  readonly #grpc: GrpcCall;
  readonly #share: ByteShare;
  readonly #open = new Map<string, OpenAppend>();
  readonly #answers = new AnswerBlock();
  #held = 0;
  #inFlight = 0;
  #isFlushing = false;
  #isOver = false;
  /** The client has to take what was sent before more of it is read; null where it has. */
  #taking: Promise<void> | null = null;
  /** Wakes the reader once something has been answered. */
  #wake: (() => void) | null = null;
  #fail: (error: unknown) => void = () => {};

  constructor(grpc: GrpcCall, budget: ByteBudget) {
    this.#grpc = grpc;
    this.#share = budget.share(null, grpc.call.countedAs);
  }

  /**
   * Ends when the client has half-closed and everything is answered, or when the call is over, or with what ends all of
   * it.
   */
  async run(): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#fail = reject;
        this.#read().then(resolve, reject);
      });
    } finally {
      this.#isOver = true;
      for (const { timer } of this.#open.values()) timer?.abort();
      this.#open.clear();
      this.#share.close();
    }
  }

  async #read(): Promise<void> {
    const { transport } = this.#grpc;
    for (let got = transport.read(); ; got = transport.read()) {
      const bytes = got instanceof Promise ? await got : got;
      if (bytes === null || this.#isOver) break;
      // The call may go on for days: a caller that is locked out meanwhile writes nothing more.
      const caller = checkCaller(this.#grpc.call, this.#grpc.app);
      if (caller !== undefined) await caller;
      this.#grpc.call.isLong = bytes.length > LONG_MESSAGE_BYTES;
      const taken = this.#grpc.call.isLong ? this.#takeLong(bytes) : this.#take(decode(bytes, readBatchChunk), bytes);
      if (taken !== null) await taken;
      while (this.#inFlight >= APPENDS_IN_FLIGHT_MAX) await this.#answered();
      if (this.#taking !== null) await this.#taking;
    }
    while (!this.#isOver && (this.#inFlight > 0 || this.#open.size > 0)) await this.#answered();
    this.#flush();
    if (this.#taking !== null) await this.#taking;
  }

  #answered(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async #takeLong(bytes: Uint8Array): Promise<void> {
    let taken: Promise<void> | null = null;
    await inTurn(this.#grpc, () => {
      taken = this.#take(decode(bytes, readBatchChunk), bytes);
    });
    if (taken !== null) await taken;
  }

  /** One chunk. Null where nothing has to be waited for, as with nearly all. */
  #take(chunk: BatchChunk, bytes: Uint8Array): Promise<void> | null {
    const { correlationId, options, isFinal } = chunk;
    if (correlationId === undefined) return this.#refuse(chunk, badRequest(FAULT_TEXTS['no-id']));
    const key = dashed(correlationId.text).toLowerCase();
    if (!isUuid(key)) return this.#refuse(chunk, badRequest(FAULT_TEXTS['bad-id']));
    const known = this.#open.get(key);
    if (known !== undefined) return this.#add(known, chunk, bytes);
    if (options === undefined) return null;
    let append: OpenAppend;
    let checking: void | Promise<void>;
    try {
      if (options.streamIdentifier === undefined)
        return this.#refuse(chunk, badRequest('Object reference not set to an instance of an object.'));
      const stream = nameOf(options.streamIdentifier);
      checkTarget(this.#grpc.call, stream);
      checking = checkStream(this.#grpc.call, this.#grpc.app, 'write', stream);
      const timeoutMs = this.#timeoutOf(options);
      append = {
        key,
        correlationId,
        stream,
        streamName: options.streamIdentifier.streamName,
        expected: 0,
        events: [],
        size: new AppendSize(this.#grpc.app),
        timeoutMs,
        held: 0,
        timer: null,
      };
    } catch (error) {
      return this.#refuse(chunk, this.#statusOf(error, chunk));
    }
    if (checking instanceof Promise) return this.#beginLater(append, chunk, bytes, checking);
    return this.#begin(append, chunk, bytes, isFinal);
  }

  async #beginLater(append: OpenAppend, chunk: BatchChunk, bytes: Uint8Array, checking: Promise<void>): Promise<void> {
    try {
      await checking;
    } catch (error) {
      this.#refuse(chunk, this.#statusOf(error, chunk));
      return;
    }
    await this.#begin(append, chunk, bytes, chunk.isFinal);
  }

  /** The caller may write to the stream. */
  #begin(append: OpenAppend, chunk: BatchChunk, bytes: Uint8Array, isFinal: boolean): Promise<void> | null {
    if (!(append.timeoutMs > 0)) return this.#refuse(chunk, TIMEOUT);
    // Answers repeat the name: as long as the append stays open it would be sent again for each small chunk with a
    // mistake.
    const fault = append.stream.length > STREAM_NAME_LENGTH_MAX ? checkWritableName(append.stream) : null;
    if (fault !== null) return this.#refuse(chunk, this.#statusOf(fault, chunk));
    try {
      append.expected = expectedOf(chunk.options!, chunk.options!.streamPosition, CHOICE);
    } catch (error) {
      return this.#refuse(chunk, badRequest(textOf(error)));
    }
    if (!isFinal || chunk.events.some((event) => faultOf(event) !== null)) {
      if (this.#open.size >= OPEN_APPENDS_MAX) return this.#refuse(chunk, BUSY);
      this.#keepOpen(append);
    }
    return this.#add(append, chunk, bytes);
  }

  /** Takes the events of a chunk. What is wrong with one of them does not end its append: nothing but its time does. */
  #add(append: OpenAppend, chunk: BatchChunk, bytes: Uint8Array): Promise<void> | null {
    const { size } = append;
    for (const event of chunk.events) {
      const fault = faultOf(event);
      if (fault !== null) return this.#answerError(append, chunk.correlationId, badRequest(FAULT_TEXTS[fault]));
    }
    size.addMessage(bytes.length);
    for (const event of chunk.events) size.addData(event.data.length);
    if (size.exceeded !== null) {
      this.#close(append);
      this.#release(append);
      return this.#answerError(append, chunk.correlationId, sizeExceeded(size.exceeded));
    }
    const added = chunk.isFinal ? chunk.events : kept(chunk.events, bytes);
    if (append.events.length === 0) append.events = added;
    else for (const event of added) append.events.push(event);
    const held = bytes.length + chunk.events.length * EVENT_OVERHEAD_BYTES;
    append.held += held;
    this.#held += held;
    const room = this.#share.add(held) ? null : this.#share.room();
    const written = chunk.isFinal ? this.#write(append, chunk.correlationId!) : null;
    return room === null ? written : Promise.all([room, written]).then(() => {});
  }

  #keepOpen(append: OpenAppend): void {
    const timer = new AbortController();
    append.timer = timer;
    this.#open.set(append.key, append);
    this.#grpc.transport.guarded(() =>
      this.#grpc.app.world.clock.sleep(append.timeoutMs, timer.signal).then(() => {
        if (timer.signal.aborted || this.#isOver) return;
        this.#close(append);
        this.#release(append);
        this.#answerError(append, { ...append.correlationId, text: append.key, isStructured: true }, TIMEOUT);
      }),
    );
  }

  /** No more chunks of it are taken. */
  #close(append: OpenAppend): void {
    if (append.timer === null) return;
    append.timer.abort();
    this.#open.delete(append.key);
  }

  #release(append: OpenAppend): void {
    this.#held -= append.held;
    append.held = 0;
    this.#share.resize(this.#held);
  }

  /** Hands an append to the store. In the order of their last chunks they take their places in the log. */
  #write(append: OpenAppend, correlationId: Uuid): Promise<void> | null {
    this.#close(append);
    const { call, app } = this.#grpc;
    const { stream } = append;
    const target: { audited: Audited | null } = { audited: null };
    if (app.audit !== null) auditWrite(target, stream);
    try {
      const authorize = authorizeWrite(call, app, 'write', stream);
      if (authorize instanceof Promise || target.audited !== null)
        return this.#writeLater(append, correlationId, authorize, target);
      this.#send(append, correlationId, authorize, null);
    } catch (error) {
      this.#failed(append, correlationId, target.audited, error);
    }
    return null;
  }

  async #writeLater(
    append: OpenAppend,
    correlationId: Uuid,
    authorizing: Authorize | null | Promise<Authorize | null>,
    target: { audited: Audited | null },
  ): Promise<void> {
    try {
      const authorize = await authorizing;
      if (target.audited !== null && append.stream.startsWith('$$'))
        await noteMetadata(target, this.#grpc.app, append.stream.slice(2), append.events);
      this.#send(append, correlationId, authorize, target.audited);
    } catch (error) {
      this.#failed(append, correlationId, target.audited, error);
    }
  }

  #send(append: OpenAppend, correlationId: Uuid, authorize: Authorize | null, audited: Audited | null): void {
    this.#inFlight++;
    this.#grpc.append(append.stream, append.expected, append.events, authorize ?? undefined).then(
      (result) => {
        this.#inFlight--;
        this.#succeeded(append, correlationId, audited, result);
      },
      (error: unknown) => {
        this.#inFlight--;
        this.#failed(append, correlationId, audited, error);
      },
    );
  }

  #succeeded(
    append: OpenAppend,
    correlationId: Uuid,
    audited: Audited | null,
    { lastEventNumber, position }: AppendResult,
  ): void {
    if (audited !== null) this.#grpc.audit?.done({ ...this.#grpc.call, audited }, 200);
    this.#release(append);
    if (this.#isOver) return;
    this.#answers.addSuccess(correlationBytes(correlationId), append.streamName, lastEventNumber, position);
    this.#answering();
  }

  #failed(append: OpenAppend, correlationId: Uuid, audited: Audited | null, error: unknown): void {
    const status = endsCall(error) ? null : statusOf(error, this.#grpc.app, append.stream, append.events);
    if (audited !== null)
      this.#grpc.audit?.failed({ ...this.#grpc.call, audited }, status?.message === 'AccessDenied' ? 403 : 500, error);
    this.#release(append);
    if (status === null) this.#fail(error);
    else this.#answerError(append, correlationId, status);
  }

  /** Answers a chunk whose append never began. */
  #refuse({ correlationId, options }: BatchChunk, error: BatchAppendRespStatus): null {
    return this.#answer({ correlationId, streamIdentifier: options?.streamIdentifier, error });
  }

  #answerError({ streamName }: OpenAppend, correlationId: Uuid | undefined, error: BatchAppendRespStatus): null {
    return this.#answer({ correlationId, streamIdentifier: { streamName }, error });
  }

  #answer(response: BatchAppendResp): null {
    if (this.#isOver) return null;
    this.#answers.addFrame(frame(response, BatchAppend.writeResponse));
    this.#answering();
    return null;
  }

  /** What is answered in one breath, as by one group commit, is sent as one block. */
  #answering(): void {
    this.#wake?.();
    this.#wake = null;
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.#grpc.transport.guarded(() => Promise.resolve().then(() => this.#flush()));
  }

  #flush(): void {
    this.#isFlushing = false;
    if (this.#isOver || this.#answers.isEmpty) return;
    if (!this.#grpc.call.isLong) this.#grpc.app.turns.answered();
    const taking = this.#grpc.transport.send(this.#answers.take());
    if (taking === null) return;
    const taken = taking.then(() => {
      if (this.#taking === taken) this.#taking = null;
    });
    // The reader learns of it; where nothing is read any more, the call is over.
    taken.catch(() => {});
    this.#taking = taken;
  }

  /** The status of what went wrong before an append began. */
  #statusOf(error: unknown, { options }: BatchChunk): BatchAppendRespStatus {
    const stream = options?.streamIdentifier === undefined ? '' : nameOf(options.streamIdentifier);
    sendRefusal(this.#grpc, stream, error);
    return statusOf(error, this.#grpc.app, stream, []);
  }

  /** The shorter of the time that the client gives and what an append may take, in milliseconds. */
  #timeoutOf({ deadline, deadline_21_10_0: at }: BatchAppendReqOptions): number {
    if (deadline !== undefined) return Math.min(WRITE_TIMEOUT_MS, milliseconds(deadline));
    if (at !== undefined) return Math.min(WRITE_TIMEOUT_MS, milliseconds(at) - this.#grpc.app.world.clock.nowMs());
    return WRITE_TIMEOUT_MS;
  }
}

function milliseconds({ seconds, nanos }: { readonly seconds: number | bigint; readonly nanos: number }): number {
  return Number(seconds) * 1_000 + nanos / 1_000_000;
}

/** Events that wait for later chunks. Copies, where they would keep much more in memory than they hold. */
function kept(events: ProposedEvent[], message: Uint8Array): ProposedEvent[] {
  const bytes = events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0);
  if (bytes * 2 >= message.buffer.byteLength) return events;
  return events.map((event) => ({ ...event, data: event.data.slice(), metadata: event.metadata.slice() }));
}

/** What the recorded server says of options that it can't make sense of. */
function textOf(error: unknown): string {
  if (error instanceof GrpcError) return `Status(StatusCode="InvalidArgument", Detail="${error.message}")`;
  return 'Arithmetic operation resulted in an overflow.';
}

/** A correlation id as the message that it was. */
function correlationBytes(id: Uuid): Uint8Array {
  return id.isStructured ? encode(id, writeUuid) : textMessage(id.text);
}

/** Of a UUID, which has a length of one byte and characters of one byte each. */
function textMessage(text: string): Uint8Array {
  const out = new Uint8Array(text.length + 2);
  out[0] = 18;
  out[1] = text.length;
  for (let i = 0; i < text.length; i++) out[i + 2] = text.charCodeAt(i);
  return out;
}
