// Made of google.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Writer } from './wire.ts';

export interface Timestamp {
  readonly seconds: number | bigint;
  readonly nanos: number;
}

export const readTimestamp = wire.reader((): wire.Open<Timestamp> => ({ seconds: 0, nanos: 0 }), {
  8: (message, reader) => { message.seconds = wire.int64(reader); },
  16: (message, reader) => { message.nanos = reader.int32(); },
});

export function writeTimestamp(message: Timestamp, writer: Writer): void {
  if (Number(message.seconds) !== 0) { writer.uint32(8); wire.writeInt64(writer, message.seconds); }
  if (message.nanos !== 0) { writer.uint32(16).int32(message.nanos); }
}

export interface Duration {
  readonly seconds: number | bigint;
  readonly nanos: number;
}

export const readDuration = wire.reader((): wire.Open<Duration> => ({ seconds: 0, nanos: 0 }), {
  8: (message, reader) => { message.seconds = wire.int64(reader); },
  16: (message, reader) => { message.nanos = reader.int32(); },
});

export interface Any {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

export function writeAny(message: Any, writer: Writer): void {
  if (message.typeUrl !== '') { writer.uint32(10).string(message.typeUrl); }
  if (message.value.length > 0) { writer.uint32(18).bytes(message.value); }
}

export interface Struct {
  readonly fields: ReadonlyMap<string, Value>;
}

export const readStruct = wire.reader((): wire.Open<Struct> => ({ fields: new Map() }), {
  10: (message, reader, depth) => { wire.messageEntry(reader, message.fields, readValue, depth); },
});

export interface Value {
  readonly nullValue?: number | undefined;
  readonly numberValue?: number | undefined;
  readonly stringValue?: string | undefined;
  readonly boolValue?: boolean | undefined;
  readonly structValue?: Struct | undefined;
  readonly listValue?: ListValue | undefined;
}

export const readValue = wire.reader((): wire.Open<Value> => ({ nullValue: undefined, numberValue: undefined, stringValue: undefined, boolValue: undefined, structValue: undefined, listValue: undefined }), {
  8: (message, reader) => { message.nullValue = reader.int32(); message.numberValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.structValue = undefined; message.listValue = undefined; },
  17: (message, reader) => { message.numberValue = reader.double(); message.nullValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.structValue = undefined; message.listValue = undefined; },
  26: (message, reader) => { message.stringValue = wire.text(reader); message.nullValue = undefined; message.numberValue = undefined; message.boolValue = undefined; message.structValue = undefined; message.listValue = undefined; },
  32: (message, reader) => { message.boolValue = reader.bool(); message.nullValue = undefined; message.numberValue = undefined; message.stringValue = undefined; message.structValue = undefined; message.listValue = undefined; },
  42: (message, reader, depth) => { message.structValue = readStruct(reader, wire.endOf(reader, depth), depth); message.nullValue = undefined; message.numberValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.listValue = undefined; },
  50: (message, reader, depth) => { message.listValue = readListValue(reader, wire.endOf(reader, depth), depth); message.nullValue = undefined; message.numberValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.structValue = undefined; },
});

export interface ListValue {
  readonly values: readonly Value[];
}

export const readListValue = wire.reader((): wire.Open<ListValue> => ({ values: [] }), {
  10: (message, reader, depth) => { message.values.push(readValue(reader, wire.endOfElement(reader, depth), depth)); },
});
