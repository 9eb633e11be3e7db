import { HIT } from '../cache/step.ts';
import { TOMBSTONE } from '../log/records.ts';
import type { StoredEvent, SubscribeStreamOptions, SubscriptionMessage } from './api.ts';
import { FloorSearch, runSearch } from './lookup.ts';
import { resolveLinks } from './links.ts';
import { checkNumber, checkReadableName, isMetastream } from './names.ts';
import { type PageSource, readNumber, readPage } from './read-stream.ts';
import { countRead, deletedError, type StoreContext, viewOf } from './store-context.ts';
import type { StreamView } from './stream-state.ts';
import { closedError, isAborted, type Waiters } from './waiters.ts';

/**
 * A subscription pulls pages. Its waiter is armed before the state is looked at, so what is written after that look
 * wakes it, and what was written before is in the page: nothing is missed and nothing comes twice.
 */
export async function* subscribeToStream(context: StoreContext, waiters: Waiters, stream: string, options: SubscribeStreamOptions): AsyncGenerator<SubscriptionMessage, void, undefined> {
  const { signal } = options;
  let from = await startOf(context, stream, options.after);
  const waiter = waiters.add(stream);
  try {
    let isLive = false;
    while (!isAborted(signal)) {
      waiter.arm();
      const view = await viewOf(context, stream);
      const part = await readPart(context, view, from);
      countRead(context.meter, part.events);
      if (options.resolveLinks === true) await resolveLinks(context, part.events);
      for (const event of part.events) {
        yield { kind: 'event', event };
        if (isAborted(signal)) return;
      }
      from = Math.max(from, part.next);
      if (!part.isEnd) {
        isLive = false;
        // A page may have passed over nothing but expired events, and may not have waited for anything.
        if (part.events.length === 0) await context.clock.yield();
        continue;
      }
      if (view.isTombstoned) {
        const tombstone = await readTombstone(context, view);
        if (tombstone !== null) yield { kind: 'event', event: tombstone };
        throw deletedError(stream);
      }
      if (!isLive) yield { kind: 'caught-up' };
      isLive = true;
      await waiter.wait(signal);
      if (waiters.isClosed) throw closedError();
    }
  } finally {
    waiters.remove(waiter);
  }
}

/** Number of the first event wanted. Throws when there will never be one. */
async function startOf(context: StoreContext, stream: string, after: number | 'end'): Promise<number> {
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

function readPart(context: StoreContext, view: StreamView, from: number): Promise<Part> | Part {
  if (view.isTombstoned) return readRest(context, view, from);
  return view.isMissing ? NOTHING : readSome(context, view, from);
}

async function readSome(context: StoreContext, source: PageSource, from: number): Promise<Part> {
  const page = await readPage(context, source, { direction: 'forward', from, count: context.options.subscriptionPageEvents });
  return { events: page.events, next: page.nextEventNumber, isEnd: page.isEnd };
}

/** What was written between the last page and the tombstone: the state says only that the stream is deleted. */
async function readRest(context: StoreContext, view: StreamView, from: number): Promise<Part> {
  const search = new FloorSearch(view.key, TOMBSTONE - 1);
  if (await runSearch(search, context.lookup) !== HIT) return NOTHING;
  return readSome(context, { key: view.key, lastNumber: search.entry.version, metadata: view.metadata, expired: view.expired }, from);
}

async function readTombstone(context: StoreContext, view: StreamView): Promise<StoredEvent | null> {
  return isMetastream(view.key.name) ? null : readNumber(context, view.key, TOMBSTONE);
}
