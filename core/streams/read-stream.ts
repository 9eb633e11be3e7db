import { HIT, MISS } from '../log/log-reader.ts';
import type { ReadStreamOptions, StoredEvent, StreamMetadata, StreamPage } from './api.ts';
import { CeilingSearch, FloorSearch, type Lookup, runSearch, type StreamKey } from './lookup.ts';
import { PageScan, commitPositionOf } from './page-scan.ts';
import type { StoreContext } from './store-context.ts';
import { createdAtMs, storedEvent } from './stored-event.ts';
import { type Visibility, visibilityOf } from './visibility.ts';

/** What a page is read of: a stream up to an event number. */
export interface PageSource {
  readonly key: StreamKey;
  readonly lastNumber: number;
  readonly metadata: StreamMetadata;
}

/** One page of a stream, links not resolved (api.ts, StreamPage). */
export async function readPage(context: StoreContext, source: PageSource, options: Pick<ReadStreamOptions, 'direction' | 'from' | 'count'>): Promise<StreamPage> {
  const { lastNumber, metadata } = source;
  const from = options.from === 'end' ? lastNumber : options.from;
  const visible = visibilityOf(lastNumber, metadata, context.clock.nowMs());
  const part = options.direction === 'forward'
    ? await readUpwards(context, source, from, options.count, visible)
    : await readDownwards(context, source, from, options.count, visible);
  return { stream: source.key.name, events: part.events, from, lastEventNumber: lastNumber, nextEventNumber: part.next, isEnd: part.isEnd, metadata };
}

interface PagePart {
  readonly events: StoredEvent[];
  readonly next: number;
  readonly isEnd: boolean;
}

async function readUpwards(context: StoreContext, source: PageSource, from: number, count: number, visible: Visibility): Promise<PagePart> {
  const { key, lastNumber } = source;
  const to = Math.min(from + count - 1, lastNumber);
  const start = Math.max(from, visible.minimum);
  const scan = await collect(context, key, start, to, visible);
  if (to >= lastNumber) return { events: scan.events, next: lastNumber + 1, isEnd: true };
  if (scan.events.length > 0) return { events: scan.events, next: to + 1, isEnd: false };
  // Nothing to see here: the next page starts where there is something, so that readers don't walk through the dark.
  const first = scan.sawExpired
    ? await firstAlive(context, source, to + 1, visible.oldestMs)
    : await firstAtOrAbove(context, key, Math.max(to + 1, visible.minimum), lastNumber);
  return { events: scan.events, next: Math.min(first, lastNumber + 1), isEnd: first > lastNumber };
}

async function readDownwards(context: StoreContext, source: PageSource, from: number, count: number, visible: Visibility): Promise<PagePart> {
  const { key, lastNumber } = source;
  const top = Math.min(from, lastNumber);
  const bottom = Math.max(top - count + 1, visible.minimum);
  const scan = await collect(context, key, bottom, top, visible);
  const events = scan.events.reverse();
  // Events are written in the order of time: below one that has expired all have.
  if (bottom <= visible.minimum || scan.sawExpired) return { events, next: -1, isEnd: true };
  if (events.length > 0) return { events, next: bottom - 1, isEnd: false };
  const search = new FloorSearch(key, bottom - 1);
  const next = await runSearch(search, context.lookup) === HIT && search.entry.version >= visible.minimum ? search.entry.version : -1;
  return { events, next, isEnd: next < 0 };
}

async function collect(context: StoreContext, key: StreamKey, from: number, to: number, visible: Visibility): Promise<PageScan> {
  const scan = new PageScan(key, from, to, visible.oldestMs);
  if (from <= to) {
    for (;;) {
      const outcome = scan.step(context.lookup, context.options.readSliceEvents);
      if (outcome === HIT) break;
      if (outcome === MISS) await context.lookup.fill();
      else await context.clock.yield();
    }
  }
  scan.release();
  return scan;
}

/** The first existing number in [from, last], last + 1 when there is none. */
async function firstAtOrAbove(context: StoreContext, key: StreamKey, from: number, last: number): Promise<number> {
  const search = new CeilingSearch(key, from, last);
  return await runSearch(search, context.lookup) === HIT ? search.entry.version : last + 1;
}

/** The first number in [from, last] whose event has not expired, last + 1 when all have: a binary search, as time grows with the number. */
async function firstAlive(context: StoreContext, source: PageSource, from: number, oldestMs: number): Promise<number> {
  let low = from;
  let high = source.lastNumber + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = await timeAtOrAbove(context, source.key, middle, high - 1);
    if (found === null || found.createdMs >= oldestMs) high = middle;
    else low = found.number + 1;
  }
  return low > source.lastNumber ? low : firstAtOrAbove(context, source.key, low, source.lastNumber);
}

async function timeAtOrAbove(context: StoreContext, key: StreamKey, from: number, to: number): Promise<{ number: number; createdMs: number } | null> {
  const search = new CeilingSearch(key, from, to);
  for (;;) {
    const outcome = search.step(context.lookup);
    if (outcome === HIT) return { number: search.entry.version, createdMs: createdAtMs(context.lookup.frame, context.lookup.fields) };
    if (outcome !== MISS) return null;
    await context.lookup.fill();
  }
}

/** The event with this number if readers may see it, else null. */
export async function readVisible(context: StoreContext, source: PageSource, number: number): Promise<StoredEvent | null> {
  const visible = visibilityOf(source.lastNumber, source.metadata, context.clock.nowMs());
  if (number < visible.minimum || number > source.lastNumber) return null;
  const event = await readNumber(context, source.key, number);
  return event === null || event.createdMs + event.createdTicks / 10_000 < visible.oldestMs ? null : event;
}

/** The event with this number, whatever its visibility; null when there is none. */
export async function readNumber(context: StoreContext, key: StreamKey, number: number): Promise<StoredEvent | null> {
  const { lookup } = context;
  const search = new CeilingSearch(key, number, number);
  for (;;) {
    const outcome = search.step(lookup);
    if (outcome === HIT) return foundEvent(lookup, key, number);
    if (outcome !== MISS) return null;
    await lookup.fill();
  }
}

function foundEvent(lookup: Lookup, key: StreamKey, number: number): StoredEvent {
  return storedEvent(lookup.frame, lookup.fields, key.name, number, commitPositionOf(lookup));
}
