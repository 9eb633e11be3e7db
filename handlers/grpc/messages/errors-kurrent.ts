// Made of errors-kurrent.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import type { Writer } from './wire.ts';

export interface AccessDeniedErrorDetails {
  readonly operation: string;
  readonly username?: string | undefined;
  readonly permission?: string | undefined;
}

export function writeAccessDeniedErrorDetails(message: AccessDeniedErrorDetails, writer: Writer): void {
  if (message.operation !== '') { writer.uint32(10).string(message.operation); }
  if (message.username !== undefined) { writer.uint32(18).string(message.username); }
  if (message.permission !== undefined) { writer.uint32(26).string(message.permission); }
}

export interface NotLeaderNodeErrorDetails {
  readonly currentLeader?: NotLeaderNodeErrorDetailsNodeInfo | undefined;
}

export function writeNotLeaderNodeErrorDetails(message: NotLeaderNodeErrorDetails, writer: Writer): void {
  if (message.currentLeader !== undefined) { writer.uint32(10).fork(); writeNotLeaderNodeErrorDetailsNodeInfo(message.currentLeader, writer); writer.ldelim(); }
}

export interface NotLeaderNodeErrorDetailsNodeInfo {
  readonly host: string;
  readonly port: number;
  readonly nodeId?: string | undefined;
}

export function writeNotLeaderNodeErrorDetailsNodeInfo(message: NotLeaderNodeErrorDetailsNodeInfo, writer: Writer): void {
  if (message.host !== '') { writer.uint32(10).string(message.host); }
  if (message.port !== 0) { writer.uint32(16).int32(message.port); }
  if (message.nodeId !== undefined) { writer.uint32(26).string(message.nodeId); }
}
