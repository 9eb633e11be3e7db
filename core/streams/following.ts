import { HIT } from '../base/step.ts';
import { isSkuaError } from '../base/errors.ts';
import { TOMBSTONE } from '../log/format/records.ts';
import type {
  AllPosition,
  StoredEvent,
  SubscribeAllOptions,
  SubscribeStreamOptions,
  SubscriptionCheckpoint,
  SubscriptionPage,
} from './api.ts';
import { CheckpointCount } from './checkpoint-count.ts';
import { checkQuery } from './event-query/event-query.ts';
import { resolveLinks } from './resolve-links.ts';
import { FloorSearch, runSearch } from './lookup/lookup.ts';
import { checkNumber, checkReadableName, deletedError, isMetastream } from './format/names.ts';
import { PageBytes, type PageLimits } from '../base/page-bytes.ts';
import { checkPosition, lastBefore, readAllPart } from './read-all.ts';
import { type PageSource, readNumber, readPage } from './read-stream.ts';
import { countRead, pageLimits, type StoreContext, viewOf } from './store-context.ts';
import type { StreamView } from './stream-state.ts';
import { closedError, type Waiters } from './subscriptions.ts';

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal !== undefined && signal.aborted;
}

const NO_CHECKPOINTS: readonly never[] = [];
/** Bytes that stand for a record where it is not known how many were jumped over. */
const RECORD_BYTES = 256;

/**
 * A subscription pulls pages. Its waiter is armed before the state is looked at, so what is written after that look
 * wakes it, and what was written before is in the page: nothing is missed and nothing comes twice.
 */
export async function* followStream(
  context: StoreContext,
  waiters: Waiters,
  stream: string,
  options: SubscribeStreamOptions,
): AsyncGenerator<SubscriptionPage<number>, void, undefined> {
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
      const cut =
        options.resolveLinks === true && !bytes.lacksRoom ? await resolveLinks(context, part.events, bytes) : null;
      if (bytes.lacksRoom) {
        await bytes.waitForRoom();
        continue;
      }
      bytes.settle();
      countRead(
        context.meter,
        part.events,
        part.events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0),
      );
      from = Math.max(from, cut === null ? part.next : cut.number);
      const { events } = part;
      const isEnd = part.isEnd && cut === null;
      const isAwaited = view.isMissing && !view.isTombstoned;
      if (isEnd && view.isTombstoned) {
        const tombstone = await readTombstone(context, view);
        if (tombstone !== null) events.push(tombstone);
        if (events.length > 0) yield { events, checkpoints: NO_CHECKPOINTS, isCaughtUp: false, after: null, isAwaited };
        throw deletedError(stream);
      }
      const isCaughtUp = isEnd && !isLive;
      isLive = isEnd;
      if (events.length > 0 || isCaughtUp) {
        yield { events, checkpoints: NO_CHECKPOINTS, isCaughtUp, after: from - 1, isAwaited };
        if (isAborted(signal)) return;
      } else if (!isEnd) {
        // A page may have passed over nothing but expired events, and may not have waited for anything.
        await context.clock.yield();
      }
      // A subscription that waits for the next events keeps none of the last ones.
      events.length = 0;
      bytes = new PageBytes(limits);
      if (!isEnd) continue;
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

function nothing(): Part {
  return { events: [], next: 0, isEnd: true };
}

function subscriptionLimits(
  context: StoreContext,
  {
    signal,
    share,
    bytesMax = context.options.subscriptionPageBytes,
  }: Pick<SubscribeAllOptions, 'signal' | 'share' | 'bytesMax'>,
): PageLimits {
  const limits = pageLimits(context, { bytesMax, share });
  return signal === undefined ? limits : { ...limits, signal };
}

function readStreamPart(context: StoreContext, view: StreamView, from: number, bytes: PageBytes): Promise<Part> | Part {
  if (view.isTombstoned) return readRest(context, view, from, bytes);
  return view.isMissing ? nothing() : readSome(context, view, from, bytes);
}

