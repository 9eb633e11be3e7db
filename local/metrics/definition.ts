/** How a metric behaves. A `recent-max` is shown as a gauge: the largest value of a window that moves. */
export type MetricKind = 'counter' | 'gauge' | 'histogram' | 'recent-max';

export interface MetricDefinition {
  readonly kind: MetricKind;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram, ascending. */
  readonly buckets?: readonly number[];
}

/** From half a millisecond to ten seconds. */
export const DURATION_BUCKETS: readonly number[] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Requests in a group commit. */
export const GROUP_BUCKETS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096];
/** From a second to half a day. */
export const LONG_BUCKETS: readonly number[] = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200];
