// Made of errors-kurrent.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';

export interface AccessDeniedErrorDetails {
  readonly operation: string;
  readonly username?: string | undefined;
  readonly permission?: string | undefined;
}

export function readAccessDeniedErrorDetails(reader: Reader, end: number, depth: number): AccessDeniedErrorDetails {
  const message = { operation: '' as string, username: undefined as string | undefined, permission: undefined as string | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.operation = wire.text(reader); break;
      case 18: message.username = wire.text(reader); break;
      case 26: message.permission = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeAccessDeniedErrorDetails(message: AccessDeniedErrorDetails, writer: Writer): void {
  if (message.operation !== '') { writer.uint32(10).string(message.operation); }
  if (message.username !== undefined) { writer.uint32(18).string(message.username); }
  if (message.permission !== undefined) { writer.uint32(26).string(message.permission); }
}

export interface NotLeaderNodeErrorDetails {
  readonly currentLeader?: NotLeaderNodeErrorDetailsNodeInfo | undefined;
}

export function readNotLeaderNodeErrorDetails(reader: Reader, end: number, depth: number): NotLeaderNodeErrorDetails {
  const message = { currentLeader: undefined as NotLeaderNodeErrorDetailsNodeInfo | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.currentLeader = readNotLeaderNodeErrorDetailsNodeInfo(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeNotLeaderNodeErrorDetails(message: NotLeaderNodeErrorDetails, writer: Writer): void {
  if (message.currentLeader !== undefined) { writer.uint32(10).fork(); writeNotLeaderNodeErrorDetailsNodeInfo(message.currentLeader, writer); writer.ldelim(); }
}

export interface NotLeaderNodeErrorDetailsNodeInfo {
  readonly host: string;
  readonly port: number;
  readonly nodeId?: string | undefined;
}

export function readNotLeaderNodeErrorDetailsNodeInfo(reader: Reader, end: number, depth: number): NotLeaderNodeErrorDetailsNodeInfo {
  const message = { host: '' as string, port: 0, nodeId: undefined as string | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.host = wire.text(reader); break;
      case 16: message.port = reader.int32(); break;
      case 26: message.nodeId = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeNotLeaderNodeErrorDetailsNodeInfo(message: NotLeaderNodeErrorDetailsNodeInfo, writer: Writer): void {
  if (message.host !== '') { writer.uint32(10).string(message.host); }
  if (message.port !== 0) { writer.uint32(16).int32(message.port); }
  if (message.nodeId !== undefined) { writer.uint32(26).string(message.nodeId); }
}
