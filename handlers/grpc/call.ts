import type { AuditAction } from '../../core/ports/audit.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import type { EventStore } from '../../core/streams/api.ts';
import type { Access, App, Call } from '../http/context.ts';
import { decode, frame } from './messages/wire.ts';
import type { Reader, Writer } from './messages/wire.ts';

/** Statuses of gRPC. */
export const STATUS = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

/** How a call ends: with a status, or before gRPC began with that of HTTP alone. */
export type Ending = GrpcEnding | { readonly httpStatus: number };

export interface GrpcEnding {
  readonly status: number;
  /** Any text; transports encode it. */
  readonly message: string;
  /**
   * By lower-cased name; the value of a name that ends with `-bin` is binary. Transports leave out what is empty and
   * encode what is no header text.
   */
  readonly trailers: Readonly<Record<string, string | Uint8Array>>;
}

export const OK: GrpcEnding = { status: STATUS.ok, message: '', trailers: {} };

/** Ends a call with a status. */
export class GrpcError extends Error {
  readonly ending: GrpcEnding;

  constructor(
    status: number,
    message: string,
    trailers: Readonly<Record<string, string | Uint8Array>> = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'GrpcError';
    this.ending = { status, message, trailers };
  }
}

/** One call as its transport gives it: a connection of HTTP/2, or a test. */
export interface GrpcTransport {
  /** `/package.Service/Method` */
  readonly path: string;
  /**
   * The call as a request, of which authentication, access and audit take headers and connection. Its signal aborts
   * when no client waits for an answer any more (cancelled, connection lost, deadline passed) and when the node stops;
   * `reason` is then `GrpcEnding`, where the client still gets a status.
   */
  readonly request: Request;
  /**
   * The next message of the client, without its prefix; null behind the last one. At once where it has arrived. What
   * has been read may be a view that is the caller's for good. Rejects with a GrpcError for what is no message, is too
   * long, and when the call is over. `isOwed` where the client has to send it without being asked for anything first: a
   * client that does not in time is cut off. The bytes of the message count until the next message is read, or the call
   * ends; a reader that keeps it longer counts it itself.
   */
  read(isOwed?: boolean): Uint8Array | null | Promise<Uint8Array | null>;
  /**
   * So many bytes for a block that is sent next. Whatever stands in them was written for this call, and all of it is to
   * be overwritten.
   */
  memory(bytes: number): Uint8Array;
  /**
   * Sends messages with their prefixes, as `frame` makes them. Null where more may be sent at once; else resolves when
   * the client has taken enough of what was sent, or the call is over: then a reader of pages goes on. The block
   * belongs to the transport from here on.
   */
  send(block: Uint8Array): Promise<void> | null;
  /**
   * Begins work of the call that no code awaits, such as behind a timer. What the work throws, or rejects with, ends
   * the call.
   */
  guarded(work: () => Promise<unknown>): void;
}

/**
 * Records what a call has done, or has failed to do; `status` is that of HTTP, by which what was refused differs from
 * what failed.
 */
export interface CallAudit {
  done(call: Call, status: number): void;
  failed(call: Call, status: number, error: unknown): void;
}

/** A call under way, as methods see it. */
export interface GrpcCall {
  /** The caller and its address: what the handlers of HTTP take, too. */
  readonly call: Call;
  readonly app: App;
  readonly transport: GrpcTransport;
  /** As `request.signal` of the transport. */
  readonly signal: AbortSignal;
  /**
   * For calls that do several things: what is logged of one of them is logged with a copy of `call` that names it. Null
   * where no audit log is kept.
   */
  readonly audit?: CallAudit | null;
  /**
   * As `EventStore.append`, where appends of this node are decided: for calls with many of them, which stay where they
   * are.
   */
  readonly append: EventStore['append'];
}

type ReadMessage<T> = (reader: Reader, end: number, depth: number) => T;
type WriteMessage<T> = (message: T, writer: Writer) => void;

/** What the generated services say of a method. */
export interface MethodShape<Request, Response> {
  readonly path: string;
  readonly hasManyRequests: boolean;
  readonly hasManyResponses: boolean;
  readonly readRequest: ReadMessage<Request>;
  readonly writeResponse: WriteMessage<Response>;
}

/** Longer messages are taken apart in turn, in bytes. */
export const LONG_MESSAGE_BYTES = 65_536;
/** Taking one apart is this part of what it costs: the pieces in which it comes are read, copied and let go. */
const TAKING_PART = 1 / 4;

