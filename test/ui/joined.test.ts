import { describe, expect, test } from 'vitest';
import { CUT_MS, evenly } from '../../local/ui/page/lib/history.ts';
import { dayOf, joined, withZeros } from '../../local/ui/page/lib/joined.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NOW_MS = Date.UTC(2031, 3, 2, 9);

function kept(ends: readonly number[], values: Readonly<Record<string, readonly (number | null)[]>>) {
  return { since: '', stepSeconds: 60, times: ends.map((minute) => NOW_MS + minute * MINUTE_MS), values };
}

describe('what the node has kept', () => {
  test('has the names and units of the page, and a cut where steps are missing', () => {
    const { times, values } = dayOf(kept([-9, -8, -2], { seconds: [1, null, 3], other: [7, 7, 7] }), {
      ms: ['seconds', 1_000],
      other: 'other',
      absent: 'not kept',
    });
    expect(times.map((ms) => (ms - NOW_MS) / MINUTE_MS)).toEqual([-9, -8, -8 + 1 / MINUTE_MS, -2]);
    expect(values).toEqual({
      ms: [1_000, null, null, 3_000],
      other: [7, 7, null, 7],
      absent: [null, null, null, null],
    });
  });
});

test('of what did not happen at all the node has kept zeros', () => {
  const known = kept([-2, -1], { taken: [null, 3], skipped: [null, null] });
  expect(withZeros(known, ['taken', 'skipped', 'refused']).values).toEqual({
    taken: [0, 3],
    skipped: [0, 0],
    refused: [0, 0],
  });
});

describe('what the page saw, behind what the node kept', () => {
  const day = dayOf(kept([-90, -89, -3, -2, -1], { rate: [9, 9, 3, 2, 1] }), { rate: 'rate' });

  test('is an hour, of which the first look, that tells no rates, is no gap', () => {
    const live = { times: [0, 5_000, 10_000].map((ms) => NOW_MS + ms), values: { rate: [null, 5, 6] } };
    expect(joined(day, live).values).toEqual({ rate: [3, 2, 1, 5, 5, 6] });
    expect(joined({ times: [], values: {} }, live)).toEqual(live);
    // Or all that the node has kept times of.
    expect(joined(day, live, Infinity).values).toEqual({ rate: [9, 9, null, 3, 2, 1, 5, 5, 6] });
    // What is known at once stays.
    const known = { times: live.times, values: { rate: [null, 5, 6], lag: [7, 7, 7] } };
    expect(joined(day, known).values).toEqual({
      rate: [3, 2, 1, 5, 5, 6],
      lag: [null, null, null, 7, 7, 7],
    });
  });

  test('alone once it is an hour, and cut off where much lies between', () => {
    const later = { times: [0, HOUR_MS].map((ms) => NOW_MS + ms), values: { rate: [4, 4] } };
    expect(joined(day, later)).toEqual(later);
    const apart = { times: [NOW_MS + 10 * MINUTE_MS], values: { rate: [4] } };
    expect(joined(day, apart).values).toEqual({ rate: [3, 2, 1, null, 4] });
  });
});

describe('a small line', () => {
  test('has its values at even distances, of each time the most, whatever lies between them', () => {
    // A minute a value, and then one every five seconds. The first one is of a time before.
    const times = [0, 60_000, 120_000, 125_000, 130_000, 180_000];
    const line = evenly({ times, values: { rate: [1, 2, 3, 9, 4, 5] } }, 'rate');
    expect(line).toHaveLength(60);
    const from = (value: number) => line.filter((one) => one === value).length;
    expect([1, 2, 3, 9, 4, 5].map(from)).toEqual([0, 20, 20, 2, 2, 16]);
  });

  test('ends with its last value, after whatever peak', () => {
    const line = evenly({ times: [0, 60_000, 119_000, 120_000], values: { rate: [1, 1, 9, 2] } }, 'rate');
    expect(line.slice(-2)).toEqual([9, 2]);
  });

  test('has none behind a cut, and none of a name that is not there', () => {
    const cut = { times: [0, 60_000, 60_000 + CUT_MS, 120_000], values: { rate: [1, 2, null, 3] } };
    const line = evenly(cut, 'rate');
    expect(line.slice(30, 59)).toEqual(Array.from({ length: 29 }, () => null));
    expect([line[29], line[59]]).toEqual([2, 3]);
    expect(evenly(cut, 'absent')).toEqual([]);
    expect(evenly({ times: [5], values: { rate: [1] } }, 'rate')).toEqual([]);
  });
});
