import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { bytesText, clockText, durationText, minuteText, numberText, percentText, shortText } from '../lib/format.ts';
import { colourOf, paintedTheme } from '../lib/theme.ts';
import { withSteps } from './steps.ts';

export type Unit = 'count' | 'perSecond' | 'bytes' | 'bytesPerSecond' | 'ms' | 'share';

export interface Series {
  readonly label: string;
  /** As many as there are times; null for what is not known. */
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  readonly title: string;
  /** Unix milliseconds, rising. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly unit?: Unit;
  /** In pixels, without the heading. */
  readonly height?: number;
  readonly actions?: ComponentChildren;
  /** The span that is shown, in milliseconds up to the last time; what there is without. */
  readonly spanMs?: number;
  /** Charts with the same key show the same place under the pointer. */
  readonly syncKey?: string;
}

/** In place of lines and of the labels of axes, until there are some. */
const EMPTY = 'Not enough data yet.';
const HEIGHT = 150;
/** A rem where the user has not asked for larger letters. */
const REM_PX = 16;
const PADDING_PX = 8;
/** Labels nearer to the left edge than this would lie over those of the other axis. */
const EDGE_PX = 28;
/** Labels nearer to the right edge than half of the longest one, such as `10:26:00 PM`, would be cut off there. */
const END_PX = 36;
/** Room of the labels at the left side, at least: so that charts one below another begin at the same place. */
const SIDE_PX = 62;
const SIDE_GAP_PX = 6;
/** In seconds. Where labels are nearer to each other than this, minutes alone would come twice. */
const MINUTE = 60;
const SERIES_COLOURS = 6;

export function unitText(value: number | null | undefined, unit: Unit): string {
  if (value == null) return '–';
  switch (unit) {
    case 'count':
      return Math.abs(value) < 10_000
        ? Number.isInteger(value)
          ? numberText(value)
          : shortText(value)
        : shortText(value);
    case 'perSecond':
      return `${shortText(value)}/s`;
    case 'bytes':
      return bytesText(value);
    case 'bytesPerSecond':
      return `${bytesText(value)}/s`;
    case 'ms':
      return durationText(value);
    case 'share':
      return percentText(value);
  }
}

/** How much larger than usual the letters of the page are. */
function zoom(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / REM_PX;
}

