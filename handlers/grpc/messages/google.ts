// Made of google.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';

export interface Timestamp {
  readonly seconds: number | bigint;
  readonly nanos: number;
}

export function readTimestamp(reader: Reader, end: number, depth: number): Timestamp {
  const message = { seconds: 0 as number | bigint, nanos: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.seconds = wire.int64(reader); break;
      case 16: message.nanos = reader.int32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeTimestamp(message: Timestamp, writer: Writer): void {
  if (Number(message.seconds) !== 0) { writer.uint32(8); wire.writeInt64(writer, message.seconds); }
  if (message.nanos !== 0) { writer.uint32(16).int32(message.nanos); }
}

export interface Duration {
  readonly seconds: number | bigint;
  readonly nanos: number;
}

export function readDuration(reader: Reader, end: number, depth: number): Duration {
  const message = { seconds: 0 as number | bigint, nanos: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.seconds = wire.int64(reader); break;
      case 16: message.nanos = reader.int32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

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

export function readStruct(reader: Reader, end: number, depth: number): Struct {
  const message = { fields: new Map() as Map<string, Value> };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: wire.messageEntry(reader, message.fields, readValue, depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface Value {
  readonly nullValue?: number | undefined;
  readonly numberValue?: number | undefined;
  readonly stringValue?: string | undefined;
  readonly boolValue?: boolean | undefined;
  readonly structValue?: Struct | undefined;
  readonly listValue?: ListValue | undefined;
}

export function readValue(reader: Reader, end: number, depth: number): Value {
  const message = { nullValue: undefined as number | undefined, numberValue: undefined as number | undefined, stringValue: undefined as string | undefined, boolValue: undefined as boolean | undefined, structValue: undefined as Struct | undefined, listValue: undefined as ListValue | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.nullValue = reader.int32(); message.numberValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.structValue = undefined; message.listValue = undefined; break;
      case 17: message.numberValue = reader.double(); message.nullValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.structValue = undefined; message.listValue = undefined; break;
      case 26: message.stringValue = wire.text(reader); message.nullValue = undefined; message.numberValue = undefined; message.boolValue = undefined; message.structValue = undefined; message.listValue = undefined; break;
      case 32: message.boolValue = reader.bool(); message.nullValue = undefined; message.numberValue = undefined; message.stringValue = undefined; message.structValue = undefined; message.listValue = undefined; break;
      case 42: message.structValue = readStruct(reader, wire.endOf(reader, depth + 1), depth + 1); message.nullValue = undefined; message.numberValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.listValue = undefined; break;
      case 50: message.listValue = readListValue(reader, wire.endOf(reader, depth + 1), depth + 1); message.nullValue = undefined; message.numberValue = undefined; message.stringValue = undefined; message.boolValue = undefined; message.structValue = undefined; break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ListValue {
  readonly values: readonly Value[];
}

export function readListValue(reader: Reader, end: number, depth: number): ListValue {
  const message = { values: [] as Value[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.values.push(readValue(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}
