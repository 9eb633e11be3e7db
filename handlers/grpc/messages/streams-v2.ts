// Made of streams-v2.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';
import { readValue as readValueOfGoogle, type Value as GoogleValue } from './google.ts';

/** `kurrentdb.protocol.v2.streams.StreamsService` */
export const StreamsServiceService = {
  name: 'kurrentdb.protocol.v2.streams.StreamsService',
  methods: {
    AppendSession: { path: '/kurrentdb.protocol.v2.streams.StreamsService/AppendSession', hasManyRequests: true, hasManyResponses: false, readRequest: readAppendRequest, writeResponse: writeAppendSessionResponse },
    AppendRecords: { path: '/kurrentdb.protocol.v2.streams.StreamsService/AppendRecords', hasManyRequests: false, hasManyResponses: false, readRequest: readAppendRecordsRequest, writeResponse: writeAppendRecordsResponse },
  },
} as const;

export const SchemaFormat = { SCHEMA_FORMAT_UNSPECIFIED: 0, SCHEMA_FORMAT_JSON: 1, SCHEMA_FORMAT_PROTOBUF: 2, SCHEMA_FORMAT_AVRO: 3, SCHEMA_FORMAT_BYTES: 4 } as const;

export interface SchemaInfo {
  readonly format: number;
  readonly name: string;
  readonly id: string;
}

export function readSchemaInfo(reader: Reader, end: number, depth: number): SchemaInfo {
  const message = { format: 0, name: '' as string, id: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.format = reader.int32(); break;
      case 18: message.name = wire.text(reader); break;
      case 26: message.id = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface AppendRecord {
  readonly recordId?: string | undefined;
  readonly properties: ReadonlyMap<string, GoogleValue>;
  readonly schema?: SchemaInfo | undefined;
  readonly data: Uint8Array;
  readonly stream?: string | undefined;
}

export function readAppendRecord(reader: Reader, end: number, depth: number): AppendRecord {
  const message = { recordId: undefined as string | undefined, properties: new Map() as Map<string, GoogleValue>, schema: undefined as SchemaInfo | undefined, data: wire.NO_BYTES as Uint8Array, stream: undefined as string | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.recordId = wire.text(reader); break;
      case 18: wire.messageEntry(reader, message.properties, readValueOfGoogle, depth + 1); break;
      case 26: message.schema = readSchemaInfo(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 34: message.data = wire.bytes(reader); break;
      case 42: message.stream = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface AppendRequest {
  readonly stream: string;
  readonly records: readonly AppendRecord[];
  readonly expectedRevision?: number | undefined;
}

export function readAppendRequest(reader: Reader, end: number, depth: number): AppendRequest {
  const message = { stream: '' as string, records: [] as AppendRecord[], expectedRevision: undefined as number | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      case 18: message.records.push(readAppendRecord(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      case 24: message.expectedRevision = wire.sint64(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

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

export function readConsistencyCheck(reader: Reader, end: number, depth: number): ConsistencyCheck {
  const message = { streamState: undefined as ConsistencyCheckStreamStateCheck | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.streamState = readConsistencyCheckStreamStateCheck(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ConsistencyCheckStreamStateCheck {
  readonly stream: string;
  readonly expectedState: number;
}

export function readConsistencyCheckStreamStateCheck(reader: Reader, end: number, depth: number): ConsistencyCheckStreamStateCheck {
  const message = { stream: '' as string, expectedState: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      case 16: message.expectedState = wire.sint64(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface AppendRecordsRequest {
  readonly records: readonly AppendRecord[];
  readonly checks: readonly ConsistencyCheck[];
}

export function readAppendRecordsRequest(reader: Reader, end: number, depth: number): AppendRecordsRequest {
  const message = { records: [] as AppendRecord[], checks: [] as ConsistencyCheck[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.records.push(readAppendRecord(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      case 18: message.checks.push(readConsistencyCheck(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

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
