// Made of streams.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Uuid, Writer } from './wire.ts';
import { readDuration as readDurationOfGoogle, readTimestamp as readTimestampOfGoogle, type Any as GoogleAny, type Duration as GoogleDuration, type Timestamp as GoogleTimestamp, writeAny as writeAnyOfGoogle, writeTimestamp as writeTimestampOfGoogle } from './google.ts';
import { readStreamIdentifier as readStreamIdentifierOfShared, type StreamIdentifier as SharedStreamIdentifier, writeStreamIdentifier as writeStreamIdentifierOfShared } from './shared.ts';

export interface ReadReq {
  readonly options?: ReadReqOptions | undefined;
}

export const readReadReq = wire.reader((): wire.Open<ReadReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readReadReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface ReadReqOptions {
  readonly stream?: ReadReqOptionsStreamOptions | undefined;
  readonly all?: ReadReqOptionsAllOptions | undefined;
  readonly readDirection: number;
  readonly resolveLinks: boolean;
  readonly count?: number | undefined;
  readonly subscription?: wire.Nothing | undefined;
  readonly filter?: ReadReqOptionsFilterOptions | undefined;
  readonly noFilter?: wire.Nothing | undefined;
  readonly uuidOption?: ReadReqOptionsUUIDOption | undefined;
  readonly controlOption?: ReadReqOptionsControlOption | undefined;
}

export const readReadReqOptions = wire.reader((): wire.Open<ReadReqOptions> => ({ stream: undefined, all: undefined, readDirection: 0, resolveLinks: false, count: undefined, subscription: undefined, filter: undefined, noFilter: undefined, uuidOption: undefined, controlOption: undefined }), {
  10: (message, reader, depth) => { message.stream = readReadReqOptionsStreamOptions(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  18: (message, reader, depth) => { message.all = readReadReqOptionsAllOptions(reader, wire.endOf(reader, depth), depth); message.stream = undefined; },
  24: (message, reader) => { message.readDirection = reader.int32(); },
  32: (message, reader) => { message.resolveLinks = reader.bool(); },
  40: (message, reader) => { message.count = wire.uint64(reader); message.subscription = undefined; },
  50: (message, reader, depth) => { message.subscription = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.count = undefined; },
  58: (message, reader, depth) => { message.filter = readReadReqOptionsFilterOptions(reader, wire.endOf(reader, depth), depth); message.noFilter = undefined; },
  66: (message, reader, depth) => { message.noFilter = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.filter = undefined; },
  74: (message, reader, depth) => { message.uuidOption = readReadReqOptionsUUIDOption(reader, wire.endOf(reader, depth), depth); },
  82: (message, reader, depth) => { message.controlOption = readReadReqOptionsControlOption(reader, wire.endOf(reader, depth), depth); },
});

export const ReadReqOptionsReadDirection = { Forwards: 0, Backwards: 1 } as const;

export interface ReadReqOptionsStreamOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
}

export const readReadReqOptionsStreamOptions = wire.reader((): wire.Open<ReadReqOptionsStreamOptions> => ({ streamIdentifier: undefined, revision: undefined, start: undefined, end: undefined }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); },
  16: (message, reader) => { message.revision = wire.uint64(reader); message.start = undefined; message.end = undefined; },
  26: (message, reader, depth) => { message.start = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.revision = undefined; message.end = undefined; },
  34: (message, reader, depth) => { message.end = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.revision = undefined; message.start = undefined; },
});

export interface ReadReqOptionsAllOptions {
  readonly position?: ReadReqOptionsPosition | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
}

export const readReadReqOptionsAllOptions = wire.reader((): wire.Open<ReadReqOptionsAllOptions> => ({ position: undefined, start: undefined, end: undefined }), {
  10: (message, reader, depth) => { message.position = readReadReqOptionsPosition(reader, wire.endOf(reader, depth), depth); message.start = undefined; message.end = undefined; },
  18: (message, reader, depth) => { message.start = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.position = undefined; message.end = undefined; },
  26: (message, reader, depth) => { message.end = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.position = undefined; message.start = undefined; },
});

