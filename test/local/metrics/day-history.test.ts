import { describe, expect, test } from 'vitest';
import type { GroupInfo } from '../../../core/persistent/api.ts';
import { DayLines, LineRoom } from '../../../local/metrics/day-lines.ts';
import { lagOf, sortsOf } from '../../../local/metrics/day-measures.ts';
import { DayHistory } from '../../../local/metrics/day-history.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { lagOf as lagOnPage } from '../../../local/ui/page/views/subscriptions/groups.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2031, 3, 2, 9);
const WRITTEN = { activity: 'written' };
const CALLS = 'eventstore_webhook_calls_total';
const REQUESTS = 'eventstore_http_requests_total';

const CONNECTOR_LIST: string = '../../../local/ui/page/views/webhooks/connector-list.ts';
interface CountsOfPage {
  countOf(calls: { readonly outcomes: Readonly<Record<string, number>> }, sort: string): number;
}
/** As calls end, and one that neither knows. */
const OUTCOMES = [
  'accepted',
  'written',
  'duplicate',
  'challenge',
  'skipped',
  'refused-type',
  'refused-body',
  'refused-signature',
  'refused-json',
  'script-failed',
  'script-timed-out',
  'script-unavailable',
  'refused-route',
  'refused-stream',
  'full',
  'stopping',
  'write-failed',
  'write-timed-out',
  'client-gone',
  'not-active',
  'failed',
  'made-up',
];

function setUp() {
  const clock = new ManualClock(START_MS);
  const metrics = createMetrics(clock);
  const world = {
    cpu: 0,
    lookups: null as { hits: number; misses: number } | null,
    groups: null as readonly GroupInfo[] | null,
  };
  const history = new DayHistory({
    clock,
    metrics,
    cpuSeconds: () => world.cpu,
    lookups: () => world.lookups && { cache: world.lookups, streams: { stateHits: 0, stateMisses: 0 } },
    groups: () => world.groups,
  });
  const ending = new AbortController();
  const running = history.run(ending.signal);
  return {
    clock,
    metrics,
    history,
    world,
    minutes: async (count: number, events = 0, cpuPerMinute = 0) => {
      for (let i = 0; i < count; i++) {
        metrics.count('eventstore_io_events_total', events, WRITTEN);
        world.cpu += cpuPerMinute;
        await clock.advance(MINUTE_MS);
      }
    },
    /** The counter of events begins anew. */
    lose: async () => {
      const end = metrics.collect((sink) => sink.total('eventstore_io_events_total', 0, WRITTEN));
      await metrics.render(null);
      end();
    },
    written: () => history.activity().values.eventsWrittenPerSecond,
    minutesAt: () => history.activity().times.map((ms) => (ms - START_MS) / MINUTE_MS),
    end: () => {
      ending.abort();
      return running;
    },
  };
}

function group(name: string, more: Partial<GroupInfo> = {}): GroupInfo {
  return {
    stream: 's',
    group: name,
    startFrom: '0',
    totalItems: 0,
    totalInFlightMessages: 0,
    lastKnownPosition: null,
    lastCheckpointedPosition: null,
    ...more,
  } as GroupInfo;
}

