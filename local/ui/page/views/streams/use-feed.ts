import { useEffect, useRef, useState } from 'preact/hooks';
import { connection } from '../../api/connection-state.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { readFullPage, readPage } from './event-feed.ts';
import type { Page, Row, Source } from './event-feed.ts';
import { readPreviews } from './previews.ts';
import type { Previews } from './previews.ts';
import { useSeen } from './use-seen.ts';

/** One page of a stream or of `$all`; the newest one goes on growing while it is followed. */
export interface FeedState {
  /** Null until the first page is there. */
  readonly page: Page | null;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  readonly previews: Previews;
  /** Keys of what came while it was looked at. */
  readonly fresh: ReadonlySet<string>;
  /** The node is asked for what comes, and answers. */
  readonly isLive: boolean;
  /** More came at once than is shown: this stands between what was read and what came. */
  readonly hasSkipped: boolean;
}

/** Rows beyond a page that stay while a stream is followed. */
const FOLLOWED_ROWS_MAX = 500;
/** Events that are taken at once of what came; beyond, the newest page is read anew. */
const CATCH_UP_EVENTS = 200;
const WAIT_SECONDS = 20;
/** Between two questions: a flood costs three pages a second and no more. */
const PAUSE_MS = 350;
const RETRY_MS = 2_000;

const NOTHING: FeedState = {
  page: null,
  error: null,
  isLoading: true,
  previews: new Map(),
  fresh: new Set(),
  isLive: false,
  hasSkipped: false,
};

/** `from`: the newest event shown, null for the newest there is. `key` names the source. */
export function useFeed(
  key: string,
  source: Source,
  from: string | null,
  count: number,
  isFollowed: boolean,
): FeedState & { reload(): void } {
  const [state, setState] = useState(NOTHING);
  const [attempt, setAttempt] = useState(0);
  const isSeen = useSeen();
  const shown = useRef('');
  /** Where what comes begins; null until the newest page is there. */
  const newer = useRef<string | null>(null);

  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    // Of another source nothing may stay in sight; of the same one the old page does until the new one is there.
    const isOther = shown.current !== key;
    shown.current = key;
    setState((last) => (isOther ? NOTHING : { ...last, isLoading: true }));
    newer.current = null;
    let isShown = false;
    void (async () => {
      try {
        const page = await readFullPage(source, from ?? 'head', 'backward', count, signal);
        newer.current = page.newer;
        isShown = true;
        setState((last) => ({
          ...NOTHING,
          page,
          previews: isOther ? NOTHING.previews : keptOf(last.previews, page.rows),
          isLoading: false,
        }));
        for (const part of page.parts) {
          const previews = await readPreviews(source, part.at, 'backward', part.count, signal);
          setState((last) => ({ ...last, previews: new Map([...last.previews, ...previews]) }));
        }
      } catch (thrown) {
        if (signal.aborted) return;
        const error = errorOf(thrown);
        // Without the beginnings of its events a page is still a page.
        if (isShown) return;
        // A stream that is not there yet may be followed all the same.
        const isAbsent = error.code === 'stream_not_found' && from === null;
        if (isAbsent) newer.current = '0';
        setState({
          ...NOTHING,
          error,
          isLoading: false,
          page: isAbsent ? { rows: [], older: null, newer: '0' } : null,
        });
      }
    })();
    return () => ending.abort();
  }, [key, from, count, attempt]);

  const isReady = state.page !== null && !state.isLoading;
  const mayFollow = isFollowed && from === null && isReady && isSeen;
  useEffect(() => {
    if (!mayFollow || newer.current === null) return;
    const ending = new AbortController();
    void followed(source, newer, state.page!.rows, count, ending.signal, setState, () =>
      setAttempt((last) => last + 1),
    );
    return () => ending.abort();
  }, [key, count, mayFollow, attempt]);

  return { ...state, isLive: state.isLive && mayFollow, reload: () => setAttempt(attempt + 1) };
}

type SetState = (change: (last: FeedState) => FeedState) => void;

async function followed(
  source: Source,
  newer: { current: string | null },
  first: readonly Row[],
  count: number,
  signal: AbortSignal,
  setState: SetState,
  onLost: () => void,
): Promise<void> {
  let rows = first;
  setState((last) => ({ ...last, isLive: true }));
  while (!signal.aborted) {
    try {
      const from = newer.current!;
      const page = await readPage(source, from, 'forward', CATCH_UP_EVENTS, { signal, waitSeconds: WAIT_SECONDS });
      if (page.newer !== null) newer.current = page.newer;
      const isFlood = page.rows.length >= CATCH_UP_EVENTS;
      if (isFlood || page.rows.length + rows.length > count + FOLLOWED_ROWS_MAX) {
        // The newest is what is wanted, not all that leads there, and not all that ever was.
        const head = await readFullPage(source, 'head', 'backward', count, signal);
        newer.current = head.newer;
        rows = head.rows;
        setState((last) => ({
          ...last,
          page: head,
          fresh: isFlood ? NOTHING.fresh : new Set(page.rows.map(({ key }) => key)),
          previews: keptOf(last.previews, head.rows),
          isLive: true,
          hasSkipped: last.hasSkipped || isFlood,
        }));
        for (const part of head.parts) await addPreviews(source, part.at, 'backward', part.count, signal, setState);
      } else if (page.rows.length > 0) {
        const known = new Set(rows.map(({ key }) => key));
        rows = [...page.rows.filter(({ key }) => !known.has(key)), ...rows];
        const shown = rows;
        setState((last) => withNewer(last, page, shown));
        await addPreviews(source, from, 'forward', CATCH_UP_EVENTS, signal, setState);
      }
      setState((last) => (last.isLive ? last : { ...last, isLive: true }));
      await pause(PAUSE_MS, signal);
    } catch (thrown) {
      if (signal.aborted) return;
      const error = errorOf(thrown);
      if (!error.isPassing) {
        // Deleted, or no longer allowed: the page is asked for anew, and says why.
        onLost();
        return;
      }
      setState((last) => ({ ...last, isLive: false }));
      do await pause(RETRY_MS, signal);
      while (connection.peek() !== 'ok' && !signal.aborted);
    }
  }
}

async function addPreviews(
  source: Source,
  at: string,
  direction: 'forward' | 'backward',
  count: number,
  signal: AbortSignal,
  setState: SetState,
): Promise<void> {
  // Without the beginnings of its events a page is still a page.
  const previews = await readPreviews(source, at, direction, count, signal).catch(() => new Map<string, string>());
  setState((last) => ({ ...last, previews: keptOf(new Map([...last.previews, ...previews]), last.page?.rows ?? []) }));
}

function withNewer(last: FeedState, came: Page, rows: readonly Row[]): FeedState {
  if (last.page === null) return last;
  return { ...last, error: null, page: { ...last.page, rows }, fresh: new Set(came.rows.map(({ key }) => key)) };
}

function keptOf(previews: Previews, rows: readonly Row[]): Previews {
  return new Map(rows.flatMap(({ key }) => (previews.has(key) ? [[key, previews.get(key)!] as const] : [])));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}
