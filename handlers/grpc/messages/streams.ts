// Made of streams.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Uuid, Writer } from './wire.ts';
import { readDuration as readDurationOfGoogle, readTimestamp as readTimestampOfGoogle, type Any as GoogleAny, type Duration as GoogleDuration, type Timestamp as GoogleTimestamp, writeAny as writeAnyOfGoogle, writeTimestamp as writeTimestampOfGoogle } from './google.ts';
import { readStreamIdentifier as readStreamIdentifierOfShared, type AllStreamPosition as SharedAllStreamPosition, type StreamIdentifier as SharedStreamIdentifier, writeAllStreamPosition as writeAllStreamPositionOfShared, writeStreamIdentifier as writeStreamIdentifierOfShared } from './shared.ts';

/** `event_store.client.streams.Streams` */
export const StreamsService = {
  name: 'event_store.client.streams.Streams',
  methods: {
    Read: { path: '/event_store.client.streams.Streams/Read', hasManyRequests: false, hasManyResponses: true, readRequest: readReadReq, writeResponse: writeReadResp },
    Append: { path: '/event_store.client.streams.Streams/Append', hasManyRequests: true, hasManyResponses: false, readRequest: readAppendReq, writeResponse: writeAppendResp },
    Delete: { path: '/event_store.client.streams.Streams/Delete', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: writeDeleteResp },
    Tombstone: { path: '/event_store.client.streams.Streams/Tombstone', hasManyRequests: false, hasManyResponses: false, readRequest: readTombstoneReq, writeResponse: writeTombstoneResp },
    BatchAppend: { path: '/event_store.client.streams.Streams/BatchAppend', hasManyRequests: true, hasManyResponses: true, readRequest: readBatchAppendReq, writeResponse: writeBatchAppendResp },
  },
} as const;

export interface ReadReq {
  readonly options?: ReadReqOptions | undefined;
}