export interface ReadReqOptionsPosition {
  readonly commitPosition: number;
  readonly preparePosition: number;
}

export const readReadReqOptionsPosition = wire.reader((): wire.Open<ReadReqOptionsPosition> => ({ commitPosition: 0, preparePosition: 0 }), {
  8: (message, reader) => { message.commitPosition = wire.uint64(reader); },
  16: (message, reader) => { message.preparePosition = wire.uint64(reader); },
});

export function writeReadReqOptionsPosition(message: ReadReqOptionsPosition, writer: Writer): void {
  if (message.commitPosition !== 0) { writer.uint32(8); wire.writeUint64(writer, message.commitPosition); }
  if (message.preparePosition !== 0) { writer.uint32(16); wire.writeUint64(writer, message.preparePosition); }
}

export interface ReadReqOptionsFilterOptions {
  readonly streamIdentifier?: ReadReqOptionsFilterOptionsExpression | undefined;
  readonly eventType?: ReadReqOptionsFilterOptionsExpression | undefined;
  readonly max?: number | undefined;
  readonly count?: wire.Nothing | undefined;
  readonly checkpointIntervalMultiplier: number;
}

export const readReadReqOptionsFilterOptions = wire.reader((): wire.Open<ReadReqOptionsFilterOptions> => ({ streamIdentifier: undefined, eventType: undefined, max: undefined, count: undefined, checkpointIntervalMultiplier: 0 }), {
  10: (message, reader, depth) => { message.streamIdentifier = readReadReqOptionsFilterOptionsExpression(reader, wire.endOf(reader, depth), depth); message.eventType = undefined; },
  18: (message, reader, depth) => { message.eventType = readReadReqOptionsFilterOptionsExpression(reader, wire.endOf(reader, depth), depth); message.streamIdentifier = undefined; },
  24: (message, reader) => { message.max = reader.uint32(); message.count = undefined; },
  34: (message, reader, depth) => { message.count = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.max = undefined; },
  40: (message, reader) => { message.checkpointIntervalMultiplier = reader.uint32(); },
});

export interface ReadReqOptionsFilterOptionsExpression {
  readonly regex: string;
  readonly prefix: readonly string[];
}

export const readReadReqOptionsFilterOptionsExpression = wire.reader((): wire.Open<ReadReqOptionsFilterOptionsExpression> => ({ regex: '', prefix: [] }), {
  10: (message, reader) => { message.regex = wire.text(reader); },
  18: (message, reader) => { wire.addText(reader, message.prefix); },
});

export interface ReadReqOptionsUUIDOption {
  readonly structured?: wire.Nothing | undefined;
  readonly string?: wire.Nothing | undefined;
}

export const readReadReqOptionsUUIDOption = wire.reader((): wire.Open<ReadReqOptionsUUIDOption> => ({ structured: undefined, string: undefined }), {
  10: (message, reader, depth) => { message.structured = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.string = undefined; },
  18: (message, reader, depth) => { message.string = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.structured = undefined; },
});

export interface ReadReqOptionsControlOption {
  readonly compatibility: number;
}

export const readReadReqOptionsControlOption = wire.reader((): wire.Open<ReadReqOptionsControlOption> => ({ compatibility: 0 }), {
  8: (message, reader) => { message.compatibility = reader.uint32(); },
});

export interface ReadResp {
  readonly event?: ReadRespReadEvent | undefined;
  readonly confirmation?: ReadRespSubscriptionConfirmation | undefined;
  readonly checkpoint?: ReadRespCheckpoint | undefined;
  readonly streamNotFound?: ReadRespStreamNotFound | undefined;
  readonly firstStreamPosition?: number | undefined;
  readonly lastStreamPosition?: number | undefined;
  readonly lastAllStreamPosition?: ReadReqOptionsPosition | undefined;
  readonly caughtUp?: ReadRespCaughtUp | undefined;
  readonly fellBehind?: ReadRespCaughtUp | undefined;
}

