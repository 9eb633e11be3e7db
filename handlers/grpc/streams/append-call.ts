import type { ByteBudget } from '../../../core/base/byte-budget.ts';
import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import { ANY, NO_STREAM, STREAM_EXISTS } from '../../../core/streams/api.ts';
import type { AppendResult, Authorize } from '../../../core/streams/api.ts';
import { authorizeWrite, checkStream } from '../../streams/access.ts';
import { auditWrite, noteMetadata } from '../../streams/audit-write.ts';
import { GrpcError, STATUS } from '../call.ts';
import type { GrpcCall, GrpcMethod } from '../call.ts';
import { readAppendReqOptions, StreamsService } from '../messages/streams.ts';
import type { AppendReqOptions, AppendRespWrongExpectedVersion } from '../messages/streams.ts';
import { ALL_ONES, atEnd, decode, endOf, frame, skip } from '../messages/wire.ts';
import type { Reader } from '../messages/wire.ts';
import { appendedFrame } from './appended.ts';
import { checkTarget, conflictOf, expectedOf, nameOf } from './expectation.ts';
import { AppendSize, EVENT_OVERHEAD_BYTES, eventTooLarge, tooLarge } from './stream-limits.ts';
import { faultOf, readProposed, refuseProposed, unhandled } from './proposed.ts';
import type { ProposedEvent } from './proposed.ts';

const { Append } = StreamsService.methods;
const CHOICE = 'AppendReq+Types+Options+ExpectedStreamRevisionOneofCase';

/** Append: options, then events one a message, then one answer. */
export function appendMethod(budget: ByteBudget): GrpcMethod {
  return { path: Append.path, place: 'writes', access: 'stream', isUnary: false, run: (call) => append(call, budget) };
}

/**
 * What has to be waited for is waited for here, and all else done by `Proposal`: a function that waits keeps all that
 * it has in memory, and there are many.
 */
async function append(grpc: GrpcCall, budget: ByteBudget): Promise<void> {
  const { transport } = grpc;
  const proposal = new Proposal(grpc, await transport.read());
  // A caller that may not write learns nothing of sizes and streams; the access list that decides in the end is asked
  // while the write takes its position.
  const checking = checkStream(grpc.call, grpc.app, 'write', proposal.stream);
  if (checking !== undefined) await checking;
  const share = budget.share(null, grpc.call.countedAs);
  try {
    for (let got = transport.read(); ; got = transport.read()) {
      const bytes = got instanceof Promise ? await got : got;
      if (bytes === null) break;
      proposal.add(bytes);
      if (!share.add(bytes.length + EVENT_OVERHEAD_BYTES)) await share.room();
    }
    const sending = transport.send(await proposal.write().then(appended, (error: unknown) => proposal.refused(error)));
    if (sending !== null) await sending;
  } finally {
    share.close();
  }
}

/** What one call has proposed so far. */
class Proposal {
  readonly stream: string;
  readonly #grpc: GrpcCall;
  readonly #options: AppendReqOptions;
  readonly #expected: number;
  readonly #events: ProposedEvent[] = [];
  readonly #size: AppendSize;

  /** Takes the first message. */
  constructor(grpc: GrpcCall, first: Uint8Array | null) {
    const options = first === null ? null : decode(first, readAppendReq).options;
    if (options === null) throw unhandled();
    this.#grpc = grpc;
    this.#options = options;
    this.stream = nameOf(options.streamIdentifier);
    this.#expected = expectedOf(options, options.revision, CHOICE);
    this.#size = new AppendSize(grpc.app);
    checkTarget(grpc.call, this.stream);
    if (grpc.app.audit !== null) auditWrite(grpc.call, this.stream);
  }

