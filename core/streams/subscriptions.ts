import { HIT } from '../cache/step.ts';
import { isSkuaError, SkuaError } from '../errors.ts';
import { TOMBSTONE } from '../log/records.ts';
import type { AllPosition, StoredEvent, SubscribeAllOptions, SubscribeStreamOptions, SubscriptionMessage } from './api.ts';
import { resolveLinks } from './links.ts';
import { FloorSearch, runSearch } from './lookup.ts';
import { checkNumber, checkReadableName, isMetastream } from './names.ts';
import { PageBytes, type PageLimits } from './page-bytes.ts';
import { checkPosition, lastBefore, readAllPart } from './read-all.ts';
import { type PageSource, readNumber, readPage } from './read-stream.ts';
import { countRead, deletedError, pageLimits, type StoreContext, viewOf } from './store-context.ts';
import type { StreamView } from './stream-state.ts';

/** Someone who waits for a stream, or for the log. A wake-up that comes while nobody waits is kept for the next wait. */
class Waiter {
  readonly stream: string | null;
  #isWoken = false;
  #resume: (() => void) | null = null;

  constructor(stream: string | null) {
    this.stream = stream;
  }

  /** Forgets earlier wake-ups. Call it before reading what they would announce. */
  arm(): void {
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    const resume = this.#resume;
    this.#resume = null;
    resume?.();
  }

  /** Resolves at the next wake-up since `arm`, or when the signal aborts. */
  async wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#isWoken || signal?.aborted === true) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resume = resolve;
    signal?.addEventListener('abort', resolve as () => void, { once: true });
    try {
      await promise;
    } finally {
      this.#resume = null;
      signal?.removeEventListener('abort', resolve as () => void);
    }
  }
}