export function writeReadResp(message: ReadResp, writer: Writer): void {
  if (message.event !== undefined) { writer.uint32(10).fork(); writeReadRespReadEvent(message.event, writer); writer.ldelim(); }
  if (message.confirmation !== undefined) { writer.uint32(18).fork(); writeReadRespSubscriptionConfirmation(message.confirmation, writer); writer.ldelim(); }
  if (message.checkpoint !== undefined) { writer.uint32(26).fork(); writeReadRespCheckpoint(message.checkpoint, writer); writer.ldelim(); }
  if (message.streamNotFound !== undefined) { writer.uint32(34).fork(); writeReadRespStreamNotFound(message.streamNotFound, writer); writer.ldelim(); }
  if (message.firstStreamPosition !== undefined) { writer.uint32(40); wire.writeUint64(writer, message.firstStreamPosition); }
  if (message.lastStreamPosition !== undefined) { writer.uint32(48); wire.writeUint64(writer, message.lastStreamPosition); }
  if (message.lastAllStreamPosition !== undefined) { writer.uint32(58).fork(); writeReadReqOptionsPosition(message.lastAllStreamPosition, writer); writer.ldelim(); }
  if (message.caughtUp !== undefined) { writer.uint32(66).fork(); writeReadRespCaughtUp(message.caughtUp, writer); writer.ldelim(); }
  if (message.fellBehind !== undefined) { writer.uint32(74).fork(); writeReadRespCaughtUp(message.fellBehind, writer); writer.ldelim(); }
}

export interface ReadRespReadEvent {
  readonly event?: ReadRespReadEventRecordedEvent | undefined;
  readonly link?: ReadRespReadEventRecordedEvent | undefined;
  readonly commitPosition?: number | undefined;
  readonly noPosition?: wire.Nothing | undefined;
}

