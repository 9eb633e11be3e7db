import { describe, expect, test } from 'vitest';
import { dayOf, joined } from '../../local/ui/page/lib/joined.ts';

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

describe('what the page saw, behind what the node kept', () => {
  const day = dayOf(kept([-90, -89, -3, -2, -1], { rate: [9, 9, 3, 2, 1] }), { rate: 'rate' });

  test('is an hour, of which the first look, that tells no rates, is no gap', () => {
    const live = { times: [0, 5_000, 10_000].map((ms) => NOW_MS + ms), values: { rate: [null, 5, 6] } };
    expect(joined(day, live).values).toEqual({ rate: [3, 2, 1, 5, 6] });
    expect(joined({ times: [], values: {} }, live)).toEqual(live);
    // What is known at once stays.
    const known = { times: live.times, values: { rate: [null, 5, 6], lag: [7, 7, 7] } };
    expect(joined(day, known).values).toEqual({
      rate: [3, 2, 1, null, 5, 6],
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
