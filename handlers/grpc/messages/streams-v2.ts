// Made of streams-v2.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Writer } from './wire.ts';
import { readValue as readValueOfGoogle, type Value as GoogleValue } from './google.ts';

export const SchemaFormat = { SCHEMA_FORMAT_UNSPECIFIED: 0, SCHEMA_FORMAT_JSON: 1, SCHEMA_FORMAT_PROTOBUF: 2, SCHEMA_FORMAT_AVRO: 3, SCHEMA_FORMAT_BYTES: 4 } as const;

export interface SchemaInfo {
  readonly format: number;
  readonly name: string;
  readonly id: string;
}

export const readSchemaInfo = wire.reader((): wire.Open<SchemaInfo> => ({ format: 0, name: '', id: '' }), {
  8: (message, reader) => { message.format = reader.int32(); },
  18: (message, reader) => { message.name = wire.text(reader); },
  26: (message, reader) => { message.id = wire.text(reader); },
});

export interface AppendRecord {
  readonly recordId?: string | undefined;
  readonly properties: ReadonlyMap<string, GoogleValue>;
  readonly schema?: SchemaInfo | undefined;
  readonly data: Uint8Array;
  readonly stream?: string | undefined;
}

export const readAppendRecord = wire.reader((): wire.Open<AppendRecord> => ({ recordId: undefined, properties: new Map(), schema: undefined, data: wire.NO_BYTES, stream: undefined }), {
  10: (message, reader) => { message.recordId = wire.text(reader); },
  18: (message, reader, depth) => { wire.messageEntry(reader, message.properties, readValueOfGoogle, depth); },
  26: (message, reader, depth) => { message.schema = readSchemaInfo(reader, wire.endOf(reader, depth), depth); },
  34: (message, reader) => { message.data = wire.bytes(reader); },
  42: (message, reader) => { message.stream = wire.text(reader); },
});

export interface AppendRequest {
  readonly stream: string;
  readonly records: readonly AppendRecord[];
  readonly expectedRevision?: number | undefined;
}

export const readAppendRequest = wire.reader((): wire.Open<AppendRequest> => ({ stream: '', records: [], expectedRevision: undefined }), {
  10: (message, reader) => { message.stream = wire.text(reader); },
  18: (message, reader, depth) => { message.records.push(readAppendRecord(reader, wire.endOfElement(reader, depth), depth)); },
  24: (message, reader) => { message.expectedRevision = wire.sint64(reader); },
});

export interface AppendResponse {
  readonly stream: string;
  readonly streamRevision: number;
  readonly position?: number | undefined;
}

export function writeAppendResponse(message: AppendResponse, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
  if (message.streamRevision !== 0) { writer.uint32(16).sint64(message.streamRevision); }
  if (message.position !== undefined) { writer.uint32(24).sint64(message.position); }
}

export interface AppendSessionResponse {
  readonly output: readonly AppendResponse[];
  readonly position: number;
}

export function writeAppendSessionResponse(message: AppendSessionResponse, writer: Writer): void {
  for (const one of message.output) { writer.uint32(10).fork(); writeAppendResponse(one, writer); writer.ldelim(); }
  if (message.position !== 0) { writer.uint32(16).sint64(message.position); }
}

export interface ConsistencyCheck {
  readonly streamState?: ConsistencyCheckStreamStateCheck | undefined;
}

export const readConsistencyCheck = wire.reader((): wire.Open<ConsistencyCheck> => ({ streamState: undefined }), {
  10: (message, reader, depth) => { message.streamState = readConsistencyCheckStreamStateCheck(reader, wire.endOf(reader, depth), depth); },
});

export interface ConsistencyCheckStreamStateCheck {
  readonly stream: string;
  readonly expectedState: number;
}

export const readConsistencyCheckStreamStateCheck = wire.reader((): wire.Open<ConsistencyCheckStreamStateCheck> => ({ stream: '', expectedState: 0 }), {
  10: (message, reader) => { message.stream = wire.text(reader); },
  16: (message, reader) => { message.expectedState = wire.sint64(reader); },
});

export interface AppendRecordsRequest {
  readonly records: readonly AppendRecord[];
  readonly checks: readonly ConsistencyCheck[];
}

export const readAppendRecordsRequest = wire.reader((): wire.Open<AppendRecordsRequest> => ({ records: [], checks: [] }), {
  10: (message, reader, depth) => { message.records.push(readAppendRecord(reader, wire.endOfElement(reader, depth), depth)); },
  18: (message, reader, depth) => { message.checks.push(readConsistencyCheck(reader, wire.endOfElement(reader, depth), depth)); },
});

export interface StreamRevision {
  readonly stream: string;
  readonly revision: number;
}

export function writeStreamRevision(message: StreamRevision, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
  if (message.revision !== 0) { writer.uint32(16).sint64(message.revision); }
}

export interface AppendRecordsResponse {
  readonly revisions: readonly StreamRevision[];
  readonly position: number;
}

export function writeAppendRecordsResponse(message: AppendRecordsResponse, writer: Writer): void {
  for (const one of message.revisions) { writer.uint32(10).fork(); writeStreamRevision(one, writer); writer.ldelim(); }
  if (message.position !== 0) { writer.uint32(16).sint64(message.position); }
}

/** `kurrentdb.protocol.v2.streams.StreamsService` */
export const StreamsServiceService = {
  name: 'kurrentdb.protocol.v2.streams.StreamsService',
  methods: {
    AppendSession: { path: '/kurrentdb.protocol.v2.streams.StreamsService/AppendSession', hasManyRequests: true, hasManyResponses: false, readRequest: readAppendRequest, writeResponse: writeAppendSessionResponse },
    AppendRecords: { path: '/kurrentdb.protocol.v2.streams.StreamsService/AppendRecords', hasManyRequests: false, hasManyResponses: false, readRequest: readAppendRecordsRequest, writeResponse: writeAppendRecordsResponse },
  },
} as const;
