import { HIT, isMiss, type Miss } from '../base/step.ts';
import type { ReadStreamOptions, StoredEvent, StreamMetadata, StreamPage } from './api.ts';
import { CeilingSearch, FloorSearch, type Lookup, runSearch, type StreamKey } from './lookup/lookup.ts';
import type { PageBytes } from '../base/page-bytes.ts';
import { commitPositionOf, PageScan, storedEvent } from './page-scan.ts';
import { isEmptied } from '../log/format/redaction.ts';
import { type KnownStretches, Retention } from './format/retention.ts';
import type { StoreContext } from './store-context.ts';

/** What a page is read of: a stream up to an event number. */
export interface PageSource {
  readonly key: StreamKey;
  readonly lastNumber: number;
  readonly metadata: StreamMetadata;
  /** What earlier pages found expired. Asked for where there is a maximum age. */
  readonly expired: KnownStretches;
}

/**
 * One page of a stream, links not resolved (api.ts, StreamPage). It has to be read again where `bytes` lacked room for
 * it.
 */
export async function readPage(
  context: StoreContext,
  source: PageSource,
  options: Pick<ReadStreamOptions, 'direction' | 'from' | 'count'>,
  bytes: PageBytes,
): Promise<StreamPage> {
  const { lastNumber, metadata } = source;
  const from = options.from === 'end' ? lastNumber : options.from;
  const retention = Retention.forReaders(metadata, lastNumber, context.clock.nowMs());
  const part =
    options.direction === 'forward'
      ? await readUpwards(context, source, { from, count: options.count, retention, bytes })
      : await readDownwards(context, source, { from, count: options.count, retention, bytes });
  return {
    stream: source.key.name,
    events: part.events,
    from,
    lastEventNumber: lastNumber,
    nextEventNumber: part.next,
    isEnd: part.isEnd,
    isCut: bytes.isFull,
    metadata,
  };
}

interface AskedPart {
  readonly from: number;
  readonly count: number;
  readonly retention: Retention;
  readonly bytes: PageBytes;
}

interface PagePart {
  readonly events: StoredEvent[];
  readonly next: number;
  readonly isEnd: boolean;
}

/**
 * A page all of whose numbers are too old begins with the first event that is not, as the reference has it: a reader
 * may take an empty page for the end.
 */
async function readUpwards(
  context: StoreContext,
  source: PageSource,
  { from, count, retention, bytes }: AskedPart,
): Promise<PagePart> {
  const { key, lastNumber } = source;
  const to = Math.min(from + count - 1, lastNumber);
  const lowest = Math.max(from, retention.firstNumber);
  const start = retention.hasAge ? source.expired.above(lowest, retention) : lowest;
  const scan = await scanned(context, new PageScan(context.lookup, key, start, to, retention, 'events', bytes), bytes);
  const { events } = scan;
  if (scan.cutAt >= 0) return { events, next: scan.cutAt, isEnd: false };
  if (scan.sawExpired && events.length === 0)
    source.expired.note(start, to + 1, scan.newestMs, scan.newestTicks, retention);
  if (to >= lastNumber) return { events, next: lastNumber + 1, isEnd: true };
  if (events.length > 0) return { events, next: to + 1, isEnd: false };
  // Nothing to see here: the next page starts where there is something, so that readers don't walk through the dark.
  const above = Math.max(to + 1, retention.firstNumber);
  if (!retention.hasAge) return ledOn(events, await firstAtOrAbove(context, key, above, lastNumber), lastNumber);
  const first = await firstAlive(context, source, above, retention);
  // What count and truncation hide is an empty page all the same; and what the limit of the search left is for the next
  // one.
  if (!first.isAlive || to < retention.firstNumber) return ledOn(events, first.number, lastNumber);
  return readUpwards(context, source, { from: first.number, count, retention, bytes });
}

