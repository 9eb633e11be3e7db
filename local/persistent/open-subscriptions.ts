import type { MemberLog, Membership } from '../../core/cluster/api.ts';
import { leadAuthority } from '../../core/cluster/authority/authority.ts';
import type { GroupInfo, PersistentSubscriptions, PersistentSubscriptionsEngine } from '../../core/persistent/api.ts';
import { createPersistentSubscriptions } from '../../core/persistent/persistent.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import { streamHasher } from '../../core/base/stream-hash.ts';
import type { Authorize, EventStore } from '../../core/streams/api.ts';
import { layer, performWrite } from '../../core/streams/layer/layer.ts';
import { expressionOf } from '../../handlers/streams/expression.ts';
import { systemIds } from '../../infra/system-ids.ts';
import type { Collector } from '../metrics/metrics.ts';
import { subscriptionMetrics } from '../metrics/subscription-metrics.ts';

export interface OpenSubscriptionsOptions {
  /** It must stay the same while the copy of a member is closed and opened again. */
  readonly store: EventStore;
  /** Null for a node of its own, which always leads. */
  readonly cluster: { readonly membership: Membership; readonly log: MemberLog } | null;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * When they are closed, consumers are dropped, and what they have done is checkpointed; nothing is written afterwards.
 */
export interface OpenSubscriptions extends AsyncDisposable {
  readonly groups: PersistentSubscriptions;
  /** Of all groups that run here. */
  readonly metrics: Collector;
  /** The same as it is in memory; null while none runs here. */
  figuresNow(): readonly GroupInfo[] | null;
  /** The node serves: from here on groups run wherever, and as long as, it leads. */
  start(): void;
}

/** The persistent subscriptions of a node. */
export function openSubscriptions({ store, cluster, log, clock }: OpenSubscriptionsOptions): OpenSubscriptions {
  const parts = { store, clock, ids: systemIds, log, hasher: streamHasher };
  // What is compiled for groups is kept apart from what is for requests.
  const owner = {};
  const matcherOf = (expression: string) => expressionOf(expression, owner);
  if (cluster === null) {
    const engine = createPersistentSubscriptions({ ...parts, writes: store, matcherOf });
    return {
      groups: engine,
      metrics: subscriptionMetrics(() => engine.figures(), clock),
      figuresNow: () => engine.figuresNow(),
      start: () => engine.start(),
      [Symbol.asyncDispose]: () => engine.stop(),
    };
  }
  const writes = new LeaderWrites(store, cluster.membership);
  const engine = createPersistentSubscriptions({ ...parts, writes: writes.store, matcherOf });
  const lead = new Lead(engine, cluster, writes);
  return {
    groups: engine,
    metrics: subscriptionMetrics(() => engine.figures(), clock),
    figuresNow: () => engine.figuresNow(),
    start: () => lead.follow(),
    [Symbol.asyncDispose]: () => lead.close(),
  };
}

/** Writes that take their place in the log only under the epoch by which the member has begun to lead. */
class LeaderWrites {
  readonly store: EventStore;
  readonly #given: Parameters<typeof leadAuthority>[0];
  #authority: Promise<Authorize> | null = null;

  constructor(store: EventStore, membership: Membership) {
    this.#given = { store, membership };
    this.store = layer(store, { write: async (write) => performWrite(store, write, await this.#authority!) });
  }

  /** The member leads: asked for before anything is read that writes are made of. */
  begin(): void {
    this.#authority = leadAuthority(this.#given);
    // A failure is reported to the caller that writes.
    this.#authority.catch(() => {});
  }
}

/**
 * Lets the engine run while the member leads. An epoch that it leads anew is another lead: what was decided under the
 * last one is refused.
 */
class Lead {
  readonly #engine: PersistentSubscriptionsEngine;
  readonly #membership: Membership;
  readonly #log: MemberLog;
  readonly #writes: LeaderWrites;
  /** Of the epoch under which the engine runs; null while it does not. */
  #epoch: number | null = null;
  #isClosed = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(
    engine: PersistentSubscriptionsEngine,
    { membership, log }: NonNullable<OpenSubscriptionsOptions['cluster']>,
    writes: LeaderWrites,
  ) {
    this.#engine = engine;
    this.#membership = membership;
    this.#log = log;
    this.#writes = writes;
  }

  follow(): void {
    this.#membership.onChange(() => this.#look());
    this.#log.onEpoch(() => this.#look());
    this.#look();
  }

  #look(): void {
    if (this.#wanted !== this.#epoch) this.#turn = this.#turn.then(() => this.#change());
  }

  get #wanted(): number | null {
    return this.#isClosed || !this.#membership.isLeader ? null : (this.#log.epoch?.number ?? null);
  }

  async #change(): Promise<void> {
    // What was wanted when this was put in line may be over.
    if (this.#wanted === this.#epoch) return;
    if (this.#epoch !== null) {
      this.#epoch = null;
      await this.#engine.stop();
    }
    const epoch = this.#wanted;
    if (epoch === null) return;
    this.#epoch = epoch;
    this.#writes.begin();
    this.#engine.start();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#look();
    await this.#turn;
  }
}
