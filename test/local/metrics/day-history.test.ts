import { afterEach, beforeEach, expect, test } from 'vitest';
import { DayHistory, STEPS } from '../../../local/metrics/day-history.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const START_MS = Date.UTC(2031, 3, 2, 9, 15, 40);
const MINUTE_MS = 60_000;

/** A clock on which a timer may come late, as in a process that stood still. */
class LateClock extends ManualClock {
  #lateMs = 0;

  standStill(ms: number): void {
    this.#lateMs = ms;
  }

  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await super.sleep(ms, signal);
    const lateMs = this.#lateMs;
    this.#lateMs = 0;
    await super.sleep(lateMs, signal);
  }
}

let clock: LateClock;
let metrics: ReturnType<typeof createMetrics>;
let history: DayHistory;
let ending: AbortController;
let running: Promise<void>;
let cpuSeconds: number;

beforeEach(() => {
  clock = new LateClock(START_MS);
  metrics = createMetrics(clock);
  cpuSeconds = 0;
  history = new DayHistory(metrics, clock, () => cpuSeconds);
  ending = new AbortController();
  running = history.run(ending.signal);
});
afterEach(async () => {
  ending.abort();
  await running;
});

function write(events: number): void {
  metrics.count('eventstore_io_events_total', events, { activity: 'written' });
}

/** Writes so many events a second for a minute. */
async function minuteOf(eventsPerSecond: number): Promise<void> {
  write(eventsPerSecond * 60);
  await clock.advance(MINUTE_MS);
}

const written = () => history.view().lines.eventsWrittenPerSecond;

test('begins empty, and has a value for each whole minute from its start on', async () => {
  expect(history.view()).toMatchObject({ stepSeconds: 60, from: null, lines: { eventsWrittenPerSecond: [] } });
  write(160);
  cpuSeconds = 8;
  // The first one is a little longer: less than half a minute says little.
  await clock.advance(80_000);
  expect(history.view()).toMatchObject({
    from: '2031-04-02T09:17:00.000Z',
    lines: { eventsWrittenPerSecond: [2], requestsPerSecond: [0], appendP99Seconds: [null], cpuPercent: [10] },
  });
  metrics.observe('eventstore_append_duration_seconds', 0.003);
  await minuteOf(5);
  expect(history.view()).toMatchObject({
    from: '2031-04-02T09:17:00.000Z',
    lines: { eventsWrittenPerSecond: [2, 5], appendP99Seconds: [null, 0.003_49], cpuPercent: [10, 0] },
  });
});

test('keeps a day, and lets go of what is older', async () => {
  await clock.advance(80_000);
  for (let minute = 1; minute < STEPS + 3; minute++) await minuteOf(minute);
  const { from, lines } = history.view();
  expect(from).toBe(new Date(Date.UTC(2031, 3, 2, 9, 20)).toISOString());
  for (const values of Object.values(lines)) expect(values.length).toBe(STEPS);
  expect([lines.eventsWrittenPerSecond[0], lines.eventsWrittenPerSecond.at(-1)]).toEqual([3, STEPS + 2]);
  // However many events a value stands for, it is sent with no more digits than a chart shows.
  write(1_234_567);
  await clock.advance(MINUTE_MS);
  expect(written().at(-1)).toBe(20_580);
});

test('minutes in which the process stood still are a gap', async () => {
  await clock.advance(80_000);
  await minuteOf(1);
  clock.standStill(5 * MINUTE_MS);
  write(60_000);
  await clock.advance(6 * MINUTE_MS);
  await minuteOf(3);
  expect(written()).toEqual([0, 1, null, null, null, null, null, null, 3]);
});

test('a clock that is set forward, as by a machine that slept, leaves a gap and no leap', async () => {
  await clock.advance(80_000);
  await minuteOf(1);
  write(60_000);
  clock.setNow(clock.nowMs() + 3 * MINUTE_MS);
  await clock.advance(MINUTE_MS);
  await minuteOf(2);
  expect(written()).toEqual([0, 1, null, null, null, null, 2]);
});

test('a clock that is set further than a day leaves nothing of before', async () => {
  await clock.advance(80_000);
  await minuteOf(1);
  clock.setNow(clock.nowMs() + 40 * 24 * 60 * MINUTE_MS);
  await clock.advance(MINUTE_MS);
  await minuteOf(2);
  const values = written();
  expect([values.length, values.at(-1), values.slice(0, -1).every((value) => value === null)]).toEqual([
    STEPS,
    2,
    true,
  ]);
});

test('where the clock is set back, the minutes before are told by the clock of now', async () => {
  await clock.advance(80_000);
  await minuteOf(1);
  clock.setNow(clock.nowMs() - 30 * MINUTE_MS);
  await clock.advance(MINUTE_MS);
  await minuteOf(2);
  expect([history.view().from, written()]).toEqual(['2031-04-02T08:47:00.000Z', [0, 1, null, 2]]);
});

test('figures that fell were begun anew: no leap, and no value below zero', async () => {
  await clock.advance(80_000);
  metrics.count('eventstore_http_requests_total', 500, { method: 'GET', status: '2xx', area: 'streams' });
  await minuteOf(1);
  metrics.collect((sink) => sink.clear('eventstore_http_requests_total'));
  await metrics.render(null);
  cpuSeconds = -5;
  await minuteOf(2);
  const { lines } = history.view();
  expect([lines.eventsWrittenPerSecond, lines.requestsPerSecond[2], lines.cpuPercent[2]]).toEqual([[0, 1, 2], null, 0]);
});
