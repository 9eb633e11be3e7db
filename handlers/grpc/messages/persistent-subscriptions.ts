// Made of persistent-subscriptions.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Uuid, Writer } from './wire.ts';
import { readStreamIdentifier as readStreamIdentifierOfShared, type StreamIdentifier as SharedStreamIdentifier } from './shared.ts';
import { readReadReqOptionsAllOptions as readReadReqOptionsAllOptionsOfStreams, readReadReqOptionsFilterOptions as readReadReqOptionsFilterOptionsOfStreams, readReadReqOptionsPosition as readReadReqOptionsPositionOfStreams, readReadReqOptionsStreamOptions as readReadReqOptionsStreamOptionsOfStreams, readReadReqOptionsUUIDOption as readReadReqOptionsUUIDOptionOfStreams, type ReadReqOptionsAllOptions as StreamsReadReqOptionsAllOptions, type ReadReqOptionsFilterOptions as StreamsReadReqOptionsFilterOptions, type ReadReqOptionsPosition as StreamsReadReqOptionsPosition, type ReadReqOptionsStreamOptions as StreamsReadReqOptionsStreamOptions, type ReadReqOptionsUUIDOption as StreamsReadReqOptionsUUIDOption, type ReadRespReadEventRecordedEvent as StreamsReadRespReadEventRecordedEvent, type ReadRespSubscriptionConfirmation as StreamsReadRespSubscriptionConfirmation, writeReadRespReadEventRecordedEvent as writeReadRespReadEventRecordedEventOfStreams, writeReadRespSubscriptionConfirmation as writeReadRespSubscriptionConfirmationOfStreams } from './streams.ts';

export const ConsumerStrategy = { DispatchToSingle: 0, RoundRobin: 1, Pinned: 2 } as const;

export interface CreateReq {
  readonly options?: CreateReqOptions | undefined;
}

export const readCreateReq = wire.reader((): wire.Open<CreateReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readCreateReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface CreateReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly groupName: string;
  readonly settings?: CreateReqSettings | undefined;
  readonly stream?: StreamsReadReqOptionsStreamOptions | undefined;
  readonly all?: CreateReqAllOptions | undefined;
}

export const readCreateReqOptions = wire.reader((): wire.Open<CreateReqOptions> => ({ streamIdentifier: undefined, groupName: '', settings: undefined, stream: undefined, all: undefined }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); },
  18: (message, reader) => { message.groupName = wire.text(reader); },
  26: (message, reader, depth) => { message.settings = readCreateReqSettings(reader, wire.endOf(reader, depth), depth); },
  34: (message, reader, depth) => { message.stream = readReadReqOptionsStreamOptionsOfStreams(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  42: (message, reader, depth) => { message.all = readCreateReqAllOptions(reader, wire.endOf(reader, depth), depth); message.stream = undefined; },
});

export interface CreateReqAllOptions {
  readonly position?: StreamsReadReqOptionsPosition | undefined;
  readonly start?: wire.Nothing | undefined;
  readonly end?: wire.Nothing | undefined;
  readonly filter?: StreamsReadReqOptionsFilterOptions | undefined;
  readonly noFilter?: wire.Nothing | undefined;
}

export const readCreateReqAllOptions = wire.reader((): wire.Open<CreateReqAllOptions> => ({ position: undefined, start: undefined, end: undefined, filter: undefined, noFilter: undefined }), {
  10: (message, reader, depth) => { message.position = readReadReqOptionsPositionOfStreams(reader, wire.endOf(reader, depth), depth); message.start = undefined; message.end = undefined; },
  18: (message, reader, depth) => { message.start = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.position = undefined; message.end = undefined; },
  26: (message, reader, depth) => { message.end = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.position = undefined; message.start = undefined; },
  34: (message, reader, depth) => { message.filter = readReadReqOptionsFilterOptionsOfStreams(reader, wire.endOf(reader, depth), depth); message.noFilter = undefined; },
  42: (message, reader, depth) => { message.noFilter = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.filter = undefined; },
});

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