describe('what a node did in the last 24 hours', () => {
  test('begins empty, and has a value a minute from then on', async () => {
    const { clock, metrics, history, minutes, end } = setUp();
    expect(history.activity()).toMatchObject({ since: '2031-04-02T09:00:00.000Z', stepSeconds: 60, times: [] });
    metrics.observe('eventstore_append_duration_seconds', 0.003);
    await minutes(1, 120, 15);
    await minutes(1, 600);
    expect(history.activity()).toEqual({
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
    expect(history.activity().since).toBe('2031-04-02T09:10:00.000Z');
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
    await lose();
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

describe('the metrics that are charted', () => {
  test('have rates and quantiles, named as `/metrics` names them', async () => {
    const { metrics, history, world, minutes } = setUp();
    world.lookups = { hits: 100, misses: 7 };
    metrics.count(REQUESTS, 5, { method: 'GET', status: '200', area: 'streams' });
    await minutes(1);
    world.lookups = { hits: 160, misses: 7 };
    metrics.count(REQUESTS, 30, { method: 'GET', status: '200', area: 'streams' });
    metrics.count(REQUESTS, 60, { method: 'POST', status: '201', area: 'streams' });
    for (let i = 0; i < 100; i++) metrics.observe('eventstore_append_duration_seconds', 0.003);
    await minutes(1, 120);
    expect(history.metrics().values).toEqual({
      'eventstore_io_events_total{activity="written"}': [0, 2],
      'eventstore_append_duration_seconds{quantile="0.5"}': [null, 0.003],
      'eventstore_append_duration_seconds{quantile="0.99"}': [null, 0.003_49],
      'eventstore_http_requests_total{method="GET", status="200", area="streams"}': [0.083_33, 0.5],
      'eventstore_http_requests_total{method="POST", status="201", area="streams"}': [null, 1],
      // The store was opened within the first minute.
      'eventstore_cache_hits_misses_total{cache="chunk", kind="hits"}': [null, 1],
      'eventstore_cache_hits_misses_total{cache="chunk", kind="misses"}': [null, 0],
      'eventstore_cache_hits_misses_total{cache="stream-info", kind="hits"}': [null, 0],
      'eventstore_cache_hits_misses_total{cache="stream-info", kind="misses"}': [null, 0],
    });
  });

  test('all lines together take at most 512 KiB, however many series there are', async () => {
    const { metrics, history, world, minutes } = setUp();
    world.lookups = { hits: 1, misses: 1 };
    world.groups = Array.from({ length: 1_000 }, (_, i) => group(`g${i}`));
    for (let i = 0; i < 1_000; i++) {
      metrics.count(CALLS, 1, { connector: `c${i}`, outcome: 'written' });
      metrics.count(REQUESTS, 1, { method: 'GET', status: String(i), area: 'streams' });
      metrics.count('eventstore_io_events_total', 1, { activity: `a${i}` });
    }
    await minutes(2);
    expect(history.bytes).toBeLessThanOrEqual(512 * 1_024);
    // Nothing that is charted had to be left out.
    const names = Object.keys(history.metrics().values).map((name) => name.split('{')[0]);
    const count = (name: string) => names.filter((each) => each === name).length;
    expect(['eventstore_io_events_total', REQUESTS, 'eventstore_cache_hits_misses_total'].map(count)).toEqual([
      2, 12, 4,
    ]);
    const isKept = (values: readonly (number | null)[]) => values.some((value) => value !== null);
    const ids = Array.from({ length: 1_000 }, (_, i) => i);
    expect(ids.filter((i) => isKept(history.connector(`c${i}`).values.takenPerSecond))).toHaveLength(10);
    expect(ids.filter((i) => isKept(history.group('s', `g${i}`).values.inFlight))).toHaveLength(10);
  });
});

test('a series for which there is no memory any more has no history', () => {
  const room = new LineRoom();
  const lines = new DayLines(room, { names: ['one', 'two'], seriesMax: 1_000, busyBy: 1 });
  for (let i = 0; i < 100; i++) lines.put(i, new Map(Array.from({ length: i }, (_, n) => [`s${n}`, [1, 2]])));
  expect(room.usedBytes).toBeLessThanOrEqual(512 * 1_024);
  expect([lines.of('s44')?.map((line) => line[99]), lines.of('s45')]).toEqual([[1, 2], null]);
});

describe('the calls for a connector', () => {
  test('are counted by what became of them; one that was never called has no history', async () => {
    const { metrics, history, minutes } = setUp();
    await minutes(1);
    metrics.count(CALLS, 60, { connector: 'a', outcome: 'accepted' });
    metrics.count(CALLS, 60, { connector: 'a', outcome: 'duplicate' });
    metrics.count(CALLS, 30, { connector: 'a', outcome: 'skipped' });
    metrics.count(CALLS, 6, { connector: 'a', outcome: 'refused-signature' });
    metrics.count(CALLS, 6, { connector: 'a', outcome: 'not-known-yet' });
    await minutes(1);
    expect(history.connector('a').values).toEqual({
      takenPerSecond: [null, 2],
      skippedPerSecond: [null, 0.5],
      refusedPerSecond: [null, 0.2],
    });
    expect(history.connector('b')).toMatchObject({ times: [1, 2].map((i) => START_MS + i * MINUTE_MS) });
    expect(history.connector('b').values.takenPerSecond).toEqual([null, null]);
  });

  test('of more connectors than are kept, those are that were the busiest in a minute', async () => {
    const { metrics, history, minutes } = setUp();
    const call = (id: string, count: number, outcome = 'written') =>
      metrics.count(CALLS, count, { connector: id, outcome });
    for (let i = 0; i < 10; i++) call(`c${i}`, 60 * (i + 1));
    await minutes(1);
    // As busy as the quietest was: it stays.
    call('late', 60);
    await minutes(1);
    expect(history.connector('late').values.takenPerSecond).toEqual([null, null]);
    // Busier, if only with calls that are refused: without what those lines were of before.
    call('late', 90, 'refused-body');
    await minutes(1);
    expect(history.connector('late').values).toEqual({
      takenPerSecond: [null, null, 0],
      skippedPerSecond: [null, null, 0],
      refusedPerSecond: [null, null, 1.5],
    });
    expect(history.connector('c0').values.takenPerSecond).toEqual([null, null, null]);
    expect(history.connector('c1').values.takenPerSecond).toEqual([2, 0, 0]);
  });
});

describe('a group', () => {
  test('has what it sent, how far it lies behind, and what is in flight', async () => {
    const { history, world, minutes } = setUp();
    world.groups = [group('g')];
    await minutes(1);
    world.groups = [
      group('g', {
        totalItems: 120,
        totalInFlightMessages: 4,
        lastKnownPosition: '200',
        lastCheckpointedPosition: '110',
      }),
    ];
    await minutes(1);
    expect(history.group('s', 'g').values).toEqual({ sentPerSecond: [null, 2], lag: [null, 90], inFlight: [null, 4] });
    expect(history.group('s:g', '').values.inFlight).toEqual([null, null]);
  });

  test('that is deleted and made again begins anew, and one that is loaded again has a gap', async () => {
    const { history, world, minutes } = setUp();
    const at = async (...groups: readonly GroupInfo[]) => {
      world.groups = groups;
      await minutes(1);
    };
    await at(group('g', { totalItems: 600 }), group('h'));
    await at(group('g', { totalItems: 1_200 }), group('h', { totalItems: 600 }));
    // Made again within a minute, or loaded again: what only grows fell.
    await at(group('g', { totalItems: 60 }), group('h', { totalItems: 660 }));
    await at(group('g', { totalItems: 120 }), group('h', { totalItems: 720 }));
    expect(history.group('s', 'g').values.sentPerSecond).toEqual([null, 10, null, 1]);
    // The member leads no more for a minute: that deletes nothing.
    world.groups = null;
    await minutes(1);
    await at(group('g', { totalItems: 30 }), group('h', { totalItems: 30 }));
    await at(group('g', { totalItems: 90 }), group('h', { totalItems: 90 }));
    expect(history.group('s', 'h').values.sentPerSecond).toEqual([null, 10, 1, 1, null, null, 1]);
    await at(group('h', { totalItems: 90 }));
    expect(history.group('s', 'g').values.inFlight.every((value) => value === null)).toBe(true);
    await at(group('g', { totalItems: 5 }), group('h', { totalItems: 90 }));
    await at(group('g', { totalItems: 65 }), group('h', { totalItems: 90 }));
    expect(history.group('s', 'g').values.sentPerSecond).toEqual([...Array.from({ length: 9 }, () => null), 1]);
    expect(history.group('s', 'h').values.sentPerSecond.slice(-3)).toEqual([0, 0, 0]);
  });
});

/** Lines of the node and what the page adds to them must mean the same. */
describe('the node and the page count alike', () => {
  test.each([
    [null, null, '0'],
    ['7', null, '0'],
    ['7', null, '-1'],
    ['7', '3', '0'],
    ['3', '7', '0'],
    ['C:900/P:800', null, 'C:0/P:0'],
    ['C:900/P:800', null, 'C:-1/P:-1'],
    ['C:900/P:800', 'C:300/P:300', 'C:-1/P:-1'],
  ])('known %s, done %s, from %s', (known, done, startFrom) => {
    const stream = startFrom.startsWith('C:') ? '$all' : 's';
    const positions = { lastKnownPosition: known, lastCheckpointedPosition: done };
    const document = { status: 'Live', lastKnownEventPosition: known, lastCheckpointedEventPosition: done };
    expect(lagOf({ stream, startFrom, ...positions })).toBe(
      lagOnPage(document as Parameters<typeof lagOnPage>[0], startFrom)?.amount ?? null,
    );
  });

  test('sorts of outcomes', async () => {
    // Not by a literal: the file is one of browsers, whose types are not those of tests.
    const { countOf } = (await import(CONNECTOR_LIST)) as CountsOfPage;
    const outcomes = Object.fromEntries(OUTCOMES.map((name, i) => [name, 2 ** i]));
    expect(sortsOf(new Map(Object.entries(outcomes)))).toEqual(
      (['taken', 'skipped', 'refused'] as const).map((sort) => countOf({ outcomes }, sort)),
    );
  });
});
