// Made of errors-v2.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import type { Writer } from './wire.ts';

export interface StreamDeletedErrorDetails {
  readonly stream: string;
}

export function writeStreamDeletedErrorDetails(message: StreamDeletedErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface StreamTombstonedErrorDetails {
  readonly stream: string;
}

export function writeStreamTombstonedErrorDetails(message: StreamTombstonedErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface StreamRevisionConflictErrorDetails {
  readonly stream: string;
  readonly expectedRevision: number;
  readonly actualRevision: number;
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

export function writeAppendTransactionSizeExceededErrorDetails(message: AppendTransactionSizeExceededErrorDetails, writer: Writer): void {
  if (message.size !== 0) { writer.uint32(8).int32(message.size); }
  if (message.maxSize !== 0) { writer.uint32(16).int32(message.maxSize); }
}

export interface StreamAlreadyInAppendSessionErrorDetails {
  readonly stream: string;
}

export function writeStreamAlreadyInAppendSessionErrorDetails(message: StreamAlreadyInAppendSessionErrorDetails, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
}

export interface AppendConsistencyViolationErrorDetails {
  readonly violations: readonly AppendConsistencyViolationErrorDetailsConsistencyViolation[];
}

export function writeAppendConsistencyViolationErrorDetails(message: AppendConsistencyViolationErrorDetails, writer: Writer): void {
  for (const one of message.violations) { writer.uint32(10).fork(); writeAppendConsistencyViolationErrorDetailsConsistencyViolation(one, writer); writer.ldelim(); }
}

export interface AppendConsistencyViolationErrorDetailsConsistencyViolation {
  readonly checkIndex: number;
  readonly streamState?: AppendConsistencyViolationErrorDetailsStreamStateViolation | undefined;
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

export function writeAppendConsistencyViolationErrorDetailsStreamStateViolation(message: AppendConsistencyViolationErrorDetailsStreamStateViolation, writer: Writer): void {
  if (message.stream !== '') { writer.uint32(10).string(message.stream); }
  if (message.expectedState !== 0) { writer.uint32(16).sint64(message.expectedState); }
  if (message.actualState !== 0) { writer.uint32(24).sint64(message.actualState); }
}