export const readCreateReqSettings = wire.reader((): wire.Open<CreateReqSettings> => ({ resolveLinks: false, revision: 0, extraStatistics: false, messageTimeoutTicks: undefined, maxRetryCount: 0, checkpointAfterTicks: undefined, minCheckpointCount: 0, maxCheckpointCount: 0, maxSubscriberCount: 0, liveBufferSize: 0, readBatchSize: 0, historyBufferSize: 0, namedConsumerStrategy: 0, messageTimeoutMs: undefined, checkpointAfterMs: undefined, consumerStrategy: '' }), {
  8: (message, reader) => { message.resolveLinks = reader.bool(); },
  16: (message, reader) => { message.revision = wire.uint64(reader); },
  24: (message, reader) => { message.extraStatistics = reader.bool(); },
  32: (message, reader) => { message.messageTimeoutTicks = wire.int64(reader); message.messageTimeoutMs = undefined; },
  40: (message, reader) => { message.maxRetryCount = reader.int32(); },
  48: (message, reader) => { message.checkpointAfterTicks = wire.int64(reader); message.checkpointAfterMs = undefined; },
  56: (message, reader) => { message.minCheckpointCount = reader.int32(); },
  64: (message, reader) => { message.maxCheckpointCount = reader.int32(); },
  72: (message, reader) => { message.maxSubscriberCount = reader.int32(); },
  80: (message, reader) => { message.liveBufferSize = reader.int32(); },
  88: (message, reader) => { message.readBatchSize = reader.int32(); },
  96: (message, reader) => { message.historyBufferSize = reader.int32(); },
  104: (message, reader) => { message.namedConsumerStrategy = reader.int32(); },
  112: (message, reader) => { message.messageTimeoutMs = reader.int32(); message.messageTimeoutTicks = undefined; },
  120: (message, reader) => { message.checkpointAfterMs = reader.int32(); message.checkpointAfterTicks = undefined; },
  130: (message, reader) => { message.consumerStrategy = wire.text(reader); },
});

export interface UpdateReq {
  readonly options?: UpdateReqOptions | undefined;
}

export const readUpdateReq = wire.reader((): wire.Open<UpdateReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readUpdateReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface UpdateReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly groupName: string;
  readonly settings?: UpdateReqSettings | undefined;
  readonly stream?: StreamsReadReqOptionsStreamOptions | undefined;
  readonly all?: StreamsReadReqOptionsAllOptions | undefined;
}

export const readUpdateReqOptions = wire.reader((): wire.Open<UpdateReqOptions> => ({ streamIdentifier: undefined, groupName: '', settings: undefined, stream: undefined, all: undefined }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); },
  18: (message, reader) => { message.groupName = wire.text(reader); },
  26: (message, reader, depth) => { message.settings = readUpdateReqSettings(reader, wire.endOf(reader, depth), depth); },
  34: (message, reader, depth) => { message.stream = readReadReqOptionsStreamOptionsOfStreams(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  42: (message, reader, depth) => { message.all = readReadReqOptionsAllOptionsOfStreams(reader, wire.endOf(reader, depth), depth); message.stream = undefined; },
});

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

export const readUpdateReqSettings = wire.reader((): wire.Open<UpdateReqSettings> => ({ resolveLinks: false, revision: 0, extraStatistics: false, messageTimeoutTicks: undefined, maxRetryCount: 0, checkpointAfterTicks: undefined, minCheckpointCount: 0, maxCheckpointCount: 0, maxSubscriberCount: 0, liveBufferSize: 0, readBatchSize: 0, historyBufferSize: 0, namedConsumerStrategy: 0, messageTimeoutMs: undefined, checkpointAfterMs: undefined }), {
  8: (message, reader) => { message.resolveLinks = reader.bool(); },
  16: (message, reader) => { message.revision = wire.uint64(reader); },
  24: (message, reader) => { message.extraStatistics = reader.bool(); },
  32: (message, reader) => { message.messageTimeoutTicks = wire.int64(reader); message.messageTimeoutMs = undefined; },
  40: (message, reader) => { message.maxRetryCount = reader.int32(); },
  48: (message, reader) => { message.checkpointAfterTicks = wire.int64(reader); message.checkpointAfterMs = undefined; },
  56: (message, reader) => { message.minCheckpointCount = reader.int32(); },
  64: (message, reader) => { message.maxCheckpointCount = reader.int32(); },
  72: (message, reader) => { message.maxSubscriberCount = reader.int32(); },
  80: (message, reader) => { message.liveBufferSize = reader.int32(); },
  88: (message, reader) => { message.readBatchSize = reader.int32(); },
  96: (message, reader) => { message.historyBufferSize = reader.int32(); },
  104: (message, reader) => { message.namedConsumerStrategy = reader.int32(); },
  112: (message, reader) => { message.messageTimeoutMs = reader.int32(); message.messageTimeoutTicks = undefined; },
  120: (message, reader) => { message.checkpointAfterMs = reader.int32(); message.checkpointAfterTicks = undefined; },
});

export interface DeleteReq {
  readonly options?: DeleteReqOptions | undefined;
}

