import { describe, expect, test } from 'vitest';
import { systemClock } from '../../infra/system-clock.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { ManualClock } from '../support/manual-clock.ts';
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

describe('the manual clock', () => {
  test('wakes sleepers in the order of their times, each at its own', async () => {
    const clock = new ManualClock(1_000);
    const woken: string[] = [];
    const sleeper = async (name: string, ms: number) => {
      await clock.sleep(ms);
      woken.push(`${name}@${clock.nowMs()}`);
    };
    void sleeper('late', 30);
    void sleeper('early', 10);
    void (async () => {
      await sleeper('twice', 5);
      await sleeper('again', 15);
    })();
    await clock.advance(25);
    expect(woken).toEqual(['twice@1005', 'early@1010', 'again@1020']);
    expect(clock.nowMs()).toBe(1_025);
    expect(clock.sleeping).toBe(1);
    await clock.advance(5);
    expect(woken.at(-1)).toBe('late@1030');
    expect(clock.monotonicMs()).toBe(30);
  });

  test('an abort wakes without time passing; setting the wall clock wakes nobody', async () => {
    const clock = new ManualClock(0);
    const abort = new AbortController();
    const sleeping = clock.sleep(1_000, abort.signal);
    clock.setNow(10_000_000);
    expect(clock.sleeping).toBe(1);
    abort.abort();
    await sleeping;
    expect(clock.sleeping).toBe(0);
    expect(clock.monotonicMs()).toBe(0);
  });
});

test.each([
  ['system', systemIds],
  ['seeded', new SeededIds(1)],
])('%s ids are version 4 UUIDs, all different, and stay as they are', (_name, ids) => {
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
