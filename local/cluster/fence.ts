import { AsyncLocalStorage } from 'node:async_hooks';
import type { HeldWrite, MemberLog, Patience, Writer } from '../../core/cluster/api.ts';
import { carriedOf, newOrder, OWN, STAYS } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import type { Carried, Order, WritesElsewhere } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { Authorize, EventStore, StoreWrite, StoreWritten } from '../../core/streams/api.ts';
import { layer, performWrite } from '../../core/streams/layer/layer.ts';
import type { Fence, EpochGuard } from '../../handlers/http/cluster-feature.ts';

type EpochOf = Pick<MemberLog, 'epoch'>;

/**
 * Rule 13 of core/cluster/README.md: what another member has passed on is decided, in its turn, only while the epoch in
 * which it was sent is the newest in the log, and this member wrote that. The log itself proves it: a write that takes
 * its place in front of a commit has seen all commits before, and with them every epoch. Whichever member sent it, no
 * write takes its place that has waited for too long (`Patience`).
 */
export class EpochFence implements Fence {
  readonly #log: EpochOf;
  readonly #instanceId: string;
  readonly #patience: Patience;
  /** The request that is being handled; nothing where a client of this member, or the member itself, is at work. */
  readonly #passages = new AsyncLocalStorage<EpochGuardOfWrite | OwnRequest>();

  constructor(log: EpochOf, instanceId: string, patience: Patience) {
    this.#log = log;
    this.#instanceId = instanceId;
    this.#patience = patience;
  }

  guard(epochNumber: number | null, held: HeldWrite): EpochGuardOfWrite {
    return new EpochGuardOfWrite(this.#log, this.#instanceId, epochNumber, held);
  }

  run<T>(epochNumber: number | null, held: HeldWrite, work: (guard: EpochGuard) => T): T {
    const guard = this.guard(epochNumber, held);
    return this.#passages.run(guard, work, guard);
  }

  own<T>(writer: () => Writer, isGone: () => boolean, work: () => T): T {
    return this.#passages.run({ writer, isGone, order: newOrder() }, work);
  }

  /**
   * The store for what is written in the handling of requests. What goes on for longer than a request, and may have
   * been begun in one (the audit, the calls of webhooks, schedules), gets the store itself: it must not inherit the
   * epoch of the member that came first.
   */
  storeOf(store: EventStore, elsewhere: WritesElsewhere): EventStore {
    return layer(store, { write: (write) => this.#write(store, write, elsewhere) });
  }

  /**
   * What another member has passed on is written under its passage; all else goes to the member that leads, where that
   * is another one, for whom the request names, and is held from when it is written.
   */
  #write(store: EventStore, write: StoreWrite, elsewhere: WritesElsewhere): Promise<StoreWritten> {
    const guard = this.#passages.getStore() ?? null;
    if (guard instanceof EpochGuardOfWrite) return guard.passed(performWrite(store, write, guard.authorize));
    const order = guard?.order ?? null;
    const carried = elsewhere.takes(order) ? carriedFor(guard, write) : null;
    if (carried === null) {
      const held = this.#patience.begin(STAYS);
      const here = performWrite(store, write, () => held.refusal());
      if (order !== null) order.here = here;
      return here;
    }
    const held = this.#patience.begin(guard?.isGone ?? STAYS);
    return elsewhere.write(order ?? newOrder(), {
      write: carried,
      held,
      here: () => performWrite(store, write, () => held.refusal()),
    });
  }
}

/** A request of a client's own. */
interface OwnRequest {
  readonly writer: () => Writer;
  readonly isGone: () => boolean;
  readonly order: Order;
}

class EpochGuardOfWrite implements EpochGuard {
  readonly #log: EpochOf;
  readonly #instanceId: string;
  readonly #number: number | null;
  readonly #held: HeldWrite;
  hasWritten = false;

  constructor(log: EpochOf, instanceId: string, number: number | null, held: HeldWrite) {
    this.#log = log;
    this.#instanceId = instanceId;
    this.#number = number;
    this.#held = held;
  }

  get isOpen(): boolean {
    if (this.#number === null) return true;
    const { epoch } = this.#log;
    return epoch !== null && epoch.number === this.#number && epoch.leaderInstanceId === this.#instanceId;
  }

  readonly authorize: Authorize = () => (this.isOpen ? this.#expired() : this.#closed(this.#number!));

  /** A write that was begun behind it. */
  async passed<T>(write: Promise<T>): Promise<T> {
    const result = await write;
    this.hasWritten = true;
    return result;
  }

  /** Of a request of several steps the first ones may be in the log. */
  #expired(): SkuaError | null {
    const refusal = this.#held.refusal();
    return refusal === null || !this.hasWritten
      ? refusal
      : new SkuaError(
          'commit_outcome_unknown',
          'The request took so long that only part of it was carried out: check the result and send it again.',
          {},
          refusal,
        );
  }

  #closed(epoch: number): SkuaError {
    // Epochs only grow: behind this one, or with the same one of another member, it never opens again. One that is
    // still to come into the copy may open it.
    const isFinal = (this.#log.epoch?.number ?? -1) >= epoch;
    return new SkuaError(
      'not_leader',
      `This member is not the leader of epoch ${epoch}, in which the request was sent to it. Ask the current leader.`,
      { epoch, isFinal },
    );
  }
}

/**
 * The write as another member is sent it; null where what is asked before can't be said as a value, so that this member
 * decides.
 */
function carriedFor(guard: OwnRequest | null, write: StoreWrite): Carried | null {
  const by = guard === null ? OWN : guard.writer();
  const authorize = write.writes.find((each) => each.authorize !== undefined)?.authorize;
  return authorize === undefined || authorize.unchanged !== undefined || by.asks === 'list'
    ? carriedOf(write, by, authorize?.unchanged)
    : null;
}