async function readSome(context: StoreContext, source: PageSource, from: number, bytes: PageBytes): Promise<Part> {
  const page = await readPage(
    context,
    source,
    { direction: 'forward', from, count: context.options.subscriptionPageEvents },
    bytes,
  );
  return { events: page.events, next: page.nextEventNumber, isEnd: page.isEnd };
}

/** What was written between the last page and the tombstone: the state says only that the stream is deleted. */
async function readRest(context: StoreContext, view: StreamView, from: number, bytes: PageBytes): Promise<Part> {
  const search = new FloorSearch(view.key, TOMBSTONE - 1);
  if ((await runSearch(search, context.lookup)) !== HIT) return nothing();
  return readSome(
    context,
    { key: view.key, lastNumber: search.entry.version, metadata: view.metadata, expired: view.expired },
    from,
    bytes,
  );
}

async function readTombstone(context: StoreContext, view: StreamView): Promise<StoredEvent | null> {
  return isMetastream(view.key.name) ? null : readNumber(context, view.key, TOMBSTONE);
}

/** As `followStream`, over the whole log. */
export async function* followAll(
  context: StoreContext,
  waiters: Waiters,
  options: SubscribeAllOptions,
): AsyncGenerator<SubscriptionPage<AllPosition>, void, undefined> {
  const { signal, filter, access } = options;
  const query = filter?.query;
  if (query !== undefined) checkQuery(query);
  const waiter = waiters.add(null);
  const limits = subscriptionLimits(context, options);
  try {
    // What an index rules out is not counted, event by event.
    const count =
      filter === undefined || query !== undefined || options.checkpoints === undefined
        ? undefined
        : new CheckpointCount(options.checkpoints);
    const checkpointRecords = Math.min(
      options.checkpoints?.intervalEvents ?? Infinity,
      context.options.checkpointRecords,
    );
    let isLive = false;
    let unsaid = 0;
    let { from, isAfter, seen } = await placeOf(context, options);
    let bytes = new PageBytes(limits);
    while (!isAborted(signal)) {
      waiter.arm();
      const page = { count: context.options.subscriptionPageEvents, filter, access, bytes, checkpoints: count };
      const part = await readAllPart(context, { from, isAfter, page, withLinks: options.resolveLinks === true });
      if (part === null) {
        await bytes.waitForRoom();
        continue;
      }
      const { events, isEnd } = part;
      const passed = query === undefined ? 0 : Math.floor((part.next.commit - from.commit) / RECORD_BYTES);
      from = part.next;
      isAfter = false;
      seen = part.last ?? seen;
      unsaid = events.length > 0 ? 0 : unsaid + Math.max(part.examined, passed);
      const isCaughtUp = isEnd && !isLive;
      isLive = isEnd;
      const isDue = count === undefined && filter !== undefined && unsaid >= checkpointRecords;
      // What was jumped over has been seen, too; a place among the events of a transaction says enough.
      if (query !== undefined && (isDue || isCaughtUp) && from.prepare === 0)
        seen = (await beforeOf(context, from.commit)) ?? seen;
      let checkpoints: readonly SubscriptionCheckpoint<AllPosition>[] = count?.found ?? NO_CHECKPOINTS;
      // Else a reader that comes back would look at all that again.
      if (isDue && seen !== null) {
        unsaid = 0;
        checkpoints = [{ behind: 0, after: seen }];
      }
      if (isCaughtUp) count?.goLive();
      if (events.length > 0 || checkpoints.length > 0 || isCaughtUp) {
        yield { events, checkpoints, isCaughtUp, after: seen, isAwaited: false };
        if (isAborted(signal)) return;
      }
      events.length = 0;
      bytes = new PageBytes(limits);
      if (!isEnd) continue;
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

interface FollowPosition {
  /** Where to read on. */
  readonly from: AllPosition;
  readonly isAfter: boolean;
  /** After what the subscription is; null at the beginning. */
  readonly seen: AllPosition | null;
}

/** A position beyond the end means what is written from now on. */
async function placeOf(
  context: StoreContext,
  { after, isInclusive = false }: SubscribeAllOptions,
): Promise<FollowPosition> {
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