export function writeReadRespReadEvent(message: ReadRespReadEvent, writer: Writer): void {
  if (message.event !== undefined) { writer.uint32(10).fork(); writeReadRespReadEventRecordedEvent(message.event, writer); writer.ldelim(); }
  if (message.link !== undefined) { writer.uint32(18).fork(); writeReadRespReadEventRecordedEvent(message.link, writer); writer.ldelim(); }
  if (message.commitPosition !== undefined) { writer.uint32(24); wire.writeUint64(writer, message.commitPosition); }
  if (message.noPosition !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
}

export interface ReadRespReadEventRecordedEvent {
  readonly id?: Uuid | undefined;
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly streamRevision: number;
  readonly preparePosition: number;
  readonly commitPosition: number;
  readonly metadata: ReadonlyMap<string, string>;
  readonly customMetadata: Uint8Array;
  readonly data: Uint8Array;
}

export function writeReadRespReadEventRecordedEvent(message: ReadRespReadEventRecordedEvent, writer: Writer): void {
  if (message.id !== undefined) { writer.uint32(10).fork(); wire.writeUuid(message.id, writer); writer.ldelim(); }
  if (message.streamIdentifier !== undefined) { writer.uint32(18).fork(); writeStreamIdentifierOfShared(message.streamIdentifier, writer); writer.ldelim(); }
  if (message.streamRevision !== 0) { writer.uint32(24); wire.writeUint64(writer, message.streamRevision); }
  if (message.preparePosition !== 0) { writer.uint32(32); wire.writeUint64(writer, message.preparePosition); }
  if (message.commitPosition !== 0) { writer.uint32(40); wire.writeUint64(writer, message.commitPosition); }
  wire.writeTextEntries(writer, 6, message.metadata);
  if (message.customMetadata.length > 0) { writer.uint32(58).bytes(message.customMetadata); }
  if (message.data.length > 0) { writer.uint32(66).bytes(message.data); }
}

export interface ReadRespSubscriptionConfirmation {
  readonly subscriptionId: string;
}

export function writeReadRespSubscriptionConfirmation(message: ReadRespSubscriptionConfirmation, writer: Writer): void {
  if (message.subscriptionId !== '') { writer.uint32(10).string(message.subscriptionId); }
}

export interface ReadRespCheckpoint {
  readonly commitPosition: number;
  readonly preparePosition: number;
  readonly timestamp?: GoogleTimestamp | undefined;
}

export function writeReadRespCheckpoint(message: ReadRespCheckpoint, writer: Writer): void {
  if (message.commitPosition !== 0) { writer.uint32(8); wire.writeUint64(writer, message.commitPosition); }
  if (message.preparePosition !== 0) { writer.uint32(16); wire.writeUint64(writer, message.preparePosition); }
  if (message.timestamp !== undefined) { writer.uint32(26).fork(); writeTimestampOfGoogle(message.timestamp, writer); writer.ldelim(); }
}

export interface ReadRespStreamNotFound {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
}

export function writeReadRespStreamNotFound(message: ReadRespStreamNotFound, writer: Writer): void {
  if (message.streamIdentifier !== undefined) { writer.uint32(10).fork(); writeStreamIdentifierOfShared(message.streamIdentifier, writer); writer.ldelim(); }
}

export interface ReadRespCaughtUp {
  readonly timestamp?: GoogleTimestamp | undefined;
  readonly streamRevision?: number | bigint | undefined;
  readonly position?: ReadReqOptionsPosition | undefined;
}

export function writeReadRespCaughtUp(message: ReadRespCaughtUp, writer: Writer): void {
  if (message.timestamp !== undefined) { writer.uint32(10).fork(); writeTimestampOfGoogle(message.timestamp, writer); writer.ldelim(); }
  if (message.streamRevision !== undefined) { writer.uint32(16); wire.writeInt64(writer, message.streamRevision); }
  if (message.position !== undefined) { writer.uint32(26).fork(); writeReadReqOptionsPosition(message.position, writer); writer.ldelim(); }
}

export interface AppendReq {
  readonly options?: AppendReqOptions | undefined;
  readonly proposedMessage?: AppendReqProposedMessage | undefined;
}

export const readAppendReq = wire.reader((): wire.Open<AppendReq> => ({ options: undefined, proposedMessage: undefined }), {
  10: (message, reader, depth) => { message.options = readAppendReqOptions(reader, wire.endOf(reader, depth), depth); message.proposedMessage = undefined; },
  18: (message, reader, depth) => { message.proposedMessage = readAppendReqProposedMessage(reader, wire.endOf(reader, depth), depth); message.options = undefined; },
});

export interface AppendReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly any?: wire.Nothing | undefined;
  readonly streamExists?: wire.Nothing | undefined;
}

export const readAppendReqOptions = wire.reader((): wire.Open<AppendReqOptions> => ({ streamIdentifier: undefined, revision: undefined, noStream: undefined, any: undefined, streamExists: undefined }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); },
  16: (message, reader) => { message.revision = wire.uint64(reader); message.noStream = undefined; message.any = undefined; message.streamExists = undefined; },
  26: (message, reader, depth) => { message.noStream = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.revision = undefined; message.any = undefined; message.streamExists = undefined; },
  34: (message, reader, depth) => { message.any = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.revision = undefined; message.noStream = undefined; message.streamExists = undefined; },
  42: (message, reader, depth) => { message.streamExists = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.revision = undefined; message.noStream = undefined; message.any = undefined; },
});

export interface AppendReqProposedMessage {
  readonly id?: Uuid | undefined;
  readonly metadata: ReadonlyMap<string, string>;
  readonly customMetadata: Uint8Array;
  readonly data: Uint8Array;
}

