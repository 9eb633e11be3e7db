// Made of rpc.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import type { Writer } from './wire.ts';
import { type Any as GoogleAny, writeAny as writeAnyOfGoogle } from './google.ts';

export interface Status {
  readonly code: number;
  readonly message: string;
  readonly details: readonly GoogleAny[];
}

export function writeStatus(message: Status, writer: Writer): void {
  if (message.code !== 0) { writer.uint32(8).int32(message.code); }
  if (message.message !== '') { writer.uint32(18).string(message.message); }
  for (const one of message.details) { writer.uint32(26).fork(); writeAnyOfGoogle(one, writer); writer.ldelim(); }
}

export interface BadRequest {
  readonly fieldViolations: readonly BadRequestFieldViolation[];
}

export function writeBadRequest(message: BadRequest, writer: Writer): void {
  for (const one of message.fieldViolations) { writer.uint32(10).fork(); writeBadRequestFieldViolation(one, writer); writer.ldelim(); }
}

export interface BadRequestFieldViolation {
  readonly field: string;
  readonly description: string;
}

export function writeBadRequestFieldViolation(message: BadRequestFieldViolation, writer: Writer): void {
  if (message.field !== '') { writer.uint32(10).string(message.field); }
  if (message.description !== '') { writer.uint32(18).string(message.description); }
}