export const readDeleteReq = wire.reader((): wire.Open<DeleteReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readDeleteReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface DeleteReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly groupName: string;
  readonly all?: wire.Nothing | undefined;
}

export const readDeleteReqOptions = wire.reader((): wire.Open<DeleteReqOptions> => ({ streamIdentifier: undefined, groupName: '', all: undefined }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  18: (message, reader) => { message.groupName = wire.text(reader); },
  26: (message, reader, depth) => { message.all = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.streamIdentifier = undefined; },
});

export interface ReadReq {
  readonly options?: ReadReqOptions | undefined;
  readonly ack?: ReadReqAck | undefined;
  readonly nack?: ReadReqNack | undefined;
}

export const readReadReq = wire.reader((): wire.Open<ReadReq> => ({ options: undefined, ack: undefined, nack: undefined }), {
  10: (message, reader, depth) => { message.options = readReadReqOptions(reader, wire.endOf(reader, depth), depth); message.ack = undefined; message.nack = undefined; },
  18: (message, reader, depth) => { message.ack = readReadReqAck(reader, wire.endOf(reader, depth), depth); message.options = undefined; message.nack = undefined; },
  26: (message, reader, depth) => { message.nack = readReadReqNack(reader, wire.endOf(reader, depth), depth); message.options = undefined; message.ack = undefined; },
});

export interface ReadReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly groupName: string;
  readonly bufferSize: number;
  readonly uuidOption?: StreamsReadReqOptionsUUIDOption | undefined;
  readonly all?: wire.Nothing | undefined;
}

export const readReadReqOptions = wire.reader((): wire.Open<ReadReqOptions> => ({ streamIdentifier: undefined, groupName: '', bufferSize: 0, uuidOption: undefined, all: undefined }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  18: (message, reader) => { message.groupName = wire.text(reader); },
  24: (message, reader) => { message.bufferSize = reader.int32(); },
  34: (message, reader, depth) => { message.uuidOption = readReadReqOptionsUUIDOptionOfStreams(reader, wire.endOf(reader, depth), depth); },
  42: (message, reader, depth) => { message.all = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.streamIdentifier = undefined; },
});

export interface ReadReqAck {
  readonly id: Uint8Array;
  readonly ids: readonly Uuid[];
}

export const readReadReqAck = wire.reader((): wire.Open<ReadReqAck> => ({ id: wire.NO_BYTES, ids: [] }), {
  10: (message, reader) => { message.id = wire.bytes(reader); },
  18: (message, reader, depth) => { message.ids.push(wire.uuid(reader, wire.endOfElement(reader, depth), depth)); },
});

export interface ReadReqNack {
  readonly id: Uint8Array;
  readonly ids: readonly Uuid[];
  readonly action: number;
  readonly reason: string;
}

export const readReadReqNack = wire.reader((): wire.Open<ReadReqNack> => ({ id: wire.NO_BYTES, ids: [], action: 0, reason: '' }), {
  10: (message, reader) => { message.id = wire.bytes(reader); },
  18: (message, reader, depth) => { message.ids.push(wire.uuid(reader, wire.endOfElement(reader, depth), depth)); },
  24: (message, reader) => { message.action = reader.int32(); },
  34: (message, reader) => { message.reason = wire.text(reader); },
});

export const ReadReqNackAction = { Unknown: 0, Park: 1, Retry: 2, Skip: 3, Stop: 4 } as const;

export interface ReadResp {
  readonly event?: ReadRespReadEvent | undefined;
  readonly subscriptionConfirmation?: StreamsReadRespSubscriptionConfirmation | undefined;
}

export function writeReadResp(message: ReadResp, writer: Writer): void {
  if (message.event !== undefined) { writer.uint32(10).fork(); writeReadRespReadEvent(message.event, writer); writer.ldelim(); }
  if (message.subscriptionConfirmation !== undefined) { writer.uint32(18).fork(); writeReadRespSubscriptionConfirmationOfStreams(message.subscriptionConfirmation, writer); writer.ldelim(); }
}

export interface ReadRespReadEvent {
  readonly event?: StreamsReadRespReadEventRecordedEvent | undefined;
  readonly link?: StreamsReadRespReadEventRecordedEvent | undefined;
  readonly commitPosition?: number | undefined;
  readonly noPosition?: wire.Nothing | undefined;
  readonly retryCount?: number | undefined;
  readonly noRetryCount?: wire.Nothing | undefined;
}

