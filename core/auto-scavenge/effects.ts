import { isSkuaError } from '../base/errors.ts';
import type { LastReply, Nodes, NoReply } from '../ports/nodes.ts';
import { COMPLETED_TYPE, historyStreamOf } from '../scavenge/history/history.ts';
import type { StoredEvent } from '../streams/api.ts';
import type { AskReply, Effect, Input } from './decision.ts';
import { jsonObject } from './facts.ts';
import type { NodeResult } from './facts.ts';
import type { CyclesStore } from './auto-scavenge-streams.ts';

/** What effects are done with. */
interface EffectParts {
  readonly nodes: Nodes;
  readonly store: CyclesStore;
}

/**
 * Does what was decided, within `timeoutMs`, and gives what came of it; null where that shows in the view of the
 * cluster only. Never rejects.
 */
export async function perform(effect: Effect, { nodes, store }: EffectParts, timeoutMs: number): Promise<Input | null> {
  switch (effect.kind) {
    case 'start':
      return {
        kind: 'started',
        attempt: effect.order.attempt,
        reply: await nodes.startScavenge(effect.node, effect.order, timeoutMs).catch(failure),
      };
    case 'stop':
      return {
        kind: 'stopped',
        attempt: effect.attempt,
        reply: await nodes.stopScavenge(effect.node, effect.order, effect.scavengeId, timeoutMs).catch(failure),
      };
    case 'ask': {
      const { node, order, isRenewing, scavengeId } = effect;
      const reply = await nodes.lastScavenge(node, isRenewing ? order : null, timeoutMs).catch(failure);
      return {
        kind: 'asked',
        attempt: order.attempt,
        reply: await understand(reply, scavengeId, store).catch((error: unknown) => ({
          kind: 'unknown' as const,
          reason: String(error),
        })),
      };
    }
    case 'resign':
      // Whether it worked shows in the view; until then it is asked for again.
      await nodes.resign().catch(() => {});
      return null;
  }
}

/** What an answer says about the run `scavengeId`. */
async function understand(reply: LastReply, scavengeId: string | null, store: CyclesStore): Promise<AskReply> {
  if (reply.kind !== 'last') return { kind: 'unknown', reason: reply.reason };
  if (scavengeId === null) return { kind: 'running', other: null };
  const isOurs = reply.scavengeId === scavengeId;
  const other = isOurs || reply.result === 'Unknown' ? null : reply.scavengeId;
  // A later run that goes on, or came to its end, has done or does all that ours would.
  if (reply.result === 'InProgress') return { kind: 'running', other };
  if (reply.result === 'Success') return { kind: 'Success', other };
  if (isOurs && (reply.result === 'Stopped' || reply.result === 'Errored')) return { kind: reply.result, other };
  // Cut off, or ended because the leader did not ask for the run: its history may call that stopped.
  if (isOurs && reply.result === 'Interrupted') return { kind: 'gone', other };
  return { kind: (await resultFromHistory(store, scavengeId)) ?? 'gone', other };
}

function failure(error: unknown): NoReply {
  return { kind: 'failed', reason: String(error) };
}

/** Events from the end of a run's history among which its completion is looked for: they can be out of order. */
const LOOK_BACK_EVENTS = 20;
const RESULTS: readonly NodeResult[] = ['Success', 'Stopped', 'Errored'];

/**
 * How a run ended according to its history, which all nodes have; null when it does not say, or says that the run was
 * cut off.
 */
async function resultFromHistory(store: CyclesStore, scavengeId: string): Promise<NodeResult | null> {
  let events: readonly StoredEvent[];
  try {
    ({ events } = await store.readStream(historyStreamOf(scavengeId), {
      direction: 'backward',
      from: 'end',
      count: LOOK_BACK_EVENTS,
    }));
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'stream_deleted')) return null;
    throw error;
  }
  for (const event of events) {
    const members = event.type === COMPLETED_TYPE ? jsonObject(event.data) : null;
    if (members?.['scavengeId'] === scavengeId) return RESULTS.find((result) => result === members['result']) ?? null;
  }
  return null;
}
