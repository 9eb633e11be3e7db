import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { connection } from '../../api/connection-state.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import type { LogLineLevel, LogLineView, LogView } from '../../../../../handlers/documents/node.ts';

/** The last lines of the log, and those that follow. */

export const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export interface Tail {
  readonly lines: readonly LogLineView[];
  readonly level: string;
  /** Lines that the node still has from before those. */
  readonly older: number;
  /** Lines that went before they were seen, since more were logged than the node keeps. */
  readonly missed: number;
}

export interface Tailing {
  readonly tail: Tail | null;
  readonly error: ApiError | null;
  /** Asks at once. */
  refresh(): void;
  loadOlder(): Promise<void>;
}

const EVERY_MS = 2_000;
const FIRST_COUNT = 500;
const COUNT_MAX = 1_000;
/** Lines that the page holds; the oldest go. */
const KEPT_MAX = 10_000;
/** Answers in a row that a flood may take before the next pause. */
const ROUNDS_MAX = 5;

/** Reads on every two seconds while the view is looked at, unless it is paused. */
export function useTail(isPaused: boolean): Tailing {
  const [tail, setTail] = useState<Tail | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [round, setRound] = useState(0);
  /** Kept beside the state: what runs has to know it at once. */
  const held = useRef<Tail | null>(null);
  const last = useRef(0);
  const put = (next: Tail) => {
    held.current = next;
    setTail(next);
  };

  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    const ask = async () => {
      if (isAsking || signal.aborted) return;
      isAsking = true;
      try {
        for (let i = 0; i < ROUNDS_MAX && (await readOn(held.current, last, put, signal)); i++);
        setError(null);
      } catch (thrown) {
        const failed = errorOf(thrown);
        if (failed.code !== 'aborted') setError(failed);
      }
      isAsking = false;
      plan();
    };
    const plan = () => {
      clearTimeout(timer);
      if (signal.aborted || document.hidden || (isPaused && held.current !== null)) return;
      timer = setTimeout(() => void (connection.peek() === 'ok' ? ask() : plan()), EVERY_MS);
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : void ask());
    document.addEventListener('visibilitychange', seen);
    if (isPaused && round === 0) plan();
    else void ask();
    return () => {
      ending.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [isPaused, round]);

  const loadOlder = async () => {
    const from = held.current?.lines[0]?.sequence;
    if (from === undefined) return;
    const found: LogLineView[] = [];
    for (let since = Math.max(0, from - 1 - (held.current?.older ?? 0)); since < from - 1;) {
      const { lines } = await get<LogView>('/admin/log', {
        query: { since, count: Math.min(COUNT_MAX, from - 1 - since) },
      });
      if (lines.length === 0) break;
      found.push(...lines.filter(({ sequence }) => sequence < from));
      since = lines.at(-1)!.sequence;
    }
    if (held.current !== null) put({ ...held.current, lines: [...found, ...held.current.lines], older: 0 });
  };
  return { tail, error, refresh: () => setRound((n) => n + 1), loadOlder };
}

/** Whether there is more to be read at once. */
async function readOn(
  tail: Tail | null,
  last: { current: number },
  put: (tail: Tail) => void,
  signal: AbortSignal,
): Promise<boolean> {
  const isFirst = tail === null;
  const answer = await get<LogView>('/admin/log', {
    query: isFirst ? { count: FIRST_COUNT } : { since: last.current, count: COUNT_MAX },
    signal,
  });
  // The node has begun anew, and so have its numbers.
  if (!isFirst && answer.last < last.current) {
    last.current = 0;
    put({ lines: [], level: answer.level, older: 0, missed: 0 });
    return true;
  }
  if (!isFirst && answer.lines.length === 0 && answer.level === tail.level) {
    last.current = answer.last;
    return false;
  }
  last.current = answer.lines.at(-1)?.sequence ?? answer.last;
  const lines = isFirst ? answer.lines : [...tail.lines, ...answer.lines].slice(-KEPT_MAX);
  const from = lines[0]?.sequence ?? answer.last + 1;
  put({
    lines,
    level: answer.level,
    older: Math.max(0, from - answer.first),
    missed: (tail?.missed ?? 0) + answer.missed,
  });
  return last.current < answer.last;
}

const RANKS: Readonly<Record<LogLineLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Whether a line is at least as severe, and holds every word that is wanted. */
export function fits(line: LogLineView, level: LogLineLevel, words: readonly string[]): boolean {
  if (RANKS[line.level] < RANKS[level]) return false;
  if (words.length === 0) return true;
  const text = lineText(line).toLowerCase();
  return words.every((word) => text.includes(word));
}

export function wordsOf(search: string): readonly string[] {
  return search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}

const texts = new WeakMap<LogLineView, string>();

/** A line as people read it in a terminal; made once, as searching needs it with each key. */
export function lineText(line: LogLineView): string {
  const made = texts.get(line);
  if (made !== undefined) return made;
  const { time, level, message, fields, exception } = line;
  const text = `${time} ${level.toUpperCase().padEnd(5)} ${message}${Object.entries(fields)
    .map(([name, value]) => ` ${name}=${valueText(value)}`)
    .join('')}${exception === undefined ? '' : `\n${exception}`}`;
  texts.set(line, text);
  return text;
}

export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
