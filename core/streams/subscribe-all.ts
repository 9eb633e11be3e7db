import type { AllPosition, SubscribeAllOptions, SubscriptionMessage } from './api.ts';
import { resolveLinks } from './links.ts';
import { readAllAfter, readAllFrom } from './read-all.ts';
import { countRead, type StoreContext } from './store-context.ts';
import { closedError, isAborted, type Waiters } from './waiters.ts';

/** As `subscribeToStream`, over the whole log. */
export async function* subscribeToAll(context: StoreContext, waiters: Waiters, options: SubscribeAllOptions): AsyncGenerator<SubscriptionMessage, void, undefined> {
  const { signal } = options;
  const waiter = waiters.add(null);
  try {
    let isLive = false;
    let { from, isAfter } = startOf(options.after, context.lookup.reader.end);
    while (!isAborted(signal)) {
      waiter.arm();
      const read = isAfter ? readAllAfter : readAllFrom;
      const { page, isEnd } = await read(context, from, context.options.subscriptionPageEvents, options.filter);
      countRead(context.meter, page.events);
      if (options.resolveLinks === true) await resolveLinks(context, page.events);
      for (const event of page.events) {
        yield { kind: 'event', event };
        if (isAborted(signal)) return;
      }
      from = page.next();
      isAfter = false;
      if (!isEnd) {
        isLive = false;
        continue;
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

/** Where to read on; a position beyond the end means what is written from now on. */
function startOf(after: AllPosition | 'start' | 'end', end: number): { from: AllPosition; isAfter: boolean } {
  if (after === 'start') return { from: { commit: 0, prepare: 0 }, isAfter: false };
  if (after === 'end' || after.commit > end) return { from: { commit: end, prepare: 0 }, isAfter: false };
  return { from: after, isAfter: true };
}
