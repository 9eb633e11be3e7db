import { historyOf, shownSpanMs } from '../../lib/history.ts';
import { Card } from '../../parts/card.tsx';
import { Chart } from '../../parts/chart.tsx';
import { OVERVIEW_HISTORY } from '../../shell/sampler.ts';

const SYNC = 'overview';

/** The last hour, as far as the page was open. */
export function Charts() {
  const history = historyOf(OVERVIEW_HISTORY).value;
  const { times, values } = history;
  const of = (name: string) => values[name] ?? [];
  const common = { times, spanMs: shownSpanMs(history), syncKey: SYNC, height: 140 };
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