/** All who wait. Only readers of streams that were written to are woken. */
export class Waiters {
  readonly #max: number;
  readonly #streams = new Map<string, Set<Waiter>>();
  readonly #log = new Set<Waiter>();
  #count = 0;
  isClosed = false;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number { return this.#count; }

  /** A waiter for a stream, or for the log when `stream` is null. The caller removes it. */
  add(stream: string | null): Waiter {
    if (this.isClosed) throw closedError();
    if (this.#count >= this.#max) {
      throw new SkuaError('too_busy', `There are ${this.#max} subscriptions and waiting readers already: end some, or ask another node.`, { limit: this.#max });
    }
    this.#count++;
    const waiter = new Waiter(stream);
    if (stream === null) this.#log.add(waiter);
    else {
      let set = this.#streams.get(stream);
      if (set === undefined) this.#streams.set(stream, set = new Set());
      set.add(waiter);
    }
    return waiter;
  }

  remove(waiter: Waiter): void {
    const set = waiter.stream === null ? this.#log : this.#streams.get(waiter.stream);
    if (set === undefined || !set.delete(waiter)) return;
    this.#count--;
    if (waiter.stream !== null && set.size === 0) this.#streams.delete(waiter.stream);
  }

  wakeStream(stream: string): void {
    if (this.#streams.size === 0) return;
    for (const waiter of this.#streams.get(stream) ?? []) waiter.wake();
  }

  wakeLog(): void {
    for (const waiter of this.#log) waiter.wake();
  }

  wakeAll(): void {
    this.wakeLog();
    for (const set of this.#streams.values()) for (const waiter of set) waiter.wake();
  }

  /** Wakes everyone for the last time. */
  close(): void {
    this.isClosed = true;
    this.wakeAll();
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal !== undefined && signal.aborted;
}

export function closedError(): SkuaError {
  return new SkuaError('store_closed', 'The store has been closed: start it again.');
}

/**
 * A subscription pulls pages. Its waiter is armed before the state is looked at, so what is written after that look
 * wakes it, and what was written before is in the page: nothing is missed and nothing comes twice.
 */
export async function* subscribeToStream(context: StoreContext, waiters: Waiters, stream: string, options: SubscribeStreamOptions): AsyncGenerator<SubscriptionMessage<number>, void, undefined> {
  const { signal } = options;
  let from = await firstWanted(context, stream, options.after);
  const waiter = waiters.add(stream);
  const limits = subscriptionLimits(context, options);
  try {
    let isLive = false;
    let bytes = new PageBytes(limits);
    while (!isAborted(signal)) {
      waiter.arm();
      const view = await viewOf(context, stream);
      const part = await readStreamPart(context, view, from, bytes);
      const cut = options.resolveLinks === true && !bytes.lacksRoom ? await resolveLinks(context, part.events, bytes) : null;
      if (bytes.lacksRoom) {
        await bytes.waitForRoom();
        continue;
      }
      bytes.settle();
      countRead(context.meter, part.events);
      const hadEvents = part.events.length > 0;
      for (const event of part.events) {
        yield { kind: 'event', event };
        if (isAborted(signal)) return;
      }
      // Who waits for the next events keeps none of the last ones.
      part.events.length = 0;
      bytes = new PageBytes(limits);
      from = Math.max(from, cut === null ? part.next : cut.number);
      if (!part.isEnd || cut !== null) {
        isLive = false;
        // A page may have passed over nothing but expired events, and may not have waited for anything.
        if (!hadEvents) await context.clock.yield();
        continue;
      }
      if (view.isTombstoned) {
        const tombstone = await readTombstone(context, view);
        if (tombstone !== null) yield { kind: 'event', event: tombstone };
        throw deletedError(stream);
      }
      if (!isLive) yield { kind: 'caught-up', after: from - 1 };
      isLive = true;
      await waiter.wait(signal);
      if (waiters.isClosed) throw closedError();
    }
  } catch (error) {
    // The reading of a page has ended with the signal.
    if (!isAborted(signal) || !isSkuaError(error, 'aborted')) throw error;
  } finally {
    waiters.remove(waiter);
  }
}

/** Number of the first event wanted. Throws when there will never be one. */
async function firstWanted(context: StoreContext, stream: string, after: number | 'end'): Promise<number> {
  const refusal = checkReadableName(stream);
  if (refusal !== null) throw refusal;
  if (after !== 'end' && after !== -1) checkNumber(after);
  const view = await viewOf(context, stream);
  if (view.isTombstoned) throw deletedError(stream);
  return after === 'end' ? view.lastNumber + 1 : after + 1;
}

interface Part {
  readonly events: StoredEvent[];
  /** Number of the next event to read; may be lower than what the subscription waits for. */
  readonly next: number;
  readonly isEnd: boolean;
}

const NOTHING: Part = { events: [], next: 0, isEnd: true };

function subscriptionLimits(context: StoreContext, { signal, share }: Pick<SubscribeAllOptions, 'signal' | 'share'>): PageLimits {
  const limits = pageLimits(context, { bytesMax: context.options.subscriptionPageBytes, share });
  return signal === undefined ? limits : { ...limits, signal };
}

function readStreamPart(context: StoreContext, view: StreamView, from: number, bytes: PageBytes): Promise<Part> | Part {
  if (view.isTombstoned) return readRest(context, view, from, bytes);
  return view.isMissing ? NOTHING : readSome(context, view, from, bytes);
}

async function readSome(context: StoreContext, source: PageSource, from: number, bytes: PageBytes): Promise<Part> {
  const page = await readPage(context, source, { direction: 'forward', from, count: context.options.subscriptionPageEvents }, bytes);
  return { events: page.events, next: page.nextEventNumber, isEnd: page.isEnd };
}

/** What was written between the last page and the tombstone: the state says only that the stream is deleted. */
async function readRest(context: StoreContext, view: StreamView, from: number, bytes: PageBytes): Promise<Part> {
  const search = new FloorSearch(view.key, TOMBSTONE - 1);
  if (await runSearch(search, context.lookup) !== HIT) return NOTHING;
  return readSome(context, { key: view.key, lastNumber: search.entry.version, metadata: view.metadata, expired: view.expired }, from, bytes);
}

async function readTombstone(context: StoreContext, view: StreamView): Promise<StoredEvent | null> {
  return isMetastream(view.key.name) ? null : readNumber(context, view.key, TOMBSTONE);
}

/** As `subscribeToStream`, over the whole log. */
export async function* subscribeToAll(context: StoreContext, waiters: Waiters, options: SubscribeAllOptions): AsyncGenerator<SubscriptionMessage<AllPosition>, void, undefined> {
  const { signal, filter } = options;
  const waiter = waiters.add(null);
  const limits = subscriptionLimits(context, options);
  try {
    let isLive = false;
    let unsaid = 0;
    let { from, isAfter, seen } = await placeOf(context, options);
    let bytes = new PageBytes(limits);
    while (!isAborted(signal)) {
      waiter.arm();
      const page = { count: context.options.subscriptionPageEvents, filter, bytes };
      const part = await readAllPart(context, { from, isAfter, page, withLinks: options.resolveLinks === true });
      if (part === null) {
        await bytes.waitForRoom();
        continue;
      }
      for (const event of part.events) {
        yield { kind: 'event', event };
        if (isAborted(signal)) return;
      }
      const hadEvents = part.events.length > 0;
      part.events.length = 0;
      bytes = new PageBytes(limits);
      from = part.next;
      isAfter = false;
      seen = part.last ?? seen;
      unsaid = hadEvents ? 0 : unsaid + part.examined;
      // Else a reader that comes back would look at all that again.
      if (filter !== undefined && seen !== null && unsaid >= context.options.checkpointRecords) {
        unsaid = 0;
        yield { kind: 'checkpoint', after: seen };
      }
      if (!part.isEnd) {
        isLive = false;
        continue;
      }
      if (!isLive) yield { kind: 'caught-up', after: seen };
      isLive = true;
      await waiter.wait(signal);
      if (waiters.isClosed) throw closedError();
    }
  } catch (error) {
    // The reading of a page has ended with the signal.
    if (!isAborted(signal) || !isSkuaError(error, 'aborted')) throw error;
  } finally {
    waiters.remove(waiter);
  }
}

interface Place {
  /** Where to read on. */
  readonly from: AllPosition;
  readonly isAfter: boolean;
  /** After what the subscription is; null at the beginning. */
  readonly seen: AllPosition | null;
}

/** A position beyond the end means what is written from now on. */
async function placeOf(context: StoreContext, { after, isInclusive = false }: SubscribeAllOptions): Promise<Place> {
  const { end } = context.lookup.reader;
  if (after === 'start') return { from: { commit: 0, prepare: 0 }, isAfter: false, seen: null };
  if (after !== 'end' && after.commit <= end) {
    await checkPosition(context, after);
    if (!isInclusive) return { from: after, isAfter: true, seen: after };
    if (after.commit < end) return { from: after, isAfter: false, seen: await beforeOf(context, after.commit) };
  }
  return { from: { commit: end, prepare: 0 }, isAfter: false, seen: await beforeOf(context, end) };
}

async function beforeOf(context: StoreContext, position: number): Promise<AllPosition | null> {
  const last = await lastBefore(context, position);
  return last === null ? null : { commit: last, prepare: last };
}
