import { SkuaError } from '../../base/errors.ts';
import type { Log } from '../../ports/log.ts';
import type {
  AllFilter,
  AllPage,
  AllPosition,
  EventAccess,
  EventStore,
  ReadStreamOptions,
  StoredEvent,
  StreamInfo,
  StreamPage,
  SubscribeStreamOptions,
  SubscriptionPage,
} from '../api.ts';
import { Candidates } from '../candidates.ts';
import { followAll } from '../following.ts';
import { checkNumber, notFoundError } from '../format/names.ts';
import { viewFilter } from './view-filter.ts';
import { readAllPage } from '../read-all.ts';
import { type StoreContext, stateOf } from '../store-context.ts';
import { closedError, type Waiters } from '../subscriptions.ts';
import { asLinks } from './link-events.ts';
import { numberAt, numberOf, placeBefore, placeFrom } from './view-numbers.ts';

/** Pages of `$all` that are read for one of a view while they bring nothing. */
const EMPTY_PAGES_MAX = 8;
/** Streams under the names of views that are told of, each once. */
const TOLD_MAX = 1_000;
const NO_METADATA = {};
const NO_CHECKPOINTS: readonly never[] = [];

/** Streams of links that stand nowhere in the log: reads by query of the events that they point to (README.md). */
export class LinkViews {
  readonly #context: StoreContext;
  readonly #waiters: Waiters;
  readonly #log: Log;
  readonly #told = new Set<string>();

  constructor(context: StoreContext, waiters: Waiters, log: Log) {
    this.#context = context;
    this.#waiters = waiters;
    this.#log = log;
  }

  /** As `EventStore.readStream`. The options have been checked. */
  async read(view: string, options: ReadStreamOptions): Promise<StreamPage> {
    const filter = viewFilter(view);
    if (filter === null) throw notFoundError(view);
    this.#tell(view);
    return options.direction === 'forward'
      ? this.#forward(view, filter, options)
      : this.#backward(view, filter, options);
  }

  async #forward(view: string, filter: AllFilter, options: ReadStreamOptions): Promise<StreamPage> {
    const { access, count } = options;
    const from = options.from === 'end' ? await this.#lastThere(view, filter, access) : options.from;
    const page = await this.#page(filter, options, await placeFrom(this.#context, filter, from));
    const { events } = page;
    const extra = events.length > count ? events.pop()! : null;
    const newest = events.at(-1)?.preparePosition ?? -1;
    const isEnd = extra === null && page.isEnd;
    if (newest < 0 && isEnd && from === 0) throw notFoundError(view);
    // A page with events that comes to the end has seen the last one.
    const last =
      isEnd && newest >= 0
        ? newest
        : this.#isIndexed(filter)
          ? Math.max(newest, await this.#lastThere(view, filter, access))
          : isEnd
            ? from - 1
            : await this.#highest();
    const next =
      extra !== null
        ? extra.preparePosition
        : !isEnd
          ? await numberAt(this.#context, page.next, true)
          : // Behind the last event the number stays as it is, as a link to the next page has it.
            newest >= 0
            ? newest + 1
            : Math.max(from, page.next.commit);
    return pageOf(view, options, { events, from, last, next, isEnd });
  }

  async #backward(view: string, filter: AllFilter, options: ReadStreamOptions): Promise<StreamPage> {
    const { from, access, count } = options;
    const { lookup } = this.#context;
    const place =
      from === 'end' ? { commit: lookup.reader.end, prepare: 0 } : await placeBefore(this.#context, filter, from);
    const page = await this.#page(filter, options, place);
    const { events } = page;
    const extra = events.length > count ? events.pop()! : null;
    const newest = events[0]?.preparePosition ?? -1;
    const last =
      from === 'end' && newest >= 0
        ? newest
        : newest >= 0 && !this.#isIndexed(filter)
          ? await this.#highest()
          : Math.max(newest, await this.#lastThere(view, filter, access));
    const isEnd = extra === null && page.isEnd;
    const next = extra !== null ? extra.preparePosition : isEnd ? -1 : await numberAt(this.#context, page.next, false);
    return pageOf(view, options, { events, from: from === 'end' ? last : from, last, next, isEnd });
  }

  /** With one event more than is asked for, whose number leads to the next page. */
  async #page(filter: AllFilter, options: ReadStreamOptions, from: AllPosition): Promise<AllPage> {
    const { direction, count, resolveLinks = false, bytesMax, payloads = true, addressBytes, share, access } = options;
    let at = from;
    for (let pages = 1; ; pages++) {
      const page = await readAllPage(this.#context, {
        direction,
        from: at,
        count: count + 1,
        filter,
        access,
        share,
        // A link needs nothing of what its target holds.
        payloads: resolveLinks && payloads,
        ...(bytesMax !== undefined && { bytesMax }),
        ...(addressBytes !== undefined && { addressBytes }),
      });
      if (page.events.length > 0 || page.isEnd || pages === EMPTY_PAGES_MAX) return page;
      at = page.next;
    }
  }

  /** Whether the last event is found without reading all that is behind it. */
  #isIndexed({ query }: AllFilter): boolean {
    return query !== undefined && Candidates.of(query, this.#context.attributes) !== null;
  }

  /** No event of any view has a higher number. */
  #highest(): Promise<number> {
    return numberAt(this.#context, { commit: this.#context.lookup.reader.end, prepare: 0 }, false);
  }

  /** As `#last`; `stream_not_found` where there is none. */
  async #lastThere(view: string, filter: AllFilter, access?: EventAccess): Promise<number> {
    const number = await this.#last(filter, access);
    if (number < 0) throw notFoundError(view);
    return number;
  }

