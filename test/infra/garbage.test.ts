import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { collectGarbage, IdleCollector } from '../../infra/garbage.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('what nothing refers to is collected, and no global is left of the function that does it', async () => {
  const held = {};
  const refs = [new WeakRef({}), new WeakRef(held)];
  for (let times = 0; times < 2; times++) {
    // What a reference was made of stays until the turn ends.
    await setImmediate();
    collectGarbage();
  }
  expect(refs.map((ref) => ref.deref())).toEqual([undefined, held]);
  expect((globalThis as { readonly gc?: unknown }).gc).toBeUndefined();
});

/** With how busy the thread is between two looks. */
function collector(busy: { share: number }) {
  const collect = vi.fn();
  const made = new IdleCollector(collect, (since) => ({
    idle: 0,
    active: 0,
    utilization: since === undefined ? 1 : busy.share,
  }));
  return { collect, made };
}

test('a process that has come to rest is collected once, 35 s later', () => {
  const { collect, made } = collector({ share: 0.05 });
  made.begin();
  vi.advanceTimersByTime(34_999);
  expect(collect).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(collect).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1_000_000);
  expect(collect).toHaveBeenCalledTimes(1);
});

test('one that has come to rest again meanwhile has the same time from then on', () => {
  const { collect, made } = collector({ share: 0 });
  made.begin();
  vi.advanceTimersByTime(30_000);
  made.begin();
  vi.advanceTimersByTime(34_999);
  expect(collect).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(collect).toHaveBeenCalledTimes(1);
});

test('one that is busy, or ends, is not halted', () => {
  const busy = { share: 0.06 };
  const { collect, made } = collector(busy);
  made.begin();
  vi.advanceTimersByTime(1_000_000);
  busy.share = 0;
  made.begin();
  vi.advanceTimersByTime(34_999);
  made.cancel();
  vi.advanceTimersByTime(1_000_000);
  expect(collect).not.toHaveBeenCalled();
});
