import { brokenInvariant, type ErrorCode, isSkuaError, SkuaError } from '../base/errors.ts';
import type { Meter } from '../ports/meter.ts';
import { AppendDecider } from './append-decider.ts';
import type { Conditions } from './conditions.ts';
import { AppendGroup } from './append-group.ts';
import { AppendQueue, type AppendRequest, type EventTypes, VERDICT, type Verdict } from './append-request.ts';
import { applyCommitted, type CommittedParts, type CommittedRecords } from './committed/committed.ts';
import { GroupCommitDelay } from './group-commit-delay.ts';
import type { EventStoreDeps, EventStoreOptions } from './store-context.ts';
import type { Lookup } from './lookup/lookup.ts';
import { RepeatCheck } from './repeat-check.ts';
import { SharedLogPolicy } from './shared-log-policy.ts';
import { closedError } from './subscriptions.ts';

/**
 * Why a group takes no further request: none waits or they have to wait, the rest of the chunk is too small, or the
 * chunk is to end here.
 */
type Ending = 'open' | 'chunk-full' | 'chunk-ends';
/** Errors of a group after which the log goes on as before. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'disk_full',
  'io_error',
  'batch_too_large',
  'commit_outcome_unknown',
  'storage_unreachable',
  'storage_throttled',
  'storage_denied',
  'bucket_not_found',
  'wrong_region',
  'clock_skewed',
]);

interface AppenderParts {
  readonly deps: EventStoreDeps;
  readonly options: EventStoreOptions;
  readonly lookup: Lookup;
  readonly types: EventTypes;
  /** The parts that learn of a group once it is durable. */
  readonly committed: CommittedParts;
  readonly conditions: Conditions;
}

/** The one owner of the log's end: takes waiting requests in order and commits them in groups. */
export class Appender {
  readonly #deps: EventStoreDeps;
  readonly #options: EventStoreOptions;
  readonly #committed: CommittedParts;
  readonly #queue: AppendQueue;
  readonly #group: AppendGroup;
  readonly #decider: AppendDecider;
  /** Null where all writes to the log go through here. */
  readonly #shared: SharedLogPolicy | null;
  /** Null there, too: a sync is too short to wait for anything. */
  readonly #delay: GroupCommitDelay | null;
  /** Since when the first of those that wait for the next group has been waiting; monotonic. */
  #waitingSinceMs = 0;
  #running: Promise<void> | null = null;
  /** Why nothing can be written any more. */
  #stopped: unknown = null;
  /** The chunk is to be completed before anything else is written. */
  #mustComplete = false;

