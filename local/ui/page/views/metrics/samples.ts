import { effect } from '@preact/signals';
import { poller } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import { familiesOf } from '../../lib/exposition.ts';
import type { Family, Sample } from '../../lib/exposition.ts';
import { historyOf, record } from '../../lib/history.ts';

const PATH = '/metrics';
const HISTORY = 'metrics';
const EVERY_MS = 5_000;

let isSampling = false;

/**
 * What the node measures. From the first look on it is asked as long as the page is open, so that charts have a past.
 */
export function metrics(): Polled<readonly Family[]> {
  const polled = poller<readonly Family[]>(PATH, { parse: familiesOf, accept: 'text/plain' });
  if (!isSampling) {
    isSampling = true;
    polled.use(EVERY_MS);
    effect(() => {
      const families = polled.data.value;
      const atMs = polled.atMs.value;
      if (families === null || atMs === null) return;
      const sample: Record<string, number> = {};
      for (const family of families) for (const one of family.samples) sample[keyOf(one)] = one.value;
      record(HISTORY, atMs, sample);
    });
  }
  return polled;
}

export const metricsHistory = historyOf(HISTORY);

/** Under which its past is kept: the name and all labels. */
export function keyOf({ name, labels }: Sample): string {
  return `${name}{${labelsText(labels)}}`;
}

export function labelsText(labels: Sample['labels'], without: ReadonlySet<string> = new Set()): string {
  return Object.entries(labels)
    .filter(([name]) => !without.has(name))
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ');
}
