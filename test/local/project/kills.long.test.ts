import { expect, test } from 'vitest';
import { bySize } from '../../support/run-size.ts';
import { runKills } from './kills.ts';
import { NO_POSTGRES } from './postgres.ts';

const rounds = bySize(2, 12, 200);

test.each([
  ['sqlite', null],
  ['postgres', NO_POSTGRES],
] as const)('a reader of %s that is killed at any moment makes what one makes that is not', async (kind, why) => {
  if (why !== null) return console.warn(`Skipped with PostgreSQL: ${why}.`);
  const { kills, midway, grew, made, anew } = await runKills({ kind, rounds, seed: 4_711 });
  expect(made).toEqual(anew);
  expect(kills).toBe(rounds);
  // Else no kill meets anything.
  expect(midway).toBeGreaterThan(rounds / 4);
  expect(grew).toBeGreaterThan(rounds / 4);
});
