import { expect, test } from 'vitest';
import type { ScavengeProgress } from '../../core/scavenge/api.ts';
import { RunProgress } from '../../core/scavenge/run-progress.ts';
import { queryOf, RunLog, weightText } from '../../core/scavenge/run-log.ts';
import { silentLog } from '../../core/ports/log.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Lines and metrics. */

test('weights have no decimals and digits in groups', () => {
  expect([0, 2, 999, 1_250, 1_250.4, 12_345_678, 0.5].map(weightText)).toEqual([
    '0',
    '2',
    '999',
    '1,250',
    '1,250',
    '12,345,678',
    '1',
  ]);
});

test('a request is told as a query string, with what was given', () => {
  expect(queryOf({}, 1)).toBe('startFromChunk=0&threads=1&syncOnly=False');
  expect(queryOf({ threshold: -1, throttlePercent: 30, syncOnly: true }, 2)).toBe(
    'startFromChunk=0&threads=2&threshold=-1&throttlePercent=30&syncOnly=True',
  );
});

test('only pauses of ten seconds and more are told', () => {
  const messages: string[] = [];
  const lines = new RunLog(
    {
      ...silentLog,
      debug: (message) => {
        messages.push(message);
      },
    },
    'id',
  );
  for (const ms of [1_000, 9_999, 10_000]) {
    lines.pauseBegins(ms);
    lines.pauseEnded(ms);
  }
  expect(messages).toEqual(['SCAVENGING: Pausing for 00:00:10.', 'SCAVENGING: Paused for 00:00:10.']);
});

function watched(): {
  clock: ManualClock;
  progress: RunProgress;
  gauges: Map<string, number>;
  statuses: string[];
  told: ScavengeProgress[];
} {
  const clock = new ManualClock(1_700_000_000_000);
  const gauges = new Map<string, number>();
  const statuses: string[] = [];
  const told: ScavengeProgress[] = [];
  const meter = {
    count() {},
    observe() {},
    gauge: (name: string, value: number, labels?: Readonly<Record<string, string>>) => {
      if (labels === undefined) gauges.set(name, value);
      else statuses.push(`${name} ${labels['name']} ${labels['status']} ${value}`);
    },
  };
  return {
    clock,
    gauges,
    statuses,
    told,
    progress: new RunProgress('id', { clock, meter }, (line) => told.push(line)),
  };
}

test('the status metric names the phase, and its value is the time', async () => {
  const { clock, progress, statuses } = watched();
  progress.begin('Accumulation', 0, 0);
  await clock.advance(5_000);
  progress.begin('Index execution', 0, 0);
  progress.begin('Cleaning', 0, 0);
  progress.end();
  const at = (seconds: number, text: string) => `eventstore_statuses ${text} ${1_700_000_000 + seconds}`;
  expect(statuses).toEqual([
    at(0, 'Scavenge Accumulation Phase'),
    at(5, 'Scavenge Index execution Phase'),
    at(5, 'Index Scavenging'),
    at(5, 'Scavenge Cleaning Phase'),
    at(5, 'Index Idle'),
    at(5, 'Scavenge Idle'),
  ]);
});

test('several parts under way at once count with their share', async () => {
  const { clock, progress, gauges, told } = watched();
  progress.begin('Chunk execution', 3, 400);
  expect(progress.current()).toMatchObject({
    phase: 'Chunk execution',
    bytesDone: 0,
    bytesTotal: 400,
    remainingSeconds: null,
  });
  const [a, b] = [Symbol(), Symbol()];
  await clock.advance(10_000);
  progress.ofPart(a, { done: 5, total: 10, unit: 'entries' }, 200);
  progress.ofPart(b, { done: 0, total: 0, unit: 'bytes' }, 200);
  expect(progress.current()).toMatchObject({ bytesDone: 100, elapsedSeconds: 10, remainingSeconds: 30 });
  progress.endPart(a, 200, 1);
  progress.bytesReclaimed += 50;
  progress.ofPart(b, { done: 1, total: 2, unit: 'bytes' }, 200);
  expect(progress.current()).toMatchObject({
    bytesDone: 300,
    chunksDone: 1,
    chunksTotal: 3,
    bytesReclaimed: 50,
    startedAtMs: 1_700_000_000_000,
  });
  expect(Object.fromEntries(gauges)).toEqual({
    eventstore_scavenge_chunks_done: 1,
    eventstore_scavenge_chunks_total: 3,
    eventstore_scavenge_done_bytes: 300,
    eventstore_scavenge_total_bytes: 400,
    eventstore_scavenge_reclaimed_bytes: 50,
  });
  // Not more than one line in ten seconds.
  expect(told).toHaveLength(1);
});

test('a phase that counts something else than bytes tells the time left by that', async () => {
  const { clock, progress } = watched();
  progress.begin('Calculation', 0, 0);
  await clock.advance(4_000);
  progress.ofPhase({ done: 100, total: 500, unit: 'entries' });
  expect(progress.current()).toMatchObject({ bytesDone: 0, bytesTotal: 0, remainingSeconds: 16 });
});
