import { describe, expect, test } from 'vitest';
import type { LogQuery } from '../../../handlers/http/node-control.ts';
import { LogRing, RING_LENGTH_MAX } from '../../../local/log/log-ring.ts';
import { createNodeLog } from '../../../local/log/logger.ts';

const NOW_MS = Date.UTC(2031, 3, 2, 9, 15, 30, 250);
const ALL: LogQuery = { count: 1_000, level: 'debug', since: null };

function setUp() {
  return createNodeLog({ stderr: { write: () => {} }, env: {} }, { level: 'info', nowMs: () => NOW_MS });
}

describe('the last lines', () => {
  test('come in their order with what they hold', () => {
    const log = setUp();
    log.info('listening', { url: 'http://127.0.0.1:2113', '@t': 'mine' });
    log.debug('left out');
    log.error('failed', { error: new Error('No.') });
    const { level, first, last, missed, lines } = log.recent(ALL);
    expect([level, first, last, missed]).toEqual(['info', 1, 2, 0]);
    expect(lines[0]).toEqual({
      sequence: 1,
      time: '2031-04-02T09:15:30.250Z',
      level: 'info',
      message: 'listening',
      fields: { url: 'http://127.0.0.1:2113', '@t': 'mine' },
    });
    expect(lines[1]).toMatchObject({
      sequence: 2,
      level: 'error',
      message: 'failed',
      fields: { error: { message: 'No.' } },
      exception: expect.stringContaining('Error: No.'),
    });
  });

  test('are those behind a line, oldest first, and the newest without one', () => {
    const log = setUp();
    for (let i = 1; i <= 10; i++) log.info(`line ${i}`);
    const of = (query: Partial<LogQuery>) => log.recent({ ...ALL, ...query }).lines.map(({ sequence }) => sequence);
    expect(of({ count: 3 })).toEqual([8, 9, 10]);
    expect(of({ count: 3, since: 4 })).toEqual([5, 6, 7]);
    expect(of({ since: 10 })).toEqual([]);
    expect(of({ since: 99 })).toEqual([]);
    expect(of({ since: 0, count: 2 })).toEqual([1, 2]);
  });

  test('are of a level, and what is logged follows the level that is set', () => {
    const log = setUp();
    log.warn('one');
    log.info('two');
    log.setLevel('debug');
    log.debug('three');
    log.error('four');
    expect(log.recent({ ...ALL, level: 'warn' }).lines.map(({ message }) => message)).toEqual(['one', 'four']);
    expect(log.recent({ ...ALL, level: 'warn', count: 1 }).lines.map(({ message }) => message)).toEqual(['four']);
    expect(log.recent(ALL)).toMatchObject({ level: 'debug', last: 4 });
  });

  test('are there before the first one', () => {
    expect(setUp().recent(ALL)).toEqual({ level: 'info', first: 1, last: 0, missed: 0, lines: [] });
  });
});

describe('the memory', () => {
  const textOf = (length: number) => JSON.stringify({ '@mt': 'x'.repeat(length - 10) });

  test('is bounded, and says what went', () => {
    const ring = new LogRing();
    const lineLength = 10_000;
    for (let i = 0; i < 300; i++) ring.add({ atMs: NOW_MS, level: 'info', text: textOf(lineLength) });
    const { first, last, lines } = ring.view('info', ALL);
    expect(last).toBe(300);
    expect(lines).toHaveLength(Math.floor(RING_LENGTH_MAX / lineLength));
    expect([lines[0]!.sequence, lines.at(-1)!.sequence]).toEqual([first, 300]);
    expect(ring.view('info', { ...ALL, since: 10, count: 1 })).toMatchObject({
      missed: first - 11,
      lines: [{ sequence: first }],
    });
    expect(ring.view('info', { ...ALL, since: first - 1 }).missed).toBe(0);
  });

  test('holds a hundred thousand small lines one after the other without growing, and keeps one that is larger than all of it', () => {
    const ring = new LogRing();
    for (let i = 0; i < 100_000; i++) ring.add({ atMs: NOW_MS, level: 'info', text: textOf(100) });
    const { first, last, lines } = ring.view('info', { ...ALL, count: 20_000 });
    expect([last, lines.length, last - first + 1]).toEqual([
      100_000,
      Math.floor(RING_LENGTH_MAX / 100),
      Math.floor(RING_LENGTH_MAX / 100),
    ]);
    ring.add({ atMs: NOW_MS, level: 'error', text: textOf(RING_LENGTH_MAX + 100) });
    expect(ring.view('info', ALL).lines.map(({ sequence }) => sequence)).toEqual([100_001]);
  });
});
