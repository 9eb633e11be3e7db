import type { StartReply, StopReply } from '../ports/nodes.ts';
import { nodeKey } from '../ports/nodes.ts';
import type { AskReply, Decision, Note, World } from './decision.ts';
import { heard, note, stay, store } from './decision.ts';
import type { NodeResult } from './facts.ts';
import type { Designation, State } from './state.ts';

/** What answers of nodes lead to; auto-scavenge.md sections 8.4 to 8.6 and 9. */

/** How often in a row a run on a node may be lost before its part of the cycle ends as `Errored`. */
export const TRIES_MAX = 10;

export function started(state: State, reply: StartReply, world: World): Decision {
  const designated = state.cycle!.designated!;
  const node = nodeKey(designated.node);
  switch (reply.kind) {
    case 'started':
      return store(heard(state), { type: '$node-scavenge-started', node: designated.node, scavengeId: reply.scavengeId, atMs: world.nowMs },
        { notes: [note('info', 'a node scavenge was started', { node, scavengeId: reply.scavengeId })] });
    case 'busy':
      return stay(heard(state), { notes: [note('info', 'the node is busy with another scavenge or a backup, whose end is waited for', { node })] });
    case 'late':
      return again(state, designated, world, 'the node has seen a newer order than ours');
    default:
      return unanswered(state, designated, world, note('info', 'a node scavenge could not be started; it is tried again', { node, why: reply.kind, error: reply.reason }));
  }
}

export function asked(state: State, reply: AskReply, world: World): Decision {
  const designated = state.cycle!.designated!;
  const { scavengeId } = designated;
  const node = nodeKey(designated.node);
  if (reply.kind === 'unknown') return unanswered(state, designated, world, note('info', 'how the node scavenge stands is not known; it is asked again', { node, scavengeId, error: reply.reason }));
  // Nothing was started yet as far as we know: the node is there again, that was the question.
  if (scavengeId === null) return stay(heard(state), { notes: [note('info', 'the node can be reached again', { node })] });
  const foreign = reply.other === null ? [] : [note('warn', 'the last scavenge of the node is not the one that was started', { node, scavengeId, last: reply.other })];
  switch (reply.kind) {
    case 'running': return stay(heard(state), { notes: foreign.length > 0 ? foreign : [note('debug', 'the node scavenge goes on', { node, scavengeId })] });
    case 'gone': return again(state, designated, world, 'the node scavenge does not go on, for a reason that is not known');
    default: return ended(state, designated, reply.kind, world, foreign.length > 0 ? 'by a later scavenge' : 'by its scavenge');
  }
}

export function stopped(state: State, reply: StopReply, world: World): Decision {
  const designated = state.cycle!.designated!;
  const node = nodeKey(designated.node);
  switch (reply.kind) {
    case 'stopped': return store(state, { type: '$paused', atMs: world.nowMs }, { notes: [note('info', 'the node scavenge has stopped: paused', { node })] });
    case 'stopping': return stay(heard(state), { notes: [note('info', 'the node scavenge is being stopped', { node })] });
    default: return unanswered(state, designated, world, note('info', 'a node scavenge could not be stopped; it is tried again', { node, why: reply.kind, error: reply.reason }));
  }
}

/**
 * A call that helped nothing. Only calls count, not the time between them: a leader that was asleep knows nothing about
 * its nodes. From the first to the last one the node has been silent, and with that lost if it was too long (design.md section 9).
 */
export function unanswered(state: State, designated: Designation, world: World, line: Note): Decision {
  const silentSinceMs = state.seen.silentSinceMs ?? world.monotonicMs;
  if (world.monotonicMs - silentSinceMs >= world.nodeLostAfterMs) return ended(state, designated, 'Errored', world, 'the node has given no useful answer for too long');
  return stay({ ...state, seen: { ...state.seen, silentSinceMs } }, { notes: [line] });
}

/** Designates the same node once more, which makes a newer order; so often and no more. */
function again(state: State, designated: Designation, world: World, why: string): Decision {
  const { node, tries, scavengeId } = designated;
  if (tries >= TRIES_MAX) return ended(state, designated, 'Errored', world, `${why}, ${tries} times in a row`);
  return store(state, { type: '$node-designated', node, atMs: world.nowMs }, { notes: [note('info', `${why}: it is started again`, { node: nodeKey(node), scavengeId, tries })] });
}

/** The node's part of the cycle is over. */
export function ended(state: State, { node, scavengeId }: Designation, result: NodeResult, world: World, why: string): Decision {
  return store(state, { type: '$node-scavenge-completed', node, result, atMs: world.nowMs },
    { notes: [note(result === 'Success' ? 'info' : 'warn', 'the part of a node is complete', { node: nodeKey(node), scavengeId, result, why })] });
}
