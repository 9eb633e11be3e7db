import type { AutoScavengeStatus, NodeOutcome } from '../core/auto-scavenge/api.ts';
import { timeSpanText } from '../core/scavenge/time-span.ts';
import { timestampText } from '../core/time.ts';
import { corsHeaders } from './cors.ts';
import type { Call } from './context.ts';

/** Documents of auto-scavenge: the documented members first and in their order, what is ours behind them. */

export function jsonReply(call: Call, value: object): Response {
  return new Response(JSON.stringify(value), { status: 200, statusText: 'OK', headers: { ...corsHeaders(call.methods), 'content-type': 'application/json; charset=utf-8' } });
}

export function enabledDocument({ enabled, reason }: { readonly enabled: boolean; readonly reason: string | null }) {
  return { enabled, ...(reason !== null && { reason }) };
}

export function statusDocument({ state, schedule, untilNextCycleMs, cycle, lastCycle }: AutoScavengeStatus) {
  return {
    state, schedule, timeUntilNextCycle: untilNextCycleMs === null ? null : timeSpanText(untilNextCycleMs),
    cycle: cycle === null ? null : { clusterScavengeId: cycle.clusterScavengeId, startedAt: momentText(cycle.startedAtMs), nodes: cycle.nodes.map(nodeFields) },
    lastCycle: lastCycle === null ? null : { clusterScavengeId: lastCycle.clusterScavengeId, completedAt: momentText(lastCycle.completedAtMs), nodes: lastCycle.nodes.map(nodeFields) },
  };
}

function nodeFields({ node, state, scavengeId, result }: NodeOutcome) {
  return { node, state, scavengeId, result };
}

function momentText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}
