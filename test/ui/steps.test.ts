import { expect, test } from 'vitest';
import { withSteps } from '../../local/ui/page/parts/steps.ts';

test('points far apart become steps, each value over the time since the one before it, the first over as much', () => {
  expect(withSteps([100, 200, 300], [[1, 5, 2]], 200)).toEqual({
    times: [0, 100, 101, 200, 201, 300],
    lines: [[1, 1, 5, 5, 2, 2]],
  });
});

test('points near each other stay as they are', () => {
  expect(withSteps([0, 1, 2], [[1, 2, 3]], 3_600)).toEqual({ times: [0, 1, 2], lines: [[1, 2, 3]] });
});

test('points near each other are steps behind such that are not, and a cut between the two stays one', () => {
  expect(withSteps([0, 1_000, 1_010], [[1, 2, 3]], 3_600)).toEqual({
    times: [-1_000, 0, 1, 1_000, 1_001, 1_010],
    lines: [[1, 1, 2, 2, 3, 3]],
  });
  expect(withSteps([0, 1_000, 1_001, 1_010], [[1, 2, null, 3]], 3_600)).toEqual({
    times: [-1_000, 0, 1, 1_000, 1_001, 1_002, 1_010],
    lines: [[1, 1, 2, 2, null, null, 3]],
  });
});

test('a value behind a time in which there was none is that of its own time; behind a cut nothing is drawn', () => {
  expect(
    withSteps(
      [0, 100, 200],
      [
        [1, null, 3],
        [null, 2, null],
      ],
      200,
    ),
  ).toEqual({
    times: [-100, 0, 1, 100, 101, 200],
    lines: [
      [1, 1, null, null, 3, 3],
      [null, null, 2, 2, null, null],
    ],
  });
  expect(withSteps([0, 100, 101, 200], [[1, 2, null, 3]], 200)).toEqual({
    times: [-100, 0, 1, 100, 101, 102, 200],
    lines: [[1, 1, 2, 2, null, null, 3]],
  });
});

test('no points, and a single one, are no steps', () => {
  expect(withSteps([], [[]], 0)).toEqual({ times: [], lines: [[]] });
  expect(withSteps([5], [[1]], 0)).toEqual({ times: [5], lines: [[1]] });
});

test('of a minute of values two seconds apart, give or take, all are steps', () => {
  const { lines } = withSteps([0, 2_000, 3_950, 6_010], [[1, 2, 3, 4]], 60_000);
  expect(lines).toEqual([[1, 1, 2, 2, 3, 3, 4, 4]]);
});
