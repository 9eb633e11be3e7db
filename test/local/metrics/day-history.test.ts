import { describe, expect, test } from 'vitest';
import { seenNow } from '../../../local/metrics/activity-metrics.ts';
import { DayHistory } from '../../../local/metrics/day-history.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2031, 3, 2, 9);
const WRITTEN = { activity: 'written' };

function setUp() {
  const clock = new ManualClock(START_MS);
  const metrics = createMetrics(clock);
  let cpu = 0;
  let lost = 0;
  const see = () => {
    const seen = seenNow(metrics);
    return { ...seen, totals: { ...seen.totals, eventsWritten: seen.totals.eventsWritten - lost } };
  };
  const history = new DayHistory({ clock, see, cpuSeconds: () => cpu });
  const ending = new AbortController();
  const running = history.run(ending.signal);
  return {
    clock,
    metrics,
    history,
    minutes: async (count: number, events = 0, cpuPerMinute = 0) => {
      for (let i = 0; i < count; i++) {
        metrics.count('eventstore_io_events_total', events, WRITTEN);
        cpu += cpuPerMinute;
        await clock.advance(MINUTE_MS);
      }
    },
    lose: (count: number) => {
      lost += count;
    },
    written: () => history.view().values.eventsWrittenPerSecond,
    minutesAt: () => history.view().times.map((ms) => (ms - START_MS) / MINUTE_MS),
    end: () => {
      ending.abort();
      return running;
    },
  };
}

describe('what a node did in the last 24 hours', () => {
  test('begins empty, and has a value a minute from then on', async () => {
    const { clock, metrics, history, minutes, end } = setUp();
    expect(history.view()).toMatchObject({ since: '2031-04-02T09:00:00.000Z', stepSeconds: 60, times: [] });
    metrics.observe('eventstore_append_duration_seconds', 0.003);
    await minutes(1, 120, 15);
    await minutes(1, 600);
    expect(history.view()).toEqual({
      since: '2031-04-02T09:00:00.000Z',
      stepSeconds: 60,
      times: [START_MS + MINUTE_MS, START_MS + 2 * MINUTE_MS],
      values: {
        appendsPerSecond: [0, 0],
        eventsWrittenPerSecond: [2, 10],
        eventsReadPerSecond: [0, 0],
        bytesWrittenPerSecond: [0, 0],
        bytesReadPerSecond: [0, 0],
        requestsPerSecond: [0, 0],
        appendP99Seconds: [0.003_49, null],
        requestP99Seconds: [null, null],
        cpuShare: [0.25, 0],
      },
    });
    await end();
    expect(clock.sleeping).toBe(0);
  });

  test('ends 24 hours ago, however long the node has run', async () => {
    const { history, minutes, written, minutesAt } = setUp();
    await minutes(10, 60);
    await minutes(1_440, 120);
    expect(history.view().since).toBe('2031-04-02T09:10:00.000Z');
    expect(minutesAt()).toEqual(Array.from({ length: 1_440 }, (_, i) => i + 11));
    expect(new Set(written())).toEqual(new Set([2]));
  });

  test('has a gap where the machine slept, where the clock was set, and where a counter began anew', async () => {
    const { clock, minutes, lose, written, minutesAt } = setUp();
    await minutes(2, 60);
    // While a machine sleeps only the wall clock goes on; what is written then is not of one minute.
    clock.setNow(clock.nowMs() + 8 * 60 * MINUTE_MS);
    await minutes(1, 60_000);
    await minutes(1, 60);
    lose(1_000);
    await minutes(2, 60);
    expect(written()).toEqual([1, 1, null, 1, null, 1]);
    expect(minutesAt()).toEqual([1, 2, 483, 484, 485, 486]);
  });

  test('goes on from where the clock was set back to, and times go on rising', async () => {
    const { clock, minutes, written, minutesAt } = setUp();
    await minutes(10, 60);
    clock.setNow(clock.nowMs() - 5 * MINUTE_MS);
    await minutes(2, 60);
    expect(minutesAt()).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(written()).toEqual([1, 1, 1, 1, 1, null, 1]);
  });

  test('forgets what lies more than 24 hours back when a machine wakes', async () => {
    const { clock, minutes, minutesAt } = setUp();
    await minutes(3, 60);
    clock.setNow(clock.nowMs() + 2 * 1_440 * MINUTE_MS);
    await minutes(2, 60);
    expect(minutesAt()).toEqual([2_884, 2_885]);
  });
});
