import { useMemo, useState } from 'preact/hooks';
import type { HistoryView } from '../../../../handlers/documents/node.ts';
import { usePolled } from '../api/polled.ts';
import { shownSpanMs } from '../lib/history.ts';
import type { History } from '../lib/history.ts';
import { dayOf, joined } from '../lib/joined.ts';
import type { LineNames } from '../lib/joined.ts';
import { keep, kept } from '../lib/kept.ts';
import { Choice } from './choice.tsx';
import { Time } from './time.tsx';

const RANGES = [
  { name: 'hour', label: 'Last hour' },
  { name: 'day', label: '24 hours' },
] as const;
type Range = (typeof RANGES)[number]['name'];
/** What the browser keeps the range as: one of all views. */
const RANGE = 'overview-range';
/** The node adds a value a minute; the last hour is gone on with by what the page sees, so that once is enough. */
const EVERY_MS: Readonly<Record<Range, number>> = { hour: 3_600_000, day: 60_000 };

export interface NodePast {
  readonly range: Range;
  readonly choose: (range: Range) => void;
  /** Null until the node has said it, and where it keeps none. */
  readonly kept: HistoryView | null;
}

/** What the node at the path has kept of the last 24 hours. */
export function useNodePast(path: string): NodePast {
  const [range, setRange] = useState<Range>(kept(RANGE) === 'day' ? 'day' : 'hour');
  // Nodes without a history, and older ones that a request is led to, have charts that begin with the page.
  const node = usePolled<HistoryView | null>(path, EVERY_MS[range], { missing: null }).data.value;
  const choose = (chosen: Range) => {
    keep(RANGE, chosen);
    setRange(chosen);
  };
  return { range, choose, kept: node };
}

export interface Past {
  /** The last hour: what the node kept, and then what the page saw. */
  readonly hour: History;
  /** What charts take of the range that was chosen. */
  readonly times: History['times'];
  readonly values: History['values'];
  readonly spanMs?: number;
}

const NOTHING: History = { times: [], values: {} };

/** The lines of the node by the names that the page has for them, and what the page saw since. */
export function usePast({ range, kept: node }: NodePast, names: LineNames, live: History): Past {
  const day = useMemo(() => (node === null ? NOTHING : dayOf(node, names)), [node, names]);
  const hasDay = useMemo(() => Object.values(day.values).some((line) => line.some((value) => value !== null)), [day]);
  // What the node keeps nothing of is shown as far as the page saw it: over an hour it would be a dot, of 24 hours it
  // stands at the end of the same day as all others.
  const hour = useMemo(() => (hasDay ? joined(day, live) : live), [hasDay, day, live]);
  return range === 'day' && day.times.length > 0
    ? { hour, ...(hasDay ? day : joined(day, live, Infinity)) }
    : { hour, ...hour, spanMs: shownSpanMs(hour) };
}

/** Above charts: which range they show. */
export function RangeChoice({ past: { range, choose, kept: node } }: { readonly past: NodePast }) {
  return (
    <>
      <Choice label="Time range" options={RANGES} value={range} onChange={choose} />
      {node !== null && (
        <span class="muted small">
          Kept by the node since <Time at={node.since} show="absolute" />. A restart of the node begins it anew.
        </span>
      )}
    </>
  );
}
