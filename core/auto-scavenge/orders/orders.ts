import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { LastReply, NoReply, ScavengeOrder, StartReply, StopReply } from '../../ports/nodes.ts';
import type { LastScavenge, ScavengeControl, ScavengeOptions, ScavengeView } from '../../scavenge/api.ts';
import type { StoredEvent } from '../../streams/api.ts';
import { parseFact } from '../facts.ts';
import { CYCLES_STREAM } from '../auto-scavenge-streams.ts';
import type { CyclesStore } from '../auto-scavenge-streams.ts';

/**
 * The node's side of the cluster's orders. Orders may come late, twice and in any sequence, from a leader that is none
 * any more. Two rules keep one node at a time:
 *
 * - Of each cycle the highest attempt that was seen counts. A lower one is refused, a repeat has the answer that the
 *   first one had, and an order to stop makes all before it late.
 * - A run that was ordered ends when no leader has asked for it in a long time: by then the leader has not heard of
 *   this node either, will count it as lost, and go on with the next.
 */
interface OrdersParts {
  readonly scavenger: Pick<ScavengeControl & ScavengeView, 'start' | 'stop' | 'current' | 'last'>;
  /** This node's replica of the log, or the log itself. */
  readonly store: CyclesStore;
  /**
   * Resolves when the replica has all that the log held at the call. In a cluster nothing is started before: an order
   * may have lain in a process that stood still, and what was decided since need not have come here yet. Left out where
   * the store has the log itself.
   */
  readonly refresh?: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether this node leads a cluster of several: then it takes no orders. */
  readonly leadsOthers: () => boolean;
  /** After this time without being asked for, an ordered run ends; null for never. `leaseOf` gives it for a cluster. */
  readonly leaseMs: number | null;
}

/** Cycles that are remembered. */
const CYCLES_MAX = 16;
/** A run gets this part of the time after which a node counts as lost. */
const LEASE_SHARE = 1 / 4;

export function leaseOf(nodeLostAfterMs: number): number {
  return nodeLostAfterMs * LEASE_SHARE;
}

interface Seen {
  /** The highest attempt. */
  attempt: number;
  /** The start that this attempt made; null when it was to stop, or has failed. */
  start: Promise<{ readonly scavengeId: string }> | null;
  /** The run of the last start. */
  scavengeId: string | null;
}

export class ScavengeOrders {
  readonly #parts: OrdersParts;
  /** By cycle, the newest last. */
  readonly #cycles = new Map<string, Seen>();
  /** The run that only goes on while it is asked for. */
  #leased: { readonly scavengeId: string; readonly clusterScavengeId: string; askedMs: number } | null = null;
  /** The run that ended because no leader asked for it. */
  #abandoned: string | null = null;

  constructor(parts: OrdersParts) {
    this.#parts = parts;
  }

  /**
   * Starts a run, or says which one this order has started. Errors: `late_order` (data: clusterScavengeId, attempt,
   * seen), `bad_option`, those of `ScavengeControl.start`, and of the log where it can't be asked.
   */
  async start(order: ScavengeOrder, options: ScavengeOptions = {}): Promise<{ readonly scavengeId: string }> {
    checkOrder(order);
    if (this.#parts.leadsOthers())
      throw new SkuaError('late_order', 'This node leads the cluster, and takes no orders.', { ...order });
    const seen = this.#see(order);
    if (seen.attempt > order.attempt) throw late(order, seen.attempt);
    if (seen.start === null) {
      const start = this.#start(order, seen, options);
      seen.start = start;
      // After a failure a repeat is a new beginning.
      start.catch(() => {
        if (seen.start === start) seen.start = null;
      });
    }
    return seen.start;
  }

  async #start(order: ScavengeOrder, seen: Seen, options: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
    const { scavenger, store, clock, refresh } = this.#parts;
    await refresh?.();
    const known = await orderInStream(store, order);
    if (known.isLate) throw late(order, known.attempt);
    if (known.scavengeId !== null) return { scavengeId: known.scavengeId };
    // An order to stop may have come while the stream was read.
    if (seen.attempt > order.attempt) throw late(order, seen.attempt);
    const { scavengeId } = await scavenger.start(options);
    seen.scavengeId = scavengeId;
    this.#leased = { scavengeId, clusterScavengeId: order.clusterScavengeId, askedMs: clock.monotonicMs() };
    return { scavengeId };
  }

