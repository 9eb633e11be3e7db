import { get } from '../../api/page-client.ts';
import { ApiError } from '../../api/problem-text.ts';
import type { EntryDocument, PageDocument } from '../../../../../handlers/documents/streams.ts';

/**
 * Pages of a stream or of `$all`, without the data of the events: a page of large ones costs no more than any other.
 */

/** What is read from. */
export interface Source {
  /** `/streams/orders`, `/streams/%24all`. */
  readonly base: string;
  /** Of the filter of `$all`, or the conditions on its events. */
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly resolvesLinks: boolean;
}

export interface Row {
  readonly key: string;
  /** Of the event in the stream that is read, or of the link there; null beyond all numbers (the tombstone). */
  readonly number: number | null;
  readonly stream: string;
  readonly type: string;
  readonly id: string;
  readonly writtenAt: string;
  readonly isJson: boolean;
  readonly isRedacted: boolean;
  /** What a resolved link leads to. */
  readonly target: { readonly stream: string; readonly number: number } | null;
  /** It is a link to what is gone. */
  readonly isTargetGone: boolean;
}

export interface Page {
  /** Newest first. */
  readonly rows: readonly Row[];
  /** Where the next older page begins, going backward; null at the oldest event. */
  readonly older: string | null;
  /** Where what is newer begins, going forward. */
  readonly newer: string | null;
}

export type Direction = 'forward' | 'backward';

export function pagePath({ base }: Source, at: string, direction: Direction, count: number): string {
  return `${base}/${at}/${direction}/${count}`;
}

/** `waitSeconds`: what is not there yet is waited for. */
export async function readPage(
  source: Source,
  at: string,
  direction: Direction,
  count: number,
  { signal, waitSeconds = 0 }: { readonly signal?: AbortSignal; readonly waitSeconds?: number } = {},
): Promise<Page> {
  const read = (resolves: boolean) =>
    get<PageDocument>(pagePath(source, at, direction, count), {
      query: { embed: 'rich', ...source.query },
      timeoutMs: (waitSeconds + ANSWER_SECONDS) * 1_000,
      ...(signal !== undefined && { signal }),
      headers: {
        'es-resolvelinktos': String(resolves),
        ...(waitSeconds > 0 && { 'es-longpoll': String(waitSeconds) }),
      },
    });
  const feed = await read(source.resolvesLinks);
  let { entries } = feed;
  const gone = new Set<EntryDocument>();
  if (entries.some(({ eventId }) => eventId === undefined)) {
    // Of a link whose target is gone only the links themselves tell more.
    const links = await readAgain(source, at, direction, count, signal);
    entries = entries.map((entry, i) => {
      const link = links?.entries[i];
      if (entry.eventId !== undefined || link === undefined || links!.entries.length !== entries.length) return entry;
      gone.add(link);
      return link;
    });
  }
  return {
    rows: entries.map((entry) => rowOf(entry, gone.has(entry))),
    older: placeOf(feed, 'next'),
    newer: placeOf(feed, 'previous'),
  };
}

/**
 * A page of a filter ends early where the node has looked at as much of the log as it does for one answer. So many are
 * put together until one is full; then the reader has to ask for more.
 */
const FULL_PAGE_READS_MAX = 16;

/** A page that was put together of several. */
export interface FullPage extends Page {
  /** Not full, and yet there may be more: the reads were used up. */
  readonly isCut: boolean;
  /** Where each of those that hold events was read, for their previews. */
  readonly parts: readonly { readonly at: string; readonly count: number }[];
}

/** Backward, or forward, until `count` events are found, or there are no more. */
export async function readFullPage(
  source: Source,
  at: string,
  direction: Direction,
  count: number,
  signal?: AbortSignal,
): Promise<FullPage> {
  const isBackward = direction === 'backward';
  const parts: { readonly at: string; readonly count: number }[] = [];
  let whole: Page | null = null;
  for (let reads = 0, from = at; ;) {
    const wanted: number = count - (whole?.rows.length ?? 0);
    const page: Page = await readPage(source, from, direction, wanted, signal === undefined ? {} : { signal });
    if (page.rows.length > 0) parts.push({ at: from, count: wanted });
    whole = whole === null ? page : isBackward ? joined(whole, page) : joined(page, whole);
    const next: string | null = isBackward ? page.older : page.newer;
    // Forward it always leads on: the end is where that is the same place again.
    const isFull = whole.rows.length >= count || next === null || next === from;
    if (isFull || ++reads >= FULL_PAGE_READS_MAX) return { ...whole, parts, isCut: !isFull };
    from = next;
  }
}

function joined(newer: Page, older: Page): Page {
  return { rows: [...newer.rows, ...older.rows], older: older.older, newer: newer.newer };
}

const ANSWER_SECONDS = 30;

async function readAgain(
  source: Source,
  at: string,
  direction: Direction,
  count: number,
  signal: AbortSignal | undefined,
): Promise<PageDocument | null> {
  try {
    return await get<PageDocument>(pagePath(source, at, direction, count), {
      query: { embed: 'rich', ...source.query },
      headers: { 'es-resolvelinktos': 'false' },
      ...(signal !== undefined && { signal }),
    });
  } catch (error) {
    if (error instanceof ApiError && error.code === 'aborted') throw error;
    return null;
  }
}

function rowOf(entry: EntryDocument, isTargetGone: boolean): Row {
  const { positionStreamId: stream = '', positionEventNumber: number = null, streamId = '', eventNumber = 0 } = entry;
  const isLink = entry.eventId !== undefined && (streamId !== stream || eventNumber !== number);
  return {
    key: entry.eventId === undefined ? `${entry.title} ${entry.updated}` : `${number}@${stream}`,
    number: number === null || !Number.isSafeInteger(number) ? null : number,
    stream,
    type: entry.eventType ?? '$>',
    id: entry.eventId ?? '',
    writtenAt: entry.updated,
    isJson: entry.isJson === true,
    isRedacted: entry.isRedacted === true,
    target: isLink ? { stream: streamId, number: eventNumber } : null,
    isTargetGone: isTargetGone || entry.eventId === undefined,
  };
}

/**
 * Where a link of a feed leads. Its host and what stands in front of the stream are those by which the node was asked,
 * not the page's.
 */
function placeOf(feed: PageDocument, relation: string): string | null {
  const link = feed.links.find((one) => one.relation === relation);
  return link === undefined ? null : (/\/([^/]+)\/(?:forward|backward)\/\d+(?:\?.*)?$/.exec(link.uri)?.[1] ?? null);
}
