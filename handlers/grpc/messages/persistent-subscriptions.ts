// Made of persistent-subscriptions.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Uuid, Writer } from './wire.ts';
import { readStreamIdentifier as readStreamIdentifierOfShared, type StreamIdentifier as SharedStreamIdentifier, writeStreamIdentifier as writeStreamIdentifierOfShared } from './shared.ts';

/** `event_store.client.persistent_subscriptions.PersistentSubscriptions` */
export const PersistentSubscriptionsService = {
  name: 'event_store.client.persistent_subscriptions.PersistentSubscriptions',
  methods: {
    Create: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/Create', hasManyRequests: false, hasManyResponses: false, readRequest: readCreateReq, writeResponse: wire.writeNothing },
    Update: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/Update', hasManyRequests: false, hasManyResponses: false, readRequest: readUpdateReq, writeResponse: wire.writeNothing },
    Delete: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/Delete', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: wire.writeNothing },
    Read: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/Read', hasManyRequests: true, hasManyResponses: true, readRequest: readReadReq, writeResponse: writeReadResp },
    GetInfo: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/GetInfo', hasManyRequests: false, hasManyResponses: false, readRequest: readGetInfoReq, writeResponse: writeGetInfoResp },
    ReplayParked: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/ReplayParked', hasManyRequests: false, hasManyResponses: false, readRequest: readReplayParkedReq, writeResponse: wire.writeNothing },
    TruncateParked: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/TruncateParked', hasManyRequests: false, hasManyResponses: false, readRequest: readTruncateParkedReq, writeResponse: wire.writeNothing },
    List: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/List', hasManyRequests: false, hasManyResponses: false, readRequest: readListReq, writeResponse: writeListResp },
    RestartSubsystem: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/RestartSubsystem', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: wire.writeNothing },
  },
} as const;

export const ConsumerStrategy = { DispatchToSingle: 0, RoundRobin: 1, Pinned: 2 } as const;

export interface CreateReq {
  readonly options?: CreateReqOptions | undefined;
}

