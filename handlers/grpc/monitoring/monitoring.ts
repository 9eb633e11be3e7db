import { SkuaError } from '../../../core/base/errors.ts';
import type { App } from '../../http/context.ts';
import type { NodeControl } from '../../http/node-control.ts';
import { flatten } from '../../node/statistics.ts';
import { GrpcError, send, serverStreaming, STATUS } from '../call.ts';
import type { GrpcCall, GrpcService } from '../call.ts';
import { MonitoringService, writeStatsResp } from '../messages/monitoring.ts';
import type { StatsReq } from '../messages/monitoring.ts';
import { ALL_ONES } from '../messages/wire.ts';

/** Statistics are collected far less often; a client that asks for them more often than this gets them this often. */
export const STATS_PERIOD_MIN_MS = 100;
/** A client that asks for statistics less often gets them this often. */
export const STATS_PERIOD_MAX_MS = 86_400_000;

/** Statistics at once and then again and again. Null where there is no node around the handlers. */
export function monitoring({ node }: App): GrpcService | null {
  if (node === null) return null;
  return {
    name: MonitoringService.name,
    methods: [
      serverStreaming(MonitoringService.methods.Stats, { place: 'node', access: 'statistics' }, (request, call) =>
        stats(node, request, call),
      ),
    ],
  };
}

/** `use_metadata` would replace some values by the name of a type, which is of no use: here it changes nothing. */
async function stats(node: NodeControl, { refreshTimePeriodInMs }: StatsReq, call: GrpcCall): Promise<void> {
  const periodMs = periodOf(refreshTimePeriodInMs);
  const {
    signal,
    app: {
      world: { clock },
    },
  } = call;
  while (!signal.aborted) {
    await send(call, { stats: textsOf(node) }, writeStatsResp);
    await clock.sleep(periodMs, signal);
  }
  throw new GrpcError(STATUS.cancelled, 'The call is over.');
}

function periodOf(ms: number): number {
  if (ms === 0)
    throw new SkuaError(
      'bad_request',
      `refresh_time_period_in_ms is 0: give the time between two messages in milliseconds, at least ${STATS_PERIOD_MIN_MS}.`,
    );
  // What is no number of ours is a longer time than any.
  if (Number.isNaN(ms) || ms === ALL_ONES) return STATS_PERIOD_MAX_MS;
  return Math.min(Math.max(ms, STATS_PERIOD_MIN_MS), STATS_PERIOD_MAX_MS);
}

function textsOf(node: NodeControl): Map<string, string> {
  return new Map(Object.entries(flatten(node.stats())).map(([name, value]) => [name, String(value)]));
}
