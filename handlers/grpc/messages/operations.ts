// Made of operations.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';

/** `event_store.client.operations.Operations` */
export const OperationsService = {
  name: 'event_store.client.operations.Operations',
  methods: {
    StartScavenge: { path: '/event_store.client.operations.Operations/StartScavenge', hasManyRequests: false, hasManyResponses: false, readRequest: readStartScavengeReq, writeResponse: writeScavengeResp },
    StopScavenge: { path: '/event_store.client.operations.Operations/StopScavenge', hasManyRequests: false, hasManyResponses: false, readRequest: readStopScavengeReq, writeResponse: writeScavengeResp },
    Shutdown: { path: '/event_store.client.operations.Operations/Shutdown', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: wire.writeNothing },
    MergeIndexes: { path: '/event_store.client.operations.Operations/MergeIndexes', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: wire.writeNothing },
    ResignNode: { path: '/event_store.client.operations.Operations/ResignNode', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: wire.writeNothing },
    SetNodePriority: { path: '/event_store.client.operations.Operations/SetNodePriority', hasManyRequests: false, hasManyResponses: false, readRequest: readSetNodePriorityReq, writeResponse: wire.writeNothing },
    RestartPersistentSubscriptions: { path: '/event_store.client.operations.Operations/RestartPersistentSubscriptions', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: wire.writeNothing },
  },
} as const;

export interface StartScavengeReq {
  readonly options?: StartScavengeReqOptions | undefined;
}

export function readStartScavengeReq(reader: Reader, end: number, depth: number): StartScavengeReq {
  const message = { options: undefined as StartScavengeReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readStartScavengeReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface StartScavengeReqOptions {
  readonly threadCount: number;
  readonly startFromChunk: number;
}

export function readStartScavengeReqOptions(reader: Reader, end: number, depth: number): StartScavengeReqOptions {
  const message = { threadCount: 0, startFromChunk: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.threadCount = reader.int32(); break;
      case 16: message.startFromChunk = reader.int32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface StopScavengeReq {
  readonly options?: StopScavengeReqOptions | undefined;
}

export function readStopScavengeReq(reader: Reader, end: number, depth: number): StopScavengeReq {
  const message = { options: undefined as StopScavengeReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readStopScavengeReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface StopScavengeReqOptions {
  readonly scavengeId: string;
}

export function readStopScavengeReqOptions(reader: Reader, end: number, depth: number): StopScavengeReqOptions {
  const message = { scavengeId: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.scavengeId = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ScavengeResp {
  readonly scavengeId: string;
  readonly scavengeResult: number;
}

export function writeScavengeResp(message: ScavengeResp, writer: Writer): void {
  if (message.scavengeId !== '') { writer.uint32(10).string(message.scavengeId); }
  if (message.scavengeResult !== 0) { writer.uint32(16).int32(message.scavengeResult); }
}

export const ScavengeRespScavengeResult = { Started: 0, InProgress: 1, Stopped: 2 } as const;

export interface SetNodePriorityReq {
  readonly priority: number;
}

export function readSetNodePriorityReq(reader: Reader, end: number, depth: number): SetNodePriorityReq {
  const message = { priority: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.priority = reader.int32(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}
