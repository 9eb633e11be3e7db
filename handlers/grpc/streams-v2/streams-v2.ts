import type { ByteBudget } from '../../../core/base/byte-budget.ts';
import { isSkuaError } from '../../../core/base/errors.ts';
import { ANY, NO_STREAM, STREAM_EXISTS } from '../../../core/streams/api.ts';
import type {
  AppendToStreamsResult,
  Authorize,
  NewEvent,
  StreamCheck,
  StreamWrite,
} from '../../../core/streams/api.ts';
import type { App, Audited } from '../../http/context.ts';
import { authorizeWrite, checkStream } from '../../streams/access.ts';
import { auditWrite, noteMetadata } from '../../streams/audit-write.ts';
import { send, unary } from '../call.ts';
import type { GrpcCall, GrpcMethod, GrpcService, MethodRule } from '../call.ts';
import { StreamsServiceService } from '../messages/streams-v2.ts';
import type { AppendRecordsRequest, AppendRecordsResponse, AppendSessionResponse } from '../messages/streams-v2.ts';
import { atEnd, decode, endOfElement, skip, text } from '../messages/wire.ts';
import type { Reader } from '../messages/wire.ts';
import { checkTarget } from '../streams/expectation.ts';
import { appendBudget, AppendSize, EVENT_OVERHEAD_BYTES } from '../streams/stream-limits.ts';
import { sendRefusal } from '../streams/refusal.ts';
import { Records } from './append-records.ts';
import {
  alreadyInSession,
  badRequest,
  notLeaderNode,
  richErrorOf,
  sessionEmpty,
  transactionTooLarge,
} from './rich-error.ts';

const { AppendSession, AppendRecords } = StreamsServiceService.methods;
/** The operation that the refusal of an append names. */
const OPERATION = 'streams:write';
const RULE: MethodRule = { place: 'writes', access: 'stream' };
/** How this service answers what it refuses before a message is read. */
const TOLD: Pick<GrpcMethod, 'notLeader' | 'refused'> = {
  notLeader: notLeaderNode,
  refused: (error, call) => richErrorOf(error, call, OPERATION),
};

/**
 * Appends to several streams at once. Where the client leaves ids out, a repeat could not be known: then the append is
 * never repeated.
 */
export function streamsV2(app: App): GrpcService {
  const budget = appendBudget(app);
  const records = unary(
    AppendRecords,
    RULE,
    (request, call) => told(call, () => appendRecords(request, call)),
    mayWriteAll,
  );
  return { name: StreamsServiceService.name, methods: [appendSession(budget), { ...records, ...TOLD }] };
}

/** One request a stream, then one answer: all of them, or none. */
function appendSession(budget: ByteBudget): GrpcMethod {
  return {
    path: AppendSession.path,
    ...RULE,
    isUnary: false,
    ...TOLD,
    async run(call) {
      const share = budget.share(null, call.call.countedAs);
      try {
        const response = await told(call, () => session(call, (bytes) => (share.add(bytes) ? null : share.room())));
        await send(call, response, AppendSession.writeResponse);
      } finally {
        share.close();
      }
    },
  };
}

async function told<T>(call: GrpcCall, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw richErrorOf(error, call, OPERATION);
  }
}

