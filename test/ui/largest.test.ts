import { expect, test } from 'vitest';
import { largestOf } from '../../local/ui/page/views/metrics/largest.ts';

test('of many series those are drawn that say most, also where few say anything, and before there are rates', () => {
  const totals = [3, 9, 1, 4, 8, 2];
  const drawn = (sizes: readonly number[]) =>
    largestOf(
      totals.map((total, i) => ({ total, size: sizes[i] ?? 0 })),
      3,
    ).map(({ total }) => total);
  expect(drawn([0, 0, 0, 0, 0, 7])).toEqual([9, 8, 2]);
  expect(drawn([])).toEqual([9, 4, 8]);
  expect(drawn([1, 2, 3, 4, 5, 6])).toEqual([4, 8, 2]);
});