  /**
   * Stops the run of the order's cycle and resolves when it has ended. Errors: `scavenge_not_found` when none goes on,
   * `late_order`.
   */
  async stop(order: ScavengeOrder, scavengeId: string | null): Promise<string> {
    checkOrder(order);
    const seen = this.#see(order);
    if (seen.attempt > order.attempt) throw late(order, seen.attempt);
    const starting = seen.start;
    seen.start = null;
    await starting?.catch(() => {});
    const { scavenger } = this.#parts;
    const current = scavenger.current();
    if (current === null || (current !== seen.scavengeId && current !== scavengeId)) {
      throw new SkuaError('scavenge_not_found', 'No scavenge of this cycle is running here.', { ...order, scavengeId });
    }
    return scavenger.stop(current);
  }

  /**
   * A leader waits for the run of this order. When the run's time has run out that comes too late: this process stood
   * still, and may have been given up.
   */
  asked(order: ScavengeOrder): void {
    const leased = this.#leased;
    if (
      leased?.clusterScavengeId !== order.clusterScavengeId ||
      this.#cycles.get(order.clusterScavengeId)?.attempt !== order.attempt
    )
      return;
    if (!this.#hasRunOut(leased.askedMs)) leased.askedMs = this.#parts.clock.monotonicMs();
  }

  #hasRunOut(askedMs: number): boolean {
    const { clock, leaseMs } = this.#parts;
    return leaseMs !== null && clock.monotonicMs() - askedMs >= leaseMs;
  }

  /** As `ScavengeView.last`, but a run that ended because no leader asked for it was interrupted, not stopped. */
  last(): LastScavenge | null {
    const last = this.#parts.scavenger.last();
    return last !== null && last.scavengeId === this.#abandoned && last.result === 'Stopped'
      ? { ...last, result: 'Interrupted' }
      : last;
  }

  /** Begins to end a run that no leader has asked for in a long time. To be called every few seconds. */
  endAbandoned(): void {
    const { scavenger, log } = this.#parts;
    const leased = this.#leased;
    if (
      leased === null ||
      scavenger.current() !== leased.scavengeId ||
      this.#abandoned === leased.scavengeId ||
      !this.#hasRunOut(leased.askedMs)
    )
      return;
    const { scavengeId, clusterScavengeId } = leased;
    log.warn('AUTO-SCAVENGE: the cluster no longer asks about the scavenge it ordered: stopping it', {
      scavengeId,
      clusterScavengeId,
    });
    this.#abandoned = scavengeId;
    scavenger.stop(scavengeId).catch((error: unknown) => {
      if (!isSkuaError(error, 'scavenge_not_found'))
        log.error('AUTO-SCAVENGE: a scavenge could not be stopped', { scavengeId, error: String(error) });
    });
  }

  /** What is known of the order's cycle, with this order taken in. */
  #see({ clusterScavengeId, attempt }: ScavengeOrder): Seen {
    let seen = this.#cycles.get(clusterScavengeId);
    if (seen === undefined) {
      for (const old of this.#cycles.keys()) if (this.#cycles.size >= CYCLES_MAX) this.#cycles.delete(old);
      seen = { attempt, start: null, scavengeId: null };
      this.#cycles.set(clusterScavengeId, seen);
    } else if (attempt > seen.attempt) {
      seen.attempt = attempt;
      seen.start = null;
    }
    return seen;
  }
}

function checkOrder({ clusterScavengeId, attempt }: ScavengeOrder): void {
  if (clusterScavengeId === '' || clusterScavengeId.length > 64)
    throw new SkuaError('bad_option', 'clusterScavengeId must be the id of a cycle.', { option: 'clusterScavengeId' });
  if (!Number.isSafeInteger(attempt) || attempt < 0)
    throw new SkuaError('bad_option', `attempt is ${attempt}; it must be a whole number of 0 or more.`, {
      option: 'attempt',
      value: attempt,
    });
}