export function readCreateReq(reader: Reader, end: number, depth: number): CreateReq {
  const message = { options: undefined as CreateReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readCreateReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface CreateReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly groupName: string;
  readonly settings?: CreateReqSettings | undefined;
  readonly stream?: CreateReqStreamOptions | undefined;
  readonly all?: CreateReqAllOptions | undefined;
}

export function readCreateReqOptions(reader: Reader, end: number, depth: number): CreateReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, groupName: '' as string, settings: undefined as CreateReqSettings | undefined, stream: undefined as CreateReqStreamOptions | undefined, all: undefined as CreateReqAllOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 18: message.groupName = wire.text(reader); break;
      case 26: message.settings = readCreateReqSettings(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 34: message.stream = readCreateReqStreamOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 42: message.all = readCreateReqAllOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.stream = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface CreateReqStreamOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
}

export function readCreateReqStreamOptions(reader: Reader, end: number, depth: number): CreateReqStreamOptions {
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

export interface CreateReqAllOptions {
  readonly position?: CreateReqPosition | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
  readonly filter?: CreateReqFilterOptions | undefined;
  readonly noFilter?: wire.Nothing | undefined;
}

export function readCreateReqAllOptions(reader: Reader, end: number, depth: number): CreateReqAllOptions {
  const message = { position: undefined as CreateReqPosition | undefined, start: undefined as wire.Nothing | undefined, end: undefined as wire.Nothing | undefined, filter: undefined as CreateReqFilterOptions | undefined, noFilter: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.position = readCreateReqPosition(reader, wire.endOf(reader, depth + 1), depth + 1); message.start = undefined; message.end = undefined; break;
      case 18: message.start = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.position = undefined; message.end = undefined; break;
      case 26: message.end = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.position = undefined; message.start = undefined; break;
      case 34: message.filter = readCreateReqFilterOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.noFilter = undefined; break;
      case 42: message.noFilter = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.filter = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface CreateReqFilterOptions {
  readonly streamIdentifier?: CreateReqFilterOptionsExpression | undefined;
  readonly eventType?: CreateReqFilterOptionsExpression | undefined;
  readonly max?: number | undefined;
  readonly count?: wire.Nothing | undefined;
  readonly checkpointIntervalMultiplier: number;
}

export function readCreateReqFilterOptions(reader: Reader, end: number, depth: number): CreateReqFilterOptions {
  const message = { streamIdentifier: undefined as CreateReqFilterOptionsExpression | undefined, eventType: undefined as CreateReqFilterOptionsExpression | undefined, max: undefined as number | undefined, count: undefined as wire.Nothing | undefined, checkpointIntervalMultiplier: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readCreateReqFilterOptionsExpression(reader, wire.endOf(reader, depth + 1), depth + 1); message.eventType = undefined; break;
      case 18: message.eventType = readCreateReqFilterOptionsExpression(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamIdentifier = undefined; break;
      case 24: message.max = reader.uint32(); message.count = undefined; break;
      case 34: message.count = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.max = undefined; break;
      case 40: message.checkpointIntervalMultiplier = reader.uint32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface CreateReqFilterOptionsExpression {
  readonly regex: string;
  readonly prefix: readonly string[];
}

export function readCreateReqFilterOptionsExpression(reader: Reader, end: number, depth: number): CreateReqFilterOptionsExpression {
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

export interface CreateReqPosition {
  readonly commitPosition: number;
  readonly preparePosition: number;
}

export function readCreateReqPosition(reader: Reader, end: number, depth: number): CreateReqPosition {
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

export interface CreateReqSettings {
  readonly resolveLinks: boolean;
  readonly revision: number;
  readonly extraStatistics: boolean;
  readonly messageTimeoutTicks?: number | bigint | undefined;
  readonly maxRetryCount: number;
  readonly checkpointAfterTicks?: number | bigint | undefined;
  readonly minCheckpointCount: number;
  readonly maxCheckpointCount: number;
  readonly maxSubscriberCount: number;
  readonly liveBufferSize: number;
  readonly readBatchSize: number;
  readonly historyBufferSize: number;
  readonly namedConsumerStrategy: number;
  readonly messageTimeoutMs?: number | undefined;
  readonly checkpointAfterMs?: number | undefined;
  readonly consumerStrategy: string;
}

export function readCreateReqSettings(reader: Reader, end: number, depth: number): CreateReqSettings {
  const message = { resolveLinks: false as boolean, revision: 0, extraStatistics: false as boolean, messageTimeoutTicks: undefined as number | bigint | undefined, maxRetryCount: 0, checkpointAfterTicks: undefined as number | bigint | undefined, minCheckpointCount: 0, maxCheckpointCount: 0, maxSubscriberCount: 0, liveBufferSize: 0, readBatchSize: 0, historyBufferSize: 0, namedConsumerStrategy: 0, messageTimeoutMs: undefined as number | undefined, checkpointAfterMs: undefined as number | undefined, consumerStrategy: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.resolveLinks = reader.bool(); break;
      case 16: message.revision = wire.uint64(reader); break;
      case 24: message.extraStatistics = reader.bool(); break;
      case 32: message.messageTimeoutTicks = wire.int64(reader); message.messageTimeoutMs = undefined; break;
      case 40: message.maxRetryCount = reader.int32(); break;
      case 48: message.checkpointAfterTicks = wire.int64(reader); message.checkpointAfterMs = undefined; break;
      case 56: message.minCheckpointCount = reader.int32(); break;
      case 64: message.maxCheckpointCount = reader.int32(); break;
      case 72: message.maxSubscriberCount = reader.int32(); break;
      case 80: message.liveBufferSize = reader.int32(); break;
      case 88: message.readBatchSize = reader.int32(); break;
      case 96: message.historyBufferSize = reader.int32(); break;
      case 104: message.namedConsumerStrategy = reader.int32(); break;
      case 112: message.messageTimeoutMs = reader.int32(); message.messageTimeoutTicks = undefined; break;
      case 120: message.checkpointAfterMs = reader.int32(); message.checkpointAfterTicks = undefined; break;
      case 130: message.consumerStrategy = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface UpdateReq {
  readonly options?: UpdateReqOptions | undefined;
}

export function readUpdateReq(reader: Reader, end: number, depth: number): UpdateReq {
  const message = { options: undefined as UpdateReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readUpdateReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface UpdateReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly groupName: string;
  readonly settings?: UpdateReqSettings | undefined;
  readonly stream?: UpdateReqStreamOptions | undefined;
  readonly all?: UpdateReqAllOptions | undefined;
}

export function readUpdateReqOptions(reader: Reader, end: number, depth: number): UpdateReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, groupName: '' as string, settings: undefined as UpdateReqSettings | undefined, stream: undefined as UpdateReqStreamOptions | undefined, all: undefined as UpdateReqAllOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 18: message.groupName = wire.text(reader); break;
      case 26: message.settings = readUpdateReqSettings(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 34: message.stream = readUpdateReqStreamOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 42: message.all = readUpdateReqAllOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.stream = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface UpdateReqStreamOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly revision?: number | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
}

export function readUpdateReqStreamOptions(reader: Reader, end: number, depth: number): UpdateReqStreamOptions {
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

export interface UpdateReqAllOptions {
  readonly position?: CreateReqPosition | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
}

export function readUpdateReqAllOptions(reader: Reader, end: number, depth: number): UpdateReqAllOptions {
  const message = { position: undefined as CreateReqPosition | undefined, start: undefined as wire.Nothing | undefined, end: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.position = readCreateReqPosition(reader, wire.endOf(reader, depth + 1), depth + 1); message.start = undefined; message.end = undefined; break;
      case 18: message.start = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.position = undefined; message.end = undefined; break;
      case 26: message.end = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.position = undefined; message.start = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface UpdateReqSettings {
  readonly resolveLinks: boolean;
  readonly revision: number;
  readonly extraStatistics: boolean;
  readonly messageTimeoutTicks?: number | bigint | undefined;
  readonly maxRetryCount: number;
  readonly checkpointAfterTicks?: number | bigint | undefined;
  readonly minCheckpointCount: number;
  readonly maxCheckpointCount: number;
  readonly maxSubscriberCount: number;
  readonly liveBufferSize: number;
  readonly readBatchSize: number;
  readonly historyBufferSize: number;
  readonly namedConsumerStrategy: number;
  readonly messageTimeoutMs?: number | undefined;
  readonly checkpointAfterMs?: number | undefined;
}

export function readUpdateReqSettings(reader: Reader, end: number, depth: number): UpdateReqSettings {
  const message = { resolveLinks: false as boolean, revision: 0, extraStatistics: false as boolean, messageTimeoutTicks: undefined as number | bigint | undefined, maxRetryCount: 0, checkpointAfterTicks: undefined as number | bigint | undefined, minCheckpointCount: 0, maxCheckpointCount: 0, maxSubscriberCount: 0, liveBufferSize: 0, readBatchSize: 0, historyBufferSize: 0, namedConsumerStrategy: 0, messageTimeoutMs: undefined as number | undefined, checkpointAfterMs: undefined as number | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.resolveLinks = reader.bool(); break;
      case 16: message.revision = wire.uint64(reader); break;
      case 24: message.extraStatistics = reader.bool(); break;
      case 32: message.messageTimeoutTicks = wire.int64(reader); message.messageTimeoutMs = undefined; break;
      case 40: message.maxRetryCount = reader.int32(); break;
      case 48: message.checkpointAfterTicks = wire.int64(reader); message.checkpointAfterMs = undefined; break;
      case 56: message.minCheckpointCount = reader.int32(); break;
      case 64: message.maxCheckpointCount = reader.int32(); break;
      case 72: message.maxSubscriberCount = reader.int32(); break;
      case 80: message.liveBufferSize = reader.int32(); break;
      case 88: message.readBatchSize = reader.int32(); break;
      case 96: message.historyBufferSize = reader.int32(); break;
      case 104: message.namedConsumerStrategy = reader.int32(); break;
      case 112: message.messageTimeoutMs = reader.int32(); message.messageTimeoutTicks = undefined; break;
      case 120: message.checkpointAfterMs = reader.int32(); message.checkpointAfterTicks = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
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
  readonly groupName: string;
  readonly all?: wire.Nothing | undefined;
}

export function readDeleteReqOptions(reader: Reader, end: number, depth: number): DeleteReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, groupName: '' as string, all: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 18: message.groupName = wire.text(reader); break;
      case 26: message.all = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamIdentifier = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReq {
  readonly options?: ReadReqOptions | undefined;
  readonly ack?: ReadReqAck | undefined;
  readonly nack?: ReadReqNack | undefined;
}

export function readReadReq(reader: Reader, end: number, depth: number): ReadReq {
  const message = { options: undefined as ReadReqOptions | undefined, ack: undefined as ReadReqAck | undefined, nack: undefined as ReadReqNack | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readReadReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); message.ack = undefined; message.nack = undefined; break;
      case 18: message.ack = readReadReqAck(reader, wire.endOf(reader, depth + 1), depth + 1); message.options = undefined; message.nack = undefined; break;
      case 26: message.nack = readReadReqNack(reader, wire.endOf(reader, depth + 1), depth + 1); message.options = undefined; message.ack = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly groupName: string;
  readonly bufferSize: number;
  readonly uuidOption?: ReadReqOptionsUUIDOption | undefined;
  readonly all?: wire.Nothing | undefined;
}

export function readReadReqOptions(reader: Reader, end: number, depth: number): ReadReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, groupName: '' as string, bufferSize: 0, uuidOption: undefined as ReadReqOptionsUUIDOption | undefined, all: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 18: message.groupName = wire.text(reader); break;
      case 24: message.bufferSize = reader.int32(); break;
      case 34: message.uuidOption = readReadReqOptionsUUIDOption(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 42: message.all = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamIdentifier = undefined; break;
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

export interface ReadReqAck {
  readonly id: Uint8Array;
  readonly ids: readonly Uuid[];
}

export function readReadReqAck(reader: Reader, end: number, depth: number): ReadReqAck {
  const message = { id: wire.NO_BYTES as Uint8Array, ids: [] as Uuid[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.id = wire.bytes(reader); break;
      case 18: message.ids.push(wire.uuid(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReadReqNack {
  readonly id: Uint8Array;
  readonly ids: readonly Uuid[];
  readonly action: number;
  readonly reason: string;
}

export function readReadReqNack(reader: Reader, end: number, depth: number): ReadReqNack {
  const message = { id: wire.NO_BYTES as Uint8Array, ids: [] as Uuid[], action: 0, reason: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.id = wire.bytes(reader); break;
      case 18: message.ids.push(wire.uuid(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      case 24: message.action = reader.int32(); break;
      case 34: message.reason = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export const ReadReqNackAction = { Unknown: 0, Park: 1, Retry: 2, Skip: 3, Stop: 4 } as const;

export interface ReadResp {
  readonly event?: ReadRespReadEvent | undefined;
  readonly subscriptionConfirmation?: ReadRespSubscriptionConfirmation | undefined;
}

export function writeReadResp(message: ReadResp, writer: Writer): void {
  if (message.event !== undefined) { writer.uint32(10).fork(); writeReadRespReadEvent(message.event, writer); writer.ldelim(); }
  if (message.subscriptionConfirmation !== undefined) { writer.uint32(18).fork(); writeReadRespSubscriptionConfirmation(message.subscriptionConfirmation, writer); writer.ldelim(); }
}

export interface ReadRespReadEvent {
  readonly event?: ReadRespReadEventRecordedEvent | undefined;
  readonly link?: ReadRespReadEventRecordedEvent | undefined;
  readonly commitPosition?: number | undefined;
  readonly noPosition?: wire.Nothing | undefined;
  readonly retryCount?: number | undefined;
  readonly noRetryCount?: wire.Nothing | undefined;
}

export function writeReadRespReadEvent(message: ReadRespReadEvent, writer: Writer): void {
  if (message.event !== undefined) { writer.uint32(10).fork(); writeReadRespReadEventRecordedEvent(message.event, writer); writer.ldelim(); }
  if (message.link !== undefined) { writer.uint32(18).fork(); writeReadRespReadEventRecordedEvent(message.link, writer); writer.ldelim(); }
  if (message.commitPosition !== undefined) { writer.uint32(24); wire.writeUint64(writer, message.commitPosition); }
  if (message.noPosition !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
  if (message.retryCount !== undefined) { writer.uint32(40).int32(message.retryCount); }
  if (message.noRetryCount !== undefined) { writer.uint32(50).fork(); wire.writeNothing(message.noRetryCount, writer); writer.ldelim(); }
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

export interface GetInfoReq {
  readonly options?: GetInfoReqOptions | undefined;
}

export function readGetInfoReq(reader: Reader, end: number, depth: number): GetInfoReq {
  const message = { options: undefined as GetInfoReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readGetInfoReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface GetInfoReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly all?: wire.Nothing | undefined;
  readonly groupName: string;
}

export function readGetInfoReqOptions(reader: Reader, end: number, depth: number): GetInfoReqOptions {
  const message = { streamIdentifier: undefined as SharedStreamIdentifier | undefined, all: undefined as wire.Nothing | undefined, groupName: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 18: message.all = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamIdentifier = undefined; break;
      case 26: message.groupName = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface GetInfoResp {
  readonly subscriptionInfo?: SubscriptionInfo | undefined;
}

export function writeGetInfoResp(message: GetInfoResp, writer: Writer): void {
  if (message.subscriptionInfo !== undefined) { writer.uint32(10).fork(); writeSubscriptionInfo(message.subscriptionInfo, writer); writer.ldelim(); }
}

export interface SubscriptionInfo {
  readonly eventSource: string;
  readonly groupName: string;
  readonly status: string;
  readonly connections: readonly SubscriptionInfoConnectionInfo[];
  readonly averagePerSecond: number;
  readonly totalItems: number | bigint;
  readonly countSinceLastMeasurement: number | bigint;
  readonly lastCheckpointedEventPosition: string;
  readonly lastKnownEventPosition: string;
  readonly resolveLinkTos: boolean;
  readonly startFrom: string;
  readonly messageTimeoutMilliseconds: number;
  readonly extraStatistics: boolean;
  readonly maxRetryCount: number;
  readonly liveBufferSize: number;
  readonly bufferSize: number;
  readonly readBatchSize: number;
  readonly checkPointAfterMilliseconds: number;
  readonly minCheckPointCount: number;
  readonly maxCheckPointCount: number;
  readonly readBufferCount: number;
  readonly liveBufferCount: number | bigint;
  readonly retryBufferCount: number;
  readonly totalInFlightMessages: number;
  readonly outstandingMessagesCount: number;
  readonly namedConsumerStrategy: string;
  readonly maxSubscriberCount: number;
  readonly parkedMessageCount: number | bigint;
}

export function writeSubscriptionInfo(message: SubscriptionInfo, writer: Writer): void {
  if (message.eventSource !== '') { writer.uint32(10).string(message.eventSource); }
  if (message.groupName !== '') { writer.uint32(18).string(message.groupName); }
  if (message.status !== '') { writer.uint32(26).string(message.status); }
  for (const one of message.connections) { writer.uint32(34).fork(); writeSubscriptionInfoConnectionInfo(one, writer); writer.ldelim(); }
  if (message.averagePerSecond !== 0) { writer.uint32(40).int32(message.averagePerSecond); }
  if (Number(message.totalItems) !== 0) { writer.uint32(48); wire.writeInt64(writer, message.totalItems); }
  if (Number(message.countSinceLastMeasurement) !== 0) { writer.uint32(56); wire.writeInt64(writer, message.countSinceLastMeasurement); }
  if (message.lastCheckpointedEventPosition !== '') { writer.uint32(66).string(message.lastCheckpointedEventPosition); }
  if (message.lastKnownEventPosition !== '') { writer.uint32(74).string(message.lastKnownEventPosition); }
  if (message.resolveLinkTos !== false) { writer.uint32(80).bool(message.resolveLinkTos); }
  if (message.startFrom !== '') { writer.uint32(90).string(message.startFrom); }
  if (message.messageTimeoutMilliseconds !== 0) { writer.uint32(96).int32(message.messageTimeoutMilliseconds); }
  if (message.extraStatistics !== false) { writer.uint32(104).bool(message.extraStatistics); }
  if (message.maxRetryCount !== 0) { writer.uint32(112).int32(message.maxRetryCount); }
  if (message.liveBufferSize !== 0) { writer.uint32(120).int32(message.liveBufferSize); }
  if (message.bufferSize !== 0) { writer.uint32(128).int32(message.bufferSize); }
  if (message.readBatchSize !== 0) { writer.uint32(136).int32(message.readBatchSize); }
  if (message.checkPointAfterMilliseconds !== 0) { writer.uint32(144).int32(message.checkPointAfterMilliseconds); }
  if (message.minCheckPointCount !== 0) { writer.uint32(152).int32(message.minCheckPointCount); }
  if (message.maxCheckPointCount !== 0) { writer.uint32(160).int32(message.maxCheckPointCount); }
  if (message.readBufferCount !== 0) { writer.uint32(168).int32(message.readBufferCount); }
  if (Number(message.liveBufferCount) !== 0) { writer.uint32(176); wire.writeInt64(writer, message.liveBufferCount); }
  if (message.retryBufferCount !== 0) { writer.uint32(184).int32(message.retryBufferCount); }
  if (message.totalInFlightMessages !== 0) { writer.uint32(192).int32(message.totalInFlightMessages); }
  if (message.outstandingMessagesCount !== 0) { writer.uint32(200).int32(message.outstandingMessagesCount); }
  if (message.namedConsumerStrategy !== '') { writer.uint32(210).string(message.namedConsumerStrategy); }
  if (message.maxSubscriberCount !== 0) { writer.uint32(216).int32(message.maxSubscriberCount); }
  if (Number(message.parkedMessageCount) !== 0) { writer.uint32(224); wire.writeInt64(writer, message.parkedMessageCount); }
}

export interface SubscriptionInfoConnectionInfo {
  readonly from: string;
  readonly username: string;
  readonly averageItemsPerSecond: number;
  readonly totalItems: number | bigint;
  readonly countSinceLastMeasurement: number | bigint;
  readonly observedMeasurements: readonly SubscriptionInfoMeasurement[];
  readonly availableSlots: number;
  readonly inFlightMessages: number;
  readonly connectionName: string;
}

export function writeSubscriptionInfoConnectionInfo(message: SubscriptionInfoConnectionInfo, writer: Writer): void {
  if (message.from !== '') { writer.uint32(10).string(message.from); }
  if (message.username !== '') { writer.uint32(18).string(message.username); }
  if (message.averageItemsPerSecond !== 0) { writer.uint32(24).int32(message.averageItemsPerSecond); }
  if (Number(message.totalItems) !== 0) { writer.uint32(32); wire.writeInt64(writer, message.totalItems); }
  if (Number(message.countSinceLastMeasurement) !== 0) { writer.uint32(40); wire.writeInt64(writer, message.countSinceLastMeasurement); }
  for (const one of message.observedMeasurements) { writer.uint32(50).fork(); writeSubscriptionInfoMeasurement(one, writer); writer.ldelim(); }
  if (message.availableSlots !== 0) { writer.uint32(56).int32(message.availableSlots); }
  if (message.inFlightMessages !== 0) { writer.uint32(64).int32(message.inFlightMessages); }
  if (message.connectionName !== '') { writer.uint32(74).string(message.connectionName); }
}

export interface SubscriptionInfoMeasurement {
  readonly key: string;
  readonly value: number | bigint;
}

export function writeSubscriptionInfoMeasurement(message: SubscriptionInfoMeasurement, writer: Writer): void {
  if (message.key !== '') { writer.uint32(10).string(message.key); }
  if (Number(message.value) !== 0) { writer.uint32(16); wire.writeInt64(writer, message.value); }
}

export interface ReplayParkedReq {
  readonly options?: ReplayParkedReqOptions | undefined;
}

export function readReplayParkedReq(reader: Reader, end: number, depth: number): ReplayParkedReq {
  const message = { options: undefined as ReplayParkedReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readReplayParkedReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ReplayParkedReqOptions {
  readonly groupName: string;
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly all?: wire.Nothing | undefined;
  readonly stopAt?: number | bigint | undefined;
  readonly noLimit?: wire.Nothing | undefined;
}

export function readReplayParkedReqOptions(reader: Reader, end: number, depth: number): ReplayParkedReqOptions {
  const message = { groupName: '' as string, streamIdentifier: undefined as SharedStreamIdentifier | undefined, all: undefined as wire.Nothing | undefined, stopAt: undefined as number | bigint | undefined, noLimit: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.groupName = wire.text(reader); break;
      case 18: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 26: message.all = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamIdentifier = undefined; break;
      case 32: message.stopAt = wire.int64(reader); message.noLimit = undefined; break;
      case 42: message.noLimit = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.stopAt = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface TruncateParkedReq {
  readonly options?: TruncateParkedReqOptions | undefined;
}

export function readTruncateParkedReq(reader: Reader, end: number, depth: number): TruncateParkedReq {
  const message = { options: undefined as TruncateParkedReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readTruncateParkedReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface TruncateParkedReqOptions {
  readonly groupName: string;
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly all?: wire.Nothing | undefined;
  readonly stopAt?: number | bigint | undefined;
  readonly noLimit?: wire.Nothing | undefined;
}

export function readTruncateParkedReqOptions(reader: Reader, end: number, depth: number): TruncateParkedReqOptions {
  const message = { groupName: '' as string, streamIdentifier: undefined as SharedStreamIdentifier | undefined, all: undefined as wire.Nothing | undefined, stopAt: undefined as number | bigint | undefined, noLimit: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.groupName = wire.text(reader); break;
      case 18: message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 26: message.all = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.streamIdentifier = undefined; break;
      case 32: message.stopAt = wire.int64(reader); message.noLimit = undefined; break;
      case 42: message.noLimit = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.stopAt = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ListReq {
  readonly options?: ListReqOptions | undefined;
}

export function readListReq(reader: Reader, end: number, depth: number): ListReq {
  const message = { options: undefined as ListReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readListReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ListReqOptions {
  readonly listAllSubscriptions?: wire.Nothing | undefined;
  readonly listForStream?: ListReqStreamOption | undefined;
}

export function readListReqOptions(reader: Reader, end: number, depth: number): ListReqOptions {
  const message = { listAllSubscriptions: undefined as wire.Nothing | undefined, listForStream: undefined as ListReqStreamOption | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.listAllSubscriptions = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.listForStream = undefined; break;
      case 18: message.listForStream = readListReqStreamOption(reader, wire.endOf(reader, depth + 1), depth + 1); message.listAllSubscriptions = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ListReqStreamOption {
  readonly stream?: SharedStreamIdentifier | undefined;
  readonly all?: wire.Nothing | undefined;
}

export function readListReqStreamOption(reader: Reader, end: number, depth: number): ListReqStreamOption {
  const message = { stream: undefined as SharedStreamIdentifier | undefined, all: undefined as wire.Nothing | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth + 1), depth + 1); message.all = undefined; break;
      case 18: message.all = wire.readNothing(reader, wire.endOf(reader, depth + 1), depth + 1); message.stream = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ListResp {
  readonly subscriptions: readonly SubscriptionInfo[];
}

export function writeListResp(message: ListResp, writer: Writer): void {
  for (const one of message.subscriptions) { writer.uint32(10).fork(); writeSubscriptionInfo(one, writer); writer.ldelim(); }
}
