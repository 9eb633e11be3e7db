// Made of monitoring.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';

/** `event_store.client.monitoring.Monitoring` */
export const MonitoringService = {
  name: 'event_store.client.monitoring.Monitoring',
  methods: {
    Stats: { path: '/event_store.client.monitoring.Monitoring/Stats', hasManyRequests: false, hasManyResponses: true, readRequest: readStatsReq, writeResponse: writeStatsResp },
  },
} as const;

export interface StatsReq {
  readonly useMetadata: boolean;
  readonly refreshTimePeriodInMs: number;
}

export function readStatsReq(reader: Reader, end: number, depth: number): StatsReq {
  const message = { useMetadata: false as boolean, refreshTimePeriodInMs: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.useMetadata = reader.bool(); break;
      case 32: message.refreshTimePeriodInMs = wire.uint64(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface StatsResp {
  readonly stats: ReadonlyMap<string, string>;
}

export function writeStatsResp(message: StatsResp, writer: Writer): void {
  wire.writeTextEntries(writer, 1, message.stats);
}
