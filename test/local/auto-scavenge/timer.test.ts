import { expect, test } from 'vitest';
import { runTicks, TICK_MS_MAX, TICK_PERIOD_MS } from '../../../local/auto-scavenge/open-auto-scavenge.ts';
import { LogLines } from '../../handlers/secured.ts';
import { FakeAutoScavenge } from '../../support/fake-auto-scavenge.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function world() {
  const clock = new ManualClock();
  const autoScavenge = new FakeAutoScavenge();
  const stop = new AbortController();
  const log = new LogLines();
  const start = () => runTicks({ autoScavenge, clock, log, signal: stop.signal });
  return { clock, autoScavenge, stop, log, start, ticks: () => autoScavenge.calls.length };
}

test('ticks at once and then every few seconds, with a deadline, until aborted', async () => {
  const { clock, autoScavenge, stop, start, ticks } = world();
  const deadlines: number[] = [];
  autoScavenge.onTick = async (deadlineMs) => {
    deadlines.push(deadlineMs);
  };
  const running = start();
  await clock.advance(3 * TICK_PERIOD_MS);
  expect([ticks(), deadlines]).toEqual([4, [0, 1, 2, 3].map((n) => n * TICK_PERIOD_MS + TICK_MS_MAX)]);
  stop.abort();
  await running;
  await clock.advance(TICK_PERIOD_MS);
  expect([ticks(), clock.sleeping]).toEqual([4, 0]);
});

test('ticks never overlap, and the end waits for the one under way', async () => {
  const { clock, autoScavenge, stop, start, ticks } = world();
  const under = Promise.withResolvers<void>();
  autoScavenge.onTick = () => under.promise;
  let hasEnded = false;
  const running = start().then(() => {
    hasEnded = true;
  });
  await clock.advance(10 * TICK_PERIOD_MS);
  expect(ticks()).toBe(1);
  stop.abort();
  await clock.advance(TICK_PERIOD_MS);
  expect(hasEnded).toBe(false);
  under.resolve();
  await running;
  expect(ticks()).toBe(1);
});

test('a tick that fails does not end the ticking, and is not logged each time', async () => {
  const { clock, autoScavenge, stop, log, start, ticks } = world();
  autoScavenge.onTick = async () => {
    throw new Error('no');
  };
  const running = start();
  await clock.advance(150 * TICK_PERIOD_MS);
  expect([ticks(), log.lines.map(({ level, fields }) => [level, fields['failedTicks']])]).toEqual([
    151,
    [
      ['error', 1],
      ['error', 151],
    ],
  ]);
  autoScavenge.onTick = async () => {};
  await clock.advance(2 * TICK_PERIOD_MS);
  expect(log.lines.slice(2)).toEqual([
    { level: 'info', message: 'AutoScavenge works again.', fields: { failedTicks: 151 } },
  ]);
  stop.abort();
  await running;
});

test('aborted before it began it does nothing', async () => {
  const { stop, start, ticks } = world();
  stop.abort();
  await start();
  expect(ticks()).toBe(0);
});