/** Lines over time. People who can't see the lines get the same as a table. */
export function Chart({ title, times, series, unit = 'count', height = HEIGHT, actions, spanMs, syncKey }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const head = useRef<HTMLElement>(null);
  const painted = paintedTheme.value;
  const labels = series.map(({ label }) => label).join('\n');
  const data = useRef<uPlot.AlignedData>([[]]);
  const drawn = withSteps(
    times,
    series.map(({ values }) => values),
    spanMs ?? (times.at(-1) ?? 0) - (times[0] ?? 0),
  );
  data.current = [drawn.times.map((ms) => ms / 1_000), ...(drawn.lines as (number | null)[][])];
  const span = useRef(spanMs);
  span.current = spanMs;
  // A line has two ends.
  const isEmpty = !drawn.lines.some((line) => line.filter((value) => value !== null).length > 1);
  const empty = useRef(isEmpty);
  empty.current = isEmpty;

  useEffect(() => {
    const element = host.current!;
    const px = height * zoom();
    const made = new uPlot(
      optionsFor(
        element,
        { series, unit, height: px, ...(syncKey !== undefined && { syncKey }) },
        span,
        empty,
        (index) => showAt(head.current, data.current, index, unit, span.current === undefined),
      ),
      data.current,
      element,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: px }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [painted, labels, unit, height]);
  useEffect(() => {
    plot.current?.setData(data.current);
    if (plot.current?.cursor.idx == null) showAt(head.current, data.current, null, unit, spanMs === undefined);
  }, [times, series]);

  return (
    <figure class="chart">
      <figcaption class="chart-head" ref={head}>
        <span class="chart-title">{title}</span>
        <output class="faint small" aria-hidden="true" />
        <ul class="legend" aria-hidden="true">
          {series.map(({ label }, i) => (
            <li key={label}>
              <span class={`key fill-${(i % SERIES_COLOURS) + 1}`} />
              {series.length > 1 && <span class="truncate">{label}</span>}
              <output class="legend-value" />
            </li>
          ))}
        </ul>
        {actions}
      </figcaption>
      <div ref={host} class="chart-host" aria-hidden="true" style={{ height: `${height / REM_PX}rem` }} />
      {isEmpty && <p class="chart-empty muted small">{EMPTY}</p>}
      <div class="hidden-visually">
        <table>
          <caption>
            {title}
            {times.length > 0 && `, ${clockText(times[0]!)} to ${clockText(times.at(-1)!)}`}
          </caption>
          <thead>
            <tr>
              <th scope="col">Line</th>
              <th scope="col">Last</th>
              <th scope="col">Lowest</th>
              <th scope="col">Highest</th>
            </tr>
          </thead>
          <tbody>
            {series.map(({ label, values }) => {
              const known = values.filter((value) => value !== null);
              return (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  <td>{unitText(known.at(-1), unit)}</td>
                  <td>{unitText(least(known), unit)}</td>
                  <td>{unitText(most(known), unit)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

function least(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((one, other) => Math.min(one, other));
}

function most(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((one, other) => Math.max(one, other));
}

/**
 * The values under the pointer, or the last ones that are known; nothing where there is none. Values of kept minutes
 * (`isKept`) are told with their time, since figures beside the chart are those of now.
 */
function showAt(
  head: HTMLElement | null,
  data: uPlot.AlignedData,
  index: number | null,
  unit: Unit,
  isKept: boolean,
): void {
  if (head === null) return;
  const [time, ...outputs] = head.querySelectorAll('output');
  const at = data[0][index ?? data[0].length - 1];
  time!.textContent = isKept && at !== undefined ? minuteText(at * 1_000) : '';
  for (const [i, output] of outputs.entries()) {
    const values = data[i + 1] as readonly (number | null)[] | undefined;
    const value = index === null ? values?.findLast((one) => one != null) : values?.[index];
    output.textContent = value == null ? '' : unitText(value, unit);
  }
}

function optionsFor(
  element: HTMLElement,
  {
    series,
    unit,
    height,
    syncKey,
  }: { readonly series: readonly Series[]; readonly unit: Unit; readonly height: number; readonly syncKey?: string },
  span: { readonly current: number | undefined },
  empty: { readonly current: boolean },
  onMove: (index: number | null) => void,
): uPlot.Options {
  const factor = zoom();
  const axis = {
    stroke: colourOf('--text-3'),
    grid: { stroke: colourOf('--line'), width: 1 },
    ticks: { show: false },
    font: `${11 * factor}px ${getComputedStyle(document.body).fontFamily}`,
  };
  return {
    width: Math.max(1, element.clientWidth),
    height,
    pxAlign: 1,
    padding: [PADDING_PX, PADDING_PX, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: false, y: false },
      ...(syncKey !== undefined && { sync: { key: syncKey } }),
    },
    scales: {
      x: {
        time: true,
        range: (_, from, to) =>
          span.current === undefined || !Number.isFinite(to) ? [from, to] : [to - span.current / 1_000, to],
      },
      // Zero is always in sight, so that a small change looks small.
      y: { range: (_, from, to) => [Math.min(0, from ?? 0), to === null || to <= 0 ? 1 : to * 1.1] },
    },
    axes: [
      {
        ...axis,
        grid: {
          ...axis.grid,
          filter: (plot, ticks) => ticks.map((tick) => (isAtEdge(plot, tick, factor) ? null : tick)),
        },
        size: 24 * factor,
        space: 80 * factor,
        incrs: TIME_STEPS,
        gap: 4,
        values: (plot, ticks, _axis, _space, step) =>
          ticks.map((tick) =>
            empty.current || isAtEdge(plot, tick, factor)
              ? null
              : (step < MINUTE ? clockText : minuteText)(tick * 1_000),
          ),
      },
      {
        ...axis,
        size: (plot, labels) => sideOf(plot, labels, factor),
        space: 24 * factor,
        gap: SIDE_GAP_PX,
        ...(unit.startsWith('bytes') && { incrs: BYTE_STEPS }),
        ...(unit === 'ms' && { incrs: DURATION_STEPS }),
        // Zero of durations: `0 s` would be of another unit than the ticks above it.
        values: (_, ticks) =>
          ticks.map((tick) => (empty.current ? null : tick === 0 && unit === 'ms' ? '0' : unitText(tick, unit))),
      },
    ],
    series: [
      {},
      ...series.map(({ label }, i) => {
        const colour = colourOf(`--series-${(i % SERIES_COLOURS) + 1}`);
        return {
          label,
          stroke: colour,
          width: 1.5,
          points: { show: false },
          spanGaps: false,
          ...(series.length === 1 && { fill: faded(colour) }),
        };
      }),
    ],
    hooks: { setCursor: [(plot) => onMove(plot.cursor.idx ?? null)] },
  };
}

/** The room at the left side that the widest label takes, such as `1,023.5 MiB/s`, which would be cut off in less. */
function sideOf({ ctx, axes }: uPlot, labels: readonly (string | null)[] | null, factor: number): number {
  // The font is that of the canvas, whose pixels may be finer than those of the page.
  ctx.font = axes[1]!.font![0] as string;
  const widest = (labels ?? []).reduce((width, label) => Math.max(width, ctx.measureText(label ?? '').width), 0);
  return Math.ceil(Math.max(SIDE_PX * factor, widest / uPlot.pxRatio + SIDE_GAP_PX * 2));
}

/** Whether the label of a time would lie over those of the other axis, or beyond the end of the chart. */
function isAtEdge(plot: uPlot, tick: number, factor: number): boolean {
  const px = plot.valToPos(tick, 'x');
  return px < EDGE_PX * factor || px > plot.over.clientWidth - (END_PX - PADDING_PX) * factor;
}

/** Of times in seconds, near enough to each other that few minutes have more than one label. */
const TIME_STEPS = [
  ...[1, MINUTE].flatMap((unit) => [1, 2, 5, 10, 15, 30].map((count) => count * unit)),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * 60 * MINUTE),
];

/** Steps of durations in milliseconds: from a microsecond to ten days, whole seconds, minutes and hours. */
const DURATION_STEPS = [
  [1 / 1_000, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  [1, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  [1_000, [1, 2, 5, 10, 15, 30]],
  [60_000, [1, 2, 5, 10, 15, 30]],
  [3_600_000, [1, 2, 4, 8, 24, 48, 120, 240]],
].flatMap(([unitMs, steps]) => (steps as number[]).map((step) => step * (unitMs as number)));
/** Steps of sizes: from a byte to an exbibyte. */
const BYTE_STEPS = Array.from({ length: 61 }, (_, power) => 2 ** power);

/** The colour, nearly transparent. */
function faded(colour: string): string {
  return colour.startsWith('rgb(') ? `rgba(${colour.slice(4, -1)}, 0.12)` : 'transparent';
}