  /** Number of the last event, -1 where there is none. Not found within the limits: no event has a higher number. */
  async #last(filter: AllFilter, access?: EventAccess): Promise<number> {
    const page = await this.#page(
      filter,
      { direction: 'backward', from: 'end', count: 1, access },
      { commit: this.#context.lookup.reader.end, prepare: 0 },
    );
    const last = page.events[0];
    if (last !== undefined) return last.preparePosition;
    return page.isEnd ? -1 : numberAt(this.#context, page.next, false);
  }

  async info(view: string): Promise<StreamInfo> {
    const filter = viewFilter(view);
    return {
      lastEventNumber: filter === null ? -1 : await this.#last(filter),
      isTombstoned: false,
      isSoftDeleted: false,
      metadata: NO_METADATA,
      metadataVersion: -1,
    };
  }

  /** As `EventStore.followStream`. */
  async *follow(
    view: string,
    options: SubscribeStreamOptions,
  ): AsyncGenerator<SubscriptionPage<number>, void, undefined> {
    const { after, resolveLinks = false, signal, share, access, bytesMax } = options;
    if (after !== 'end' && after !== -1) checkNumber(after);
    const filter = viewFilter(view);
    if (filter === null) {
      yield* this.#nothing(signal);
      return;
    }
    this.#tell(view);
    const start = after === 'end' ? 'end' : after < 0 ? 'start' : await placeFrom(this.#context, filter, after + 1);
    let hasSeen = false;
    for await (const page of followAll(this.#context, this.#waiters, {
      after: start,
      isInclusive: true,
      filter,
      access,
      share,
      ...(signal !== undefined && { signal }),
      ...(bytesMax !== undefined && { bytesMax }),
    })) {
      const { events, isCaughtUp } = page;
      if (events.length === 0 && !isCaughtUp) continue;
      hasSeen ||= events.length > 0;
      yield {
        events: asLinks(view, events, resolveLinks),
        checkpoints: NO_CHECKPOINTS,
        isCaughtUp,
        after: page.after === null ? -1 : await numberOf(this.#context, page.after),
        isAwaited: isCaughtUp && !hasSeen && (await this.#last(filter, access)) < 0,
      };
      if (signal?.aborted === true) return;
    }
  }

  /** Of a view whose name stands for what no event can be. */
  async *#nothing(signal: AbortSignal | undefined): AsyncGenerator<SubscriptionPage<number>, void, undefined> {
    const waiter = this.#waiters.add(null);
    try {
      yield { events: [], checkpoints: NO_CHECKPOINTS, isCaughtUp: true, after: -1, isAwaited: true };
      while (signal?.aborted !== true) {
        waiter.arm();
        await waiter.wait(signal);
        if (this.#waiters.isClosed) throw closedError();
      }
    } finally {
      this.#waiters.remove(waiter);
    }
  }

  /** Says once of a stream that it is in the log under the name of the view, and is not what is read. */
  #tell(view: string): void {
    if (this.#told.size >= TOLD_MAX || this.#told.has(view)) return;
    this.#told.add(view);
    void Promise.resolve(stateOf(this.#context, view)).then(
      ({ committed }) => {
        if (committed.lastNumber >= 0)
          this.#log.warn(
            'a stream of this name was written by a projection: reads show the view of that name instead, and its ' +
              'events only in $all',
            { stream: view, lastEventNumber: committed.lastNumber },
          );
      },
      () => {},
    );
  }
}

/** What one event of a view is read with. */
type EventOptions = Pick<ReadStreamOptions, 'resolveLinks' | 'share' | 'access'>;

/** As `EventStore.readEvent`, by a page of one event. */
export async function readLink(
  store: Pick<EventStore, 'readStream'>,
  view: string,
  number: number | 'last',
  options: EventOptions,
): Promise<StoredEvent> {
  const from = number === 'last' ? 'end' : number;
  // With no bytes to spare a page has one event, and keeps nothing of the next one.
  const { events } = await store.readStream(view, { direction: 'backward', from, count: 1, bytesMax: 0, ...options });
  const event = events[0];
  if (event !== undefined && (number === 'last' || (event.link ?? event).number === number)) return event;
  throw new SkuaError(
    'event_not_found',
    `There is no event ${number} in ${view}: its numbers are positions of the events that it points to.`,
    { stream: view, number },
  );
}

interface PageParts {
  readonly events: StoredEvent[];
  readonly from: number;
  readonly last: number;
  readonly next: number;
  readonly isEnd: boolean;
}

function pageOf(
  view: string,
  { count, resolveLinks = false }: ReadStreamOptions,
  { events, from, last, next, isEnd }: PageParts,
): StreamPage {
  return {
    stream: view,
    events: asLinks(view, events, resolveLinks),
    from,
    lastEventNumber: last,
    nextEventNumber: next,
    isEnd,
    isCut: !isEnd && events.length > 0 && events.length < count,
    hasGaps: true,
    metadata: NO_METADATA,
  };
}