export const readAppendReqProposedMessage = wire.reader((): wire.Open<AppendReqProposedMessage> => ({ id: undefined, metadata: new Map(), customMetadata: wire.NO_BYTES, data: wire.NO_BYTES }), {
  10: (message, reader, depth) => { message.id = wire.uuid(reader, wire.endOf(reader, depth), depth); },
  18: (message, reader, depth) => { wire.textEntry(reader, message.metadata, depth); },
  26: (message, reader) => { message.customMetadata = wire.bytes(reader); },
  34: (message, reader) => { message.data = wire.bytes(reader); },
});

export interface AppendResp {
  readonly success?: AppendRespSuccess | undefined;
  readonly wrongExpectedVersion?: AppendRespWrongExpectedVersion | undefined;
}

export function writeAppendResp(message: AppendResp, writer: Writer): void {
  if (message.success !== undefined) { writer.uint32(10).fork(); writeAppendRespSuccess(message.success, writer); writer.ldelim(); }
  if (message.wrongExpectedVersion !== undefined) { writer.uint32(18).fork(); writeAppendRespWrongExpectedVersion(message.wrongExpectedVersion, writer); writer.ldelim(); }
}

export interface AppendRespSuccess {
  readonly currentRevision?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly position?: ReadReqOptionsPosition | undefined;
  readonly noPosition?: wire.Nothing | undefined;
}

export function writeAppendRespSuccess(message: AppendRespSuccess, writer: Writer): void {
  if (message.currentRevision !== undefined) { writer.uint32(8); wire.writeUint64(writer, message.currentRevision); }
  if (message.noStream !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.noStream, writer); writer.ldelim(); }
  if (message.position !== undefined) { writer.uint32(26).fork(); writeReadReqOptionsPosition(message.position, writer); writer.ldelim(); }
  if (message.noPosition !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
}

export interface AppendRespWrongExpectedVersion {
  readonly currentRevision_20_6_0?: number | undefined;
  readonly noStream_20_6_0?: wire.Nothing | undefined;
  readonly expectedRevision_20_6_0?: number | undefined;
  readonly any_20_6_0?: wire.Nothing | undefined;
  readonly streamExists_20_6_0?: wire.Nothing | undefined;
  readonly currentRevision?: number | undefined;
  readonly currentNoStream?: wire.Nothing | undefined;
  readonly expectedRevision?: number | undefined;
  readonly expectedAny?: wire.Nothing | undefined;
  readonly expectedStreamExists?: wire.Nothing | undefined;
  readonly expectedNoStream?: wire.Nothing | undefined;
}

export function writeAppendRespWrongExpectedVersion(message: AppendRespWrongExpectedVersion, writer: Writer): void {
  if (message.currentRevision_20_6_0 !== undefined) { writer.uint32(8); wire.writeUint64(writer, message.currentRevision_20_6_0); }
  if (message.noStream_20_6_0 !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.noStream_20_6_0, writer); writer.ldelim(); }
  if (message.expectedRevision_20_6_0 !== undefined) { writer.uint32(24); wire.writeUint64(writer, message.expectedRevision_20_6_0); }
  if (message.any_20_6_0 !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.any_20_6_0, writer); writer.ldelim(); }
  if (message.streamExists_20_6_0 !== undefined) { writer.uint32(42).fork(); wire.writeNothing(message.streamExists_20_6_0, writer); writer.ldelim(); }
  if (message.currentRevision !== undefined) { writer.uint32(48); wire.writeUint64(writer, message.currentRevision); }
  if (message.currentNoStream !== undefined) { writer.uint32(58).fork(); wire.writeNothing(message.currentNoStream, writer); writer.ldelim(); }
  if (message.expectedRevision !== undefined) { writer.uint32(64); wire.writeUint64(writer, message.expectedRevision); }
  if (message.expectedAny !== undefined) { writer.uint32(74).fork(); wire.writeNothing(message.expectedAny, writer); writer.ldelim(); }
  if (message.expectedStreamExists !== undefined) { writer.uint32(82).fork(); wire.writeNothing(message.expectedStreamExists, writer); writer.ldelim(); }
  if (message.expectedNoStream !== undefined) { writer.uint32(90).fork(); wire.writeNothing(message.expectedNoStream, writer); writer.ldelim(); }
}

