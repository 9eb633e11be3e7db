import { afterAll, expect, test } from 'vitest';
import { inMemory, onS3 } from './place.ts';
import { playOnObjects } from './random-scavenge.ts';
import { bySize } from '../../support/run-size.ts';

const server = onS3();
afterAll(() => server.close());

test.each(bySize([404], [403, 404], [401, 402, 403, 404]))(
  'a random history leaves exactly what must stay, seed %i',
  async (seed) => {
    const { wrong, removed, ticks } = await playOnObjects(inMemory(), seed, 2);
    expect(wrong).toEqual([]);
    expect(removed).toBeGreaterThan(0);
    expect(ticks).toBeGreaterThan(4);
  },
);

test('a random history on a server leaves exactly what must stay', async () => {
  const { wrong, removed } = await playOnObjects(server, 411, 1);
  expect(wrong).toEqual([]);
  expect(removed).toBeGreaterThan(0);
});