async function session(grpc: GrpcCall, hold: (bytes: number) => Promise<void> | null): Promise<AppendSessionResponse> {
  const { app, transport } = grpc;
  const records = new Records(app.world.ids);
  const writes = new Map<string, { readonly expectedVersion: number; readonly events: readonly NewEvent[] }>();
  const size = new AppendSize(app);
  for (let got = transport.read(); ; got = transport.read()) {
    const bytes = got instanceof Promise ? await got : got;
    if (bytes === null) break;
    const at = `requests[${writes.size}]`;
    const stream = decode(bytes, readStreamName);
    if (stream === '') throw badRequest([{ field: `${at}.stream`, description: 'there is none: name the stream' }]);
    if (writes.has(stream)) throw alreadyInSession(stream);
    await mayWrite(grpc, stream);
    // Records are only read for a caller that may write them.
    const request = decode(bytes, AppendSession.readRequest);
    size.addMessage(bytes.length);
    const events: NewEvent[] = [];
    for (const [i, record] of request.records.entries()) {
      size.addData(record.data.length);
      const event = records.event(record, stream, `${at}.records[${i}]`);
      if (event !== null) events.push(event);
    }
    if (size.exceeded !== null) throw transactionTooLarge(size.exceededBy, size.exceeded);
    if (request.records.length === 0) records.violate(`${at}.records`, 'there are none: send at least one');
    const expectedVersion = request.expectedRevision ?? ANY;
    if (!isState(expectedVersion)) records.violate(`${at}.expected_revision`, EXPECTED);
    writes.set(stream, { expectedVersion, events });
    const holding = hold(bytes.length + events.length * EVENT_OVERHEAD_BYTES);
    if (holding !== null) await holding;
  }
  if (writes.size === 0) throw sessionEmpty();
  if (records.violations.length > 0) throw badRequest(records.violations);
  const { streams, position } = await commit(
    grpc,
    [...writes].map(([stream, write]) => ({ stream, ...write })),
    [],
    records.hasAllIds,
  );
  return {
    output: streams.map((one) => ({ stream: one.stream, streamRevision: one.lastEventNumber, position: one.position })),
    position,
  };
}

/** For each stream that an AppendRecordsRequest names. */
async function mayWriteAll(message: Uint8Array, call: GrpcCall): Promise<void> {
  const streams = decode(message, readStreamNames);
  await told(call, async () => {
    for (const stream of streams) await mayWrite(call, stream);
  });
}

/** The streams of the records of an AppendRecordsRequest, all else passed over. */
function readStreamNames(reader: Reader, end: number, depth: number): Set<string> {
  const streams = new Set<string>();
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag !== 10) {
      skip(reader, tag, depth);
      continue;
    }
    const stream = readNameIn(reader, endOfElement(reader, depth + 1), depth + 1, STREAM_OF_RECORD);
    if (stream !== '') streams.add(stream);
  }
  return streams;
}

/** The stream of an AppendRequest. */
function readStreamName(reader: Reader, end: number, depth: number): string {
  return readNameIn(reader, end, depth, STREAM_OF_REQUEST);
}

/** Tags of the fields that name a stream. */
const STREAM_OF_REQUEST = 10;
const STREAM_OF_RECORD = 42;

/** The text of one field, all others passed over. */
function readNameIn(reader: Reader, end: number, depth: number, field: number): string {
  let name = '';
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === field) name = text(reader);
    else skip(reader, tag, depth);
  }
  atEnd(reader, end);
  return name;
}

/** Records of several streams in the order in which they are to stand in the log, and what has to hold before. */
async function appendRecords(request: AppendRecordsRequest, grpc: GrpcCall): Promise<AppendRecordsResponse> {
  const { app } = grpc;
  const records = new Records(app.world.ids);
  if (request.records.length === 0) records.violate('records', 'there are none: send at least one');
  const streams = new Set<string>();
  const writes: { readonly stream: string; readonly expectedVersion: number; readonly events: NewEvent[] }[] = [];
  let bytes = 0;
  for (const [i, record] of request.records.entries()) {
    const stream = record.stream ?? '';
    if (stream === '') {
      records.violate(`records[${i}].stream`, 'there is none: name the stream');
      continue;
    }
    streams.add(stream);
    bytes += record.data.length;
    const event = records.event(record, stream, `records[${i}]`);
    if (event === null) continue;
    const last = writes.at(-1);
    if (last?.stream === stream) last.events.push(event);
    else writes.push({ stream, expectedVersion: ANY, events: [event] });
  }
  const checks = await checksOf(request, grpc, streams, records);
  if (records.violations.length > 0) throw badRequest(records.violations);
  if (bytes > app.options.appendBytesMax) throw transactionTooLarge(bytes, app.options.appendBytesMax);
  const result = await commit(grpc, writes, checks, records.hasAllIds);
  return {
    revisions: result.streams.map(({ stream, lastEventNumber }) => ({ stream, revision: lastEventNumber })),
    position: result.position,
  };
}