export interface BatchAppendReq {
  readonly correlationId?: Uuid | undefined;
  readonly options?: BatchAppendReqOptions | undefined;
  readonly proposedMessages: readonly AppendReqProposedMessage[];
  readonly isFinal: boolean;
}

export const readBatchAppendReq = wire.reader((): wire.Open<BatchAppendReq> => ({ correlationId: undefined, options: undefined, proposedMessages: [], isFinal: false }), {
  10: (message, reader, depth) => { message.correlationId = wire.uuid(reader, wire.endOf(reader, depth), depth); },
  18: (message, reader, depth) => { message.options = readBatchAppendReqOptions(reader, wire.endOf(reader, depth), depth); },
  26: (message, reader, depth) => { message.proposedMessages.push(readAppendReqProposedMessage(reader, wire.endOfElement(reader, depth), depth)); },
  32: (message, reader) => { message.isFinal = reader.bool(); },
});

export interface BatchAppendReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly streamPosition?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly any?: wire.Nothing | undefined;
  readonly streamExists?: wire.Nothing | undefined;
  readonly deadline_21_10_0?: GoogleTimestamp | undefined;
  readonly deadline?: GoogleDuration | undefined;
}

export const readBatchAppendReqOptions = wire.reader((): wire.Open<BatchAppendReqOptions> => ({ streamIdentifier: undefined, streamPosition: undefined, noStream: undefined, any: undefined, streamExists: undefined, deadline_21_10_0: undefined, deadline: undefined }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); },
  16: (message, reader) => { message.streamPosition = wire.uint64(reader); message.noStream = undefined; message.any = undefined; message.streamExists = undefined; },
  26: (message, reader, depth) => { message.noStream = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.streamPosition = undefined; message.any = undefined; message.streamExists = undefined; },
  34: (message, reader, depth) => { message.any = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.streamPosition = undefined; message.noStream = undefined; message.streamExists = undefined; },
  42: (message, reader, depth) => { message.streamExists = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.streamPosition = undefined; message.noStream = undefined; message.any = undefined; },
  50: (message, reader, depth) => { message.deadline_21_10_0 = readTimestampOfGoogle(reader, wire.endOf(reader, depth), depth); message.deadline = undefined; },
  58: (message, reader, depth) => { message.deadline = readDurationOfGoogle(reader, wire.endOf(reader, depth), depth); message.deadline_21_10_0 = undefined; },
});

export interface BatchAppendResp {
  readonly correlationId?: Uuid | undefined;
  readonly error?: BatchAppendRespStatus | undefined;
  readonly success?: BatchAppendRespSuccess | undefined;
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly streamPosition?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly any?: wire.Nothing | undefined;
  readonly streamExists?: wire.Nothing | undefined;
}

export function writeBatchAppendResp(message: BatchAppendResp, writer: Writer): void {
  if (message.correlationId !== undefined) { writer.uint32(10).fork(); wire.writeUuid(message.correlationId, writer); writer.ldelim(); }
  if (message.error !== undefined) { writer.uint32(18).fork(); writeBatchAppendRespStatus(message.error, writer); writer.ldelim(); }
  if (message.success !== undefined) { writer.uint32(26).fork(); writeBatchAppendRespSuccess(message.success, writer); writer.ldelim(); }
  if (message.streamIdentifier !== undefined) { writer.uint32(34).fork(); writeStreamIdentifierOfShared(message.streamIdentifier, writer); writer.ldelim(); }
  if (message.streamPosition !== undefined) { writer.uint32(40); wire.writeUint64(writer, message.streamPosition); }
  if (message.noStream !== undefined) { writer.uint32(50).fork(); wire.writeNothing(message.noStream, writer); writer.ldelim(); }
  if (message.any !== undefined) { writer.uint32(58).fork(); wire.writeNothing(message.any, writer); writer.ldelim(); }
  if (message.streamExists !== undefined) { writer.uint32(66).fork(); wire.writeNothing(message.streamExists, writer); writer.ldelim(); }
}

