/** Metrics. Names carry their unit last (`_bytes`, `_seconds`); part 3 gives them their documented names. */
export interface Meter {
  count(name: string, by?: number): void;
  gauge(name: string, value: number, labels?: Readonly<Record<string, string>>): void;
  observe(name: string, value: number): void;
}

export const silentMeter: Meter = { count() {}, gauge() {}, observe() {} };
