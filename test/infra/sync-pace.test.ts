import { describe, expect, test } from 'vitest';
import { SyncLatency } from '../../infra/fs/latency.ts';

function after(...syncs: readonly number[]): SyncLatency {
  const pace = new SyncLatency();
  for (const ms of syncs) pace.note(ms);
  return pace;
}

const quick = Array.from({ length: 4 }, () => 0.2);

describe('a sync is made on the spot', () => {
  test('only after four quick ones in a row', () => {
    expect(after(...quick.slice(1)).isOnTheSpot).toBe(false);
    expect(after(...quick).isOnTheSpot).toBe(true);
    expect(after(...quick.slice(1), 0.8, 0.2).isOnTheSpot).toBe(false);
  });

  test('until one was slow, so that no second one is within a thousand', () => {
    expect(after(...quick, 0.9).isOnTheSpot).toBe(true);
    const pace = after(...quick, 1.1);
    // These five count.
    for (let i = 0; i < 1_024 - 5 + 3; i++) {
      expect(pace.isOnTheSpot).toBe(false);
      pace.note(0.2);
    }
    expect(pace.isOnTheSpot).toBe(false);
    pace.note(0.2);
    expect(pace.isOnTheSpot).toBe(true);
  });

  test('again after four quick ones when the last slow one is long ago', () => {
    const pace = after(...Array.from({ length: 1_100 }, () => 0.2), 5);
    for (let i = 0; i < 4; i++) {
      expect(pace.isOnTheSpot).toBe(false);
      pace.note(0.2);
    }
    expect(pace.isOnTheSpot).toBe(true);
    pace.note(5);
    for (let i = 0; i < 1_000; i++) {
      pace.note(0.2);
      expect(pace.isOnTheSpot).toBe(false);
    }
  });

  test('never behind a large write', () => {
    const pace = after(...quick);
    pace.expectSlow();
    expect(pace.isOnTheSpot).toBe(false);
    const slow = after(...quick, 5);
    slow.expectSlow();
    for (let i = 0; i < 100; i++) slow.note(0.1);
    expect(slow.isOnTheSpot).toBe(false);
  });
});
