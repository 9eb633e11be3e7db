import { useMemo } from 'preact/hooks';
import type { Family } from '../../lib/exposition.ts';
import { countText } from '../../lib/format.ts';
import { keep, kept } from '../../lib/kept.ts';
import { setQuery } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Chart } from '../../parts/chart.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { breakable } from '../../parts/name.tsx';
import { RangeChoice, useNodePast, usePast } from '../../parts/past.tsx';
import type { NodePast } from '../../parts/past.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import type { ViewProps } from '../../views.ts';
import { latestText, linesOf, UNNAMED } from './metric-lines.ts';
import { metrics, metricsHistory } from './samples.ts';

const CHOSEN = 'metrics';
const DAY_PATH = '/metrics/history';
const PREFIX = 'eventstore_';
const FIRST = [
  'eventstore_io_events_total',
  'eventstore_append_duration_seconds',
  'eventstore_http_requests_total',
  'eventstore_cache_hits_misses_total',
];
/** Charts that a filter shows at once. */
const FOUND_MAX = 24;

/** Charts of all that the node measures. Those that were chosen stand above, and stay between visits. */
export default function Metrics({ query }: ViewProps) {
  const polled = metrics();
  const node = useNodePast(DAY_PATH);
  const filter = query.get('q') ?? '';
  const chosen = useMemo(
    () =>
      query.get('show')?.split(',') ??
      kept(CHOSEN)
        ?.split(',')
        .filter((name) => name !== '') ??
      FIRST,
    [query.get('show')],
  );
  const choose = (names: readonly string[]) => {
    keep(CHOSEN, names.join(','));
    setQuery({ show: names.length === 0 ? 'none' : names.join(',') });
  };
  return (
    <>
      <ViewHead
        title="Metrics"
        about="Measurements of the node, for the main ones up to 24 hours back; all others begin when this page is opened. Scrapers get the same metrics at /metrics."
      />
      <div class="toolbar">
        <SearchField
          label="Find metrics"
          placeholder="Name or description"
          value={filter}
          onInput={(text) => setQuery({ q: text })}
        />
        <RangeChoice past={node} />
      </div>
      <Loading polled={polled} what="The metrics" lines={8}>
        {(families) => {
          const wanted = filter.trim().toLowerCase();
          const found = families.filter(
            ({ name, help }) => wanted === '' || `${name} ${help}`.toLowerCase().includes(wanted),
          );
          const pinned =
            wanted === '' ? families.filter(({ name }) => chosen.includes(name)) : found.slice(0, FOUND_MAX);
          return (
            <>
              {found.length === 0 && (
                <Card>
                  <EmptyState
                    icon="search"
                    title="No metrics match"
                    action={<Button onClick={() => setQuery({ q: null })}>Show all</Button>}
                  />
                </Card>
              )}
              <div class="columns charts">
                {pinned.map((family) => (
                  <Shown
                    key={family.name}
                    family={family}
                    node={node}
                    isChosen={chosen.includes(family.name)}
                    onToggle={() =>
                      choose(
                        chosen.includes(family.name)
                          ? chosen.filter((name) => name !== family.name)
                          : [...chosen.filter((name) => name !== 'none'), family.name],
                      )
                    }
                  />
                ))}
              </div>
              {wanted === '' && <Choice families={families} chosen={chosen} onChange={choose} />}
              {wanted !== '' && found.length > FOUND_MAX && (
                <p class="muted">
                  {countText(found.length - FOUND_MAX, 'more metric')} match. Type more to narrow them down.
                </p>
              )}
            </>
          );
        }}
      </Loading>
    </>
  );
}

function Shown({
  family,
  node,
  isChosen,
  onToggle,
}: {
  readonly family: Family;
  readonly node: NodePast;
  readonly isChosen: boolean;
  readonly onToggle: () => void;
}) {
  const history = metricsHistory.value;
  const { unit, about, series, names, left } = useMemo(() => linesOf(family, history), [family, history]);
  const live = useMemo(
    () => ({ times: history.times, values: Object.fromEntries(series.map(({ label, values }) => [label, values])) }),
    [series],
  );
  const { times, values, spanMs } = usePast(node, names, live);
  return (
    <Card>
      <Chart
        title={shortName(family.name)}
        times={times}
        series={series.map(({ label }) => ({ label, values: values[label] ?? [] }))}
        unit={unit}
        {...(spanMs !== undefined && { spanMs })}
        syncKey="metrics"
        actions={
          <Button
            kind="quiet"
            isSmall
            icon={isChosen ? 'minus' : 'plus'}
            label={isChosen ? `Remove ${family.name}` : `Keep ${family.name}`}
            onClick={onToggle}
          />
        }
      />
      <p class="small faint">
        {family.help}
        {about !== '' && ` Shown: ${about}.`}
        {series.length === 1 && series[0]!.label !== UNNAMED && ` The only series: ${series[0]!.label}.`}
        {left > 0 && ` The ${series.length} largest of ${series.length + left} series.`}
      </p>
    </Card>
  );
}

function shortName(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}

/** All metrics, by the first word of their names. */
function Choice({
  families,
  chosen,
  onChange,
}: {
  readonly families: readonly Family[];
  readonly chosen: readonly string[];
  readonly onChange: (names: readonly string[]) => void;
}) {
  const areas = Map.groupBy(families, ({ name }) => shortName(name).split('_')[0]!);
  return (
    <Card title="All metrics" note={countText(families.length, 'metric')}>
      <div class="metric-areas">
        {[...areas]
          .sort(([one], [other]) => one.localeCompare(other))
          .map(([area, members]) => (
            <fieldset key={area}>
              <legend>{area}</legend>
              {members.map((family) => (
                <label key={family.name} title={family.help}>
                  <input
                    type="checkbox"
                    checked={chosen.includes(family.name)}
                    onChange={(event) =>
                      onChange(
                        event.currentTarget.checked
                          ? [...chosen.filter((name) => name !== 'none'), family.name]
                          : chosen.filter((name) => name !== family.name),
                      )
                    }
                  />
                  <span class="grow break">{breakable(shortName(family.name))}</span>
                  <span class="faint small nowrap">{latestText(family)}</span>
                </label>
              ))}
            </fieldset>
          ))}
      </div>
    </Card>
  );
}
