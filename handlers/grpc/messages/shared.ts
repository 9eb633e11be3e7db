// Made of shared.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Writer } from './wire.ts';

export interface StreamIdentifier {
  readonly streamName: Uint8Array;
}

export const readStreamIdentifier = wire.reader((): wire.Open<StreamIdentifier> => ({ streamName: wire.NO_BYTES }), {
  26: (message, reader) => { message.streamName = wire.bytes(reader); },
});

export function writeStreamIdentifier(message: StreamIdentifier, writer: Writer): void {
  if (message.streamName.length > 0) { writer.uint32(26).bytes(message.streamName); }
}

export interface WrongExpectedVersion {
  readonly currentStreamRevision?: number | undefined;
  readonly currentNoStream?: wire.Nothing | undefined;
  readonly expectedStreamPosition?: number | undefined;
  readonly expectedAny?: wire.Nothing | undefined;
  readonly expectedStreamExists?: wire.Nothing | undefined;
  readonly expectedNoStream?: wire.Nothing | undefined;
}

export function writeWrongExpectedVersion(message: WrongExpectedVersion, writer: Writer): void {
  if (message.currentStreamRevision !== undefined) { writer.uint32(8); wire.writeUint64(writer, message.currentStreamRevision); }
  if (message.currentNoStream !== undefined) { writer.uint32(18).fork(); wire.writeNothing(message.currentNoStream, writer); writer.ldelim(); }
  if (message.expectedStreamPosition !== undefined) { writer.uint32(24); wire.writeUint64(writer, message.expectedStreamPosition); }
  if (message.expectedAny !== undefined) { writer.uint32(34).fork(); wire.writeNothing(message.expectedAny, writer); writer.ldelim(); }
  if (message.expectedStreamExists !== undefined) { writer.uint32(42).fork(); wire.writeNothing(message.expectedStreamExists, writer); writer.ldelim(); }
  if (message.expectedNoStream !== undefined) { writer.uint32(50).fork(); wire.writeNothing(message.expectedNoStream, writer); writer.ldelim(); }
}

export interface StreamDeleted {
  readonly streamIdentifier?: StreamIdentifier | undefined;
}

export function writeStreamDeleted(message: StreamDeleted, writer: Writer): void {
  if (message.streamIdentifier !== undefined) { writer.uint32(10).fork(); writeStreamIdentifier(message.streamIdentifier, writer); writer.ldelim(); }
}

export interface MaximumAppendSizeExceeded {
  readonly maxAppendSize: number;
}

export function writeMaximumAppendSizeExceeded(message: MaximumAppendSizeExceeded, writer: Writer): void {
  if (message.maxAppendSize !== 0) { writer.uint32(8).uint32(message.maxAppendSize); }
}

export interface MaximumAppendEventSizeExceeded {
  readonly eventId: string;
  readonly proposedEventSize: number;
  readonly maxAppendEventSize: number;
}

export function writeMaximumAppendEventSizeExceeded(message: MaximumAppendEventSizeExceeded, writer: Writer): void {
  if (message.eventId !== '') { writer.uint32(10).string(message.eventId); }
  if (message.proposedEventSize !== 0) { writer.uint32(16).uint32(message.proposedEventSize); }
  if (message.maxAppendEventSize !== 0) { writer.uint32(24).uint32(message.maxAppendEventSize); }
}

export interface BadRequest {
  readonly message: string;
}

export function writeBadRequest(message: BadRequest, writer: Writer): void {
  if (message.message !== '') { writer.uint32(10).string(message.message); }
}
