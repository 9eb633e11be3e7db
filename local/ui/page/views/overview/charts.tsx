import { useMemo, useState } from 'preact/hooks';
import type { ActivityHistoryView } from '../../../../../handlers/documents/node.ts';
import { usePolled } from '../../api/polled.ts';
import { historyOf, shownSpanMs } from '../../lib/history.ts';
import type { History } from '../../lib/history.ts';
import { dayOf, joined } from '../../lib/joined.ts';
import { keep, kept } from '../../lib/kept.ts';
import { Card } from '../../parts/card.tsx';
import { Chart } from '../../parts/chart.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Time } from '../../parts/time.tsx';
import { OVERVIEW_HISTORY } from '../../shell/sampler.ts';

const SYNC = 'overview';

const RANGES = [
  { name: 'hour', label: 'Last hour' },
  { name: 'day', label: '24 hours' },
] as const;
type Range = (typeof RANGES)[number]['name'];
/** What the browser keeps the range as. */
const RANGE = 'overview-range';
const DAY_PATH = '/admin/overview/history';
/** The node adds a value a minute; the last hour is gone on with by what the page sees, so that once is enough. */
const EVERY_MS: Readonly<Record<Range, number>> = { hour: 3_600_000, day: 60_000 };

export interface Past {
  readonly range: Range;
  readonly choose: (range: Range) => void;
  /** When the node began to measure; null until it has said. */
  readonly since: string | null;
  /** The last hour: what the node kept, and then what the page saw. */
  readonly hour: History;
  readonly day: History;
}

/** What charts and tiles show of before. */
export function usePast(): Past {
  const [range, setRange] = useState<Range>(kept(RANGE) === 'day' ? 'day' : 'hour');
  const node = usePolled<ActivityHistoryView>(DAY_PATH, EVERY_MS[range]).data.value;
  const live = historyOf(OVERVIEW_HISTORY).value;
  const day = useMemo(() => (node === null ? NOTHING : dayOf(node)), [node]);
  const hour = useMemo(() => joined(day, live), [day, live]);
  const choose = (chosen: Range) => {
    keep(RANGE, chosen);
    setRange(chosen);
  };
  return { range, choose, since: node?.since ?? null, hour, day };
}

const NOTHING: History = { times: [], values: {} };

export function Charts({ past }: { readonly past: Past }) {
  return (
    <>
      <div class="toolbar">
        <Choice label="Time range" options={RANGES} value={past.range} onChange={past.choose} />
        {past.since !== null && (
          <span class="muted small">
            Data since <Time at={past.since} show="absolute" />. A restart of the node begins anew.
          </span>
        )}
      </div>
      <Lines past={past} />
    </>
  );
}

function Lines({ past }: { readonly past: Past }) {
  const history = past.range === 'day' ? past.day : past.hour;
  const { times, values } = history;
  const of = (name: string) => values[name] ?? [];
  const common = {
    times,
    ...(past.range === 'hour' && { spanMs: shownSpanMs(history) }),
    syncKey: SYNC,
    height: 140,
  };
  return (
    <div class="columns charts">
      <Card>
        <Chart
          title="Events"
          unit="perSecond"
          series={[
            { label: 'written', values: of('written') },
            { label: 'read', values: of('read') },
          ]}
          {...common}
        />
      </Card>
      <Card>
        <Chart
          title="Latency, p99"
          unit="ms"
          series={[
            { label: 'appends', values: of('appendP99') },
            { label: 'requests', values: of('requestP99') },
          ]}
          {...common}
        />
      </Card>
      <Card>
        <Chart
          title="Event bytes"
          unit="bytesPerSecond"
          series={[
            { label: 'written', values: of('bytesWritten') },
            { label: 'read', values: of('bytesRead') },
          ]}
          {...common}
        />
      </Card>
      <Card>
        <Chart title="CPU" unit="share" series={[{ label: 'of one core', values: of('cpu') }]} {...common} />
      </Card>
    </div>
  );
}
