// Made of operations.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Writer } from './wire.ts';

export interface StartScavengeReq {
  readonly options?: StartScavengeReqOptions | undefined;
}

export const readStartScavengeReq = wire.reader((): wire.Open<StartScavengeReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readStartScavengeReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface StartScavengeReqOptions {
  readonly threadCount: number;
  readonly startFromChunk: number;
}

export const readStartScavengeReqOptions = wire.reader((): wire.Open<StartScavengeReqOptions> => ({ threadCount: 0, startFromChunk: 0 }), {
  8: (message, reader) => { message.threadCount = reader.int32(); },
  16: (message, reader) => { message.startFromChunk = reader.int32(); },
});

export interface StopScavengeReq {
  readonly options?: StopScavengeReqOptions | undefined;
}

export const readStopScavengeReq = wire.reader((): wire.Open<StopScavengeReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readStopScavengeReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface StopScavengeReqOptions {
  readonly scavengeId: string;
}

export const readStopScavengeReqOptions = wire.reader((): wire.Open<StopScavengeReqOptions> => ({ scavengeId: '' }), {
  10: (message, reader) => { message.scavengeId = wire.text(reader); },
});

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

export const readSetNodePriorityReq = wire.reader((): wire.Open<SetNodePriorityReq> => ({ priority: 0 }), {
  8: (message, reader) => { message.priority = reader.int32(); },
});

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
