// Made of monitoring.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Writer } from './wire.ts';

export interface StatsReq {
  readonly useMetadata: boolean;
  readonly refreshTimePeriodInMs: number;
}

export const readStatsReq = wire.reader((): wire.Open<StatsReq> => ({ useMetadata: false, refreshTimePeriodInMs: 0 }), {
  8: (message, reader) => { message.useMetadata = reader.bool(); },
  32: (message, reader) => { message.refreshTimePeriodInMs = wire.uint64(reader); },
});

export interface StatsResp {
  readonly stats: ReadonlyMap<string, string>;
}

export function writeStatsResp(message: StatsResp, writer: Writer): void {
  wire.writeTextEntries(writer, 1, message.stats);
}

/** `event_store.client.monitoring.Monitoring` */
export const MonitoringService = {
  name: 'event_store.client.monitoring.Monitoring',
  methods: {
    Stats: { path: '/event_store.client.monitoring.Monitoring/Stats', hasManyRequests: false, hasManyResponses: true, readRequest: readStatsReq, writeResponse: writeStatsResp },
  },
} as const;
