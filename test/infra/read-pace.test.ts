import { describe, expect, test } from 'vitest';
import { ReadLatency } from '../../infra/fs/latency.ts';

/** Makes reads that take this long; gives how many were admitted in a row. */
function admitted(pace: ReadLatency, reads: number, ms: number): number {
  for (let i = 0; i < reads; i++) {
    if (!pace.admits()) return i;
    pace.note(ms);
  }
  return reads;
}

function refused(pace: ReadLatency): number {
  let count = 0;
  while (!pace.admits()) count++;
  return count;
}

describe('a small read is made on the spot', () => {
  test('while reads come from the page cache', () => {
    const pace = new ReadLatency();
    expect(admitted(pace, 100_000, 0.003)).toBe(100_000);
  });

  test('although the scheduler takes the processor away now and then', () => {
    const pace = new ReadLatency();
    for (let i = 0; i < 100; i++) {
      expect(admitted(pace, 200, 0.003)).toBe(200);
      expect(admitted(pace, 1, 6)).toBe(1);
    }
  });

  test('not on a disk, whose reads stop the loop for a moment only before that is known', () => {
    expect(admitted(new ReadLatency(), 100, 8)).toBe(2);
    expect(admitted(new ReadLatency(), 100, 0.1)).toBeLessThan(12);
  });

  test('again after some others; one try is enough to see that nothing has changed', () => {
    const pace = new ReadLatency();
    admitted(pace, 2, 8);
    const refusals: number[] = [];
    for (let i = 0; i < 9; i++) {
      refusals.push(refused(pace));
      pace.note(8);
    }
    expect(refusals).toEqual([64, 128, 256, 512, 1_024, 2_048, 4_096, 4_096, 4_096]);
    refused(pace);
    pace.note(0.003);
    expect(admitted(pace, 1_000, 0.003)).toBe(1_000);
    admitted(pace, 2, 8);
    expect(refused(pace)).toBe(64);
  });
});
