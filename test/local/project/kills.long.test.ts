import { describe, expect, test } from 'vitest';
import { bySize } from '../../support/run-size.ts';
import { runKills } from './kills.ts';
import { NO_POSTGRES } from './postgres.ts';

const rounds = bySize(2, 12, 200);

describe.each([
  ['SQLite', 'sqlite', null],
  ['PostgreSQL', 'postgres', NO_POSTGRES],
] as const)('a reader of %s', (_name, kind, why) => {
  const name = 'that is killed at any moment makes what one makes that is not';
  test.skipIf(why !== null)(why === null ? name : `${name} (${why})`, async () => {
    const { kills, midway, grew, made, anew } = await runKills({ kind, rounds, seed: 4_711 });
    expect(made).toEqual(anew);
    expect(kills).toBe(rounds);
    // Every other reader stands still until the kill.
    expect(midway).toBeGreaterThanOrEqual(rounds / 2);
    expect(grew).toBeGreaterThanOrEqual(rounds / 2);
  });
});