function late(order: ScavengeOrder, seen: number): SkuaError {
  return new SkuaError(
    'late_order',
    `This order is out of date: attempt ${seen} of the cycle was already received, this one is ${order.attempt}.`,
    { ...order, seen },
  );
}

/** Events behind an order's own that are looked at. More than these follow an order only when it is late. */
const LOOK_AHEAD_EVENTS = 16;

interface OrderInStream {
  /** Something was decided after this order. */
  readonly isLate: boolean;
  /** Number of what was decided. */
  readonly attempt: number;
  /** The run that the order has started already, or null. */
  readonly scavengeId: string | null;
}

/**
 * What the stream of cycles says about an order to start, so that a node that has forgotten its orders in a restart
 * still knows the late ones. The attempt of an order is the number of its event. A replica that lags behind shows less,
 * never anything wrong.
 */
export async function orderInStream(store: CyclesStore, { attempt }: ScavengeOrder): Promise<OrderInStream> {
  let events: readonly StoredEvent[] = [];
  try {
    ({ events } = await store.readStream(CYCLES_STREAM, {
      direction: 'forward',
      from: attempt + 1,
      count: LOOK_AHEAD_EVENTS,
    }));
  } catch (error) {
    if (!isSkuaError(error, 'stream_not_found') && !isSkuaError(error, 'stream_deleted')) throw error;
  }
  for (const event of events) {
    const fact = parseFact(event.type, event.data);
    // New members don't change what was ordered.
    if (fact === null || fact.type === '$cluster-members-changed') continue;
    return fact.type === '$node-scavenge-started'
      ? started(events, event, fact.scavengeId)
      : { isLate: true, attempt: event.number, scavengeId: null };
  }
  return { isLate: false, attempt, scavengeId: null };
}

/** The order was carried out; it is late if that is over. */
function started(events: readonly StoredEvent[], event: StoredEvent, scavengeId: string): OrderInStream {
  const later = events.find(({ number, type }) => number > event.number && type !== '$cluster-members-changed');
  return later === undefined
    ? { isLate: false, attempt: event.number, scavengeId }
    : { isLate: true, attempt: later.number, scavengeId: null };
}

/** What is asked of the orders of a node. */
export type AskedOrders = Pick<ScavengeOrders, 'start' | 'stop' | 'asked' | 'last'>;

export const NO_ANSWER: NoReply = { kind: 'unreachable', reason: 'no answer in time' };

/** A node's answer to an order to start. Never rejects. */
export async function startReply(orders: AskedOrders, order: ScavengeOrder): Promise<StartReply> {
  try {
    return { kind: 'started', scavengeId: (await orders.start(order)).scavengeId };
  } catch (error) {
    if (isSkuaError(error, 'scavenge_in_progress') || isSkuaError(error, 'backup_running')) return { kind: 'busy' };
    return isSkuaError(error, 'late_order') && error.data.seen !== undefined
      ? { kind: 'late' }
      : { kind: 'failed', reason: String(error) };
  }
}

export function lastReply(orders: AskedOrders, order: ScavengeOrder | null): LastReply {
  if (order !== null) orders.asked(order);
  const last = orders.last();
  return { kind: 'last', scavengeId: last?.scavengeId ?? null, result: last?.result ?? 'Unknown' };
}

/** A node's answer to an order to stop, when the run has ended. Never rejects. */
export async function stopReply(
  orders: AskedOrders,
  order: ScavengeOrder,
  scavengeId: string | null,
): Promise<StopReply> {
  try {
    await orders.stop(order, scavengeId);
    return { kind: 'stopped' };
  } catch (error) {
    return isSkuaError(error, 'scavenge_not_found') ? { kind: 'stopped' } : { kind: 'failed', reason: String(error) };
  }
}
