import { type ErrorCode, isSkuaError, SkuaError } from '../errors.ts';
import { MISS } from '../log/log-reader.ts';
import { AppendGroup } from './append-group.ts';
import { applyCommitted, type CommittedParts, type CommittedRecords } from './apply-committed.ts';
import { AppendPlacer, FULL, LOADING, TAKEN } from './append-placer.ts';
import { AppendQueue } from './append-queue.ts';
import type { AppendRequest } from './append-request.ts';
import type { EventStoreDeps, EventStoreOptions } from './deps.ts';
import type { Lookup } from './lookup.ts';
import { measureGroup } from './group-metrics.ts';
import { PastIds } from './past-ids.ts';
import { RecentIds } from './recent-ids.ts';
import { RecordTime } from './record-time.ts';
import type { StreamStates } from './stream-states.ts';
import { closedError, type Waiters } from './waiters.ts';

/** Microtask turns given to clients that wait for one append before they send the next. */
const TURNS_MAX = 12;
const TURN = Promise.resolve();

/**
 * Why a group takes no further request: none waits or they have to wait, the rest of the chunk is too small, the chunk is
 * to end here, or another writer has moved the end of the log, so that all of it must be decided anew.
 */
type Ending = 'open' | 'chunk-full' | 'chunk-ends' | 'overtaken';
/** Errors of a group after which the log goes on as before. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'disk_full', 'io_error', 'batch_too_large', 'commit_outcome_unknown', 'storage_unreachable', 'storage_throttled', 'storage_denied', 'bucket_not_found', 'wrong_region', 'clock_skewed',
]);
/** The request was rejected while its state was being read. */
const GONE = 23;

/** The one owner of the log's end: takes waiting requests in order and commits them in groups. */
export class Appender {
  readonly recent: RecentIds;
  readonly times: RecordTime;
  readonly #deps: EventStoreDeps;
  readonly #options: EventStoreOptions;
  readonly #lookup: Lookup;
  readonly #states: StreamStates;
  readonly #parts: CommittedParts;
  readonly #queue: AppendQueue;
  readonly #group: AppendGroup;
  readonly #placer: AppendPlacer;
  /** A group is being put together: nothing of it has gone to the log. */
  #isCollecting = false;
  /** Another writer has moved the end of the log meanwhile. */
  #isOvertaken = false;
  /** Since when the first of those that wait for the next group has been waiting; monotonic. */
  #waitingSinceMs = 0;
  #running: Promise<void> | null = null;
  /** Why nothing can be written any more. */
  #stopped: unknown = null;
  /** The chunk is to be completed before anything else is written. */
  #mustComplete = false;

  constructor(deps: EventStoreDeps, options: EventStoreOptions, lookup: Lookup, states: StreamStates, waiters: Waiters) {
    this.#deps = deps;
    this.#options = options;
    this.#lookup = lookup;
    this.#states = states;
    this.recent = new RecentIds(options.recentIds);
    this.times = new RecordTime(lookup, deps.clock, deps.log, deps.meter);
    this.#parts = { index: deps.index, states, recent: this.recent, times: this.times, log: deps.commitLog, waiters };
    this.#queue = new AppendQueue(options.appendsQueuedMax, options.appendQueueBytesMax);
    this.#group = new AppendGroup(deps.ids, this.recent, options.groupBytesMax);
    const past = options.idLookbackEvents === 0 ? null : new PastIds(lookup, this.recent, options.idLookbackEvents);
    this.#placer = new AppendPlacer(lookup, states, this.recent, past, deps.commitLog, deps.ids);
  }

