import { Registry } from 'prom-client';
import type { Metric, OpenMetricsContentType } from 'prom-client';
import type { Clock } from '../../core/ports/clock.ts';
import type { Meter, MeterLabels } from '../../core/ports/meter.ts';
import { Series } from './series.ts';
import type { Sample, SeriesFigures, Summary } from './series.ts';
import { METRICS } from './table.ts';

/** Sets metrics from what it looks at, when the metrics are asked for. */
export type Collector = (metrics: MetricSink) => void | Promise<void>;

/** What collectors write to. */
export interface MetricSink {
  gauge(name: string, value: number, labels?: MeterLabels): void;
  /** The value of a counter that is kept elsewhere. */
  total(name: string, value: number, labels?: MeterLabels): void;
  /** Forgets all label values of a metric, before it gets the ones of now. */
  clear(name: string): void;
}

interface RenderedMetrics {
  readonly contentType: string;
  readonly body: string;
}

export interface Metrics extends Meter {
  /** From now on the collector is asked at every scrape. Returns how to end that. */
  collect(collector: Collector): () => void;
  /** All metrics, as OpenMetrics when `accept` prefers that, else in the text format of Prometheus. */
  render(accept: string | null): Promise<RenderedMetrics>;
  /** The status that a part was given last by `eventstore_statuses`. */
  statusOf(part: string): string | null;
  /** What was observed since the start under the name of a recent maximum; null before the first value. */
  summaryOf(name: string, labels?: MeterLabels): Summary | null;
  /** The values of a metric, those of collectors as they were last asked. */
  figuresOf(name: string): readonly SeriesFigures[];
}

const STATUSES = 'eventstore_statuses';

/**
 * The metrics of a node. They never fail: what the table does not have is left out, as are values that are no numbers.
 */
export function createMetrics(clock: Clock): Metrics {
  return new NodeMetrics(clock);
}

class NodeMetrics implements Metrics, MetricSink {
  readonly #clock: Clock;
  readonly #series = new Map<string, Series>(
    Object.entries(METRICS).map(([name, definition]) => [name, new Series(name, definition)]),
  );
  readonly #collectors = new Set<Collector>();
  /** Present status by part. Only that one is shown, with the time of the scrape. */
  readonly #statuses = new Map<string, string>();
  readonly #text = new Registry();
  readonly #open = new Registry<OpenMetricsContentType>();
  #collecting: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const now = () => this.#clock.monotonicMs();
    for (const series of this.#series.values()) {
      this.#text.registerMetric(familyOf(series, series.name, now));
      // In OpenMetrics a counter's family has the name without `_total`, and prom-client puts it behind each sample.
      this.#open.registerMetric(
        familyOf(series, series.definition.kind === 'counter' ? series.name.replace(/_total$/, '') : series.name, now),
      );
    }
  }

  count(name: string, by = 1, labels?: MeterLabels): void {
    this.#series.get(name)?.add(by, labels);
  }

  gauge(name: string, value: number, labels?: MeterLabels): void {
    if (name === STATUSES) this.#statuses.set(labels?.['name'] ?? '', labels?.['status'] ?? '');
    else this.#series.get(name)?.set(value, labels);
  }

  observe(name: string, value: number, labels?: MeterLabels): void {
    this.#series.get(name)?.observe(value, this.#clock.monotonicMs(), labels);
  }

  total(name: string, value: number, labels?: MeterLabels): void {
    this.#series.get(name)?.set(value, labels);
  }

  clear(name: string): void {
    this.#series.get(name)?.clear();
  }

  statusOf(part: string): string | null {
    return this.#statuses.get(part) ?? null;
  }

  summaryOf(name: string, labels?: MeterLabels): Summary | null {
    return this.#series.get(name)?.summary(labels) ?? null;
  }

  figuresOf(name: string): readonly SeriesFigures[] {
    return [...(this.#series.get(name)?.figures() ?? [])];
  }

  collect(collector: Collector): () => void {
    this.#collectors.add(collector);
    return () => {
      this.#collectors.delete(collector);
    };
  }

  async render(accept: string | null): Promise<RenderedMetrics> {
    this.#collecting ??= this.#collectAll().finally(() => {
      this.#collecting = null;
    });
    await this.#collecting;
    const registry = wantsOpenMetrics(accept) ? this.#open : this.#text;
    return { contentType: registry.contentType, body: await registry.metrics() };
  }

  /** A collector that fails leaves its metrics as they were. */
  async #collectAll(): Promise<void> {
    await Promise.allSettled(
      [...this.#collectors].map(async (collector) => {
        await collector(this);
      }),
    );
    const statuses = this.#series.get(STATUSES)!;
    statuses.clear();
    for (const [name, status] of this.#statuses)
      statuses.set(Math.floor(this.#clock.nowMs() / 1_000), { name, status });
  }
}

/** What prom-client asks of a metric when it makes the text: its description and its samples. */
function familyOf(series: Series, name: string, nowMs: () => number): Metric {
  const { kind, help } = series.definition;
  const type = kind === 'recent-max' ? 'gauge' : kind;
  const get = (): Promise<{ name: string; help: string; type: string; values: Sample[] }> =>
    Promise.resolve({ name, help, type, values: series.samples(nowMs()) });
  return { name, help, type, get } as unknown as Metric;
}

/** Whether `application/openmetrics-text` is named with a `q` that is not below that of plain text. */
function wantsOpenMetrics(accept: string | null): boolean {
  if (accept === null || !accept.includes('application/openmetrics-text')) return false;
  let open = 0;
  let text = 0;
  for (const part of accept.split(',')) {
    const [range = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase());
    const q = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    if (range === 'application/openmetrics-text') open = Math.max(open, q);
    else if (range === 'text/plain') text = Math.max(text, q);
  }
  return open > 0 && open >= text;
}
