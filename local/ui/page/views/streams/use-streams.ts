import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { useSeen } from './use-seen.ts';
import type { StreamDocument, StreamsDocument } from '../../../../../handlers/documents/streams.ts';

/** Streams as the node finds them: by reading the log backward, slice by slice. */

export interface Wanted {
  readonly recent: 'written' | 'created';
  readonly search: string;
  readonly withSystem: boolean;
}

export interface StreamsState {
  readonly streams: readonly StreamDocument[];
  readonly hidden: number;
  /** How much of the log has been looked at, from its end on; null until something has. */
  readonly looked: { readonly bytes: number; readonly ofBytes: number } | null;
  readonly isLooking: boolean;
  /** The beginning of the log is reached. */
  readonly isWhole: boolean;
  readonly error: ApiError | null;
  /** Looks until as many more are found. */
  more(count: number): void;
  stop(): void;
  refresh(): void;
}

type Known = Omit<StreamsState, 'more' | 'stop' | 'refresh'>;

const NOTHING: Known = { streams: [], hidden: 0, looked: null, isLooking: true, isWhole: false, error: null };
/** Found in the view of streams without being asked for more. */
const FIRST = 50;
/** Of one slice; the node gives no more. */
const SLICE_STREAMS_MAX = 200;
/** What the page keeps: enough to scroll for long. */
export const STREAMS_MAX = 100_000;
const TYPING_MS = 250;
const BUSY_MS = 1_000;
/** How often what is new is asked for: each time costs the node as much as reading some of its log. */
const REFRESH_MS = 30_000;

/** `first`: how many are looked for before one asks for more. */
export function useStreams(wanted: Wanted | null, first = FIRST): StreamsState {
  const [known, setKnown] = useState<Known>(NOTHING);
  const next = useRef<string | null>(null);
  const looking = useRef(new AbortController());
  const isSeen = useSeen();
  const key = wanted === null ? null : JSON.stringify(wanted);

  const look = async (count: number, from: string | null, signal: AbortSignal) => {
    setKnown((last) => ({ ...last, isLooking: true, error: null }));
    try {
      for (let left = count, at = from; left > 0;) {
        const slice = await sliceOf(wanted!, Math.min(left, SLICE_STREAMS_MAX), at, signal);
        at = slice.next;
        next.current = at;
        left -= slice.streams.length;
        const isEnd = at === null;
        setKnown((last) => ({
          ...last,
          streams: merged(last.streams, slice.streams, 'behind'),
          hidden: last.hidden + slice.hidden,
          looked: { bytes: slice.logEnd - slice.to, ofBytes: slice.logEnd },
          isWhole: isEnd,
          isLooking: left > 0 && !isEnd,
        }));
        if (isEnd) break;
      }
      setKnown((last) => ({ ...last, isLooking: false }));
    } catch (thrown) {
      if (!signal.aborted) setKnown((last) => ({ ...last, isLooking: false, error: errorOf(thrown) }));
    }
  };
  const begin = (count: number, from: string | null) => {
    looking.current.abort();
    looking.current = new AbortController();
    void look(count, from, looking.current.signal);
  };

  useEffect(() => {
    if (wanted === null) return;
    next.current = null;
    looking.current.abort();
    setKnown(NOTHING);
    const timer = setTimeout(() => begin(first, null), wanted.search === '' ? 0 : TYPING_MS);
    return () => {
      clearTimeout(timer);
      looking.current.abort();
    };
  }, [key]);

  /** What is new is put in front; what is there stays. */
  const refresh = async (signal: AbortSignal) => {
    try {
      const slice = await sliceOf(wanted!, first, null, signal);
      setKnown((last) => ({ ...last, streams: merged(last.streams, slice.streams, 'before') }));
    } catch {
      // The next time, or the button, says it.
    }
  };
  const isQuiet = wanted !== null && wanted.search === '' && isSeen && !known.isLooking && known.error === null;
  useEffect(() => {
    if (!isQuiet) return;
    const ending = new AbortController();
    const timer = setInterval(() => void refresh(ending.signal), REFRESH_MS);
    return () => {
      clearInterval(timer);
      ending.abort();
    };
  }, [isQuiet, key]);

  return {
    ...known,
    more: (count) => begin(Math.min(count, STREAMS_MAX - known.streams.length), next.current),
    stop: () => {
      looking.current.abort();
      setKnown((last) => ({ ...last, isLooking: false }));
    },
    refresh: () => {
      if (known.streams.length === 0 || known.error !== null) {
        setKnown(NOTHING);
        begin(first, null);
      } else
        void refresh(
          looking.current.signal.aborted ? (looking.current = new AbortController()).signal : looking.current.signal,
        );
    },
  };
}

async function sliceOf(
  { recent, search, withSystem }: Wanted,
  count: number,
  from: string | null,
  signal: AbortSignal,
): Promise<StreamsDocument> {
  for (;;) {
    try {
      return await get<StreamsDocument>('/admin/streams', {
        query: { recent, search, system: withSystem, count, from },
        signal,
      });
    } catch (thrown) {
      const error = errorOf(thrown);
      if (error.code !== 'too_busy' || signal.aborted) throw error;
      // Others look, too; it goes on when they are done.
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs ?? BUSY_MS));
    }
  }
}

/** Each once; what was found last says more of it. */
function merged(
  known: readonly StreamDocument[],
  found: readonly StreamDocument[],
  where: 'before' | 'behind',
): readonly StreamDocument[] {
  if (found.length === 0) return known;
  if (where === 'before') {
    const names = new Set(found.map(({ stream }) => stream));
    return [...found, ...known.filter(({ stream }) => !names.has(stream))];
  }
  const names = new Set(known.map(({ stream }) => stream));
  return [...known, ...found.filter(({ stream }) => !names.has(stream))];
}
