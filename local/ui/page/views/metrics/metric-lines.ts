import type { Family, Sample } from '../../lib/exposition.ts';
import { collator, countText } from '../../lib/format.ts';
import { rateOf } from '../../lib/history.ts';
import type { History } from '../../lib/history.ts';
import type { LineNames } from '../../lib/joined.ts';
import { unitText } from '../../parts/chart.tsx';
import type { Series, Unit } from '../../parts/chart.tsx';
import { largestOf } from './largest.ts';
import { keyOf } from './samples.ts';
import { quantile } from './quantile.ts';

/** What a chart of a metric shows: rates of what only grows, quantiles of histograms, and the values of all others. */
export interface Lines {
  readonly unit: Unit;
  /** What is drawn, in words. */
  readonly about: string;
  readonly series: readonly Series[];
  /** What the node calls the same in its history, by label. */
  readonly names: LineNames;
  /** Lines that there was no room for. */
  readonly left: number;
}

/** What a series without labels is called. */
export const UNNAMED = 'value';
/** More lines in one chart can't be told apart. */
const LINES_MAX = 6;
const QUANTILES = [0.5, 0.99];

export function linesOf(family: Family, history: History): Lines {
  if (family.type === 'histogram') return quantileLines(family, history);
  const isTotal = family.type === 'counter';
  const unit = unitOf(family.name);
  // By label, so that a colour means the same at every node: in the text it depends on which sample came first.
  const sorted = family.samples.toSorted((one, other) => collator.compare(labelOf(one), labelOf(other)));
  const all = sorted.map((sample) => {
    const values = history.values[keyOf(sample)] ?? [];
    const shown = isTotal
      ? rateOf(history, values)
      : values.map((value) => (value === null || !Number.isFinite(value) ? null : value * unit.factor));
    return {
      label: labelOf(sample),
      name: keyOf(sample),
      values: shown,
      size: Math.abs(shown.findLast((value) => value !== null) ?? 0),
      total: sample.value,
    };
  });
  // Those that say most; the order of the node among them, so that colours stay.
  const chosen = largestOf(all, LINES_MAX);
  return {
    unit: isTotal ? (unit.name === 'bytes' ? 'bytesPerSecond' : 'perSecond') : unit.name,
    about: isTotal ? 'rate per second' : '',
    series: chosen,
    names: Object.fromEntries(chosen.map(({ label, name }) => [label, name])),
    left: all.length - chosen.length,
  };
}

function unitOf(name: string): { readonly name: Unit; readonly factor: number } {
  if (name.includes('bytes')) return { name: 'bytes', factor: 1 };
  return /seconds(_total)?$/.test(name) ? { name: 'ms', factor: 1_000 } : { name: 'count', factor: 1 };
}

function labelOf({ labels }: Sample): string {
  const values = Object.values(labels);
  return values.length === 0 ? UNNAMED : values.join(' · ');
}

/** The median and what 99 of 100 stay below, interpolated within the buckets, over all labels, between two looks. */
function quantileLines(family: Family, history: History): Lines {
  const buckets = new Map<number, (number | null)[]>();
  for (const sample of family.samples) {
    if (!sample.name.endsWith('_bucket')) continue;
    const bound = sample.labels['le'] === '+Inf' ? Infinity : Number(sample.labels['le']);
    const values = history.values[keyOf(sample)] ?? [];
    const sum = buckets.get(bound);
    if (sum === undefined) buckets.set(bound, [...values]);
    else for (const [i, value] of values.entries()) sum[i] = value === null ? (sum[i] ?? null) : (sum[i] ?? 0) + value;
  }
  const bounds = [...buckets.keys()].sort((one, other) => one - other);
  const isTime = family.name.endsWith('seconds');
  const unit = isTime ? 'ms' : family.name.includes('bytes') ? 'bytes' : 'count';
  const series = QUANTILES.map((share) => ({
    label: quantileLabel(share),
    values: history.times.map((_, i) => {
      // Each bucket of the text counts those below it too.
      const grown = bounds.map((bound) => {
        const now = buckets.get(bound)![i] ?? null;
        const then = i === 0 ? null : (buckets.get(bound)![i - 1] ?? null);
        return now === null || then === null ? 0 : now - then;
      });
      const shown = quantile(bounds, grown, share, unit === 'count');
      return shown !== null && isTime ? shown * 1_000 : shown;
    }),
  }));
  return {
    unit,
    about: unit === 'count' ? 'upper bounds of the buckets' : 'interpolated within the buckets',
    series,
    names: Object.fromEntries(
      QUANTILES.map((share) => [quantileLabel(share), [`${family.name}{quantile="${share}"}`, isTime ? 1_000 : 1]]),
    ),
    left: 0,
  };
}

function quantileLabel(share: number): string {
  return share === 0.5 ? 'median' : `p${share * 100}`;
}

/** Gauges that each count something else, by group: of all groups together they are a count, too. */
const ADDED_UP: ReadonlySet<string> = new Set(
  ['connections', 'parked_messages', 'in_flight_messages'].map((name) => `eventstore_persistent_sub_${name}`),
);

/**
 * As it is now, for the list: the sum over all labels; of histograms, how often. Other gauges can't be added up (ages,
 * times, the same memory in several kinds): of several it says how many.
 */
export function latestText(family: Family): string {
  if (family.type === 'gauge' && family.samples.length > 1 && !ADDED_UP.has(family.name))
    return `${family.samples.length} series`;
  const isHistogram = family.type === 'histogram';
  const name = isHistogram ? `${family.name}_count` : family.name;
  const sum = family.samples.reduce((total, sample) => total + (sample.name === name ? sample.value : 0), 0);
  const { name: unit, factor } = unitOf(family.name);
  return isHistogram ? countText(sum, 'time') : unitText(sum * factor, unit);
}
