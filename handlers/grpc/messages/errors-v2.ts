// Made of errors-v2.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';

export interface StreamNotFoundErrorDetails {
  readonly stream: string;
}

export function readStreamNotFoundErrorDetails(reader: Reader, end: number, depth: number): StreamNotFoundErrorDetails {
  const message = { stream: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeStreamNotFoundErrorDetails(message: StreamNotFoundErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface StreamAlreadyExistsErrorDetails {
  readonly stream: string;
}

export function readStreamAlreadyExistsErrorDetails(reader: Reader, end: number, depth: number): StreamAlreadyExistsErrorDetails {
  const message = { stream: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeStreamAlreadyExistsErrorDetails(message: StreamAlreadyExistsErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface StreamDeletedErrorDetails {
  readonly stream: string;
}

export function readStreamDeletedErrorDetails(reader: Reader, end: number, depth: number): StreamDeletedErrorDetails {
  const message = { stream: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeStreamDeletedErrorDetails(message: StreamDeletedErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface StreamTombstonedErrorDetails {
  readonly stream: string;
}

export function readStreamTombstonedErrorDetails(reader: Reader, end: number, depth: number): StreamTombstonedErrorDetails {
  const message = { stream: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeStreamTombstonedErrorDetails(message: StreamTombstonedErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface StreamRevisionConflictErrorDetails {
  readonly stream: string;
  readonly expectedRevision: number;
  readonly actualRevision: number;
}

export function readStreamRevisionConflictErrorDetails(reader: Reader, end: number, depth: number): StreamRevisionConflictErrorDetails {
  const message = { stream: '' as string, expectedRevision: 0, actualRevision: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      case 16: message.expectedRevision = wire.sint64(reader); break;
      case 24: message.actualRevision = wire.sint64(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeStreamRevisionConflictErrorDetails(message: StreamRevisionConflictErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
  if (message.expectedRevision !== 0) { writer.uint32(16).sint64(message.expectedRevision); }
  if (message.actualRevision !== 0) { writer.uint32(24).sint64(message.actualRevision); }
}

export interface AppendRecordSizeExceededErrorDetails {
  readonly stream: string;
  readonly recordId: string;
  readonly size: number;
  readonly maxSize: number;
}

export function readAppendRecordSizeExceededErrorDetails(reader: Reader, end: number, depth: number): AppendRecordSizeExceededErrorDetails {
  const message = { stream: '' as string, recordId: '' as string, size: 0, maxSize: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      case 18: message.recordId = wire.text(reader); break;
      case 24: message.size = reader.int32(); break;
      case 32: message.maxSize = reader.int32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeAppendRecordSizeExceededErrorDetails(message: AppendRecordSizeExceededErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
  if (message.recordId !== '') { writer.uint32(18).string(message.recordId); }
  if (message.size !== 0) { writer.uint32(24).int32(message.size); }
  if (message.maxSize !== 0) { writer.uint32(32).int32(message.maxSize); }
}

export interface AppendTransactionSizeExceededErrorDetails {
  readonly size: number;
  readonly maxSize: number;
}

export function readAppendTransactionSizeExceededErrorDetails(reader: Reader, end: number, depth: number): AppendTransactionSizeExceededErrorDetails {
  const message = { size: 0, maxSize: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.size = reader.int32(); break;
      case 16: message.maxSize = reader.int32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeAppendTransactionSizeExceededErrorDetails(message: AppendTransactionSizeExceededErrorDetails, writer: Writer): void {
  if (message.size !== 0) { writer.uint32(8).int32(message.size); }
  if (message.maxSize !== 0) { writer.uint32(16).int32(message.maxSize); }
}

export interface StreamAlreadyInAppendSessionErrorDetails {
  readonly stream: string;
}

export function readStreamAlreadyInAppendSessionErrorDetails(reader: Reader, end: number, depth: number): StreamAlreadyInAppendSessionErrorDetails {
  const message = { stream: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeStreamAlreadyInAppendSessionErrorDetails(message: StreamAlreadyInAppendSessionErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface AppendConsistencyViolationErrorDetails {
  readonly violations: readonly AppendConsistencyViolationErrorDetailsConsistencyViolation[];
}

export function readAppendConsistencyViolationErrorDetails(reader: Reader, end: number, depth: number): AppendConsistencyViolationErrorDetails {
  const message = { violations: [] as AppendConsistencyViolationErrorDetailsConsistencyViolation[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.violations.push(readAppendConsistencyViolationErrorDetailsConsistencyViolation(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeAppendConsistencyViolationErrorDetails(message: AppendConsistencyViolationErrorDetails, writer: Writer): void {
  for (const one of message.violations) { writer.uint32(10).fork(); writeAppendConsistencyViolationErrorDetailsConsistencyViolation(one, writer); writer.ldelim(); }
}

export interface AppendConsistencyViolationErrorDetailsConsistencyViolation {
  readonly checkIndex: number;
  readonly streamState?: AppendConsistencyViolationErrorDetailsStreamStateViolation | undefined;
}

export function readAppendConsistencyViolationErrorDetailsConsistencyViolation(reader: Reader, end: number, depth: number): AppendConsistencyViolationErrorDetailsConsistencyViolation {
  const message = { checkIndex: 0, streamState: undefined as AppendConsistencyViolationErrorDetailsStreamStateViolation | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.checkIndex = reader.int32(); break;
      case 18: message.streamState = readAppendConsistencyViolationErrorDetailsStreamStateViolation(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeAppendConsistencyViolationErrorDetailsConsistencyViolation(message: AppendConsistencyViolationErrorDetailsConsistencyViolation, writer: Writer): void {
  if (message.checkIndex !== 0) { writer.uint32(8).int32(message.checkIndex); }
  if (message.streamState !== undefined) { writer.uint32(18).fork(); writeAppendConsistencyViolationErrorDetailsStreamStateViolation(message.streamState, writer); writer.ldelim(); }
}

export interface AppendConsistencyViolationErrorDetailsStreamStateViolation {
  readonly stream: string;
  readonly expectedState: number;
  readonly actualState: number;
}

export function readAppendConsistencyViolationErrorDetailsStreamStateViolation(reader: Reader, end: number, depth: number): AppendConsistencyViolationErrorDetailsStreamStateViolation {
  const message = { stream: '' as string, expectedState: 0, actualState: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.stream = wire.text(reader); break;
      case 16: message.expectedState = wire.sint64(reader); break;
      case 24: message.actualState = wire.sint64(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeAppendConsistencyViolationErrorDetailsStreamStateViolation(message: AppendConsistencyViolationErrorDetailsStreamStateViolation, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
  if (message.expectedState !== 0) { writer.uint32(16).sint64(message.expectedState); }
  if (message.actualState !== 0) { writer.uint32(24).sint64(message.actualState); }
}
