import { historyOf } from '../../lib/history.ts';
import type { LineNames } from '../../lib/joined.ts';
import { Card } from '../../parts/card.tsx';
import { Chart } from '../../parts/chart.tsx';
import { RangeChoice, useNodePast, usePast } from '../../parts/past.tsx';
import type { NodePast, Past } from '../../parts/past.tsx';
import { OVERVIEW_HISTORY } from '../../shell/sampler.ts';

const SYNC = 'overview';
const DAY_PATH = '/admin/overview/history';
/** Of the sampler, by the names of the node. */
const LINES: LineNames = {
  appends: 'appendsPerSecond',
  written: 'eventsWrittenPerSecond',
  read: 'eventsReadPerSecond',
  bytesWritten: 'bytesWrittenPerSecond',
  bytesRead: 'bytesReadPerSecond',
  requests: 'requestsPerSecond',
  appendP99: ['appendP99Seconds', 1_000],
  requestP99: ['requestP99Seconds', 1_000],
  cpu: 'cpuShare',
};

/** What charts and tiles show of before. */
export function useOverviewPast(): { readonly node: NodePast; readonly past: Past } {
  const node = useNodePast(DAY_PATH);
  return { node, past: usePast(node, LINES, historyOf(OVERVIEW_HISTORY).value) };
}

export function Charts({ node, past }: { readonly node: NodePast; readonly past: Past }) {
  return (
    <>
      <div class="toolbar">
        <RangeChoice past={node} />
      </div>
      <Lines past={past} />
    </>
  );
}

function Lines({ past: { times, values, spanMs } }: { readonly past: Past }) {
  const of = (name: string) => values[name] ?? [];
  const common = {
    times,
    ...(spanMs !== undefined && { spanMs }),
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