export function readReadReq(reader: Reader, end: number, depth: number): ReadReq {
  const message = { options: undefined as ReadReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readReadReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

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

export function readReadReqOptions(reader: Reader, end: number, depth: number): ReadReqOptions {
  const message = { stream: undefined as ReadReqOptionsStreamOptions | undefined, all: undefined as ReadReqOptionsAllOptions | undefined, readDirection: 0, resolveLinks: false as boolean, count: undefined as number | undefined, subscription: undefined as wire.Nothing | undefined, filter: undefined as ReadReqOptionsFilterOptions | undefined, noFilter: undefined as wire.Nothing | undefined, uuidOption: undefined as ReadReqOptionsUUIDOption | undefined, controlOption: undefined as ReadReqOptionsControlOption | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = readReadReqOptionsStreamOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 18: message.all = readReadReqOptionsAllOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.stream = undefined; break;
      case 24: message.readDirection = reader.int32(); break;
      case 32: message.resolveLinks = reader.bool(); break;
      case 40: message.count = wire.uint64(reader); message.subscription = undefined; break;
      case 50: message.subscription = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.count = undefined; break;
      case 58: message.filter = readReadReqOptionsFilterOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.noFilter = undefined; break;
      case 66: message.noFilter = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.filter = undefined; break;
      case 74: message.uuidOption = readReadReqOptionsUUIDOption(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 82: message.controlOption = readReadReqOptionsControlOption(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export const ReadReqOptionsReadDirection = { Forwards: 0, Backwards: 1 } as const;

export interface ReadReqOptionsStreamOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
}

export function readReadReqOptionsStreamOptions(reader: Reader, end: number, depth: number): ReadReqOptionsStreamOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, revision: undefined as number | undefined, start: undefined as wire.Nothing | undefined, end: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 16: message.revision = wire.uint64(reader); message.start = undefined; message.end = undefined; break;
      case 26: message.start = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.end = undefined; break;
      case 34: message.end = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.start = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReqOptionsAllOptions {
  readonly position?: ReadReqOptionsPosition | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
}

export function readReadReqOptionsAllOptions(reader: Reader, end: number, depth: number): ReadReqOptionsAllOptions {
  const message = { position: undefined as ReadReqOptionsPosition | undefined, start: undefined as wire.Nothing | undefined, end: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.position = readReadReqOptionsPosition(reader, wire.endOf(reader, depth + 1), depth + 1); message.start = undefined; message.end = undefined; break;
      case 18: message.start = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.position = undefined; message.end = undefined; break;
      case 26: message.end = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.position = undefined; message.start = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReqOptionsPosition {
  readonly commitPosition: number;
  readonly preparePosition: number;
}

export function readReadReqOptionsPosition(reader: Reader, end: number, depth: number): ReadReqOptionsPosition {
  const message = { commitPosition: 0, preparePosition: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.commitPosition = wire.uint64(reader); break;
      case 16: message.preparePosition = wire.uint64(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

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

export function readReadReqOptionsFilterOptions(reader: Reader, end: number, depth: number): ReadReqOptionsFilterOptions {
  const message = { streamIdentifier: undefined as ReadReqOptionsFilterOptionsExpression | undefined, eventType: undefined as ReadReqOptionsFilterOptionsExpression | undefined, max: undefined as number | undefined, count: undefined as wire.Nothing | undefined, checkpointIntervalMultiplier: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readReadReqOptionsFilterOptionsExpression(reader, wire.endOf(reader, depth + 1), depth + 1); message.eventType = undefined; break;
      case 18: message.eventType = readReadReqOptionsFilterOptionsExpression(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamIdentifier = undefined; break;
      case 24: message.max = reader.uint32(); message.count = undefined; break;
      case 34: message.count = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.max = undefined; break;
      case 40: message.checkpointIntervalMultiplier = reader.uint32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReqOptionsFilterOptionsExpression {
  readonly regex: string;
  readonly prefix: readonly string[];
}

export function readReadReqOptionsFilterOptionsExpression(reader: Reader, end: number, depth: number): ReadReqOptionsFilterOptionsExpression {
  const message = { regex: '' as string, prefix: [] as string[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.regex = wire.text(reader); break;
      case 18: wire.addText(reader, message.prefix); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReqOptionsUUIDOption {
  readonly structured?: wire.Nothing | undefined;
  readonly string?: wire.Nothing | undefined;
}

export function readReadReqOptionsUUIDOption(reader: Reader, end: number, depth: number): ReadReqOptionsUUIDOption {
  const message = { structured: undefined as wire.Nothing | undefined, string: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.structured = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.string = undefined; break;
      case 18: message.string = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.structured = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReqOptionsControlOption {
  readonly compatibility: number;
}

export function readReadReqOptionsControlOption(reader: Reader, end: number, depth: number): ReadReqOptionsControlOption {
  const message = { compatibility: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.compatibility = reader.uint32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadResp {
  readonly event?: ReadRespReadEvent | undefined;
  readonly confirmation?: ReadRespSubscriptionConfirmation | undefined;
  readonly checkpoint?: ReadRespCheckpoint | undefined;
  readonly streamNotFound?: ReadRespStreamNotFound | undefined;
  readonly firstStreamPosition?: number | undefined;
  readonly lastStreamPosition?: number | undefined;
  readonly lastAllStreamPosition?: SharedAllStreamPosition | undefined;
  readonly caughtUp?: ReadRespCaughtUp | undefined;
  readonly fellBehind?: ReadRespFellBehind | undefined;
}

export function writeReadResp(message: ReadResp, writer: Writer): void {
  if (message.event !== undefined) { writer.uint32(10).fork(); writeReadRespReadEvent(message.event, writer); writer.ldelim(); }
  if (message.confirmation !== undefined) { writer.uint32(18).fork(); writeReadRespSubscriptionConfirmation(message.confirmation, writer); writer.ldelim(); }
  if (message.checkpoint !== undefined) { writer.uint32(26).fork(); writeReadRespCheckpoint(message.checkpoint, writer); writer.ldelim(); }
  if (message.streamNotFound !== undefined) { writer.uint32(34).fork(); writeReadRespStreamNotFound(message.streamNotFound, writer); writer.ldelim(); }
  if (message.firstStreamPosition !== undefined) { writer.uint32(40); wire.writeUint64(writer, message.firstStreamPosition); }
  if (message.lastStreamPosition !== undefined) { writer.uint32(48); wire.writeUint64(writer, message.lastStreamPosition); }
  if (message.lastAllStreamPosition !== undefined) { writer.uint32(58).fork(); writeAllStreamPositionOfShared(message.lastAllStreamPosition, writer); writer.ldelim(); }
  if (message.caughtUp !== undefined) { writer.uint32(66).fork(); writeReadRespCaughtUp(message.caughtUp, writer); writer.ldelim(); }
  if (message.fellBehind !== undefined) { writer.uint32(74).fork(); writeReadRespFellBehind(message.fellBehind, writer); writer.ldelim(); }
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

export interface ReadRespFellBehind {
  readonly timestamp?: GoogleTimestamp | undefined;
  readonly streamRevision?: number | bigint | undefined;
  readonly position?: ReadReqOptionsPosition | undefined;
}

export function writeReadRespFellBehind(message: ReadRespFellBehind, writer: Writer): void {
  if (message.timestamp !== undefined) { writer.uint32(10).fork(); writeTimestampOfGoogle(message.timestamp, writer); writer.ldelim(); }
  if (message.streamRevision !== undefined) { writer.uint32(16); wire.writeInt64(writer, message.streamRevision); }
  if (message.position !== undefined) { writer.uint32(26).fork(); writeReadReqOptionsPosition(message.position, writer); writer.ldelim(); }
}

export interface AppendReq {
  readonly options?: AppendReqOptions | undefined;
  readonly proposedMessage?: AppendReqProposedMessage | undefined;
}

export function readAppendReq(reader: Reader, end: number, depth: number): AppendReq {
  const message = { options: undefined as AppendReqOptions | undefined, proposedMessage: undefined as AppendReqProposedMessage | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readAppendReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.proposedMessage = undefined; break;
      case 18: message.proposedMessage = readAppendReqProposedMessage(reader, wire.endOf(reader, depth + 1), depth + 1); message.options = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface AppendReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly any?: wire.Nothing | undefined;
  readonly streamExists?: wire.Nothing | undefined;
}

export function readAppendReqOptions(reader: Reader, end: number, depth: number): AppendReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, revision: undefined as number | undefined, noStream: undefined as wire.Nothing | undefined, any: undefined as wire.Nothing | undefined, streamExists: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 16: message.revision = wire.uint64(reader); message.noStream = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 26: message.noStream = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 34: message.any = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.noStream = undefined; message.streamExists = undefined; break;
      case 42: message.streamExists = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.noStream = undefined; message.any = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface AppendReqProposedMessage {
  readonly id?: Uuid | undefined;
  readonly metadata: ReadonlyMap<string, string>;
  readonly customMetadata: Uint8Array;
  readonly data: Uint8Array;
}

export function readAppendReqProposedMessage(reader: Reader, end: number, depth: number): AppendReqProposedMessage {
  const message = { id: undefined as Uuid | undefined, metadata: new Map() as Map<string, string>, customMetadata: wire.NO_BYTES as Uint8Array, data: wire.NO_BYTES as Uint8Array };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.id = wire.uuid(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 18: wire.textEntry(reader, message.metadata, depth + 1); break;
      case 26: message.customMetadata = wire.bytes(reader); break;
      case 34: message.data = wire.bytes(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

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

export function readBatchAppendReq(reader: Reader, end: number, depth: number): BatchAppendReq {
  const message = { correlationId: undefined as Uuid | undefined, options: undefined as BatchAppendReqOptions | undefined, proposedMessages: [] as AppendReqProposedMessage[], isFinal: false as boolean };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.correlationId = wire.uuid(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 18: message.options = readBatchAppendReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 26: message.proposedMessages.push(readAppendReqProposedMessage(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      case 32: message.isFinal = reader.bool(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface BatchAppendReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly streamPosition?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly any?: wire.Nothing | undefined;
  readonly streamExists?: wire.Nothing | undefined;
  readonly deadline_21_10_0?: GoogleTimestamp | undefined;
  readonly deadline?: GoogleDuration | undefined;
}

export function readBatchAppendReqOptions(reader: Reader, end: number, depth: number): BatchAppendReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, streamPosition: undefined as number | undefined, noStream: undefined as wire.Nothing | undefined, any: undefined as wire.Nothing | undefined, streamExists: undefined as wire.Nothing | undefined, deadline_21_10_0: undefined as GoogleTimestamp | undefined, deadline: undefined as GoogleDuration | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 16: message.streamPosition = wire.uint64(reader); message.noStream = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 26: message.noStream = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamPosition = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 34: message.any = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamPosition = undefined; message.noStream = undefined; message.streamExists = undefined; break;
      case 42: message.streamExists = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamPosition = undefined; message.noStream = undefined; message.any = undefined; break;
      case 50: message.deadline_21_10_0 = readTimestampOfGoogle(reader, wire.endOf(reader, depth + 1), depth + 1); message.deadline = undefined; break;
      case 58: message.deadline = readDurationOfGoogle(reader, wire.endOf(reader, depth + 1), depth + 1); message.deadline_21_10_0 = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

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
  readonly position?: SharedAllStreamPosition | undefined;
  readonly noPosition?: wire.Nothing | undefined;
}

export function writeBatchAppendRespSuccess(message: BatchAppendRespSuccess, writer: Writer): void {
  if (message.currentRevision !== undefined) { writer.uint32(8); wire.writeUint64(writer, message.currentRevision); }
  if (message.noStream !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.noStream, writer); writer.ldelim(); }
  if (message.position !== undefined) { writer.uint32(26).fork(); writeAllStreamPositionOfShared(message.position, writer); writer.ldelim(); }
  if (message.noPosition !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
}

export interface DeleteReq {
  readonly options?: DeleteReqOptions | undefined;
}

export function readDeleteReq(reader: Reader, end: number, depth: number): DeleteReq {
  const message = { options: undefined as DeleteReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readDeleteReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface DeleteReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly any?: wire.Nothing | undefined;
  readonly streamExists?: wire.Nothing | undefined;
}

export function readDeleteReqOptions(reader: Reader, end: number, depth: number): DeleteReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, revision: undefined as number | undefined, noStream: undefined as wire.Nothing | undefined, any: undefined as wire.Nothing | undefined, streamExists: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 16: message.revision = wire.uint64(reader); message.noStream = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 26: message.noStream = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 34: message.any = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.noStream = undefined; message.streamExists = undefined; break;
      case 42: message.streamExists = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.noStream = undefined; message.any = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface DeleteResp {
  readonly position?: ReadReqOptionsPosition | undefined;
  readonly noPosition?: wire.Nothing | undefined;
}

export function writeDeleteResp(message: DeleteResp, writer: Writer): void {
  if (message.position !== undefined) { writer.uint32(10).fork(); writeReadReqOptionsPosition(message.position, writer); writer.ldelim(); }
  if (message.noPosition !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
}

export interface TombstoneReq {
  readonly options?: TombstoneReqOptions | undefined;
}

export function readTombstoneReq(reader: Reader, end: number, depth: number): TombstoneReq {
  const message = { options: undefined as TombstoneReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readTombstoneReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface TombstoneReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly noStream?: wire.Nothing | undefined;
  readonly any?: wire.Nothing | undefined;
  readonly streamExists?: wire.Nothing | undefined;
}

export function readTombstoneReqOptions(reader: Reader, end: number, depth: number): TombstoneReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, revision: undefined as number | undefined, noStream: undefined as wire.Nothing | undefined, any: undefined as wire.Nothing | undefined, streamExists: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 16: message.revision = wire.uint64(reader); message.noStream = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 26: message.noStream = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.any = undefined; message.streamExists = undefined; break;
      case 34: message.any = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.noStream = undefined; message.streamExists = undefined; break;
      case 42: message.streamExists = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.revision = undefined; message.noStream = undefined; message.any = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface TombstoneResp {
  readonly position?: ReadReqOptionsPosition | undefined;
  readonly noPosition?: wire.Nothing | undefined;
}

export function writeTombstoneResp(message: TombstoneResp, writer: Writer): void {
  if (message.position !== undefined) { writer.uint32(10).fork(); writeReadReqOptionsPosition(message.position, writer); writer.ldelim(); }
  if (message.noPosition !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
}