  /** Takes an event. */
  add(message: Uint8Array): void {
    const { event } = decode(message, readAppendReq);
    if (event === null) throw unhandled();
    const fault = faultOf(event);
    if (fault !== null) throw refuseProposed(fault);
    this.#events.push(event);
    this.#size.addMessage(message.length);
    this.#size.addData(event.data.length);
    if (this.#size.exceeded !== null) throw tooLarge(this.#size.exceeded);
  }

  /** All of them have come. */
  write(): Promise<AppendResult> {
    const { call, app } = this.#grpc;
    const authorize = authorizeWrite(call, app, 'write', this.stream);
    if (authorize instanceof Promise || (call.audited !== null && this.stream.startsWith('$$')))
      return this.#writeLater(authorize);
    return app.store.append(this.stream, this.#expected, this.#events, authorize ?? undefined);
  }

  async #writeLater(authorizing: Authorize | null | Promise<Authorize | null>): Promise<AppendResult> {
    const { call, app } = this.#grpc;
    const authorize = await authorizing;
    if (call.audited !== null && this.stream.startsWith('$$'))
      await noteMetadata(call, app, this.stream.slice(2), this.#events);
    return app.store.append(this.stream, this.#expected, this.#events, authorize ?? undefined);
  }

  /** The answer where the expected version did not hold; throws what else went wrong. */
  refused(error: unknown): Uint8Array {
    const conflict = conflictOf(error);
    if (conflict === null) throw namedError(error, this.#events);
    return frame({ wrongExpectedVersion: wrongExpectedVersion(this.#options, conflict) }, Append.writeResponse);
  }
}

/** Either part of an AppendReq; null for what is not there. */
interface AppendPart {
  readonly options: AppendReqOptions | null;
  readonly event: ProposedEvent | null;
}

function readAppendReq(reader: Reader, end: number, depth: number): AppendPart {
  let options: AppendReqOptions | null = null;
  let event: ProposedEvent | null = null;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) {
      options = readAppendReqOptions(reader, endOf(reader, depth + 1), depth + 1);
      event = null;
    } else if (tag === 18) {
      event = readProposed(reader, endOf(reader, depth + 1), depth + 1);
      options = null;
    } else skip(reader, tag, depth);
  }
  atEnd(reader, end);
  return { options, event };
}

function appended({ lastEventNumber, position }: AppendResult): Uint8Array {
  return appendedFrame(lastEventNumber, position);
}

/** Both the fields of older clients and those of today; a number that means "no stream" comes back as that number. */
function wrongExpectedVersion(
  options: AppendReqOptions,
  { expected, actual }: { readonly expected: number; readonly actual: number },
): AppendRespWrongExpectedVersion {
  const current =
    actual < 0
      ? { noStream_20_6_0: {}, currentNoStream: {} }
      : { currentRevision_20_6_0: actual, currentRevision: actual };
  switch (expected) {
    case ANY:
      return { ...current, any_20_6_0: {}, expectedAny: {} };
    case STREAM_EXISTS:
      return { ...current, streamExists_20_6_0: {}, expectedStreamExists: {} };
    case NO_STREAM:
      return {
        ...current,
        expectedRevision_20_6_0: ALL_ONES,
        ...(options.revision === undefined ? { expectedNoStream: {} } : { expectedRevision: ALL_ONES }),
      };
    default:
      return { ...current, expectedRevision_20_6_0: expected, expectedRevision: expected };
  }
}

/** The names that this service has for what the store refuses with; other errors stay as they are. */
function namedError(error: unknown, events: readonly ProposedEvent[]): unknown {
  const large = eventTooLarge(error, events);
  if (large !== null) {
    const trailers = {
      'maximum-append-event-size': String(large.limit),
      'event-id': large.eventId,
      'proposed-append-event-size': String(large.size),
    };
    return new GrpcError(
      STATUS.invalidArgument,
      `Event ${large.eventId} has ${large.size} bytes, and the limit is ${large.limit}.`,
      { exception: 'maximum-append-event-size-exceeded', ...trailers },
      error,
    );
  }
  if (!(error instanceof SkuaError)) return error;
  if (isSkuaError(error, 'batch_too_large')) return tooLarge(error.data.limit);
  // An id that is none has the right length here: the recorded server knows no difference.
  return error.code === 'invalid_event' ? unhandled() : error;
}