function ledOn(events: StoredEvent[], number: number, lastNumber: number): PagePart {
  return { events, next: Math.min(number, lastNumber + 1), isEnd: number > lastNumber };
}

async function readDownwards(
  context: StoreContext,
  source: PageSource,
  { from, count, retention, bytes }: AskedPart,
): Promise<PagePart> {
  const { key, lastNumber } = source;
  const top = Math.min(from, lastNumber);
  const bottom = Math.max(top - count + 1, retention.firstNumber);
  // Files are read upwards faster. Only where not all has room on the page it matters which events come first.
  let scan = await scanned(context, new PageScan(context.lookup, key, bottom, top, retention, 'events', bytes), bytes);
  if (scan.cutAt < 0) scan.events.reverse();
  else if (!bytes.lacksRoom) {
    bytes.restart();
    scan = await scanned(
      context,
      new PageScan(context.lookup, key, bottom, top, retention, 'events-downwards', bytes),
      bytes,
    );
  }
  const { events } = scan;
  if (scan.cutAt >= 0) return { events, next: scan.cutAt, isEnd: false };
  if (scan.sawExpired && events.length === 0)
    source.expired.note(bottom, top + 1, scan.newestMs, scan.newestTicks, retention);
  if (bottom <= retention.firstNumber) return { events, next: -1, isEnd: true };
  if (events.length > 0 && !scan.sawExpired) return { events, next: bottom - 1, isEnd: false };
  const next = retention.hasAge
    ? await lastAlive(context, source, bottom - 1, retention)
    : await lastAtOrBelow(context, key, bottom - 1);
  return next < retention.firstNumber ? { events, next: -1, isEnd: true } : { events, next, isEnd: false };
}

async function scanned(context: StoreContext, scan: PageScan, bytes: PageBytes | null): Promise<PageScan> {
  try {
    for (;;) {
      const outcome = scan.step(context.options.readSliceEvents);
      if (outcome === HIT) return scan;
      if (isMiss(outcome)) await outcome;
      else await context.clock.yield();
      bytes?.checkReader();
    }
  } finally {
    scan.release();
  }
}

/** The first existing number in [from, last], last + 1 when there is none. */
async function firstAtOrAbove(context: StoreContext, key: StreamKey, from: number, last: number): Promise<number> {
  const search = new CeilingSearch(key, from, last);
  return from <= last && (await runSearch(search, context.lookup)) === HIT ? search.entry.version : last + 1;
}

/** The last existing number from this one down, -1 when there is none. */
async function lastAtOrBelow(context: StoreContext, key: StreamKey, number: number): Promise<number> {
  const search = new FloorSearch(key, number);
  return number >= 0 && (await runSearch(search, context.lookup)) === HIT ? search.entry.version : -1;
}

/** Numbers looked at together at first and at most, where an event that has not expired is searched. */
const WINDOW_MIN = 64;
const WINDOW_MAX = 1_024;

/**
 * The first number from this one on whose event has not expired (`isAlive`), or the one that the limit left to the next
 * page; last + 1 at the end. Each event is asked for its own time, as a clock may have been set back; what was found is
 * remembered.
 */
async function firstAlive(
  context: StoreContext,
  { key, lastNumber, expired }: PageSource,
  from: number,
  retention: Retention,
): Promise<{ readonly number: number; readonly isAlive: boolean }> {
  let at = expired.above(from, retention);
  let window = WINDOW_MIN;
  for (let left = context.options.expiredScanEventsMax; at <= lastNumber && left > 0;) {
    const start = await firstAtOrAbove(context, key, at, lastNumber);
    const to = Math.min(lastNumber, start + Math.min(window, left) - 1);
    const scan = await scanned(context, new PageScan(context.lookup, key, start, to, retention, 'first', null), null);
    const next = scan.alive < 0 ? Math.max(start, to + 1) : scan.alive;
    expired.note(at, next, scan.newestMs, scan.newestTicks, retention);
    if (scan.alive >= 0) return { number: next, isAlive: true };
    at = expired.above(next, retention);
    left -= Math.max(1, scan.examined);
    window = Math.min(window * 2, WINDOW_MAX);
  }
  return { number: at, isAlive: false };
}