  get queued(): number { return this.#queue.length; }

  /** Takes a request in. The answer comes by its `resolve` and `reject`. */
  enqueue(request: AppendRequest): void {
    if (this.#stopped !== null) {
      request.reject(this.#stopped);
      return;
    }
    const refusal = this.#queue.push(request);
    if (refusal !== null) {
      request.reject(refusal);
      return;
    }
    if (this.#queue.length === 1) this.#waitingSinceMs = this.#deps.clock.monotonicMs();
    // Starts reading what the check will need, so that the loop does not wait for one disk read after the other.
    const state = this.#states.load(request.owner);
    if (state instanceof Promise) state.catch(ignore);
    this.#running ??= this.#run();
  }

  /** Lets everybody know of records that are durable: of a group of ours, or of another writer. */
  apply(records: CommittedRecords): void {
    applyCommitted(records, this.#parts);
  }

  /** The end of the log is about to be moved by another writer's records. Never called while a group of ours is on its way. */
  overtake(): void {
    if (!this.#isCollecting || this.#isOvertaken) return;
    this.#group.withdraw();
    this.#isOvertaken = true;
  }

  /** Ends the writing: what is in flight is finished, what waits is rejected. */
  async close(): Promise<void> {
    this.#stop(closedError());
    await this.#running;
  }

  #stop(error: unknown): void {
    this.#stopped ??= error;
    this.#queue.rejectAll(this.#stopped);
  }

  async #run(): Promise<void> {
    // A turn for others who come in the same breath.
    await TURN;
    while (this.#queue.length > 0) await this.#round();
    this.#running = null;
  }

  async #round(): Promise<void> {
    const group = this.#group;
    try {
      const ready = this.#ready();
      this.#begin(group);
      if (ready !== null) {
        await ready;
        this.#begin(group);
        // The log has gone on unseen meanwhile, or can't be read: those that still wait have the next round.
        if (!this.times.isKnown) return;
      }
      if (this.#mustComplete) await this.#completeChunk(group);
      let ending = await this.#collect(group);
      if (this.#mustConfirm(group, ending)) ending = await this.#confirmed(group, ending);
      // Others have had a turn since the last look, and from here to the log nobody has.
      if (this.#isOvertaken) ending = 'overtaken';
      this.#isCollecting = false;
      if (ending === 'overtaken') this.#putBack(group);
      else {
        if (group.length > 0) await this.#commit(group, ending === 'chunk-ends');
        if (ending !== 'open') this.#mustComplete = true;
        if (ending === 'chunk-ends') await this.#endChunk();
      }
    } catch (error) {
      this.#isCollecting = false;
      if (isSkuaError(error, 'commit_lost')) await this.#tryAgain(group);
      else await this.#fail(group, error);
    }
    const count = group.requests.length;
    for (const request of group.requests) request.settle();
    await this.#letClientsReturn(count);
  }

  #begin(group: AppendGroup): void {
    group.begin(this.#deps.commitLog.end, this.times.next());
    this.#isCollecting = true;
    this.#isOvertaken = false;
  }

  /** Null when log and index take a group, else what to wait for. */
  #ready(): Promise<void> | null {
    const { commitLog, index } = this.#deps;
    const log = commitLog.ready?.() ?? this.times.ready();
    // Each of those that wait would only wait as long again.
    return log === null ? index.ready() : log.catch((error: unknown) => this.#queue.rejectAll(error));
  }

  async #collect(group: AppendGroup): Promise<Ending> {
    const { groupRequestsMax, groupBytesMax } = this.#options;
    for (let request = this.#queue.peek(); request !== undefined; request = this.#queue.peek()) {
      if (group.requests.length >= groupRequestsMax || (group.length > 0 && group.length + request.bytes > groupBytesMax)) return 'open';
      this.#placer.begin();
      const placing = this.#place(request, group);
      const placed = typeof placing === 'number' ? placing : await placing;
      if (this.#isOvertaken) {
        if (this.#queue.peek() === request) request.reset();
        return 'overtaken';
      }
      if (placed === FULL) return 'chunk-full';
      if (placed !== TAKEN || this.#queue.peek() !== request) return 'open';
      this.#queue.shift();
      group.requests.push(request);
      if (request.completeChunkAfter && request.error === null && !request.isRepeat) return 'chunk-ends';
    }
    return 'open';
  }

  /** Refusals and repeats may have been decided by a state that other writers have long left behind: they are told only after these were asked. */
  #mustConfirm(group: AppendGroup, ending: Ending): boolean {
    if (this.#deps.commitLog.confirm === undefined || group.length > 0 || ending === 'overtaken') return false;
    return group.requests.some(({ isConfirmed }) => !isConfirmed);
  }

  async #confirmed(group: AppendGroup, ending: Ending): Promise<Ending> {
    for (const request of group.requests) request.isConfirmed = true;
    await this.#deps.commitLog.confirm?.();
    return this.#isOvertaken ? 'overtaken' : ending;
  }

  /** Takes steps with one request until it misses nothing. Answers at once, without a promise, where it can. */
  #place(request: AppendRequest, group: AppendGroup): number | Promise<number> {
    try {
      const placed = this.#placer.step(request, group);
      return placed === MISS || placed === LOADING ? this.#placeSlowly(request, group, placed) : placed;
    } catch (error) {
      request.error = error;
      return TAKEN;
    }
  }

  async #placeSlowly(request: AppendRequest, group: AppendGroup, first: number): Promise<number> {
    try {
      for (let placed = first; ; placed = this.#placer.step(request, group)) {
        if (placed === MISS) await this.#lookup.fill();
        else if (placed === LOADING) await this.#placer.loading;
        else return placed;
        if (this.#queue.peek() !== request || this.#isOvertaken) return GONE;
      }
    } catch (error) {
      request.error = error;
      return TAKEN;
    }
  }

  async #commit(group: AppendGroup, endsChunk: boolean): Promise<void> {
    const { commitLog, meter, clock } = this.#deps;
    const sinceMs = this.#waitingSinceMs;
    const startMs = clock.monotonicMs();
    this.#waitingSinceMs = startMs;
    const appended = commitLog.append(group.bytes(), endsChunk);
    group.rememberIds();
    await appended;
    this.apply(group);
    commitLog.settled?.();
    measureGroup(meter, group, { sinceMs, startMs, endMs: clock.monotonicMs() });
  }

  /** Lets the requests of a withdrawn group wait again, before all others. */
  #putBack(group: AppendGroup): readonly AppendRequest[] {
    const requests = group.requests.splice(0);
    for (const request of requests) request.reset();
    this.#queue.putBack(requests);
    return requests;
  }

  /** Another writer was first: all checks are made again against what it has written. */
  async #tryAgain(group: AppendGroup): Promise<void> {
    group.withdraw();
    const requests = this.#putBack(group);
    try {
      if (this.#stopped !== null) throw this.#stopped;
      await this.#deps.commitLog.settled?.();
    } catch (error) {
      // They are still the first: nothing is taken from the queue meanwhile.
      for (const request of requests) {
        if (this.#queue.peek() !== request) break;
        this.#queue.shift();
        request.reject(error);
      }
    }
  }

  /** Completes the chunk behind a write that asks for it. The write is durable whatever becomes of this; the next round tries again. */
  async #endChunk(): Promise<void> {
    try {
      await this.#deps.commitLog.completeChunk();
      this.#mustComplete = false;
    } catch (error) {
      this.#deps.log.warn('The chunk could not be completed behind a scavenge point; the next write will try again.', { error });
    }
  }

  /** Completes the ongoing chunk, and lets the group start in the next one. */
  async #completeChunk(group: AppendGroup): Promise<void> {
    try {
      await this.#deps.commitLog.completeChunk();
    } catch (error) {
      // Somebody must be told, or the queue would wait for ever.
      const request = this.#queue.peek();
      if (request !== undefined) {
        this.#queue.shift();
        group.requests.push(request);
      }
      throw error;
    }
    this.#mustComplete = false;
    this.#begin(group);
  }

  /** Nothing of the group became durable, as far as anybody can tell: everyone in it gets the error. */
  async #fail(group: AppendGroup, error: unknown): Promise<void> {
    group.withdraw();
    for (const request of group.requests) request.error = error;
    await this.#deps.commitLog.settled?.()?.catch(ignore);
    if (isSkuaError(error) && PASSING.has(error.code)) {
      if (group.requests.length === 0) this.#rejectFirst(error);
      return;
    }
    const reason = error instanceof SkuaError ? error : new SkuaError('writer_stopped', 'Writing has stopped after an unexpected error: restart the node, and report the cause.', {}, error);
    for (const request of group.requests) request.error = reason;
    this.#deps.log.error('Writing has stopped.', { error: reason });
    this.#stop(reason);
  }

  #rejectFirst(error: unknown): void {
    const request = this.#queue.peek();
    if (request === undefined) return;
    this.#queue.shift();
    request.reject(error);
  }

  /**
   * Clients that wait for their answer before they write again should all be in the next group. In the same process
   * they come back within some microtasks; those behind a socket need the process to look at its sockets.
   */
  async #letClientsReturn(count: number): Promise<void> {
    for (let turn = 0; turn < TURNS_MAX && this.#queue.length < count; turn++) await TURN;
    if (count > 1 && this.#queue.length < count && this.#stopped === null) await this.#deps.clock.yield();
  }
}

function ignore(): void {}
