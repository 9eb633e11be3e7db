import type { NodeAddress, NodesView, ScavengeOrder, StartReply, StopReply } from '../ports/nodes.ts';
import { nodeKey } from '../ports/nodes.ts';
import { apply } from './apply.ts';
import type { Fact, NodeResult } from './facts.ts';
import type { Seen, State } from './state.ts';

/** What goes into the state machine and what comes out of it. */

export type Input =
  /** What the cluster looks like by now. */
  | { readonly kind: 'members'; readonly view: NodesView }
  /** Time has passed. */
  | { readonly kind: 'clock' }
  | { readonly kind: 'configure'; readonly schedule: string }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** What came of an effect; `attempt` is that of the designation it was for. */
  | { readonly kind: 'started'; readonly attempt: number; readonly reply: StartReply }
  | { readonly kind: 'asked'; readonly attempt: number; readonly reply: AskReply }
  | { readonly kind: 'stopped'; readonly attempt: number; readonly reply: StopReply };

/** `gone`: no run goes on, and nothing shows how ours ended. `unknown`: nothing is known. */
export type AskReply =
  | {
      readonly kind: NodeResult | 'running' | 'gone';
      /** The run that the node reported, when it is not the one we started. */ readonly other: string | null;
    }
  | { readonly kind: 'unknown'; readonly reason: string };

/** What the world is asked to do. Its outcome comes back as an input. */
export type Effect =
  | { readonly kind: 'start'; readonly node: NodeAddress; readonly order: ScavengeOrder }
  /** Without an order the node is asked whether it is there, and does not go on because of it. */
  | {
      readonly kind: 'ask';
      readonly node: NodeAddress;
      readonly order: ScavengeOrder;
      readonly isRenewing: boolean;
      readonly scavengeId: string | null;
    }
  | {
      readonly kind: 'stop';
      readonly node: NodeAddress;
      readonly order: ScavengeOrder;
      readonly attempt: number;
      readonly scavengeId: string | null;
    }
  | { readonly kind: 'resign' };

/** What a command is answered with. */
type Answer = 'done' | 'accepted' | 'pausing';

/** A line for the log. The same line again and again is logged once in a while. */
export interface Note {
  readonly level: 'debug' | 'info' | 'warn';
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Decision {
  /** As it is once the events are stored. Until then, and if they can't be, the old state holds. */
  readonly state: State;
  /** At most one. All but `$configuration-updated` go behind the event that the state's version names. */
  readonly events: readonly Fact[];
  /** To be done once the events are stored; at most one. */
  readonly effects: readonly Effect[];
  /** Of a command, else null. */
  readonly answer: Answer | null;
  readonly notes: readonly Note[];
}

/** The rest of what a decision depends on. */
export interface World {
  /** Milliseconds since 1970, whole. */
  readonly nowMs: number;
  readonly monotonicMs: number;
  /** The id of a cycle, should one begin. */
  readonly freshId: string;
  /** `Schedule.next` for the schedule's text, in the configured zone. */
  next(schedule: string, afterMs: number): number | null;
  /** Nodes that are unreachable for longer count as lost. */
  readonly nodeLostAfterMs: number;
}

/**
 * Voting members have been missing for longer than any node is waited for: the cycle goes on with those that are there.
 */
export function isShortForGood({ shortSinceMs }: Seen, { monotonicMs, nodeLostAfterMs }: World): boolean {
  return shortSinceMs !== null && monotonicMs - shortSinceMs >= nodeLostAfterMs;
}

export function stay(state: State, more: Partial<Omit<Decision, 'state'>> = {}): Decision {
  return { state, events: [], effects: [], answer: null, notes: [], ...more };
}

/** A decision that stores an event. */
export function store(state: State, fact: Fact, more: Partial<Omit<Decision, 'state' | 'events'>> = {}): Decision {
  const next = apply(state, fact, state.version + (fact.type === '$configuration-updated' ? 0 : 1));
  return stay(fact.type === '$node-designated' ? { ...next, seen: { ...next.seen, silentSinceMs: null } } : next, {
    events: [fact],
    ...more,
  });
}

/** The designated node has given a useful answer, so it is there, whatever the list of members says. */
export function heard(state: State): State {
  const absentSinceMs = new Map(state.seen.absentSinceMs);
  const node = state.cycle?.designated?.node;
  if (node !== undefined) absentSinceMs.delete(nodeKey(node));
  return { ...state, seen: { ...state.seen, silentSinceMs: null, absentSinceMs } };
}

export function note(level: Note['level'], text: string, fields: Readonly<Record<string, unknown>> = {}): Note {
  return { level, text: `AUTO-SCAVENGE: ${text}`, fields };
}