/** Takes a long message apart in its turn. */
export function inTurn<T>({ app: { turns }, call: { countedAs } }: GrpcCall, take: () => T): Promise<T> {
  return turns.slice(countedAs, take, TAKING_PART);
}

/**
 * Where a call is decided in a cluster (core/cluster/README.md, rules 12 to 14). `here`: by the member that has it.
 * `writes`: there too, but what it writes is decided by the leader. `leader-only`: by the leader, to which others refer
 * the client (`not-leader`). `node`: it is about the member that has it, also where the client asks for the leader, as
 * some do with all calls: with gossip they want to find it.
 */
export type DecidedBy = 'here' | 'node' | 'writes' | 'leader-only';

/**
 * What is known of a method before anything of a call is read: which member decides it, and which callers may call it.
 */
export interface MethodRule {
  readonly place: DecidedBy;
  /**
   * Asked before the first message is read; `stream`: the method asks the list of the stream that its message names.
   */
  readonly access: Access;
  /**
   * Under which name the audit log records the method, also refusals; absent for what it does not record, or what only
   * the message says.
   */
  readonly audit?: AuditAction;
}

export interface GrpcMethod extends MethodRule {
  readonly path: string;
  /** A unary request: exactly one message, acted on after the half-close. */
  readonly isUnary: boolean;
  /**
   * How a client is sent to the member that leads, where it asks for that one alone; absent for the way of the first
   * generation.
   */
  readonly notLeader?: (leader: NodeAddress) => Error;
  /** The answer to a caller that may not call it, where the service has an answer of its own. */
  readonly refused?: (error: unknown, call: Pick<GrpcCall, 'call' | 'app'>) => unknown;
  /** Carries out the call; what it throws ends it (`endingOf`). */
  run(call: GrpcCall): Promise<void> | void;
}

/** The methods of one service. */
export interface GrpcService {
  /** `package.Service` */
  readonly name: string;
  readonly methods: readonly GrpcMethod[];
}

/**
 * One message in, one out. Where what the message names decides which callers may send it, `allow` looks for that
 * alone, and throws, before all of the message is decoded.
 */
export function unary<Request, Response>(
  shape: MethodShape<Request, Response>,
  rule: MethodRule,
  answer: (request: Request, call: GrpcCall) => Response | Promise<Response>,
  allow?: (message: Uint8Array, call: GrpcCall) => Promise<void>,
): GrpcMethod {
  return {
    ...rule,
    path: shape.path,
    isUnary: true,
    async run(call) {
      const message = await onlyMessage(call);
      if (allow !== undefined) await allow(message, call);
      call.call.isLong = message.length > LONG_MESSAGE_BYTES;
      const request = call.call.isLong
        ? await inTurn(call, () => decode(message, shape.readRequest))
        : decode(message, shape.readRequest);
      const response = await answer(request, call);
      await send(call, response, shape.writeResponse);
    },
  };
}

/** One message in, any number out: `answer` sends them by itself. */
export function serverStreaming<Request, Response>(
  shape: MethodShape<Request, Response>,
  rule: MethodRule,
  answer: (request: Request, call: GrpcCall) => Promise<void>,
): GrpcMethod {
  return {
    ...rule,
    path: shape.path,
    isUnary: true,
    async run(call) {
      await answer(decode(await onlyMessage(call), shape.readRequest), call);
    },
  };
}

/** Messages both ways: `run` reads them with `next` and sends by itself. */
export function streaming<Request, Response>(
  shape: MethodShape<Request, Response>,
  rule: MethodRule,
  run: (call: GrpcCall, next: () => Promise<Request | null>) => Promise<void>,
): GrpcMethod {
  return {
    ...rule,
    path: shape.path,
    isUnary: false,
    run: (call) => run(call, () => next(call, shape.readRequest)),
  };
}

async function onlyMessage({ transport }: GrpcCall): Promise<Uint8Array> {
  const first = await transport.read(true);
  if (first === null) throw new GrpcError(STATUS.internal, 'Incomplete message.');
  if ((await transport.read(true)) !== null)
    throw new GrpcError(STATUS.internal, 'Additional data after the message received.');
  return first;
}

/** The next message of the client; null behind the last one. Throws MalformedMessage. */
export async function next<T>({ transport }: GrpcCall, read: ReadMessage<T>): Promise<T | null> {
  const bytes = await transport.read();
  return bytes === null ? null : decode(bytes, read);
}

/** Null where more may be sent at once. */
export function send<T>({ transport }: GrpcCall, message: T, write: WriteMessage<T>): Promise<void> | null {
  return transport.send(frame(message, write));
}