export function writeReadRespReadEvent(message: ReadRespReadEvent, writer: Writer): void {
  if (message.event !== undefined) { writer.uint32(10).fork(); writeReadRespReadEventRecordedEventOfStreams(message.event, writer); writer.ldelim(); }
  if (message.link !== undefined) { writer.uint32(18).fork(); writeReadRespReadEventRecordedEventOfStreams(message.link, writer); writer.ldelim(); }
  if (message.commitPosition !== undefined) { writer.uint32(24); wire.writeUint64(writer, message.commitPosition); }
  if (message.noPosition !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.noPosition, writer); writer.ldelim(); }
  if (message.retryCount !== undefined) { writer.uint32(40).int32(message.retryCount); }
  if (message.noRetryCount !== undefined) { writer.uint32(50).fork(); wire.writeNothing(message.noRetryCount, writer); writer.ldelim(); }
}

export interface GetInfoReq {
  readonly options?: GetInfoReqOptions | undefined;
}

export const readGetInfoReq = wire.reader((): wire.Open<GetInfoReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readGetInfoReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface GetInfoReqOptions {
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly all?: wire.Nothing | undefined;
  readonly groupName: string;
}

export const readGetInfoReqOptions = wire.reader((): wire.Open<GetInfoReqOptions> => ({ streamIdentifier: undefined, all: undefined, groupName: '' }), {
  10: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  18: (message, reader, depth) => { message.all = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.streamIdentifier = undefined; },
  26: (message, reader) => { message.groupName = wire.text(reader); },
});

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

export const readReplayParkedReq = wire.reader((): wire.Open<ReplayParkedReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readReplayParkedReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface ReplayParkedReqOptions {
  readonly groupName: string;
  readonly streamIdentifier?: SharedStreamIdentifier | undefined;
  readonly all?: wire.Nothing | undefined;
  readonly stopAt?: number | bigint | undefined;
  readonly noLimit?: wire.Nothing | undefined;
}

export const readReplayParkedReqOptions = wire.reader((): wire.Open<ReplayParkedReqOptions> => ({ groupName: '', streamIdentifier: undefined, all: undefined, stopAt: undefined, noLimit: undefined }), {
  10: (message, reader) => { message.groupName = wire.text(reader); },
  18: (message, reader, depth) => { message.streamIdentifier = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  26: (message, reader, depth) => { message.all = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.streamIdentifier = undefined; },
  32: (message, reader) => { message.stopAt = wire.int64(reader); message.noLimit = undefined; },
  42: (message, reader, depth) => { message.noLimit = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.stopAt = undefined; },
});

export interface ListReq {
  readonly options?: ListReqOptions | undefined;
}

export const readListReq = wire.reader((): wire.Open<ListReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readListReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface ListReqOptions {
  readonly listAllSubscriptions?: wire.Nothing | undefined;
  readonly listForStream?: ListReqStreamOption | undefined;
}

export const readListReqOptions = wire.reader((): wire.Open<ListReqOptions> => ({ listAllSubscriptions: undefined, listForStream: undefined }), {
  10: (message, reader, depth) => { message.listAllSubscriptions = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.listForStream = undefined; },
  18: (message, reader, depth) => { message.listForStream = readListReqStreamOption(reader, wire.endOf(reader, depth), depth); message.listAllSubscriptions = undefined; },
});

export interface ListReqStreamOption {
  readonly stream?: SharedStreamIdentifier | undefined;
  readonly all?: wire.Nothing | undefined;
}

export const readListReqStreamOption = wire.reader((): wire.Open<ListReqStreamOption> => ({ stream: undefined, all: undefined }), {
  10: (message, reader, depth) => { message.stream = readStreamIdentifierOfShared(reader, wire.endOf(reader, depth), depth); message.all = undefined; },
  18: (message, reader, depth) => { message.all = wire.readNothing(reader, wire.endOf(reader, depth), depth); message.stream = undefined; },
});

export interface ListResp {
  readonly subscriptions: readonly SubscriptionInfo[];
}

export function writeListResp(message: ListResp, writer: Writer): void {
  for (const one of message.subscriptions) { writer.uint32(10).fork(); writeSubscriptionInfo(one, writer); writer.ldelim(); }
}

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
    TruncateParked: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/TruncateParked', hasManyRequests: false, hasManyResponses: false, readRequest: readReplayParkedReq, writeResponse: wire.writeNothing },
    List: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/List', hasManyRequests: false, hasManyResponses: false, readRequest: readListReq, writeResponse: writeListResp },
    RestartSubsystem: { path: '/event_store.client.persistent_subscriptions.PersistentSubscriptions/RestartSubsystem', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: wire.writeNothing },
  },
} as const;
