import { describe, expect, test } from 'vitest';
import { bySize } from '../support/run-size.ts';
import { s3ForTests } from '../support/s3/s3-for-tests.ts';
import { judgeStream } from './processes/history.ts';
import type { Operation, Outcome } from './processes/history.ts';
import { runProcesses } from './processes/run.ts';

const SECONDS = bySize(6, 6, 60);
const WRITERS = bySize(8, 8, 16);

describe('the judge of histories', () => {
  const operation = (
    asked: Operation['asked'],
    startMs: number,
    endMs: number,
    ids: readonly string[],
    outcome: Outcome,
  ): Operation => ({ writer: 1, stream: 's', asked, startMs, endMs, ids, outcome });
  const appended = (first: number, ...ids: string[]): Outcome => ({
    kind: 'appended',
    first,
    last: first + ids.length - 1,
    isRepeat: false,
  });
  const two = [operation(-1, 0, 10, ['a'], appended(0, 'a')), operation(-2, 20, 30, ['b'], appended(1, 'b'))];

  test('finds nothing where one order explains everything', () => {
    const reads = [
      operation('read', 5, 15, [], { kind: 'read', ids: ['a'] }),
      operation('read', 5, 8, [], { kind: 'read', ids: [] }),
      operation(0, 25, 40, ['c'], { kind: 'conflict', actual: 1 }),
    ];
    expect(
      judgeStream('s', ['a', 'b'], [...two, ...reads, operation(-2, 1, Infinity, ['d'], { kind: 'unknown' })]),
    ).toEqual([]);
  });

  test.each<[string, readonly string[], Operation]>([
    ['an acknowledged event is lost', ['a'], two[1]!],
    ['an event is there twice', ['a', 'b', 'b'], two[1]!],
    [
      'a refused event is there',
      ['a', 'b', 'c'],
      operation(-2, 40, 50, ['c'], { kind: 'refused', code: 'commit_contended' }),
    ],
    ['a reader misses an acknowledged event', ['a', 'b'], operation('read', 31, 32, [], { kind: 'read', ids: ['a'] })],
    [
      'a reader sees what was not asked for yet',
      ['a', 'b'],
      operation('read', 11, 12, [], { kind: 'read', ids: ['a', 'b'] }),
    ],
    ['readers see two orders', ['a', 'b'], operation('read', 40, 41, [], { kind: 'read', ids: ['b', 'a'] })],
    [
      'a conflict names a version that was long gone',
      ['a', 'b'],
      operation(5, 40, 50, ['c'], { kind: 'conflict', actual: 0 }),
    ],
    ['an expected version did not hold', ['a', 'b'], operation(4, 20, 30, ['b'], appended(1, 'b'))],
    [
      'the order in the log is not that of time',
      ['b', 'a'],
      operation('read', 40, 41, [], { kind: 'read', ids: ['b', 'a'] }),
    ],
  ])('notices that %s', (_, final, fault) => {
    expect(judgeStream('s', final, [...two, fault])).not.toEqual([]);
  });
});

test(`${WRITERS} processes on one bucket, some killed, leave streams that one order explains`, async () => {
  const s3 = await s3ForTests();
  try {
    const report = await runProcesses({
      place: s3.place('writers'),
      env: s3.env,
      writers: WRITERS,
      seconds: SECONDS,
      seed: 7,
    });
    expect(report.problems).toEqual([]);
    expect(report.appended).toBeGreaterThan(WRITERS);
    expect(report.killed).toBeGreaterThan(0);
    expect(report.ticks).toBeGreaterThan(0);
  } finally {
    await s3.close();
  }
});
