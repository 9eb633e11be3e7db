import { expect, test } from 'vitest';
import { bytesText, durationText, Progress } from '../../../local/cli/progress.ts';
import { signalHandler } from '../../../local/cli/signals.ts';
import { FakeIo } from '../support.ts';

class Ticks {
  now = 0;
  nowMs = () => this.now;
  monotonicMs = () => this.now;
  sleep = async () => {};
  yield = async () => {};
}

function progress(isTTY: boolean) {
  const io = new FakeIo({ isTTY, env: { NO_COLOR: '1' } });
  const clock = new Ticks();
  const lines: string[] = [];
  return { io, clock, lines, bar: new Progress({ output: io.stderr, env: io.env, clock, onLine: (text) => lines.push(text) }) };
}

test('without a terminal: a line every few seconds with rate and time left', () => {
  const { io, clock, lines, bar } = progress(false);
  for (clock.now = 0; clock.now <= 7_000; clock.now += 500) bar.update({ label: 'rebuilding', bytesDone: clock.now * 1024, bytesTotal: 10_000 * 1024 });
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
  expect(io.err).toBe(`\r\u001B[2K[${'#'.repeat(12)}${'-'.repeat(12)}] checking: 50 %, 1.0 KiB of 2.0 KiB, 1.0 KiB/s, 1 s left`);
  bar.clear();
  expect(io.err.endsWith('\r\u001B[2K')).toBe(true);
  expect(lines).toEqual([]);
});

test('numbers for people', () => {
  expect([0, 1023, 1024, 1_048_575, 1_048_576, 5e12].map(bytesText)).toEqual(['0 B', '1023 B', '1.0 KiB', '1.0 MiB', '1.0 MiB', '4.5 TiB']);
  expect([0.2, 59, 61, 7_500].map(durationText)).toEqual(['1 s', '59 s', '1 min 1 s', '2 h 5 min']);
});

test('a second signal ends at once, the echo of the first does not', () => {
  const clock = new Ticks();
  const seen: string[] = [];
  const handle = signalHandler({ nowMs: clock.nowMs, onFirst: (signal) => seen.push(`first ${signal}`), onSecond: (signal) => seen.push(`second ${signal}`) });
  handle('SIGINT');
  clock.now = 5;
  handle('SIGINT');
  expect(seen).toEqual(['first SIGINT']);
  clock.now = 2_000;
  handle('SIGTERM');
  expect(seen).toEqual(['first SIGINT', 'second SIGTERM']);
});