  constructor({ deps, options, lookup, types, committed, conditions }: AppenderParts) {
    const { states, recent } = committed;
    this.#deps = deps;
    this.#options = options;
    this.#committed = committed;
    this.#queue = new AppendQueue(options.appendsQueuedMax, options.appendQueueBytesMax);
    this.#group = new AppendGroup(deps.ids, recent, types, options.groupBytesMax);
    this.#decider = new AppendDecider({
      states,
      recent,
      repeat: new RepeatCheck(lookup, recent, options.idLookbackEvents),
      log: deps.commitLog,
      conditions,
    });
    this.#shared =
      deps.commitLog.shared === undefined ? null : new SharedLogPolicy(deps.commitLog.shared, this.#group, this.#queue);
    this.#delay = this.#shared === null ? null : new GroupCommitDelay(deps.clock);
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Requests that wait; any number where they fill a group, which no others can enter then. */
  #waiting(): number {
    const { groupRequestsMax, groupBytesMax } = this.#options;
    return this.#queue.length >= groupRequestsMax || this.#queue.bytes >= groupBytesMax ? Infinity : this.#queue.length;
  }

  /** Takes a request in. The answer comes by its `resolve` and `reject`. */
  enqueue(request: AppendRequest): void {
    const refusal = this.#stopped ?? this.#queue.refusalOf(request);
    if (refusal !== null) request.reject(refusal);
    else this.#search(request);
  }

  /** What the condition of a request lacks is read while others are decided. */
  #search(request: AppendRequest): void {
    const searching = request.kind === 'append-to-streams' ? (request.search?.prepare() ?? null) : null;
    if (searching === null) {
      this.#admit(request);
      return;
    }
    this.#queue.hold(request);
    searching.then(
      () => {
        this.#queue.release(request);
        if (this.#stopped === null) this.#admit(request);
        else request.reject(this.#stopped);
      },
      (error: unknown) => {
        this.#queue.release(request);
        request.reject(error);
      },
    );
  }

  #admit(request: AppendRequest): void {
    this.#queue.push(request);
    if (this.#queue.length === 1) this.#waitingSinceMs = this.#deps.clock.monotonicMs();
    this.#delay?.arrived(this.#waiting());
    // Starts reading what the check will need, so that the loop does not wait for one disk read after the other.
    const state = this.#committed.states.load(request.owner);
    if (state instanceof Promise) state.catch(ignore);
    this.#running ??= this.#run();
  }

  /**
   * The end of the log is about to be moved by another writer's records. Never called while a group of ours is on its
   * way.
   */
  overtake(): void {
    this.#shared?.overtake();
  }

  /**
   * Takes in what another writer has committed. Where that fails nothing is written any more: it would be decided by
   * states that lack it.
   */
  follow(records: CommittedRecords): void {
    this.overtake();
    try {
      applyCommitted(records, this.#committed);
    } catch (error) {
      throw this.#giveUp(error);
    }
  }

  /** Ends the writing: what is in flight is finished, what waits is rejected. */
  async close(): Promise<void> {
    this.#stop(closedError());
    await this.#running;
  }

  #stop(error: unknown): void {
    this.#stopped ??= error;
    this.#queue.rejectAll(this.#stopped);
    this.#delay?.end();
  }

  /**
   * Before each group the process looks at its sockets once. So writers that are there at the same time share a sync,
   * however quick that is, and so do clients in this process that wait for their answer before they write again; a lone
   * writer waits for nothing.
   */
  async #run(): Promise<void> {
    const { clock } = this.#deps;
    for (await clock.yield(); this.#queue.length > 0; await clock.yield()) {
      const delay = this.#delay?.begin(this.#waiting()) ?? null;
      if (delay !== null) await delay;
      // Requests that waited may have been rejected meanwhile.
      if (this.#queue.length > 0) await this.#round();
    }
    this.#running = null;
  }

  /**
   * One group: begun at the end of the log, filled with requests that are decided one after the other, made durable,
   * made known, answered.
   */
  async #round(): Promise<void> {
    const group = this.#group;
    const shared = this.#shared;
    try {
      const ready = this.#ready();
      this.#begin(group);
      if (ready !== null) {
        const isTaken = await ready;
        this.#begin(group);
        // The log has gone on unseen meanwhile, or takes nothing: those that wait by now have the next round.
        if (!isTaken || !this.#committed.times.isKnown || shared?.isLettingIn === true) {
          shared?.leave();
          return;
        }
      }
      if (this.#mustComplete) {
        await this.#completeChunk(group);
        if (shared?.isLettingIn === true) {
          shared.leave();
          return;
        }
      }
      const collected = this.#collect(group, null);
      const ending = await (typeof collected === 'string' ? collected : this.#collectSlowly(group, collected));
      if (shared !== null) await shared.confirm();
      // Other code has had a turn since the last look, and from here to the log none has.
      if (shared !== null && !shared.leave()) shared.putBack();
      else {
        if (group.length > 0) await this.#commit(group, ending === 'chunk-ends');
        if (ending !== 'open') this.#mustComplete = true;
        if (ending === 'chunk-ends') await this.#endChunk();
      }
    } catch (error) {
      shared?.leave();
      if (shared !== null && isSkuaError(error, 'commit_lost')) await shared.tryAgain(this.#stopped);
      else if (shared !== null && isSkuaError(error, 'commit_not_applied')) await shared.leaveToOthers();
      else await this.#fail(group, error);
    }
    for (const request of group.requests) request.settle();
  }

  /**
   * Null when log and index take a group, else what to wait for; false where they don't, and all that waited were
   * refused. Nothing was begun then, so that the log goes on as before.
   */
  #ready(): Promise<boolean> | null {
    const waited = this.#shared?.ready() ?? this.#committed.times.ready() ?? this.#deps.index.ready();
    if (waited === null) return null;
    return waited.then(
      () => true,
      (error: unknown) => {
        // Each of them would only wait as long again.
        this.#queue.rejectAll(error);
        return false;
      },
    );
  }

  #begin(group: AppendGroup): void {
    group.begin(this.#deps.commitLog.end, this.#committed.times.next());
    this.#shared?.begin();
  }

  /**
   * Fills the group with requests, of which the decider knows `begun` already. A promise: the first one that waits
   * needs that.
   */
  #collect(group: AppendGroup, begun: AppendRequest | null): Ending | Promise<unknown> {
    const { groupRequestsMax, groupBytesMax } = this.#options;
    for (let request = this.#queue.peek(); request !== undefined; request = this.#queue.peek()) {
      if (
        group.requests.length >= groupRequestsMax ||
        (group.length > 0 && group.length + request.bytes > groupBytesMax)
      )
        return 'open';
      if (request !== begun) this.#decider.begin();
      const verdict = this.#decide(request, group);
      if (typeof verdict !== 'number') return verdict;
      if (verdict === VERDICT.FULL) return 'chunk-full';
      if (verdict === VERDICT.WAIT) return 'open';
      if (verdict === VERDICT.AGAIN) {
        this.#queue.shift();
        this.#search(request);
        continue;
      }
      this.#take(request, group);
      if (request.endsChunk && verdict === VERDICT.NEW) return 'chunk-ends';
    }
    return 'open';
  }

  /** Goes on with the group each time that what was missing is there. */
  async #collectSlowly(group: AppendGroup, missing: Promise<unknown>): Promise<Ending> {
    let collected: Ending | Promise<unknown> = missing;
    while (typeof collected !== 'string') {
      const request = this.#queue.peek()!;
      const failure = await failureOf(collected);
      // The request was rejected, or all has to be decided anew.
      if (this.#queue.peek() !== request || this.#shared?.isOvertaken === true) return 'open';
      if (failure !== null) {
        request.refuse(failure);
        this.#take(request, group);
      }
      collected = this.#collect(group, request);
    }
    return collected;
  }

  /** The request is decided: it moves from the queue into the group. */
  #take(request: AppendRequest, group: AppendGroup): void {
    this.#queue.shift();
    group.requests.push(request);
  }

  /** One step for a request. What fails refuses that request alone. */
  #decide(request: AppendRequest, group: AppendGroup): Verdict | Promise<unknown> {
    try {
      return this.#decider.decide(request, group);
    } catch (error) {
      return request.refuse(error);
    }
  }

  async #commit(group: AppendGroup, endsChunk: boolean): Promise<void> {
    const { commitLog, meter, clock } = this.#deps;
    const sinceMs = this.#waitingSinceMs;
    const startMs = clock.monotonicMs();
    this.#waitingSinceMs = startMs;
    if (group.start !== commitLog.end)
      throw brokenInvariant(`A group that begins at ${group.start} was made for a log that ends at ${commitLog.end}`, {
        start: group.start,
        end: commitLog.end,
      });
    const appended = commitLog.append(group.bytes(), endsChunk, group.marks.length > 0);
    group.rememberIds();
    await appended;
    applyCommitted(group, this.#committed);
    if (this.#shared !== null) await this.#shared.settled();
    this.#delay?.answered(group.requests.length, this.#queue.length, startMs);
    measureGroup(meter, group, { sinceMs, startMs, endMs: clock.monotonicMs() });
  }

  /**
   * Completes the chunk behind a write that asks for it. The write is durable whatever becomes of this; the next round
   * tries again.
   */
  async #endChunk(): Promise<void> {
    try {
      await this.#deps.commitLog.completeChunk();
      this.#mustComplete = false;
    } catch (error) {
      this.#deps.log.warn('The chunk could not be completed behind a scavenge point; the next write will try again.', {
        error,
      });
    }
  }

  /** Completes the ongoing chunk, and lets the group start in the next one. */
  async #completeChunk(group: AppendGroup): Promise<void> {
    try {
      await this.#deps.commitLog.completeChunk();
    } catch (error) {
      // One request must get the error, or the queue would wait for ever.
      const request = this.#queue.peek();
      if (request !== undefined) this.#take(request, group);
      throw error;
    }
    this.#mustComplete = false;
    this.#begin(group);
  }

  /** Nothing of the group became durable, as far as is known: every request in it gets the error. */
  async #fail(group: AppendGroup, error: unknown): Promise<void> {
    group.withdraw();
    for (const request of group.requests) request.refuse(error);
    await this.#shared?.settled().catch(ignore);
    if (isSkuaError(error) && PASSING.has(error.code)) {
      if (group.requests.length === 0) this.#rejectFirst(error);
      return;
    }
    const reason = this.#giveUp(error);
    for (const request of group.requests) request.refuse(reason);
  }

  /** Nothing is written any more, for the reason that is returned. */
  #giveUp(error: unknown): SkuaError {
    const reason =
      error instanceof SkuaError
        ? error
        : new SkuaError(
            'writer_stopped',
            'Writing has stopped after an unexpected error: restart the node, and report the cause.',
            {},
            error,
          );
    this.#deps.log.error('Writing has stopped.', { error: reason });
    this.#stop(reason);
    return reason;
  }

  #rejectFirst(error: unknown): void {
    const request = this.#queue.peek();
    if (request === undefined) return;
    this.#queue.shift();
    request.reject(error);
  }
}

const WRITTEN = { activity: 'written' };
const WRITER = { name: 'Writer' };

/**
 * Monotonic times of a group: since when its first request waited, when it went to the log, when it was durable and
 * visible.
 */
interface GroupTimes {
  readonly sinceMs: number;
  readonly startMs: number;
  readonly endMs: number;
}

/** Metrics of one group commit. Its latency is that of the request that waited longest. */
function measureGroup(meter: Meter, group: AppendGroup, { sinceMs, startMs, endMs }: GroupTimes): void {
  meter.observe('eventstore_append_duration_seconds', (endMs - sinceMs) / 1_000);
  meter.observe('eventstore_append_group_requests', group.requests.length);
  meter.observe('eventstore_writer_flush_size_max', group.length);
  meter.observe('eventstore_writer_flush_duration_max_seconds', (endMs - startMs) / 1_000);
  meter.observe('eventstore_queue_queueing_duration_max_seconds', (startMs - sinceMs) / 1_000, WRITER);
  meter.count('eventstore_io_events_total', group.events.count, WRITTEN);
  meter.count('eventstore_io_bytes_total', group.length, WRITTEN);
}

function ignore(): void {}

/** Null where the promise is kept. */
async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return null;
  } catch (error) {
    return error;
  }
}
