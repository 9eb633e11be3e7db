import { describe, expect, test } from 'vitest';
import { systemClock } from '../../infra/clock.ts';
import { systemIds } from '../../infra/ids.ts';
import { SeededIds } from '../support/seeded-ids.ts';

describe('the system clock', () => {
  test('the monotonic time does not go back', () => {
    let last = systemClock.monotonicMs();
    for (let i = 0; i < 1_000; i++) {
      const now = systemClock.monotonicMs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });

  test('an abort ends a sleep of any length, before or while it lasts', async () => {
    const abort = new AbortController();
    const sleeping = systemClock.sleep(10 ** 12, abort.signal);
    abort.abort();
    await sleeping;
    await systemClock.sleep(10 ** 12, abort.signal);
  });

  test('a sleep of nothing, and a yield, end', async () => {
    await systemClock.sleep(0);
    await systemClock.yield();
  });
});

test.each([['system', systemIds], ['seeded', new SeededIds(1)]])('%s ids are version 4 UUIDs, all different, and stay as they are', (_name, ids) => {
  const first = ids.uuidBytes();
  const copy = first.slice();
  const seen = new Set<string>([first.toString()]);
  for (let i = 0; i < 1_000; i++) {
    const id = ids.uuidBytes();
    expect(id.length).toBe(16);
    expect(id[6]! >> 4).toBe(4);
    expect(id[8]! >> 6).toBe(2);
    seen.add(id.toString());
  }
  expect(seen.size).toBe(1_001);
  expect(first).toEqual(copy);
});
