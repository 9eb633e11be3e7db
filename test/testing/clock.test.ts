import { expect, test, vi } from 'vitest';
import { MovedClock } from '../../local/testing/test-clock.ts';

const DAY_MS = 86_400_000;

test('who sleeps wakes in the order of the times when the clock is moved beyond them, and nobody else does', async () => {
  const clock = new MovedClock();
  const woken: string[] = [];
  const ending = new AbortController();
  const sleep = (name: string, ms: number) => clock.sleep(ms, ending.signal).then(() => woken.push(name));
  void sleep('two days', 2 * DAY_MS);
  void sleep('one day', DAY_MS);
  const late = sleep('a month', 30 * DAY_MS);
  const [wall, monotonic] = [clock.nowMs(), clock.monotonicMs()];
  await clock.advance(3 * DAY_MS);
  expect(woken).toEqual(['one day', 'two days']);
  expect(clock.nowMs() - wall).toBeGreaterThanOrEqual(3 * DAY_MS);
  expect(clock.monotonicMs() - monotonic).toBeGreaterThanOrEqual(3 * DAY_MS);
  // What sleeps on was moved nearer to its time.
  await clock.advance(27 * DAY_MS);
  expect(woken).toEqual(['one day', 'two days', 'a month']);
  await late;
});

test('a sleep ends by its signal, at once where that has come before, and for no time at all', async () => {
  const clock = new MovedClock();
  const ending = new AbortController();
  const sleeping = clock.sleep(400 * DAY_MS, ending.signal);
  ending.abort();
  await sleeping;
  await clock.sleep(DAY_MS, ending.signal);
  await clock.sleep(0);
});

test('it goes by the real time where others have put their own in its place', async () => {
  vi.useFakeTimers({ now: 0 });
  try {
    const clock = new MovedClock();
    expect(clock.nowMs()).toBeGreaterThan(1_700_000_000_000);
    await clock.sleep(1);
    await clock.yield();
  } finally {
    vi.useRealTimers();
  }
});