export interface BatchAppendRespStatus {
  readonly code: number;
  readonly message: string;
  readonly details?: GoogleAny | undefined;
}

export function writeBatchAppendRespStatus(message: BatchAppendRespStatus, writer: Writer): void {
  if (message.code !== 0) { writer.uint32(8).int32(message.code); }
  if (message.message !== '') { writer.uint32(18).string(message.message); }
  if (message.details !== undefined) { writer.uint32(26).fork(); writeAnyOfGoogle(message.details, writer); writer.ldelim(); }
}

export const BatchAppendRespStatusCode = { OK: 0, CANCELLED: 1, UNKNOWN: 2, INVALID_ARGUMENT: 3, DEADLINE_EXCEEDED: 4, NOT_FOUND: 5, ALREADY_EXISTS: 6, PERMISSION_DENIED: 7, RESOURCE_EXHAUSTED: 8, FAILED_PRECONDITION: 9, ABORTED: 10, OUT_OF_RANGE: 11, UNIMPLEMENTED: 12, INTERNAL: 13, UNAVAILABLE: 14, DATA_LOSS: 15, UNAUTHENTICATED: 16 } as const;

export interface BatchAppendRespSuccess {
  readonly currentRevision?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly position?: ReadReqOptionsPosition | undefined;
  readonly noPosition?: wire.Nothing | undefined;
}

export function writeBatchAppendRespSuccess(message: BatchAppendRespSuccess, writer: Writer): void {
  if (message.currentRevision !== undefined) { writer.uint32(8); wire.writeUint64(writer, message.currentRevision); }
  if (message.noStream !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.noStream, writer); writer.ldelim(); }
  if (message.position !== undefined) { writer.uint32(26).fork(); writeReadReqOptionsPosition(message.position, writer); writer.ldelim(); }
  if (message.noPosition !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
}

export interface DeleteReq {
  readonly options?: AppendReqOptions | undefined;
}

export const readDeleteReq = wire.reader((): wire.Open<DeleteReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readAppendReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface DeleteResp {
  readonly position?: ReadReqOptionsPosition | undefined;
  readonly noPosition?: wire.Nothing | undefined;
}

export function writeDeleteResp(message: DeleteResp, writer: Writer): void {
  if (message.position !== undefined) { writer.uint32(10).fork(); writeReadReqOptionsPosition(message.position, writer); writer.ldelim(); }
  if (message.noPosition !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
}

/** `event_store.client.streams.Streams` */
export const StreamsService = {
  name: 'event_store.client.streams.Streams',
  methods: {
    Read: { path: '/event_store.client.streams.Streams/Read', hasManyRequests: false, hasManyResponses: true, readRequest: readReadReq, writeResponse: writeReadResp },
    Append: { path: '/event_store.client.streams.Streams/Append', hasManyRequests: true, hasManyResponses: false, readRequest: readAppendReq, writeResponse: writeAppendResp },
    Delete: { path: '/event_store.client.streams.Streams/Delete', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: writeDeleteResp },
    Tombstone: { path: '/event_store.client.streams.Streams/Tombstone', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: writeDeleteResp },
    BatchAppend: { path: '/event_store.client.streams.Streams/BatchAppend', hasManyRequests: true, hasManyResponses: true, readRequest: readBatchAppendReq, writeResponse: writeBatchAppendResp },
  },
} as const;