/** As `firstAlive`, downwards to the first number that count and truncation leave; what lies below it is the end. */
async function lastAlive(
  context: StoreContext,
  { key, expired }: PageSource,
  from: number,
  retention: Retention,
): Promise<number> {
  const { firstNumber } = retention;
  let at = expired.below(from, retention);
  let window = WINDOW_MIN;
  for (let left = context.options.expiredScanEventsMax; at >= firstNumber && left > 0;) {
    const start = await lastAtOrBelow(context, key, at);
    const to = Math.max(firstNumber, start - Math.min(window, left) + 1);
    const scan = await scanned(context, new PageScan(context.lookup, key, to, start, retention, 'last', null), null);
    const next = scan.alive < 0 ? Math.min(start, to - 1) : scan.alive;
    expired.note(next + 1, at + 1, scan.newestMs, scan.newestTicks, retention);
    if (scan.alive >= 0) return next;
    at = expired.below(next, retention);
    left -= Math.max(1, scan.examined);
    window = Math.min(window * 2, WINDOW_MAX);
  }
  return at;
}

/** The event with this number if readers may see it, else null. */
export async function readVisible(
  context: StoreContext,
  source: PageSource,
  number: number,
  hasPayload = true,
): Promise<StoredEvent | null> {
  const search = new VisibleSearch(source, number, hasPayload);
  for (;;) {
    const found = search.step(context);
    if (!(found instanceof Promise)) return found;
    await found;
  }
}

/** As `readVisible`, in steps: to a miss the same step follows once it has resolved. */
export class VisibleSearch {
  readonly #source: PageSource;
  readonly #number: number;
  readonly #hasPayload: boolean;
  readonly #search: CeilingSearch;

  constructor(source: PageSource, number: number, hasPayload: boolean) {
    this.#source = source;
    this.#number = number;
    this.#hasPayload = hasPayload;
    this.#search = new CeilingSearch(source.key, number, number);
  }

  step(context: StoreContext): StoredEvent | null | Miss {
    const { lookup } = context;
    const { key, metadata, lastNumber } = this.#source;
    const retention = Retention.forReaders(metadata, lastNumber, context.clock.nowMs());
    if (this.#number < retention.firstNumber || this.#number > lastNumber) return null;
    const outcome = this.#search.step(lookup);
    if (isMiss(outcome)) return outcome;
    if (outcome !== HIT) return null;
    const event = foundEvent(lookup, key, this.#number, this.#hasPayload);
    return event !== null && retention.ruleAgainst(this.#number, event.createdMs, event.createdTicks) === null
      ? event
      : null;
  }

  /**
   * Finds where the event lies, and begins to load it: a miss to wait for before the next call, null when there is
   * nothing more to begin.
   */
  prepare({ lookup }: StoreContext): Miss | null {
    const outcome = this.#search.prepare(lookup);
    return isMiss(outcome) ? outcome : null;
  }
}

/** The event with this number, whatever its visibility; null when there is none. */
export async function readNumber(
  context: StoreContext,
  key: StreamKey,
  number: number,
  hasPayload = true,
): Promise<StoredEvent | null> {
  const { lookup } = context;
  const search = new CeilingSearch(key, number, number);
  for (;;) {
    const outcome = search.step(lookup);
    if (outcome === HIT) return foundEvent(lookup, key, number, hasPayload);
    if (!isMiss(outcome)) return null;
    await outcome;
  }
}

function foundEvent(lookup: Lookup, key: StreamKey, number: number, hasPayload: boolean): StoredEvent | null {
  return isEmptied(lookup.frame, lookup.fields)
    ? null
    : storedEvent(lookup, key.name, number, commitPositionOf(lookup), hasPayload);
}
