import { useMemo } from 'preact/hooks';
import type { WebhookHistoryView } from '../../../../../handlers/documents/node.ts';
import type { History } from '../../lib/history.ts';
import { withZeros } from '../../lib/joined.ts';
import { Card } from '../../parts/card.tsx';
import { Chart } from '../../parts/chart.tsx';
import type { Series } from '../../parts/chart.tsx';
import { RangeChoice, useNodePast, usePast } from '../../parts/past.tsx';

/** By the names of the node's history, in the order in which they are drawn. */
const LINES: readonly (keyof WebhookHistoryView['values'])[] = [
  'takenPerSecond',
  'skippedPerSecond',
  'refusedPerSecond',
];

/** The calls for a connector: what the node kept, and the rates that the page saw since. */
export function CallsChart({
  id,
  seen: { times: seenTimes },
  rates,
  isIdle,
}: {
  readonly id: string;
  /** There was no call since the node started. */
  readonly isIdle: boolean;
  readonly seen: History;
  /** Taken, skipped and refused. */
  readonly rates: readonly Series[];
}) {
  const node = useNodePast(`/admin/webhooks/history?connector=${encodeURIComponent(id)}`);
  const labels = rates.map(({ label }) => label);
  const names = useMemo(() => Object.fromEntries(labels.map((label, i) => [label, LINES[i]!])), [labels.join('\n')]);
  const live = useMemo(
    () => ({ times: seenTimes, values: Object.fromEntries(rates.map(({ label, values }) => [label, values])) }),
    [seenTimes],
  );
  // The node keeps no lines of a connector before its first call.
  const kept = useMemo(
    () => (isIdle && node.kept !== null ? withZeros(node.kept, LINES) : node.kept),
    [isIdle, node.kept],
  );
  const { times, values, spanMs } = usePast({ ...node, kept }, names, live);
  return (
    <>
      <div class="toolbar">
        <RangeChoice past={node} />
      </div>
      <Card>
        <Chart
          title="Calls"
          times={times}
          series={labels.map((label) => ({ label, values: values[label] ?? [] }))}
          unit="perSecond"
          {...(spanMs !== undefined && { spanMs })}
        />
      </Card>
    </>
  );
}
