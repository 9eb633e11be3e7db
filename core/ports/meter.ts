/** Label names and values. Values come from small fixed sets of our own, never from what a client sends. */
export type MeterLabels = Readonly<Record<string, string>>;

/**
 * Metrics. Every name and its labels stand in one table (`local/metrics/table.ts`); names carry their unit last
 * (`_bytes`, `_seconds`), counters end in `_total`. Calls are cheap, but not free: one a group or page, never one an
 * event.
 */
export interface Meter {
  count(name: string, by?: number, labels?: MeterLabels): void;
  gauge(name: string, value: number, labels?: MeterLabels): void;
  /** A value of a histogram, or one whose recent maximum is shown. */
  observe(name: string, value: number, labels?: MeterLabels): void;
}

export const silentMeter: Meter = { count() {}, gauge() {}, observe() {} };
