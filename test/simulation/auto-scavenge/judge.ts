import { parseFact } from '../../../core/auto-scavenge/facts.ts';
import { nodeKey } from '../../../core/ports/nodes.ts';
import type { NodeAddress } from '../../../core/ports/nodes.ts';
import type { Run } from './sim-scavenger.ts';

/** What the judge may know of the cluster, which no node does. */
export interface Truth {
  readonly now: () => number;
  readonly leader: () => string | null;
  /** Members that are alive and have been listed for a while. */
  readonly livingMembers: () => readonly string[];
  readonly runs: readonly Run[];
}

interface CycleSeen {
  readonly id: string;
  readonly startedAt: number;
  readonly members: Set<string>;
  readonly done: Set<string>;
}

/** Reads what is stored, independently of the state machine, and says what must not be. */
export class Judge {
  readonly problems: string[] = [];
  readonly counts = { cycles: 0, errored: 0, pauses: 0, resumes: 0, changes: 0, restarts: 0 };
  cycle: CycleSeen | null = null;
  designated: string | null = null;
  phase: 'idle' | 'choosing' | 'starting' | 'monitoring' | 'pausing' | 'paused' = 'idle';
  readonly #truth: Truth;
  /** Cycle of each ordered run. */
  readonly ordered = new Map<string, string>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  problem(text: string): void {
    this.problems.push(`${Math.round(this.#truth.now() / 1_000)} s: ${text}`);
  }

  #must(holds: boolean, text: string): void {
    if (!holds) this.problem(text);
  }

  /** An event of the stream of cycles was stored. */
  stored(type: string, data: Uint8Array): void {
    const fact = parseFact(type, data);
    if (fact === null) return this.problem(`${type} can't be understood`);
    const { cycle } = this;
    switch (fact.type) {
      case '$cluster-scavenge-started':
        this.#must(cycle === null && this.phase === 'idle', 'a cycle began while one was under way or all was paused');
        this.cycle = {
          id: fact.clusterScavengeId,
          startedAt: this.#truth.now(),
          members: new Set(fact.members.map(nodeKey)),
          done: new Set(),
        };
        this.phase = 'choosing';
        return;
      case '$paused':
        if (cycle === null) this.#must(this.phase === 'idle', 'paused twice');
        this.counts.pauses++;
        this.phase = 'paused';
        this.designated = null;
        return;
      case '$resumed':
        this.#must(this.phase === 'paused', 'resumed what was not paused');
        this.counts.resumes++;
        this.phase = cycle === null ? 'idle' : 'choosing';
        return;
      case '$configuration-updated':
        return this.problem('a configuration stands among the cycles');
      default:
        if (cycle === null) return this.problem(`${type} outside of a cycle`);
        return this.#inCycle(fact, cycle);
    }
  }

  #inCycle(
    fact: Exclude<
      NonNullable<ReturnType<typeof parseFact>>,
      { type: '$configuration-updated' | '$cluster-scavenge-started' | '$paused' | '$resumed' }
    >,
    cycle: CycleSeen,
  ): void {
    if (this.phase === 'paused') this.#must(fact.type === '$cluster-members-changed', `${fact.type} while paused`);
    switch (fact.type) {
      case '$node-designated': {
        const node = nodeKey(fact.node);
        this.#must(
          cycle.members.has(node) && !cycle.done.has(node),
          `${node} was designated, which is none of the remaining`,
        );
        this.#must(
          this.designated === null || this.designated === node || this.phase === 'starting',
          `${node} was designated while ${this.designated} was`,
        );
        if (this.designated === node) this.counts.restarts++;
        this.designated = node;
        this.phase = 'starting';
        return;
      }
      case '$node-scavenge-started': {
        const node = nodeKey(fact.node);
        this.#must(this.designated === node && this.phase === 'starting', `${node} was started, but not designated`);
        this.#must(
          this.#truth.runs.some((run) => run.id === fact.scavengeId && run.node === node),
          `there is no run ${fact.scavengeId} on ${node}`,
        );
        this.phase = 'monitoring';
        return;
      }
      case '$node-scavenge-completed':
        return this.#completed(fact.node, fact.result, cycle);
      case '$cluster-members-changed':
        this.counts.changes++;
        for (const added of fact.added) cycle.members.add(nodeKey(added));
        for (const removed of fact.removed) {
          const node = nodeKey(removed);
          cycle.members.delete(node);
          cycle.done.delete(node);
          if (this.designated !== node) continue;
          this.designated = null;
          if (this.phase !== 'pausing') this.phase = 'choosing';
        }
        return;
      case '$pause-requested':
        this.#must(this.phase === 'starting' || this.phase === 'monitoring', `a pause was asked for in ${this.phase}`);
        this.phase = 'pausing';
        return;
      case '$cluster-scavenge-completed':
        this.#must(
          this.phase === 'choosing' && fact.clusterScavengeId === cycle.id,
          'a cycle was completed that was not under way',
        );
        for (const node of cycle.members) this.#must(cycle.done.has(node), `the cycle was completed without ${node}`);
        for (const node of this.#truth.livingMembers())
          this.#must(cycle.done.has(node), `the cycle was completed without ${node}, which lives`);
        this.counts.cycles++;
        this.cycle = null;
        this.phase = 'idle';
    }
  }

  #completed(address: NodeAddress, result: string, cycle: CycleSeen): void {
    const node = nodeKey(address);
    this.#must(this.designated === node, `${node} was completed, but not designated`);
    if (result === 'Errored') this.counts.errored++;
    if (result === 'Success')
      this.#must(
        this.#truth.runs.some(
          (run) => run.node === node && run.result === 'Success' && run.endedAt! >= cycle.startedAt,
        ),
        `${node} is said to be scavenged, and was not`,
      );
    cycle.done.add(node);
    this.designated = null;
    if (this.phase !== 'pausing') this.phase = 'choosing';
  }

  /** An order was carried out on a node: a run began now, or it had begun before. */
  orderedRun(node: string, scavengeId: string, clusterScavengeId: string): void {
    if (this.ordered.has(scavengeId)) return;
    this.ordered.set(scavengeId, clusterScavengeId);
    const { runs, leader } = this.#truth;
    for (const run of runs) {
      if (run.id !== scavengeId && run.endedAt === null && this.ordered.get(run.id) === clusterScavengeId)
        this.problem(
          `${node} was started (${scavengeId}) while ${run.node} (${run.id}) is being scavenged for the same cycle`,
        );
    }
    const { cycle } = this;
    if (cycle === null || cycle.id !== clusterScavengeId || leader() !== node) return;
    const others = [...cycle.members].filter((member) => member !== node && !cycle.done.has(member));
    this.#must(others.length === 0, `the leader ${node} was started while ${others.join(', ')} remain`);
  }
}