const EXPECTED = `give the number of the last event, or ${NO_STREAM} (no stream), ${ANY} (any) or ${STREAM_EXISTS} (stream exists)`;

function isState(value: number): boolean {
  return value >= NO_STREAM || value === ANY || value === STREAM_EXISTS;
}

async function checksOf(
  { checks }: AppendRecordsRequest,
  grpc: GrpcCall,
  written: ReadonlySet<string>,
  records: Records,
): Promise<StreamCheck[]> {
  const found: StreamCheck[] = [];
  for (const [i, { streamState }] of checks.entries()) {
    const at = `checks[${i}]`;
    if (streamState === undefined) records.violate(at, 'there is none of a kind that is known: give stream_state');
    else if (streamState.stream === '') records.violate(`${at}.stream_state.stream`, 'there is none: name the stream');
    else if (!isState(streamState.expectedState)) records.violate(`${at}.stream_state.expected_state`, EXPECTED);
    else
      found.push({
        stream: streamState.stream,
        expectedVersion: streamState.expectedState,
        authorize: written.has(streamState.stream) ? undefined : await mayKnow(grpc, streamState.stream),
      });
  }
  return found;
}

async function mayWrite(grpc: GrpcCall, stream: string): Promise<void> {
  const { call, app } = grpc;
  try {
    checkTarget(call, stream);
    const checking = checkStream(call, app, 'write', stream);
    if (checking !== undefined) await checking;
  } catch (error) {
    sendRefusal(grpc, stream, error);
    throw error;
  }
}

/**
 * A check tells whether a stream is there and how long it is: a caller that may read it, or write to it, could find
 * that out by other means.
 */
async function mayKnow({ call, app }: GrpcCall, stream: string): Promise<Authorize | undefined> {
  try {
    await checkStream(call, app, 'read', stream);
    return undefined;
  } catch (error) {
    if (!isSkuaError(error, 'access_denied') && !isSkuaError(error, 'not_authenticated')) throw error;
    await checkStream(call, app, 'write', stream);
    return (await authorizeWrite(call, app, 'write', stream)) ?? undefined;
  }
}

async function commit(
  grpc: GrpcCall,
  writes: readonly StreamWrite[],
  checks: readonly StreamCheck[],
  isRepeatable: boolean,
): Promise<AppendToStreamsResult> {
  const { call, app } = grpc;
  const authorized = new Map<string, Authorize | undefined>();
  for (const { stream } of writes)
    if (!authorized.has(stream))
      authorized.set(stream, (await authorizeWrite(call, app, 'write', stream)) ?? undefined);
  const audited = app.audit === null ? [] : await auditedOf(app, writes);
  try {
    const result = await app.store.appendToStreams(
      writes.map((write) => ({ ...write, authorize: authorized.get(write.stream) })),
      { checks, isRepeatable },
    );
    for (const one of audited) grpc.audit?.done({ ...call, audited: one }, 200);
    return result;
  } catch (error) {
    const status = isSkuaError(error, 'access_denied') || isSkuaError(error, 'not_authenticated') ? 403 : 500;
    for (const one of audited) grpc.audit?.failed({ ...call, audited: one }, status, error);
    throw error;
  }
}

/** What the audit log records: streams by which rights are changed. */
async function auditedOf(app: App, writes: readonly StreamWrite[]): Promise<Audited[]> {
  const found: Audited[] = [];
  for (const stream of new Set(writes.map((write) => write.stream))) {
    const target: { audited: Audited | null } = { audited: null };
    auditWrite(target, stream);
    const events = writes.filter((write) => write.stream === stream).flatMap((write) => write.events);
    if (target.audited !== null && stream.startsWith('$$')) await noteMetadata(target, app, stream.slice(2), events);
    if (target.audited !== null) found.push(target.audited);
  }
  return found;
}
