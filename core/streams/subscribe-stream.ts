import { HIT } from '../log/log-reader.ts';
import { TOMBSTONE } from '../log/records.ts';
import type { SubscribeStreamOptions, SubscriptionMessage } from './api.ts';
import { FloorSearch, runSearch } from './lookup.ts';
import { resolveLinks } from './links.ts';
import { isMetastream } from './names.ts';
import { type PageSource, readNumber, readPage } from './read-stream.ts';
import { deletedError, type StoreContext, viewOf } from './store-context.ts';
import type { StreamView } from './stream-state.ts';
import { closedError, type Waiter, type Waiters } from './waiters.ts';

/**
 * A subscription pulls pages. Its waiter is armed before the state is looked at, so what is written after that look
 * wakes it, and what was written before is in the page: nothing is missed and nothing comes twice.
 */
export async function* subscribeToStream(context: StoreContext, waiters: Waiters, stream: string, options: SubscribeStreamOptions): AsyncGenerator<SubscriptionMessage, void, undefined> {
  const waiter = waiters.add(stream);
  try {
    waiter.arm();
    const first = await viewOf(context, stream);
    if (first.isTombstoned) throw deletedError(stream);
    const from = options.after === 'end' ? first.lastNumber + 1 : options.after + 1;
    yield* follow(context, waiters, waiter, stream, from, options);
  } finally {
    waiters.remove(waiter);
  }
}

async function* follow(
  context: StoreContext, waiters: Waiters, waiter: Waiter, stream: string, start: number, options: SubscribeStreamOptions,
): AsyncGenerator<SubscriptionMessage, void, undefined> {
  const { signal } = options;
  let from = start;
  let isLive = false;
  while (signal?.aborted !== true) {
    waiter.arm();
    const view = await viewOf(context, stream);
    const page = view.isTombstoned ? await readRest(context, view, from) : view.isMissing ? NOTHING : await readSome(context, view, from);
    if (options.resolveLinks === true) await resolveLinks(context, page.events);
    for (const event of page.events) {
      yield { kind: 'event', event };
      if (signal?.aborted === true) return;
    }
    from = Math.max(from, page.next);
    if (!page.isEnd) {
      isLive = false;
      continue;
    }
    if (view.isTombstoned) {
      const tombstone = isMetastream(stream) ? null : await readNumber(context, view.key, TOMBSTONE);
      if (tombstone !== null) yield { kind: 'event', event: tombstone };
      throw deletedError(stream);
    }
    if (!isLive) yield { kind: 'caught-up' };
    isLive = true;
    await waiter.wait(signal);
    if (waiters.isClosed) throw closedError();
  }
}

interface Some {
  readonly events: Awaited<ReturnType<typeof readPage>>['events'];
  /** Number of the next event to read; may be lower than what the subscription waits for. */
  readonly next: number;
  readonly isEnd: boolean;
}

const NOTHING: Some = { events: [], next: 0, isEnd: true };

async function readSome(context: StoreContext, source: PageSource, from: number): Promise<Some> {
  const page = await readPage(context, source, { direction: 'forward', from, count: context.options.subscriptionPageEvents });
  return { events: page.events, next: page.nextEventNumber, isEnd: page.isEnd };
}

/** What was written between the last page and the tombstone: the state says only that the stream is deleted. */
async function readRest(context: StoreContext, view: StreamView, from: number): Promise<Some> {
  const search = new FloorSearch(view.key, TOMBSTONE - 1);
  if (await runSearch(search, context.lookup) !== HIT) return NOTHING;
  return readSome(context, { key: view.key, lastNumber: search.entry.version, metadata: view.metadata }, from);
}
