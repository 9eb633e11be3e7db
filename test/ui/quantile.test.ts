import { expect, test } from 'vitest';
import { quantile } from '../../local/ui/page/views/metrics/quantile.ts';

test('of times a quantile lies within its bucket, of what is counted in whole numbers at its end', () => {
  const bounds = [1, 4, Infinity];
  const counts = [0, 10, 10];
  expect([0.5, 0.99].map((share) => quantile(bounds, counts, share, false))).toEqual([2.5, 3.97]);
  expect([0.5, 0.99].map((share) => quantile(bounds, counts, share, true))).toEqual([4, 4]);
  // What lies beyond the last bound is told as that, of either.
  expect([false, true].map((isWhole) => quantile(bounds, [0, 0, 10], 0.5, isWhole))).toEqual([4, 4]);
});
