import { expect, test } from 'vitest';
import { bytesText, durationText, Progress, progressText, shareDone, timeLeft } from '../../../local/cli/progress.ts';
import { signalHandler } from '../../../local/cli/signals.ts';
import { FakeIo } from '../support.ts';

function progress(isTTY: boolean, columns = 100) {
  const clock = { now: 0 };
  const io = new FakeIo({ isTTY, env: { NO_COLOR: '1' }, monotonicMs: () => clock.now });
  io.stderr.columns = columns;
  const lines: string[] = [];
  return {
    io,
    clock,
    lines,
    bar: new Progress({ io, onLine: (text) => lines.push(text) }),
  };
}

test('without a terminal: a line every few seconds with rate and time left', () => {
  const { io, clock, lines, bar } = progress(false);
  for (clock.now = 0; clock.now <= 7_000; clock.now += 500)
    bar.update({ label: 'rebuilding', bytesDone: clock.now * 1024, bytesTotal: 10_000 * 1024 });
  bar.clear();
  expect(lines).toEqual([
    'rebuilding: 30 %, 2.9 MiB of 9.8 MiB, 1000.0 KiB/s, 7 s left',
    'rebuilding: 60 %, 5.9 MiB of 9.8 MiB, 1000.0 KiB/s, 4 s left',
  ]);
  expect(io.err).toBe('');
});

test('on a terminal: one line that is drawn over, and taken away', () => {
  const { io, clock, lines, bar } = progress(true);
  bar.update({ label: 'checking', bytesDone: 0, bytesTotal: 2048 });
  clock.now = 50;
  bar.update({ label: 'checking', bytesDone: 10, bytesTotal: 2048 });
  expect(io.err).toBe('');
  clock.now = 1_000;
  bar.update({ label: 'checking', bytesDone: 1024, bytesTotal: 2048 });
  expect(io.err).toBe(
    `\r\u001B[2K[${'#'.repeat(12)}${'-'.repeat(12)}] checking: 50 %, 1.0 KiB of 2.0 KiB, 1.0 KiB/s, 1 s left`,
  );
  bar.clear();
  expect(io.err.endsWith('\r\u001B[2K')).toBe(true);
  expect(lines).toEqual([]);
});

const PHASES = { learning: 30, deciding: 10, writing: 60 };

test('one bar goes over all phases, never back, and not over phases that are left out', () => {
  const { io, clock, bar } = progress(true, 200);
  const shown: number[] = [];
  const step = (label: string, bytesDone: number, bytesTotal: number, share?: number) => {
    clock.now += 100;
    io.err = '';
    bar.update({ label, phases: PHASES, bytesDone, bytesTotal, ...(share !== undefined && { share }) });
    if (io.err !== '') shown.push(/\[(#*)-*\] (\d+) %/.exec(io.err)![1]!.length);
  };
  for (const done of [0, 10, 50, 100]) step('learning', done, 100);
  // It counts no bytes, and what it counts grows.
  for (const share of [0, 0.9, 0.4, 1]) step('deciding', 0, 0, share);
  // More has come to be written meanwhile.
  for (const [done, total] of [
    [0, 100],
    [90, 100],
    [90, 300],
    [300, 300],
  ] as const)
    step('writing', done, total);
  expect(shown).toEqual([...shown].sort((a, b) => a - b));
  expect(shown.at(-1)).toBe(124);
  // 30 of 100 parts of a bar of 124 columns.
  expect(shown.slice(0, 3)).toEqual([4, 19, 37]);
  expect(io.err).toContain('] 100 %, 0 s left, writing: 300 B of 300 B');
  // Not once on its way has it been taken away.
  expect(io.err.startsWith('\r\u001B[2K[')).toBe(true);
});

test.each([
  [80, 16],
  [100, 24],
  [140, 64],
  [300, 224],
])('on a terminal of %i columns the bar has %i, and its line fits', (columns, length) => {
  const { io, clock, bar } = progress(true, columns);
  for (clock.now = 0; clock.now <= 5_000; clock.now += 1_000)
    bar.update({
      label: 'writing',
      phases: PHASES,
      bytesDone: clock.now * 1e9,
      bytesTotal: 5e12,
      detail: 'x'.repeat(400),
    });
  const lines = io.err.split('\r\u001B[2K').slice(1);
  expect(lines).toHaveLength(5);
  for (const line of lines) {
    expect(/^\[([#-]*)\] \d+ %/.exec(line)![1]).toHaveLength(length);
    expect(line.length).toBeLessThan(columns);
  }
});

test('without a terminal lines come when something has moved, or after half a minute', () => {
  const { clock, lines, bar } = progress(false);
  const update = (label: string, bytesDone: number) =>
    bar.update({ label, phases: PHASES, bytesDone, bytesTotal: 1_000 });
  update('learning', 0);
  for (const [ms, label, done] of [
    [1_000, 'learning', 999],
    [3_500, 'learning', 1_000],
    [7_000, 'deciding', 10],
    [20_000, 'deciding', 100],
    [34_000, 'deciding', 101],
    [35_000, 'writing', 10],
    [38_000, 'writing', 100],
  ] as const) {
    clock.now = ms;
    update(label, done);
  }
  expect(lines).toEqual([
    '30 %, 9 s left, learning: 1000 B of 1000 B, 286 B/s',
    '31 %, 1 min 16 s left, deciding: 101 B of 1000 B, 3 B/s',
    '46 %, 45 s left, writing: 100 B of 1000 B, 30 B/s',
  ]);
});

test('the share of work in phases, and the time that is left of it', () => {
  const at = (label: string, share: number) => ({ label, phases: PHASES, bytesDone: 0, bytesTotal: 0, share });
  expect(
    [at('learning', 0.5), at('deciding', 0), at('writing', 1), at('writing', 7), at('unknown', 0.25)].map(shareDone),
  ).toEqual([0.15, 0.3, 1, 1, 0.25]);
  expect(timeLeft(at('learning', 0.5), 15, 3)).toBeCloseTo(85);
  expect(timeLeft(at('learning', 0), 15, 3)).toBeNull();
  expect(timeLeft({ label: 'x', bytesDone: 1, bytesTotal: 2 }, 15, 3)).toBe(3);
  expect(progressText({ ...at('deciding', 0.5), done: 0.35, bytesPerSecond: 0, secondsLeft: null })).toBe(
    '35 %, deciding',
  );
});

test('numbers for people', () => {
  expect([0, 1023, 1024, 1_048_575, 1_048_576, 5e12].map(bytesText)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.0 MiB',
    '1.0 MiB',
    '4.5 TiB',
  ]);
  expect([0.2, 59, 61, 7_500].map(durationText)).toEqual(['1 s', '59 s', '1 min 1 s', '2 h 5 min']);
});

test('a second signal ends at once, the echo of the first does not', () => {
  const clock = { now: 0 };
  const seen: string[] = [];
  const handle = signalHandler({
    nowMs: () => clock.now,
    onFirst: (signal) => seen.push(`first ${signal}`),
    onSecond: (signal) => seen.push(`second ${signal}`),
  });
  handle('SIGINT');
  clock.now = 5;
  handle('SIGINT');
  expect(seen).toEqual(['first SIGINT']);
  clock.now = 2_000;
  handle('SIGTERM');
  expect(seen).toEqual(['first SIGINT', 'second SIGTERM']);
});
