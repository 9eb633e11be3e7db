import { isSkuaError, SkuaError } from '../errors.ts';
import { MISS } from '../log/log-reader.ts';
import { AppendGroup } from './append-group.ts';
import { AppendPlacer, FULL, LOADING, TAKEN } from './append-placer.ts';
import { AppendQueue } from './append-queue.ts';
import type { AppendRequest } from './append-request.ts';
import type { EventStoreDeps, EventStoreOptions } from './deps.ts';
import type { Lookup } from './lookup.ts';
import { measureGroup } from './group-metrics.ts';
import { RecentIds } from './recent-ids.ts';
import type { StreamStates } from './stream-states.ts';
import { closedError, type Waiters } from './waiters.ts';

/** Microtask turns given to clients that wait for one append before they send the next. */
const TURNS_MAX = 12;
const TURN = Promise.resolve();

/** Why a group takes no further request: none waits or they have to wait, the rest of the chunk is too small, or the chunk is to end here. */
type Ending = 'open' | 'chunk-full' | 'chunk-ends';
/** The request was rejected while its state was being read. */
const GONE = 23;

/** The one owner of the log's end: takes waiting requests in order and commits them in groups. */
export class Appender {
  readonly recent: RecentIds;
  readonly #deps: EventStoreDeps;
  readonly #options: EventStoreOptions;
  readonly #lookup: Lookup;
  readonly #states: StreamStates;
  readonly #waiters: Waiters;
  readonly #queue: AppendQueue;
  readonly #group: AppendGroup;
  readonly #placer: AppendPlacer;
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
    this.#waiters = waiters;
    this.recent = new RecentIds(options.recentIds);
    this.#queue = new AppendQueue(options.appendsQueuedMax, options.appendQueueBytesMax);
    this.#group = new AppendGroup(deps.ids, this.recent, options.groupBytesMax);
    this.#placer = new AppendPlacer(lookup, states, this.recent, deps.commitLog, deps.ids);
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
    const { commitLog, clock, index } = this.#deps;
    try {
      group.begin(commitLog.end, clock.nowMs());
      const ready = index.ready();
      if (ready !== null) await ready;
      if (this.#mustComplete) await this.#completeChunk(group);
      const ending = await this.#collect(group);
      if (group.length > 0) await this.#commit(group);
      if (ending !== 'open') this.#mustComplete = true;
      if (ending === 'chunk-ends') await this.#endChunk();
    } catch (error) {
      this.#fail(group, error);
    }
    const count = group.requests.length;
    for (const request of group.requests) request.settle();
    await this.#letClientsReturn(count);
  }

  async #collect(group: AppendGroup): Promise<Ending> {
    const { groupRequestsMax, groupBytesMax } = this.#options;
    for (let request = this.#queue.peek(); request !== undefined; request = this.#queue.peek()) {
      if (group.requests.length >= groupRequestsMax || (group.length > 0 && group.length + request.bytes > groupBytesMax)) return 'open';
      this.#placer.begin();
      const placing = this.#place(request, group);
      const placed = typeof placing === 'number' ? placing : await placing;
      if (placed === FULL) return 'chunk-full';
      if (placed !== TAKEN || this.#queue.peek() !== request) return 'open';
      this.#queue.shift();
      group.requests.push(request);
      if (request.completeChunkAfter && request.error === null && !request.isRepeat) return 'chunk-ends';
    }
    return 'open';
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
        if (this.#queue.peek() !== request) return GONE;
      }
    } catch (error) {
      request.error = error;
      return TAKEN;
    }
  }

  async #commit(group: AppendGroup): Promise<void> {
    const { commitLog, index, meter, clock } = this.#deps;
    const sinceMs = this.#waitingSinceMs;
    const startMs = clock.monotonicMs();
    this.#waitingSinceMs = startMs;
    const appended = commitLog.append(group.bytes());
    group.rememberIds();
    await appended;
    group.publish(index, this.#states, this.#waiters);
    measureGroup(meter, group, { sinceMs, startMs, endMs: clock.monotonicMs() });
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
    const { commitLog, clock } = this.#deps;
    try {
      await commitLog.completeChunk();
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
    group.begin(commitLog.end, clock.nowMs());
  }

  /** Nothing of the group became durable: everyone in it gets the error. */
  #fail(group: AppendGroup, error: unknown): void {
    group.withdraw();
    for (const request of group.requests) request.error = error;
    if (isSkuaError(error, 'disk_full') || isSkuaError(error, 'io_error')) {
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
