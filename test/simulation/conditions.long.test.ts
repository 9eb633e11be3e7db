import { expect, test } from 'vitest';
import { CONDITION_FAULTS } from '../streams/conditions-faults.ts';
import { simulateWithout } from './without.ts';

/** Where each rule is missed, and a seed shortly before the one that misses it. */
const FOUND: Readonly<Record<string, readonly (readonly [simulation: string, from: number])[]>> = {
  'no-tail': [
    ['conditions', 1],
    ['object-conditions', 1],
    ['cluster-conditions', 4],
  ],
  'no-group': [
    ['conditions', 1],
    ['cluster-conditions', 15],
  ],
  'decided-once': [
    ['object-conditions', 1],
    ['cluster-conditions', 4],
  ],
  'refused-as-found': [['object-conditions', 1]],
  'hidden-counts': [
    ['conditions', 1],
    ['cluster-conditions', 3],
  ],
  'loosened-counts-not': [['conditions', 20]],
  'after-counts': [
    ['conditions', 1],
    ['cluster-conditions', 1],
  ],
  'repeat-refused': [
    ['conditions', 1],
    ['object-conditions', 1],
  ],
};

test('every rule of conditions can be left out', () => {
  expect(Object.keys(FOUND).sort()).toEqual(Object.keys(CONDITION_FAULTS).sort());
});

test.each(Object.entries(FOUND).flatMap(([rule, places]) => places.map((place) => [rule, ...place] as const)))(
  'without the rule %s, %s is wrong',
  { timeout: 60_000 },
  async (rule, simulation, from) => {
    const { code, said } = await simulateWithout(rule, simulation, from);
    expect(said).toMatch(/^(written at|refused, and|a repeat is refused|seed \d+, at)/m);
    expect(code, said).toBe(1);
  },
);
