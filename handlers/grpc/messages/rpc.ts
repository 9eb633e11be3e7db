// Made of rpc.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';
import { readAny as readAnyOfGoogle, type Any as GoogleAny, writeAny as writeAnyOfGoogle } from './google.ts';

export interface Status {
  readonly code: number;
  readonly message: string;
  readonly details: readonly GoogleAny[];
}

export function readStatus(reader: Reader, end: number, depth: number): Status {
  const message = { code: 0, message: '' as string, details: [] as GoogleAny[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.code = reader.int32(); break;
      case 18: message.message = wire.text(reader); break;
      case 26: message.details.push(readAnyOfGoogle(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeStatus(message: Status, writer: Writer): void {
  if (message.code !== 0) { writer.uint32(8).int32(message.code); }
  if (message.message !== '') { writer.uint32(18).string(message.message); }
  for (const one of message.details) { writer.uint32(26).fork(); writeAnyOfGoogle(one, writer); writer.ldelim(); }
}

export interface BadRequest {
  readonly fieldViolations: readonly BadRequestFieldViolation[];
}

export function readBadRequest(reader: Reader, end: number, depth: number): BadRequest {
  const message = { fieldViolations: [] as BadRequestFieldViolation[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.fieldViolations.push(readBadRequestFieldViolation(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeBadRequest(message: BadRequest, writer: Writer): void {
  for (const one of message.fieldViolations) { writer.uint32(10).fork(); writeBadRequestFieldViolation(one, writer); writer.ldelim(); }
}

export interface BadRequestFieldViolation {
  readonly field: string;
  readonly description: string;
}

export function readBadRequestFieldViolation(reader: Reader, end: number, depth: number): BadRequestFieldViolation {
  const message = { field: '' as string, description: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.field = wire.text(reader); break;
      case 18: message.description = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeBadRequestFieldViolation(message: BadRequestFieldViolation, writer: Writer): void {
  if (message.field !== '') { writer.uint32(10).string(message.field); }
  if (message.description !== '') { writer.uint32(18).string(message.description); }
}
