import type { NodeAddress } from '../ports/nodes.ts';
import { parseTimestamp, timestampText } from '../base/time.ts';
import { decodeText, encodeText } from '../base/text.ts';

/** What is stored of auto-scavenge: types and JSON of its events (core/auto-scavenge/README.md, "What is stored"). */

/** How a node's part of a cycle ended. */
export type NodeResult = 'Success' | 'Stopped' | 'Errored';

export type Fact =
  | { readonly type: '$configuration-updated'; readonly schedule: string; readonly atMs: number }
  | {
      readonly type: '$cluster-scavenge-started' | '$cluster-scavenge-completed';
      readonly clusterScavengeId: string;
      readonly members: readonly NodeAddress[];
      readonly atMs: number;
    }
  | {
      readonly type: '$cluster-members-changed';
      readonly added: readonly NodeAddress[];
      readonly removed: readonly NodeAddress[];
    }
  | { readonly type: '$node-designated'; readonly node: NodeAddress; readonly atMs: number }
  | {
      readonly type: '$node-scavenge-started';
      readonly node: NodeAddress;
      readonly scavengeId: string;
      readonly atMs: number;
    }
  | {
      readonly type: '$node-scavenge-completed';
      readonly node: NodeAddress;
      readonly result: NodeResult;
      readonly atMs: number;
    }
  | { readonly type: '$pause-requested' | '$paused' | '$resumed'; readonly atMs: number };

type FactType = Fact['type'];

/** Name of the member that holds the time. */
const TIME_NAMES: Readonly<Record<Exclude<FactType, '$cluster-members-changed'>, string>> = {
  '$configuration-updated': 'updatedAt',
  '$cluster-scavenge-started': 'startedAt',
  '$cluster-scavenge-completed': 'completedAt',
  '$node-designated': 'designatedAt',
  '$node-scavenge-started': 'startedAt',
  '$node-scavenge-completed': 'completedAt',
  '$pause-requested': 'requestedAt',
  $paused: 'pausedAt',
  $resumed: 'resumedAt',
};

const RESULTS: ReadonlySet<unknown> = new Set<NodeResult>(['Success', 'Stopped', 'Errored']);

/** The JSON of a fact, members in the documented order. */
export function formatFact(fact: Fact): Uint8Array {
  return encodeText(JSON.stringify(membersOf(fact)));
}

function membersOf(fact: Fact): Record<string, unknown> {
  if (fact.type === '$cluster-members-changed')
    return { added: fact.added.map(nodeJson), removed: fact.removed.map(nodeJson) };
  const time = { [TIME_NAMES[fact.type]]: timeText(fact.atMs) };
  switch (fact.type) {
    case '$configuration-updated':
      return { schedule: fact.schedule, ...time };
    case '$cluster-scavenge-started':
    case '$cluster-scavenge-completed':
      return { clusterScavengeId: fact.clusterScavengeId, members: fact.members.map(nodeJson), ...time };
    case '$node-designated':
      return { nodeId: nodeJson(fact.node), ...time };
    case '$node-scavenge-started':
      return { nodeId: nodeJson(fact.node), scavengeId: fact.scavengeId, ...time };
    case '$node-scavenge-completed':
      return { nodeId: nodeJson(fact.node), ...time, result: fact.result };
    default:
      return time;
  }
}

/** The fact of a stored event; null for a type that is none of ours, and for data that can't be understood. */
export function parseFact(type: string, data: Uint8Array): Fact | null {
  const members = jsonObject(data);
  if (members === null) return null;
  if (type === '$cluster-members-changed') {
    const added = nodesOf(members['added']);
    const removed = nodesOf(members['removed']);
    return added === null || removed === null ? null : { type, added, removed };
  }
  if (!Object.hasOwn(TIME_NAMES, type)) return null;
  const timed = type as keyof typeof TIME_NAMES;
  const atMs = parseTimestamp(String(members[TIME_NAMES[timed]]));
  return Number.isFinite(atMs) ? timedFact(timed, members, atMs) : null;
}

function timedFact(
  type: keyof typeof TIME_NAMES,
  members: Readonly<Record<string, unknown>>,
  atMs: number,
): Fact | null {
  const node = nodeOf(members['nodeId']);
  switch (type) {
    case '$configuration-updated': {
      const { schedule } = members;
      return typeof schedule === 'string' ? { type, schedule, atMs } : null;
    }
    case '$cluster-scavenge-started':
    case '$cluster-scavenge-completed': {
      const { clusterScavengeId } = members;
      const nodes = nodesOf(members['members']);
      return typeof clusterScavengeId === 'string' && nodes !== null
        ? { type, clusterScavengeId, members: nodes, atMs }
        : null;
    }
    case '$node-designated':
      return node === null ? null : { type, node, atMs };
    case '$node-scavenge-started': {
      const { scavengeId } = members;
      return node !== null && typeof scavengeId === 'string' ? { type, node, scavengeId, atMs } : null;
    }
    case '$node-scavenge-completed': {
      const { result } = members;
      return node !== null && RESULTS.has(result) ? { type, node, result: result as NodeResult, atMs } : null;
    }
    default:
      return { type, atMs };
  }
}

/** With an offset, as the reference writes it: ours is always that of UTC. */
function timeText(ms: number): string {
  return timestampText(Math.floor(ms), 0).replace('Z', '+00:00');
}

function nodeJson({ address, port }: NodeAddress): NodeAddress {
  return { address, port };
}

function nodesOf(value: unknown): NodeAddress[] | null {
  if (!Array.isArray(value)) return null;
  const nodes = value.map(nodeOf).filter((node) => node !== null);
  return nodes.length === value.length ? nodes : null;
}

function nodeOf(value: unknown): NodeAddress | null {
  if (typeof value !== 'object' || value === null) return null;
  const { address, port } = value as Record<string, unknown>;
  return typeof address === 'string' && typeof port === 'number' ? { address, port } : null;
}

/** Null where the data is no JSON object. */
export function jsonObject(data: Uint8Array): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(decodeText(data));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
